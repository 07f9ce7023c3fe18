"""The oracle of canny and of chains against OpenCV, byte for byte, and against plain loops where OpenCV has none."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest
from canny_pictures import KINDS, canny_chain, oracle, path_of, picture_of
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeconv.core import canny, chains
from edgeconv.core.canny import BLURS, STRONG, WEAK
from edgeconv.core.chains import STAGES, Chain, automatic_thresholds, chain_problem, make_chain
from edgeconv.errors import UsageError
from edgeconv.methods import find
from edgeconv.methods.options import Options


def by_opencv(picture: NDArray[Any], chosen: Chain) -> NDArray[Any]:
    """What OpenCV gives for a picture and settings."""
    size = (chosen.blur, chosen.blur)
    smoothed = cv2.GaussianBlur(picture, size, 0) if chosen.blur else picture
    return cv2.Canny(smoothed, chosen.low, chosen.high, L2gradient=chosen.l2)


SETTINGS = st.tuples(st.floats(0, 1600), st.floats(0, 1600), st.booleans(), st.sampled_from(BLURS))


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(KINDS),
    st.integers(1, 40),
    st.integers(1, 40),
    st.booleans(),
    st.integers(0, 2**32 - 1),
    st.lists(SETTINGS, min_size=4, max_size=4),
)
def test_every_picture_and_setting_is_as_by_opencv(
    kind: str, height: int, width: int, rgb: bool, seed: int, chosen: list[tuple[float, float, bool, int]]
) -> None:
    """800 pictures, four of each size and kind."""
    for number, each in enumerate(chosen):
        picture = picture_of(kind, (height, width, 3) if rgb else (height, width), seed + number)
        wanted = canny_chain(*each)
        np.testing.assert_array_equal(oracle(picture, wanted), by_opencv(picture, wanted), f"{wanted}")


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 20),
    st.integers(1, 20),
    st.sampled_from((500, 2000, 7000)),
    st.integers(0, 2**32 - 1),
    st.tuples(st.floats(0, 30000), st.floats(0, 30000), st.booleans()),
)
def test_16_bits_are_as_by_opencv_where_their_gradients_fit_its_int16(
    height: int, width: int, most: int, seed: int, chosen: tuple[float, float, bool]
) -> None:
    picture = np.random.default_rng(seed).integers(0, most, (height, width)).astype(np.uint16)
    wanted = canny_chain(*chosen)
    gx, gy = (each.astype(np.int16) for each in canny.gradient(picture))
    expected = cv2.Canny(gx, gy, wanted.low, wanted.high, L2gradient=wanted.l2)
    np.testing.assert_array_equal(oracle(picture, wanted), expected)


@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (2, 1), (3, 40), (41, 23, 3)])
def test_smoothing_is_that_of_opencv(shape: tuple[int, ...], dtype: Any, size: int) -> None:
    for kind in KINDS:
        picture = picture_of(kind, shape, 3, dtype)
        expected = cv2.GaussianBlur(picture, (size, size), 0).reshape(shape)
        np.testing.assert_array_equal(canny.smooth(picture, size), expected)


@pytest.mark.parametrize("limit", [262140, 1e6, 1e150, 1e200, 1.7e308])
def test_a_threshold_beyond_every_magnitude_leaves_nothing(limit: float) -> None:
    """A full step of 16 bits has a magnitude of 262140, whose square is beyond 32 bits."""
    picture = np.zeros((5, 6), np.uint16)
    picture[:, 3:] = 65535
    for l2 in (False, True):
        edges = oracle(picture, canny_chain(262139, 262139.5, l2))
        assert (np.flatnonzero(edges[2]) == [2]).all(), "of two equal neighbours the left one"
        assert not oracle(picture, canny_chain(limit, limit, l2)).any()
        assert not oracle(picture, canny_chain(0, limit, l2)).any()


def test_a_spiral_is_followed_to_its_end() -> None:
    edges = path_of("spiral", 61, 61) * np.uint8(WEAK)
    edges[0, 0] = STRONG
    assert (canny.hysteresis(edges) == 255).sum() == np.count_nonzero(edges)
    edges[0, 0] = WEAK
    assert not canny.hysteresis(edges).any(), "without its strong pixel nothing is left"


# --- chains -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gradient", ["l1", "l2"])
@pytest.mark.parametrize(
    "stage", [stage for stage in STAGES if stage.gives == "gradient"], ids=lambda stage: stage.name
)
def test_a_gradient_is_that_of_opencv(stage: chains.Stage, gradient: Any) -> None:
    """cv2.sepFilter2D knows any weights; of RGB the channel of the largest magnitude."""
    picture = picture_of("noise", (23, 31, 3), 4)
    chain = make_chain(stage.name, gradient=gradient)
    problem = chain_problem(picture.shape, picture.dtype, chain, "raw")
    across, along = np.array([-1.0, 0, 1]), np.array(stage.weights, float)
    x = cv2.sepFilter2D(picture, cv2.CV_64F, across, along, borderType=cv2.BORDER_REPLICATE)
    y = cv2.sepFilter2D(picture, cv2.CV_64F, along, across, borderType=cv2.BORDER_REPLICATE)
    sizes = np.abs(x) + np.abs(y) if gradient == "l1" else np.sqrt(x * x + y * y)
    expected = sizes.max(axis=2, keepdims=True).astype(np.float32)
    np.testing.assert_array_equal(chains.compute(picture, problem), expected)


def test_the_direction_is_that_of_the_gradient_in_degrees() -> None:
    """By hand: a step in each of eight directions; elsewhere as OpenCV's phase, which goes from 0 to 360."""
    chain = make_chain("sobel,direction")
    for angle, (dy, dx) in enumerate(((0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1))):
        y, x = np.mgrid[-1:2, -1:2]
        picture = (100 + 20 * (y * dy + x * dx)).astype(np.uint8)[:, :, np.newaxis]
        found = chains.compute(picture, chain_problem(picture.shape, np.uint8, chain, "raw"))
        degrees = 45 * angle if angle <= 4 else 45 * angle - 360
        assert (found.dtype, found[1, 1, 0]) == (np.float32, degrees)
    flat = np.full((3, 3, 1), 7, np.uint8)
    assert not chains.compute(flat, chain_problem(flat.shape, np.uint8, chain, "raw")).any()
    picture = picture_of("noise", (40, 50, 1), 3)
    gx, gy = (each.astype(np.float32) for each in canny.gradient(picture[:, :, 0]))
    found = chains.compute(picture, chain_problem(picture.shape, np.uint8, chain, "raw"))[:, :, 0]
    np.testing.assert_allclose(np.mod(found, 360), np.mod(cv2.phase(gx, gy, angleInDegrees=True), 360), atol=0.02)


def test_thinning_keeps_the_magnitude_of_ridges_and_nothing_else() -> None:
    """Ridges are what canny finds with both thresholds at 0."""
    picture = picture_of("smooth", (40, 50, 3), 9)
    raw = {
        name: chains.compute(picture, chain_problem(picture.shape, picture.dtype, make_chain(name), "raw"))
        for name in ("sobel", "sobel,thin")
    }
    edges = cv2.Canny(picture, 0, 0)[:, :, np.newaxis]
    np.testing.assert_array_equal(raw["sobel,thin"], np.where(edges == 255, raw["sobel"], 0))


@pytest.mark.parametrize(
    ("stages", "blur"), [("gaussian,sobel,thin,hysteresis", 3), ("gaussian5,sobel,thin,hysteresis", 5)]
)
def test_canny_is_a_chain_of_its_stages(stages: str, blur: int) -> None:
    by_name, by_stages = make_chain("canny", low=3, high=9, blur=blur), make_chain(stages, low=9, high=3)
    assert by_name.stages == by_stages.stages
    for chain in (by_name, by_stages):
        assert (chain.is_canny, chain.blur, chain.limits) == (True, blur, (3, 9))


@pytest.mark.parametrize(
    ("stages", "words", "message"),
    [
        ("sobel,gaussian", {}, "has gaussian where there is a gradient"),
        ("thin", {}, "has thin where there is a picture"),
        ("sobel,hysteresis", {}, "has hysteresis where there is a gradient"),
        ("sobel,thin,hysteresis,thin", {}, "has thin where there is a map of edges"),
        ("sobel,direction,thin", {}, "has thin where there is a direction"),
        ("sobel,tin", {}, "Did you mean 'thin'"),
        ("", {}, "Stage '' of a chain is not known"),
        ("canny", {"blur": 4}, "--blur 4 is not one of"),
        ("gaussian,sobel", {"blur": 3}, "--blur does not go with"),
        ("sobel,thin", {"low": 3.0, "high": 4.0}, "has no hysteresis"),
        ("gaussian", {"gradient": "l2"}, "has no gradient"),
        ("canny", {"gradient": "l3"}, "--gradient 'l3' is not one of"),
        ("canny", {"low": 3.0}, "needs both thresholds"),
        ("canny", {"low": 3.0, "high": 4.0, "rule": "otsu"}, "not both"),
        ("canny", {"low": -3.0, "high": 4.0}, "The lower threshold of canny is -3"),
        ("canny", {"low": 3.0, "high": np.inf}, "The upper threshold of canny is inf"),
        ("canny", {"low": 3.0, "high": "4"}, "give a finite number from 0"),
        ("canny", {"rule": "mean"}, "are not median or otsu"),
    ],
)
def test_what_does_not_fit_together_is_refused(stages: str, words: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_chain(stages, **words)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.uint32])
def test_other_types_are_refused(dtype: Any) -> None:
    with pytest.raises(UsageError, match="needs pictures of uint8 or uint16"):
        chain_problem((4, 4, 1), dtype, make_chain("canny", low=1, high=2), "abs")


# --- thresholds by rule -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (31, 17), (24, 18, 3), (chains.STRIP_SAMPLES * 2 + 1, 1)])
def test_the_median_is_that_of_numpy(shape: tuple[int, ...], kind: str, dtype: Any) -> None:
    picture = picture_of(kind, shape, 11, dtype)
    median = float(np.median(picture))
    low, high = automatic_thresholds("median", picture)
    assert low == int((1 - 0.33) * median)
    assert high == min(int((1 + 0.33) * median), np.iinfo(dtype).max)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(1, 1), (31, 17), (24, 18, 3), (200, 100)])
def test_otsu_is_that_of_opencv(shape: tuple[int, ...], kind: str) -> None:
    """Where two levels divide equally well, OpenCV takes one by its rounding: their variance must be the same."""
    picture = picture_of(kind, shape, 13)
    low, high = automatic_thresholds("otsu", picture)
    expected = cv2.threshold(picture.reshape(-1, 1), 0, 255, cv2.THRESH_OTSU)[0]
    assert low == high / 2
    assert between(picture, high) == pytest.approx(between(picture, expected), rel=1e-9)


def between(picture: NDArray[Any], level: float) -> float:
    """The variance between samples up to a level and above it, by its definition."""
    samples = picture.astype(float).reshape(-1)
    dark, light = samples[samples <= level], samples[samples > level]
    if not dark.size or not light.size:
        return 0.0
    return float(dark.size * light.size / samples.size**2 * (dark.mean() - light.mean()) ** 2)


@pytest.mark.parametrize("method", ["opencv", "sliding"])
def test_arrays_that_are_not_those_of_the_chain_are_refused(method: str) -> None:
    """By the method itself: a person may call it without the rest."""
    problem = chain_problem((12, 9, 3), np.uint8, make_chain("canny", low=50, high=150), "abs")
    plan = find(method, "cpu").load().prepare(problem, Options())
    image, out = np.zeros((12, 9, 3), np.uint8), np.zeros((12, 9, 1), np.uint8)
    plan.run(image, out)
    for wrong in ((image[:-1], out), (image, out[:-1]), (image, out.astype(np.float32)), (image.astype(np.int8), out)):
        with pytest.raises(UsageError, match="the plan was made for"):
            plan.run(*wrong)
