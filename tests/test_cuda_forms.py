"""CUDA `sliding` by forms: which problems take one, that halves hold what they must, and roots at their closest."""

from __future__ import annotations

from dataclasses import replace
from math import isqrt
from typing import Any

import numpy as np
import pytest
from cpu_problems import NO_RING, NO_RING_OPPOSITE, RANDOM, RANDOM_WHOLE, Case
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_work import large_sliding
from problems import assert_right, run_on_gpu

from edgeconv.core.filters import COMPASS_RING, Weights, WeightSet, named_filter
from edgeconv.core.problem import Problem, make_problem
from edgeconv.methods.cuda.flat_rows import FlatFilter, flat_filter
from edgeconv.methods.cuda.sliding_choice import choose_strips, plane_form
from edgeconv.methods.options import Options

WHITE = 255


@pytest.mark.parametrize(
    ("name", "channels", "dtype", "arithmetic", "names"),
    [
        ("kirsch", "each", "uint8", "planes", ("ring of three",)),
        ("robinson", "luma", "uint8", "planes", ("weighted channel", "ring of differences")),
        ("kirsch", "mix", "float16", "planes", ("channel sum", "equal outputs", "ring of three")),
        (NO_RING, "each", "float32", "planes", ()),
        (NO_RING_OPPOSITE, "each", "float64", "planes64", ("opposite directions",)),
        ("sobel", "each", "uint16", "planes", ("gradient",)),
        ("sobel", "mix", "float16", "mma", None),
        ("laplacian8", "mix", "uint16", "planes", ("channel sum", "equal outputs")),
        ("laplacian8", "mix", "float32", "fma", None),
        ("sobel", "each", "float64", "fma64", None),
        (RANDOM, "mix", "uint16", "fma64", None),
        (RANDOM_WHOLE, "mix", "uint8", "mma", None),
    ],
)
def test_which_form_a_problem_takes(
    name: str, channels: str, dtype: str, arithmetic: str | None, names: tuple[str, ...] | None
) -> None:
    problem = Case(name, channels, dtype, "abs").problem()
    strips = choose_strips(problem)
    assert (None if strips is None else strips.sums) == arithmetic
    form = None if strips is None else strips.form
    assert (None if form is None else form.names) == names


@pytest.mark.parametrize("change", [{"stride": 9}, {"dtype": "float64", "filter": "sobel"}], ids=str)
def test_what_takes_no_form(change: dict[str, Any]) -> None:
    strips = choose_strips(replace(Case("kirsch", "each", "uint8", "abs"), **change).problem())
    assert strips is None or strips.form is None


def test_one_output_that_differs_is_not_one_filter_for_every_plane() -> None:
    for channels in ("mix", "each"):
        problem = Case("sobel", channels, "uint16", "abs").problem()
        assert plane_form(problem) is not None
        weights = problem.weights.copy()
        weights[0, 2, 0, 0, 0] += 1
        other = make_problem((9, 9, 3), "uint16", WeightSet(weights, problem.groups, "magnitude"), output_mode="abs")
        assert plane_form(other) is None


# --- halves -------------------------------------------------------------------------------------------------------


def compass(first: float, others: float) -> Weights:
    """Eight directions of one weight on three neighbours and another on the rest."""
    kernels = np.zeros((8, 3, 3), np.float32)
    for turn in range(8):
        for number, place in enumerate(COMPASS_RING):
            kernels[(turn, *place)] = first if (number - turn) % 8 < 3 else others
    return kernels


def compass_problem(kernels: Weights, dtype: str = "uint8") -> Problem:
    weights = WeightSet(np.tile(kernels[:, np.newaxis, np.newaxis], (1, 3, 1, 1, 1)), 3, "maximum")
    return make_problem((9, 16, 3), dtype, weights, output_mode="abs")


def in_halves(form: FlatFilter, rings: np.ndarray) -> np.ndarray:
    """What flat_rows.cu computes under PAIRS, every step rounded to a half, in units of its least one."""
    unit = 2.0**-24

    def rounded(values: Any) -> np.ndarray:
        return np.asarray(values, np.float64).astype(np.float16).astype(np.float64)

    x = [rounded(rings[:, number] * unit) for number in range(8)]
    if form.form == "ring_of_differences":
        apart = [rounded(x[i] - x[i + 4]) for i in range(4)]
        sums = [rounded(apart[i] + apart[i + 1]) for i in range(3)] + [rounded(apart[3] - apart[0])]
        responses = [rounded(sums[i] + sums[i + 1]) for i in range(3)] + [rounded(sums[3] - sums[0])]
        largest, total = np.abs(responses).max(axis=0), np.zeros(len(rings))
    else:
        pairs = [rounded(x[i] + x[i + 1]) for i in (0, 2, 4, 6)]
        threes = [rounded(pairs[i // 2] + np.maximum(x[i - 1], x[(i + 2) % 8])) for i in (0, 2, 4, 6)]
        largest = np.max(threes, axis=0)
        total = rounded(rounded(pairs[0] + pairs[1]) + rounded(pairs[2] + pairs[3]))
    near, far = rounded(form.near), rounded(form.far)
    joined = rounded(far * total + rounded(near * largest))
    found: np.ndarray = np.minimum(joined, WHITE * unit).astype(np.float16).view(np.uint16)
    return found


CORNERS = np.array(np.meshgrid(*[(0, WHITE)] * 8)).reshape(8, -1).T
RINGS = np.concatenate([CORNERS, np.random.default_rng(8).integers(0, WHITE + 1, (3000, 8))])


@given(first=st.integers(-40, 40), others=st.integers(-40, 40), power=st.integers(0, 5), robinson=st.booleans())
@settings(max_examples=200, deadline=None)
def test_halves_give_every_byte_of_what_they_are_taken_for(first: int, others: int, power: int, robinson: bool) -> None:
    kernels = named_filter("robinson").kernels * (first or 1) if robinson else compass(first * 2**power, others)
    problem = compass_problem(kernels)
    form = flat_filter(problem)
    if form is None or not form.has_pairs:
        return
    on_ring = np.stack([kernels[(slice(None), *place)] for place in COMPASS_RING], axis=-1)
    expected = np.abs((RINGS @ on_ring.T.astype(np.int64)).max(axis=1)).clip(0, WHITE)
    assert (in_halves(form, RINGS) == expected).all()


@pytest.mark.parametrize(
    ("first", "others", "held"),
    [
        (5, -3, True),
        (10, -6, True),
        (16, 0, True),
        (4, -1, False),  # five times a sum of three is no half
        (1, -3, False),  # values below zero
        (1.5, 0.5, False),
    ],
)
def test_which_rings_halves_hold(first: float, others: float, held: bool) -> None:
    form = flat_filter(compass_problem(compass(first, others)))
    assert (form is not None and form.has_pairs) == held
    of_16_bits = flat_filter(compass_problem(compass(first, others), "uint16"))
    assert of_16_bits is None or not of_16_bits.has_pairs


# --- roots --------------------------------------------------------------------------------------------------------


def closest_squares() -> list[tuple[int, int]]:
    """Pairs of 16 bits whose squares add up to k² + k or one more: as close below and above k + ½ as whole sums get."""
    found = []
    for k in (1, 2, 5, 254, 255, 4095, 16_383, 32_768, 46_340, 65_000, 65_500, 65_534, 65_535):
        for near in range(k, max(k - 40, 0), -1):
            for total in (near * near + near, near * near + near + 1):
                first = np.arange(min(isqrt(total), 65_535) + 1, dtype=np.int64)
                rest = total - first * first
                second = np.rint(np.sqrt(rest.astype(np.float64))).astype(np.int64)
                fits = (second * second == rest) & (second <= 65_535)
                found += list(zip(first[fits].tolist(), second[fits].tolist(), strict=True))[:6]
    return found


def test_the_closest_squares_are_as_close_as_they_can_be() -> None:
    pairs = closest_squares()
    assert len(pairs) > 300
    for first, second in pairs:
        total = first * first + second * second
        assert total - isqrt(total) * (isqrt(total) + 1) in (0, 1)


@pytest.mark.gpu
@pytest.mark.parametrize("channels", [3, 1])
def test_roots_closest_to_a_half_are_rounded_right(channels: int) -> None:
    """Each pair of samples by itself: right of a pixel and below it."""
    pairs = np.array(closest_squares(), np.uint16)
    image = np.zeros((3 * len(pairs), 12, channels), np.uint16)
    image[1::3, 5], image[2::3, 4] = pairs[:, :1], pairs[:, 1:]
    kernels = np.zeros((2, channels, 1, 3, 3), np.float32)
    kernels[0, ..., 1, 2], kernels[0, ..., 1, 0], kernels[1, ..., 2, 1], kernels[1, ..., 0, 1] = 1, -1, 1, -1
    problem = make_problem(image.shape, "uint16", WeightSet(kernels, channels, "magnitude"), output_mode="abs")
    ran = run_on_gpu(large_sliding(problem, Options()), image, problem)
    assert_right(ran)
    expected = [min(isqrt(4 * (int(a) ** 2 + int(b) ** 2)) + 1 >> 1, 65_535) for a, b in pairs]
    assert (ran.out[1::3, 4] == np.array(expected)[:, np.newaxis]).all()


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["kirsch", "robinson", "sobel", "scharr"])
@pytest.mark.parametrize("channels", ["each", "mix"])
def test_black_and_white_give_the_largest_sums_of_all(name: str, channels: str) -> None:
    for dtype in ("uint8", "uint16"):
        problem = Case(name, channels, dtype, "clip", shape=(200, 304)).problem()
        bits = np.random.default_rng(9).integers(0, 2, problem.input_shape)
        image = (bits * np.iinfo(problem.dtype).max).astype(problem.dtype)
        assert_right(run_on_gpu(large_sliding(problem, Options()), image, problem))
