"""Tiles against the float64 oracle, window by window, by the rule of api/check.py.

    sample   64×64 windows on a grid of 5×5 over the output, corners, edges and centre among them
    full     every sample

A window is compared right after its tile was computed, on the pixels that the tile was given: this checks the
arithmetic. Whether tiles were given the right pixels and are at the right place in the file, verify_output.py checks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.api import check
from edgeconv.api.check import Check, equality
from edgeconv.core import chains
from edgeconv.core.chains import ChainProblem
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem
from edgeconv.methods.base import Plan
from edgeconv.run.tiled.grid import Span, Tile

WINDOW = 64
WINDOWS_PER_AXIS = 5
FULL_WINDOW = 256


class TileCheck:
    """Accumulates the comparison of a whole run; `problem` is that of the whole picture."""

    def __init__(self, problem: Problem | ChainProblem, full: bool) -> None:
        self._problem = problem
        self._rows = _cells(problem.output_height, full)
        self._columns = _cells(problem.output_width, full)
        self._found: list[Check] = []

    def add(self, tile: Tile, padded: NDArray[Any], out: NDArray[Any], plan: Plan) -> None:
        """Compare the parts of `out` that lie in a window; `plan` is the one that filtered the tile."""
        for rows in _within(self._rows, tile.rows):
            for columns in _within(self._columns, tile.columns):
                self._compare(tile, rows, columns, padded, out, plan)

    def _compare(
        self, tile: Tile, rows: Span, columns: Span, padded: NDArray[Any], out: NDArray[Any], plan: Plan
    ) -> None:
        problem = plan.problem
        if isinstance(problem, ChainProblem):
            self._found.append(self._compare_chain(problem, tile, rows, columns, padded, out))
            return
        assert isinstance(problem, Problem)
        y, x, stride = rows.start - tile.rows.start, columns.start - tile.columns.start, problem.stride
        height, width = (len(rows) - 1) * stride + KERNEL_SIZE, (len(columns) - 1) * stride + KERNEL_SIZE
        part = padded[y * stride : y * stride + height, x * stride : x * stride + width]
        result = out[y : y + len(rows), x : x + len(columns)]
        found = check.check(part, result, replace(problem, height=height, width=width), plan.arithmetic)
        if found.worst is not None:  # its place counts from the start of the part
            found.worst.y, found.worst.x = found.worst.y + rows.start, found.worst.x + columns.start
        self._found.append(found)

    def _compare_chain(
        self,
        problem: ChainProblem,
        tile: Tile,
        rows: Span,
        columns: Span,
        padded: NDArray[Any],
        out: NDArray[Any],
    ) -> Check:
        """The oracle computes the part again from the pixels around it, which the window has, or the picture ends."""
        reach = problem.chain.reach
        place, inner, result = [], [], []
        for part, whole in ((rows, tile.rows), (columns, tile.columns)):
            origin = whole.start - min(reach, whole.start)
            first = max(0, part.start - reach - origin)
            place.append(slice(first, part.stop + reach - origin))
            inner.append(slice(part.start - origin - first, part.stop - origin - first))
            result.append(slice(part.start - whole.start, part.stop - whole.start))
        pixels = padded[place[0], place[1]]
        expected = chains.compute(pixels, replace(problem, height=pixels.shape[0], width=pixels.shape[1]))
        return equality(out[result[0], result[1]], expected[inner[0], inner[1]], rows.start, columns.start)

    def result(self) -> Check:
        """All windows as one comparison."""
        return check.joined(self._found, int(np.prod(self._problem.output_shape, dtype=np.int64)))


def _cells(length: int, full: bool) -> list[Span]:
    """The windows along one axis of the output."""
    side = FULL_WINDOW if full else WINDOW
    count = -(-length // side)
    chosen = range(count) if full else np.unique(np.linspace(0, count - 1, WINDOWS_PER_AXIS).round().astype(int))
    return [Span(int(cell) * side, min((int(cell) + 1) * side, length)) for cell in chosen]


def _within(cells: list[Span], tile: Span) -> list[Span]:
    """The parts of cells that lie in a tile."""
    parts = (Span(max(cell.start, tile.start), min(cell.stop, tile.stop)) for cell in cells)
    return [part for part in parts if part.start < part.stop]
