"""Is it right? The one tolerance rule that reports, tests and benchmarks share.

Outputs are compared with the float64 oracle (methods/reference.py):

    floats     max |out − oracle| ≤ tolerance · max |oracle|, or where terms cancel (a Laplacian of a flat picture
               is nearly nothing left of large terms) ≤ 2⁻²³ · max Σ|weight · pixel|: one float32 step of them
    integers   equal to the stored oracle, or the other side of a rounding tie that the oracle lies that close to

`tolerance` is 1e-6 for float32 arithmetic, 1e-3 where TF32 or half was asked for or the picture is float16.
A large picture is checked on whole rows: the first, the last and blocks spread evenly between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.geometry import bands
from edgeconv.methods import reference
from edgeconv.methods.base import Math
from edgeconv.output import store
from edgeconv.problem import Problem

TOLERANCE_FLOAT32 = 1e-6
TOLERANCE_REDUCED = 1e-3
FLOAT32_STEP = 2.0**-23
ROWS_PER_BLOCK = 8


@dataclass(frozen=True)
class Sample:
    """One output sample: where, what came out, what the oracle says."""

    y: int
    x: int
    channel: int
    got: float
    expected: float

    def __str__(self) -> str:
        return f"(y {self.y}, x {self.x}, channel {self.channel}): got {self.got:g}, expected {self.expected:.9g}"


@dataclass(frozen=True)
class Check:
    """What a comparison with the oracle found."""

    passed: bool
    tolerance: float
    max_abs_error: float
    """Largest |out − oracle|, in output units; for integers against the stored (rounded, clipped) oracle."""
    relative_error: float
    """max_abs_error / max |oracle|; 0 where both are 0."""
    differing_samples: int
    """Integer outputs: samples that are not equal to the stored oracle. Floats: samples beyond the tolerance."""
    unexplained_samples: int
    """Those of them that a rounding tie does not explain."""
    checked_samples: int
    checked_share: float
    worst: Sample | None
    """The first sample with the largest error, None where there is no error."""


def tolerance_for(problem: Problem, math: Math = "fma") -> float:
    """The relative tolerance for a problem and the arithmetic that was asked for."""
    reduced = math in ("tf32", "half") or problem.dtype == np.float16
    return TOLERANCE_REDUCED if reduced else TOLERANCE_FLOAT32


def rows_to_check(output_height: int, row_samples: int, max_samples: int | None) -> list[tuple[int, int]]:
    """Blocks (start, stop) of output rows: all of them, or about `max_samples` samples' worth, ends included."""
    if max_samples is None or output_height * row_samples <= max_samples:
        return list(bands(output_height, max(1, min(output_height, 64))))
    blocks = max(3, max_samples // (row_samples * ROWS_PER_BLOCK))
    starts = np.linspace(0, max(0, output_height - ROWS_PER_BLOCK), blocks).round().astype(int)
    chosen: list[tuple[int, int]] = []
    for start in dict.fromkeys(starts.tolist()):
        stop = min(start + ROWS_PER_BLOCK, output_height)
        begin = max(start, chosen[-1][1] if chosen else 0)
        if begin < stop:
            chosen.append((begin, stop))
    return chosen


def check(
    image: NDArray[Any],
    out: NDArray[Any],
    problem: Problem,
    tolerance: float | None = None,
    max_samples: int | None = None,
) -> Check:
    """Compare `out` with the oracle's result for `image` (host arrays, HWC), on all or some of its rows."""
    tolerance = tolerance_for(problem) if tolerance is None else tolerance
    if out.shape != problem.output_shape or out.dtype != problem.output_dtype:
        raise ValueError(
            f"output is {out.shape} {out.dtype}, the problem's is {problem.output_shape} {problem.output_dtype}"
        )
    row_samples = problem.output_width * problem.output_channels
    blocks = rows_to_check(problem.output_height, row_samples, max_samples)
    oracle = [_as_output(reference.values(image, problem, *block), problem) for block in blocks]
    largest = max(float(np.abs(block).max()) for block in oracle)
    limit = error_limit(image, problem, largest, tolerance)

    worst: Sample | None = None
    max_error, differing, unexplained, checked = 0.0, 0, 0, 0
    for (start, stop), expected in zip(blocks, oracle, strict=True):
        got = out[start:stop]
        target = expected
        if problem.output_dtype.kind == "u":
            target = store(expected, problem.output_mode, problem.output_dtype).astype(np.float64)
        error = np.abs(got.astype(np.float64) - target)
        error[np.isnan(error)] = np.inf
        if problem.output_dtype.kind == "u":
            wrong = error > 0
            unrounded = np.clip(expected, 0, np.iinfo(problem.output_dtype).max)
            beyond = wrong & (np.abs(got - unrounded) > 0.5 + limit)
        else:
            wrong = beyond = error > limit
        differing += int(wrong.sum())
        unexplained += int(beyond.sum())
        checked += error.size
        if float(error.max()) > max_error:
            max_error = float(error.max())
            y, x, channel = (int(i) for i in np.unravel_index(int(error.argmax()), error.shape))
            worst = Sample(start + y, x, channel, float(got[y, x, channel]), float(expected[y, x, channel]))
    return Check(
        passed=unexplained == 0,
        tolerance=tolerance,
        max_abs_error=max_error,
        relative_error=max_error / largest if largest else (0.0 if max_error == 0 else float("inf")),
        differing_samples=differing,
        unexplained_samples=unexplained,
        checked_samples=checked,
        checked_share=checked / (problem.output_height * row_samples),
        worst=worst,
    )


def error_limit(image: NDArray[Any], problem: Problem, largest: float, tolerance: float) -> float:
    """The largest |error| of a right float output whose largest |value| is `largest`, in output units."""
    return max(tolerance * largest, FLOAT32_STEP * _largest_terms(image, problem))


def _as_output(values: NDArray[np.float64], problem: Problem) -> NDArray[np.float64]:
    """The oracle in output units but not yet rounded."""
    return np.abs(values) if problem.output_mode == "abs" else values


def _largest_terms(image: NDArray[Any], problem: Problem) -> float:
    """An upper bound of Σ|weight · pixel| over all output samples."""
    per_output = np.abs(problem.weights.astype(np.float64)).sum(axis=(2, 3, 4)).max()
    low, high = float(image.min()), float(image.max())
    return float(per_output) * max(abs(low), abs(high))
