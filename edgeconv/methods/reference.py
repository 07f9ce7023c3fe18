"""The oracle: NumPy, float64, one obvious sum. Every other method is checked against it.

`values` can compute any run of output rows alone, so a large picture is checked without a large array.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.exactness import FLOAT64
from edgeconv.core.filters import Combine
from edgeconv.core.geometry import KERNEL_SIZE, OUTSIDE, bands, border_indices
from edgeconv.core.output import store
from edgeconv.core.problem import Problem
from edgeconv.methods.base import Method, Plan
from edgeconv.methods.options import Options

ROWS_PER_BAND = 64


def padded_rows(image: NDArray[Any], problem: Problem, first: int, last: int) -> NDArray[np.float64]:
    """Rows `first` to `last` (exclusive) of the padded picture, float64, HWC."""
    rows = border_indices(problem.height, problem.padding, problem.border)[first:last]
    columns = border_indices(problem.width, problem.padding, problem.border)
    padded = image[rows][:, columns].astype(np.float64)
    padded[rows == OUTSIDE] = 0.0
    padded[:, columns == OUTSIDE] = 0.0
    return padded


def join(responses: NDArray[np.float64], combine: Combine) -> NDArray[np.float64]:
    """Join responses (directions, height, width, out) into values (height, width, out)."""
    if combine == "magnitude":
        magnitude: NDArray[np.float64] = np.sqrt(np.square(responses).sum(axis=0))
        return magnitude
    if combine == "maximum":
        largest: NDArray[np.float64] = responses.max(axis=0)
        return largest
    alone: NDArray[np.float64] = responses[0]
    return alone


def responses(
    image: NDArray[Any], weights: NDArray[np.float64], problem: Problem, start: int, stop: int, sizes: bool = False
) -> NDArray[np.float64]:
    """Output rows `start` to `stop` (exclusive) of every direction: (directions, rows, columns, out), float64.

    `weights` is (directions, out, 3, 3, 3), or (directions, out, 1, 3, 3) where channels stand by themselves; the
    geometry is the problem's. With `sizes` |image| takes the place of the picture.
    """
    stride = problem.stride
    rows, width = stop - start, problem.output_width
    padded = padded_rows(image, problem, start * stride, (stop - 1) * stride + KERNEL_SIZE)
    if sizes:
        np.abs(padded, out=padded)
    found = np.zeros((weights.shape[0], rows, width, weights.shape[1]))
    product = "yxo,do->dyxo" if weights.shape[2] == 1 else "yxi,doi->dyxo"
    for u in range(KERNEL_SIZE):
        for v in range(KERNEL_SIZE):
            under = padded[u : u + (rows - 1) * stride + 1 : stride, v : v + (width - 1) * stride + 1 : stride]
            taps = weights[:, :, 0, u, v] if weights.shape[2] == 1 else weights[:, :, :, u, v]
            with np.errstate(invalid="ignore", over="ignore"):  # an infinity less another, or times zero, is NaN
                found += np.einsum(product, under, taps)
    return found


def values(image: NDArray[Any], problem: Problem, start: int, stop: int) -> NDArray[np.float64]:
    """Output rows `start` to `stop` (exclusive) in float64, before they are stored."""
    return join(responses(image, problem.weights.astype(np.float64), problem, start, stop), problem.combine)


class ReferencePlan(Plan):
    """Nothing to prepare."""

    def run(self, image: Any, out: Any) -> None:
        """See Plan.run."""
        problem = self.problem
        for start, stop in bands(problem.output_height, ROWS_PER_BAND):
            out[start:stop] = store(values(image, problem, start, stop), problem.output_mode, problem.output_dtype)


class Reference(Method):
    """Always available."""

    def unavailable_reason(self) -> str | None:
        """None: NumPy is a base dependency."""
        return None

    def prepare(self, problem: Problem, options: Options) -> Plan:
        """See Method.prepare."""
        return ReferencePlan(problem, arithmetic=FLOAT64)
