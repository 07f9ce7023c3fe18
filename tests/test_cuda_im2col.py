"""CUDA `im2col`: one launch with bands of a block, bands of launches, and the vendor's GEMM, against the oracle."""

from __future__ import annotations

import pytest
from cpu_problems import EVERY_FILTER, EVERY_TYPE, GEOMETRY, Case, geometry_cases
from gemm_cases import LARGE, check_on_gpu, check_plan, check_tall_picture

from edgeconv.errors import MemoryLimitError
from edgeconv.methods.cuda.im2col import CudaIm2col, banded_plan, banded_shape
from edgeconv.methods.cuda.kernel_args import depth_of
from edgeconv.methods.options import Options

pytestmark = pytest.mark.gpu

GEMMS = ("own", "cublas")


@pytest.mark.parametrize("case", EVERY_FILTER, ids=str)
def test_every_filter(case):
    check_on_gpu(CudaIm2col(), case)


@pytest.mark.parametrize("case", EVERY_TYPE, ids=str)
def test_every_type_mode_and_stride(case):
    check_on_gpu(CudaIm2col(), case)


@pytest.mark.parametrize(("work", "stride", "border"), GEOMETRY)
def test_geometry(work, stride, border):
    for case in geometry_cases(work, stride, border):
        check_on_gpu(CudaIm2col(), case)


@pytest.mark.parametrize("case", EVERY_TYPE, ids=str)
def test_every_type_with_the_vendors_gemm(case):
    check_on_gpu(CudaIm2col(), case, Options(gemm="cublas"))


@pytest.mark.parametrize("offset_samples", [0, 1, 5])
@pytest.mark.parametrize("gemm", GEMMS)
@pytest.mark.parametrize("case", LARGE, ids=str)
def test_many_tiles_and_any_start(case, gemm, offset_samples):
    check_on_gpu(CudaIm2col(), case, Options(gemm=gemm), offset_samples)


@pytest.mark.parametrize("gemm", GEMMS)
@pytest.mark.parametrize("case", LARGE, ids=str)
def test_bands_of_launches_that_end_inside_rows(case, gemm):
    problem, options = case.problem(), Options(gemm=gemm)
    plan = banded_plan(problem, options, band_bytes=3 * banded_shape(problem).tile * depth_of(problem) * 4)
    assert plan.choice["bands"] > 1
    check_plan(plan, problem)


@pytest.mark.parametrize("gemm", GEMMS)
def test_the_workspace_limit_is_kept(gemm):
    problem = Case("sobel", "mix", "float32", "abs", shape=(1031, 1024)).problem()
    free = CudaIm2col().prepare(problem, Options(gemm=gemm))
    tight = Options(gemm=gemm, workspace_limit_bytes=free.workspace_bytes // 3)
    plan = CudaIm2col().prepare(problem, tight)
    assert plan.workspace_bytes <= tight.workspace_limit_bytes
    check_plan(plan, problem)


@pytest.mark.parametrize("gemm", GEMMS)
def test_a_limit_below_one_block_is_refused_with_the_bytes_needed(gemm):
    problem = Case("sobel", "mix", "float32", "abs").problem()
    with pytest.raises(MemoryLimitError, match=r"needs [\d,]+ bytes"):
        CudaIm2col().prepare(problem, Options(gemm=gemm, workspace_limit_bytes=1000))


@pytest.mark.slow
@pytest.mark.parametrize("gemm", GEMMS)
def test_4096_runs_in_two_gib_of_gpu_memory(gemm):
    import cupy

    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    problem = Case("random", "mix", "float32", "raw", shape=(4096, 4096)).problem()
    try:
        pool.set_limit(size=2 * 2**30)
        image, out = cupy.ones(problem.input_shape, problem.dtype), cupy.empty(problem.output_shape, problem.dtype)
        CudaIm2col().prepare(problem, Options(gemm=gemm)).run(image, out)
        cupy.cuda.get_current_stream().synchronize()
    finally:
        pool.set_limit(size=0)
    inner = problem.weights.sum(axis=(0, 2, 3, 4), dtype="float64")
    assert abs(out[1:-1, 1:-1].min(axis=(0, 1)).get() - inner).max() < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("gemm", GEMMS)
def test_a_picture_above_2_to_the_31_bytes(gemm):
    check_tall_picture(CudaIm2col(), Options(gemm=gemm))
