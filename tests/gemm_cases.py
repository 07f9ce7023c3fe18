"""What im2col, implicit and cudnn on the GPU are put to, and the one way to check a case."""

from __future__ import annotations

import numpy as np
from cpu_problems import EVERY_FILTER, EVERY_TYPE, RANDOM, Case
from problems import assert_right, image_of, random_image, run_on_gpu

from edgeconv.core import exactness
from edgeconv.core.problem import Problem
from edgeconv.errors import UsageError
from edgeconv.methods.base import Method, Plan
from edgeconv.methods.options import Options

REDUCED_FILTERS = tuple(case for case in EVERY_FILTER if case.dtype != "uint16")
FLOAT32_TYPES = tuple(case for case in EVERY_TYPE if case.dtype != "float64")
"""For methods that do not compute in float64."""
REDUCED_TYPES = tuple(case for case in FLOAT32_TYPES if case.dtype != "uint16")
"""What TF32 and half can hold: everything but 16-bit pictures, which they refuse."""

ENOUGH_SAMPLES = 100
"""Outputs from which the largest is typical: the tolerance is a share of it, and of a few all may nearly cancel."""

LARGE = (
    Case(RANDOM, "mix", "float32", "raw", shape=(259, 1024)),
    Case(RANDOM, "mix", "float32", "raw", shape=(1031, 517)),
    Case(RANDOM, "each", "float32", "abs", shape=(515, 1024)),
    Case(RANDOM, "mix", "float16", "raw", shape=(259, 1024)),
    Case(RANDOM, "mix", "uint8", "abs", shape=(259, 1024)),
    Case("laplacian8", "each", "uint8", "abs", shape=(1031, 1021)),
    Case("sobel", "mix", "uint8", "abs", shape=(259, 1024)),
    Case("kirsch", "mix", "uint8", "abs", shape=(130, 1024)),
    Case("kirsch", "luma", "uint8", "clip", stride=2, shape=(515, 1023)),
    Case(RANDOM, "mix", "float32", "raw", stride=2, shape=(515, 1024)),
    Case(RANDOM, "mix", "float32", "raw", stride=3, shape=(515, 1024)),
    Case(RANDOM, "mix", "float32", "raw", stride=5, shape=(515, 1024)),
    Case(RANDOM, "mix", "float32", "raw", border="reflect101", padding=3, shape=(131, 1024)),
)
"""Several tiles and bands each way, with rows that do and do not start on 16 bytes."""


def check_plan(plan: Plan, problem: Problem, offset_samples: int = 0) -> None:
    """Run a plan on a random picture and compare every sample with the oracle."""
    image = image_of(problem)
    assert_right(run_on_gpu(plan, image, problem, offset_samples))


def check_on_gpu(method: Method, case: Case, options: Options | None = None, offset_samples: int = 0) -> None:
    """Prepare and check a case; a failure names it."""
    options = options or Options()
    try:
        problem = case.problem()
        check_plan(method.prepare(problem, options), problem, offset_samples)
    except (AssertionError, UsageError) as failure:
        raise AssertionError(f"{case}: {failure}") from failure


def tall_picture_case() -> tuple[Problem, Problem, int]:
    """A picture above 2^31 bytes, the same of its last rows alone, and how many rows of output are compared."""
    width, rows = 4096, 64
    height = 2**31 // (width * 3 * 4) + 2 * rows
    whole = Case(RANDOM, "mix", "float32", "raw", shape=(height, width)).problem()
    tail = Case(RANDOM, "mix", "float32", "raw", shape=(rows, width)).problem()
    return whole, tail, rows - 1


def check_tall_picture(method: Method, options: Options | None = None) -> None:
    """The last rows of a picture above 2^31 bytes are those of a picture of them alone."""
    import cupy

    whole, tail, compared = tall_picture_case()
    options = options or Options()
    image = cupy.zeros(whole.input_shape, whole.dtype)
    image[-tail.height :].set(random_image(tail.height, tail.width, tail.dtype))
    out = cupy.full(whole.output_shape, np.nan, whole.output_dtype)
    expected = cupy.empty(tail.output_shape, tail.output_dtype)
    plan = method.prepare(whole, options)
    plan.run(image, out)
    method.prepare(tail, options).run(cupy.ascontiguousarray(image[-tail.height :]), expected)
    limit = 2 * float(exactness.bound(tail, plan.arithmetic).max())
    assert float(cupy.abs(out[-compared:] - expected[-compared:]).max()) <= limit
    assert not bool(cupy.isnan(out).any())
