"""Time the CUDA method `sliding` on one NVIDIA GPU against the floor of its work, and write the raw figures as JSON.

    python scripts/benchmark_cuda_sliding.py OUTPUT.json

Every row is checked against the oracle first. Large pictures: the median over repeats of a CUDA graph that holds one
run on each of several pairs of arrays, more than the L2 holds, in turn with device copies of the same arrays; the
floor is the fewest bytes of the work at that copy's bandwidth. Small ones: the time of a call among many put on a
stream one after another from Python, the launch included. Weights are random: real numbers for pictures of floats,
whole ones from -9 to 9 for the exact sums of 8-bit pictures, with a row of real ones beside them.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import cupy
import numpy as np
from benchmark_cuda_gemm_methods import captured, describe, put_copies, put_runs, random_pictures, seconds_of

from edgeconv.core.choices import Channels
from edgeconv.core.filters import RGB_CHANNELS, WeightSet, named_filter, weight_set
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem, StoredMode, make_problem
from edgeconv.core.timing import summarize
from edgeconv.methods import require
from edgeconv.methods.options import Options
from edgeconv.runtime import check as verify

REAL, WHOLE = "random real", "random whole"
LARGEST_WHOLE = 9
SEED = 3

ROTATED_BYTES = 512 * 2**20
"""What the rotated arrays take at least: several times the L2."""
REPEATS = 25
CALLS = 2000
CHECKED_SAMPLES = 600_000


@dataclass(frozen=True)
class Row:
    """A piece of work and what it should reach: a share of the floor, or seconds a call."""

    size: int
    dtype: str
    channels: Channels
    weights: str
    """Random real, random whole, or a filter's name."""
    stride: int = 1
    output_mode: StoredMode = "abs"
    goal_share: float | None = None
    goal_call_seconds: float | None = None

    def problem(self) -> Problem:
        """The problem stated."""
        shape = (self.size, self.size, RGB_CHANNELS)
        return make_problem(shape, self.dtype, self._weight_set(), stride=self.stride, output_mode=self.output_mode)

    def _weight_set(self) -> WeightSet:
        if self.weights not in (REAL, WHOLE):
            return weight_set(named_filter(self.weights), self.channels)
        rng = np.random.default_rng(SEED)
        groups = RGB_CHANNELS if self.channels == "each" else 1
        shape = (1, RGB_CHANNELS, RGB_CHANNELS // groups, KERNEL_SIZE, KERNEL_SIZE)
        real = rng.uniform(-1, 1, shape)
        whole = rng.integers(-LARGEST_WHOLE, LARGEST_WHOLE, shape, endpoint=True)
        return WeightSet((real if self.weights == REAL else whole).astype(np.float32), groups)


CALL_SECONDS = 6e-6
SMALL_WORK = (("float32", "mix", REAL), ("uint8", "each", WHOLE), ("uint8", "mix", WHOLE), ("uint8", "each", "sobel"))

ROWS = (
    Row(4096, "float32", "mix", REAL, output_mode="raw", goal_share=0.92),
    Row(2048, "float32", "mix", REAL, output_mode="raw", goal_share=0.87),
    Row(1024, "float32", "mix", REAL, output_mode="raw"),
    Row(4096, "float32", "mix", REAL, stride=2, output_mode="raw", goal_share=0.85),
    Row(4096, "float32", "mix", REAL, stride=3, output_mode="raw", goal_share=0.85),
    Row(4095, "float32", "mix", REAL, output_mode="raw"),
    Row(4096, "uint8", "each", WHOLE, goal_share=0.85),
    Row(4096, "uint8", "each", "laplacian8", goal_share=0.85),
    Row(4096, "uint8", "each", REAL),
    Row(4095, "uint8", "each", WHOLE),
    Row(4096, "uint8", "mix", WHOLE, goal_share=0.80),
    Row(4096, "uint8", "mix", REAL),
    Row(4096, "uint8", "each", "sobel", goal_share=0.75),
    Row(4096, "uint8", "each", "kirsch"),
    Row(4096, "float16", "mix", REAL, output_mode="raw", goal_share=0.80),
    *(
        Row(size, dtype, channels, weights, goal_call_seconds=CALL_SECONDS)  # type: ignore[arg-type]
        for size in (128, 512)
        for dtype, channels, weights in (*SMALL_WORK, ("float16", "mix", REAL))
    ),
)


def measure(row: Row) -> dict[str, Any]:
    """Check a row, then time it."""
    problem = row.problem()
    plan = require("sliding", "cuda").prepare(problem, Options())
    pair_bytes = problem.input_bytes + problem.output_bytes
    count = 1 if row.goal_call_seconds else max(3, -(-ROTATED_BYTES // pair_bytes))
    pictures = random_pictures(problem, count)
    outs = cupy.empty((count, *problem.output_shape), problem.output_dtype)
    outs.view(np.uint8).fill(0xFF)
    plan.run(pictures[0], outs[0])
    check = verify.check(pictures[0].get(), outs[0].get(), problem, max_samples=CHECKED_SAMPLES)
    result = {
        **asdict(row),
        "passed": check.passed,
        "relative_error": check.relative_error,
        "differing_samples": check.differing_samples,
        "choice": plan.choice,
    }
    if row.goal_call_seconds:
        picture, out = pictures[0], outs[0]
        seconds_of(lambda: plan.run(picture, out), CALLS)
        calls = summarize([seconds_of(lambda: plan.run(picture, out), CALLS) / CALLS for _ in range(REPEATS)])
        return {**result, "call_seconds": calls.median_seconds, "l2_state": "warm"}

    copies = cupy.empty_like(pictures)
    run_call, how = captured(lambda: put_runs(plan, pictures, outs))
    copy_call, _ = captured(lambda: put_copies(pictures, copies))
    for call in (run_call, copy_call):
        seconds_of(call)
    copied, runs = [], []
    for _ in range(REPEATS):
        copied.append(seconds_of(copy_call) / count)
        runs.append(seconds_of(run_call) / count)
    run, copy = summarize(runs), summarize(copied)
    floor = copy.median_seconds * pair_bytes / (2 * problem.input_bytes)
    return {
        **result,
        "median_seconds": run.median_seconds,
        "p10_seconds": run.p10_seconds,
        "p90_seconds": run.p90_seconds,
        "n": run.n,
        "runs_a_sample": count,
        "how": how,
        "l2_state": "cold",
        "copy_seconds": copy.median_seconds,
        "fewest_bytes": pair_bytes,
        "floor_seconds": floor,
        "share_of_floor": floor / run.median_seconds,
    }


def main() -> None:
    """Measure every row, print a table, write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    output: Path = parser.parse_args().output
    results = []
    for row in ROWS:
        result = measure(row)
        cupy.get_default_memory_pool().free_all_blocks()
        results.append(result)
        name = f"{row.size:5} s{row.stride} {row.dtype:8} {row.channels:5} {row.weights:12}"
        right = f"{'ok' if result['passed'] else 'WRONG'} {result['relative_error']:.1e}"
        if row.goal_call_seconds:
            print(
                f"{name} {result['call_seconds'] * 1e6:8.2f} us a call, goal {row.goal_call_seconds * 1e6:.0f}  {right}"
            )
        else:
            print(
                f"{name} {result['median_seconds'] * 1e6:8.2f} us  floor {result['floor_seconds'] * 1e6:7.2f}"
                f"  share {result['share_of_floor']:.3f}  goal {row.goal_share or '-'}  {right}",
                flush=True,
            )
    document = {"benchmark": "benchmark_cuda_sliding", "machine": describe(), "rows": results}
    output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
