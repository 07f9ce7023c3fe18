"""The ladder of convolutions: its table anywhere, its kernels on the CPU under sanitizers, and its steps on a GPU."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from cpu_problems import RANDOM, Case
from kernel_work import CONV_STEP, Work, all_right, sanitizer_library
from problems import AWKWARD_SHAPES, assert_right, random_image, run_on_gpu
from selection import few_then_slow

from edgeconv.bench.ladders.conv import STEPS, STRIDES, prepare

OWN = [entry for entry in STEPS if entry.name not in ("textbook", "sliding")]
"""The others are methods, which have tests of their own."""
SHAPES = (*AWKWARD_SHAPES, (5, 300), (90, 48))


def case(stride: int, shape: tuple[int, int]) -> Case:
    return Case(RANDOM, "mix", "float32", "raw", stride=stride, shape=shape)


needs_sanitizers = pytest.mark.skipif(
    sanitizer_library() is None, reason="needs g++ with AddressSanitizer on Linux (apt install g++)"
)


@needs_sanitizers
@pytest.mark.parametrize("stride", few_then_slow(STRIDES))
@pytest.mark.parametrize("entry", few_then_slow(OWN), ids=lambda entry: entry.name)
def test_a_step_on_the_cpu(libraries: Path, entry, stride: int) -> None:
    works = [
        Work(CONV_STEP, case(stride, shape), words=(entry.name, block))
        for block in entry.blocks_for(stride)[:2]
        for shape in SHAPES
    ]
    all_right(works, libraries)


@pytest.mark.gpu
@pytest.mark.parametrize("entry", STEPS, ids=lambda entry: entry.name)
def test_a_step_on_a_gpu(entry) -> None:
    for stride in STRIDES:
        for block, shape in product(entry.blocks_for(stride), (*SHAPES, (259, 1024), (1031, 517))):
            problem = case(stride, shape).problem()
            image = random_image(*shape, "float32")
            assert_right(run_on_gpu(prepare(entry, problem, block), image, problem))
