"""How CUDA `sliding` chooses: tiles of whole words, strips of whole steps, arithmetic by the weights."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from cpu_problems import NO_RING, RANDOM, RANDOM_WHOLE, Case
from hypothesis import given
from hypothesis import strategies as st
from kernel_table import tile_of_strips

from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.methods.cuda.sliding_choice import (
    LARGEST_STRIP_STRIDE,
    MOST_STRIP_OUTPUTS,
    SHORT_LARGEST,
    choose_strips,
    has_short_sums,
)
from edgeconv.methods.cuda.sliding_tiles import strip_height, tile_for

WORD_BYTES = 4
MODES = {
    "uint8": ("abs", "clip", "raw"),
    "uint16": ("abs", "clip", "raw"),
    "float32": ("raw",),
    "float16": ("raw",),
    "float64": ("raw",),
}
WORKS = [
    Case(name, channels, dtype, mode, stride=stride, shape=(40, 40))
    for name, channels, (dtype, modes), stride in product(
        ("laplacian8", "sobel", "sobel/7", "sobel/0.00001", "scharr", "kirsch", NO_RING, RANDOM, RANDOM_WHOLE),
        ("each", "mix", "luma"),
        MODES.items(),
        range(1, LARGEST_STRIP_STRIDE + 1),
    )
    for mode in modes
]
OTHERS = [
    *(
        Case(name, "mix", dtype, mode, stride=stride, shape=(40, 40), in_channels=1)
        for name, (dtype, modes), stride in product(("laplacian8", "sobel", "kirsch", RANDOM), MODES.items(), (1, 2, 3))
        for mode in modes
    ),
    *(
        Case(RANDOM, "mix", "float32", "raw", stride=stride, shape=(40, 40), filters=filters, in_channels=channels)
        for filters, channels, stride in product(
            range(1, MOST_STRIP_OUTPUTS + 1), (1, 3), (1, 2, 3, LARGEST_STRIP_STRIDE)
        )
    ),
]
"""Grey pictures, and the banks that strips do in one pass."""


@pytest.mark.parametrize("dtype", MODES)
def test_every_work_has_a_tile_of_whole_words(dtype):
    """And pairs of rows for the tensor cores."""
    for work in (*WORKS, *OTHERS):
        problem = work.problem()
        strips = choose_strips(problem)
        if work.dtype != dtype or strips is None:
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
    dtype=st.sampled_from(sorted(MODES)),
    pictures=st.sampled_from((1, 7)),
)
def test_strips_are_whole_steps_and_no_higher_than_they_must_be(height, stride, strips_at_once, dtype, pictures):
    problem = Case(RANDOM, "mix", dtype, "raw", stride=stride, shape=(height * stride, 64)).problem()
    tile = tile_of_strips(problem)
    rows = strip_height(problem, tile, strips_at_once, pictures)
    before = (KERNEL_SIZE - 1) // stride
    assert rows >= 1
    assert (rows + before) % tile.step_rows == 0
    alone = -(-problem.output_height * pictures // strips_at_once)
    assert rows <= max(alone, 2 * max(1, KERNEL_SIZE - stride)) + tile.step_rows


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_windows_far_apart_are_not_for_strips(dtype):
    last = LARGEST_STRIP_STRIDE
    near, apart = (Case(RANDOM, "mix", dtype, "raw", stride=stride).problem() for stride in (last, last + 1))
    assert choose_strips(near) is not None
    assert choose_strips(apart) is None


def test_short_sums_are_those_whose_squares_stay_whole_floats():
    assert has_short_sums(Case("sobel", "each", "uint8", "abs").problem())
    assert has_short_sums(Case("scharr", "mix", "uint8", "abs").problem())
    twice = Case("scharr", "mix", "uint8", "abs").problem()
    assert not has_short_sums(replace(twice, weights=2 * twice.weights))
    assert np.float32(2 * SHORT_LARGEST**2 + np.float32(2**23).view(np.int32)) < np.float32(np.inf).view(np.int32)
    assert not has_short_sums(Case("laplacian8", "each", "uint8", "abs").problem())
    assert not has_short_sums(Case("sobel", "each", "uint16", "abs").problem())
