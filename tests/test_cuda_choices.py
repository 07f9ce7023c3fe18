"""What CUDA `sliding` chooses: forms, flat rows, sums by the weights, tiles; each holds what it is taken for."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import isqrt
from typing import Any

import numpy as np
import pytest
from cpu_problems import NO_RING, NO_RING_OPPOSITE, RANDOM, RANDOM_WHOLE, Case, modes_of
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_work import large_sliding
from problems import assert_right, run_on_gpu

from edgeconv.core.filters import COMPASS_RING, Weights, WeightSet, custom_filter, weight_set
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import INPUT_DTYPES, Problem, make_problem
from edgeconv.methods.cuda.flat_rows import FlatFilter, Join, flat_filter
from edgeconv.methods.cuda.sliding_choice import (
    LARGEST_STRIP_STRIDE,
    MOST_STRIP_OUTPUTS,
    SHORT_LARGEST,
    choose_strips,
    has_short_sums,
    is_small,
    plane_form,
)
from edgeconv.methods.cuda.sliding_packing import packed_weights
from edgeconv.methods.cuda.sliding_tiles import strip_height, tile_for
from edgeconv.methods.options import Options

# --- forms --------------------------------------------------------------------------------------------------------


def sums_of_strips(problem: Problem) -> str | None:
    strips = choose_strips(problem)
    return None if strips is None else strips.sums


@pytest.mark.parametrize(
    ("case", "sums", "names"),
    [
        (Case("kirsch", "each", "uint8", "abs"), "planes", ("ring of three",)),
        (Case("robinson", "luma", "uint8", "abs"), "planes", ("weighted channel", "ring of differences")),
        (Case("kirsch", "mix", "float16", "abs"), "planes", ("channel sum", "equal outputs", "ring of three")),
        (Case(NO_RING, "each", "float32", "abs"), "planes", ()),
        (Case(NO_RING_OPPOSITE, "each", "float64", "abs"), "planes64", ("opposite directions",)),
        (Case("sobel", "each", "uint16", "abs"), "planes", ("gradient",)),
        (Case("sobel", "mix", "float16", "abs"), "mma", None),
        (Case("laplacian8", "mix", "uint16", "abs"), "planes", ("channel sum", "equal outputs")),
        (Case("laplacian8", "mix", "float32", "abs"), "fma", None),
        (Case("sobel", "each", "float64", "abs"), "fma64", None),
        (Case(RANDOM, "mix", "uint16", "abs"), "fma64", None),
        (Case(RANDOM_WHOLE, "mix", "uint8", "abs"), "mma", None),
        (Case("sobel", "luma", "uint16", "abs"), "planes64", ("weighted channel", "gradient")),
        (Case("laplacian8/0.25", "luma", "uint8", "clip"), "planes", ("weighted channel",)),  # one plane rounds less
        (Case("kirsch", "each", "uint8", "abs", stride=LARGEST_STRIP_STRIDE + 1), None, None),
        (Case(RANDOM, "mix", "float64", "raw", stride=LARGEST_STRIP_STRIDE), "fma64", None),
        (Case(RANDOM, "mix", "float64", "raw", stride=LARGEST_STRIP_STRIDE + 1), None, None),
    ],
    ids=str,
)
def test_which_form_a_problem_takes(case: Case, sums: str | None, names: tuple[str, ...] | None) -> None:
    strips = choose_strips(case.problem())
    assert (None if strips is None else strips.sums) == sums
    form = None if strips is None else strips.form
    assert (None if form is None else form.names) == names


def test_one_output_that_differs_is_not_one_filter_for_every_plane() -> None:
    for channels in ("mix", "each"):
        problem = Case("sobel", channels, "uint16", "abs").problem()
        assert plane_form(problem) is not None
        weights = problem.weights.copy()
        weights[0, 2, 0, 0, 0] += 1
        other = make_problem((9, 9, 3), "uint16", WeightSet(weights, problem.groups, "magnitude"), output_mode="abs")
        assert plane_form(other) is None


# --- flat rows, and what halves hold ------------------------------------------------------------------------------

WIDE = (8, 64)


@pytest.mark.parametrize(
    ("case", "found"),
    [
        (Case("sobel", "each", "uint8", "abs", shape=WIDE), ("lines", 2, True)),
        (Case("laplacian8", "mix", "uint8", "clip", in_channels=1, shape=WIDE), ("lines", 2, True)),
        (Case("kirsch", "each", "uint8", "abs", shape=WIDE), ("ring_of_three", 0, True)),
        (Case("robinson", "each", "float16", "raw", shape=WIDE), ("ring_of_differences", 0, False)),
        (Case("emboss", "each", "float32", "raw", shape=WIDE), ("lines", 3, False)),
        (Case("scharr", "each", "uint8", "abs", shape=WIDE), None),  # its sums pass what halves hold
        (Case("sobel", "each", "float64", "raw", shape=WIDE), None),
        (Case("sobel", "each", "uint8", "abs", shape=(8, 45)), None),  # rows that start anywhere
        (Case("sobel", "each", "uint8", "abs", 2, shape=WIDE), None),
        (Case("sobel", "each", "uint8", "abs", padding=0, shape=WIDE), None),
        (Case("sobel", "mix", "uint8", "abs", shape=WIDE), None),
        (Case("laplacian8/0.001", "each", "uint16", "clip", shape=WIDE), None),  # sums in float64
    ],
    ids=str,
)
def test_what_flat_rows_are_for(case: Case, found: tuple[str, int, bool] | None) -> None:
    flat = flat_filter(case.problem())
    assert (None if flat is None else (flat.form, len(flat.lines), flat.has_pairs)) == found


def joined(join: Join, terms: list[Any], real: type) -> Any:
    """As flat_rows.cu joins them, each operation rounded once."""
    first, middle, last = (np.asarray(term, np.float64) for term in terms)
    if join.kind == "difference":
        return real(last - first)
    if join.kind == "beside":
        return real(join.weights[1] * middle + np.float64(real(first + last)))
    total = np.zeros_like(first)
    for weight, term in zip(join.weights, (first, middle, last), strict=True):
        total = np.float64(real(total + (bool(weight) if join.kind == "sum" else weight) * term))
    return real(total)


def responses(flat: FlatFilter, window: Any, real: type) -> list[Any]:
    """Of each direction; `window` is (3, 3, ...)."""
    lines = [[joined(line, list(row), real) for line in flat.lines] for row in window]
    pairs = zip(flat.of_row, flat.rows, strict=True)
    return [joined(rows, [lines[u][of_row[u]] for u in range(3)], real) for of_row, rows in pairs]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(-9, 9), min_size=9, max_size=9).filter(any),
    st.sampled_from((("uint8", "abs"), ("uint8", "clip"), ("float32", "abs"))),
    st.randoms(use_true_random=False),
)
def test_lines_give_the_weights_and_halves_hold_them(taps: list[int], stored_as: tuple[str, str], random: Any) -> None:
    dtype, mode = stored_as
    weights = np.array(taps, np.float32).reshape(3, 3)
    each = weight_set(custom_filter(weights, "drawn"), "each")
    flat = flat_filter(make_problem((8, 64, 3), dtype, each, output_mode=mode))
    if flat is None:
        assert dtype == "uint8"
        return
    draw = np.random.default_rng(random.randrange(2**32))
    window = draw.choice((0.0, 255.0, 128.0, 37.0), (3, 3, 400))
    exact = np.tensordot(weights.astype(np.float64), window, 2)
    (found,) = responses(flat, window, np.float16 if flat.has_pairs else np.float64)
    stored = [np.clip(abs(x) if mode == "abs" else x, 0, 255) for x in (np.float64(found), exact)]
    np.testing.assert_array_equal(*stored)


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


@pytest.mark.parametrize(
    ("first", "others", "held"),
    [
        (5, -3, True),
        (10, -6, True),
        (16, 0, True),
        (4, -1, False),  # five times a sum of three is not a half
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


# --- tiles and sums -----------------------------------------------------------------------------------------------

WORD_BYTES = 4
WORKS = [
    Case(name, channels, dtype, mode, stride=stride, shape=(40, 40), in_channels=in_channels)
    for name, (channels, in_channels), dtype, stride in product(
        ("laplacian8", "sobel", "sobel/7", "sobel/0.00001", "scharr", "kirsch", NO_RING, RANDOM, RANDOM_WHOLE),
        (("each", 3), ("mix", 3), ("luma", 3), ("mix", 1)),
        INPUT_DTYPES,
        range(1, LARGEST_STRIP_STRIDE + 1),
    )
    for mode in modes_of(dtype)
]
BANKS = [
    Case(RANDOM, "mix", "float32", "raw", stride=stride, shape=(40, 40), filters=filters, in_channels=channels)
    for filters, channels, stride in product(range(1, MOST_STRIP_OUTPUTS + 1), (1, 3), (1, 2, 3, LARGEST_STRIP_STRIDE))
]
"""Those that strips do in one pass."""


def test_every_work_has_a_tile_of_whole_words() -> None:
    """And pairs of rows for the tensor cores."""
    for work in (*WORKS, *BANKS):
        problem = work.problem()
        strips = choose_strips(problem)
        if strips is None:
            continue
        tile = tile_for(strips)
        read = tile.thread_pixels * problem.stride * problem.in_channels * problem.dtype.itemsize
        written = tile.thread_pixels * problem.output_channels * problem.output_dtype.itemsize
        assert read > 0, str(work)
        assert read % WORD_BYTES == written % WORD_BYTES == 0, str(work)
        assert strips.sums != "mma" or tile.step_rows % 2 == 0, str(work)


@given(
    height=st.integers(1, 5000),
    stride=st.integers(1, LARGEST_STRIP_STRIDE),
    strips_at_once=st.integers(1, 300),
    dtype=st.sampled_from(INPUT_DTYPES),
    pictures=st.sampled_from((1, 7)),
)
def test_strips_are_whole_steps_and_no_higher_than_they_must_be(height, stride, strips_at_once, dtype, pictures):
    problem = Case(RANDOM, "mix", dtype, "raw", stride=stride, shape=(height * stride, 64)).problem()
    strips = choose_strips(problem)
    assert strips is not None
    tile = tile_for(strips)
    rows = strip_height(problem, tile, strips_at_once, pictures)
    before = (KERNEL_SIZE - 1) // stride
    assert rows >= 1
    assert (rows + before) % tile.step_rows == 0
    alone = -(-problem.output_height * pictures // strips_at_once)
    assert rows <= max(alone, 2 * max(1, KERNEL_SIZE - stride)) + tile.step_rows


def test_short_sums_are_those_whose_squares_stay_whole_floats():
    assert has_short_sums(Case("sobel", "each", "uint8", "abs").problem())
    assert has_short_sums(Case("scharr", "mix", "uint8", "abs").problem())
    twice = Case("scharr", "mix", "uint8", "abs").problem()
    assert not has_short_sums(replace(twice, weights=2 * twice.weights))
    assert np.float32(2 * SHORT_LARGEST**2 + np.float32(2**23).view(np.int32)) < np.float32(np.inf).view(np.int32)
    assert not has_short_sums(Case("laplacian8", "each", "uint8", "abs").problem())
    assert not has_short_sums(Case("sobel", "each", "uint16", "abs").problem())


@pytest.mark.parametrize(
    ("weight", "kept"),
    [
        (1.0, True),
        (1 + 2.0**-20, True),  # 11 bits and 11 more
        (60_000.5, True),
        (1e-7, False),  # below the least number that a half has 22 bits for
        (70_000.0, False),  # above the largest half
    ],
)
@pytest.mark.parametrize("channel", [0, 2])
def test_tensor_cores_take_weights_that_two_halves_hold_in_every_channel(
    channel: int, weight: float, kept: bool
) -> None:
    """By each output's own largest weight: a channel of small ones does not hide behind the others."""
    weights = np.ones((1, 3, 3, 3, 3), np.float32)
    weights[0, channel] = weight
    problem = make_problem((300, 500, 3), "float16", WeightSet(weights, 1), output_mode="raw")
    assert sums_of_strips(problem) == ("mma" if kept else "fma")


@pytest.mark.parametrize(
    ("factor", "expected"),
    [(1.0, "mma"), (2.0**-10, "mma"), (2.0**-125, "mma"), (2.5, "fma")],  # nothing is left; 1/64 of a level off
)
def test_tensor_cores_take_bytes_where_their_bound_is_a_small_part_of_a_level(factor: float, expected: str) -> None:
    weights = np.random.default_rng(5).uniform(-1, 1, (1, 3, 3, 3, 3)).astype(np.float32) * np.float32(factor)
    problem = make_problem((300, 500, 3), "uint8", WeightSet(weights, 1), output_mode="abs")
    assert sums_of_strips(problem) == expected
    small = make_problem((30, 50, 3), "uint8", WeightSet(weights, 1), output_mode="abs")
    strips = choose_strips(small)
    assert strips is not None
    assert np.isfinite(packed_weights(strips, True).view(np.float32)[-2:]).all()
    assert is_small(small, strips) == (expected == "fma"), "a tile stores other bytes than the whole"
