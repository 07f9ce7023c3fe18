"""The oracle: NumPy, float64, one obvious sum. Every other method is checked against it.

The sums of float64 pictures are compensated: as exact as with twice the digits.

`values` can compute any run of output rows alone, so a large picture is checked without a large array.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core import chains, progress
from edgeconv.core.chains import ChainProblem
from edgeconv.core.exactness import FLOAT64, WHOLE
from edgeconv.core.filters import Combine
from edgeconv.core.geometry import KERNEL_SIZE, OUTSIDE, bands, border_indices
from edgeconv.core.output import store
from edgeconv.core.problem import PictureProblem, Problem
from edgeconv.methods.base import Method, Plan
from edgeconv.methods.options import Options

ROWS_PER_BAND = 64
"""Most rows that are computed at once."""
SUMS_AT_ONCE = 2**20
"""Sums of all directions that are computed at once, where a row has no more: 8 MB for each array of them."""


def padded_rows(image: NDArray[Any], problem: Problem, first: int, last: int) -> NDArray[np.float64]:
    """Rows `first` to `last` (exclusive) of the padded picture, float64, HWC."""
    rows = border_indices(problem.height, problem.padding, problem.border)[first:last]
    columns = border_indices(problem.width, problem.padding, problem.border)
    padded = image[rows][:, columns].astype(np.float64)
    padded[rows == OUTSIDE] = 0.0
    padded[:, columns == OUTSIDE] = 0.0
    return padded


def join(responses: NDArray[np.float64], combine: Combine, dtype: np.dtype[Any]) -> NDArray[np.float64]:
    """Join responses (directions, height, width, out) into values (height, width, out) for a picture of `dtype`."""
    if combine == "magnitude":
        if dtype == np.float64:  # whose squares may be too large or too small for float64
            length: NDArray[np.float64] = np.hypot.reduce(responses, axis=0)
            return length
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

    `weights` is (directions, out, in, 3, 3), or (directions, out, 1, 3, 3) where channels are filtered separately; the
    geometry is the problem's. With `sizes` |image| takes the place of the picture.
    """
    stride = problem.stride
    rows, width = stop - start, problem.output_width
    padded = padded_rows(image, problem, start * stride, (stop - 1) * stride + KERNEL_SIZE)
    if sizes:
        np.abs(padded, out=padded)
    found = np.zeros((weights.shape[0], rows, width, weights.shape[1]))
    separate = weights.shape[2] < problem.in_channels  # the outputs lie one group of channels after the other
    if separate:
        channel_of_output = np.arange(weights.shape[1]) * problem.in_channels // weights.shape[1]
    lost = np.zeros_like(found) if problem.dtype == np.float64 else None
    with np.errstate(invalid="ignore", over="ignore"):  # an infinity less another, or times zero, is NaN
        for u in range(KERNEL_SIZE):
            for v in range(KERNEL_SIZE):
                under = padded[u : u + (rows - 1) * stride + 1 : stride, v : v + (width - 1) * stride + 1 : stride]
                taps = weights[:, :, :, u, v]
                if lost is not None:
                    for i in range(weights.shape[2]):
                        samples = under[..., channel_of_output] if separate else under[..., i, np.newaxis]
                        _add_exactly(found, lost, samples, taps[:, np.newaxis, np.newaxis, :, i])
                elif separate:
                    found += np.einsum("yxo,do->dyxo", under[..., channel_of_output], taps[:, :, 0])
                else:
                    # Outputs one after the other in memory: fifteen times as fast for a bank of 256.
                    found += np.einsum("yxi,dio->dyxo", under, np.ascontiguousarray(taps.swapaxes(1, 2)))
        return found if lost is None else np.where(np.isfinite(found + lost), found + lost, found)


HALVES_OF_FLOAT64 = 2.0**27 + 1
"""Multiplied by it, a float64 falls into two halves of 26 bits (Veltkamp)."""


def _add_exactly(
    total: NDArray[np.float64], lost: NDArray[np.float64], samples: NDArray[np.float64], weights: NDArray[np.float64]
) -> None:
    """Add samples · weights to `total`, and what that product and that sum round away to `lost`.

    Ogita, Rump and Oishi, Accurate sum and dot product (2005), algorithm Dot2: the result is as exact as if computed
    in twice the precision, which is what an oracle of float64 sums needs.
    """
    product = samples * weights
    high, weight_high = _high_half(samples), _high_half(weights)
    low, weight_low = samples - high, weights - weight_high
    lost += low * weight_low - (((product - high * weight_high) - low * weight_high) - high * weight_low)
    before = total.copy()
    total += product
    added = total - before
    lost += (before - (total - added)) + (product - added)


def _high_half(values: NDArray[np.float64]) -> NDArray[np.float64]:
    scaled = HALVES_OF_FLOAT64 * values
    high: NDArray[np.float64] = scaled - (scaled - values)
    return high


def values(image: NDArray[Any], problem: Problem, start: int, stop: int) -> NDArray[np.float64]:
    """Output rows `start` to `stop` (exclusive) in float64, before they are stored."""
    found = responses(image, problem.weights.astype(np.float64), problem, start, stop)
    return join(found, problem.combine, problem.dtype)


class ReferencePlan(Plan):
    """Nothing is prepared: a filter by float64 sums, a chain stage by stage in integers (core/chains.py)."""

    def run(self, image: Any, out: Any) -> None:
        """See Plan.run: by bands of rows, unless a row depends on rows far away."""
        problem = self.problem
        if isinstance(problem, ChainProblem):
            if problem.chain.has_hysteresis:
                out[...] = chains.compute(image, problem)
                return
            rows = ROWS_PER_BAND
        else:
            row_sums = problem.output_width * problem.output_channels * problem.directions
            rows = max(1, min(ROWS_PER_BAND, SUMS_AT_ONCE // row_sums))
        for start, stop in bands(problem.output_height, rows):
            progress.report()
            if isinstance(problem, ChainProblem):
                out[start:stop] = chains.compute_rows(image, problem, start, stop)
            else:
                out[start:stop] = store(values(image, problem, start, stop), problem.output_mode, problem.output_dtype)


class Reference(Method):
    """Always available, for every problem."""

    def reason(self, problem: PictureProblem, options: Options) -> str | None:
        """None: it is the oracle."""
        return None

    def prepare(self, problem: PictureProblem, options: Options, pictures: int = 1) -> Plan:
        return ReferencePlan(problem, arithmetic=WHOLE if isinstance(problem, ChainProblem) else FLOAT64)
