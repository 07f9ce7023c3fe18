"""The job of `edgeconv run` by tiles: a picture of any size in, its edges in another file, a report beside it.

    open ── plan the tile ── for every tile: read, filter, check, write ── prove ── move into place ── report

Everything is done under a temporary name: a run that is stopped, or whose input is damaged, leaves nothing. `normalize`
takes two passes, the first for the range.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.filters import RGB_CHANNELS
from edgeconv.core.output import NO_RANGE, Range, finite_range, join_ranges, range_to_stretch, stretch
from edgeconv.errors import ImageReadError, ImageWriteError, UsageError
from edgeconv.hardware.threads import resolve_threads
from edgeconv.io import temporary_files
from edgeconv.io.files import is_device, is_standard_stream, write_bytes_atomically
from edgeconv.run import report, whole
from edgeconv.run.tiled import memory
from edgeconv.run.tiled.check import TileCheck
from edgeconv.run.tiled.determinism import settle
from edgeconv.run.tiled.grid import Tile, TileGrid, WindowRules, plain_grid
from edgeconv.run.tiled.identity import file_identity, file_state
from edgeconv.run.tiled.memory import TILE_STEP, TileDemand, TilePlan, plan_chosen, plan_given
from edgeconv.run.tiled.pipeline import Clock, WindowFilter, Writer, for_each_tile, one_thread
from edgeconv.run.tiled.reader import Reader
from edgeconv.run.tiled.record import TiledRun
from edgeconv.run.tiled.sinks import check_dtype, kind_for
from edgeconv.run.tiled.sinks.base import OutputShape, Sink
from edgeconv.run.tiled.sources import open_source
from edgeconv.run.tiled.sources.base import TileSource
from edgeconv.run.tiled.sources.zarr import is_zarr
from edgeconv.run.tiled.verify_output import Proof
from edgeconv.run.whole import CHECKS, Job
from edgeconv.runtime import check as verify
from edgeconv.runtime.auto import Choice, choose
from edgeconv.runtime.devices import get_device
from edgeconv.runtime.devices.cpu import COPY_BYTES
from edgeconv.runtime.session import Session

DEFAULT_LIMIT_BYTES = 2**31
"""Where neither a tile nor a limit is set."""

SHARE_OF_FREE_MEMORY = 0.5
"""What a proof against the whole picture may take where no limit is set."""

TRIAL_SIDE = 64
"""Of the window that loads libraries and compiles before memory is measured."""

TRIAL_CHUNK_BYTES = 64 * memory.MEBIBYTE
"""Chunks up to here are decoded once beforehand, so that the codec is loaded before memory is measured."""

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
    prove: bool = False
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
) -> dict[str, Any]:
    """Do the job and return its report, which is also written beside the output.

    `start_seconds` is how long the process had run before this call. Raises EdgeconvError; then nothing is written.
    """
    if job.check not in CHECKS:
        raise UsageError(f"--check '{job.check}' is not one of {', '.join(CHECKS)}.")
    if is_standard_stream(job.source) or (job.output is not None and is_standard_stream(job.output)):
        raise UsageError("Tiles are read and written in any order, which a standard stream is not: name a file.")
    for place in filter(is_device, filter(None, (job.source, job.output))):
        raise UsageError(f"{place}: is a device or a pipe, and tiles are read and written in any order: name a file.")
    state = file_state(Path(job.source))
    source = open_source(Path(job.source))
    try:
        return _Run(job, tiles, source, state, start_seconds, progress).run()
    finally:
        source.close()


class _Run:
    """One job, from an open source to its report."""

    def __init__(
        self,
        job: Job,
        tiles: TileOptions,
        source: TileSource,
        state: str | None,
        start_seconds: float | None,
        progress: Progress,
    ) -> None:
        """`state` is that of the input's files before it was opened."""
        self._job, self._options, self._source, self._progress = job, tiles, source, progress
        self._state = state
        self._began, self._start_seconds = time.perf_counter(), start_seconds
        layout, request = source.layout, job.request
        self._rules = WindowRules(request.stride, request.padding, request.border)
        self._problem = request.problem((layout.height, layout.width, RGB_CHANNELS), layout.dtype)
        self._choice = self._choose()
        self._finished_dtype = request.output_dtype(layout.dtype)
        self._target = self._find_target()
        self._report_path = self._target.with_suffix(".json")
        self._threads = resolve_threads(job.options.threads)
        self._clock = Clock()
        self._filter = WindowFilter(request, self._choice, job.options, layout.dtype, self._clock)
        self._normalizes = request.mode_for(layout.dtype) == "normalize"
        self._decoded = self._done = self._all = 0

    def run(self) -> dict[str, Any]:
        """See the module's `run`."""
        self._refuse_to_overwrite()
        temporary_files.remove_left_over_in(Path(os.path.realpath(self._target)).parent)
        plan = self._plan()
        grid = self._rules.grid((self._problem.height, self._problem.width), plan.tile)
        shape = OutputShape(*self._problem.output_shape, dtype=self._finished_dtype)
        kind = kind_for(self._target)
        set_up_seconds = time.perf_counter() - self._began - self._clock.decode_seconds
        passes = 2 if self._normalizes else 1
        self._all = len(grid) * (passes + self._options.prove)
        with _hashing(self._source.path) as hashed, ThreadPoolExecutor(self._threads) as pool:
            sink = kind.make(self._target, shape, plan.piece)
            try:
                low_high = self._range(grid, plan, pool) if self._normalizes else None
                checked, chunks = self._write(sink, grid, plan, pool, low_high)
                session = self._filter.session(self._full_window(plan))
                proof = self._prove(sink, plan, pool, low_high) if self._options.prove else None
                peak_bytes = get_device("cpu").peak_bytes()  # before the roof is measured, which is no part of the job
                roof = self._measure_roof(session)
                output_identity, input_identity = file_identity(sink.path), hashed()
                self._refuse_changed_input()
                there = [os.path.lexists(path) for path in (self._target, self._report_path)]
                replace, replace_report = (self._job.overwrite or is_there for is_there in there)
                self._refuse_to_overwrite()  # again: another run may have written there meanwhile
                record = TiledRun(
                    job=self._job,
                    layout=self._source.layout,
                    problem=self._problem,
                    choice=self._choice,
                    session=session,
                    plan=plan,
                    limit_bytes=self._limit(),
                    tiles=len(grid),
                    passes=passes,
                    chunks=chunks,
                    chunks_decoded=self._decoded,
                    clock=self._clock,
                    start_seconds=self._start_seconds,
                    set_up_seconds=set_up_seconds,
                    whole_seconds=(self._start_seconds or 0.0) + time.perf_counter() - self._began,
                    roof=roof,
                    peak_bytes=peak_bytes,
                    checked=checked,
                    proof=proof,
                    input_identity=input_identity,
                    output_identity=output_identity,
                    output=str(self._target),
                    shape=shape,
                ).to_dict()
                write_bytes_atomically(self._report_path, report.to_json(record), replace=replace_report)
                with whole.withdrawn_without_picture(self._report_path, is_new=not there[1]):
                    sink.commit(replace)
            finally:
                sink.discard()
        return record

    # --- before the first tile ------------------------------------------------------------------------------------

    def _choose(self) -> Choice:
        """The method, for a tile and not for the whole picture, which no memory might hold."""
        problem = self._problem
        sides = (min(problem.height, TYPICAL_SIDE), min(problem.width, TYPICAL_SIDE), RGB_CHANNELS)
        typical = self._job.request.problem(sides, problem.dtype)
        choice = choose(self._job.method, self._job.device, "many pictures", typical)
        return settle(choice, self._job.method, problem)

    def _find_target(self) -> Path:
        """Where the output goes; raises ImageWriteError where that is no format for tiles."""
        layout, output = self._source.layout, self._job.output
        fits_tiff = layout.format == "TIFF" and self._finished_dtype != np.float16
        if output is not None and Path(output).suffix.lower() == ".zarr":
            target = Path(output)
        else:
            named = whole.output_path(self._job, self._choice.method, "tiff" if fits_tiff else "zarr")
            assert named is not None  # standard output was refused
            target = named
        check_dtype(target, kind_for(target), self._finished_dtype.name)
        return target

    def _refuse_to_overwrite(self) -> None:
        """Never the input; nothing else either, but for this job's own earlier output that nobody touched since."""
        source, target = self._source.path, self._target
        whole.refuse_inputs(self._job, target, self._report_path)
        if os.path.realpath(target).startswith(os.path.realpath(source) + os.sep):
            raise ImageWriteError(f"{target}: lies inside the input: choose another place with -o.")
        if os.path.realpath(source).startswith(os.path.realpath(target) + os.sep):
            raise ImageWriteError(f"{target}: the input lies inside it: choose another place with -o.")
        if target.is_dir() and not is_zarr(target):
            raise ImageWriteError(f"{target}: is a folder, and no Zarr that could be replaced: choose another name.")
        if self._job.overwrite or not (os.path.lexists(target) or os.path.lexists(self._report_path)):
            return
        if not self._is_own_output():
            taken = target if os.path.lexists(target) else self._report_path
            raise ImageWriteError(f"Output '{taken}' exists: pass --overwrite to replace it, or -o for another place.")

    def _refuse_changed_input(self) -> None:
        """Raise ImageReadError where tiles and hash may be of different states of the input."""
        if file_state(self._source.path) != self._state:
            raise ImageReadError(f"{self._source.path}: was changed while it was read: run this again.")

    def _is_own_output(self) -> bool:
        """True where the report beside it tells of the same job and still describes the very bytes of the output."""
        if self._target.is_symlink():  # see read_earlier
            return False
        try:
            earlier = whole.read_earlier(self._report_path)
            same_job = (
                earlier["problem"] == report.describe_problem(self._job.request, self._problem)
                and earlier["method"]["name"] == self._choice.method
            )
            sides = [("input", self._source.path)]
            if os.path.lexists(self._target):  # a run that was killed between the two leaves the report alone
                sides.append(("output", self._target))
            return same_job and all(
                {name: earlier[side][name] for name in ("file_bytes", "file_sha256")} == file_identity(path)
                for side, path in sides
            )
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def _plan(self) -> TilePlan:
        """The tile, once everything that a run loads is loaded."""
        trial = WindowFilter(self._job.request, self._choice, self._job.options, self._source.layout.dtype, Clock())
        trial.run(np.zeros((TRIAL_SIDE, TRIAL_SIDE, RGB_CHANNELS), self._source.layout.dtype))
        if self._source.layout.loading_bytes <= TRIAL_CHUNK_BYTES:
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
            problem=self._problem,
            finished_dtype=self._finished_dtype,
            method=self._choice.method,
            device=self._choice.device,
            threads=self._threads,
            resident_bytes=self._resident_bytes,
            proving=self._options.prove,
            copies_of_a_tile=kind_for(self._target).copies_of_a_tile,
        )

    def _limit(self) -> int | None:
        if self._options.side is None and self._options.limit_bytes is None:
            return DEFAULT_LIMIT_BYTES
        return self._options.limit_bytes

    def _full_window(self, plan: TilePlan) -> tuple[int, ...]:
        """The shape of a full tile's window."""
        grid = self._rules.grid((self._problem.height, self._problem.width), plan.tile)
        return (len(grid.rows.window(0)), len(grid.columns.window(0)), RGB_CHANNELS)

    # --- passes ---------------------------------------------------------------------------------------------------

    def _range(self, grid: TileGrid, plan: TilePlan, pool: Executor) -> Range:
        """The range of the whole output's raw values, to be stretched."""
        values = pixels = NO_RANGE

        def extend(tile: Tile, padded: NDArray[Any], raw: NDArray[Any]) -> None:
            nonlocal values, pixels
            values, pixels = join_ranges(values, finite_range(raw)), join_ranges(pixels, finite_range(padded))
            self._step("finding the range")

        reader = self._reader(grid, plan, pool)
        for_each_tile(grid, reader, self._filter, extend, self._clock)
        self._decoded += reader.decoded
        return range_to_stretch(values, pixels, self._problem.weights)

    def _write(
        self, sink: Sink, grid: TileGrid, plan: TilePlan, pool: Executor, low_high: Range | None
    ) -> tuple[verify.Check | None, int]:
        """The pass that is saved; the check, and how many chunks the picture has."""
        check = TileCheck(self._problem, self._job.check == "full")
        with one_thread("edgeconv-write") as thread:
            writer = Writer(sink, thread, pool, self._threads, self._clock)

            def handle(tile: Tile, padded: NDArray[Any], raw: NDArray[Any]) -> None:
                if self._job.check != "none":
                    check.add(tile, padded, raw, self._filter.session(padded.shape).plan)
                writer.put(tile, self._finish(raw, low_high))
                self._step("filtering")

            reader = self._reader(grid, plan, pool)
            for_each_tile(grid, reader, self._filter, handle, self._clock)
            writer.close()
        sink.finish()
        self._decoded += reader.decoded
        return (None if self._job.check == "none" else check.result()), reader.chunks

    def _finish(self, raw: NDArray[Any], low_high: Range | None) -> NDArray[Any]:
        if low_high is None:
            return raw
        finished: NDArray[Any] = stretch(raw, *low_high, dtype=self._problem.dtype)
        return finished

    def _reader(self, grid: TileGrid, plan: TilePlan, pool: Executor) -> Reader:
        return Reader(self._source, grid, plan.keep_bytes, pool, self._threads)

    def _step(self, what: str) -> None:
        self._done += 1
        self._progress(self._done, self._all, what)

    # --- after the last tile --------------------------------------------------------------------------------------

    def _prove(self, sink: Sink, plan: TilePlan, pool: Executor, low_high: Range | None) -> Proof:
        """Read the output back and compare it with the whole picture's, or with that of other tiles."""
        began = time.perf_counter()
        self._filter.release()
        output = open_source(sink.path)
        try:
            if self._whole_fits():
                proof = self._prove_by_whole(output, plan, pool)
            else:
                proof = self._prove_by_other_tiles(output, plan, pool, low_high)
        finally:
            output.close()
        proof.seconds = time.perf_counter() - began
        return proof

    def _whole_fits(self) -> bool:
        """Whether the whole picture can be filtered at once under the limit."""
        needed = self._work().cost(self._problem.output_shape[:2], memory.PIECES[0]).least
        limit = self._limit()
        if limit is None:
            limit = int((get_device("cpu").free_bytes() or DEFAULT_LIMIT_BYTES) * SHARE_OF_FREE_MEMORY)
        return needed <= limit

    def _prove_by_whole(self, output: TileSource, plan: TilePlan, pool: Executor) -> Proof:
        proof = Proof("whole picture")
        problem = self._problem
        at_once = plain_grid((0, problem.height), (0, problem.width))
        (everything,) = at_once
        picture = Reader(self._source, at_once, 0, pool, self._threads).read(everything)
        raw = Session(problem, self._choice.method, self._choice.device, self._job.options).convolve(picture)
        pixels = finite_range(picture) if self._normalizes else NO_RANGE
        del picture
        low_high = range_to_stretch(finite_range(raw), pixels, problem.weights) if self._normalizes else None
        expected = self._finish(raw, low_high)
        del raw
        grid = self._rules.grid((problem.height, problem.width), plan.tile)
        written = Reader(output, plain_grid(grid.rows.cuts, grid.columns.cuts), 0, pool, self._threads)
        for tile in grid:
            part = expected[tile.rows.start : tile.rows.stop, tile.columns.start : tile.columns.stop]
            proof.compare(tile.rows, tile.columns, written.read(tile), part)
            self._step("proving")
        return proof

    def _prove_by_other_tiles(
        self, output: TileSource, plan: TilePlan, pool: Executor, low_high: Range | None
    ) -> Proof:
        proof = Proof("other tiles")
        grid = self._rules.grid((self._problem.height, self._problem.width), plan.tile, shifted=True)
        written = Reader(output, plain_grid(grid.rows.cuts, grid.columns.cuts), 0, pool, self._threads)
        again = WindowFilter(self._job.request, self._choice, self._job.options, self._problem.dtype, Clock())

        def handle(tile: Tile, padded: NDArray[Any], raw: NDArray[Any]) -> None:
            proof.compare(tile.rows, tile.columns, written.read(tile), self._finish(raw, low_high))
            self._step("proving")

        for_each_tile(grid, self._reader(grid, plan, pool), again, handle, Clock())
        return proof

    def _measure_roof(self, session: Session) -> Any:
        """The machine's roof, where samples were asked for and the limit leaves room for the measurement."""
        if self._job.samples < 1:
            return None
        limit = self._limit()
        if limit is not None and memory.resident_bytes() + 2 * COPY_BYTES > limit:
            return None
        session.release_arrays()
        return session.measure_roof()


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
