"""Every CUDA method on a GPU against the oracle: any two things in which problems differ, and what is special of each.

Rows of more than 2³¹ samples stand in fuzz/test_fuzz.py; threads and several GPUs in fuzz/test_thread_pools.py.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
from cpu_problems import FILTERS, PLAIN, RANDOM, Case, modes_of
from problems import assert_right, image_of, random_image, run_on_gpu
from selection import drawn_pairs

from edgeconv.core import exactness
from edgeconv.core.choices import BORDERS, CHANNELS
from edgeconv.core.filters import named_filter, weight_set
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import INPUT_DTYPES, Problem, make_problem
from edgeconv.errors import UnavailableError, UsageError
from edgeconv.methods import method_names, prepare, require
from edgeconv.methods.base import Plan
from edgeconv.methods.cuda import libcudnn
from edgeconv.methods.cuda.im2col import BAND_STEP, cublas_plan
from edgeconv.methods.cuda.kernel_args import depth_of
from edgeconv.methods.cuda.sliding import plan_for_large
from edgeconv.methods.cuda.sliding_choice import choose_strips
from edgeconv.methods.options import BLOCKS, MATHS, Gemm, Options

pytestmark = pytest.mark.gpu
GEMMS: tuple[Gemm, ...] = ("own", "cublas")

# --- any two of what a problem can differ in ---------------------------------------------------------------------


class Way(NamedTuple):
    """A method with an option that selects other kernels."""

    method: str
    options: Options = Options()
    made: Callable[[Problem, Options], Plan] | None = None
    """Another way to a plan than the method's own."""

    @property
    def reduced(self) -> bool:
        """On the tensor cores, which hold 11 bits of a sample."""
        return self.options.math != "fma"

    def plan(self, problem: Problem) -> Plan:
        if self.method == "cudnn" and (reason := libcudnn.unavailable_reason()):
            pytest.skip(reason)
        if self.made is not None:
            return self.made(problem, self.options)
        return prepare(self.method, "cuda", problem, self.options)


def in_bands(problem: Problem, options: Options) -> Plan:
    """cuBLAS in bands that end inside rows."""
    return cublas_plan(problem, options, band_bytes=BAND_STEP * depth_of(problem) * 4)


WAYS = {
    "sliding": Way("sliding"),
    "sliding of large pictures": Way(
        "sliding", made=lambda problem, options: plan_for_large(problem, choose_strips(problem))
    ),
    **{f"textbook by {block}": Way("textbook", Options(block=block)) for block in BLOCKS},
    **{f"im2col by {gemm}": Way("im2col", Options(gemm=gemm)) for gemm in GEMMS},
    "im2col by cublas in bands": Way("im2col", Options(gemm="cublas"), in_bands),
    "implicit": Way("implicit"),
    **{f"cudnn in {math}": Way("cudnn", Options(math=math)) for math in MATHS},
}
MAIN = ("sliding", "sliding of large pictures", "textbook by 16", "im2col by own", "implicit", "cudnn in fma")
"""The others are another block or product of one of these."""
SHAPES = ((1, 7), (7, 1), (5, 4), (13, 48), (37, 131), (67, 517), (130, 1024), (259, 341))
"""Single rows and columns, several tiles each way, rows that do and do not start on 16 bytes."""
PROPERTIES = {
    "way": tuple(WAYS),
    "filter": FILTERS,
    "channels": CHANNELS,
    "dtype": INPUT_DTYPES,
    "output_mode": ("abs", "clip", "raw"),
    "stride": (1, 2, 3, 4, 7),
    "border": BORDERS,
    "padding": (0, 1, 2, 5),
    "shape": SHAPES,
    "offset_samples": (0, 1, 5),
}
ENOUGH_SAMPLES = 100
"""Outputs from which the largest is typical: tensor cores' tolerance is a share of it, and few may nearly cancel."""


def case_of(filter: tuple[str, int, int], channels: str, dtype: str, output_mode: str, *geometry: Any) -> Case:
    stride, border, padding, shape = geometry
    name, filters, in_channels = filter
    return Case(name, channels, dtype, output_mode, stride, padding, border, shape, filters, in_channels)


def is_a_problem(way: str, *rest: Any) -> bool:
    """Whether the way takes it."""
    case = case_of(*rest[:-1])
    method, smallest = WAYS[way], min(case.shape) + 2 * case.padding
    return (
        smallest >= KERNEL_SIZE
        and case.output_mode in modes_of(case.dtype)
        and (case.in_channels == 3 or case.channels == "mix")
        and (way in MAIN or rest[0] in PLAIN)
        and (method.method not in ("implicit", "cudnn") or case.dtype != "float64")
        and (not method.reduced or (case.dtype != "uint16" and np.prod(case.problem().output_shape) >= ENOUGH_SAMPLES))
    )


WHOLE = ("laplacian8", 0, 3), "mix", "uint8", "abs", 1, "reflect101", 1, (37, 131)
CASES = [*((way, *WHOLE, 0) for way in WAYS), *drawn_pairs(list(PROPERTIES.values()), is_a_problem)]
"""First a bordered picture of whole numbers by each way, which shows most faults of a kernel."""


def check_way(way: Way, case: Case, offset_samples: int = 0) -> None:
    """Run the case and compare every sample with the oracle; a failure names the case."""
    try:
        problem = case.problem()
        assert_right(run_on_gpu(way.plan(problem), image_of(problem), problem, offset_samples))
    except (AssertionError, UsageError) as failure:
        raise AssertionError(f"{case}: {failure}") from failure


@pytest.mark.parametrize("row", CASES, ids=lambda row: f"{row[0]}, {case_of(*row[1:-1])}, from {row[-1]}")
def test_every_pair(row: tuple[Any, ...]) -> None:
    way, *problem, offset_samples = row
    check_way(WAYS[way], case_of(*problem), offset_samples)


@pytest.mark.parametrize(
    ("filters", "in_channels", "dtype"),
    [(0, 1, "uint8"), (0, 3, "float64"), (4, 3, "float32"), (8, 3, "uint8"), (5, 1, "float32"), (5, 1, "float64")],
)
def test_a_batch_in_one_launch_is_what_its_pictures_are_one_by_one(filters: int, in_channels: int, dtype: str) -> None:
    import cupy

    problem = Case(RANDOM, "mix", dtype, "raw", border="reflect", filters=filters, in_channels=in_channels).problem()
    images = np.stack([image_of(problem, seed) for seed in range(3)])
    batch = require("sliding", "cuda").prepare(problem, Options(), 3)
    assert batch.pictures == 3
    together = cupy.empty((3, *problem.output_shape), problem.output_dtype)
    batch.run(cupy.asarray(images), together)
    alone = plan_for_large(problem, choose_strips(problem))
    for image, found in zip(images, together, strict=True):
        ran = run_on_gpu(alone, image, problem)
        assert_right(ran)
        assert (ran.out == found.get()).all()


# --- workspace and refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("gemm", GEMMS)
def test_im2col_keeps_a_limit_by_bands(gemm: Gemm) -> None:
    problem = Case("sobel", "mix", "float32", "abs", shape=(1031, 1024)).problem()
    free = require("im2col", "cuda").prepare(problem, Options(gemm=gemm))
    tight = Options(gemm=gemm, workspace_limit_bytes=free.workspace_bytes // 3)
    plan = require("im2col", "cuda").prepare(problem, tight)
    assert plan.workspace_bytes <= tight.workspace_limit_bytes
    assert_right(run_on_gpu(plan, image_of(problem), problem))


@pytest.mark.parametrize("way", [name for name, way in WAYS.items() if way.reduced])
def test_a_16_bit_picture_is_refused_where_11_bits_are_kept(way: str) -> None:
    with pytest.raises(UnavailableError, match="--math fma"):
        WAYS[way].plan(Case("laplacian8", "mix", "uint16", "abs").problem())


@pytest.mark.slow
@pytest.mark.gpu_alone
@pytest.mark.parametrize("way", MAIN)
def test_the_last_rows_of_a_picture_above_2_to_the_31_bytes_are_those_of_a_picture_of_them_alone(way: str) -> None:
    import cupy

    width, rows = 4096, 64
    height = 2**31 // (width * 3 * 4) + 2 * rows
    whole = Case(RANDOM, "mix", "float32", "raw", shape=(height, width)).problem()
    tail = Case(RANDOM, "mix", "float32", "raw", shape=(rows, width)).problem()
    image = cupy.zeros(whole.input_shape, whole.dtype)
    image[-rows:].set(image_of(tail))
    out = cupy.full(whole.output_shape, np.nan, whole.output_dtype)
    expected = cupy.empty(tail.output_shape, tail.output_dtype)
    plan = WAYS[way].plan(whole)
    plan.run(image, out)
    WAYS[way].plan(tail).run(cupy.ascontiguousarray(image[-rows:]), expected)
    limit = 2 * float(exactness.bound(tail, plan.arithmetic).max())
    assert float(cupy.abs(out[1 - rows :] - expected[1:]).max()) <= limit
    assert not bool(cupy.isnan(out).any())


# --- edges of the number range, by name --------------------------------------------------------------------------

SEVERAL_STRIPS = (300, 400)
OWN_METHODS = [name for name in method_names("cuda") if name != "cudnn"]


def check_image(way: Way, image: np.ndarray, problem: Problem) -> np.ndarray:
    ran = run_on_gpu(way.plan(problem), image, problem)
    assert_right(ran)
    return ran.out


BAD = drawn_pairs(
    [
        ("sliding", "textbook by 16", "im2col by own", "implicit"),
        ("float16", "float32", "float64"),
        ("mix", "each"),
        ("laplacian8", "sobel", "kirsch", "robinson"),
        (np.inf, -np.inf, "nan"),
    ],
    lambda way, dtype, *_: dtype != "float64" or way != "implicit",
)


@pytest.mark.parametrize(("way", "dtype", "channels", "name", "bad"), BAD)
def test_a_bad_sample_reaches_its_own_windows_and_no_others(
    way: str, dtype: str, channels: str, name: str, bad: float | str
) -> None:
    image = random_image(*SEVERAL_STRIPS, dtype)
    problem = make_problem(image.shape, dtype, weight_set(named_filter(name), channels))
    image[150, 200, 1] = image[0, 0, 0] = image[299, 399, 2] = float(bad)
    out = check_image(WAYS[way], image, problem)
    touched = np.zeros(out.shape, bool)
    for y, x, channel in ((150, 200, 1), (0, 0, 0), (299, 399, 2)):
        here = slice(None) if channels == "mix" else channel
        touched[max(0, y - 1) : y + 2, max(0, x - 1) : x + 2, here] = True
    assert np.isfinite(out[~touched].astype(np.float64)).all()
    assert not np.isfinite(out[149, 199, 1])


SIZES = (*product(["float32"], [1e-42, 1e-30, 1e19, 2e37]), *product(["float64"], [1e-320, 1e-200, 1e160, 1e307]))

MAGNITUDES = drawn_pairs(
    [OWN_METHODS, SIZES, ("mix", "each"), ("identity", "sobel", "kirsch", "robinson")],
    lambda method, size, *_: method != "implicit" or size[0] != "float64",
)


@pytest.mark.parametrize(("method", "size", "channels", "name"), MAGNITUDES)
def test_magnitudes_neither_vanish_nor_overflow_and_denormals_stay(
    method: str, size: tuple[str, float], channels: str, name: str
) -> None:
    dtype, factor = size
    image = (random_image(*SEVERAL_STRIPS, "float64") * factor).astype(dtype)
    problem = make_problem(image.shape, dtype, weight_set(named_filter(name), channels))
    out = check_image(Way(method), image, problem)
    beyond = name in ("kirsch", "robinson") or channels == "mix"  # weights that make numbers past the type's range
    assert np.isfinite(out).all() or beyond
    if name == "identity" and channels == "each":
        assert np.array_equal(out, image)
