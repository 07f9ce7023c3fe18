"""A side, or the map of differences, as a screen shows it: 8-bit RGB in full and in halves of halves, for any zoom.

Pictures are halved by averaging; maps by the largest class of each block, so that a single differing pixel is visible
at any zoom. Colours and averages are those of difference/maps.py. The halves hold a third of the bytes of the full
size, which is the picture itself where that is 8-bit RGB.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.difference import maps
from edgeconv.difference.scale import Scale

SMALLEST_SIDE = 32
"""No level is made for less."""

Legend = tuple[tuple[str, str], ...]
"""Of a map: colour (`#rrggbb`) and label of the classes that occur, those of one colour together."""


@dataclass(frozen=True, eq=False)
class Layer:
    """What is ready to be drawn."""

    label: str
    pixels: NDArray[Any]
    """HWC with 1 or 3 channels, any type; of a map its classes, H×W."""
    levels: tuple[NDArray[np.uint8], ...]
    """`levels[k]`, H×W×3, has sides of 1/2^k."""
    legend: Legend = ()

    @property
    def height(self) -> int:
        """Pixels of the full size."""
        return int(self.pixels.shape[0])

    @property
    def width(self) -> int:
        """Pixels of the full size."""
        return int(self.pixels.shape[1])

    def level_for(self, zoom: float) -> int:
        """The smallest level with at least one pixel per screen pixel, at `zoom` screen pixels per picture pixel."""
        return max(level for level in range(len(self.levels)) if level == 0 or zoom * (1 << level) <= 1)


def of_picture(label: str, pixels: NDArray[Any], low: float, high: float) -> Layer:
    """A picture, HWC with 1 or 3 channels of any type, shown from `low` (black) to `high` (white)."""
    ready = pixels.dtype == np.uint8 and pixels.shape[2] == 3
    return Layer(label, pixels, _halved(pixels if ready else maps.view(pixels, low, high), maps.shrunk_view))


def of_classes(label: str, classes: NDArray[np.uint8], scale: Scale, legend: Legend) -> Layer:
    """A map of classes of difference, H×W, in the colours of its scale."""
    levels = tuple(maps.heat(level, scale) for level in _halved(classes, maps.shrunk_map))
    return Layer(label, classes, levels, legend)


def _halved(
    full: NDArray[np.uint8], shrunk: Callable[[NDArray[np.uint8], int], NDArray[np.uint8]]
) -> tuple[NDArray[np.uint8], ...]:
    levels = [full]
    while max(levels[-1].shape) >= 2 * SMALLEST_SIDE:
        levels.append(shrunk(levels[-1], 2))
    return tuple(levels)
