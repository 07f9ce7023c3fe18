"""Correctness of a chain's output: equal to the oracle (core/chains.py), sample by sample.

A small picture is computed again as a whole. Of a large one `--check sample` takes whole rows: without hysteresis each
block of rows with as many around it as its stages reach; with hysteresis, where any pixel may depend on any other, what
can be known of these rows alone:

    no edge pixel      is 0
    strong one         is 255
    weak one           is 255 where a neighbour is, and 0 where none is

so that only whether a group of weak pixels that are all 255 touches a strong one far away is left to `--check full`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.api.check import Check, CheckedSample, check, joined, relative_error, rows_to_check
from edgeconv.core import chains
from edgeconv.core.canny import EDGE, STRONG, WEAK
from edgeconv.core.chains import ChainProblem
from edgeconv.core.exactness import WHOLE, Arithmetic
from edgeconv.core.problem import Problem


def check_output(
    image: NDArray[Any],
    out: NDArray[Any],
    problem: Problem | ChainProblem,
    arithmetic: Arithmetic,
    max_samples: int | None = None,
) -> Check:
    """`check` of a convolution or of a chain."""
    if isinstance(problem, ChainProblem):
        return check_chain(image, out, problem, max_samples)
    return check(image, out, problem, arithmetic, max_samples)


def check_chain(image: NDArray[Any], out: NDArray[Any], problem: ChainProblem, max_samples: int | None = None) -> Check:
    """Compare `out` with the oracle's result for `image` (host arrays, HWC), whole or as far as `max_samples` says."""
    if out.shape != problem.output_shape or out.dtype != problem.output_dtype:
        raise ValueError(
            f"output is {out.shape} {out.dtype}, the problem's is {problem.output_shape} {problem.output_dtype}"
        )
    row_samples = problem.output_width * problem.output_channels
    whole = max_samples is None or problem.output_height * row_samples <= max_samples
    blocks = [(0, problem.output_height)] if whole else rows_to_check(problem.output_height, row_samples, max_samples)
    found = []
    for start, stop in blocks:
        expected = chains.compute(image, problem) if whole else _expected_rows(image, out, problem, start, stop)
        found.append(equality(out[start:stop], expected, start))
    return joined(found, problem.output_height * row_samples)


def equality(got: NDArray[Any], expected: NDArray[Any], first_row: int = 0, first_column: int = 0) -> Check:
    """The comparison of a part of an output (HWC) that begins at a row and a column with what it must be equal to."""
    error = np.abs(got.astype(np.float64) - expected.astype(np.float64))
    differing, largest = int(np.count_nonzero(error)), float(np.abs(expected).max(initial=0))
    max_error = float(error.max(initial=0))
    worst = None
    if differing:
        y, x, channel = (int(place) for place in np.unravel_index(int(error.argmax()), error.shape))
        values = float(got[y, x, channel]), float(expected[y, x, channel])
        worst = CheckedSample(first_row + y, first_column + x, channel, *values)
    return Check(
        passed=differing == 0,
        tolerance=0.0,
        max_abs_error=max_error,
        relative_error=relative_error(max_error, largest),
        differing_samples=differing,
        unexplained_samples=differing,
        checked_samples=error.size,
        checked_share=1.0,
        worst=worst,
        exact=True,
        arithmetic=WHOLE.name,
        bound_by_channel=[0.0] * expected.shape[2],
    )


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
    near = np.zeros(found.shape, bool)
    for row in range(3):
        for column in range(3):
            if (row, column) != (1, 1):
                near |= white[row : row + found.shape[0], column : column + found.shape[1]]
    expected = np.zeros(found.shape, np.uint8)
    expected[found == STRONG] = EDGE
    expected[(found == WEAK) & near] = EDGE
    return expected[:, :, np.newaxis]
