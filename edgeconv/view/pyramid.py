"""Pictures in tiles at every zoom level that a screen may need, in little memory however large they are.

    level 0         the samples themselves, converted to 8-bit RGB one tile at a time
    level 1         half the sides, computed one tile at a time from level 0
    level 2 and on  1/4, 1/8, ... of the sides, stored: together a twelfth of an 8-bit picture's bytes

Pictures are reduced by averaging; difference maps by the maximum of each block, so that a single differing pixel is
visible at any zoom. Colours and averages are those of difference/maps.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.geometry import bands
from edgeconv.difference import maps
from edgeconv.difference.scale import Scale

TILE = 256
"""Pixels of a tile's side, on every level."""
KEPT_FROM = 2
"""The first level that is kept."""
SMALLEST_SIDE = 32
"""No level is made for less."""
ROWS_AT_ONCE = 256
"""Rows of level 0 in a band while the kept levels are made: a multiple of their factor."""

_serials = count()
Tile = tuple[int, int, int]
"""(level, row, column)."""


class Pyramid(ABC):
    """Tiles of one picture or map of `height` × `width` pixels. `serial` is its own.

    Reading tiles is safe from any thread.
    """

    def __init__(self, height: int, width: int) -> None:
        self.height, self.width, self.serial = height, width, next(_serials)
        self.levels = 1
        while max(height, width) >> self.levels >= SMALLEST_SIDE:
            self.levels += 1
        self._kept: list[NDArray[np.uint8]] = []
        if self.levels > KEPT_FROM:
            factor = 1 << KEPT_FROM
            strips = [self._shrink(self._rows(top, bottom), factor) for top, bottom in bands(height, ROWS_AT_ONCE)]
            self._kept.append(np.concatenate(strips))
            while len(self._kept) < self.levels - KEPT_FROM:
                self._kept.append(self._shrink(self._kept[-1], 2))

    def level_for(self, zoom: float) -> int:
        """The smallest level with at least one pixel per screen pixel, at `zoom` screen pixels per picture pixel."""
        level = 0
        while level + 1 < self.levels and zoom * (2 << level) <= 1:
            level += 1
        return level

    def tile(self, place: Tile) -> NDArray[np.uint8]:
        """A tile, at most TILE × TILE × 3, 8-bit RGB, C-contiguous."""
        level, row, column = place
        top, left = row * TILE, column * TILE
        if level >= KEPT_FROM:
            part = self._kept[level - KEPT_FROM][top : top + TILE, left : left + TILE]
        else:
            factor = 1 << level
            rows = slice(top * factor, min(self.height, (top + TILE) * factor))
            part = self._part(rows, slice(left * factor, min(self.width, (left + TILE) * factor)))
            if level:
                part = self._shrink(part, factor)
        return np.ascontiguousarray(self._colours(part))

    def part(self, rows: slice, columns: slice) -> NDArray[np.uint8]:
        """A part of level 0 as it is shown, H×W×3."""
        return self._colours(self._part(rows, columns))

    def _rows(self, top: int, bottom: int) -> NDArray[np.uint8]:
        return self._part(slice(top, bottom), slice(0, self.width))

    @abstractmethod
    def _part(self, rows: slice, columns: slice) -> NDArray[np.uint8]:
        """A part of level 0."""

    @abstractmethod
    def _shrink(self, part: NDArray[np.uint8], factor: int) -> NDArray[np.uint8]:
        """Blocks of factor × factor as one pixel each."""

    @abstractmethod
    def _colours(self, part: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """As 8-bit RGB."""


class PicturePyramid(Pyramid):
    """A picture, HWC with 1 or 3 channels of any type, shown from `low` (black) to `high` (white)."""

    def __init__(self, pixels: NDArray[Any], low: float, high: float) -> None:
        self._pixels, self._low, self._high = pixels, low, high
        super().__init__(*pixels.shape[:2])

    def _part(self, rows: slice, columns: slice) -> NDArray[np.uint8]:
        return maps.view(self._pixels[rows, columns], self._low, self._high)

    def _shrink(self, part: NDArray[np.uint8], factor: int) -> NDArray[np.uint8]:
        return maps.shrunk_view(part, factor)

    def _colours(self, part: NDArray[np.uint8]) -> NDArray[np.uint8]:
        return part


class HeatPyramid(Pyramid):
    """A map of classes of difference, H×W, in the colours of its scale."""

    def __init__(self, classes: NDArray[np.uint8], scale: Scale) -> None:
        self._classes, self._scale = classes, scale
        super().__init__(*classes.shape)

    def _part(self, rows: slice, columns: slice) -> NDArray[np.uint8]:
        return self._classes[rows, columns]

    def _shrink(self, part: NDArray[np.uint8], factor: int) -> NDArray[np.uint8]:
        return maps.shrunk_map(part, factor)

    def _colours(self, part: NDArray[np.uint8]) -> NDArray[np.uint8]:
        return maps.heat(part, self._scale)
