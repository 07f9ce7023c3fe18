"""Time the GEMM ladder beside cuBLAS on one NVIDIA GPU and write the raw figures as JSON.

    python scripts/benchmark_gemm_ladder.py OUTPUT.json [--sizes 512,1024,2048,4096,8192]

Square products of random numbers, float32 (multiply-adds, no TF32 on either side) and float64. The result of every
rung is checked first on some rows against float64. Times are the median of single products between events, in seconds;
operands stay where they are (`l2_state` warm), as in use of a library.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import cupy
import numpy as np

from edgeconv.bench.ladders.gemm_kernels import REALS, STEPS, GemmBlock, prepare
from edgeconv.core.timing import summarize

SIZES = (512, 1024, 2048, 4096, 8192)
CHECKED_ROWS = 8
SECONDS_A_RUNG = 0.25
MOST_REPEATS = 40


def seconds_of(call: Any) -> float:
    """Device time of one call."""
    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    start.record()
    call()
    stop.record()
    stop.synchronize()
    return float(cupy.cuda.get_elapsed_time(start, stop)) / 1e3


def measure(name: str, dtype: str, size: int, block: GemmBlock | None, a: Any, b: Any, expected: Any) -> dict[str, Any]:
    """Check a rung on the first rows, then time it."""
    c = cupy.full((size, size), np.nan, dtype)
    product = prepare(name, dtype, size, size, size, block)
    first = seconds_of(lambda: product(a, b, c))
    error = float(np.abs(c[:CHECKED_ROWS].get() - expected).max() / np.abs(expected).max())
    again = seconds_of(lambda: product(a, b, c))
    repeats = int(np.clip(SECONDS_A_RUNG / again, 3, MOST_REPEATS))
    times = summarize([seconds_of(lambda: product(a, b, c)) for _ in range(repeats)])
    return {
        "step": name,
        "dtype": dtype,
        "size": size,
        "block": str(block) if block else None,
        "first_seconds": first,
        "median_seconds": times.median_seconds,
        "p10_seconds": times.p10_seconds,
        "p90_seconds": times.p90_seconds,
        "n": times.n,
        "l2_state": "warm",
        "gflops": 2 * size**3 / times.median_seconds / 1e9,
        "relative_error": error,
    }


def main() -> None:
    """Every rung with every block shape at the sizes asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    arguments = parser.parse_args()
    results = []
    for dtype in REALS:
        for size in map(int, arguments.sizes.split(",")):
            rng = np.random.default_rng(size)
            a, b = (rng.uniform(-1, 1, (size, size)).astype(dtype) for _ in range(2))
            expected = a[:CHECKED_ROWS].astype(np.float64) @ b.astype(np.float64)
            on_gpu = cupy.asarray(a), cupy.asarray(b)
            rows = [
                measure(entry.name, dtype, size, block, *on_gpu, expected)
                for entry in STEPS
                for block in (entry.blocks[dtype] or (None,))
            ]
            vendor = rows[-1]["gflops"]
            for row in rows:
                row["share_of_cublas"] = row["gflops"] / vendor
                print(
                    f"{row['step']:14} {dtype} {size:5} {row['block'] or '':26} {row['gflops']:9.0f} GFLOPS"
                    f" {row['share_of_cublas']:.3f} of cuBLAS, error {row['relative_error']:.1e}",
                    flush=True,
                )
            results += rows
    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    machine = {"device": properties["name"].decode(), "cupy": cupy.__version__}
    document = {"benchmark": "benchmark_gemm_ladder", "machine": machine, "rows": results}
    arguments.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
