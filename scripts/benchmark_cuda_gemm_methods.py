"""Time im2col, implicit and cudnn on one NVIDIA GPU beside a device copy, and write the raw figures as JSON.

    python scripts/benchmark_cuda_gemm_methods.py OUTPUT_FOLDER [--only implicit] [--sizes 4096,512]

One file a method: cuda_im2col.json, cuda_implicit.json, cuda_cudnn.json. Every row is checked against the oracle
first. Times are of one run on a stream, in seconds: the median over repeats of a CUDA graph that holds RUNS runs,
each on arrays of its own, so that the L2 holds none of what a run reads (`l2_state` cold); where a library cannot be
captured the runs are put on the stream one by one and `how` says so. A device copy of the same arrays is timed
in turn with it, and the floor is the fewest bytes of the work at that copy's bandwidth.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cupy
import numpy as np

from edgeconv.core.choices import Channels
from edgeconv.core.filters import RGB_CHANNELS, WeightSet, named_filter, weight_set
from edgeconv.core.problem import Problem, StoredMode, make_problem
from edgeconv.core.timing import summarize
from edgeconv.methods import require
from edgeconv.methods.base import Plan
from edgeconv.methods.cuda import libcudnn
from edgeconv.methods.cuda.im2col import banded_plan
from edgeconv.methods.options import MATHS, Options
from edgeconv.runtime import check as verify

SIZES = (128, 256, 512, 1024, 2048, 4096)
STRIDES = (1, 2, 3)
ROTATED_BYTES = 256 * 2**20
"""What the rotated arrays take at least: several times the L2."""
MAX_ROTATED = 700
REPEATS = 15
SECONDS_A_REPEAT = 0.004
CHECKED_SAMPLES = 200_000
SEED = 3

Prepare = Callable[[Problem], Plan]


@dataclass(frozen=True)
class Row:
    """One piece of work by one way of doing it."""

    name: str
    size: int
    stride: int
    dtype: str
    filter: str
    channels: Channels
    output_mode: StoredMode
    options: Options
    prepare: Prepare
    extra: tuple[tuple[str, Any], ...] = ()

    def problem(self) -> Problem:
        """The problem with random weights, or a named filter's."""
        rng = np.random.default_rng(SEED)
        if self.filter == "random":
            shape = (1, RGB_CHANNELS, RGB_CHANNELS, 3, 3)
            weights = WeightSet(rng.uniform(-1, 1, shape).astype(np.float32), groups=1)
        else:
            weights = weight_set(named_filter(self.filter), self.channels)
        return make_problem(
            (self.size, self.size, RGB_CHANNELS),
            self.dtype,
            weights,
            stride=self.stride,
            output_mode=self.output_mode,
        )


def method(name: str, options: Options) -> Prepare:
    """The method of the table."""
    return lambda problem: require(name, "cuda").prepare(problem, options)


def float_rows(label: str, sizes: tuple[int, ...], options: Options, prepare: Prepare) -> list[Row]:
    """float32, 3→3 mix with random weights, every size and stride."""
    return [
        Row(label, size, stride, "float32", "random", "mix", "raw", options, prepare)
        for size in sizes
        for stride in STRIDES
    ]


def im2col_rows(sizes: tuple[int, ...]) -> list[Row]:
    """Bands of a block, bands of launches in the L2, columns through memory, and the vendor's GEMM."""
    own, vendor = Options(), Options(gemm="cublas")
    rows = float_rows("im2col own", sizes, own, method("im2col", own))
    rows += float_rows("im2col cublas", sizes, vendor, method("im2col", vendor))
    largest = max(sizes)
    for label, options in (("own", own), ("cublas", vendor)):
        for mebibytes in (8, 16, 32, 64, 512):
            prepare = _banded(options, mebibytes * 2**20)
            row = Row(f"im2col {label} in bands", largest, 1, "float32", "random", "mix", "raw", options, prepare)
            rows.append(replace(row, extra=(("band_mebibytes", mebibytes),)))
    rows += work_rows("im2col", largest, own)
    return rows


def _banded(options: Options, band_bytes: int) -> Prepare:
    unlimited = replace(options, workspace_limit_bytes=2**40)
    return lambda problem: banded_plan(problem, unlimited, band_bytes)


def work_rows(name: str, size: int, options: Options) -> list[Row]:
    """The fused 8-bit and half pieces of work."""
    prepare = method(name, options)
    label = name if options.math == "fma" else f"{name} {options.math}"
    return [
        Row(label, size, 1, "uint8", "laplacian8", "each", "abs", options, prepare),
        Row(label, size, 1, "uint8", "laplacian8", "mix", "abs", options, prepare),
        Row(label, size, 1, "uint8", "sobel", "each", "abs", options, prepare),
        Row(label, size, 1, "float16", "random", "mix", "raw", options, prepare),
    ]


def implicit_rows(sizes: tuple[int, ...]) -> list[Row]:
    """All three kinds of arithmetic."""
    rows = []
    for math in MATHS:
        options = Options(math=math)
        rows += float_rows(f"implicit {math}", sizes, options, method("implicit", options))
        rows += work_rows("implicit", max(sizes), options)
    return rows


def cudnn_rows(sizes: tuple[int, ...]) -> list[Row]:
    """The heuristic's choice and the measured one: float32 at every size, the tensor cores at the largest."""
    rows = []
    for math in MATHS:
        for find in (False, True):
            options = Options(math=math, cudnn_find=find, workspace_limit_bytes=4 * 2**30)
            label = f"cudnn {math}{' find' if find else ''}"
            chosen = sizes if math == "fma" else (max(sizes),)
            rows += float_rows(label, chosen, options, method("cudnn", options))
    rows += work_rows("cudnn", max(sizes), Options())
    rows += work_rows("cudnn", max(sizes), Options(math="half", cudnn_find=True))
    return rows


ROWS = {"im2col": im2col_rows, "implicit": implicit_rows, "cudnn": cudnn_rows}


# --- arrays, runs and clocks ------------------------------------------------------------------------------------


def random_pictures(problem: Problem, count: int) -> Any:
    """`count` pictures of noise in one array."""
    rng = np.random.default_rng(SEED + 1)
    shape = problem.input_shape
    if problem.dtype.kind == "u":
        one = rng.integers(0, np.iinfo(problem.dtype).max, shape, dtype=problem.dtype, endpoint=True)
    else:
        one = rng.uniform(-1, 1, shape).astype(problem.dtype)
    pictures = cupy.empty((count, *shape), problem.dtype)
    pictures[:] = cupy.asarray(one)
    return pictures


def captured(put: Callable[[], None]) -> tuple[Callable[[], None], str]:
    """`put` as one graph launch where it can be captured, else as it is."""
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        put()  # compile, load and allocate before the capture
        stream.synchronize()
        stream.begin_capture()
        try:
            put()
            graph = stream.end_capture()
        except Exception as error:
            with suppress(Exception):
                stream.end_capture()
            return put, f"stream ({type(error).__name__})"
    return (lambda: graph.launch()), "graph"


def put_runs(plan: Plan, pictures: Any, outs: Any) -> None:
    """A run on each pair of arrays."""
    for picture, out in zip(pictures, outs, strict=True):
        plan.run(picture, out)


def put_copies(pictures: Any, copies: Any) -> None:
    """A device copy of each picture."""
    stream = cupy.cuda.get_current_stream()
    for picture, copy in zip(pictures, copies, strict=True):
        copy.data.copy_from_device_async(picture.data, picture.nbytes, stream)


def seconds_of(call: Callable[[], None], times: int = 1) -> float:
    """Device time of some calls between two events."""
    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    start.record()
    for _ in range(times):
        call()
    stop.record()
    stop.synchronize()
    return float(cupy.cuda.get_elapsed_time(start, stop)) / 1e3


def measure(row: Row) -> dict[str, Any]:
    """Check a row, then time it in turn with a copy."""
    problem = row.problem()
    prepare_start = time.perf_counter()
    plan = row.prepare(problem)
    cupy.cuda.get_current_stream().synchronize()
    prepare_seconds = time.perf_counter() - prepare_start

    count = int(np.clip(ROTATED_BYTES // (problem.input_bytes + problem.output_bytes) + 1, 2, MAX_ROTATED))
    pictures = random_pictures(problem, count)
    outs = cupy.empty((count, *problem.output_shape), problem.output_dtype)
    copies = cupy.empty_like(pictures)
    outs.view(np.uint8).fill(0xFF)
    plan.run(pictures[0], outs[0])
    check = verify.check(pictures[0].get(), outs[0].get(), problem, plan.arithmetic, CHECKED_SAMPLES)

    run_call, how = captured(lambda: put_runs(plan, pictures, outs))
    copy_call, _ = captured(lambda: put_copies(pictures, copies))
    runs, copied = [], []
    seconds_of(run_call)
    inner = max(1, int(SECONDS_A_REPEAT / max(seconds_of(run_call), 1e-6)))
    for _ in range(REPEATS):
        copied.append(seconds_of(copy_call) / count)
        runs.append(seconds_of(run_call, inner) / count / inner)
    run, copy_time = summarize(runs), summarize(copied)
    bandwidth = 2 * problem.input_bytes / copy_time.median_seconds
    fewest = problem.input_bytes + problem.output_bytes
    floor = fewest / bandwidth
    own_floor = None if plan.moved_bytes is None else plan.moved_bytes / bandwidth
    result = {
        "row": row.name,
        "size": row.size,
        "stride": row.stride,
        "dtype": row.dtype,
        "filter": row.filter,
        "channels": row.channels,
        "output_mode": row.output_mode,
        "math": row.options.math,
        **dict(row.extra),
        "median_seconds": run.median_seconds,
        "p10_seconds": run.p10_seconds,
        "p90_seconds": run.p90_seconds,
        "n": run.n,
        "runs_a_sample": count * inner,
        "how": how,
        "l2_state": "cold",
        "copy_median_seconds": copy_time.median_seconds,
        "copy_bytes_per_second": bandwidth,
        "fewest_bytes": fewest,
        "floor_seconds": floor,
        "share_of_floor": floor / run.median_seconds,
        "moved_bytes": plan.moved_bytes,
        "own_floor_seconds": own_floor,
        "times_own_floor": None if own_floor is None else run.median_seconds / own_floor,
        "prepare_seconds": prepare_seconds,
        "workspace_bytes": plan.workspace_bytes,
        "passed": check.passed,
        "tolerance": check.tolerance,
        "relative_error": check.relative_error,
        "choice": plan.choice,
    }
    return result


def describe() -> dict[str, Any]:
    """The GPU and the libraries."""
    runtime = cupy.cuda.runtime
    properties = runtime.getDeviceProperties(cupy.cuda.Device().id)
    return {
        "device": properties["name"].decode(),
        "multiprocessors": properties["multiProcessorCount"],
        "l2_bytes": properties["l2CacheSize"],
        "driver_cuda_version": runtime.driverGetVersion(),
        "cupy": cupy.__version__,
        "cudnn": libcudnn.version() if libcudnn.unavailable_reason() is None else None,
        "python": platform.python_version(),
    }


def main() -> None:
    """Measure the rows asked for and write a file a method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default=",".join(ROWS))
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    arguments = parser.parse_args()
    sizes = tuple(int(size) for size in arguments.sizes.split(","))
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.only.split(","):
        results = []
        for row in ROWS[name](sizes):
            result = measure(row)
            cupy.get_default_memory_pool().free_all_blocks()
            results.append(result)
            print(
                f"{result['row']:24} {row.size:5} s{row.stride} {row.dtype:8} {row.filter:10} {row.channels:4}"
                f" {result.get('band_mebibytes', ''):>4} {result['median_seconds'] * 1e6:9.1f} us"
                f"  copy {result['copy_median_seconds'] * 1e6:7.1f}  share {result['share_of_floor']:.3f}"
                f"  own x{result['times_own_floor'] or 0:.2f}  {'ok' if result['passed'] else 'WRONG'}"
                f" {result['relative_error']:.1e} {result['how']}",
                flush=True,
            )
        document = {"benchmark": "benchmark_cuda_gemm_methods", "machine": describe(), "rows": results}
        (arguments.folder / f"cuda_{name}.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
