"""A picture whose orientation is not 1, turned upright chunk by chunk.

2 mirrored, 3 upside down, 4 mirrored upside down; 5 to 8 the same after height and width are swapped
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.run.tiled.sources.base import TileSource

FIRST_SWAPPED = 5
UPSIDE_DOWN = (3, 4, 7, 8)
MIRRORED = (2, 3, 6, 7)


class Upright(TileSource):
    """`stored` as it is to be looked at; the cuts of its chunks are turned with it."""

    def __init__(self, stored: TileSource, orientation: int) -> None:
        super().__init__(stored.path)
        self._stored = stored
        self._swapped = orientation >= FIRST_SWAPPED
        self._upside_down, self._mirrored = orientation in UPSIDE_DOWN, orientation in MIRRORED
        below = stored.layout
        sides = [(below.height, below.row_cuts), (below.width, below.column_cuts)]
        (height, row_cuts), (width, column_cuts) = reversed(sides) if self._swapped else sides
        self.layout = replace(
            below,
            height=height,
            width=width,
            row_cuts=_turned(row_cuts) if self._upside_down else row_cuts,
            column_cuts=_turned(column_cuts) if self._mirrored else column_cuts,
            notes=(*below.notes, f"orientation {orientation} applied"),
        )

    def load(self, row: int, column: int) -> NDArray[Any]:
        if self._upside_down:
            row = len(self.layout.row_cuts) - 2 - row
        if self._mirrored:
            column = len(self.layout.column_cuts) - 2 - column
        chunk = self._stored.load(column, row).swapaxes(0, 1) if self._swapped else self._stored.load(row, column)
        if self._upside_down:
            chunk = chunk[::-1]
        if self._mirrored:
            chunk = chunk[:, ::-1]
        return np.ascontiguousarray(chunk)

    def close(self) -> None:
        self._stored.close()


def _turned(cuts: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(cuts[-1] - cut for cut in reversed(cuts))
