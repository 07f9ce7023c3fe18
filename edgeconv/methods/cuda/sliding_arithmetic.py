"""How CUDA `sliding` sums: which arithmetic suits a problem's picture type and weights.

    fma     float32 multiply-adds: everything that float32 holds
    dp4a    exact integers, four products an instruction: 8-bit pictures with whole weights from -127 to 127
    mma     the tensor cores: the same pictures where dp4a alone would be slower than memory (exact 32-bit sums), and
            float16 pictures, each weight as two halves (float32 sums)

Sums that float32 does not hold (exactness.py) and the maximum of eight directions are not for strips at all: the
direct kernel does those.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.exactness import HALVES_STEP, sums_for
from edgeconv.core.filters import RGB_CHANNELS
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem

StripArithmetic = Literal["fma", "dp4a", "mma"]
ARITHMETIC_NAMES: dict[StripArithmetic, str] = {
    "fma": "float32 FMA",
    "dp4a": "exact integers, dp4a",
    "mma": "tensor cores, {} weights and {} sums",
}

INT8_LARGEST = 127
SHORT_LARGEST = 2047
"""Two squares of no more add up below 2^23."""

LARGEST_STRIP_STRIDE = 8
"""Beyond it the gaps between windows, which strips read along, are longer than windows: one thread per output pixel."""

MOST_STRIP_OUTPUTS = 8
"""Outputs whose sums of all rows under way a thread can hold; a bank of more is for sliding_bank.cu."""

DIRECT_PIXELS, DIRECT_FLOAT32_PIXELS = 2**16, 2**18
"""Up to so many output pixels one thread per pixel was faster (256², 512²); the second for float32 at strides 1, 2."""


def has_int8_weights(problem: Problem) -> bool:
    """Whether an 8-bit picture and its weights allow exact integer sums."""
    weights = problem.weights
    whole = np.array_equal(weights, np.rint(weights)) and float(np.abs(weights).max()) <= INT8_LARGEST
    return problem.dtype == np.uint8 and whole


def has_short_sums(problem: Problem) -> bool:
    """Whether an 8-bit picture's two responses are both at most SHORT_LARGEST in size."""
    taps = problem.weights.reshape(problem.directions, problem.output_channels, -1)
    largest = max(float(np.where(taps * sign > 0, taps * sign, 0).sum(axis=-1).max()) for sign in (1, -1))
    limit = np.iinfo(np.uint8).max * largest
    return problem.dtype == np.uint8 and problem.directions == 2 and limit <= SHORT_LARGEST


def halves(weights: NDArray[np.float32]) -> NDArray[np.float16]:
    """Each weight as the sum of two halves, high and low part: (2, ...)."""
    with np.errstate(over="ignore"):
        high = weights.astype(np.float16)
        low = (weights - high.astype(np.float32)).astype(np.float16)
    return np.stack([high, low])


def has_half_weights(problem: Problem) -> bool:
    """Whether a float16 picture's weights, as two halves each, keep what float32 sums would show."""
    high, low = halves(problem.weights).astype(np.float64)
    largest = np.abs(problem.weights).max(axis=(2, 3, 4), keepdims=True)  # of each direction and output by itself
    with np.errstate(invalid="ignore"):
        lost = np.abs(high + low - problem.weights)
    return problem.dtype == np.float16 and bool(np.all(lost <= largest * HALVES_STEP))


def arithmetic_for(problem: Problem) -> StripArithmetic:
    """How the strips sum a problem."""
    fits_fragments = problem.stride == 1 and problem.output_channels == problem.in_channels == RGB_CHANNELS
    if has_int8_weights(problem):
        return "mma" if fits_fragments and problem.output_dtype == np.uint8 and _needs_mma(problem) else "dp4a"
    return "mma" if fits_fragments and has_half_weights(problem) else "fma"


def _needs_mma(problem: Problem) -> bool:
    """Whether dp4a alone would take longer than memory does: all but one 3×3 kernel per channel."""
    return problem.groups == 1 or problem.directions > 1


def has_strips(problem: Problem) -> bool:
    """Whether sliding.cu does it: windows that are not far apart, two directions at most, sums that float32 holds."""
    outputs = problem.output_channels
    many = problem.dtype == problem.output_dtype == np.float32  # two pixels of such a bank are whole words
    in_one_pass = problem.groups == 1 or outputs == problem.in_channels
    few = outputs <= (MOST_STRIP_OUTPUTS if many else RGB_CHANNELS)
    return in_one_pass and few and problem.stride <= LARGEST_STRIP_STRIDE and _has_float32_sums(problem)


def overlaps(problem: Problem) -> bool:
    """Whether neighbouring windows share samples, or touch, and float32 sums of one or two directions are enough."""
    return problem.stride <= KERNEL_SIZE and _has_float32_sums(problem)


def _has_float32_sums(problem: Problem) -> bool:
    """Whether float32 holds the sums, of one or two directions."""
    return problem.combine != "maximum" and sums_for(problem) == "float32"


def is_small(problem: Problem) -> bool:
    """Whether one thread per pixel is faster than strips and stores the same bytes.

    It does in integers, and in float32, where both add in the same order; the tensor cores' sums of float16 differ.
    """
    if arithmetic_for(problem) == "mma" and problem.dtype == np.float16:
        return False
    plain = problem.dtype == np.float32 and problem.stride <= 2
    return problem.output_height * problem.output_width <= (DIRECT_FLOAT32_PIXELS if plain else DIRECT_PIXELS)
