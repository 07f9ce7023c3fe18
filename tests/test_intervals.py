"""The interval of a ratio of two times: of samples, of few samples, and of cases; numbers by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from edgeconv.bench.intervals import STUDENT_T, Ratio, mean_of_cases, ratio_interval


def test_an_interval_holds_the_true_ratio_in_most_of_many_series() -> None:
    """Of 300 pairs of 25 samples, whose medians have a ratio of 1.2, at most 3 % miss it (1 % is what is said)."""
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(300):
        found = ratio_interval(rng.normal(1.0, 0.05, 25).tolist(), rng.normal(1.2, 0.06, 25).tolist())
        held += found.low <= 1.2 <= found.high
        assert found.low < found.ratio < found.high
    assert 0.97 <= held / 300 < 1


def test_four_samples_are_too_few_to_draw_from_and_five_are_not() -> None:
    base, new = [1.0, 1.1, 1.3, 1.8, 1.9], [2.0, 2.1, 2.6, 2.7, 3.9]
    assert ratio_interval(base[:4], new) == Ratio(pytest.approx(2.6 / 1.2), 0.0, float("inf"), 4)
    assert str(ratio_interval(base[:4], new)) == "2.167 (few samples)"
    found = ratio_interval(base, new)
    assert min(new) / max(base) <= found.low < found.high <= max(new) / min(base)
    assert ratio_interval([2.0] * 9, [3.0] * 9) == Ratio(1.5, 1.5, 1.5, 9)


def test_the_mean_of_cases_has_the_interval_of_student_over_them() -> None:
    found = mean_of_cases(np.exp([1.0, 2.0, 3.0]).tolist())
    assert np.log([found.low, found.ratio, found.high]) == pytest.approx([2 - 9.925 / 3**0.5, 2, 2 + 9.925 / 3**0.5])
    assert mean_of_cases([3.0]) == Ratio(pytest.approx(3.0), 0.0, float("inf"), 1)


def test_students_t_holds_99_percent_of_its_own_density() -> None:
    """The density of t with n degrees of freedom, integrated from −t to t by the trapezoid rule."""
    for freedom, width in enumerate(STUDENT_T, 1):
        scale = math.gamma((freedom + 1) / 2) / (math.sqrt(freedom * math.pi) * math.gamma(freedom / 2))

        def density(x, freedom: int = freedom, scale: float = scale):
            return scale * (1 + x**2 / freedom) ** (-(freedom + 1) / 2)

        x = np.linspace(0, width, 20_001)
        inside = 2 * float(np.sum((density(x)[1:] + density(x)[:-1]) / 2 * np.diff(x)))
        assert abs(inside - 0.99) <= 2 * density(width) * 0.0005 + 1e-6, freedom
