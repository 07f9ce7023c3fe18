"""The oracle of canny against `cv2.Canny`, byte for byte."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeconv.core.canny import BLURS, CannySettings, canny

KINDS = ("noise", "few levels", "smooth", "black and white")


def picture_of(kind: str, shape: tuple[int, ...], seed: int, dtype: Any = np.uint8) -> NDArray[Any]:
    """A random picture of a kind: noise has few weak edges, few levels many ties, smooth ones long edges."""
    rng = np.random.default_rng(seed)
    most = np.iinfo(dtype).max
    picture = rng.integers(0, most + 1, shape).astype(dtype)
    if kind == "few levels":
        return (picture // (most // 4 + 1) * (most // 3)).astype(dtype)
    if kind == "smooth":
        return cv2.GaussianBlur(picture, (5, 5), 0).reshape(shape)
    if kind == "black and white":
        return (picture // (most // 2 + 1) * most).astype(dtype)
    return picture


def by_opencv(picture: NDArray[Any], chosen: CannySettings) -> NDArray[Any]:
    """What OpenCV gives for a picture and settings."""
    size = (chosen.blur, chosen.blur)
    smoothed = cv2.GaussianBlur(picture, size, 0) if chosen.blur else picture
    return cv2.Canny(smoothed, chosen.low, chosen.high, L2gradient=chosen.l2)


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from(KINDS),
    st.integers(1, 40),
    st.integers(1, 40),
    st.booleans(),
    st.integers(0, 2**32 - 1),
    st.lists(
        st.tuples(st.floats(0, 2500), st.floats(0, 2500), st.booleans(), st.sampled_from(BLURS)), min_size=5, max_size=7
    ),
)
def test_every_picture_and_setting_is_as_by_opencv(
    kind: str, height: int, width: int, rgb: bool, seed: int, chosen: list[tuple[float, float, bool, int]]
) -> None:
    picture = picture_of(kind, (height, width, 3) if rgb else (height, width), seed)
    for each in chosen:
        np.testing.assert_array_equal(canny(picture, CannySettings(*each)), by_opencv(picture, CannySettings(*each)))
