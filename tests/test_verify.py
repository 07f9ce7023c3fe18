"""The judge itself: what is right passes, what is wrong is found, and where."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from problems import random_image, random_weights

from edgeconv.api import check as verify
from edgeconv.api.check import check, joined, rows_to_check
from edgeconv.core import exactness
from edgeconv.core.exactness import FLOAT32, HALF
from edgeconv.core.filters import WeightSet, named_filter, weight_set
from edgeconv.core.problem import make_problem
from edgeconv.methods.cpu.sliding import CpuSliding
from edgeconv.methods.options import Options
from edgeconv.methods.reference import Reference


def solved(dtype: str, mode: str, name: str | None = None):
    image = random_image(40, 23, dtype)
    weights = random_weights() if name is None else weight_set(named_filter(name), "each")
    problem = make_problem(image.shape, dtype, weights, output_mode=mode)
    out = np.empty(problem.output_shape, problem.output_dtype)
    Reference().prepare(problem, Options()).run(image, out)
    return image, out, problem


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("dtype", "size"), [("float32", 2e37), ("float64", 1e307)])
@pytest.mark.parametrize("name", ["sobel", "kirsch", "laplacian8"])
@pytest.mark.parametrize("channels", ["each", "mix"])
def test_values_past_the_range_of_their_type_warn_of_nothing(dtype: str, size: float, name: str, channels: str) -> None:
    """NumPy's warning about an overflow would tell the user nothing."""
    image = (random_image(20, 30, "float64") * size).astype(dtype)
    problem = make_problem(image.shape, dtype, weight_set(named_filter(name), channels))
    out = np.empty(problem.output_shape, problem.output_dtype)
    plan = CpuSliding().prepare(problem, Options())
    plan.run(image, out)
    assert check(image, out, problem, plan.arithmetic).passed


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


# --- figures of a check ----------------------------------------------------------------------------------------------


def test_checking_a_bank_of_256_takes_little_memory() -> None:
    """One array of all its sums would be 34 MB; the oracle and the check hold a few of 8 MB, and find what is wrong."""
    image = random_image(64, 256, "float32")
    weights = np.random.default_rng(3).uniform(-1, 1, (1, 256, 3, 3, 3))
    problem = make_problem(image.shape, "float32", WeightSet(weights, groups=1))
    out = np.empty(problem.output_shape, problem.output_dtype)
    tracemalloc.start()
    Reference().prepare(problem, Options()).run(image, out)
    assert tracemalloc.get_traced_memory()[1] < 60e6
    out[63, 200, 255] += 1
    tracemalloc.reset_peak()
    found = check(image, out, problem)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.checked_samples == out.size
    assert (found.unexplained_samples, found.worst.y, found.worst.x, found.worst.channel) == (1, 63, 200, 255)
    assert peak_bytes < 150e6


def laplacian(image: np.ndarray, mode: str = "raw"):
    """The problem of a picture, one filter a channel, and the oracle's output."""
    weights = weight_set(named_filter("laplacian4"), "each")
    problem = make_problem(image.shape, image.dtype, weights, output_mode=mode)
    out = np.empty(problem.output_shape, problem.output_dtype)
    Reference().prepare(problem, Options()).run(image, out)
    return out, problem


def test_the_figures_of_a_check_by_hand() -> None:
    """One pixel of 10 in black: −40 in its place and 10 around it."""
    image = np.zeros((9, 9, 3), np.uint8)
    image[4, 4] = 10
    out, problem = laplacian(image, "abs")
    assert (check(image, out, problem).relative_error, check(image, out, problem).max_abs_error) == (0.0, 0.0)
    out[4, 4, 1] = 30
    out[0, 0, 0] = 2
    found = check(image, out, problem)
    assert (found.max_abs_error, found.relative_error, found.tolerance) == (10.0, 0.25, 0.0)
    assert (found.differing_samples, found.unexplained_samples, found.checked_samples) == (2, 2, 243)
    assert (found.worst.got, found.worst.expected, found.exact) == (30.0, 40.0, True)
    black = np.zeros((9, 9, 3), np.uint8)
    out, problem = laplacian(black, "abs")
    assert check(black, out, problem).relative_error == 0.0
    out[1, 1, 1] = 1
    assert check(black, out, problem).relative_error is None


def test_of_equal_errors_the_first_is_shown_whatever_block_it_is_in() -> None:
    image = random_image(140, 9, "uint8")
    out, problem = laplacian(image, "abs")
    for place in ((135, 3, 1), (100, 4, 0), (20, 5, 2), (20, 6, 0)):
        out[place] ^= 1  # one level up or down
    worst = check(image, out, problem).worst
    assert (worst.y, worst.x, worst.channel) == (20, 5, 2)


def test_what_a_nan_reaches_is_no_part_of_the_figures() -> None:
    image = random_image(12, 9, "uint8").astype(np.float32)
    image[5, 5, 1] = np.nan
    out, problem = laplacian(image)
    found = check(image, out, problem)
    assert found.passed
    assert (found.max_abs_error, found.unexplained_samples, found.checked_samples) == (0.0, 0, 12 * 9 * 3 - 9)
    out[5, 5, 1] = 1.0  # it must reach the window's middle
    found = check(image, out, problem)
    assert (found.unexplained_samples, found.worst.y, found.worst.x, found.worst.channel) == (1, 5, 5, 1)
    assert found.max_abs_error == 0.0


def test_transforms_may_err_by_what_the_largest_sample_gives_anywhere() -> None:
    """A picture of one bright pixel: its error reaches every output, and counts all 9 samples as that bright."""
    image = np.zeros((8, 8, 3), np.float32)
    image[4, 4] = 100.0
    _, problem = laplacian(image)
    arithmetic = replace(FLOAT32, transforms=True, weight_loss=2.0**-11)
    ((_, values, bound),) = verify.oracle(image, problem, arithmetic, [(0, 8)])
    sums, samples = np.full((1, *values.shape), 8 * 100.0), np.full((1, *values.shape), 9 * 100.0)
    errors = exactness.response_bound(problem, arithmetic, sums, samples)
    expected = exactness.stored_bound(values, exactness.join_bounds(errors, sums, problem), np.dtype(np.float32))
    assert np.array_equal(bound, expected)
    assert bound.min() > 0


@pytest.mark.parametrize(
    ("sample", "is_spoilt"), [(65504.0, False), (-65504.0, False), (65536.0, True), (np.inf, True)]
)
def test_the_largest_operand_spoils_nothing_and_what_is_above_does(sample: float, is_spoilt: bool) -> None:
    image = np.ones((5, 6, 3), np.float32)
    image[2, 3, 1] = sample
    out, problem = laplacian(image)
    found = check(image, out, problem, HALF)
    assert found.passed
    assert (found.checked_samples < out.size) == is_spoilt


@pytest.mark.parametrize("output_mode", ["abs", "raw"])
@pytest.mark.parametrize("name", ["laplacian8", "sobel"])
def test_where_sums_are_exact_the_root_of_a_stored_magnitude_alone_is_not(name: str, output_mode: str) -> None:
    image = random_image(7, 8, "uint8")
    problem = make_problem(image.shape, "uint8", weight_set(named_filter(name), "each"), output_mode=output_mode)
    ((_, values, bound),) = verify.oracle(image, problem, FLOAT32, [(0, 7)])
    expected = np.zeros_like(values)
    if (name, output_mode) == ("sobel", "raw"):
        expected = 4 * 2.0**-24 * values + 2 * 2.0**-149
    if output_mode == "raw":
        expected = expected + 2.0**-24 * (np.abs(values) + expected) + 2.0**-149
    assert bound == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_of_several_parts_the_worst_sample_is_one_that_the_bounds_do_not_explain(place: int) -> None:
    """A NaN that was lost has no error; the largest error of another part may be within its bounds."""
    image = random_image(6, 8, "float32")
    problem = make_problem(image.shape, image.dtype, weight_set(named_filter("sobel"), "each"))
    parts = []
    for number in range(3):
        given = image.copy()
        if number == place:
            given[3, 3, 1] = np.nan
        out = np.empty(problem.output_shape, problem.output_dtype)
        Reference().prepare(problem, Options()).run(given, out)
        if number == place:
            out[2, 2, 1] = 0
        else:
            out[number, 0, 0] = np.nextafter(out[number, 0, 0], np.float32(np.inf))
        parts.append(check(given, out, problem))
    found = joined(parts, sum(part.checked_samples for part in parts))
    assert not found.passed
    assert (found.worst.y, found.worst.x, found.worst.channel) == (2, 2, 1)
    assert found.max_abs_error == max(part.max_abs_error for part in parts) > 0
    assert (found.unexplained_samples, found.checked_share) == (1, 1.0)
