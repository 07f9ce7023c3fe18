"""Each term of the error bounds by hand: units of types and tensor cores, and how errors of responses are joined.

A bound that is too small calls right outputs wrong, one that is too large lets wrong ones pass; nothing else would show
either. All numbers are written out here, none is taken from the package.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from edgeconv.core import exactness
from edgeconv.core.exactness import FLOAT32, FLOAT64, HALF, TF32, TWOFOLD_HALF, WHOLE, Arithmetic
from edgeconv.core.filters import WeightSet
from edgeconv.core.problem import Problem, make_problem

MARGIN = 1.01
TERMS, SUM, LARGEST = 3 + 1, 0.5 + 0.25 + 2, 2.0
"""Of the weights below: three that are not zero, and one for what the sum starts from."""
SAMPLES = 9 * 3.0
"""Nine samples of at most 3."""
TINY = TERMS * 2.0**-149


def problem_of(weights: dict[tuple[int, int], float], dtype: str = "float32", combine: str = "single") -> Problem:
    found = np.zeros((2 if combine == "magnitude" else 1, 3, 1, 3, 3), np.float32)
    for (row, column), value in weights.items():
        found[..., row, column] = value
    return make_problem((5, 6, 3), dtype, WeightSet(found, groups=3, combine=combine), output_mode="raw")


FRACTIONS = {(0, 0): 0.5, (1, 2): -0.25, (2, 2): 2.0}
STORED_NARROW = replace(FLOAT32, name="narrow responses", response_unit=2.0**-11)
TRANSFORMED = replace(FLOAT32, name="Winograd", transforms=True)


@pytest.mark.parametrize(
    ("arithmetic", "error"),
    [
        (FLOAT32, TERMS * 2.0**-24 * SUM * 3 + TINY),
        (FLOAT64, TERMS * 2.0**-53 * SUM * 3 + TINY),
        (TWOFOLD_HALF, TERMS * 2.0**-22 * SUM * 3 + 2.0**-21 * LARGEST * SAMPLES + TINY),
        (TF32, (TERMS * 2.0**-22 + 2.0**-10) * SUM * 3 + TINY),
        (HALF, (TERMS * 2.0**-22 + 2.0**-10) * SUM * 3 + TINY + 2.0**-25 * (SAMPLES + SUM)),
        (
            STORED_NARROW,
            (TERMS * 2.0**-24 * SUM * 3 + TINY) * (1 + 2.0**-11) + 2.0**-11 * SUM * 3 + 2.0**-25,
        ),
        (TRANSFORMED, 64 * (TERMS * 2.0**-24 * SUM * 3 + TINY)),
    ],
    ids=lambda value: value.name if isinstance(value, Arithmetic) else "",
)
def test_the_bound_of_a_sum(arithmetic: Arithmetic, error: float) -> None:
    found = exactness.bound(problem_of(FRACTIONS), arithmetic, 3.0)
    assert found == pytest.approx([MARGIN * error] * 3, rel=1e-14)


def test_without_a_largest_sample_floats_reach_to_one_and_whole_numbers_to_white() -> None:
    floats, bytes_ = problem_of(FRACTIONS), problem_of(FRACTIONS, "uint8")
    assert np.array_equal(exactness.bound(floats, FLOAT32), exactness.bound(floats, FLOAT32, 1.0))
    white = MARGIN * (TERMS * 2.0**-24 * SUM * 255 + TINY)
    assert exactness.bound(bytes_, FLOAT32) == pytest.approx([white] * 3, rel=1e-14)
    assert np.array_equal(exactness.bound(bytes_, FLOAT32, 3.0), exactness.bound(bytes_, FLOAT32))


@pytest.mark.parametrize(
    ("arithmetic", "sums", "samples", "is_bounded"),
    [
        (FLOAT32, 3.4e38, 3.4e38, True),
        (FLOAT32, 3.5e38, 1.0, False),
        (FLOAT32, 1.0, 3.5e38, False),
        (HALF, 1.0, 1.0, True),
    ],
)
def test_beyond_float32_there_is_no_bound(
    arithmetic: Arithmetic, sums: float, samples: float, is_bounded: bool
) -> None:
    found = exactness.response_bound(problem_of(FRACTIONS), arithmetic, np.full((1, 3), sums), np.full((1, 3), samples))
    assert np.isfinite(found).all() == is_bounded


@pytest.mark.parametrize(("weight", "is_bounded"), [(65504.0, True), (65536.5, False)])
def test_weights_that_no_half_holds_have_no_bound_in_halves(weight: float, is_bounded: bool) -> None:
    problem = problem_of({(1, 1): weight, (0, 0): 0.5})
    assert np.isfinite(exactness.bound(problem, HALF, 1.0)).all() == is_bounded
    assert np.isfinite(exactness.bound(problem, TF32, 1.0)).all()


def test_the_bound_of_a_magnitude() -> None:
    """Errors 3 and 4 of responses 6 and 8: 5, and the root is taken in float32."""
    problem = problem_of(FRACTIONS, combine="magnitude")
    errors, sums = np.array([[3.0, 0.0, 5.0], [4.0, 1.0, 12.0]]), np.array([[6.0, 0.0, 3.0], [8.0, 2.0, 4.0]])
    unit = 4 * 2.0**-24
    expected = [5 + unit * 10, 1 + unit * 2, 13 + unit * 5]
    assert exactness.join_bounds(errors, sums, problem) == pytest.approx(expected, rel=1e-15)
    nothing = exactness.join_bounds(errors * 0, sums * 0, problem)
    assert nothing.tolist() == [2 * 2.0**-149] * 3
    single = problem_of(FRACTIONS)
    assert exactness.join_bounds(errors, sums, single).tolist() == [4, 1, 12]


@pytest.mark.parametrize(("dtype", "unit", "tiny"), [("float16", 2.0**-11, 2.0**-25), ("float32", 2.0**-24, 2.0**-149)])
def test_what_storing_adds(dtype: str, unit: float, tiny: float) -> None:
    values, errors = np.array([-3.0, 0.0, 2.0]), np.array([0.5, 0.0, 0.25])
    found = exactness.stored_bound(values, errors, np.dtype(dtype))
    assert found.tolist() == [0.5 + unit * 3.5 + tiny, tiny, 0.25 + unit * 2.25 + tiny]


# --- what is exact ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arithmetic", "bits"), [(FLOAT32, 24), (FLOAT64, 53), (WHOLE, 31), (TWOFOLD_HALF, 22), (TF32, 22), (HALF, 22)]
)
def test_whole_sums_are_exact_up_to_their_bits_and_no_further(arithmetic: Arithmetic, bits: int) -> None:
    """One weight of a power of two on 8-bit samples: 255 times it is below the limit, of the next power above it."""
    for power, is_exact in ((bits - 8, True), (bits - 7, False)):
        problem = problem_of({(1, 1): 2.0**power}, "uint8")
        holds_operands = 2.0**power <= arithmetic.operand_largest
        assert exactness.is_exact(problem, arithmetic) == (is_exact and holds_operands), power


@pytest.mark.parametrize(("arithmetic", "bits"), [(TF32, 11), (HALF, 11)])
def test_weights_that_operands_do_not_hold_are_not_exact(arithmetic: Arithmetic, bits: int) -> None:
    for weight, is_exact in ((2**bits - 1, True), (2**bits + 1, False), (2**bits + 2, True)):
        assert exactness.is_exact(problem_of({(1, 1): float(weight)}, "uint8"), arithmetic) == is_exact, weight
    assert not exactness.is_exact(problem_of({(1, 1): 1.0}, "uint16"), arithmetic), "65535 has 16 bits"


@pytest.mark.parametrize("arithmetic", [STORED_NARROW, TRANSFORMED])
def test_what_is_stored_or_transformed_in_between_is_never_exact(arithmetic: Arithmetic) -> None:
    assert not exactness.is_exact(problem_of({(1, 1): 1.0}, "uint8"), arithmetic)


@pytest.mark.parametrize(
    ("dtype", "combine", "weight", "mode", "needs"),
    [
        ("uint16", "magnitude", 1.0, "abs", True),
        ("uint8", "magnitude", 1.0, "abs", False),
        ("uint16", "single", 1.0, "abs", False),
        ("uint16", "magnitude", 0.5, "abs", False),
        ("uint16", "magnitude", 1.0, "raw", False),
    ],
)
def test_which_magnitudes_are_rounded_by_their_square(
    dtype: str, combine: str, weight: float, mode: str, needs: bool
) -> None:
    weights = np.full((2 if combine == "magnitude" else 1, 3, 1, 3, 3), weight, np.float32)
    problem = make_problem((5, 6, 3), dtype, WeightSet(weights, groups=3, combine=combine), output_mode=mode)
    assert exactness.needs_exact_root(problem) == needs
