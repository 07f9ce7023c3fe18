"""The GEMM ladder: its table on any machine, its products against float64 on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

from edgeconv.bench.ladders.gemm_kernels import REALS, STEPS, prepare, step, variants
from edgeconv.errors import UsageError

RUNGS = [(entry.name, dtype, block) for entry in STEPS for dtype in REALS for block in (entry.blocks[dtype] or (None,))]


def test_an_unknown_step_is_refused_with_those_there_are():
    with pytest.raises(UsageError, match="double_buffer"):
        step("fastest")


def test_every_kernel_of_the_table_is_listed_once():
    listed = variants()
    assert len(set(listed)) == len(listed)
    assert {variant.entry for variant in listed} == {entry.name for entry in STEPS if entry.blocks["float32"]}


def test_threads_are_whole_warps_and_within_the_limit():
    for entry in STEPS:
        for blocks in entry.blocks.values():
            for block in blocks:
                across, down = block.threads
                assert across * down % 32 == 0
                assert across * down <= 1024


@pytest.mark.gpu
@pytest.mark.parametrize("sizes", [(256, 256, 256), (1, 1, 1), (37, 131, 67), (128, 127, 129), (129, 64, 8)], ids=str)
@pytest.mark.parametrize(("name", "dtype", "block"), RUNGS, ids=str)
def test_the_product(name, dtype, block, sizes):
    import cupy

    m, n, k = sizes
    rng = np.random.default_rng(2)
    a, b = rng.uniform(-1, 1, (m, k)).astype(dtype), rng.uniform(-1, 1, (k, n)).astype(dtype)
    c = cupy.full((m, n), np.nan, dtype)
    prepare(name, dtype, m, n, k, block)(cupy.asarray(a), cupy.asarray(b), c)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    step_size = float(np.finfo(dtype).eps)
    assert np.abs(c.get() - expected).max() <= step_size * k * max(1.0, np.abs(expected).max())
