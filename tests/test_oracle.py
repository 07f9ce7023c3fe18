"""The oracle's float64 sums against fractions, which are exact."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from edgeconv.core.exactness import FLOAT64_UNIT
from edgeconv.core.filters import WeightSet
from edgeconv.core.geometry import OUTSIDE, border_indices
from edgeconv.core.problem import Problem, make_problem
from edgeconv.methods import reference


def exact_sum(
    image: np.ndarray, problem: Problem, direction: int, y: int, x: int, out: int
) -> tuple[Fraction, Fraction]:
    """Σ weight · sample of one output, and Σ|weight · sample|, by the definition."""
    rows = border_indices(problem.height, problem.padding, problem.border)
    columns = border_indices(problem.width, problem.padding, problem.border)
    total = size = Fraction(0)
    weights = problem.dense_weights()
    for channel, u, v in np.ndindex(problem.in_channels, 3, 3):
        row, column = rows[y * problem.stride + u], columns[x * problem.stride + v]
        if OUTSIDE in (row, column):
            continue
        product = Fraction(float(weights[direction, out, channel, u, v])) * Fraction(float(image[row, column, channel]))
        total, size = total + product, size + abs(product)
    return total, size


def spread(shape: tuple[int, ...], powers: int, seed: int) -> np.ndarray:
    """Numbers of either sign between 2^-powers and 2^powers."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, shape) * 2.0 ** rng.integers(-powers, powers, shape)


@pytest.mark.parametrize("border", ["zero", "reflect101"])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize(
    ("in_channels", "groups", "outputs", "directions"), [(1, 1, 1, 1), (1, 1, 4, 2), (3, 1, 2, 1), (3, 3, 6, 2)]
)
def test_sums_of_float64_are_as_exact_as_twice_the_digits(
    in_channels: int, groups: int, outputs: int, directions: int, stride: int, border: str
) -> None:
    """Terms of very different size that cancel: a plain float64 sum has no digit right in many of these."""
    image = spread((5, 6, in_channels), 40, 1)
    weights = spread((directions, outputs, in_channels // groups, 3, 3), 40, 2)
    rules = {"stride": stride, "border": border}
    problem = make_problem(image.shape, "float64", WeightSet(weights, groups), **rules)
    found = reference.responses(image, problem.weights, problem, 0, problem.output_height)
    assert found.shape == (directions, *problem.output_shape)
    terms = weights[0, 0].size
    for direction, y, x, out in np.ndindex(found.shape):
        total, size = exact_sum(image, problem, direction, y, x, out)
        allowed = Fraction(FLOAT64_UNIT) * abs(total) + Fraction((terms * FLOAT64_UNIT) ** 2) * size
        assert abs(Fraction(float(found[direction, y, x, out])) - total) <= allowed


def test_a_sum_that_cancels_leaves_what_a_plain_sum_loses() -> None:
    """2^60 + 1 - 2^60, and 0.1 · 0.1 less its own rounded product: the error of that product alone."""
    image = np.zeros((3, 3, 1))
    image[1] = np.array([[2.0**60], [1.0], [-(2.0**60)]])
    ones = make_problem(image.shape, "float64", WeightSet(np.ones((1, 1, 1, 3, 3)), 1), padding=0)
    assert reference.values(image, ones, 0, 1).tolist() == [[[1.0]]]
    product = 0.1 * 0.1
    image[1] = np.array([[0.1], [-product], [0.0]])
    weights = np.ones((1, 1, 1, 3, 3))
    weights[..., 1, 0] = 0.1
    tenths = make_problem(image.shape, "float64", WeightSet(weights, 1), padding=0)
    lost = Fraction(0.1) * Fraction(0.1) - Fraction(product)
    assert lost != 0
    assert reference.values(image, tenths, 0, 1).tolist() == [[[float(lost)]]]


@pytest.mark.parametrize("largest", [1e300, 1e308, np.inf, np.nan])
def test_what_is_too_large_to_be_halved_or_not_finite_is_summed_plainly(largest: float) -> None:
    image = np.ones((3, 4, 1))
    image[1, 3] = largest
    problem = make_problem(image.shape, "float64", WeightSet(np.full((1, 1, 1, 3, 3), 0.5), 1), padding=0)
    left, right = reference.values(image, problem, 0, 1).ravel().tolist()
    assert left == 4.5
    assert np.array_equal(right, 0.5 * largest + 4.0, equal_nan=True)
