"""How exact a sum is, and how exact it can be: decided once, when a plan is created, for both devices.

    whole-number picture, whole weights      exact. float32 sums are while Σ|weight| · white is at most 2²⁴; beyond it
                                             a plan sums in float64 (to 2⁵³) or in integers wide enough
    whole-number picture, other weights      float32, or float64 where the bound of an integer output would be above
                                             1/64 of a level: it is within a half and that of the exact value
    float picture                            float32 sums; float64 where the picture is float64

What else an arithmetic loses is stated by its `Arithmetic`, from which a forward error bound follows (Higham,
Accuracy and Stability of Numerical Algorithms, 2nd edition, section 3.1): a sum of n products, in any order, is off by
at most about n · unit · Σ|weight · sample|. The check of every output (api/check.py) and the reports use it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.problem import Problem

Sums = Literal["float32", "float64"]

FLOAT32_UNIT, FLOAT64_UNIT = 2.0**-24, 2.0**-53
"""Largest relative error of one rounding to nearest."""
TENSOR_CORE_UNIT = 2.0**-22
"""Tensor cores align the products of an instruction and truncate what does not fit, which loses more than rounding."""
FLOAT32_TINY, FLOAT64_TINY = 2.0**-149, 2.0**-1074
"""The least number above zero: what one rounding may lose of a denormal number, twice over."""
FLOAT16_UNIT, FLOAT16_TINY, FLOAT16_LARGEST = 2.0**-11, 2.0**-25, 65504.0
ROUNDING_OF_TYPE = {
    "float16": (FLOAT16_UNIT, FLOAT16_TINY),
    "float32": (FLOAT32_UNIT, FLOAT32_TINY),
    "float64": (FLOAT64_UNIT, FLOAT64_TINY),
}
"""What storing a value as a sample of that type may change it by: its relative and its absolute part."""
HALVES_STEP = 2.0**-21
"""Share of the largest weight of an output and direction that two halves may lose."""
TRANSFORM_GROWTH = 64
"""How much larger the errors of Winograd's and Fourier's transforms may be than those of the sum itself; a constant
on the safe side, as the libraries state none (Winograd's F(4×4, 3×3) is the worst of those in use)."""
MOST_LEVELS_OFF = 2.0**-6
"""The largest error of an integer output before it is rounded, where weights have fractions and a method may choose."""
LEVEL_OFF = "at most one level off, and only where the exact value lies within the bound of a half"
LEVEL_OFF_BELOW = 0.5
"""What integer outputs of a smaller bound are."""
SECOND_ORDER = 1.01
"""Margin for the products of errors, which the bound neglects."""


@dataclass(frozen=True)
class Arithmetic:
    """The arithmetic of a plan's sums, and the errors that it may introduce."""

    name: str
    unit: float
    """Largest relative error of a multiply-add."""
    whole_bits: int
    """Sums of whole numbers up to two to the power of this are exact."""
    roundings: int | None = None
    """Of a term at most; None: one for each weight that is not 0, and one more."""
    operand_bits: int | None = None
    """Samples and weights are rounded to this number of bits before they are multiplied; None: they are not."""
    operand_tiny: float = 0.0
    """Absolute error of that rounding near zero."""
    operand_largest: float = float("inf")
    """Samples and weights beyond it become infinite."""
    weight_loss: float = 0.0
    """What a weight may lose, as a share of the largest weight of its output and direction."""
    response_unit: float = 0.0
    """Relative error of a response that is stored in a narrower type before responses are joined."""
    multiplies_zeros: bool = False
    """Whether unrelated channels are multiplied by zeros, which turns an infinity into NaN."""
    transforms: bool = False
    """Whether samples are transformed first, so that errors, and NaN, reach beyond their own windows."""


FLOAT32 = Arithmetic("float32", FLOAT32_UNIT, 24)
FLOAT64 = Arithmetic("float64", FLOAT64_UNIT, 53)
WHOLE = Arithmetic("exact integers", 0.0, 31)
TWOFOLD_HALF = Arithmetic(
    "tensor cores, two halves for each weight, float32 sums", TENSOR_CORE_UNIT, 22, weight_loss=HALVES_STEP
)
WHOLE_HALVES = Arithmetic(
    "tensor cores, two halves for each weight, exact sums of each", FLOAT32_UNIT, 24, weight_loss=2.0**-22
)
TF32 = Arithmetic("tensor cores, TF32 operands, float32 sums", TENSOR_CORE_UNIT, 22, operand_bits=11)
HALF = Arithmetic(
    "tensor cores, half operands, float32 sums",
    TENSOR_CORE_UNIT,
    22,
    operand_bits=11,
    operand_tiny=FLOAT16_TINY,
    operand_largest=FLOAT16_LARGEST,
)
ARITHMETIC_OF_MATH = {"fma": FLOAT32, "tf32": TF32, "half": HALF}
"""For the choices of `--math`."""
ARITHMETIC_OF_SUMS: dict[Sums, Arithmetic] = {"float32": FLOAT32, "float64": FLOAT64}


def is_narrow(arithmetic: Arithmetic) -> bool:
    """Whether it is clearly less than float32: operands of fewer bits, or sums worse than those of tensor cores."""
    rounds = arithmetic.operand_bits is not None or arithmetic.response_unit > 0
    return rounds or arithmetic.unit > TENSOR_CORE_UNIT or arithmetic.weight_loss > HALVES_STEP


def is_whole(problem: Problem) -> bool:
    """Whether picture and weights are whole numbers."""
    return problem.dtype.kind == "u" and bool((problem.weights == np.rint(problem.weights)).all())


def largest_sums(problem: Problem) -> NDArray[np.float64]:
    """Σ|weight| · white for a whole-number picture: (directions, outputs), an upper bound of every partial sum."""
    white = float(np.iinfo(problem.dtype).max)
    sums: NDArray[np.float64] = np.abs(problem.weights.astype(np.float64)).sum(axis=(2, 3, 4)) * white
    return sums


def sums_for(problem: Problem) -> Sums:
    """The type that sums need: exact where weights are whole, and with fractions as `MOST_LEVELS_OFF` asks."""
    if problem.dtype.kind == "f":
        return "float64" if problem.dtype == np.float64 else "float32"
    is_wide = float(largest_sums(problem).max()) > 2.0**FLOAT32.whole_bits
    if not is_wide and problem.output_dtype.kind == "u" and not is_whole(problem):
        is_wide = float(bound(problem, FLOAT32).max()) > MOST_LEVELS_OFF
    return "float64" if is_wide else "float32"


def own_arithmetic(problem: Problem) -> Arithmetic:
    """The arithmetic of a method that follows `sums_for`."""
    return ARITHMETIC_OF_SUMS[sums_for(problem)]


def is_exact(problem: Problem, arithmetic: Arithmetic) -> bool:
    """Whether every sum of this problem is exact in this arithmetic, so that its output is held to equality."""
    if not is_whole(problem) or arithmetic.transforms or arithmetic.response_unit:
        return False
    if float(largest_sums(problem).max()) > 2.0**arithmetic.whole_bits:
        return False
    bits = arithmetic.operand_bits
    if bits is None:
        return True
    operands = np.concatenate([problem.weights.reshape(-1).astype(np.float64), [float(np.iinfo(problem.dtype).max)]])
    shifted = np.frexp(operands)[0] * 2.0**bits
    return bool((np.abs(operands) <= arithmetic.operand_largest).all() and (np.rint(shifted) == shifted).all())


def needs_exact_root(problem: Problem) -> bool:
    """Whether a magnitude has to be rounded by its whole square: float32 does not hold 16-bit samples squared."""
    return problem.combine == "magnitude" and problem.output_dtype == np.uint16 and is_whole(problem)


_NO_LIMIT = np.errstate(over="ignore", invalid="ignore")
"""Sums past the range of float64 have no bound: infinite, or no number, on the way."""


@_NO_LIMIT
def bound(problem: Problem, arithmetic: Arithmetic, largest_sample: float | None = None) -> NDArray[np.float64]:
    """The largest |error| of a value before it is stored, for each output channel, in output units.

    `largest_sample` is the largest |sample| of a float picture; whole numbers are as large as their type allows.
    """
    if problem.dtype.kind == "u":
        largest_sample = float(np.iinfo(problem.dtype).max)
    elif largest_sample is None:
        largest_sample = 1.0
    above = np.maximum(problem.weights, 0).astype(np.float64).sum(axis=(2, 3, 4)) * largest_sample
    below = np.maximum(-problem.weights, 0).astype(np.float64).sum(axis=(2, 3, 4)) * largest_sample
    samples = np.full(above.shape, problem.weights[0, 0].size * largest_sample)
    errors = response_bound(problem, arithmetic, above + below, samples)
    sizes = np.maximum(above, below) if problem.dtype.kind == "u" else above + below
    return join_bounds(errors, sizes, problem, arithmetic)


@_NO_LIMIT
def response_bound(
    problem: Problem, arithmetic: Arithmetic, sums: NDArray[np.float64], samples: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The largest |error| of responses (directions, ..., outputs), from Σ|weight · sample| and Σ|sample| under them."""
    if is_exact(problem, arithmetic):
        return np.zeros_like(sums)
    weights = np.abs(problem.weights.astype(np.float64))
    places = (slice(None), *(np.newaxis,) * (sums.ndim - 2), slice(None))
    terms = (np.count_nonzero(weights, axis=(2, 3, 4)) + 1.0)[places]
    terms = terms if arithmetic.roundings is None else np.minimum(terms, arithmetic.roundings)
    largest = weights.max(axis=(2, 3, 4))[places]
    relative = terms * arithmetic.unit
    if arithmetic.operand_bits is not None:
        relative = relative + 2 * 2.0**-arithmetic.operand_bits
    double = problem.dtype == np.float64
    tiny = FLOAT64_TINY if double else FLOAT32_TINY
    error = relative * sums + arithmetic.weight_loss * largest * samples + terms * tiny
    if arithmetic.operand_tiny:
        error = error + arithmetic.operand_tiny * (samples + weights.sum(axis=(2, 3, 4))[places])
    if arithmetic.response_unit:
        error = error + arithmetic.response_unit * (sums + error) + FLOAT16_TINY
    if arithmetic.transforms:
        error = error * TRANSFORM_GROWTH
    # Channels that are filtered alike may be added up before a small weight makes them smaller.
    beyond = np.maximum(sums, samples) > np.finfo(np.float64 if double else np.float32).max
    beyond = beyond | (largest > arithmetic.operand_largest)
    result: NDArray[np.float64] = np.where(beyond, np.inf, error * SECOND_ORDER)
    return result


@_NO_LIMIT
def join_bounds(
    errors: NDArray[np.float64], sizes: NDArray[np.float64], problem: Problem, arithmetic: Arithmetic = FLOAT32
) -> NDArray[np.float64]:
    """The largest |error| of values, given those and the sizes of the responses that they are combined from."""
    if problem.combine == "magnitude":
        if not errors.any() and problem.output_dtype.kind == "u":
            return np.zeros_like(errors[0])  # rounded by the whole square
        double = problem.dtype == np.float64 or arithmetic.unit == FLOAT64_UNIT
        unit, tiny = (FLOAT64_UNIT, FLOAT64_TINY) if double else (FLOAT32_UNIT, FLOAT32_TINY)
        root = 4 * unit * np.hypot.reduce(sizes, axis=0) + 2 * tiny
        joined: NDArray[np.float64] = np.hypot.reduce(errors, axis=0) + root
        return joined
    largest: NDArray[np.float64] = errors.max(axis=0)
    return largest


def stored_bound(values: NDArray[np.float64], errors: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[np.float64]:
    """`errors` of float samples with what storing `values` as `dtype` adds."""
    unit, tiny = ROUNDING_OF_TYPE[dtype.name]
    return errors + unit * (np.abs(values) + errors) + tiny
