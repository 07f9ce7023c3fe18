"""Find the tiles of `sliding` on this GPU: every shape of a grid, timed cold and checked, the best ones printed.

    python scripts/sweep_cuda_sliding.py [--work "float32 mix" ...] [--sizes 512,4096] [--output FILE.json]
    python scripts/sweep_cuda_sliding.py --banks 16,64 [--sizes 2048]     shapes of sliding_bank.cu for so many filters

What it prints goes by hand into TILES of edgeconv/methods/cuda/sliding_tiles.py, or into sliding_bank.py. Compiles in
as many processes as there are processors; then each tile is timed as a CUDA graph of runs on arrays that together
exceed the L2, in turn with device copies of as many bytes: first the whole grid with one strip height, then the fastest
with other heights.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from itertools import product
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
from script_options import Arguments

from edgeconv.core.filters import RGB_CHANNELS, WeightSet, custom_filter, named_filter, weight_set
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem, make_problem
from edgeconv.hardware.cuda.kernels import KernelVariant, load
from edgeconv.methods.base import Plan
from edgeconv.methods.cuda.kernel_args import WARP
from edgeconv.methods.cuda.sliding import StripPlan, strip_variant
from edgeconv.methods.cuda.sliding_arithmetic import arithmetic_for
from edgeconv.methods.cuda.sliding_bank import LANES, MOST_PER_LANE, BankPlan, BankShape, blocks_for
from edgeconv.methods.cuda.sliding_tiles import StripTile
from edgeconv.runtime import check as verify

REAL, WHOLE = "random real", "random whole"
"""Weights; any other word is the name of a filter."""
LARGEST_WHOLE = 9
SEED = 3
ROTATED_BYTES = 512 * 2**20
"""The least size of the rotated arrays: several times the L2."""
CHECKED_SAMPLES = 600_000

WORKS: dict[str, tuple[str, Any, str, int]] = {
    "float32 mix": ("float32", "mix", REAL, 1),
    "float32 mix stride 2": ("float32", "mix", REAL, 2),
    "float32 mix stride 3": ("float32", "mix", REAL, 3),
    "float32 each": ("float32", "each", REAL, 1),
    "float32 sobel": ("float32", "each", "sobel", 1),
    "uint8 each": ("uint8", "each", WHOLE, 1),
    "uint8 each stride 2": ("uint8", "each", WHOLE, 2),
    "uint8 mix": ("uint8", "mix", WHOLE, 1),
    "uint8 mix real": ("uint8", "mix", REAL, 1),
    "uint8 sobel": ("uint8", "each", "sobel", 1),
    "uint8 sobel stride 2": ("uint8", "each", "sobel", 2),
    "uint16 each": ("uint16", "each", REAL, 1),
    "uint16 each stride 2": ("uint16", "each", REAL, 2),
    "uint16 each stride 3": ("uint16", "each", REAL, 3),
    "uint8 each stride 3": ("uint8", "each", WHOLE, 3),
    "uint16 sobel": ("uint16", "each", "sobel", 1),
    "float16 mix": ("float16", "mix", REAL, 1),
    "float16 sobel": ("float16", "each", "sobel", 1),
}

THREAD_PIXELS, STEP_ROWS, STEPS_AHEAD, WARPS = (1, 2, 4, 8), (1, 2, 3, 4), (1, 2), (2, 4, 8)
RESIDENT_THREADS = (512, 768)
"""What min_blocks asks for, at least; the registers that are left follow from it."""
FIRST_STRIP_ROWS = 16
STRIP_ROWS = (2, 3, 4, 6, 8, 10, 13, 16, 20, 26, 31, 40, 62)
BANK_RUNS = (6, 12, 24)
FINALISTS = 6
QUICK_REPEATS, REPEATS = 5, 15


def problem_of(work: str, size: int) -> Problem:
    """The problem of a work at a size."""
    dtype, channels, weights, stride = WORKS[work]
    if weights in (REAL, WHOLE):
        rng = np.random.default_rng(SEED)
        groups = RGB_CHANNELS if channels == "each" else 1
        shape = (1, RGB_CHANNELS, RGB_CHANNELS // groups, KERNEL_SIZE, KERNEL_SIZE)
        real = rng.uniform(-1, 1, shape)
        whole = rng.integers(-LARGEST_WHOLE, LARGEST_WHOLE, shape, endpoint=True)
        weighted = WeightSet((real if weights == REAL else whole).astype(np.float32), groups)
    else:
        weighted = weight_set(named_filter(weights), channels)
    mode: Any = "raw" if dtype.startswith("float") else "abs"
    return make_problem((size, size, RGB_CHANNELS), dtype, weighted, stride=stride, output_mode=mode)


def tiles(work: str) -> Iterator[StripTile]:
    """The grid."""
    pairs = arithmetic_for(problem_of(work, WARP)) == "mma"
    for pixels, rows, ahead, warps, threads in product(THREAD_PIXELS, STEP_ROWS, STEPS_AHEAD, WARPS, RESIDENT_THREADS):
        if not (pairs and (rows % 2 or pixels < 4)):
            yield StripTile(pixels, rows, ahead, warps, threads // (WARP * warps), FIRST_STRIP_ROWS)


def variant(work: str, tile: StripTile) -> KernelVariant:
    """The kernel for rows that start on 16 bytes."""
    return strip_variant(problem_of(work, 16 * WARP), tile, True, True)


def compiles(asked: tuple[str, StripTile]) -> bool:
    """Whether it does; what comes of it stays in CuPy's cache on disk."""
    try:
        load(variant(*asked))
    except Exception:  # too much shared memory, or a shape that the layout does not allow: not a tile
        return False
    return True


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


class Bench:
    """The arrays of one work at one size, and what a tile takes on them."""

    def __init__(self, problem: Problem) -> None:
        import cupy

        self.problem = problem
        self.pair_bytes = self.problem.input_bytes + self.problem.output_bytes
        self.count = max(3, -(-ROTATED_BYTES // self.pair_bytes))
        self.pictures = random_pictures(self.problem, self.count)
        self.outs = cupy.empty((self.count, *self.problem.output_shape), self.problem.output_dtype)
        halves = cupy.empty((2, self.count, self.pair_bytes // 2), cupy.uint8)  # a copy moves as much as a run does
        self.copy = captured(lambda: put_copies(halves[0], halves[1]))

    def measure(self, cut: StripTile | BankShape, repeats: int, check: bool = False) -> dict[str, Any]:
        """Seconds and share of the floor; whether it is right, where asked."""
        plan: Plan
        if isinstance(cut, StripTile):
            plan, name = StripPlan(self.problem, tile=cut), "tile"
        else:
            plan, name = BankPlan(self.problem, shape=cut), "shape"
        run = captured(lambda: put_runs(plan, self.pictures, self.outs))
        for call in (self.copy, run):
            seconds_of(call)
        copied, runs = [], []
        for _ in range(repeats):
            copied.append(seconds_of(self.copy) / self.count)
            runs.append(seconds_of(run) / self.count)
        seconds, copy = sorted(runs)[repeats // 2], sorted(copied)[repeats // 2]
        share = copy / seconds
        passed = None
        if check:
            picture, out = self.pictures[0].get(), self.outs[0].get()
            passed = verify.check(picture, out, self.problem, max_samples=CHECKED_SAMPLES).passed
        return {
            name: asdict(cut),
            "seconds": seconds,
            "share_of_floor": share,
            "passed": passed,
        }


def best(work: str, size: int, grid: list[StripTile]) -> list[dict[str, Any]]:
    """The finalists with every height of strips, the fastest first and checked."""
    bench = Bench(problem_of(work, size))
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
        print(f"{result['work']:22} {result['size']:5} {seconds:8.2f} us {share:.3f} {right} {shape}", flush=True)


def best_banks(filters: int, size: int) -> list[dict[str, Any]]:
    """Every shape that leaves less than a third of its slots idle, the fastest first; all are checked."""
    kernels = np.random.default_rng(SEED).standard_normal((filters, RGB_CHANNELS, KERNEL_SIZE, KERNEL_SIZE))
    weights = weight_set(custom_filter(kernels), "mix")
    bench = Bench(make_problem((size, size, RGB_CHANNELS), "float32", weights))
    found = []
    for lanes, per_lane, run, warps in product(LANES, range(1, MOST_PER_LANE + 1), BANK_RUNS, WARPS):
        slots = lanes * per_lane
        if -(-filters // slots) * slots * 3 > filters * 4:
            continue
        blocks = blocks_for(per_lane * kernels[0].size) * 4 // warps
        if blocks:
            found.append(bench.measure(BankShape(lanes, per_lane, run, warps, blocks), QUICK_REPEATS, check=True))
    return sorted(found, key=lambda row: float(row["seconds"]))


def main() -> None:
    """Sweep what is asked for, print the best, write all that was printed."""
    parser = Arguments(__doc__)
    parser.add_argument("--work", nargs="*", choices=WORKS, default=list(WORKS), help="Only these cases. Default: all.")
    parser.add_argument("--banks", help="Numbers of filters, with commas: sweep banks of them alone.")
    parser.add_argument("--sizes", default="512,1024,2048,4096", help="Sides of the pictures, in pixels.")
    parser.add_argument("--output", type=Path, help="Write the figures to this file, as JSON.")
    arguments = parser.parse_args()
    results = []
    if arguments.banks:
        for filters, size in product(map(int, arguments.banks.split(",")), map(int, arguments.sizes.split(","))):
            found = best_banks(filters, size)
            results.append({"work": f"bank of {filters}", "size": size, "best": found})
            show(results[-1], "shape")
        arguments.work = []
    asked = [(work, tile) for work in arguments.work for tile in tiles(work)]
    with Pool(os.cpu_count()) as pool:
        usable = [pair for pair, good in zip(asked, pool.map(compiles, asked, chunksize=4), strict=True) if good]
    for work, size in product(arguments.work, map(int, arguments.sizes.split(","))):
        import cupy

        found = best(work, size, [tile for name, tile in usable if name == work])
        cupy.get_default_memory_pool().free_all_blocks()
        results.append({"work": work, "size": size, "best": found})
        show(results[-1], "tile")
    if arguments.output:
        arguments.output.write_text(
            json.dumps({"benchmark": "sweep_cuda_sliding", "results": results}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
