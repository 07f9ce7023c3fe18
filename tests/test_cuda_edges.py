"""CUDA at the edges of the number range: what the fuzzer finds at random, by name.

Rows of more than 2³¹ samples stand in fuzz/test_fuzz.py; threads and several GPUs in fuzz/test_thread_pools.py.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from problems import assert_right, random_image, random_weights, run_on_gpu

from edgeconv.core import exactness
from edgeconv.core.filters import WeightSet, named_filter, weight_set
from edgeconv.core.problem import Problem, make_problem
from edgeconv.methods import METHODS, require
from edgeconv.methods.options import Options

pytestmark = pytest.mark.gpu

OWN_METHODS = [entry.name for entry in METHODS if entry.device == "cuda" and entry.name != "cudnn"]
LARGE_ENOUGH_FOR_STRIPS = (300, 400, 3)


def run_own(method: str, problem: Problem, image: np.ndarray, **options: Any) -> np.ndarray:
    plan = require(method, "cuda").prepare(problem, Options(**options))
    ran = run_on_gpu(plan, image, problem)
    assert_right(ran)
    return ran.out


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["laplacian8", "sobel", "kirsch", "robinson"])
@pytest.mark.parametrize("channels", ["mix", "each"])
@pytest.mark.parametrize(
    ("method", "dtype", "options"),
    [
        ("sliding", "float16", {}),
        ("sliding", "float32", {}),
        ("sliding", "float64", {}),
        ("im2col", "float32", {}),
        ("textbook", "float32", {}),
        ("implicit", "float32", {}),
        ("implicit", "float32", {"math": "tf32"}),
        ("implicit", "float32", {"math": "half"}),
        ("implicit", "float16", {"math": "half"}),
    ],
)
def test_a_bad_sample_reaches_its_own_windows_and_no_others(method, dtype, options, channels, name, bad) -> None:
    image = random_image(*LARGE_ENOUGH_FOR_STRIPS[:2], dtype)
    problem = make_problem(image.shape, dtype, weight_set(named_filter(name), channels))
    image[150, 200, 1] = image[0, 0, 0] = image[299, 399, 2] = bad
    out = run_own(method, problem, image, **options)
    touched = np.zeros(out.shape, bool)
    for y, x, channel in ((150, 200, 1), (0, 0, 0), (299, 399, 2)):
        here = slice(None) if channels == "mix" else channel
        touched[max(0, y - 1) : y + 2, max(0, x - 1) : x + 2, here] = True
    assert np.isfinite(out[~touched].astype(np.float64)).all()
    assert not np.isfinite(out[149, 199, 1])


@pytest.mark.parametrize("share", [1e-3, 1e-6, 1e-7])
def test_an_output_of_small_weights_is_as_right_as_the_others(share: float) -> None:
    weights = random_weights().weights.copy()
    weights[:, 1] *= np.float32(share)
    image = random_image(*LARGE_ENOUGH_FOR_STRIPS[:2], "float16")
    problem = make_problem(image.shape, "float16", WeightSet(weights, groups=1))
    run_own("sliding", problem, image)


@pytest.mark.parametrize("method", OWN_METHODS)
@pytest.mark.parametrize("stride", [1, 2, 4])
def test_whole_sums_beyond_float32_are_exact(method: str, stride: int) -> None:
    rng = np.random.default_rng(stride)
    image = random_image(*LARGE_ENOUGH_FOR_STRIPS[:2], "uint16")
    for combine, directions in (("single", 1), ("magnitude", 2), ("maximum", 8)):
        kernels = rng.integers(-2000, 2001, (directions, 3, 3, 3, 3)).astype(np.float32)
        for mode in ("abs", "raw"):
            problem = make_problem(
                image.shape, "uint16", WeightSet(kernels, 1, combine), stride=stride, output_mode=mode
            )
            plan = require(method, "cuda").prepare(problem, Options())
            assert exactness.is_exact(problem, plan.arithmetic)
            assert_right(run_on_gpu(plan, image, problem))


@pytest.mark.parametrize("channels", ["each", "mix"])
@pytest.mark.parametrize(
    ("method", "dtype", "size"),
    [
        *product(OWN_METHODS, ["float32"], [1e-42, 1e-30, 1e19, 2e37]),
        *product([name for name in OWN_METHODS if name != "implicit"], ["float64"], [1e-320, 1e-200, 1e160, 1e307]),
    ],
)
def test_magnitudes_neither_vanish_nor_overflow_and_denormals_stay(
    method: str, dtype: str, size: float, channels: str
) -> None:
    image = (random_image(*LARGE_ENOUGH_FOR_STRIPS[:2], "float64") * size).astype(dtype)
    for name in ("sobel", "identity", "kirsch", "robinson"):
        problem = make_problem(image.shape, dtype, weight_set(named_filter(name), channels))
        out = run_own(method, problem, image)
        beyond = name in ("kirsch", "robinson") or channels == "mix"  # weights that make numbers past the type's range
        assert np.isfinite(out).all() or beyond
        if name == "identity" and channels == "each":
            assert np.array_equal(out, image)
