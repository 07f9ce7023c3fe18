"""Grey pictures, filter banks and float64 through the Python door: values, libraries, the cache."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from problems import random_image
from selection import pairs_then_slow

import edgeconv
from edgeconv.errors import UsageError

BANK = ["sobel-x", "sobel-y", "laplacian8"]
HEIGHT, WIDTH = 13, 9
RULES: dict[str, Any] = {"method": "reference", "device": "cpu"}


def picture(channels: int, dtype: str = "uint8", seed: int = 0) -> np.ndarray:
    return np.ascontiguousarray(random_image(HEIGHT, WIDTH, dtype, seed)[..., :channels])


def as_torch(array: np.ndarray) -> Any:
    return pytest.importorskip("torch").from_numpy(array)


LIBRARIES: dict[str, Callable[[np.ndarray], Any]] = {"numpy": np.asarray, "torch": as_torch}


@pytest.mark.parametrize("output_mode", ["abs", "normalize", "raw"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
def test_grey_is_a_channel_of_rgb_filtered_by_itself(dtype: str, output_mode: str) -> None:
    image = random_image(HEIGHT, WIDTH, dtype)
    image[..., 1:] = image[..., :1]
    rgb = edgeconv.convolve(image, "sobel", channels="each", output_mode=output_mode, **RULES)
    for channels in ("mix", "each", "luma"):
        flat = edgeconv.convolve(image[..., 0], "sobel", channels=channels, output_mode=output_mode, **RULES)
        assert np.array_equal(flat, rgb[..., 0])
        deep = edgeconv.convolve(image[..., :1], "sobel", channels=channels, output_mode=output_mode, **RULES)
        assert np.array_equal(deep[..., 0], flat)


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("members", [BANK, ["sobel", "scharr"], ["kirsch", "robinson"]])
def test_a_bank_is_its_filters(members: list[str], dtype: str) -> None:
    grey, rgb = picture(1, dtype), picture(3, dtype)
    for number, name in enumerate(members):
        one = edgeconv.convolve(grey, name, **RULES)
        assert np.array_equal(edgeconv.convolve(grey, members, **RULES)[..., number], one[..., 0])
        mix = edgeconv.convolve(rgb, name, **RULES)
        assert np.array_equal(edgeconv.convolve(rgb, members, **RULES)[..., number], mix[..., 0])
        each = edgeconv.convolve(rgb, members, channels="each", **RULES)
        assert np.array_equal(
            each[..., number :: len(members)], edgeconv.convolve(rgb, name, channels="each", **RULES)
        ), "output c·K + k is filter k of channel c"


def test_sixty_four_weights_of_ones_own() -> None:
    """Compared with the sum as it is written in the documentation, in float64."""
    weights = np.random.default_rng(5).uniform(-1, 1, (64, 3, 3, 3)).astype(np.float32)
    image = picture(3, "float32")
    found = edgeconv.convolve(image, weights, padding="valid", **RULES)
    windows = np.lib.stride_tricks.sliding_window_view(image.astype(np.float64), (3, 3), axis=(0, 1))
    expected = np.einsum("yxiuv,oiuv->yxo", windows, weights.astype(np.float64))
    assert found.shape == (HEIGHT - 2, WIDTH - 2, 64)
    assert np.allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_weights_of_one_channel_serve_all() -> None:
    weights = np.random.default_rng(5).integers(-4, 5, (5, 1, 3, 3))
    image = picture(3)
    found = edgeconv.convolve(image, weights, output_mode="raw", **RULES)
    assert np.array_equal(found, edgeconv.convolve(image, weights.repeat(3, axis=1), output_mode="raw", **RULES))


def test_double_precision_stays_double() -> None:
    """The weights too: a third is another number in float32."""
    image = np.ones((4, 4), np.float64)
    kernel = [[0, 0, 0], [0, 1 / 3, 0], [0, 0, 0]]
    found = edgeconv.convolve(image, kernel, **RULES)
    assert found.dtype == np.float64
    assert (found == 1 / 3).all()


@pytest.mark.parametrize("library", LIBRARIES)
def test_libraries_strides_and_modes(library: str) -> None:
    """The long way too: what is strided, and `normalize`."""
    made = LIBRARIES[library]
    wide = np.zeros((HEIGHT, 2 * WIDTH), np.float64)
    wide[:, ::2] = random_image(HEIGHT, WIDTH, "float64")[..., 0]
    for mode in ("raw", "normalize"):
        expected = edgeconv.convolve(np.ascontiguousarray(wide[:, ::2]), BANK, output_mode=mode, **RULES)
        given = made(wide)[:, ::2]
        found = edgeconv.convolve(given, BANK, output_mode=mode, **RULES)
        assert type(found) is type(given)
        assert np.array_equal(np.asarray(found), expected)
        single = edgeconv.convolve(given, BANK[0], output_mode="raw", **RULES)
        assert tuple(single.shape) == (HEIGHT, WIDTH)


def test_a_plan_for_one_layout_does_not_take_another() -> None:
    plan = edgeconv.plan((HEIGHT, WIDTH), "uint8", **RULES)
    with pytest.raises(UsageError, match="13×9×1: the plan was made for 13×9"):
        plan(picture(1))


@pytest.mark.parametrize("shape", [(5, 480, 640), (3, 9, 8), (9, 8, 2), (2, 9, 8, 4)])
def test_three_axes_are_always_height_width_channels(shape: Any) -> None:
    with pytest.raises(UsageError, match=r"pictures, height, width, 3 or 1"):
        edgeconv.convolve(np.zeros(shape, np.uint8), **RULES)


@pytest.mark.parametrize(
    ("image", "filter", "channels", "says"),
    [
        (picture(1), np.ones((3, 3, 3, 3)), "mix", "grey"),
        (picture(3), np.ones((2, 3, 3, 3)), "each", "--channels mix"),
        (picture(1), ["sobel", "sobel-x"], "mix", "cannot be in one bank"),
        (picture(1), np.ones((257, 1, 3, 3)), "mix", "up to 256"),
        (picture(1), ["sobel-z"], "mix", "not known"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(image: Any, filter: Any, channels: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as refused:
        edgeconv.convolve(image, filter, channels=channels, **RULES)
    assert "\n" not in str(refused.value)


SHAPES = ((HEIGHT, WIDTH), (HEIGHT, WIDTH, 1), (HEIGHT, WIDTH, 3))


@pytest.mark.parametrize(
    ("filter", "shape", "given"),
    pairs_then_slow([*product(["sobel", BANK], SHAPES, [False, True])], lambda row: map(str, row), several=True),
)
def test_plans_of_grey_and_of_banks_are_measured(filter: Any, shape: Any, given: bool) -> None:
    plan = edgeconv.plan(shape, "uint8", filter=filter, **RULES)
    image = np.random.default_rng(1).integers(0, 256, shape, np.uint8) if given else None
    found = plan.measure(image, samples=1, check="full")
    assert (found.check.passed, found.check.checked_share) == (True, 1)
    assert found.counts.nominal_flops > 0
