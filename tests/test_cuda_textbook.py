"""CUDA `textbook` against the oracle: filters, types and modes, geometry, every thread block, tall pictures."""

from __future__ import annotations

import pytest
from cpu_problems import EVERY_FILTER, EVERY_TYPE, GEOMETRY, geometry_cases
from gemm_cases import LARGE, check_on_gpu, check_tall_picture

from edgeconv.methods.cuda.textbook import Textbook
from edgeconv.methods.options import BLOCKS, Options

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("case", [*EVERY_FILTER, *EVERY_TYPE], ids=str)
def test_every_filter_type_and_mode(case) -> None:
    check_on_gpu(Textbook(), case)


@pytest.mark.parametrize(("work", "stride", "border"), GEOMETRY)
def test_geometry(work, stride, border) -> None:
    for case in geometry_cases(work, stride, border):
        check_on_gpu(Textbook(), case)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("case", LARGE, ids=str)
def test_every_thread_block_and_any_start(case, block) -> None:
    for offset_samples in (0, 1):
        check_on_gpu(Textbook(), case, Options(block=block), offset_samples)


@pytest.mark.slow
def test_a_picture_above_2_to_the_31_bytes() -> None:
    check_tall_picture(Textbook())
