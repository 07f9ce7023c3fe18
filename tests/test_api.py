"""`edgeconv.convolve` from Python: properties of any right convolution, grey pictures, banks, double precision."""

from __future__ import annotations

import gzip
from io import BytesIO, StringIO
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from problems import random_image
from selection import pairs_then_slow

import edgeconv
from edgeconv.errors import UnavailableError, UsageError
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason
from edgeconv.methods import METHODS, find

CPU_METHODS = [entry.name for entry in METHODS if entry.device == "cpu"]
BANK = ["sobel-x", "sobel-y", "laplacian8"]
HEIGHT, WIDTH = 13, 9
RULES: dict[str, Any] = {"method": "reference", "device": "cpu"}


def test_a_small_case_worked_out_by_hand() -> None:
    image = np.zeros((3, 3, 3), np.uint8)
    image[1, 1] = (10, 20, 30)
    each = edgeconv.convolve(image, "laplacian4", "reference", output_mode="raw", border="zero")
    assert each[1, 1].tolist() == [-40, -80, -120]
    assert each[0, 1].tolist() == [10, 20, 30]
    assert each[0, 0].tolist() == [0, 0, 0]
    mix = edgeconv.convolve(image, "laplacian4", "reference", channels="mix")
    assert mix[1, 1].tolist() == [240, 240, 240]


@pytest.mark.parametrize("method", CPU_METHODS)
def test_a_second_picture_of_a_shape_is_not_prepared_again(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = {"filter": "sobel", "method": method, "device": "cpu"}
    edgeconv.convolve(random_image(40, 40, "uint8", 1), **rules)
    loaded = find(method, "cpu").load()
    prepared = []
    prepare = type(loaded).prepare
    monkeypatch.setattr(type(loaded), "prepare", lambda *words: prepared.append(1) or prepare(*words))
    edgeconv.convolve(random_image(40, 40, "uint8", 2), **rules)
    assert not prepared
    edgeconv.convolve(random_image(41, 40, "uint8", 2), **rules)
    assert len(prepared) == 1


@pytest.mark.parametrize(
    ("method", "dtype", "weight"),
    pairs_then_slow([*product(CPU_METHODS, ["uint8", "uint16"], [3e6, -3e6, 1e8, 1e30, -1e30])]),
)
def test_values_of_any_size_are_clipped_and_never_wrap(method: str, dtype: str, weight: float) -> None:
    image = random_image(12, 11, dtype)
    top = np.iinfo(dtype).max
    kernel = [[0, 0, 0], [0, weight, 0], [0, 0, 0]]
    for channels in ("each", "mix"):
        reach = image if channels == "each" else image.max(axis=2, keepdims=True).repeat(3, axis=2)
        rules = {"device": "cpu", "channels": channels}
        out = edgeconv.convolve(image, kernel, method, output_mode="abs", **rules)
        assert np.array_equal(out, np.where(reach > 0, top, 0))
        out = edgeconv.convolve(image, kernel, method, output_mode="clip", **rules)
        assert np.array_equal(out, np.where((reach > 0) & (weight > 0), top, 0))


@pytest.mark.skipif(cuda_unavailable_reason() is None, reason="this machine has a GPU")
@pytest.mark.parametrize("method", [entry.name for entry in METHODS if entry.device == "cuda"])
def test_a_cuda_method_refuses_with_the_reason_and_the_way_out(method: str) -> None:
    with pytest.raises(UnavailableError, match=r"(CuPy|GPU|driver).* on device='cpu', or method='auto'"):
        edgeconv.convolve(random_image(4, 4, "uint8"), method=method, device="cuda")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"image": [[1]]}, "not list"),
        ({"image": "photo.png"}, "NumPy, CuPy, PyTorch or JAX"),
        ({"image": np.zeros(4, np.uint8)}, "An array of 4 is not a picture"),
        ({"image": np.zeros((4, 5, 6), np.uint8)}, r"needs an axis for its channel: image\[\.\.\., None\]"),
        ({"image": np.zeros((4, 4, 3), np.int64)}, "int64"),
        ({"image": np.zeros((4, 4, 3), bool)}, "bool"),
        ({"image": np.zeros((4, 4, 3), np.int16), "threshold": 5.0}, "int16 are not supported"),
        ({"image": np.ma.zeros((5, 6, 3))}, r"mask has no meaning.*filled\(value\)"),
        ({"border": 4}, "Border '4' is not one of .*is 'reflect101' here"),
        ({"border": "mirror"}, "'mirror' is not one of .*is 'reflect101' here"),
        ({"image": np.zeros((1, 1, 3), np.uint8), "padding": 0}, "use padding='same'"),
        ({"options": {"threads": 1}}, r"must be edgeconv\.Options.*not dict"),
    ],
)
def test_what_is_no_picture_and_no_options_is_refused(words: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        edgeconv.convolve(**{"image": np.zeros((5, 6, 3), np.uint8), **words})


# --- grey pictures, banks and float64 ---------------------------------------------------------------------------------


def picture(channels: int, dtype: str = "uint8", seed: int = 0) -> np.ndarray:
    return np.ascontiguousarray(random_image(HEIGHT, WIDTH, dtype, seed)[..., :channels])


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
    found = edgeconv.convolve(image, weights, channels="mix", output_mode="raw", **RULES)
    assert np.array_equal(found, edgeconv.convolve(image, weights.repeat(3, axis=1), output_mode="raw", **RULES))


def test_double_precision_stays_double() -> None:
    """The weights too: a third is another number in float32."""
    image = np.ones((4, 4), np.float64)
    kernel = [[0, 0, 0], [0, 1 / 3, 0], [0, 0, 0]]
    found = edgeconv.convolve(image, kernel, **RULES)
    assert found.dtype == np.float64
    assert (found == 1 / 3).all()


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


# --- what a user of other libraries expects ---------------------------------------------------------------------------


def test_every_name_is_shown_and_can_be_had() -> None:
    assert set(edgeconv.__all__) <= set(dir(edgeconv))
    for name in edgeconv.__all__:
        assert getattr(edgeconv, name) is not None


def test_a_measurement_is_shown_in_three_lines() -> None:
    plan = edgeconv.plan((40, 30, 3), **RULES)
    shown = str(plan.measure(samples=3, check="full")).splitlines()
    assert [line.split()[0] for line in shown] == ["method", "speed", "check"]
    assert "nominal GFLOPS" in shown[1]
    assert "right: largest error 0" in shown[2]
    assert str(plan.measure(samples=0, check="none")).endswith("check   not asked for")


def test_a_picture_that_exists_is_replaced_only_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    edgeconv.write_image(picture(3), path)
    before = path.read_bytes()
    with pytest.raises(edgeconv.EdgeconvError, match=r"a\.png: exists: pass overwrite=True"):
        edgeconv.write_image(~picture(3), path)
    assert path.read_bytes() == before
    edgeconv.write_image(~picture(3), path, overwrite=True)
    assert np.array_equal(edgeconv.read_image(path).pixels, ~picture(3))


class _Slow(BytesIO):
    """Gives a few bytes at a time, as a pipe or a socket may."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(3 if size is None else min(3, size))


def test_a_picture_is_read_from_an_open_file(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    edgeconv.write_image(picture(3), path)
    with path.open("rb") as file:
        assert np.array_equal(edgeconv.read_image(file).pixels, picture(3))
    assert np.array_equal(edgeconv.read_image(BytesIO(path.read_bytes())).pixels, picture(3))
    with gzip.open(tmp_path / "a.png.gz", "wb") as file:
        file.write(path.read_bytes())
    with gzip.open(tmp_path / "a.png.gz") as file:
        assert np.array_equal(edgeconv.read_image(file).pixels, picture(3))  # type: ignore[arg-type]
    assert np.array_equal(edgeconv.read_image(_Slow(path.read_bytes())).pixels, picture(3))
    with pytest.raises(edgeconv.EdgeconvError, match=r"BytesIO: the file is empty \(0 bytes\)"):
        edgeconv.read_image(BytesIO())
    with pytest.raises(edgeconv.EdgeconvError, match="A NoneType is not a file: give a path, or a file that is open"):
        edgeconv.read_image(None)  # type: ignore[arg-type]
    with pytest.raises(edgeconv.EdgeconvError, match="BytesIO: PNG: it has not ended"):
        edgeconv.read_image(BytesIO(path.read_bytes()), edgeconv.ReadRules(max_bytes=10))
    with pytest.raises(edgeconv.EdgeconvError, match="StringIO: gives text, and not bytes: open it with 'rb'"):
        edgeconv.read_image(StringIO("P3"))  # type: ignore[arg-type]


def test_canny_understands_the_words_of_opencv() -> None:
    image = picture(3)
    asked = edgeconv.canny(image, 400, 900, L2gradient=True, device="cpu")
    assert np.array_equal(asked, edgeconv.canny(image, 400, 900, gradient="l2", device="cpu"))
    assert not np.array_equal(asked, edgeconv.canny(image, 400, 900, device="cpu"))
    with pytest.raises(UsageError, match="give one of the two"):
        edgeconv.canny(image, gradient="l1", L2gradient=True)
