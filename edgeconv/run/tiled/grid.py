"""Positions of the tiles of an output, and which pixels of the picture each of them needs. Integers only.

    output tile            rows y0 to y1, columns x0 to x1 of the output
    padded window          positions y0·s to (y1 − 1)·s + 3 of the padded picture, likewise columns
    source of a position   `geometry.border_indices` of the whole picture: a pixel, or OUTSIDE for a zero

A tile is the same filter with the same stride and no padding, applied to its padded window. So one rule covers every
border, padding and stride, the halo is part of the window, and a tile's origin is a multiple of the stride.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.choices import Border
from edgeconv.core.geometry import KERNEL_SIZE, OUTSIDE, border_indices, output_size


@dataclass(frozen=True)
class Span:
    """`start` (inclusive) to `stop` (exclusive) along one axis."""

    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    def __str__(self) -> str:
        return f"{self.start:,} to {self.stop - 1:,}"


def even_cuts(size: int, step: int, first: int | None = None) -> tuple[int, ...]:
    """0, `first` (default `step`), then every `step` on, and `size`."""
    return (0, *range(step if first is None else first, size, step), size)


@dataclass(frozen=True, eq=False)
class Axis:
    """One axis of the picture and the cuts of the output along it."""

    size: int
    """Pixels of the picture."""
    stride: int
    padding: int
    border: Border
    cuts: tuple[int, ...]
    """Ascending from 0 to the output's length; two neighbours bound a tile."""
    reach: int = KERNEL_SIZE
    """Input pixels per output pixel along the axis: those of the filter, or 1 for tiles of the picture itself."""
    ends_with_picture: bool = False
    """Whether windows end where the picture does: a chain's stages have borders of their own."""

    @cached_property
    def _sources(self) -> NDArray[np.intp]:
        return border_indices(self.size, self.padding, self.border)

    @property
    def count(self) -> int:
        """Tiles along the axis."""
        return len(self.cuts) - 1

    def output(self, index: int) -> Span:
        """The output of tile `index`."""
        return Span(self.cuts[index], self.cuts[index + 1])

    def window(self, index: int) -> NDArray[np.intp]:
        """Source index of every position of tile `index`'s padded window; OUTSIDE where a zero stands."""
        output = self.output(index)
        window = self._sources[output.start * self.stride : (output.stop - 1) * self.stride + self.reach]
        return window[window != OUTSIDE] if self.ends_with_picture else window

    def inside(self, index: int) -> slice:
        """Where the output of tile `index` lies in what a filter gives for its window."""
        output = self.output(index)
        before = min(self.padding, output.start) if self.ends_with_picture else 0
        return slice(before, before + len(output))

    @cached_property
    def longest_window(self) -> int:
        """The most positions of a window."""
        return max(len(self.window(index)) for index in range(self.count))


@dataclass(frozen=True)
class Tile:
    """One tile: its place in the grid and in the output."""

    row: int
    column: int
    rows: Span
    columns: Span


@dataclass(frozen=True, eq=False)
class TileGrid:
    """All tiles, row by row."""

    rows: Axis
    columns: Axis

    def __len__(self) -> int:
        return self.rows.count * self.columns.count

    def __iter__(self) -> Iterator[Tile]:
        for row in range(self.rows.count):
            for column in range(self.columns.count):
                yield Tile(row, column, self.rows.output(row), self.columns.output(column))

    def cut(self, tile: Tile, filtered: NDArray[Any]) -> NDArray[Any]:
        """The output of a tile (HWC) from what a filter gives for its whole window."""
        rows, columns = self.rows.inside(tile.row), self.columns.inside(tile.column)
        return filtered[rows, columns]


def plain_grid(rows: tuple[int, ...], columns: tuple[int, ...]) -> TileGrid:
    """Tiles of a picture as it is, with no filter in mind, from the cuts of both axes."""
    return TileGrid(*(Axis(cuts[-1], 1, 0, "zero", cuts, reach=1) for cuts in (rows, columns)))


@dataclass(frozen=True)
class WindowRules:
    """What of a filter decides where pixels come from."""

    stride: int
    padding: int
    border: Border
    chain_reach: int | None = None
    """Of a chain, which has neither stride nor padding: how far its output depends on pixels around; else None."""

    def window_side(self, side: int) -> int:
        """The most positions of a window along an axis, for `side` pixels of the output."""
        if self.chain_reach is not None:
            return side + 2 * self.chain_reach
        return (side - 1) * self.stride + KERNEL_SIZE

    def grid(self, size: tuple[int, int], tile: tuple[int, int], shifted: bool = False) -> TileGrid:
        """A grid over a picture of `size` (height, width) with output tiles of `tile` (rows, columns).

        `shifted` puts the first cut of each axis at half a tile, so that no seam but the picture's edge is common
        to both grids.
        """
        return TileGrid(*(self.axis(pixels, step, shifted) for pixels, step in zip(size, tile, strict=True)))

    def axis(self, size: int, step: int, shifted: bool = False) -> Axis:
        """One axis of `grid`. Raises UsageError where the padded picture is shorter than the filter."""
        output = size if self.chain_reach is not None else output_size(size, self.stride, self.padding)
        first = max(1, min(step, output) // 2) if shifted else step
        if self.chain_reach is not None:
            reach, cuts = self.chain_reach, even_cuts(output, step, first)
            return Axis(size, 1, reach, "zero", cuts, reach=2 * reach + 1, ends_with_picture=True)
        return Axis(size, self.stride, self.padding, self.border, even_cuts(output, step, first))


@dataclass(frozen=True)
class IndexRun:
    """Neighbouring positions whose sources are neighbours too: `step` 1, one pixel again and again: 0, mirrored: −1."""

    positions: Span
    source: int
    """Of the first position."""
    step: int

    def places(self, origin: int) -> slice:
        """The sources as a slice of an array that begins at pixel `origin`."""
        first = self.source - origin
        if self.step == 0:
            return slice(first, first + 1)
        last = first + self.step * (len(self.positions) - 1)
        stop = last + self.step
        return slice(first, stop if stop >= 0 else None, self.step)


def runs(window: NDArray[np.intp], span: Span) -> list[IndexRun]:
    """The positions of `window` whose source lies in `span`, as few runs as a walk from the first one finds."""
    found: list[IndexRun] = []
    inside = np.flatnonzero((window >= span.start) & (window < span.stop))
    if not inside.size:
        return found
    sources = window[inside]
    steps = np.where(np.diff(inside) == 1, np.diff(sources), KERNEL_SIZE)  # any step that no run can have
    changes = np.append(np.flatnonzero(np.diff(steps)) + 1, steps.size)  # where a step differs from the one before
    start = 0
    while start < inside.size:
        step, stop = 1, start + 1
        if start < steps.size and abs(int(steps[start])) <= 1:
            step = int(steps[start])
            stop = int(changes[np.searchsorted(changes, start, side="right")]) + 1
        first = int(inside[start])
        found.append(IndexRun(Span(first, first + stop - start), int(sources[start]), step))
        start = stop
    return found


def reached(window: NDArray[np.intp]) -> Span:
    """From the first to the last pixel that `window` needs; an empty span where all is OUTSIDE."""
    needed = window[window != OUTSIDE]
    return Span(int(needed.min()), int(needed.max()) + 1) if needed.size else Span(0, 0)
