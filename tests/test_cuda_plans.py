"""What CUDA plans decide before anything runs, with neither GPU nor CuPy: bytes, launches, bands, packing, wide sums.

A stand-in for CuPy hands out empty arrays and a made-up GPU; kernels are not compiled. That they compute what they
should is for the tests that run them (test_kernels_on_cpu.py, test_cuda_*.py).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest
from cpu_problems import RANDOM, RANDOM_WHOLE, Case
from kernel_table import stand_in

from edgeconv.core.exactness import FLOAT32, FLOAT64, TWOFOLD_HALF, WHOLE, WHOLE_HALVES
from edgeconv.core.filters import WeightSet
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem, make_problem
from edgeconv.errors import MemoryLimitError, UnavailableError
from edgeconv.methods import cuda
from edgeconv.methods.base import Method
from edgeconv.methods.cuda import (
    cudnn,
    flat_rows,
    im2col,
    implicit,
    kernel_args,
    libcudnn,
    sliding,
    textbook,
)
from edgeconv.methods.cuda.libcudnn import Algorithm, MathType
from edgeconv.methods.options import Options

LAUNCH = "edgeconv.hardware.cuda.launch"


class PretendConvolution:
    """Ranks algorithms, the first of which needs some workspace, and runs them without doing anything."""

    lines = ((Algorithm.IMPLICIT_GEMM, 0, 0.0, 1000),)
    failing: Algorithm | None = None

    def __init__(self, *words: Any) -> None:
        pass

    def set_math(self, math: MathType) -> None:
        pass

    def rank(self, handle: Any) -> list[libcudnn.Performance]:
        return [libcudnn.Performance(*line) for line in self.lines]

    def run(self, handle: Any, algorithm: Algorithm, *words: Any) -> None:
        if algorithm is self.failing:
            raise ArithmeticError("cannot run")


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let plans be prepared on the made-up GPU."""
    monkeypatch.setitem(sys.modules, "cupy", stand_in(multiprocessors=10))
    before = sys.modules.pop(LAUNCH, None)  # it holds the CuPy that it was imported with
    monkeypatch.setattr(cuda, "launch", None, raising=False)
    for module in (sliding, flat_rows, im2col, implicit, textbook, cudnn):
        monkeypatch.setattr(module, "load", lambda variant: SimpleNamespace(kernel=SimpleNamespace(ptr=0)))
    monkeypatch.setattr(cudnn, "_handle", lambda: None)
    monkeypatch.setattr(cudnn.libcudnn, "Convolution", PretendConvolution)
    monkeypatch.setattr(cudnn.libcudnn, "version", lambda: "none")
    yield
    sys.modules.pop(LAUNCH, None)
    if before is not None:
        sys.modules[LAUNCH] = before


def case(dtype: str, mode: str, filter: str = RANDOM, channels: str = "mix", **rules: Any) -> Problem:
    return Case(filter, channels, dtype, mode, **{"shape": (300, 500), **rules}).problem()


# --- bytes that a method moves, by hand ------------------------------------------------------------------------------

PIXELS = 300 * 500


@pytest.mark.parametrize(
    ("method", "options", "problem_words", "moved", "launches"),
    [
        # the picture once for each of three output channels, and the output
        (textbook.Textbook(), Options(), ("uint8", "raw"), 3 * PIXELS * 3 + PIXELS * 12, 3),
        (textbook.Textbook(), Options(), ("uint16", "abs", RANDOM, "luma"), PIXELS * 6 + PIXELS * 2, 1),
        # both once
        (implicit.Implicit(), Options(), ("uint8", "raw"), PIXELS * 3 + PIXELS * 12, 1),
        (implicit.Implicit(), Options(), ("float32", "raw", RANDOM, "luma"), PIXELS * (12 + 4), 1),
        # both once, and 27 columns a pixel written and read in the picture's type
        (im2col.CudaIm2col(), Options(), ("uint8", "abs"), PIXELS * (3 + 2 * 27 + 3), 1),
        (im2col.CudaIm2col(), Options(), ("float32", "raw"), PIXELS * (12 + 2 * 27 * 4 + 12), 1),
        # the vendor's: columns in float32, and responses where they are not the output already
        (im2col.CudaIm2col(), Options(gemm="cublas"), ("float32", "raw"), PIXELS * (12 + 2 * 27 * 4 + 12), None),
        (im2col.CudaIm2col(), Options(gemm="cublas"), ("uint8", "abs"), PIXELS * (3 + 2 * (27 + 3) * 4 + 3), None),
        (
            im2col.CudaIm2col(),
            Options(gemm="cublas"),
            ("float32", "raw", "sobel"),
            PIXELS * (12 + 2 * (27 + 6) * 4 + 12),
            None,
        ),
        # cuDNN reads and writes by itself, or with stages around it: 302 × 502 padded pixels in, responses out
        (cudnn.CuDNN(), Options(), ("float32", "raw"), PIXELS * 24, None),
        (cudnn.CuDNN(), Options(), ("uint8", "abs"), PIXELS * 6 + 2 * (302 * 502 * 3 + PIXELS * 3) * 4, None),
        (
            cudnn.CuDNN(),
            Options(math="half"),
            ("float32", "abs", "sobel"),
            PIXELS * 24 + 2 * (302 * 502 * 3 + PIXELS * 6) * 2,
            None,
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Method) else None,
)
def test_moved_bytes_and_launches(
    method: Method, options: Options, problem_words: tuple[str, ...], moved: int, launches: int | None
) -> None:
    plan = method.prepare(case(*problem_words), options)
    assert plan.moved_bytes == moved
    if launches is not None:
        assert plan.launches == launches


@pytest.mark.parametrize(("stride", "rows_twice"), [(1, 2), (2, 1), (3, 0)])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float16", "float32", "float64"])
def test_strips_read_the_rows_between_them_twice(dtype: str, stride: int, rows_twice: int) -> None:
    problem = case(dtype, "raw" if dtype.startswith("f") else "abs", stride=stride, shape=(1200, 1600))
    plan = sliding.CudaSliding().prepare(problem, Options())
    assert plan.choice["kernel"] == "strips"
    height, width = problem.output_shape[:2]
    strips = -(-height // plan.choice["rows_per_strip"])
    assert strips > 1
    size = np.dtype(dtype).itemsize
    again = rows_twice * (strips - 1) * 1600 * 3 * size
    assert plan.moved_bytes == 1200 * 1600 * 3 * size + height * width * 3 * size + again
    assert plan.launches == 1


@pytest.mark.parametrize("stride", [4, 5])
def test_strips_read_no_row_that_no_window_meets(stride: int) -> None:
    height, width = 4000, 5000
    plan = sliding.CudaSliding().prepare(case("uint8", "abs", stride=stride, shape=(height, width)), Options())
    assert plan.choice["kernel"] == "strips"
    outputs = height // stride * (width // stride)
    assert plan.moved_bytes == KERNEL_SIZE * (height // stride) * width * 3 + outputs * 3


# --- workspace ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [150_000, 300_000, 2**29])
@pytest.mark.parametrize("words", [("uint8", "abs"), ("float32", "raw", "sobel")], ids=str)
@pytest.mark.parametrize(
    ("method", "options", "kept"),
    [
        (im2col.CudaIm2col(), {}, 0),
        (im2col.CudaIm2col(), {"gemm": "cublas"}, 0),
        (cudnn.CuDNN(), {}, 6 * 27 * 4),  # the weights of its responses
    ],
    ids=["im2col", "cublas", "cudnn"],
)
def test_bands_keep_a_limit(
    method: Method, options: dict[str, Any], kept: int, words: tuple[str, ...], limit: int
) -> None:
    plan = method.prepare(case(*words), Options(workspace_limit_bytes=limit, **options))
    assert 0 < plan.workspace_bytes <= limit + kept


@pytest.mark.parametrize("gemm", ["own", "cublas"])
def test_im2col_of_4096_fits_in_two_gib(gemm: Any) -> None:
    problem = case("float32", "raw", shape=(4096, 4096))
    workspace = im2col.CudaIm2col().prepare(problem, Options(gemm=gemm)).workspace_bytes
    assert 0 < workspace <= 2 * 2**30 - problem.input_bytes - problem.output_bytes


def test_no_workspace_below_one_block_and_just_enough_for_one() -> None:
    problem = case("uint8", "abs")
    needed = {"own": 512 * 27, "cublas": 1024 * (27 + 3) * 4}
    for gemm, count in needed.items():
        options: Any = {"gemm": gemm}
        plan = im2col.CudaIm2col().prepare(problem, Options(workspace_limit_bytes=count, **options))
        assert plan.workspace_bytes == count
        with pytest.raises(MemoryLimitError, match=f"needs {count:,} bytes"):
            im2col.CudaIm2col().prepare(problem, Options(workspace_limit_bytes=count - 1, **options))


def test_a_long_stride_is_cut_to_the_picture() -> None:
    problem = make_problem((5, 7, 3), "uint8", WeightSet(np.ones((1, 3, 1, 3, 3), np.float32), 3), stride=2**40)
    height, width, out_height, out_width, padding, stride = kernel_args.strided_geometry(problem).tolist()
    assert (height, width, out_height, out_width, padding) == (5, 7, 1, 1, 1)
    assert 7 <= stride <= 9


# --- wide sums -------------------------------------------------------------------------------------------------------

WIDEST = 2**24
"""The largest whole number up to which float32 leaves none out."""


@pytest.mark.parametrize(("dtype", "white"), [("uint8", 255), ("uint16", 65535)])
def test_sums_are_wide_just_beyond_what_float32_holds(dtype: str, white: int) -> None:
    most = WIDEST // white
    methods = (sliding.CudaSliding(), im2col.CudaIm2col(), implicit.Implicit(), textbook.Textbook())
    for total, wide in ((most, False), (most + 1, True)):
        weights = np.zeros((1, 3, 1, 3, 3), np.float32)
        weights[..., 1, 1] = total
        problem = make_problem((1200, 1600, 3), dtype, WeightSet(weights, 3), output_mode="abs")
        for method in methods:
            assert method.prepare(problem, Options()).arithmetic is (FLOAT64 if wide else FLOAT32), type(method)


@pytest.mark.parametrize(
    ("words", "arithmetic"),
    [
        (("uint8", "abs", RANDOM_WHOLE), WHOLE),
        (("uint8", "abs", "sobel"), FLOAT32),
        (("uint8", "abs"), WHOLE_HALVES),
        (("uint8", "raw"), FLOAT32),
        (("uint8", "abs", "kirsch", "each"), WHOLE),
        (("uint8", "abs", "kirsch", "mix"), FLOAT32),
        (("float16", "raw"), TWOFOLD_HALF),
        (("float32", "raw"), FLOAT32),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else None,
)
def test_strips_say_what_they_sum_in(words: tuple[str, ...], arithmetic: Any) -> None:
    assert sliding.CudaSliding().prepare(case(*words, shape=(1200, 1600)), Options()).arithmetic is arithmetic


def test_the_vendors_product_says_that_it_multiplies_zeros() -> None:
    vendor = im2col.CudaIm2col().prepare(case("float32", "raw"), Options(gemm="cublas")).arithmetic
    assert vendor.multiplies_zeros
    assert vendor.unit == FLOAT32.unit


@pytest.mark.parametrize("method", [implicit.Implicit(), cudnn.CuDNN()], ids=["implicit", "cudnn"])
def test_what_does_not_compute_in_float64_says_so_and_what_does(method: Any) -> None:
    assert "float64" in method.reason(case("float64", "raw"), Options())
    assert method.reason(case("float32", "raw"), Options()) is None


@pytest.mark.parametrize(
    ("find", "taken", "why"), [(False, "GEMM", "first"), (True, "WINOGRAD", "fastest")], ids=["ranked", "find"]
)
def test_cudnn_takes_the_first_or_the_fastest_that_runs_within_the_limit(
    monkeypatch: pytest.MonkeyPatch, find: bool, taken: str, why: str
) -> None:
    lines = (
        (Algorithm.FFT, 3000, 0.0, 0),
        (Algorithm.FFT_TILING, 0, 0.0, 2**30),
        (Algorithm.DIRECT, 0, 0.0, 0),
        (Algorithm.GEMM, 0, 0.0, 700),
        (Algorithm.WINOGRAD, 0, 0.0, 500),
    )
    monkeypatch.setattr(PretendConvolution, "lines", lines)
    monkeypatch.setattr(PretendConvolution, "failing", Algorithm.DIRECT)
    monkeypatch.setattr(cudnn, "CudnnError", ArithmeticError)
    seconds = iter((2e-3, 1e-3))
    monkeypatch.setattr(cudnn, "_seconds", lambda *words: next(seconds))
    plan = cudnn.CuDNN().prepare(case("float32", "raw"), Options(cudnn_find=find))
    skipped = [entry.get("skipped", "") for entry in plan.choice["ranked"]]
    assert skipped == ["status 3000", ANY, "cannot run", "", ""]
    assert "1,073,741,824 bytes is above" in skipped[1]
    assert (plan.choice["taken"]["algorithm"], plan.choice["taken"]["math"]) == (taken, "FMA")
    assert plan.choice["taken"]["why"].startswith(why)
    assert plan.workspace_bytes == plan.choice["taken"]["workspace_bytes"] + 3 * 27 * 4
    monkeypatch.setattr(PretendConvolution, "lines", lines[:3])
    with pytest.raises(UnavailableError, match=r"FFT: status 3000.*DIRECT: cannot run.*raise --workspace-limit"):
        cudnn.CuDNN().prepare(case("float32", "abs"), Options())
