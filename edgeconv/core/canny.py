"""The Canny edge detector in NumPy whole numbers: the oracle of every method that computes it.

    smooth      binomial 3×3 or 5×5, one rounding at the end (half up), border reflect101; left out by default
    gradient    Sobel-x and Sobel-y, border replicate; of RGB the channel of the largest magnitude, the first of several
    thin        edge pixels: above the lower threshold, and no smaller than both neighbours across the edge
    hysteresis  weak edge pixels stay where they are connected to a strong one through their eight neighbours

Pictures are (H, W) or (H, W, 1), grey, or (H, W, 3), RGB, of uint8 or uint16. The result is (H, W), uint8, 255 on
edges and 0 elsewhere, byte for byte that of `cv2.Canny` with an aperture of 3 after `cv2.GaussianBlur` with sigma 0,
for 8 bits; 16 bits, which OpenCV has only as int16 gradients, follow the same definition in wider integers.

A magnitude is |gx| + |gy|, or with `l2` sqrt(gx² + gy²), in units of the Sobel responses: up to 1,530 (L1) or 1,141
(L2) of 8 bits. A pixel is above a threshold where its magnitude is greater than the whole part of that threshold (L1),
or its squared magnitude greater than that of the squared threshold (L2). Outside the picture the magnitude is 0.

Source: J. Canny, A Computational Approach to Edge Detection, 1986, in the form of OpenCV's `canny.cpp`, whose sector
test (tan 22.5° as 13573 / 2¹⁵) and whose comparisons between equal neighbours are followed exactly.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.geometry import border_indices

NO_EDGE, WEAK, STRONG = 0, 1, 2
"""Values of the map that `thin` gives."""
EDGE: Final = 255

BINOMIALS: dict[int, tuple[int, ...]] = {3: (1, 2, 1), 5: (1, 4, 6, 4, 1)}
"""The weights of the smoothing along one direction, by its size."""
BLURS: tuple[int, ...] = (0, *BINOMIALS)
"""Sizes of the smoothing; 0 is none."""

SOBEL_WEIGHTS = (1, 2, 1)
"""Across the derivative."""

ABOVE_EVERY_MAGNITUDE: Final = 2.0**20
"""Of 16 bits too: what a larger threshold counts as, so that its square is a number."""

TANGENT_BITS: Final = 15
TANGENT_22: Final = 13573
"""tan 22.5° times 2¹⁵, rounded; tan 67.5° is that of 22.5° plus 2."""

CANNY_DTYPES = ("uint8", "uint16")


def _around(picture: NDArray[Any], reach: int, border: Any, dtype: Any) -> NDArray[Any]:
    """The picture with `reach` more pixels on every side by the rule of a border, as a type."""
    rows = border_indices(picture.shape[0], reach, border)
    columns = border_indices(picture.shape[1], reach, border)
    return picture[rows][:, columns].astype(dtype)


def smooth(picture: NDArray[Any], size: int) -> NDArray[Any]:
    """A picture smoothed by the binomial of a size, in its own shape and type; size 0 gives the picture itself."""
    if not size:
        return picture
    weights = BINOMIALS[size]
    height, width = picture.shape[:2]
    padded = _around(picture, size // 2, "reflect101", np.int64)
    across = np.zeros((padded.shape[0], *picture.shape[1:]), np.int64)
    total = np.zeros(picture.shape, np.int64)
    for place, weight in enumerate(weights):
        across += weight * padded[:, place : place + width]
    for place, weight in enumerate(weights):
        total += weight * across[place : place + height]
    share = sum(weights) ** 2
    return ((total + share // 2) // share).astype(picture.dtype)


def gradient(
    picture: NDArray[Any], l2: bool = False, weights: tuple[int, ...] = SOBEL_WEIGHTS
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Derivatives along x and y (H, W), int32; of RGB those of the channel of the largest magnitude, the first on ties.

    `weights` smooth across each derivative: those of Sobel, or of another 3×3 operator.
    """
    outer, inner, _ = weights
    height, width = picture.shape[:2]
    padded = _around(picture, 1, "replicate", np.int32)

    def at(row: int, column: int) -> NDArray[np.int32]:
        return padded[row : row + height, column : column + width]

    gx = outer * (at(0, 2) - at(0, 0) + at(2, 2) - at(2, 0)) + inner * (at(1, 2) - at(1, 0))
    gy = outer * (at(2, 0) - at(0, 0) + at(2, 2) - at(0, 2)) + inner * (at(2, 1) - at(0, 1))
    if picture.ndim == 2:
        return gx, gy
    largest = magnitude(gx, gy, l2).argmax(axis=2)[:, :, np.newaxis]
    return np.take_along_axis(gx, largest, axis=2)[:, :, 0], np.take_along_axis(gy, largest, axis=2)[:, :, 0]


def magnitude(gx: NDArray[Any], gy: NDArray[Any], l2: bool) -> NDArray[np.int64]:
    """|gx| + |gy|, or gx² + gy² for `l2`, int64: what is compared with `Chain.limits`."""
    x, y = gx.astype(np.int64), gy.astype(np.int64)
    return x * x + y * y if l2 else np.abs(x) + np.abs(y)


def thin(gx: NDArray[Any], gy: NDArray[Any], l2: bool, limits: tuple[int, int]) -> NDArray[np.uint8]:
    """The map (H, W), uint8, of 0 no edge, 1 weak and 2 strong edge pixels, by `Chain.limits`.

    The direction of the gradient, in one of four sectors, tells which two neighbours a pixel is compared with. Of two
    equal ones the left or the upper one is the edge pixel (its neighbour on the left or above must be smaller), and
    along a diagonal neither is.
    """
    low, high = limits
    size = magnitude(gx, gy, l2)
    height, width = size.shape
    padded = np.pad(size, 1)

    def at(row: int, column: int) -> NDArray[np.int64]:
        return padded[1 + row : 1 + row + height, 1 + column : 1 + column + width]

    x = np.abs(gx.astype(np.int64))
    y = np.abs(gy.astype(np.int64)) << TANGENT_BITS
    flat = y < x * TANGENT_22
    steep = y > x * TANGENT_22 + (x << (TANGENT_BITS + 1))
    falling = (gx ^ gy) < 0  # the gradient points up right or down left
    across = (size > at(0, -1)) & (size >= at(0, 1))
    down = (size > at(-1, 0)) & (size >= at(1, 0))
    diagonal = np.where(falling, (size > at(-1, 1)) & (size > at(1, -1)), (size > at(-1, -1)) & (size > at(1, 1)))
    kept = (size > low) & np.where(flat, across, np.where(steep, down, diagonal))
    return (kept.astype(np.uint8) + (kept & (size > high))).astype(np.uint8)


def hysteresis(edges: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """255 where a pixel of the map of `thin` is strong, or weak and connected to a strong one; (H, W), uint8.

    From strong pixels outwards, all at one distance at once: every pixel is visited once.
    """
    height, width = edges.shape
    stride = width + 2
    open_ = np.pad(edges == WEAK, 1).reshape(-1)
    reached = np.pad(edges == STRONG, 1).reshape(-1)
    around = np.array([-stride - 1, -stride, -stride + 1, -1, 1, stride - 1, stride, stride + 1])
    frontier = np.flatnonzero(reached)
    while frontier.size:
        neighbours = (frontier[:, np.newaxis] + around).reshape(-1)
        neighbours = np.unique(neighbours[open_[neighbours]])
        open_[neighbours] = False
        reached[neighbours] = True
        frontier = neighbours
    inner = reached.reshape(height + 2, stride)[1:-1, 1:-1]
    return np.where(inner, np.uint8(EDGE), np.uint8(0))
