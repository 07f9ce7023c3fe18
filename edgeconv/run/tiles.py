"""A picture of any size, filtered rectangle by rectangle, with a limit on the memory of the process.

    open ── plan the rectangles ── each: read its window, filter, check, write ── report ── put

While a rectangle is filtered, the window of the next is read and the output of the one before is compressed and
written. `normalize` takes two passes, the first for the range. In the report `speed` is that of a rectangle of the full
size, the median of all but the first: the FLOPs and bytes of its window over its time. `counts` are of the whole
picture.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import count, product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.api import check, figures
from edgeconv.api.auto import Choice, choose
from edgeconv.api.check import Check
from edgeconv.api.measure import copy_of, describe, roof_of, time_copy
from edgeconv.api.prepared import PreparedFilter
from edgeconv.core import chains, exactness
from edgeconv.core.chains import ChainProblem
from edgeconv.core.geometry import KERNEL_SIZE, OUTSIDE, border_indices
from edgeconv.core.option import AUTO
from edgeconv.core.output import NO_RANGE, Range, finite_range, join_ranges, range_to_stretch, stretch
from edgeconv.core.problem import INPUT_DTYPES, Problem
from edgeconv.core.records import fields_of, header, to_json
from edgeconv.core.request import Request
from edgeconv.core.timing import StopReason, Stopwatch, series_of
from edgeconv.errors import ImageReadError, UsageError
from edgeconv.hardware.cpu.jit import processor
from edgeconv.hardware.devices import get_device
from edgeconv.hardware.threads import resolve_threads
from edgeconv.io.atomic import pass_permissions_on, reporting_errors
from edgeconv.io.contained_paths import file_identity, file_state
from edgeconv.io.files import is_device, is_standard_stream, is_zarr
from edgeconv.methods.options import Options
from edgeconv.run import report
from edgeconv.run.job import Job
from edgeconv.run.naming import output_path
from edgeconv.run.ownership import Made, report_path, reserve
from edgeconv.run.rectangles import MEBIBYTE, Demand, Halo, Rectangle, Tile, cut, spans
from edgeconv.run.sinks import OutputShape, sink_for
from edgeconv.run.sources import open_source
from edgeconv.run.sources.base import Reader, TileSource, in_order

DEFAULT_LIMIT_BYTES = 2**31
"""Where neither a tile nor a limit is set."""
UNKNOWN_RESIDENT_BYTES = 300 * MEBIBYTE
"""Assumed where the system does not tell the memory of the process."""
TRIAL_SIDE = 64
"""Of the window that loads libraries and compiles before memory is measured."""
TRIAL_CHUNK_BYTES = 64 * MEBIBYTE
"""A chunk up to here is decoded once beforehand, so that the codec is loaded before memory is measured."""

SAMPLED_SIDE, SAMPLED_PER_AXIS = 64, 5
"""`--check sample` compares squares of the output on a grid, corners, edges and centre among them."""
FULL_SIDE = 256

ROUNDS_BY_PLACE: dict[tuple[str, str], tuple[tuple[str, ...], str]] = {
    ("cpu", "opencv"): (INPUT_DTYPES, "sliding"),
    ("cuda", "cudnn"): (INPUT_DTYPES, "implicit"),
    ("cuda", "sliding"): (("float16", "float32"), "implicit"),
}
"""Methods that add the terms of a pixel in an order that depends on its place in the array: for which samples, and what
does not. OpenCV uses vector code along a row and scalar code at its end; cuDNN chooses its algorithm by the shape;
`sliding` on CUDA takes other kernels where rows start on 16 bytes."""

EVERY_TILE: StopReason = "every tile of the full size was taken"

Progress = Callable[[int, int, str], None]
"""Tiles done, tiles in all, what is being done."""
Handle = Callable[[Tile, NDArray[Any], NDArray[Any]], None]
"""Takes a tile, the pixels of its window and what the method gave for them."""


class WindowFilter:
    """Filters windows: one plan for each shape of window, so that a shape is set up once."""

    def __init__(
        self,
        request: Request,
        choice: Choice,
        options: Options,
        dtype: np.dtype[Any],
        watch: Stopwatch | None = None,
    ) -> None:
        self._request, self._choice, self._options, self._dtype = request.unfinished, choice, options, dtype
        self._watch = watch or Stopwatch()
        self._plans: dict[tuple[int, ...], PreparedFilter] = {}
        self.samples: dict[tuple[int, ...], list[tuple[float, float]]] = {}
        """By the shape of the window, in the order of the tiles: seconds of the method alone, and from host array to
        host array."""

    def plan(self, shape: tuple[int, ...]) -> PreparedFilter:
        """The plan of windows of `shape` (HWC)."""
        if shape not in self._plans:
            with self._watch.phase("set_up"):
                problem = self._request.picture_problem(shape, self._dtype)
                self._plans[shape] = PreparedFilter(self._request, problem, self._choice, self._options)
        return self._plans[shape]

    def run(self, window: NDArray[Any]) -> NDArray[Any]:
        """The method's output for a window (HWC)."""
        plan, phases = self.plan(window.shape), self._watch.phases_seconds
        before, started = phases.get("convolve", 0.0), time.perf_counter()
        filtered: NDArray[Any] = plan.run(window, watch=self._watch)
        seconds = phases["convolve"] - before, time.perf_counter() - started
        self.samples.setdefault(window.shape, []).append(seconds)
        return filtered


def run_by_tiles(
    job: Job, process_seconds: float | None = None, progress: Progress = lambda *_: None
) -> report.RunReport:
    """Do the job and return its report, which is also written beside the output.

    `process_seconds` is the processor time that the process took to start. Raises EdgeconvError; then nothing is
    written.
    """
    _refuse_impossible(job)
    began = time.perf_counter() - (process_seconds or 0.0)
    path, request, threads, watch = Path(job.source), job.request, resolve_threads(job.options.threads), Stopwatch()
    state = file_state(path)  # before it is opened
    with ExitStack() as resources:
        source = open_source(path, job.rules)
        resources.callback(source.close)
        problem = request.picture_problem((source.height, source.width, source.channels), source.dtype)
        choice = settled(choose(job.method, job.device, problem), problem)
        finished_dtype = request.output_dtype(source.dtype)
        fits_tiff = source.format == "TIFF" and finished_dtype != np.float16
        target = output_path(job, choice.method, "tiff" if fits_tiff else "zarr", (".zarr",))
        assert target is not None  # standard output was refused
        sink_type = sink_for(target, finished_dtype.name)

        stop = threading.Event()
        hashing = resources.enter_context(ThreadPoolExecutor(1))
        resources.callback(stop.set)
        identity = hashing.submit(file_identity, path, stop)
        described = figures.describe_problem(request, problem)
        made = Made(described, problem.in_channels, choice.method, lambda: _identity(path, identity)["file_sha256"])
        beside = report_path(target)
        outputs = resources.enter_context(reserve(job, made, (target,), beside, is_zarr))

        normalizes = request.mode_for(source.dtype) == "normalize"
        filter = WindowFilter(request, choice, job.options, source.dtype, watch)
        _load_everything(source, WindowFilter(request, choice, job.options, source.dtype), problem, choice)
        demand = Demand(
            source=source,
            problem=problem,
            finished_dtype=finished_dtype,
            finishes=normalizes or request.threshold is not None,
            method=choice.method,
            device=choice.device,
            threads=threads,
            resident_bytes=resident_bytes(),
            copies=sink_type.copies,
        )
        limit = job.limit_bytes or (DEFAULT_LIMIT_BYTES if job.tile is None else None)
        tile_plan = cut(demand, job.tile, limit)
        tiles, passes = tile_plan.tiles(problem), 2 if normalizes else 1
        pool = resources.enter_context(ThreadPoolExecutor(threads))  # decodes chunks and compresses pieces
        readers: list[Reader] = []
        done = count(1)
        if process_seconds is not None:
            watch.phases_seconds["start"] = process_seconds
        set_up_seconds = time.perf_counter() - began - (process_seconds or 0.0)
        # Stages overlap, so they add up to more than the time that passes.
        watch.phases_seconds |= {"decode": 0.0, "set_up": set_up_seconds, "convolve": 0.0, "encode": 0.0}

        def each(what: str, handle: Handle) -> None:
            def handle_and_count(*found: Any) -> None:
                handle(*found)
                progress(next(done), passes * len(tiles), what)

            readers.append(Reader(source, [tile.window for tile in tiles], tile_plan.kept_bytes, pool, threads))
            filter_tiles(readers[-1], tiles, filter, watch, handle_and_count)

        low_high = None
        if normalizes:
            assert isinstance(problem, Problem)  # a chain has no normalize
            low_high = _find_range(each, problem)
        pictures = len(request.filter.labels) or 1
        shape = OutputShape(*problem.output_shape, dtype=finished_dtype, pictures=pictures)
        place = outputs.begin(target)
        with reporting_errors(target):
            sink = sink_type(place, shape, tile_plan.piece)
            resources.callback(sink.close)
            pass_permissions_on(target, place)
            found = _write_tiles(
                job, problem, each, filter, watch, partial(sink.write, pool=pool, threads=threads), low_high
            )
            sink.finish()
            output_identity = file_identity(place)
        peak_bytes = get_device("cpu").peak_bytes()  # now: the copy that is measured below is not part of the job
        full = max(filter.samples, key=lambda shape: shape[0] * shape[1])
        plan = filter.plan(full)
        input_identity = _identity(path, identity)
        if file_state(path) != state:  # tiles and hash may be of different states of the input
            raise ImageReadError(f"{path}: was changed while it was read: run this again.")

        whole_seconds = time.perf_counter() - began
        samples = zip(*(filter.samples[full][1:] or filter.samples[full]), strict=True)
        kernel, end_to_end = (series_of(seconds, EVERY_TILE) for seconds in samples)
        plan.release_arrays()
        left = plan.processor.free_bytes() if limit is None else limit - resident_bytes()
        copy = copy_of(plan, left) if job.samples else None
        roof = None if copy is None else roof_of(plan, kernel, time_copy(plan, copy), "after the tiles")
        told = describe(
            request,
            plan,
            watch.phases_seconds,
            cold_seconds=next(iter(filter.samples.values()))[0][0],
            kernel=kernel,
            end_to_end=end_to_end,
            roof=roof,
            check=found,
            peak_bytes=plan.processor.peak_bytes(),
            whole=problem,
            whole_run_seconds=whole_seconds,
        )
        nominal_flops = None if isinstance(problem, ChainProblem) else told.counts.nominal_flops
        record = report.RunReport(
            **header(),
            kind=report.KIND,
            input=report.InputPart(
                file=job.source,
                format=source.format,
                notes=list(source.notes),
                **report.describe_layout(problem.input_shape, source.dtype),
                **input_identity,
            ),
            output=report.OutputPart(
                file=str(target), **report.describe_layout(problem.output_shape, finished_dtype), **output_identity
            ),
            tiles=report.TilesPart(
                rows=min(tile_plan.rows, shape.height),
                columns=min(tile_plan.columns, shape.width),
                count=len(tiles),
                piece=tile_plan.piece,
                passes=passes,
                chunks=readers[0].chunks,
                chunks_decoded=sum(reader.decoded for reader in readers),
                limit_bytes=limit,
                planned_bytes=tile_plan.planned_bytes,
                peak_bytes=peak_bytes,
                whole_run_gflops=None if nominal_flops is None else nominal_flops / whole_seconds / 1e9,
            ),
            **fields_of(told),
        )
        assert beside is not None
        outputs.add(beside, to_json(record))
        outputs.put()
    return record


def _refuse_impossible(job: Job) -> None:
    """Raise UsageError for a job that cannot be done by tiles."""
    if job.request.chain is not None and job.request.chain.has_hysteresis:
        raise UsageError(
            f"'{job.request.chain.name}' is not filtered by tiles, as its hysteresis may join pixels of one end of the "
            "picture with the other: leave --tile and --memory-limit out, or end the chain with thin."
        )
    for place in filter(None, (job.source, job.output)):
        if is_standard_stream(place) or is_device(place):
            raise UsageError(
                f"{place}: is a stream or a device, and tiles are read and written in any order: name a file."
            )


def refuse_seams(choice: Choice, problem: Problem | ChainProblem, plan: PreparedFilter) -> None:
    """Raise UsageError for a method whose tiles might differ from the whole picture in the last bit.

    Exact sums are the same in any order, and so is a root that is rounded to 8 bits: the root of a whole number n is no
    nearer to k + ½ than 1 / (8k + 4).
    """
    dtypes, other = ROUNDS_BY_PLACE.get((choice.device, choice.method), ((), ""))
    if problem.dtype.name not in dtypes or isinstance(problem, ChainProblem):
        return
    is_rooted = problem.combine == "magnitude" and problem.output_dtype != np.uint8
    if is_rooted or not exactness.is_exact(problem, plan.method_plan.arithmetic):
        raise UsageError(
            f"With method '{choice.method}' the rounding of these sums depends on a pixel's position in the array, so "
            f"tiles would differ from the whole picture in the last bit: use --method {other}, or leave out the tile "
            "options."
        )


def settled(choice: Choice, problem: Problem | ChainProblem) -> Choice:
    """The choice, or for `auto` what adds in one order everywhere."""
    dtypes, other = ROUNDS_BY_PLACE.get((choice.device, choice.method), ((), ""))
    if choice.asked_for != AUTO or problem.dtype.name not in dtypes or isinstance(problem, ChainProblem):
        return choice
    why = f"the rounding of {choice.method} depends on a pixel's position, so tiles would differ in the last bit"
    return Choice(other, choice.device, why)


def _load_everything(source: TileSource, trial: WindowFilter, problem: Problem | ChainProblem, choice: Choice) -> None:
    """Filter a small window and decode a chunk, so that libraries are loaded before memory is measured."""
    from edgeconv.hardware.cpu.compiler import machine_code  # not for pictures as a whole

    machine_code("", processor())  # the small window's code may be in the cache, and that of tiles not
    window = np.zeros((TRIAL_SIDE, TRIAL_SIDE, source.channels), source.dtype)
    trial.run(window)
    refuse_seams(choice, problem, trial.plan(window.shape))
    if source.loading_bytes <= TRIAL_CHUNK_BYTES:
        rows, columns = (min(pair) for pair in zip(source.chunk, (source.height, source.width), strict=True))
        source.load(range(rows), range(columns))  # a file that has no chunks is decoded here as a whole


def resident_bytes() -> int:
    """The most that the process has held so far: what a limit is compared with."""
    return get_device("cpu").peak_bytes() or UNKNOWN_RESIDENT_BYTES


def filter_tiles(reader: Reader, tiles: Sequence[Tile], filter: WindowFilter, watch: Stopwatch, handle: Handle) -> None:
    """Call `handle` for every tile in order; the window of the next is read while one is filtered and handled.

    Raises whatever reading, filtering and `handle` raise.
    """

    def read(tile: Tile) -> NDArray[Any]:
        with watch.phase("decode"):
            return reader.read(*tile.window)

    with ThreadPoolExecutor(1) as reading:
        windows = in_order(reading, read, tiles, 2)
        for tile in tiles:
            window = next(windows)
            handle(tile, window, filter.run(window))
            del window  # before the next but one is read


def _find_range(each: Callable[[str, Handle], None], problem: Problem) -> Range:
    """The range of the whole output's raw values that `normalize` stretches."""
    values = pixels = NO_RANGE

    def extend(tile: Tile, window: NDArray[Any], filtered: NDArray[Any]) -> None:
        nonlocal values, pixels
        values = join_ranges(values, finite_range(tile.part_of(filtered)))
        pixels = join_ranges(pixels, finite_range(window))

    each("finding the range", extend)
    return range_to_stretch(values, pixels, problem.weights)


def _write_tiles(
    job: Job,
    problem: Problem | ChainProblem,
    each: Callable[[str, Handle], None],
    filter: WindowFilter,
    watch: Stopwatch,
    write: Callable[[Rectangle, NDArray[Any]], None],
    low_high: Range | None,
) -> Check | None:
    """The pass that is saved, and its comparison with the oracle."""
    cells = [_cells(size, job.check == "full") for size in problem.output_shape[:2]]
    found: list[Check] = []
    behind: Future[None] | None = None

    def write_timed(rectangle: Rectangle, pixels: NDArray[Any]) -> None:
        with watch.phase("encode"):
            write(rectangle, pixels)

    def handle(tile: Tile, window: NDArray[Any], filtered: NDArray[Any]) -> None:
        nonlocal behind
        if job.check != "none":
            found.extend(_compare(tile, window, filtered, filter.plan(window.shape), cells))
        finished = tile.part_of(filtered)
        if low_high is not None:
            finished = stretch(finished, *low_high, dtype=problem.dtype)
        if job.request.threshold is not None:
            with watch.phase("threshold"):
                finished = job.request.mask(finished)
        if behind is not None:
            behind.result()
        behind = writing.submit(write_timed, tile.rectangle, finished)

    with ThreadPoolExecutor(1) as writing:
        each("filtering", handle)
        if behind is not None:
            behind.result()
    return check.joined(found, int(np.prod(problem.output_shape, dtype=np.int64))) if found else None


# --- against the oracle -------------------------------------------------------------------------------------------


def _cells(length: int, full: bool) -> list[range]:
    """What of an axis of the output is compared: all of it, or parts spread evenly over it."""
    cells = spans(length, FULL_SIDE if full else SAMPLED_SIDE)
    chosen = np.linspace(0, len(cells) - 1, len(cells) if full else SAMPLED_PER_AXIS).round().astype(int)
    return [cells[index] for index in dict.fromkeys(chosen.tolist())]


def _compare(
    tile: Tile, window: NDArray[Any], filtered: NDArray[Any], plan: PreparedFilter, cells: Sequence[Sequence[range]]
) -> Iterator[Check]:
    """Compare the parts of a tile that lie in a cell with what the oracle computes from the same pixels."""
    problem = plan.problem
    parts = []
    for axis, span, inside in zip(cells, tile.rectangle, tile.inside, strict=True):
        both = (range(max(cell.start, span.start), min(cell.stop, span.stop)) for cell in axis)
        by = inside.start - span.start
        parts.append([(part.start, range(part.start + by, part.stop + by)) for part in both if part])
    for (y, rows), (x, columns) in product(*parts):
        out = filtered[rows.start : rows.stop, columns.start : columns.stop]
        if isinstance(problem, ChainProblem):
            yield _compare_chain(window, out, problem, rows, columns, (y, x))
            continue
        places = [
            border_indices(size, problem.padding, problem.border)[
                span.start * problem.stride : (span.stop - 1) * problem.stride + KERNEL_SIZE
            ]
            for size, span in ((problem.height, rows), (problem.width, columns))
        ]
        pixels = window[np.ix_(*places)]
        pixels[places[0] == OUTSIDE] = 0
        pixels[:, places[1] == OUTSIDE] = 0
        alone = replace(problem, height=len(places[0]), width=len(places[1]), padding=0, border="zero")
        found = check.check(pixels, out, alone, plan.method_plan.arithmetic)
        if found.worst is not None:
            found.worst.y, found.worst.x = found.worst.y + y, found.worst.x + x
        yield found


def _compare_chain(
    window: NDArray[Any], out: NDArray[Any], problem: ChainProblem, rows: range, columns: range, origin: tuple[int, int]
) -> Check:
    """The same of a chain, from the pixels that its stages reach."""
    halo = Halo.of(problem)
    down, rows_inside = halo.window(problem.height, rows)
    across, columns_inside = halo.window(problem.width, columns)
    pixels = np.ascontiguousarray(window[down.start : down.stop, across.start : across.stop])
    expected = chains.compute(pixels, replace(problem, height=len(down), width=len(across)))
    wanted = expected[rows_inside.start : rows_inside.stop, columns_inside.start : columns_inside.stop]
    return check.equality(out, wanted, *origin)


# --- for the report -----------------------------------------------------------------------------------------------


def _identity(path: Path, identity: Future[dict[str, Any]]) -> dict[str, Any]:
    """Length and hash of the input, once they are known. Raises ImageReadError."""
    try:
        return identity.result()
    except OSError as error:
        raise ImageReadError(f"{path}: cannot be read ({error.strerror}).") from None
