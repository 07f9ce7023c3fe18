"""Correctness: the one rule by which reports, tests and benchmarks check an output.

Each sample is compared with that of the float64 oracle (methods/reference.py):

    exact      a whole-number picture with whole weights, in an arithmetic that represents its sums: equal to the oracle
    floats     |out − oracle| at most the forward error bound of this sample (core/exactness.py): the rounding errors
               of Σ|weight · sample| over its window, and of storing the result
    integers   between the stored values of oracle − bound and oracle + bound, so that a level off counts as correct
               only where the oracle is that close to a rounding tie

So an output channel of small weights, or a dark corner, is not judged by the largest value of the picture.
A NaN or an infinity must reach the outputs that multiply it by a weight other than zero; what it becomes under a
zero weight is not a part of the operation, and no other output may be touched. A large picture is checked on whole
rows: the first, the last and blocks spread evenly between them.

The output of a chain is equal to the oracle (core/chains.py), sample by sample. A small picture is computed again as a
whole. Of a large one `--check sample` takes whole rows: without hysteresis each block of rows with as many around it as
its stages reach; with hysteresis, where any pixel may depend on any other, what can be known of these rows alone:

    no edge pixel      is 0
    strong one         is 255
    weak one           is 255 where a neighbour is, and 0 where none is

so that only whether a group of weak pixels that are all 255 touches a strong one far away is left to `--check full`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Annotated, Any

import numpy as np
from msgspec import structs
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from edgeconv.core import chains, exactness
from edgeconv.core.canny import EDGE, STRONG, WEAK
from edgeconv.core.chains import ChainProblem
from edgeconv.core.exactness import WHOLE, Arithmetic
from edgeconv.core.geometry import bands
from edgeconv.core.output import finite_range, join_ranges, magnitude, store
from edgeconv.core.problem import Problem
from edgeconv.core.records import Amount, Meta, Natural, Part, Share, field, finite
from edgeconv.methods import reference

ROWS_PER_BLOCK = 8
BLOCK_SAMPLES = 2**19
"""Most output samples of such a block; beyond it a block has fewer rows, as those of a bank are long."""
SAMPLED_CHECK = 300_000
"""Output samples that `--check sample` compares: enough for every border, a small part of a second in NumPy."""


class CheckedSample(Part):
    """One output sample: where, what came out, what the oracle says; None for what is not a finite number."""

    y: Natural
    x: Natural
    channel: Natural
    got: float | None
    expected: float | None

    def __str__(self) -> str:
        got = "no finite number" if self.got is None else f"{self.got:g}"
        expected = "no finite number" if self.expected is None else f"{self.expected:.9g}"
        return f"(y {self.y}, x {self.x}, channel {self.channel}): got {got}, expected {expected}"


class Check(Part):
    """What a comparison with the oracle found; None for an infinite error."""

    passed: bool
    tolerance: Annotated[
        Amount,
        Meta(description="largest error that was allowed, relative to the largest value; 0 where equality was asked"),
    ]
    max_abs_error: Amount | None
    """Largest |out − oracle|, in output units; for integers against the stored (rounded, clipped) oracle."""
    relative_error: Amount | None
    """max_abs_error / max |oracle|; 0 where both are 0."""
    differing_samples: Natural
    """Integer outputs: samples that are not equal to the stored oracle. Floats: samples beyond their bounds."""
    unexplained_samples: Natural
    """Samples beyond what the bounds explain."""
    checked_samples: Natural
    checked_share: Share
    worst: CheckedSample | None
    """The first sample with the largest error, of those that the bounds do not explain where there are such; None where
    there is no error."""
    exact: Annotated[bool, Meta(description="the sums are exact for this picture type and these weights")] = False
    arithmetic: str = ""
    """Empty in records from before bounds were derived."""
    bound_by_channel: Annotated[
        list[Amount | None],
        Meta(description="largest error of each output channel before it is stored; null where there is no bound"),
    ] = field(default_factory=list)


def size_of(error: float | None) -> float:
    """The error or bound as a number to compare with others: infinite for None."""
    return math.inf if error is None else error


def _worst(errors: Iterable[float | None]) -> float | None:
    """The largest of errors or bounds, of which None is above all."""
    return finite(max(map(size_of, errors)))


def relative_error(error: float, largest: float) -> float | None:
    """An error as a share of the largest value, 0 where both are 0."""
    return finite(error / largest) if largest else (0.0 if error == 0 else None)


def joined(found: Sequence[Check], samples: int) -> Check:
    """Comparisons of the parts of an output as one.

    The worst sample is that of the largest error, among unexplained ones where there are such: a lost NaN has no error.
    """
    worst = max(found, key=lambda one: (one.unexplained_samples > 0, size_of(one.max_abs_error)))
    checked = sum(one.checked_samples for one in found)
    return structs.replace(
        worst,
        passed=all(one.passed for one in found),
        tolerance=max(one.tolerance for one in found),
        max_abs_error=_worst(one.max_abs_error for one in found),
        relative_error=_worst(one.relative_error for one in found),
        differing_samples=sum(one.differing_samples for one in found),
        unexplained_samples=sum(one.unexplained_samples for one in found),
        checked_samples=checked,
        checked_share=checked / samples,
        exact=all(one.exact for one in found),
        bound_by_channel=[_worst(of) for of in zip(*(one.bound_by_channel for one in found), strict=True)],
    )


def rows_to_check(output_height: int, row_samples: int, max_samples: int | None) -> list[tuple[int, int]]:
    """Blocks (start, stop) of output rows: all of them, or about `max_samples` samples' worth, ends included."""
    if max_samples is None or output_height * row_samples <= max_samples:
        return list(bands(output_height, max(1, min(output_height, 64))))
    rows = max(1, min(ROWS_PER_BLOCK, BLOCK_SAMPLES // row_samples))
    blocks = max(3, max_samples // (row_samples * rows))
    starts = np.linspace(0, max(0, output_height - rows), blocks).round().astype(int)
    chosen: list[tuple[int, int]] = []
    for start in dict.fromkeys(starts.tolist()):
        stop = min(start + rows, output_height)
        begin = max(start, chosen[-1][1] if chosen else 0)
        if begin < stop:
            chosen.append((begin, stop))
    return chosen


def cut_blocks(blocks: list[tuple[int, int]], row_sums: int) -> list[tuple[int, int]]:
    """The same rows in blocks of no more sums than the oracle computes at once, or of a row where that has more."""
    rows = max(1, reference.SUMS_AT_ONCE // row_sums)
    return [(first + start, first + stop) for first, last in blocks for start, stop in bands(last - first, rows)]


def check(
    image: NDArray[Any],
    out: NDArray[Any],
    problem: Problem | ChainProblem,
    arithmetic: Arithmetic | None = None,
    max_samples: int | None = None,
    tolerance: float = 0.0,
    blocks: list[tuple[int, int]] | None = None,
) -> Check:
    """Compare `out` with the oracle's result for `image` (host arrays, HWC), on all or some of its rows.

    The rows are those of `blocks` (start, stop), or about `max_samples` samples' worth of them, or all.
    `arithmetic` is that of the plan (None: what `exactness.own_arithmetic` gives). `tolerance` allows a peer, whose
    arithmetic is not known, errors of that share of max |oracle| as well.
    """
    if out.shape != problem.output_shape or out.dtype != problem.output_dtype:
        raise ValueError(
            f"output is {out.shape} {out.dtype}, the problem's is {problem.output_shape} {problem.output_dtype}"
        )
    row_samples = problem.output_width * problem.output_channels
    if blocks is None:
        blocks = rows_to_check(problem.output_height, row_samples, max_samples)
    if isinstance(problem, ChainProblem):
        if sum(stop - start for start, stop in blocks) == problem.output_height:
            return equality(out, chains.compute(image, problem))
        parts = [
            equality(out[first:last], _expected_rows(image, out, problem, first, last), first) for first, last in blocks
        ]
        return joined(parts, out.size)
    blocks = cut_blocks(blocks, row_samples * problem.directions)
    return _filter_check(image, out, problem, arithmetic or exactness.own_arithmetic(problem), tolerance, blocks)


def _filter_check(
    image: NDArray[Any],
    out: NDArray[Any],
    problem: Problem,
    arithmetic: Arithmetic,
    tolerance: float,
    blocks: list[tuple[int, int]],
) -> Check:
    bad, infinite = _nonfinite(image, arithmetic)
    clean = image if infinite is None else np.where(infinite, 0, image).astype(image.dtype)
    used = problem.weights != 0
    needed = used.all(axis=0) if problem.combine == "maximum" else used.any(axis=0)
    multiplied = np.ones((problem.dense_weights() if arithmetic.multiplies_zeros else problem.weights).shape[1:])
    allowed_anywhere = 0.0
    if tolerance:  # a share of what is known only when all blocks have been computed
        values = (finite_range(expected) for _, expected, _ in oracle(clean, problem, arithmetic, blocks))
        allowed_anywhere = tolerance * magnitude(reduce(join_ranges, values))
    parts: list[Check] = []
    largest = largest_limit = 0.0
    for (start, stop), expected, bound in oracle(clean, problem, arithmetic, blocks):
        limit = np.maximum(bound, allowed_anywhere)
        got = out[start:stop].astype(np.float64)
        error, beyond = _errors(got, expected, problem, limit)
        everywhere = infinite is not None and arithmetic.transforms  # a transform's tile is larger than a window
        compared = ~(_reached(infinite, multiplied, problem, start, stop) | everywhere)
        lost = _reached(bad, needed, problem, start, stop) & np.isfinite(got)
        error[~compared] = 0
        part = _part(got, expected, np.where(lost, np.inf, error), beyond & compared | lost, (start, 0))
        part.max_abs_error = finite(float(error.max()))
        part.checked_samples = int(np.count_nonzero(compared))
        if problem.output_dtype.kind == "u":
            part.differing_samples = int(np.count_nonzero(error))
        parts.append(part)
        largest = max(largest, magnitude(finite_range(expected)))
        largest_limit = max(largest_limit, float(limit[compared & np.isfinite(limit)].max(initial=0.0)))
    found = joined(parts, math.prod(problem.output_shape))
    return structs.replace(
        found,
        tolerance=largest_limit / largest if largest else 0.0,
        relative_error=relative_error(size_of(found.max_abs_error), largest),
        exact=exactness.is_exact(problem, arithmetic),
        arithmetic=arithmetic.name,
        bound_by_channel=[*map(finite, exactness.bound(problem, arithmetic, magnitude(finite_range(clean))))],
    )


def _part(
    got: NDArray[Any],
    expected: NDArray[Any],
    error: NDArray[np.float64],
    beyond: NDArray[np.bool_],
    at: tuple[int, int],
) -> Check:
    """What was found in a part of an output that begins at row and column `at`; of an exact one as it stands."""
    worst = None
    if error.any():
        candidates = np.where(beyond, error, 0) if beyond.any() else error
        y, x, channel = (int(place) for place in np.unravel_index(int(candidates.argmax()), error.shape))
        values = (finite(float(each[y, x, channel])) for each in (got, expected))
        worst = CheckedSample(at[0] + y, at[1] + x, channel, *values)
    wrong, max_error = int(np.count_nonzero(beyond)), float(error.max(initial=0))
    return Check(
        passed=wrong == 0,
        tolerance=0.0,
        max_abs_error=finite(max_error),
        relative_error=relative_error(max_error, float(np.abs(expected).max(initial=0))),
        differing_samples=wrong,
        unexplained_samples=wrong,
        checked_samples=error.size,
        checked_share=1.0,
        worst=worst,
        exact=True,
        arithmetic=WHOLE.name,
        bound_by_channel=[0.0] * error.shape[2],
    )


def oracle(
    image: NDArray[Any], problem: Problem, arithmetic: Arithmetic, blocks: list[tuple[int, int]]
) -> Iterator[tuple[tuple[int, int], NDArray[np.float64], NDArray[np.float64]]]:
    """Of each block of rows the oracle's values, not yet rounded, and the largest error that each may have."""
    exact = exactness.is_exact(problem, arithmetic)
    largest = 0.0 if exact else magnitude(finite_range(image))
    weights = np.abs(problem.weights.astype(np.float64))
    may_overflow = largest * weights[0, 0].size > float(np.finfo(problem.weights.dtype).max)
    needs_samples = arithmetic.weight_loss or arithmetic.operand_tiny or may_overflow
    is_float = problem.output_dtype.kind == "f"
    for start, stop in blocks:
        values = reference.values(image, problem, start, stop)
        if exact:
            bound = np.zeros_like(values)
            if problem.combine == "magnitude" and is_float:
                bound = exactness.join_bounds(bound[np.newaxis], np.abs(values[np.newaxis]), problem, arithmetic)
        else:
            sums = reference.responses(image, weights, problem, start, stop, sizes=True)
            samples = np.zeros_like(sums)
            if arithmetic.transforms:  # an error reaches as far as a transform's tile does: as large as anywhere
                sums[:] = (weights.sum(axis=(2, 3, 4)) * largest)[:, np.newaxis, np.newaxis]
                samples[:] = weights[0, 0].size * largest
            elif needs_samples:
                samples = reference.responses(image, np.ones_like(weights), problem, start, stop, sizes=True)
            errors = exactness.response_bound(problem, arithmetic, sums, samples)
            bound = exactness.join_bounds(errors, sums, problem, arithmetic)
        if is_float:
            bound = exactness.stored_bound(values, bound, problem.output_dtype)
        yield (start, stop), np.abs(values) if problem.output_mode == "abs" else values, bound


def _errors(
    got: NDArray[np.float64], expected: NDArray[np.float64], problem: Problem, limit: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Distances from the oracle, of integers from the stored one in levels, and which the bounds do not explain.

    An infinity is right where the value, as far as the bound lets it go, leaves the range of the type.
    """
    if problem.output_dtype.kind == "u":
        stored, low, high = (
            store(value, "clip", problem.output_dtype).astype(np.float64)
            for value in (expected, expected - limit, expected + limit)
        )
        return np.abs(got - stored), (got < low) | (got > high)
    with np.errstate(invalid="ignore"):
        error = np.abs(got - expected)
    error[np.isnan(error)] = np.inf
    largest = float(np.finfo(problem.output_dtype).max)
    left_range = np.isinf(got) & (np.where(got > 0, expected, -expected) + limit >= largest)
    error[left_range] = 0.0
    return error, (error > limit) & ~np.isinf(limit)


def _nonfinite(image: NDArray[Any], arithmetic: Arithmetic) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
    """1 where samples are not finite, and 1 where they are infinite as operands at the latest; None where none is."""
    if image.dtype.kind != "f":
        return None, None
    bad = ~np.isfinite(image)
    infinite = bad
    if np.isfinite(arithmetic.operand_largest):
        with np.errstate(invalid="ignore"):
            infinite = bad | (np.abs(image) > image.dtype.type(arithmetic.operand_largest))
    return (bad.astype(np.float32), infinite.astype(np.float32)) if infinite.any() else (None, None)


def _reached(
    places: NDArray[Any] | None, window: NDArray[Any], problem: Problem, start: int, stop: int
) -> NDArray[np.bool_]:
    """Output samples of these rows that have one of the places under a part (out, in, 3, 3) of the window."""
    if places is None:
        return np.zeros((stop - start, problem.output_width, problem.output_channels), bool)
    weights = window[np.newaxis].astype(np.float64)
    found: NDArray[np.bool_] = reference.responses(places, weights, problem, start, stop)[0] > 0
    return found


# --- chains --------------------------------------------------------------------------------------------------------


def equality(got: NDArray[Any], expected: NDArray[Any], first_row: int = 0, first_column: int = 0) -> Check:
    """The comparison of a part of an output (HWC) that begins at a row and a column with what it must be equal to."""
    error = np.abs(got.astype(np.float64) - expected.astype(np.float64))
    return _part(got, expected, error, error > 0, (first_row, first_column))


def _expected_rows(
    image: NDArray[Any], out: NDArray[Any], problem: ChainProblem, start: int, stop: int
) -> NDArray[Any]:
    """Output rows `start` to `stop` (exclusive); those of edges follow from the output's own neighbours: see above."""
    if not problem.chain.has_hysteresis:
        return chains.compute_rows(image, problem, start, stop)
    first, last = max(0, start - problem.chain.reach), min(problem.height, stop + problem.chain.reach)
    rows, part = np.ascontiguousarray(image[first:last]), replace(problem, height=last - first)
    found = chains.edge_map(rows, part)[start - first : stop - first]
    above, below = max(0, start - 1), min(problem.height, stop + 1)
    white = np.pad(out[above:below, :, 0] == EDGE, ((above == start, below == stop), (1, 1)))
    near = sliding_window_view(white, (3, 3)).sum(axis=(2, 3)) > white[1:-1, 1:-1]  # others than the pixel itself
    expected = np.zeros(found.shape, np.uint8)
    expected[found == STRONG] = EDGE
    expected[(found == WEAK) & near] = EDGE
    return expected[:, :, np.newaxis]
