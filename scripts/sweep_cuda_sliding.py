"""Find the tiles of `sliding` on this GPU: every shape of a grid, timed cold and checked, the best ones printed.

    python scripts/sweep_cuda_sliding.py [--work "float32 mix" ...] [--sizes 512,2000x3000] [--output FILE.json]
    python scripts/sweep_cuda_sliding.py --shipped ...                    times the tiles of TILES alone
    python scripts/sweep_cuda_sliding.py --banks 16,64 [--sizes 2048]     shapes of sliding_bank.cu for so many filters

What it prints goes by hand into TILES of edgeconv/methods/cuda/sliding_tiles.py, or into sliding_bank.py. Compiles in
as many processes as there are processors; then each tile is timed as a CUDA graph of runs on arrays that together
exceed the L2, in turn with the floor: first the whole grid with one strip height, then the fastest with others.

The floor of strides 1 to 3 is a device copy of as many bytes, between arrays of whole kilobytes: of others the copy
itself is slower. Of larger strides it is a kernel that reads the sectors of 32 bytes under the windows, and writes the
output.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from script_options import Arguments

from edgeconv.core.choices import BORDERS, CHANNELS
from edgeconv.core.cost import fetched_bytes
from edgeconv.core.filters import CHANNEL_COUNTS, RGB_CHANNELS, WeightSet, custom_filter, named_filter, weight_set
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import INPUT_DTYPES, Problem, make_problem
from edgeconv.errors import one_line
from edgeconv.hardware.cuda.floor import SECTOR_BYTES, THREADS, grids, words
from edgeconv.hardware.cuda.kernels import KernelVariant, load
from edgeconv.methods.base import Plan
from edgeconv.methods.cuda.kernel_args import WARP, round_up
from edgeconv.methods.cuda.sliding import StripPlan, plan_for_large, row_bytes, strip_variant
from edgeconv.methods.cuda.sliding_arithmetic import arithmetic_for
from edgeconv.methods.cuda.sliding_bank import LANES, BankCut, BankPlan, BankShape, shape_of
from edgeconv.methods.cuda.sliding_tiles import CHUNK_BYTES, StripTile
from edgeconv.runtime import check as verify

REAL = "real"
"""Random weights that are no whole numbers; 8-bit pictures have whole ones where no word says so."""
LARGEST_WHOLE = 9
SEED = 3
ROTATED_BYTES = 512 * 2**20
"""The least size of the rotated arrays: several times the L2."""
CHECKED_SAMPLES = 600_000
COPY_BYTES = 1024
"""The size of what the floor moves is a multiple of it."""

WORKS = tuple(
    f"{dtype} {rest}"
    for dtype, rest in product(
        INPUT_DTYPES,
        (
            *("each", "mix", "luma", "each sobel", "mix sobel", "luma sobel", "each kirsch", "mix robinson"),
            *(f"{channels} stride {stride}" for channels, stride in product(("each", "mix"), (2, 3, 4))),
        ),
    )
)
"""What is swept where no work is asked for."""

THREAD_PIXELS, STEP_ROWS, STEPS_AHEAD, WARPS = (1, 2, 4, 8), (1, 2, 3, 4), (0, 1, 2), (1, 2, 4, 8)
RESIDENT_THREADS = (512, 768)
"""What min_blocks asks for, at least; the registers that are left follow from it."""
FIRST_STRIP_ROWS = 16
STRIP_ROWS = (2, 3, 4, 6, 8, 10, 13, 16, 20, 26, 31, 40, 62)
BANK_CUTS = tuple(
    BankCut(across, warps, blocks, steps)
    for across, (warps, blocks), steps in product(
        (1, 2, 3, 4), ((2, 3), (2, 4), (2, 5), (2, 6), (2, 8), (2, 10), (4, 3), (4, 4), (4, 6)), (1, 2, 3, 4, 6, 8)
    )
)
FINALISTS = 6
QUICK_REPEATS, REPEATS = 5, 15


Shape = tuple[int, int]


def shape_named(text: str) -> Shape:
    """Height and width: `512` or `2000x3000`."""
    height, _, width = text.partition("x")
    return int(height), int(width or height)


def problem_of(work: str, shape: Shape, border: Any = "zero") -> Problem:
    """The problem of a work for pictures of one height and width: `float32 mix`, `uint8 each sobel stride 2`.

    A sample type, how channels meet, `real` weights or a filter's name, a stride.
    """
    words, _, stride = work.partition(" stride ")
    parts: list[Any] = words.split()
    if not (2 <= len(parts) <= 3 and parts[1] in CHANNELS):
        raise ValueError(
            f"Work '{work}' is not known: use a sample type, one of {', '.join(CHANNELS)}, and perhaps a filter."
        )
    dtype, channels, *named = parts
    is_luma, groups = channels == "luma", RGB_CHANNELS if channels == "each" else 1
    if named and named[0] != REAL:
        weighted = weight_set(named_filter(named[0]), channels)
    else:
        rng = np.random.default_rng(SEED)
        oihw = (1, RGB_CHANNELS, RGB_CHANNELS // groups, KERNEL_SIZE, KERNEL_SIZE)
        real = rng.uniform(-1, 1, oihw)
        whole = rng.integers(-LARGEST_WHOLE, LARGEST_WHOLE, oihw, endpoint=True)
        drawn = (whole if dtype == "uint8" and not named else real).astype(np.float32)
        weighted = weight_set(custom_filter(drawn[0, 0, 0]), "luma") if is_luma else WeightSet(drawn, groups)
    mode: Any = "raw" if dtype.startswith("float") else "abs"
    return make_problem(
        (*shape, RGB_CHANNELS), dtype, weighted, stride=int(stride or 1), border=border, output_mode=mode
    )


def tiles(problem: Problem) -> Iterator[StripTile]:
    """The grid."""
    pairs = arithmetic_for(problem) == "mma"
    for pixels, rows, ahead, warps, threads in product(THREAD_PIXELS, STEP_ROWS, STEPS_AHEAD, WARPS, RESIDENT_THREADS):
        if not (pairs and (rows % 2 or pixels < 4)):
            yield StripTile(pixels, rows, ahead, warps, threads // (WARP * warps), FIRST_STRIP_ROWS)


def variant(problem: Problem, tile: StripTile) -> KernelVariant:
    """The kernel for pictures of this one's width."""
    return strip_variant(problem, tile, *(row % CHUNK_BYTES == 0 for row in row_bytes(problem)))


def compiles(asked: tuple[Problem, StripTile]) -> bool:
    """Whether it does; what comes of it stays in CuPy's cache on disk."""
    try:
        load(variant(*asked))
    except Exception:  # too much shared memory, or a shape that the layout does not allow: not a tile
        return False
    return True


def prepare(problem: Problem) -> None:
    """Compile what `sliding` takes for a problem, into CuPy's cache."""
    plan_for_large(problem)


def usable_tiles(problems: list[Problem]) -> list[list[StripTile]]:
    """The tiles of the grid that compile for each problem."""
    grids = [list(tiles(problem)) for problem in problems]
    asked = [(problem, tile) for problem, grid in zip(problems, grids, strict=True) for tile in grid]
    good = iter(in_processes(compiles, asked))
    return [[tile for tile in grid if next(good)] for grid in grids]


def in_processes(call: Callable[[Any], Any], asked: list[Any]) -> list[Any]:
    """What `call` gives for each; by processes that have ended, with their use of the GPU, before anything is timed."""
    if not asked:
        return []
    with get_context("spawn").Pool() as pool:
        return pool.map(call, asked, chunksize=4)


def random_pictures(problem: Problem, count: int) -> Any:
    """`count` pictures of the same noise in one array."""
    import cupy

    rng = np.random.default_rng(SEED + 1)
    shape = problem.input_shape
    if problem.dtype.kind == "u":
        one = rng.integers(0, np.iinfo(problem.dtype).max, shape, dtype=problem.dtype, endpoint=True)
    else:
        one = rng.uniform(-1, 1, shape).astype(problem.dtype)
    pictures = cupy.empty((count, *shape), problem.dtype)
    pictures[:] = cupy.asarray(one)
    return pictures


def captured(put: Callable[[], None]) -> Callable[[], None]:
    """`put` as the launch of one graph."""
    import cupy

    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        put()  # compile, load and allocate before the capture
        stream.synchronize()
        stream.begin_capture()
        put()
        graph = stream.end_capture()
    return lambda: graph.launch()


def put_copies(pictures: Any, copies: Any) -> None:
    """A device copy of each picture."""
    import cupy

    stream = cupy.cuda.get_current_stream()
    for picture, copy in zip(pictures, copies, strict=True):
        copy.data.copy_from_device_async(picture.data, picture.nbytes, stream)


def put_floor(problem: Problem, sources: Any, targets: Any, variant: KernelVariant, blocks: int) -> None:
    """One of the kernels of floor.cu for each picture: what touching its bytes takes."""
    reads, writes = words(fetched_bytes(problem, SECTOR_BYTES)), words(problem.output_bytes)
    for source, target in zip(sources, targets, strict=True):
        load(variant)((blocks,), (THREADS,), (source, target, np.int64(reads), np.int64(writes)))


def put_runs(plan: Plan, pictures: Any, outs: Any) -> None:
    """A run on each pair of arrays."""
    for picture, out in zip(pictures, outs, strict=True):
        plan.run(picture, out)


def seconds_of(call: Callable[[], None]) -> float:
    """Device time of a call between two events."""
    import cupy

    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    start.record()
    call()
    stop.record()
    stop.synchronize()
    return float(cupy.cuda.get_elapsed_time(start, stop)) / 1e3


class TileBench:
    """The arrays of one work at one size, and what a tile takes on them."""

    def __init__(self, problem: Problem) -> None:
        import cupy

        self.problem = problem
        self.pair_bytes = self.problem.input_bytes + self.problem.output_bytes
        self.count = max(3, -(-ROTATED_BYTES // self.pair_bytes))
        self.pictures = random_pictures(self.problem, self.count)
        self.outs = cupy.empty((self.count, *self.problem.output_shape), self.problem.output_dtype)
        half = round_up(self.pair_bytes // 2, COPY_BYTES)
        halves = cupy.zeros((2, self.count, half), cupy.uint8)  # a copy moves as much as a run does
        self.floor = captured(lambda: put_copies(halves[0], halves[1]))
        if problem.stride > KERNEL_SIZE:  # a picture and an output fit the two halves, laid behind one another
            picture = round_up(problem.input_bytes, COPY_BYTES)
            sources, targets = (cupy.zeros((self.count, size), cupy.uint8) for size in (picture, half))
            multiprocessors = cupy.cuda.Device().attributes["MultiProcessorCount"]
            shapes = grids(words(fetched_bytes(problem, SECTOR_BYTES)), words(problem.output_bytes), multiprocessors)
            calls = [captured(partial(put_floor, problem, sources, targets, *shape)) for shape in shapes]
            self.floor = min(calls, key=lambda call: min(seconds_of(call) for _ in range(QUICK_REPEATS)))

    def measure(self, cut: StripTile | BankShape | None, repeats: int, check: bool = False) -> dict[str, Any]:
        """Seconds and share of the floor; whether it is right, where asked. None: as shipped."""
        plan: Plan
        if cut is None:
            plan, name = plan_for_large(self.problem), "tile"
        elif isinstance(cut, StripTile):
            plan, name = StripPlan(self.problem, tile=cut), "tile"
        else:
            plan, name = BankPlan(self.problem, shape=cut), "shape"
        run = captured(lambda: put_runs(plan, self.pictures, self.outs))
        for call in (self.floor, run):
            seconds_of(call)
        floors, runs = [], []
        for _ in range(repeats):
            floors.append(seconds_of(self.floor) / self.count)
            runs.append(seconds_of(run) / self.count)
        seconds, floor = sorted(runs)[repeats // 2], sorted(floors)[repeats // 2]
        share = floor / seconds
        passed = None
        if check:
            picture, out = self.pictures[0].get(), self.outs[0].get()
            passed = verify.check(picture, out, self.problem, max_samples=CHECKED_SAMPLES).passed
        return {
            name: plan.choice if cut is None else asdict(cut),
            "seconds": seconds,
            "share_of_floor": share,
            "passed": passed,
        }


def best(problem: Problem, grid: list[StripTile]) -> list[dict[str, Any]]:
    """The finalists with every height of strips, the fastest first and checked."""
    bench = TileBench(problem)
    first = sorted((bench.measure(tile, QUICK_REPEATS) for tile in grid), key=lambda found: float(found["seconds"]))
    tried = [
        bench.measure(replace(StripTile(**found["tile"]), strip_rows=rows), REPEATS)
        for found in first[:FINALISTS]
        for rows in STRIP_ROWS
    ]
    tried.sort(key=lambda found: float(found["seconds"]))
    return [bench.measure(StripTile(**found["tile"]), REPEATS, check=True) for found in tried[:FINALISTS]]


def show(result: dict[str, Any], cut: str) -> None:
    """A line for each shape that was measured."""
    for row in result["best"]:
        right = "ok" if row["passed"] else "WRONG"
        shape = " ".join(str(value) for value in row[cut].values())
        seconds, share = row["seconds"] * 1e6, row["share_of_floor"]
        print(f"{result['work']:22} {result['size']:>9} {seconds:8.2f} us {share:.3f} {right} {shape}", flush=True)


def best_banks(filters: int, size: int, channels: int, stride: int, dtype: str) -> list[dict[str, Any]]:
    """Every shape that leaves less than a third of its outputs unused, the fastest first; all are checked."""
    from cupy.cuda.compiler import CompileException

    kernels = np.random.default_rng(SEED).standard_normal((filters, channels, KERNEL_SIZE, KERNEL_SIZE))
    weights = weight_set(custom_filter(kernels), "mix", in_channels=channels)
    bench = TileBench(make_problem((size, size, channels), dtype, weights, stride=stride))
    found = []
    for lanes, cut in product(LANES, BANK_CUTS):
        shape = shape_of(bench.problem, lanes, cut)
        if -(-filters // shape.outputs(1)) * shape.outputs(1) * 3 > filters * 4:
            continue
        try:
            found.append(bench.measure(shape, QUICK_REPEATS, check=True))
        except (RuntimeError, CompileException) as error:  # a shape that does not compile, or that does not fit
            print(f"{shape}: {one_line(error, 80)}", file=sys.stderr)
    return sorted(found, key=lambda row: float(row["seconds"]))


def main() -> None:
    """Sweep what is asked for, print the best, write all that was printed."""
    parser = Arguments(__doc__)
    parser.add_argument("--work", nargs="*", default=list(WORKS), help="Only these: `float32 mix sobel stride 2` ….")
    parser.add_argument("--banks", help="Numbers of filters, with commas: sweep banks of them alone.")
    parser.add_argument(
        "--bank-channels", type=int, choices=CHANNEL_COUNTS, default=3, help="Of the pictures of --banks."
    )
    parser.add_argument("--bank-stride", type=int, choices=(1, 2, 3), default=1, help="Of --banks.")
    parser.add_argument("--bank-type", choices=("float32", "float64"), default="float32", help="Samples of --banks.")
    parser.add_argument(
        "--sizes", default="512,1024,2048,4096", help="Sides of the pictures, or HEIGHTxWIDTH, in pixels."
    )
    parser.add_argument("--border", choices=BORDERS, default="zero", help="What stands outside the pictures.")
    parser.add_argument("--shipped", action="store_true", help="Time what `sliding` takes, and no grid.")
    parser.add_argument("--output", type=Path, help="A file for the figures, as JSON.")
    arguments = parser.parse_args()
    results = []
    if arguments.banks:
        for filters, size in product(map(int, arguments.banks.split(",")), map(int, arguments.sizes.split(","))):
            found = best_banks(filters, size, arguments.bank_channels, arguments.bank_stride, arguments.bank_type)
            work = f"bank {arguments.bank_type} c{arguments.bank_channels} k{filters} s{arguments.bank_stride}"
            results.append({"work": work, "size": size, "best": found})
            show(results[-1], "shape")
        arguments.work = []
    cases = list(product(arguments.work, arguments.sizes.split(",")))
    try:
        problems = [problem_of(work, shape_named(size), arguments.border) for work, size in cases]
    except (ValueError, TypeError) as error:
        parser.error(one_line(error))
    if arguments.shipped:
        in_processes(prepare, problems)
    grids = [None] * len(cases) if arguments.shipped else usable_tiles(problems)
    for (work, size), problem, grid in zip(cases, problems, grids, strict=True):
        import cupy

        found = [TileBench(problem).measure(None, REPEATS, check=True)] if grid is None else best(problem, grid)
        cupy.get_default_memory_pool().free_all_blocks()
        results.append({"work": work, "size": size, "border": arguments.border, "best": found})
        show(results[-1], "tile")
    if arguments.output:
        arguments.output.write_text(
            json.dumps({"benchmark": "sweep_cuda_sliding", "results": results}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
