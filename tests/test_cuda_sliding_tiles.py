"""How CUDA `sliding` chooses: tiles that a block has room for, strips of whole steps, arithmetic by the weights."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from cpu_problems import NO_RING, RANDOM, RANDOM_WHOLE, Case
from hypothesis import given
from hypothesis import strategies as st

from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem
from edgeconv.methods.cuda.sliding_arithmetic import (
    LARGEST_STRIP_STRIDE,
    MOST_STRIP_OUTPUTS,
    SHORT_LARGEST,
    arithmetic_for,
    has_short_sums,
    has_strips,
)
from edgeconv.methods.cuda.sliding_tiles import (
    MOST_SHARED_BYTES,
    StripTile,
    shared_bytes,
    strip_height,
    tile_for,
    tiles_of,
)

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


@cache
def kinds(dtype: str) -> list[tuple[str, Problem, bool, tuple[tuple[int, StripTile], ...]]]:
    """Each work of a sample type with rows on 16 bytes and with others: what it is, and its tiles."""
    problems = [(str(work), work.problem()) for work in (*WORKS, *OTHERS) if work.dtype == dtype]
    return [
        (f"{work}, aligned {aligned}", problem, aligned, tiles_of(problem, aligned))
        for work, problem in problems
        for aligned in (True, False)
    ]


@pytest.mark.parametrize("dtype", MODES)
def test_every_work_has_tiles_for_every_size_that_a_block_has_room_for(dtype):
    for what, problem, _, tiles in kinds(dtype):
        sizes = [least for least, _ in tiles]
        assert sizes == sorted(sizes, reverse=True), what
        assert sizes[-1] == 0, what
        assert all(shared_bytes(problem, tile) <= MOST_SHARED_BYTES for _, tile in tiles), what
        if arithmetic_for(problem) == "mma":
            assert all(tile.step_rows % 2 == 0 for _, tile in tiles), f"{what}: the tensor cores take pairs of rows"


@given(
    height=st.integers(1, 5000),
    stride=st.integers(1, LARGEST_STRIP_STRIDE),
    strips_at_once=st.integers(1, 300),
    dtype=st.sampled_from(sorted(MODES)),
    aligned=st.booleans(),
)
def test_strips_are_whole_steps_and_no_higher_than_they_must_be(height, stride, strips_at_once, dtype, aligned):
    problem = Case(RANDOM, "mix", dtype, "raw", stride=stride, shape=(height * stride, 64)).problem()
    tile = tile_for(problem, aligned)
    rows = strip_height(problem, tile, strips_at_once)
    before = (KERNEL_SIZE - 1) // stride
    assert rows >= 1
    assert (rows + before) % tile.step_rows == 0
    alone = -(-problem.output_height // strips_at_once)
    assert rows <= max(alone, 2 * max(0, KERNEL_SIZE - stride)) + tile.step_rows


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_windows_far_apart_are_not_for_strips(dtype):
    last = LARGEST_STRIP_STRIDE
    near, apart = (Case(RANDOM, "mix", dtype, "raw", stride=stride).problem() for stride in (last, last + 1))
    assert has_strips(near)
    assert not has_strips(apart)


def test_short_sums_are_those_whose_squares_stay_whole_floats():
    assert has_short_sums(Case("sobel", "each", "uint8", "abs").problem())
    assert has_short_sums(Case("scharr", "mix", "uint8", "abs").problem())
    twice = Case("scharr", "mix", "uint8", "abs").problem()
    assert not has_short_sums(replace(twice, weights=2 * twice.weights))
    assert np.float32(2 * SHORT_LARGEST**2 + np.float32(2**23).view(np.int32)) < np.float32(np.inf).view(np.int32)
    assert not has_short_sums(Case("laplacian8", "each", "uint8", "abs").problem())
    assert not has_short_sums(Case("sobel", "each", "uint16", "abs").problem())
