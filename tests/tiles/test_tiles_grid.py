"""Where tiles lie and what they need, in whole numbers; and that chunks are decoded once where memory allows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pieces import THREADS, ArraySource, by_tiles
from problems import random_image

from edgeconv.core.choices import BORDERS
from edgeconv.core.geometry import KERNEL_SIZE, OUTSIDE, output_size
from edgeconv.core.request import make_request
from edgeconv.run.tiled.grid import Axis, Span, WindowRules, even_cuts, plain_grid, reached, runs
from edgeconv.run.tiled.reader import Reader, in_order


def test_cuts_begin_where_they_are_told_to() -> None:
    assert even_cuts(10, 4) == (0, 4, 8, 10)
    assert even_cuts(10, 4, 2) == (0, 2, 6, 10)
    assert even_cuts(8, 4) == (0, 4, 8)
    assert even_cuts(3, 4) == (0, 3)


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_windows_follow_the_stride_and_take_the_halo_along(stride: int) -> None:
    axis = Axis(40, stride, 1, "reflect101", even_cuts(output_size(40, stride, 1), 4))
    second = axis.window(1)
    assert second.tolist() == list(range(4 * stride - 1, 4 * stride - 1 + 3 * stride + KERNEL_SIZE))
    assert axis.window(0)[0] == 1  # reflect101 of position −1


def test_a_shifted_grid_shares_no_seam_with_the_other() -> None:
    rules = WindowRules(1, 1, "zero")
    plain, shifted = rules.grid((100, 64), (16, 64)), rules.grid((100, 64), (16, 64), shifted=True)
    assert set(plain.rows.cuts) & set(shifted.rows.cuts) == {0, 100}
    assert set(plain.columns.cuts) & set(shifted.columns.cuts) == {0, 64}
    assert len(shifted.columns.cuts) == 3  # even a single tile gets a seam


@given(
    size=st.integers(1, 30),
    stride=st.integers(1, 4),
    padding=st.integers(0, 12),
    border=st.sampled_from(BORDERS),
    tile=st.integers(1, 8),
    place=st.integers(0, 10**6),
    ends=st.tuples(st.integers(0, 29), st.integers(1, 30)),
)
def test_runs_copy_what_the_window_says(size, stride, padding, border, tile, place, ends) -> None:
    if size + 2 * padding < KERNEL_SIZE:
        return
    axis = Axis(size, stride, padding, border, even_cuts(output_size(size, stride, padding), tile))
    window = axis.window(place % axis.count)
    start = min(ends[0], size - 1)
    span = Span(start, max(start + 1, min(size, ends[1])))
    data = np.arange(100, 100 + size)
    got = np.zeros(len(window), int)
    for run in runs(window, span):
        got[run.positions.start : run.positions.stop] = data[span.start : span.stop][run.places(span.start)]
    inside = (window >= span.start) & (window < span.stop)
    assert got.tolist() == np.where(inside, data[np.maximum(window, 0)], 0).tolist()


def test_runs_are_few() -> None:
    mirrored = Axis(1000, 1, 300, "reflect", (0, 1598)).window(0)
    assert [run.step for run in runs(mirrored, Span(0, 1000))] == [-1, 1, -1]


def test_nothing_is_reached_where_all_lies_outside() -> None:
    assert reached(np.array([OUTSIDE, OUTSIDE])) == Span(0, 0)
    assert reached(np.array([OUTSIDE, 4, 5])) == Span(4, 6)


def test_no_chunk_is_decoded_twice_where_there_is_room() -> None:
    pixels = random_image(64, 64, "uint8")
    source = ArraySource(pixels, even_cuts(64, 16), even_cuts(64, 16))
    by_tiles(source, make_request(), (16, 16), "opencv", keep_bytes=2**20)
    assert len(source.loaded) == len(set(source.loaded)) == 16


def test_chunks_are_decoded_again_where_nothing_may_be_kept() -> None:
    pixels = random_image(64, 64, "uint8")
    source = ArraySource(pixels, even_cuts(64, 16), even_cuts(64, 16))
    by_tiles(source, make_request(), (16, 16), "opencv", keep_bytes=0)
    assert len(source.loaded) == 100  # each of 4 tiles an axis reaches 2, 3, 3 and 2 chunks


def test_a_plain_grid_reads_rectangles() -> None:
    pixels = random_image(20, 30, "uint16")
    source = ArraySource(pixels, (0, 7, 20), (0, 11, 30))
    grid = plain_grid((0, 8, 20), (0, 30))
    with ThreadPoolExecutor(THREADS) as pool:
        reader = Reader(source, grid, 0, pool, THREADS)
        parts = [reader.read(tile) for tile in grid]
    assert np.array_equal(np.concatenate(parts), pixels)


def test_results_come_in_order_and_no_more_are_begun_than_asked_for() -> None:
    begun: list[int] = []

    def work(item: int) -> int:
        begun.append(item)
        return item * item

    with ThreadPoolExecutor(4) as pool:
        results = in_order(pool, work, range(20), 3)
        assert next(results) == 0
        assert len(begun) <= 4
        assert [0, *results] == [item * item for item in range(20)]


def test_a_shifted_grid_cuts_a_picture_of_less_than_a_tile_in_the_middle() -> None:
    """So that it shares no seam with the plain grid, which has none."""
    rules = WindowRules(1, 1, "zero")
    assert [rules.axis(100, 4096, shifted).cuts for shifted in (False, True)] == [(0, 100), (0, 50, 100)]
    assert rules.axis(100, 40, shifted=True).cuts == (0, 20, 60, 100)
    assert rules.axis(1, 4096, shifted=True).cuts == (0, 1)
