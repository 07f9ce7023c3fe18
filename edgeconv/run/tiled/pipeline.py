"""Tiles in three concurrent stages: the next window is assembled while one is filtered and one is written.

    reading thread ──one window ahead──> this thread: filter ──one output behind──> writing thread
         └── chunks on the pool                                                         └── pieces on the pool

So two windows and two outputs are held at any time, whatever the size of the picture.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.api.auto import Choice
from edgeconv.api.workspaces import PreparedFilter
from edgeconv.core.chains import ChainProblem
from edgeconv.core.problem import Problem
from edgeconv.core.request import Request
from edgeconv.core.timing import Stopwatch
from edgeconv.methods.options import Options
from edgeconv.run.tiled.grid import Tile, TileGrid
from edgeconv.run.tiled.reader import Reader
from edgeconv.run.tiled.sinks.base import Sink

Handle = Callable[[Tile, NDArray[Any], NDArray[Any]], None]
"""Takes a tile, its padded window and the method's output for it."""


@dataclass
class Clock:
    """Time of a run by stage. Stages overlap, so they add up to more than the wall-clock time."""

    filtering: Stopwatch = field(default_factory=Stopwatch)
    decode_seconds: float = 0.0
    encode_seconds: float = 0.0
    waited_for_decode_seconds: float = 0.0
    waited_for_encode_seconds: float = 0.0
    kernel_samples: dict[tuple[int, ...], list[float]] = field(default_factory=dict)
    """Seconds of the method alone, by the shape of the window, in the order of the tiles."""
    end_to_end_samples: dict[tuple[int, ...], list[float]] = field(default_factory=dict)
    """The same from host array to host array."""


class WindowFilter:
    """Filters padded windows: one plan for each shape of window, so that a shape is set up once."""

    def __init__(self, request: Request, choice: Choice, options: Options, dtype: np.dtype[Any], clock: Clock) -> None:
        request = request.unfinished
        self._request = request if request.chain is not None else replace(request, padding=0, border="zero")
        self._choice, self._options, self._dtype, self._clock = choice, options, dtype, clock
        self._plans: dict[tuple[int, ...], PreparedFilter] = {}

    def problem(self, shape: tuple[int, ...]) -> Problem | ChainProblem:
        """The problem of a window of `shape`, HWC."""
        return self._request.picture_problem(shape, self._dtype)

    def plan(self, shape: tuple[int, ...]) -> PreparedFilter:
        """The plan of a window of `shape`; made when first asked for."""
        if shape not in self._plans:
            with self._clock.filtering.phase("set_up"):
                plan = PreparedFilter(self._request, shape, self._dtype, self._choice, self._options)
            self._plans[shape] = plan
        return self._plans[shape]

    def run(self, padded: NDArray[Any]) -> NDArray[Any]:
        """The output of a window."""
        plan, phases = self.plan(padded.shape), self._clock.filtering.phases_seconds
        before = phases.get("convolve", 0.0)
        started = time.perf_counter()
        out: NDArray[Any] = plan.run(padded, watch=self._clock.filtering)
        self._clock.end_to_end_samples.setdefault(padded.shape, []).append(time.perf_counter() - started)
        self._clock.kernel_samples.setdefault(padded.shape, []).append(phases["convolve"] - before)
        return out

    def release(self) -> None:
        """Release all plans and their memory."""
        self._plans.clear()


@contextmanager
def one_thread(name: str) -> Iterator[ThreadPoolExecutor]:
    """A separate thread; tasks that it has not started when the block ends are dropped."""
    thread = ThreadPoolExecutor(1, thread_name_prefix=name)
    try:
        yield thread
    finally:
        thread.shutdown(wait=True, cancel_futures=True)


def for_each_tile(grid: TileGrid, reader: Reader, window_filter: WindowFilter, handle: Handle, clock: Clock) -> None:
    """Call `handle` for every tile in order. Raises whatever reading, filtering and `handle` raise."""

    def read(tile: Tile) -> NDArray[Any]:
        started = time.perf_counter()
        padded = reader.read(tile)
        clock.decode_seconds += time.perf_counter() - started
        return padded

    with one_thread("edgeconv-read") as reading:
        tiles = iter(grid)
        tile = next(tiles, None)
        ahead: Future[NDArray[Any]] | None = None if tile is None else reading.submit(read, tile)
        while tile is not None and ahead is not None:
            started = time.perf_counter()
            padded = ahead.result()
            clock.waited_for_decode_seconds += time.perf_counter() - started
            following = next(tiles, None)
            ahead = None if following is None else reading.submit(read, following)  # and release the previous one
            handle(tile, padded, grid.cut(tile, window_filter.run(padded)))
            del padded
            tile = following


class Writer:
    """Writes each tile while the caller computes the next; `close` waits for the last."""

    def __init__(self, sink: Sink, thread: Executor, pool: Executor, threads: int, clock: Clock) -> None:
        self._sink, self._thread, self._pool, self._threads, self._clock = sink, thread, pool, threads, clock
        self._behind: Future[None] | None = None

    def put(self, tile: Tile, pixels: NDArray[Any]) -> None:
        """Wait until the previous tile is written, then start writing this one. Raises ImageWriteError of either."""
        self.close()
        self._behind = self._thread.submit(self._write, tile, pixels)

    def close(self) -> None:
        """Wait for the last tile."""
        if self._behind is not None:
            started = time.perf_counter()
            self._behind.result()
            self._clock.waited_for_encode_seconds += time.perf_counter() - started
            self._behind = None

    def _write(self, tile: Tile, pixels: NDArray[Any]) -> None:
        started = time.perf_counter()
        self._sink.write(tile.rows.start, tile.columns.start, pixels, self._pool, self._threads)
        self._clock.encode_seconds += time.perf_counter() - started
