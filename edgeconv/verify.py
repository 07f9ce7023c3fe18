"""Is it right? The one tolerance rule that reports, tests and benchmarks share.

Outputs are compared with the float64 oracle (methods/reference.py):

    floats     max |out − oracle| ≤ tolerance · max |oracle|, or where terms cancel (a Laplacian of a flat picture
               is nearly nothing left of large terms) ≤ 2⁻²³ · max Σ|weight · pixel|: one float32 step of them
    integers   equal to the stored oracle, or one level off where the oracle lies that close to a rounding tie

`tolerance` is 1e-6 for float32 arithmetic, 1e-3 where TF32 or half was asked for or the picture is float16.
A large picture is checked on whole rows: the first, the last and blocks spread evenly between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.filters import RGB_CHANNELS
from edgeconv.geometry import KERNEL_SIZE, bands
from edgeconv.methods import reference
from edgeconv.methods.base import Math
from edgeconv.output import TOLERANCE_FLOAT32 as TOLERANCE_FLOAT32
from edgeconv.output import error_limit, finite_range, join_ranges, magnitude, store
from edgeconv.problem import Problem

TOLERANCE_REDUCED = 1e-3
ROWS_PER_BLOCK = 8
LEVELS_OF_A_TIE = 1
KEPT_SAMPLES = 4_000_000
"""Oracle values that are kept between the two passes of a check: 32 MB."""


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
    """Compare `out` with the oracle's result for `image` (host arrays, HWC), on all or some of its rows.

    Samples whose window holds a NaN or an infinity are not compared: what becomes of them (a zero weight times NaN)
    is no part of the operation.
    """
    tolerance = tolerance_for(problem) if tolerance is None else tolerance
    if out.shape != problem.output_shape or out.dtype != problem.output_dtype:
        raise ValueError(
            f"output is {out.shape} {out.dtype}, the problem's is {problem.output_shape} {problem.output_dtype}"
        )
    image, spoilt = _without_nonfinite(image)
    row_samples = problem.output_width * problem.output_channels
    oracle = _Oracle(image, problem, rows_to_check(problem.output_height, row_samples, max_samples))
    values = reduce(join_ranges, (finite_range(expected) for _, expected in oracle))
    largest, limit = magnitude(values), error_limit(problem.weights, finite_range(image), values, tolerance)

    worst: Sample | None = None
    max_error, differing, unexplained, checked = 0.0, 0, 0, 0
    for (start, stop), expected in oracle:
        got = out[start:stop].astype(np.float64)
        if problem.output_dtype.kind == "u":
            error, beyond = _integer_errors(got, expected, problem, limit, tolerance)
        else:
            error = np.abs(got - expected)
            error[np.isnan(error)] = np.inf
            beyond = error > limit
        compared = np.ones(error.shape, bool) if spoilt is None else ~_reached(spoilt, problem, start, stop)
        error[~compared] = 0
        differing += int(np.count_nonzero(error if problem.output_dtype.kind == "u" else beyond & compared))
        unexplained += int(np.count_nonzero(beyond & compared))
        checked += int(np.count_nonzero(compared))
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


class _Oracle:
    """The oracle's values block by block, twice: kept where they are few, else computed again."""

    def __init__(self, image: NDArray[Any], problem: Problem, blocks: list[tuple[int, int]]) -> None:
        self._image, self._problem, self._blocks = image, problem, blocks
        rows = sum(stop - start for start, stop in blocks)
        self._keep = rows * problem.output_width * problem.output_channels <= KEPT_SAMPLES
        self._kept: dict[tuple[int, int], NDArray[np.float64]] = {}

    def __iter__(self) -> Iterator[tuple[tuple[int, int], NDArray[np.float64]]]:
        for block in self._blocks:
            expected = self._kept.get(block)
            if expected is None:
                expected = _as_output(reference.values(self._image, self._problem, *block), self._problem)
            if self._keep:
                self._kept[block] = expected
            yield block, expected


def _integer_errors(
    got: NDArray[np.float64], expected: NDArray[np.float64], problem: Problem, limit: float, tolerance: float
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Levels off the stored oracle, and which samples a rounding tie does not explain."""
    stored, low, high = (
        store(value, "clip", problem.output_dtype).astype(np.float64)
        for value in (expected, expected - limit, expected + limit)
    )
    error = np.abs(got - stored)
    beyond = (got < low) | (got > high)
    if tolerance <= TOLERANCE_FLOAT32:
        beyond |= error > LEVELS_OF_A_TIE
    return error, beyond


def _without_nonfinite(image: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.float32] | None]:
    """The picture with zeros for NaN and infinities, and 1 where they were; None where there are none."""
    if image.dtype.kind != "f" or np.isfinite(image).all():
        return image, None
    finite = np.isfinite(image)
    return np.where(finite, image, 0).astype(image.dtype), (~finite).astype(np.float32)


def _reached(spoilt: NDArray[np.float32], problem: Problem, start: int, stop: int) -> NDArray[np.bool_]:
    """Output samples of rows `start` to `stop` whose window, in any channel, holds a spoilt pixel."""
    window = np.ones((1, problem.output_channels, RGB_CHANNELS, KERNEL_SIZE, KERNEL_SIZE), np.float32)
    touch = replace(problem, weights=window, groups=1, combine="single", output_mode="raw")
    return reference.values(spoilt, touch, start, stop) > 0


def _as_output(values: NDArray[np.float64], problem: Problem) -> NDArray[np.float64]:
    """The oracle in output units but not yet rounded."""
    return np.abs(values) if problem.output_mode == "abs" else values
