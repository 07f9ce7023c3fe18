"""A picture as a screen shows it, 8-bit RGB, in full and in halves of halves, so that any zoom is drawn at once.

Pictures are halved by averaging; maps of differences by the largest class of each block, so that a single differing
pixel is visible at any zoom. Colours and averages are those of difference/maps.py. The halves hold a third of the bytes
of the full size, which is the picture itself where that is 8-bit RGB.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.difference import maps
from edgeconv.difference.scale import Scale

SMALLEST_SIDE = 32
"""No level is made for less."""


@dataclass(frozen=True, eq=False)
class Pyramid:
    """`levels[k]`, H×W×3, has sides of 1/2^k."""

    levels: tuple[NDArray[np.uint8], ...]

    @property
    def height(self) -> int:
        """Pixels of the full size."""
        return len(self.levels[0])

    @property
    def width(self) -> int:
        """Pixels of the full size."""
        return int(self.levels[0].shape[1])

    def level_for(self, zoom: float) -> int:
        """The smallest level with at least one pixel per screen pixel, at `zoom` screen pixels per picture pixel."""
        return max(level for level in range(len(self.levels)) if level == 0 or zoom * (1 << level) <= 1)


def of_picture(pixels: NDArray[Any], low: float, high: float) -> Pyramid:
    """The pyramid of a picture, HWC with 1 or 3 channels of any type, shown from `low` (black) to `high` (white)."""
    ready = pixels.dtype == np.uint8 and pixels.shape[2] == 3
    levels = [pixels if ready else maps.view(pixels, low, high)]
    while max(levels[-1].shape) >= 2 * SMALLEST_SIDE:
        levels.append(maps.shrunk_view(levels[-1], 2))
    return Pyramid(tuple(levels))


def of_classes(classes: NDArray[np.uint8], scale: Scale) -> Pyramid:
    """The pyramid of a map of classes of difference, H×W, in the colours of its scale."""
    levels = [classes]
    while max(levels[-1].shape) >= 2 * SMALLEST_SIDE:
        levels.append(maps.shrunk_map(levels[-1], 2))
    return Pyramid(tuple(maps.heat(level, scale) for level in levels))
