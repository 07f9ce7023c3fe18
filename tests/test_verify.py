"""The judge itself: what is right passes, what is wrong is found, and where."""

from __future__ import annotations

import numpy as np
import pytest
from problems import random_image, random_weights

from edgeconv.core.filters import WeightSet, named_filter, weight_set
from edgeconv.core.problem import make_problem
from edgeconv.errors import UsageError
from edgeconv.methods.base import Options
from edgeconv.methods.reference import Reference
from edgeconv.runtime import check as verify
from edgeconv.runtime.check import check, rows_to_check


def solved(dtype: str, mode: str, name: str | None = None):
    image = random_image(40, 23, dtype)
    weights = random_weights() if name is None else weight_set(named_filter(name), "each")
    problem = make_problem(image.shape, dtype, weights, output_mode=mode)
    out = np.empty(problem.output_shape, problem.output_dtype)
    Reference().prepare(problem, Options()).run(image, out)
    return image, out, problem


@pytest.mark.parametrize(
    ("dtype", "mode"), [("uint8", "abs"), ("uint16", "clip"), ("float32", "raw"), ("float16", "abs")]
)
def test_the_oracle_agrees_with_itself(dtype: str, mode: str) -> None:
    image, out, problem = solved(dtype, mode)
    found = check(image, out, problem)
    assert found.passed
    assert found.checked_share == 1.0


@pytest.mark.parametrize("step", [1, 2, 100])
def test_one_wrong_level_is_found_with_its_place(step: int) -> None:
    image, out, problem = solved("uint8", "abs", "laplacian4")
    true = int(out[17, 5, 2])
    out[17, 5, 2] = wrong = true + step if true + step <= 255 else true - step
    found = check(image, out, problem)
    assert not found.passed
    assert (found.unexplained_samples, found.max_abs_error) == (1, step)
    assert (found.worst.y, found.worst.x, found.worst.channel, found.worst.got) == (17, 5, 2, wrong)


def test_a_float_that_is_off_by_two_millionths_of_the_largest_is_found() -> None:
    image, out, problem = solved("float32", "raw")
    out[3, 4, 1] += 2e-6 * np.abs(out).max()
    assert not check(image, out, problem).passed


def test_nan_never_passes() -> None:
    image, out, problem = solved("float32", "raw")
    out[0, 0, 0] = np.nan
    found = check(image, out, problem)
    assert not found.passed
    assert found.max_abs_error == np.inf


def test_nan_in_the_picture_spoils_its_own_windows_and_no_others() -> None:
    image, out, problem = solved("float32", "raw")
    image = image.copy()
    image[20, 11, 1] = np.nan
    out[19:22, 10:13] = np.inf
    found = check(image, out, problem)
    assert found.passed
    assert found.checked_samples == out.size - 3 * 3 * 3
    out[5, 5, 0] = 0
    assert check(image, out, problem).unexplained_samples == 1


def test_a_picture_of_nan_alone_is_not_called_checked() -> None:
    image, out, problem = solved("float32", "raw")
    assert check(np.full_like(image, np.inf), out, problem).checked_share == 0


@pytest.mark.parametrize("weight", [3e6, 1e8, 1e30])
def test_black_is_not_right_where_values_are_huge(weight: float) -> None:
    image = random_image(16, 16, "uint8")
    huge = np.zeros((1, 3, 1, 3, 3), np.float32)
    huge[..., 1, 1] = weight
    problem = make_problem(image.shape, "uint8", WeightSet(huge, groups=3), output_mode="abs")
    assert not check(image, np.zeros_like(image), problem).passed
    assert check(image, np.where(image > 0, 255, 0).astype(np.uint8), problem).passed


@pytest.mark.parametrize("levels", [-1000, -2, -1, 1, 2, 1000])
@pytest.mark.parametrize("name", ["emboss", "laplacian8", None], ids=["emboss", "laplacian8", "fractions"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_no_level_is_too_few_or_too_many_to_be_wrong(dtype: str, name: str | None, levels: int) -> None:
    """A single level is right where a fraction may round either way, and nowhere else."""
    if dtype == "uint8":
        levels = max(-60, min(60, levels))
    image, out, problem = solved(dtype, "clip", name)
    white = np.iinfo(dtype).max
    y, x, channel = np.argwhere((out > white // 4) & (out < white - white // 4))[0]
    out[y, x, channel] = int(out[y, x, channel]) + levels
    found = check(image, out, problem)
    if name is None and abs(levels) == 1:
        assert found.max_abs_error == 1
        return
    assert (found.passed, found.unexplained_samples, found.max_abs_error) == (False, 1, abs(levels))
    assert found.worst is not None
    assert (found.worst.y, found.worst.x, found.worst.channel) == (y, x, channel)


def test_a_large_check_computes_the_oracle_again_and_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    image, out, problem = solved("uint8", "abs")
    out[17, 5, 2] ^= 64
    kept = check(image, out, problem)
    monkeypatch.setattr(verify, "KEPT_SAMPLES", 0)
    assert check(image, out, problem) == kept


def test_a_tie_explains_one_level_and_no_more() -> None:
    image = np.full((3, 3, 3), 5, np.uint8)
    half = np.zeros((1, 3, 1, 3, 3), np.float32)
    half[..., 1, 1] = 0.5
    problem = make_problem(image.shape, "uint8", WeightSet(half, groups=3), output_mode="clip")
    for level, passed in ((2, True), (3, True), (4, False), (1, False)):
        assert check(image, np.full((3, 3, 3), level, np.uint8), problem).passed is passed


def test_sampled_rows_hold_both_ends_and_no_row_twice() -> None:
    blocks = rows_to_check(1000, 100, 5000)
    rows = [row for start, stop in blocks for row in range(start, stop)]
    assert (rows[0], rows[-1]) == (0, 999)
    assert len(rows) == len(set(rows)) < 100
    assert rows_to_check(10, 100, 5000) == rows_to_check(10, 100, None)


def test_a_layout_that_is_not_the_problems_is_no_output() -> None:
    image, out, problem = solved("uint8", "abs")
    with pytest.raises(ValueError, match="the problem's is"):
        check(image, out[1:], problem)


@pytest.mark.parametrize(
    ("shape", "dtype", "mode"),
    [
        ((4, 4), "uint8", "abs"),
        ((4, 4, 4), "uint8", "abs"),
        ((0, 4, 3), "uint8", "abs"),
        ((4, 4, 3), "int32", "abs"),
        ((4, 4, 3), "float32", "clip"),
    ],
)
def test_a_problem_with_no_meaning_is_refused(shape, dtype, mode) -> None:
    with pytest.raises(UsageError):
        make_problem(shape, dtype, random_weights(), output_mode=mode)
