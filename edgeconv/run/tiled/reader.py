"""The padded windows of tiles, assembled from a source's chunks; no chunk is decoded twice if memory allows.

    tile ── windows of both axes ──> chunks that they reach ── load, on a pool ──> copied into one HWC array

A chunk that a later tile needs too is cached, within a limit, and released after its last use: how often it is needed
is known from the grid before anything is read.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.geometry import OUTSIDE
from edgeconv.run.tiled.grid import Axis, IndexRun, Span, Tile, TileGrid, runs
from edgeconv.run.tiled.sources.base import TileSource

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(pool: Executor, work: Callable[[Item], Result], items: Iterable[Item], ahead: int) -> Iterator[Result]:
    """`work(item)` for every item on `pool`, in order, with at most `ahead` of them started and not yet consumed."""
    started: deque[Future[Result]] = deque()
    try:
        for item in items:
            if len(started) == ahead:
                yield started.popleft().result()
            started.append(pool.submit(work, item))
        while started:
            yield started.popleft().result()
    finally:
        for future in started:
            future.cancel()


class Uses:
    """How many tiles along one axis need each chunk."""

    def __init__(self, axis: Axis, chunk_cuts: tuple[int, ...]) -> None:
        self._chunks = [Span(*pair) for pair in pairwise(chunk_cuts)]
        self._runs = [self._needed(axis.window(index)) for index in range(axis.count)]
        self.count = np.zeros(len(self._chunks), np.int64)
        for needed in self._runs:
            self.count[list(needed)] += 1

    def _needed(self, window: NDArray[np.intp]) -> dict[int, list[IndexRun]]:
        """Chunks that a window reaches, each with the runs of positions in it."""
        inside = window[window != OUTSIDE]
        if not inside.size:
            return {}
        starts = np.array([chunk.start for chunk in self._chunks])
        first, last = np.searchsorted(starts, (inside.min(), inside.max()), side="right") - 1
        found = {chunk: runs(window, self._chunks[chunk]) for chunk in range(int(first), int(last) + 1)}
        return {chunk: pieces for chunk, pieces in found.items() if pieces}

    def of(self, index: int) -> dict[int, list[IndexRun]]:
        """What tile `index` needs."""
        return self._runs[index]

    def start(self, chunk: int) -> int:
        """The first pixel of a chunk."""
        return self._chunks[chunk].start


class Reader:
    """Reads the tiles of a grid, in any order, best row by row. `read` is not thread-safe."""

    def __init__(self, source: TileSource, grid: TileGrid, keep_bytes: int, pool: Executor, threads: int) -> None:
        layout = source.layout
        self._source, self._grid, self._pool, self._threads = source, grid, pool, threads
        self._rows, self._columns = Uses(grid.rows, layout.row_cuts), Uses(grid.columns, layout.column_cuts)
        self._left = np.multiply.outer(self._rows.count, self._columns.count)
        self._cached: dict[tuple[int, int], NDArray[Any]] = {}
        self._keep_bytes, self._cached_bytes = keep_bytes, 0
        self._lock = threading.Lock()
        self.chunks = int(np.count_nonzero(self._left))
        """Chunks that some tile needs."""
        self.decoded = 0
        """Number of decodings so far; a chunk that is decoded twice counts twice."""

    def read(self, tile: Tile) -> NDArray[Any]:
        """The padded window of `tile`: HWC, the source's channels, C-contiguous."""
        rows, columns = self._grid.rows.window(tile.row), self._grid.columns.window(tile.column)
        padded = np.empty((len(rows), len(columns), self._source.layout.channels), self._source.layout.dtype)
        padded[rows == OUTSIDE] = 0
        padded[:, columns == OUTSIDE] = 0
        row_runs, column_runs = self._rows.of(tile.row), self._columns.of(tile.column)

        def paste(place: tuple[int, int]) -> None:
            row, column = place
            chunk = self._take(place)
            for down in row_runs[row]:
                for across in column_runs[column]:
                    into = padded[
                        down.positions.start : down.positions.stop, across.positions.start : across.positions.stop
                    ]
                    into[...] = chunk[down.places(self._rows.start(row)), across.places(self._columns.start(column))]

        places = [(row, column) for row in row_runs for column in column_runs]
        for _ in in_order(self._pool, paste, places, self._threads):
            pass
        return padded

    def _take(self, place: tuple[int, int]) -> NDArray[Any]:
        """A chunk, cached or decoded; cached if a later tile needs it and there is room."""
        with self._lock:
            self._left[place] -= 1
            chunk = self._cached.get(place)
            if chunk is not None and self._left[place] <= 0:
                del self._cached[place]
                self._cached_bytes -= chunk.nbytes
        if chunk is not None:
            return chunk
        chunk = self._source.load(*place)
        with self._lock:
            self.decoded += 1
            if self._left[place] > 0 and self._cached_bytes + chunk.nbytes <= self._keep_bytes:
                self._cached[place] = chunk
                self._cached_bytes += chunk.nbytes
        return chunk
