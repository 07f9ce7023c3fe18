"""CUDA `sliding` against the oracle: filters, types and modes, geometry crossed, pointers that start anywhere."""

from __future__ import annotations

import numpy as np
import pytest
from cpu_problems import EVERY_FILTER, EVERY_TYPE, GEOMETRY, Case, geometry_cases
from kernel_work import large_sliding
from problems import assert_right, image_of, random_image, run_on_gpu

from edgeconv.errors import UsageError
from edgeconv.methods.cuda.sliding import CudaSliding
from edgeconv.methods.options import Options

pytestmark = pytest.mark.gpu


def check_on_gpu(case: Case, offset_samples: int = 0) -> None:
    problem = case.problem()
    image = image_of(problem)
    try:
        for prepare in (CudaSliding().prepare, large_sliding):
            assert_right(run_on_gpu(prepare(problem, Options()), image, problem, offset_samples))
    except (AssertionError, UsageError) as failure:
        raise AssertionError(f"{case}: {failure}") from failure


@pytest.mark.parametrize("case", EVERY_FILTER, ids=str)
def test_every_filter(case):
    check_on_gpu(case)


@pytest.mark.parametrize("case", EVERY_TYPE, ids=str)
def test_every_type_mode_and_stride(case):
    check_on_gpu(case)


@pytest.mark.parametrize(("work", "stride", "border"), GEOMETRY)
def test_geometry(work, stride, border):
    for case in geometry_cases(work, stride, border):
        check_on_gpu(case)


LARGE = (
    Case("random", "mix", "float32", "raw", shape=(259, 1024)),
    Case("random", "mix", "float32", "raw", shape=(1031, 517)),
    Case("random", "mix", "float16", "raw", shape=(259, 1024)),
    Case("random", "mix", "uint8", "abs", shape=(259, 1024)),
    Case("random", "each", "uint16", "clip", shape=(259, 1024)),
    Case("laplacian8", "mix", "uint8", "abs", shape=(1031, 512)),
    Case("laplacian8", "each", "uint8", "abs", shape=(1031, 1021)),
    Case("sobel", "each", "uint8", "abs", shape=(259, 1024)),
    Case("scharr", "each", "uint8", "abs", shape=(259, 1024)),
    Case("sobel", "each", "float16", "raw", shape=(259, 1024)),
    Case("kirsch", "mix", "uint8", "abs", shape=(130, 1024)),
    Case("laplacian8", "each", "uint8", "raw", stride=2, shape=(515, 1024)),
    Case("random", "mix", "float32", "raw", stride=3, shape=(515, 1024)),
    Case("random", "mix", "float32", "raw", border="reflect101", padding=3, shape=(131, 1024)),
    Case("laplacian8", "each", "uint8", "abs", border="reflect101", shape=(515, 1024)),
    Case("laplacian8", "each", "uint8", "abs", border="replicate", shape=(130, 2501)),
    Case("sobel", "each", "uint8", "abs", border="reflect", shape=(130, 2501)),
    Case("laplacian8", "mix", "uint8", "clip", border="reflect101", padding=2, shape=(130, 1365)),
    Case("random", "mix", "float16", "raw", border="replicate", shape=(130, 1021)),
    Case("random", "each", "uint16", "abs", border="reflect101", padding=40, shape=(67, 517)),
    Case("random", "mix", "float32", "raw", border="reflect", padding=300, shape=(9, 131)),
    Case("laplacian8", "each", "uint8", "abs", stride=2, border="replicate", shape=(131, 1023)),
    Case("laplacian8", "mix", "uint8", "abs", stride=4, shape=(515, 2049)),
    Case("random", "each", "uint16", "clip", stride=5, border="reflect101", shape=(259, 1021)),
    Case("sobel", "each", "float32", "abs", stride=6, border="replicate", shape=(259, 1021)),
    Case("random", "luma", "uint8", "abs", stride=6, border="reflect", shape=(515, 1024)),
)
"""Several tiles across and several steps down, with rows that do and do not start on 16 bytes."""


@pytest.mark.parametrize("offset_samples", [0, 1, 5])
@pytest.mark.parametrize("case", LARGE, ids=str)
def test_many_tiles_and_any_start(case, offset_samples):
    check_on_gpu(case, offset_samples)


def test_a_plan_runs_in_a_captured_graph():
    import cupy

    problem = Case("laplacian8", "mix", "uint8", "abs", shape=(64, 64)).problem()
    plan = CudaSliding().prepare(problem, Options())
    image = cupy.asarray(random_image(64, 64, np.uint8))
    eager, captured = cupy.zeros(problem.output_shape, np.uint8), cupy.zeros(problem.output_shape, np.uint8)
    plan.run(image, eager)
    cupy.cuda.get_current_stream().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        plan.run(image, captured)
        graph = stream.end_capture()
        assert not captured.any()
        graph.launch()
        stream.synchronize()
    assert (captured == eager).all()


@pytest.mark.slow
def test_a_picture_above_2_to_the_31_bytes():
    """Rows of a tall picture must be the rows of its pieces: compare the last ones with a picture of them alone."""
    import cupy

    rows, width, tail = 2**31 // (3 * 1024) + 64, 1024, 96
    work = Case("laplacian8", "mix", "uint8", "abs", shape=(rows, width))
    image = cupy.random.default_rng(3).integers(0, 256, (rows, width, 3), dtype=cupy.uint8)
    out = cupy.empty_like(image)
    CudaSliding().prepare(work.problem(), Options()).run(image, out)
    piece_work = Case("laplacian8", "mix", "uint8", "abs", shape=(tail, width))
    piece = run_on_gpu(
        CudaSliding().prepare(piece_work.problem(), Options()), image[-tail:].get(), piece_work.problem()
    )
    assert_right(piece)
    assert image.nbytes > 2**31
    assert np.array_equal(out[1 - tail :].get(), piece.out[1:])
