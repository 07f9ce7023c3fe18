"""Counts that a person can work out."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeconv.api.figures import speed, throughput
from edgeconv.bench.candidates import fetched_bytes
from edgeconv.core.chains import chain_problem, make_chain
from edgeconv.core.choices import BORDERS, Border, Channels
from edgeconv.core.cost import Counts, count, touched_bytes, useful_flops_per_pixel
from edgeconv.core.filters import filter_bank, named_filter, weight_set
from edgeconv.core.geometry import OUTSIDE, border_indices, output_size
from edgeconv.core.problem import INPUT_DTYPES, StoredMode, make_problem
from edgeconv.hardware.device import Roof


@dataclass(frozen=True)
class ByHand:
    """A picture that is not square, and what a person counts: rows and columns out, and those under a window."""

    height: int
    width: int
    stride: int
    padding: int
    out: tuple[int, int]
    touched: tuple[int, int]


LONG = (
    ByHand(4, 10, 1, 1, (4, 10), (4, 10)),
    ByHand(4, 10, 2, 1, (2, 5), (4, 10)),
    ByHand(5, 12, 4, 1, (2, 3), (4, 8)),  # windows at -1 to 1 and 3 to 5; at -1 to 1, 3 to 5 and 7 to 9
    ByHand(3, 9, 1, 0, (1, 7), (3, 9)),
    ByHand(1, 6, 1, 1, (1, 6), (1, 6)),
    ByHand(7, 3, 3, 2, (3, 2), (7, 3)),  # windows from -2, 1, 4 (to 6), and from -2, 1 (to 3)
    ByHand(2, 20, 5, 1, (1, 4), (2, 11)),  # windows from -1, 4, 9, 14: the first has 2 columns inside
)


@pytest.mark.parametrize("turned", [False, True], ids=["long", "turned"])
@pytest.mark.parametrize(("dtype", "mode", "in_bytes", "out_bytes"), [("uint8", "raw", 1, 4), ("uint16", "abs", 2, 2)])
@pytest.mark.parametrize("channels", ["each", "mix", "luma"])
@pytest.mark.parametrize("case", LONG, ids=str)
def test_a_picture_that_is_not_square(
    case: ByHand, channels: Channels, dtype: str, mode: StoredMode, in_bytes: int, out_bytes: int, turned: bool
) -> None:
    way = -1 if turned else 1
    height, width = (case.height, case.width)[::way]
    weights = weight_set(named_filter("laplacian8"), channels)
    rules = {"stride": case.stride, "padding": case.padding}
    problem = make_problem((height, width, 3), dtype, weights, output_mode=mode, **rules)
    assert problem.output_shape[:2] == case.out[::way]
    found = count(problem)
    pixels = case.out[0] * case.out[1]
    terms, out_channels = {"each": (9, 3), "mix": (27, 3), "luma": (27, 1)}[channels]
    useful = {"each": 3 * 2 * 9, "mix": 2 + 2 * 9, "luma": 3 * 2 * 9}[channels]
    assert found.nominal_flops == 2 * terms * out_channels * pixels
    assert found.useful_flops == useful * pixels
    read = case.touched[0] * case.touched[1] * 3 * in_bytes
    assert found.fewest_bytes == read + pixels * out_channels * out_bytes
    assert found.intensity_flops_per_byte == found.nominal_flops / found.fewest_bytes


def test_a_sum_of_channels_that_two_outputs_need_is_made_once() -> None:
    """Each output: nine taps on the sum of the first two channels, nine on the third."""
    first, second, third = (np.full((3, 3), value, np.float32) for value in (1, 2, 3))
    weights = np.array([[[first, first, second], [first, first, third]]])
    assert useful_flops_per_pixel(weights, 1) == 1 + 2 * (2 * 9 + 2 * 9)


@pytest.mark.parametrize(
    ("filters", "channels", "in_channels", "nominal", "useful"),
    [
        (["laplacian8", "sobel-x"], "mix", 1, 2 * 9 * 2, 2 * 9 + 2 * 6),
        (["laplacian8", "sobel-x"], "mix", 3, 2 * 27 * 2, 2 + 2 * 9 + 2 * 6),  # one sum of channels for both
        (["laplacian8", "sobel-x"], "each", 3, 2 * 9 * 6, 3 * (2 * 9 + 2 * 6)),
        (["laplacian8", "sobel-x"], "luma", 3, 2 * 27 * 2, 3 * 2 * 9 + 3 * 2 * 6),
        (["laplacian4", "laplacian4"], "mix", 1, 2 * 9 * 2, 2 * 5),  # equal filters once
        (["laplacian4", "laplacian4"], "each", 3, 2 * 9 * 6, 3 * 2 * 5),  # but not those of other channels
        (["sobel", "prewitt"], "mix", 1, 2 * 2 * 9 * 2, 4 * 2 * 6),
    ],
)
def test_flops_of_banks_and_grey_pictures(
    filters: list[str], channels: Channels, in_channels: int, nominal: int, useful: int
) -> None:
    weights = weight_set(filter_bank(filters), channels, in_channels=in_channels)
    counts = count(make_problem((8, 8, in_channels), "float32", weights))
    assert (counts.nominal_flops // 64, counts.useful_flops // 64) == (nominal, useful)


@given(
    st.tuples(st.integers(1, 20), st.integers(1, 60)),
    st.sampled_from(INPUT_DTYPES),
    st.sampled_from((1, 3)),
    st.integers(1, 9),
    st.integers(0, 4),
    st.sampled_from(BORDERS),
    st.sampled_from((32, 64)),
)
def test_fetched_are_the_lines_that_hold_a_pixel_under_a_window(
    size: tuple[int, int], dtype: str, channels: int, stride: int, padding: int, border: Border, line_bytes: int
) -> None:
    """Every line of memory counted by hand, for a picture that starts anywhere; up to stride 3 the pixels alone."""
    if min(size) + 2 * padding < 3:
        return
    weights = weight_set(named_filter("identity"), "each" if channels == 3 else "mix", in_channels=channels)
    problem = make_problem((*size, channels), dtype, weights, stride=stride, padding=padding, border=border)
    if problem.stride <= 3:  # one window makes any stride 3
        assert fetched_bytes(problem, line_bytes) == touched_bytes(problem)
        return
    under = [border_indices(side, padding, border) for side in size]
    outs = [range(0, output_size(side, stride, padding) * stride, stride) for side in size]
    rows, columns = (
        {indices[y + u] for y in starts for u in range(3)} - {OUTSIDE}
        for indices, starts in zip(under, outs, strict=True)
    )
    pixel_bytes = channels * problem.dtype.itemsize
    counted = []
    for shift in range(0, line_bytes, problem.dtype.itemsize):
        lines: set[int] = set()
        for row, column in product(rows, columns):
            start = shift + (int(row) * size[1] + int(column)) * pixel_bytes
            lines |= set(range(start // line_bytes, (start + pixel_bytes - 1) // line_bytes + 1))
        counted.append(len(lines))
    assert fetched_bytes(problem, line_bytes) == min(counted) * line_bytes


@pytest.mark.parametrize(
    ("seconds", "share"),
    [(2.0, 0.5), (1.0, 1.0), (0.99, None)],
    ids=["slower than a copy", "as fast as a copy", "faster than a copy"],
)
def test_a_share_is_that_of_a_limit_and_never_above_it(seconds: float, share: float | None) -> None:
    """Of convolutions and of chains."""
    counts = Counts(1, 1, 100, 0.01)
    roof = Roof(100.0, 1e15, "test")
    chain = chain_problem((8, 8, 3), np.uint8, make_chain("sobel,thin"), "abs")
    assert speed(counts, seconds, seconds, roof).memory_floor_share == share
    assert speed(counts, seconds, seconds, roof).roofline_share == share
    assert throughput(chain, counts, seconds, seconds, roof).memory_floor_share == share
