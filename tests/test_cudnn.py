"""`cudnn`: the choice of an algorithm with a handle that only pretends, and all results against the oracle."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from cpu_problems import EVERY_FILTER, GEOMETRY, RANDOM, Case, geometry_cases
from gemm_cases import FLOAT32_TYPES, LARGE, REDUCED_TYPES, check_on_gpu, check_plan, check_tall_picture
from problems import random_image

from edgeconv.errors import UnavailableError
from edgeconv.methods.cuda import libcudnn
from edgeconv.methods.cuda.cudnn import CuDNN, _can_be_direct, _screen
from edgeconv.methods.cuda.libcudnn import Algorithm, CudnnError, MathType, Performance
from edgeconv.methods.options import Options


class Descriptor:
    """Remembers the arithmetic that was set last."""

    def __init__(self) -> None:
        self.math: MathType | None = None

    def set_math(self, math: MathType) -> None:
        self.math = math


class PretendWork:
    def __init__(self) -> None:
        self.convolution = Descriptor()


class PretendHandle:
    """Answers workspace sizes from a table; an algorithm that is not in it is refused."""

    def __init__(self, needed: dict[Algorithm, int]) -> None:
        self.needed = needed

    def workspace_bytes(self, work: Any, algorithm: Algorithm) -> int:
        if algorithm not in self.needed:
            raise CudnnError("cudnnGetConvolutionForwardWorkspaceSize", 3000, "not supported")
        return self.needed[algorithm]


def line(algorithm: Algorithm, status: int = 0, math: MathType = MathType.TENSOR_OP) -> Performance:
    return Performance(algorithm, math, status, None, 0, True)


def screened(lines: list[Performance], needed: dict[Algorithm, int], math: str = "tf32", limit: int = 100) -> Any:
    return _screen(PretendHandle(needed), PretendWork(), tuple(lines), math, limit)


def test_the_ranking_is_kept_and_bad_entries_are_skipped_with_a_reason():
    lines = [line(Algorithm.GEMM, 3000), line(Algorithm.FFT), line(Algorithm.DIRECT), line(Algorithm.IMPLICIT_GEMM)]
    report, candidates = screened(lines, {Algorithm.FFT: 101, Algorithm.IMPLICIT_GEMM: 100})
    assert [entry["algorithm"] for entry in report] == ["GEMM", "FFT", "DIRECT", "IMPLICIT_GEMM"]
    assert [entry.get("skipped", "") != "" for entry in report] == [True, True, True, False]
    assert "status 3000" in report[0]["skipped"]
    assert "101" in report[1]["skipped"]
    assert "not supported" in report[2]["skipped"]
    assert [candidate.line.algorithm for candidate in candidates] == [Algorithm.IMPLICIT_GEMM]
    assert candidates[0].workspace_bytes == 100


@pytest.mark.parametrize(("math", "expected"), [("fma", MathType.FMA), ("tf32", MathType.TENSOR_OP)])
def test_true_float32_is_forced_and_other_arithmetic_is_the_entrys(math, expected):
    _, (candidate,) = screened([line(Algorithm.IMPLICIT_GEMM)], {Algorithm.IMPLICIT_GEMM: 0}, math)
    assert candidate.math == expected


@pytest.mark.parametrize(
    ("case", "math", "direct"),
    [
        (Case(RANDOM, "mix", "float32", "raw"), "fma", True),
        (Case(RANDOM, "each", "float32", "raw", stride=3, padding=5), "tf32", True),
        (Case(RANDOM, "mix", "float16", "raw"), "half", True),
        (Case(RANDOM, "mix", "float16", "raw"), "fma", False),
        (Case(RANDOM, "mix", "float32", "raw"), "half", False),
        (Case(RANDOM, "mix", "float32", "abs"), "fma", False),
        (Case(RANDOM, "mix", "float32", "raw", border="reflect"), "fma", False),
        (Case("sobel", "mix", "float32", "raw"), "fma", False),
        (Case(RANDOM, "mix", "uint8", "raw"), "fma", False),
        (Case(RANDOM, "luma", "float32", "raw", shape=(30000, 30000)), "fma", False),
    ],
    ids=str,
)
def test_only_a_plain_float_convolution_needs_nothing_around_it(case, math, direct):
    assert _can_be_direct(case.problem(), math) is direct


# --- on a GPU --------------------------------------------------------------------------------------------------

on_gpu = [
    pytest.mark.gpu,
    pytest.mark.skipif(libcudnn.unavailable_reason() is not None, reason=str(libcudnn.unavailable_reason())),
]


class TestOnGpu:
    pytestmark = on_gpu

    @pytest.mark.parametrize("case", EVERY_FILTER, ids=str)
    def test_every_filter(self, case):
        check_on_gpu(CuDNN(), case)

    @pytest.mark.parametrize("case", FLOAT32_TYPES, ids=str)
    def test_every_type_mode_and_stride(self, case):
        check_on_gpu(CuDNN(), case)

    @pytest.mark.parametrize(("work", "stride", "border"), GEOMETRY)
    def test_geometry(self, work, stride, border):
        for case in geometry_cases(work, stride, border):
            check_on_gpu(CuDNN(), case)

    @pytest.mark.parametrize("math", ["tf32", "half"])
    @pytest.mark.parametrize("case", REDUCED_TYPES, ids=str)
    def test_every_type_on_tensor_cores(self, case, math):
        check_on_gpu(CuDNN(), case, Options(math=math))

    @pytest.mark.parametrize("offset_samples", [0, 1, 5])
    @pytest.mark.parametrize("math", ["fma", "tf32", "half"])
    @pytest.mark.parametrize("case", LARGE, ids=str)
    def test_large_and_any_start(self, case, math, offset_samples):
        check_on_gpu(CuDNN(), case, Options(math=math), offset_samples)

    @pytest.mark.parametrize("math", ["fma", "tf32", "half"])
    @pytest.mark.parametrize(
        "case",
        [
            Case(RANDOM, "mix", "float32", "raw", shape=(259, 512)),
            Case("sobel", "mix", "uint8", "abs", stride=2, shape=(259, 512)),
        ],
        ids=str,
    )
    def test_find_measures_algorithms_and_filled_up_channels(self, case, math):
        problem, options = case.problem(), Options(math=math, cudnn_find=True)
        plan = CuDNN().prepare(problem, options)
        measured = [entry for entry in plan.choice["measured"] if entry["status"] == 0]
        assert measured
        assert all(entry["time_seconds"] > 0 for entry in measured)
        assert plan.choice["ranked"]
        assert "measured" in plan.choice["taken"]["why"]
        assert [entry["channels"] for entry in plan.choice["channels_measured"]] == [3, 4, 8]
        check_plan(plan, problem)

    def test_bands_overlap_at_the_end_and_keep_the_limit(self):
        problem = Case("sobel", "mix", "uint8", "abs", stride=2, border="reflect", shape=(1031, 1024)).problem()
        options = Options(workspace_limit_bytes=6 * 2**20)
        plan = CuDNN().prepare(problem, options)
        assert plan.choice["bands"] > 2
        assert plan.workspace_bytes <= options.workspace_limit_bytes
        check_plan(plan, problem)

    def test_an_algorithm_above_the_limit_is_passed_over(self):
        problem = Case(RANDOM, "mix", "float32", "raw", shape=(1024, 1024)).problem()
        plan = CuDNN().prepare(problem, Options(workspace_limit_bytes=2**20))
        assert plan.choice["taken"]["workspace_bytes"] <= 2**20

    @pytest.mark.parametrize("math", ["tf32", "half"])
    def test_a_16_bit_picture_is_refused_where_11_bits_are_kept(self, math):
        problem = Case("laplacian8", "mix", "uint16", "abs").problem()
        with pytest.raises(UnavailableError, match="--math fma"):
            CuDNN().prepare(problem, Options(math=math))

    @pytest.mark.parametrize("dtype", ["float32", "uint8"], ids=["direct", "staged"])
    def test_two_plans_of_one_thread_run_in_two(self, dtype):
        """Each on its own stream, behind work that keeps it busy: a convolution on the other one comes too early."""
        import cupy

        problem = Case(RANDOM, "mix", dtype, "raw", shape=(300, 400)).problem()
        plans = [CuDNN().prepare(problem, Options()) for _ in range(2)]
        images = [cupy.asarray(random_image(300, 400, dtype, seed)) for seed in range(2)]
        outs = [cupy.empty(problem.output_shape, problem.output_dtype) for _ in plans]
        for plan, image, out in zip(plans, images, outs, strict=True):
            plan.run(image, out)
        cupy.cuda.Device().synchronize()

        def many(number: int) -> bool:
            busy = cupy.ones((512, 512), cupy.float32)
            with cupy.cuda.Stream(non_blocking=True) as stream:
                given, out = cupy.empty_like(images[number]), cupy.empty_like(outs[number])
                right = cupy.ones((), cupy.bool_)
                for _ in range(100):
                    given.fill(0)
                    busy @ busy
                    given[...] = images[number]
                    plans[number].run(given, out)
                    right &= cupy.array_equal(out, outs[number])
                stream.synchronize()
                return bool(right)

        with ThreadPoolExecutor(2) as pool:
            assert all(pool.map(many, range(2)))

    @pytest.mark.slow
    def test_a_picture_above_2_to_the_31_bytes(self):
        check_tall_picture(CuDNN())
