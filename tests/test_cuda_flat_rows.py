"""Flat rows of CUDA `sliding`: which problems take them, that lines give the weights, that halves hold their sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cpu_problems import Case
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeconv.core.filters import custom_filter, weight_set
from edgeconv.core.problem import make_problem
from edgeconv.methods.cuda.flat_rows import FlatFilter, Join, flat_filter

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
