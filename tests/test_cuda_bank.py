"""Grey pictures, filter banks and float64 on a GPU: every CUDA method against the oracle, and batches of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bank_problems import BANKS, DOUBLES, EVERY, GREY, BankCase

from edgeconv.methods import method_names, require
from edgeconv.methods.cuda.sliding import plan_for_large
from edgeconv.methods.options import Options
from edgeconv.runtime import check

pytestmark = pytest.mark.gpu


def picture(case: BankCase, pictures: int = 1) -> np.ndarray:
    problem = case.problem()
    shape = (*((pictures,) if pictures > 1 else ()), *problem.input_shape)
    random = np.random.default_rng(5)
    if problem.dtype.kind == "u":
        return random.integers(0, np.iinfo(problem.dtype).max, shape, problem.dtype, endpoint=True)
    return random.uniform(-1, 1, shape).astype(problem.dtype)


def assert_right(plan: Any, case: BankCase) -> None:
    import cupy

    problem, image = case.problem(), picture(case)
    out = cupy.full(problem.output_shape, 165 if problem.output_dtype.kind == "u" else np.nan, problem.output_dtype)
    plan.run(cupy.asarray(image), out)
    found = check.check(image, cupy.asnumpy(out), problem, plan.arithmetic)
    assert found.passed, f"{case}: {found.unexplained_samples} wrong samples, worst {found.worst}"


@pytest.mark.parametrize("method", method_names("cuda"))
def test_every_case(method: str) -> None:
    for case in EVERY if method not in ("implicit", "cudnn") else (*GREY, *BANKS):
        assert_right(require(method, "cuda").prepare(case.problem(), Options()), case)


def test_cases_by_the_kernels_for_large_pictures() -> None:
    for case in (*GREY, *BANKS):
        assert_right(plan_for_large(case.problem()), case)


def test_cases_by_the_vendors_gemm() -> None:
    for case in (*BANKS, *DOUBLES):
        assert_right(require("im2col", "cuda").prepare(case.problem(), Options(gemm="cublas")), case)


@pytest.mark.parametrize("case", [GREY[0], GREY[9], BANKS[1], BANKS[7], BANKS[12], DOUBLES[0]], ids=str)
def test_a_batch_in_one_launch_is_what_its_pictures_are_one_by_one(case: BankCase) -> None:
    import cupy

    problem, images = case.problem(), cupy.asarray(picture(case, 3))
    together = cupy.empty((3, *problem.output_shape), problem.output_dtype)
    batch = require("sliding", "cuda").prepare_batch(problem, 3, Options())
    assert batch is not None
    batch.run(images, together)
    alone = plan_for_large(problem)
    for image, found in zip(images, together, strict=True):
        out = cupy.empty_like(found)
        alone.run(image, out)
        assert (out == found).all()
