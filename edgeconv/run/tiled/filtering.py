"""A picture of any size, filtered by tiles: from a file to a file with a report beside it.

    open ── plan the tile ── for every tile: read, filter, check, write ── verify ── report ── move into place

`normalize` takes two passes, the first for the range.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.api import check as verify
from edgeconv.api import figures
from edgeconv.api.auto import Choice, choose
from edgeconv.api.workspaces import PreparedFilter
from edgeconv.core.chains import ChainProblem
from edgeconv.core.output import NO_RANGE, Range, finite_range, join_ranges, range_to_stretch, stretch
from edgeconv.core.problem import Problem
from edgeconv.core.records import plain
from edgeconv.core.timing import Stopwatch
from edgeconv.errors import ImageReadError, UsageError
from edgeconv.hardware.cpu.device import COPY_BYTES
from edgeconv.hardware.devices import get_device
from edgeconv.hardware.threads import resolve_threads
from edgeconv.io.file_identity import file_identity, file_state
from edgeconv.io.files import is_device, is_standard_stream
from edgeconv.run import report
from edgeconv.run.job import Job
from edgeconv.run.outputs import OutputFiles, Provenance, Replaceable, output_path
from edgeconv.run.steps import Run
from edgeconv.run.tiled import memory
from edgeconv.run.tiled.check import TileCheck
from edgeconv.run.tiled.determinism import settle
from edgeconv.run.tiled.grid import Tile, TileGrid, WindowRules, plain_grid
from edgeconv.run.tiled.memory import TILE_STEP, TileDemand, TilePlan, plan_chosen, plan_given
from edgeconv.run.tiled.pipeline import Clock, WindowFilter, Writer, for_each_tile, one_thread
from edgeconv.run.tiled.reader import Reader
from edgeconv.run.tiled.record import TiledChecks, TiledCut, TiledProblem, TiledRecord, TiledTimes
from edgeconv.run.tiled.sinks import check_dtype, kind_for
from edgeconv.run.tiled.sinks.base import OutputShape, Sink
from edgeconv.run.tiled.sources import open_output, open_source
from edgeconv.run.tiled.sources.base import TileSource
from edgeconv.run.tiled.sources.zarr import is_zarr
from edgeconv.run.tiled.verify_output import OutputComparison

DEFAULT_LIMIT_BYTES = 2**31
"""Where neither a tile nor a limit is set."""

SHARE_OF_FREE_MEMORY = 0.5
"""What verifying against the whole picture may take where no limit is set."""

TRIAL_SIDE = 64
"""Of the window that loads libraries and compiles before memory is measured."""

TRIAL_CHUNK_BYTES = 64 * memory.MEBIBYTE
"""Chunks up to here are decoded once beforehand, so that the codec is loaded before memory is measured."""

FOLDER_FORMATS = (".zarr",)
"""Suffixes of outputs that are folders."""

TYPICAL_SIDE = 2048
"""Of the tile that `--method auto` chooses for."""

Progress = Callable[[int, int, str], None]
"""Tiles done, tiles in all, what is being done."""


@dataclass(frozen=True)
class TileOptions:
    """What a user may set beside the job."""

    side: int | None = None
    """Of a tile of the output, in pixels; None chooses by the limit."""
    limit_bytes: int | None = None
    """Most memory of the process."""
    verify: bool = False
    """Read the output back and compare it with a second computation."""

    def __post_init__(self) -> None:
        if self.side is not None and (self.side < TILE_STEP or self.side % TILE_STEP):
            below = max(TILE_STEP, self.side // TILE_STEP * TILE_STEP)
            raise UsageError(
                f"--tile {self.side} is not a multiple of {TILE_STEP}, as TIFF asks of its tiles: "
                f"use {below} or {below + TILE_STEP}."
            )
        if self.limit_bytes is not None and self.limit_bytes < 1:
            raise UsageError("--memory-limit 0 leaves no memory at all: write 1GiB, 512MiB or a number of bytes.")


def run(
    job: Job, tiles: TileOptions, start_seconds: float | None = None, progress: Progress = lambda *_: None
) -> report.RunReport:
    """Do the job and return its report, which is also written beside the output.

    `start_seconds` is how long the process had run before this call. Raises EdgeconvError; then nothing is written.
    """
    if job.request.chain is not None and job.request.chain.has_hysteresis:
        raise UsageError(
            f"'{job.request.chain.name}' is not filtered by tiles, as its hysteresis may join pixels of one end of the "
            "picture with the other: leave --tile, --memory-limit and --verify-tiles out, or end the chain with thin."
        )
    if is_standard_stream(job.source) or (job.output is not None and is_standard_stream(job.output)):
        raise UsageError("Tiles are read and written in any order, so a standard stream cannot be used: name a file.")
    for place in filter(is_device, filter(None, (job.source, job.output))):
        raise UsageError(f"{place}: is a device or a pipe, and tiles are read and written in any order: name a file.")
    return TiledRun(job, tiles, start_seconds, progress).run()


class TiledRun(Run):
    """One job by tiles."""

    _source: TileSource
    _settled: TiledProblem
    _outputs: OutputFiles
    _filter: WindowFilter
    _cut: TiledCut
    _pool: Executor
    _sink: Sink
    _low_high: Range | None
    _check: verify.Check | None
    _checks: TiledChecks

    def __init__(self, job: Job, tiles: TileOptions, start_seconds: float | None, progress: Progress) -> None:
        self._job, self._options, self._progress = job, tiles, progress
        self._input = Path(job.source)
        self._state = file_state(self._input)  # before it is opened
        self._began, self._start_seconds = time.perf_counter(), start_seconds
        self._threads = resolve_threads(job.options.threads)
        self._clock = Clock()
        self._chunks = self._decoded = self._done = self._all = 0

    def open(self, resources: ExitStack) -> None:
        self._source = open_source(self._input, self._job.rules.rgb)
        resources.callback(self._source.close)

    def choose(self) -> OutputFiles:
        layout, request = self._source.layout, self._job.request
        chain = request.chain
        reach = None if chain is None else chain.reach
        self._rules = WindowRules(request.stride, request.padding, request.border, reach)
        problem = request.picture_problem((layout.height, layout.width, layout.channels), layout.dtype)
        choice = self._choose_method(problem)
        finished_dtype = request.output_dtype(layout.dtype)
        self._settled = TiledProblem(
            layout, problem, choice, finished_dtype, request.mode_for(layout.dtype) == "normalize"
        )
        self._target = self._find_target()
        self._filter = WindowFilter(request, choice, self._job.options, layout.dtype, self._clock)
        described = plain(figures.describe_problem(request, problem))
        provenance = Provenance(described, problem.in_channels, choice.method, self._is_same_input)
        self._outputs = OutputFiles(
            self._job, self._target, provenance, may_replace_folder=is_zarr, pictures=(self._target,)
        )
        return self._outputs

    def prepare(self, resources: ExitStack) -> None:
        """See Run.prepare: the size of the tile, and threads beside this one."""
        problem, normalizes = self._settled.problem, self._settled.normalizes
        plan = self._plan()
        grid = self._rules.grid((problem.height, problem.width), plan.tile)
        pictures = len(self._job.request.filter.labels) or 1
        shape = OutputShape(*problem.output_shape, dtype=self._settled.finished_dtype, pictures=pictures)
        self._cut = TiledCut(plan, grid, shape, passes=2 if normalizes else 1, limit_bytes=self._limit())
        self._set_up_seconds = time.perf_counter() - self._began - self._clock.decode_seconds
        self._all = len(grid) * (self._cut.passes + self._options.verify)
        self._wait_for_input_hash = resources.enter_context(_hashing(self._input))
        self._pool = resources.enter_context(ThreadPoolExecutor(self._threads))
        self._sink = kind_for(self._target).make(self._target, shape, plan.piece)
        resources.callback(self._sink.discard)

    def filter(self) -> None:
        """See Run.filter: every tile is checked against the oracle and written right after it was filtered."""
        self._low_high = self._range() if self._settled.normalizes else None
        self._check = self._write_tiles()

    def check(self) -> None:
        plan = self._filter.plan(self._full_window())
        comparison = self._verify_output() if self._options.verify else None
        peak_bytes = get_device("cpu").peak_bytes()  # before the roof is measured, which is no part of the job
        self._checks = TiledChecks(
            plan=plan,
            check=self._check,
            comparison=comparison,
            peak_bytes=peak_bytes,
            roof=self._measure_roof(plan),
            output_identity=file_identity(self._sink.path),
            input_identity=self._wait_for_input_hash(),
        )
        if file_state(self._input) != self._state:  # tiles and hash may be of different states of the input
            raise ImageReadError(f"{self._input}: was changed while it was read: run this again.")

    def write(self, replaceable: Replaceable, resources: ExitStack) -> Callable[[], None]:
        """See Run.write: the output is complete under its temporary name."""
        return lambda: self._sink.commit(replaceable.picture)

    def report(self) -> report.RunReport:
        whole_seconds = (self._start_seconds or 0.0) + time.perf_counter() - self._began
        return TiledRecord(
            job=self._job,
            settled=self._settled,
            cut=self._cut,
            checks=self._checks,
            clock=self._clock,
            times=TiledTimes(self._start_seconds, self._set_up_seconds, whole_seconds),
            chunks=self._chunks,
            chunks_decoded=self._decoded,
            output=str(self._target),
        ).to_report()

    # --- before the first tile ------------------------------------------------------------------------------------

    def _choose_method(self, problem: Problem | ChainProblem) -> Choice:
        """The method, for a tile and not for the whole picture, which may not fit in any memory."""
        sides = (min(problem.height, TYPICAL_SIDE), min(problem.width, TYPICAL_SIDE), problem.in_channels)
        typical = self._job.request.picture_problem(sides, problem.dtype)
        choice = choose(self._job.method, self._job.device, typical)
        if isinstance(problem, ChainProblem):  # whole numbers, the same wherever a pixel lies
            return choice
        return settle(choice, self._job.method, problem)

    def _find_target(self) -> Path:
        """Where the output goes; raises ImageWriteError where that is no format for tiles."""
        settled = self._settled
        fits_tiff = settled.layout.format == "TIFF" and settled.finished_dtype != np.float16
        target = output_path(self._job, settled.choice.method, "tiff" if fits_tiff else "zarr", FOLDER_FORMATS)
        assert target is not None  # standard output was refused
        check_dtype(target, kind_for(target), settled.finished_dtype.name)
        return target

    def _is_same_input(self, recorded: dict[str, Any]) -> bool:
        return all(recorded[name] == value for name, value in file_identity(self._input).items())

    def _plan(self) -> TilePlan:
        """The tile, once everything that a run loads is loaded."""
        layout = self._source.layout
        trial = WindowFilter(self._job.request, self._settled.choice, self._job.options, layout.dtype, Clock())
        trial.run(np.zeros((TRIAL_SIDE, TRIAL_SIDE, layout.channels), layout.dtype))
        if layout.loading_bytes <= TRIAL_CHUNK_BYTES:
            started = time.perf_counter()
            self._source.load(0, 0)  # a file that has no pieces is decoded here as a whole
            self._clock.decode_seconds += time.perf_counter() - started
        self._resident_bytes = memory.resident_bytes()
        work = self._work()
        if self._options.side is not None:
            return plan_given(work, self._options.side, self._options.limit_bytes)
        return plan_chosen(work, self._options.limit_bytes or DEFAULT_LIMIT_BYTES)

    def _work(self) -> TileDemand:
        return TileDemand(
            layout=self._source.layout,
            rules=self._rules,
            problem=self._settled.problem,
            finished_dtype=self._settled.finished_dtype,
            finishes=self._settled.normalizes or self._job.request.threshold is not None,
            method=self._settled.choice.method,
            device=self._settled.choice.device,
            threads=self._threads,
            resident_bytes=self._resident_bytes,
            verifying=self._options.verify,
            copies_of_a_tile=kind_for(self._target).copies_of_a_tile,
        )

    def _limit(self) -> int | None:
        if self._options.side is None and self._options.limit_bytes is None:
            return DEFAULT_LIMIT_BYTES
        return self._options.limit_bytes

    def _full_window(self) -> tuple[int, ...]:
        """The shape of a full tile's window."""
        grid = self._cut.grid
        return (grid.rows.longest_window, grid.columns.longest_window, self._settled.problem.in_channels)

    # --- passes ---------------------------------------------------------------------------------------------------

    def _range(self) -> Range:
        """The range of the whole output's raw values, to be stretched."""
        values = pixels = NO_RANGE

        def extend(tile: Tile, padded: NDArray[Any], raw: NDArray[Any]) -> None:
            nonlocal values, pixels
            values, pixels = join_ranges(values, finite_range(raw)), join_ranges(pixels, finite_range(padded))
            self._step("finding the range")

        reader = self._reader(self._cut.grid)
        for_each_tile(self._cut.grid, reader, self._filter, extend, self._clock)
        self._decoded += reader.decoded
        return self._stretched(values, pixels)

    def _stretched(self, values: Range, pixels: Range) -> Range:
        """What `normalize` stretches, of outputs and pixels of these ranges."""
        problem = self._settled.problem
        assert isinstance(problem, Problem)  # a chain has no normalize
        return range_to_stretch(values, pixels, problem.weights)

    def _write_tiles(self) -> verify.Check | None:
        """The pass that is saved, and its check against the oracle."""
        check = TileCheck(self._settled.problem, self._job.check == "full")
        with one_thread("edgeconv-write") as thread:
            writer = Writer(self._sink, thread, self._pool, self._threads, self._clock)

            def handle(tile: Tile, padded: NDArray[Any], raw: NDArray[Any]) -> None:
                if self._job.check != "none":
                    check.add(tile, padded, raw, self._filter.plan(padded.shape).method_plan)
                writer.put(tile, self._finish(raw, self._low_high, self._clock.filtering))
                self._step("filtering")

            reader = self._reader(self._cut.grid)
            for_each_tile(self._cut.grid, reader, self._filter, handle, self._clock)
            writer.close()
        self._sink.finish()
        self._chunks = reader.chunks
        self._decoded += reader.decoded
        return None if self._job.check == "none" else check.result()

    def _finish(self, raw: NDArray[Any], low_high: Range | None, watch: Stopwatch) -> NDArray[Any]:
        request, finished = self._job.request, raw
        if low_high is not None:
            finished = stretch(raw, *low_high, dtype=self._settled.problem.dtype)
        if request.threshold is not None:
            with watch.phase("threshold"):
                finished = request.mask(finished)
        return finished

    def _reader(self, grid: TileGrid) -> Reader:
        return Reader(self._source, grid, self._cut.plan.keep_bytes, self._pool, self._threads)

    def _step(self, what: str) -> None:
        self._done += 1
        self._progress(self._done, self._all, what)

    # --- after the last tile --------------------------------------------------------------------------------------

    def _verify_output(self) -> OutputComparison:
        """Read the output back and compare it with the whole picture's, or with that of other tiles."""
        began = time.perf_counter()
        self._filter.release()
        output = open_output(self._sink.path, self._cut.shape.channels, self._cut.shape.pictures)
        try:
            comparison = self._against_whole(output) if self._whole_fits() else self._against_other_tiles(output)
        finally:
            output.close()
        comparison.seconds = time.perf_counter() - began
        return comparison

    def _whole_fits(self) -> bool:
        """Whether the whole picture can be filtered at once under the limit."""
        needed = self._work().cost(self._settled.problem.output_shape[:2], memory.PIECES[0]).least
        limit = self._limit()
        if limit is None:
            limit = int((get_device("cpu").free_bytes() or DEFAULT_LIMIT_BYTES) * SHARE_OF_FREE_MEMORY)
        return needed <= limit

    def _against_whole(self, output: TileSource) -> OutputComparison:
        comparison = OutputComparison("whole picture")
        problem, choice = self._settled.problem, self._settled.choice
        at_once = plain_grid((0, problem.height), (0, problem.width))
        (everything,) = at_once
        picture = Reader(self._source, at_once, 0, self._pool, self._threads).read(everything)
        request = self._job.request.unfinished
        raw = PreparedFilter(request, picture.shape, problem.dtype, choice, self._job.options).run(picture)
        pixels = finite_range(picture) if self._settled.normalizes else NO_RANGE
        del picture
        low_high = self._stretched(finite_range(raw), pixels) if self._settled.normalizes else None
        expected = self._finish(raw, low_high, Stopwatch())
        del raw
        written = self._reader_of_output(output, self._cut.grid)
        for tile in self._cut.grid:
            part = expected[tile.rows.start : tile.rows.stop, tile.columns.start : tile.columns.stop]
            comparison.compare(tile.rows, tile.columns, written.read(tile), part)
            self._step("verifying")
        return comparison

    def _against_other_tiles(self, output: TileSource) -> OutputComparison:
        comparison = OutputComparison("other tiles")
        problem = self._settled.problem
        grid = self._rules.grid((problem.height, problem.width), self._cut.plan.tile, shifted=True)
        written = self._reader_of_output(output, grid)
        aside = Clock()
        again = WindowFilter(self._job.request, self._settled.choice, self._job.options, problem.dtype, aside)

        def handle(tile: Tile, padded: NDArray[Any], raw: NDArray[Any]) -> None:
            comparison.compare(
                tile.rows, tile.columns, written.read(tile), self._finish(raw, self._low_high, aside.filtering)
            )
            self._step("verifying")

        for_each_tile(grid, self._reader(grid), again, handle, aside)
        return comparison

    def _reader_of_output(self, output: TileSource, grid: TileGrid) -> Reader:
        """Reads the output back by the tiles of `grid`, without padding."""
        return Reader(output, plain_grid(grid.rows.cuts, grid.columns.cuts), 0, self._pool, self._threads)

    def _measure_roof(self, plan: PreparedFilter) -> Any:
        """The machine's roof, where samples were asked for and the limit leaves room for the measurement."""
        if self._job.samples < 1:
            return None
        limit = self._limit()
        if limit is not None and memory.resident_bytes() + 2 * COPY_BYTES > limit:
            return None
        plan.release_arrays()
        with plan.workspace():
            return plan.processor.roof()


@contextmanager
def _hashing(path: Path) -> Iterator[Callable[[], dict[str, Any]]]:
    """Hash a file beside the block; what is given waits for the result. Raises ImageReadError."""
    stop = threading.Event()
    with one_thread("edgeconv-hash") as thread:
        identity = thread.submit(file_identity, path, stop)

        def wait() -> dict[str, Any]:
            try:
                return identity.result()
            except OSError as error:
                raise ImageReadError(f"{path}: cannot be read ({error.strerror}).") from None

        try:
            yield wait
        finally:
            if not identity.done():
                stop.set()
