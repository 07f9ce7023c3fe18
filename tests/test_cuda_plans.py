"""What CUDA plans decide before anything runs, with neither GPU nor CuPy: bytes, launches, bands, packing, wide sums.

A stand-in for CuPy hands out empty arrays and a made-up GPU; kernels are not compiled. That they compute what they
should is for the tests that run them (test_kernels_on_cpu.py, test_cuda_*.py).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import pairwise
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cpu_problems import RANDOM, RANDOM_WHOLE, Case
from numpy.typing import NDArray

from edgeconv.bench.ladders import conv_kernels, gemm_kernels
from edgeconv.core import forms
from edgeconv.core.exactness import FLOAT32, FLOAT64, HALF, TF32, TWOFOLD_HALF, WHOLE
from edgeconv.core.filters import WeightSet
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem, make_problem
from edgeconv.errors import MemoryLimitError, UnavailableError, UsageError
from edgeconv.methods import cuda
from edgeconv.methods.base import Method, Plan
from edgeconv.methods.cuda import (
    cudnn,
    im2col,
    implicit,
    kernel_args,
    sliding,
    sliding_arithmetic,
    sliding_bank,
    sliding_packing,
    textbook,
)
from edgeconv.methods.cuda.libcudnn import Algorithm, MathType, Performance
from edgeconv.methods.cuda.sliding_bank import BankShape
from edgeconv.methods.options import BLOCKS, Options

MULTIPROCESSORS, L2_BYTES, RESIDENT = 10, 2**20, 2
"""Of the made-up GPU; `RESIDENT` blocks share a multiprocessor."""
LAUNCH = "edgeconv.hardware.cuda.launch"


class DeviceArray(np.ndarray):
    """A NumPy array that tells its address as CuPy's do."""

    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=self.ctypes.data)


def _array(values: Any) -> DeviceArray:
    return np.array(values).view(DeviceArray)


class PretendCudnn:
    """Ranks one algorithm, which needs some workspace, and runs it without doing anything."""

    workspace = 1000

    def set_stream(self, stream: int) -> None:
        pass

    def rank(self, work: Any) -> tuple[Performance, ...]:
        return (Performance(Algorithm.IMPLICIT_GEMM, MathType.FMA, 0, None, 0, True),)

    def workspace_bytes(self, work: Any, algorithm: Algorithm) -> int:
        return self.workspace

    def forward(self, *words: Any) -> None:
        pass


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let plans be prepared on the made-up GPU."""
    device = SimpleNamespace(
        id=0,
        attributes={"MultiProcessorCount": MULTIPROCESSORS, "L2CacheSize": L2_BYTES},
        compute_capability="90",
    )
    cupy: Any = ModuleType("cupy")
    cupy.asarray = _array
    cupy.empty = lambda shape, dtype: np.zeros(shape, dtype).view(DeviceArray)
    cupy.cuda = SimpleNamespace(
        Device=lambda: device,
        alloc=lambda count: SimpleNamespace(ptr=0, size=count),
        device=SimpleNamespace(get_cublas_handle=lambda: 1),
        driver=SimpleNamespace(occupancyMaxActiveBlocksPerMultiprocessor=lambda *words: RESIDENT),
        get_current_stream=lambda: SimpleNamespace(ptr=0),
        runtime=SimpleNamespace(getDevice=lambda: 0, setDevice=lambda number: None),
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    before = sys.modules.pop(LAUNCH, None)  # it holds the CuPy that it was imported with
    monkeypatch.setattr(cuda, "launch", None, raising=False)
    for module in (sliding, im2col, implicit, textbook, cudnn):
        monkeypatch.setattr(module, "load", lambda variant: SimpleNamespace(kernel=SimpleNamespace(ptr=0)))
    monkeypatch.setattr(cudnn, "_handle", lambda *place: PretendCudnn())
    for name in ("TensorShape", "FilterShape", "Convolution"):
        stub = SimpleNamespace(set_math=lambda math: None)
        monkeypatch.setattr(cudnn, name, lambda *words, stub=stub: stub)
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
        (implicit.Implicit(), Options(math="tf32"), ("float32", "raw", RANDOM, "luma"), PIXELS * (12 + 4), 1),
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


def test_what_has_no_model_of_its_bytes_says_so() -> None:
    plan = sliding.CudaSliding().prepare(case("uint8", "abs", "sharpen", shape=(9, 9)), Options())
    assert (plan.choice["kernel"], plan.moved_bytes, plan.workspace_bytes) == ("direct", None, 0)


# --- workspace and bands ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", BLOCKS)
def test_the_textbook_keeps_its_weights_and_covers_the_output(block: Any) -> None:
    problem = case("uint8", "abs", "sobel", "each", shape=(65, 33))
    plan: Any = textbook.Textbook().prepare(problem, Options(block=block))
    assert plan.workspace_bytes == 2 * 3 * 9 * 4
    blocks = {8: 5 * 9, 16: 3 * 5, 32: 2 * 3}[block]
    assert [launch._shape for launch in plan._launches] == [(blocks, 1, 1, block, block, 1)] * 3


@pytest.mark.parametrize(
    ("dtype", "width", "math", "tables"),
    [
        ("float32", 500, "fma", 0),  # 6,000 bytes a row: a multiple of 16
        ("float32", 500, "tf32", 2),  # one for each way that rows may start
        ("float32", 501, "tf32", 1),
        ("uint8", 500, "tf32", 1),
        ("uint8", 500, "half", 1),
        ("float16", 512, "half", 1),
    ],
)
def test_implicit_keeps_a_table_for_each_way_that_rows_start(dtype: str, width: int, math: Any, tables: int) -> None:
    problem = case(dtype, "raw", shape=(300, width))
    plan = implicit.Implicit().prepare(problem, Options(math=math))
    per_table = {lead: implicit.fragment_table(problem, math, lead).nbytes for lead in (0, 1)} if tables else {}
    expected = 0
    if tables:
        expected = per_table[0] + problem.weights.nbytes
    if tables == 2:  # the padding of one pixel leaves one sample of a chunk of four before the first
        expected += per_table[1] + problem.weights.nbytes
    assert plan.workspace_bytes == expected


@pytest.mark.parametrize(
    ("dtype", "shape", "limit", "tile", "blocks"),
    [
        # a picture of no more than 10 × 8 blocks of 64 threads, a pixel or four each
        ("uint8", (64, 80), 2**29, 64, 80),
        ("uint8", (64, 320), 2**29, 256, 2**19 // (256 * 27)),
        # larger ones: 128 threads of four pixels, as many blocks as registers and half of the L2 allow
        ("uint8", (300, 500), 2**29, 512, min(8 * 10, 2**19 // (512 * 27))),
        ("float32", (300, 500), 2**29, 512, 2**19 // (512 * 27 * 4)),
        ("uint16", (300, 500), 100_000, 512, 100_000 // (512 * 27 * 2)),
    ],
)
def test_im2col_has_as_many_blocks_as_pixels_registers_l2_and_limit_allow(
    dtype: str, shape: tuple[int, int], limit: int, tile: int, blocks: int
) -> None:
    problem = case(dtype, "raw", shape=shape)
    plan: Any = im2col.CudaIm2col().prepare(problem, Options(workspace_limit_bytes=limit))
    assert (plan.choice["tile_pixels"], plan.choice["blocks"]) == (tile, blocks)
    assert plan.workspace_bytes == blocks * tile * 27 * np.dtype(dtype).itemsize <= limit
    assert [launch._shape[0] for _, launch in plan._launches] == [blocks]


@pytest.mark.parametrize("gemm", ["own", "cublas"])
@pytest.mark.parametrize("limit", [500_000, 2**29])
@pytest.mark.parametrize("words", [("uint8", "abs"), ("float32", "raw"), ("float32", "raw", "sobel")], ids=str)
def test_bands_cover_every_pixel_once_within_the_limit(words: tuple[str, ...], limit: int, gemm: Any) -> None:
    problem = case(*words)
    plan: Any = im2col.banded_plan(problem, Options(gemm=gemm, workspace_limit_bytes=limit))
    covered = [(band.first, band.first + band.count) for band in plan._bands]
    assert covered[0][0] == 0
    assert covered[-1][1] == PIXELS
    assert all(before[1] == after[0] for before, after in pairwise(covered))
    leading = plan.choice["band_pixels"]
    assert max(stop - first for first, stop in covered) <= leading
    size = 1 if words[0] == "uint8" and gemm == "own" else 4
    responses = {"own": 0, "cublas": 6 if "sobel" in words else 3 if words[1] == "abs" else 0}[gemm]
    assert plan.workspace_bytes == leading * (27 * size + 4 * responses) <= limit
    assert plan.launches == len(covered) * (3 if responses else 2)


def test_no_workspace_below_one_block_and_just_enough_for_one() -> None:
    problem = case("uint8", "abs")
    needed = {"own": 512 * 27, "cublas": 1024 * (27 + 3) * 4}
    for gemm, count in needed.items():
        options: Any = {"gemm": gemm}
        plan = im2col.CudaIm2col().prepare(problem, Options(workspace_limit_bytes=count, **options))
        assert plan.workspace_bytes == count
        with pytest.raises(MemoryLimitError, match=f"needs {count:,} bytes"):
            im2col.CudaIm2col().prepare(problem, Options(workspace_limit_bytes=count - 1, **options))


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("limit", [60_000, 300_000, 2**29])
def test_cudnns_bands_are_of_one_height_and_cover_every_row(limit: int, stride: int) -> None:
    problem = case("uint8", "abs", stride=stride)
    plan: Any = cudnn.CuDNN().prepare(problem, Options(workspace_limit_bytes=limit))
    rows = plan.choice["band_rows"]
    height, width = problem.output_shape[:2]
    firsts = [first for first, _ in plan._bands]
    assert sorted({row for first in firsts for row in range(first, first + rows)}) == list(range(height))
    assert len(firsts) == -(-height // rows) == plan.choice["bands"]
    held = ((rows - 1) * stride + 3) * 502 * 3 * 4 + rows * width * 3 * 4
    weights = 3 * 27 * 4
    assert plan.workspace_bytes == held + 1000 + weights
    assert plan.moved_bytes == problem.input_bytes + problem.output_bytes + 2 * held * len(firsts)
    if limit < 2**29:
        assert held <= max(limit // 2, 3 * 502 * 12 + width * 12)


# --- tiles -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("math", ["fma", "tf32", "half"])
@pytest.mark.parametrize("stride", [1, 2, 3, 7])
@pytest.mark.parametrize("filter", [RANDOM, "sobel", "kirsch"])
def test_implicit_takes_the_largest_tiles_that_fill_the_gpu(filter: str, stride: int, math: Any) -> None:
    """A larger picture never gets smaller tiles; the smallest picture gets the smallest."""
    sides = (1, 8, 64, 256, 1024, 8192)
    problems = [case("float32", "raw", filter, stride=stride, shape=(side * stride, side * stride)) for side in sides]
    shapes = [implicit.shape_of(problem, math, 132) for problem in problems]
    areas = [shape.tile_rows * shape.tile_columns for shape in shapes]
    assert areas == sorted(areas)
    assert shapes[0].rows_per_warp == 1
    if stride < 3:
        assert areas[-1] > areas[0]
    for problem, shape in zip(problems, shapes, strict=True):
        height, width = problem.output_shape[:2]
        assert shape.tiles(problem) == -(-height // shape.tile_rows) * -(-width // shape.tile_columns)
        larger = shape != shapes[0]
        assert not larger or shape.tiles(problem) >= shape.blocks_per_multiprocessor * 132


def test_a_long_stride_is_cut_to_the_picture() -> None:
    problem = make_problem((5, 7, 3), "uint8", WeightSet(np.ones((1, 3, 1, 3, 3), np.float32), 3), stride=2**40)
    height, width, out_height, out_width, padding, stride = kernel_args.strided_geometry(problem).tolist()
    assert (height, width, out_height, out_width, padding) == (5, 7, 1, 1, 1)
    assert 7 <= stride <= 9


# --- wide sums -------------------------------------------------------------------------------------------------------

WIDEST = 2**24
"""The largest whole number up to which float32 leaves none out."""


def of_sum(total: int, dtype: str, directions: int = 1) -> Problem:
    """A problem whose largest weights add up to `total` times white, or nearly: one more weight would be beyond."""
    weights = np.zeros((directions, 3, 1, 3, 3), np.float32)
    weights[..., 1, 1] = total
    combine: Any = "single" if directions == 1 else "magnitude"
    return make_problem((1200, 1600, 3), dtype, WeightSet(weights, 3, combine), output_mode="abs")


@pytest.mark.parametrize(("dtype", "white"), [("uint8", 255), ("uint16", 65535)])
def test_sums_are_wide_just_beyond_what_float32_holds(dtype: str, white: int) -> None:
    most = WIDEST // white
    methods = (sliding.CudaSliding(), im2col.CudaIm2col(), implicit.Implicit(), textbook.Textbook())
    for total, wide in ((most, False), (most + 1, True)):
        problem = of_sum(total, dtype)
        defines = dict(kernel_args.rule_defines(problem))
        assert ("WIDE_SUMS" in defines) == wide
        assert "EXACT_ROOT" not in defines
        for method in methods:
            assert method.prepare(problem, Options()).arithmetic is (FLOAT64 if wide else FLOAT32), type(method)
        assert sliding_arithmetic.has_strips(problem)
        assert sliding_arithmetic.arithmetic_for(problem) == ("fma64" if wide else "fma")
        assert implicit.shape_of(problem, "fma", 1).columns_per_thread == (1 if wide else 4)
        assert im2col.banded_shape(problem).pixels_per_thread == (1 if wide else 4)
    assert "WIDE_SUMS" not in dict(kernel_args.rule_defines(of_sum(10**9, "float32")))


@pytest.mark.parametrize(
    ("dtype", "directions", "exact"),
    [("uint16", 2, True), ("uint16", 1, False), ("uint8", 2, False), ("float32", 2, False)],
)
def test_magnitudes_of_16_bits_have_an_exact_root(dtype: str, directions: int, exact: bool) -> None:
    assert ("EXACT_ROOT" in dict(kernel_args.rule_defines(of_sum(1, dtype, directions)))) == exact


@pytest.mark.parametrize(
    ("words", "options", "arithmetic"),
    [
        (("uint8", "abs", RANDOM_WHOLE), Options(), WHOLE),
        (("uint8", "abs", "sobel"), Options(), FLOAT32),
        (("uint8", "abs"), Options(), TWOFOLD_HALF),
        (("uint8", "raw"), Options(), FLOAT32),
        (("uint8", "abs", "kirsch", "each"), Options(), WHOLE),
        (("uint8", "abs", "kirsch", "mix"), Options(), FLOAT32),
        (("float16", "raw"), Options(), TWOFOLD_HALF),
        (("float32", "raw"), Options(), FLOAT32),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else None,
)
def test_strips_say_what_they_sum_in(words: tuple[str, ...], options: Options, arithmetic: Any) -> None:
    assert sliding.CudaSliding().prepare(case(*words, shape=(1200, 1600)), options).arithmetic is arithmetic


@pytest.mark.parametrize(
    ("filter", "channels", "dtype", "names"),
    [
        ("kirsch", "mix", "uint8", ["channel sum", "equal outputs", "ring of three"]),
        ("sobel", "each", "uint16", ["gradient"]),
        ("sharpen", "each", "float32", ["plain sums"]),
    ],
)
def test_a_plan_names_its_forms_by_the_lines_of_the_table(
    filter: str, channels: str, dtype: str, names: list[str]
) -> None:
    for shape in ((600, 800), (9, 9)):
        choice = sliding.CudaSliding().prepare(case(dtype, "abs", filter, channels, shape=shape), Options()).choice
        assert choice["forms"].split(", ") == (names if choice["kernel"] == "strips" else ["plain sums"])
    known = {entry.name for entry in forms.FORMS}
    assert [name for name in names if name not in known] == [name for name in names if name == "plain sums"]


def test_tensor_cores_say_what_they_round() -> None:
    for math, arithmetic in (("tf32", TF32), ("half", HALF)):
        options: Any = {"math": math}
        assert implicit.Implicit().prepare(case("float32", "raw"), Options(**options)).arithmetic is arithmetic
    vendor = im2col.CudaIm2col().prepare(case("float32", "raw"), Options(gemm="cublas")).arithmetic
    assert vendor.multiplies_zeros
    assert vendor.unit == FLOAT32.unit


# --- packing ---------------------------------------------------------------------------------------------------------


def window_of(rng: np.random.Generator, pixels: int) -> NDArray[np.int64]:
    """Samples under the filter: three rows of so many pixels."""
    return rng.integers(0, 256, (3, pixels, 3)).astype(np.int64)


def response(problem: Problem, window: NDArray[np.int64], pixel: int, channel: int, direction: int) -> float:
    """One response, term by term."""
    dense = problem.dense_weights().astype(np.float64)
    under = window[:, pixel : pixel + 3].transpose(2, 0, 1)
    return float((dense[direction, channel] * under).sum())


@pytest.mark.parametrize("filter", [RANDOM_WHOLE, "sobel", "kirsch"])
def test_bytes_of_four_products_are_the_filter_channel_by_channel(filter: str) -> None:
    problem = case("uint8", "abs", filter, "each")
    packed = (
        sliding_packing.dp4a_weights(problem).view(np.int8).reshape(problem.directions, 3, 3, 2, 4).astype(np.int64)
    )
    window = window_of(np.random.default_rng(1), 4)
    for direction, channel, shift in np.ndindex(problem.directions, 3, 2):
        found = sum(int(packed[direction, channel, u, shift] @ window[u, :, channel]) for u in range(3))
        assert found == response(problem, window, shift, channel, direction)


@pytest.mark.parametrize("channels", ["mix", "luma"])
def test_bytes_of_four_products_are_the_filter_over_mixed_channels_from_any_byte(channels: str) -> None:
    """Nine samples that begin at any of the four bytes of a word."""
    problem = case("uint8", "abs", RANDOM_WHOLE, channels)
    out = problem.output_channels
    packed = (
        sliding_packing.dp4a_weights(problem).view(np.int8).reshape(problem.directions, 4, out, 3, 12).astype(np.int64)
    )
    rng = np.random.default_rng(2)
    window = window_of(rng, 3)
    for phase, channel in np.ndindex(4, out):
        words = rng.integers(0, 256, (3, 12))  # what lies before and after must not count
        words[:, phase : phase + 9] = window.reshape(3, 9)
        assert int((packed[0, phase, channel] * words).sum()) == response(problem, window, 0, channel, 0)


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("padding", [0, 1, 2, 3, 5])
@pytest.mark.parametrize(
    ("dtype", "filter", "channels"),
    [
        ("uint8", RANDOM_WHOLE, "mix"),
        ("uint8", "sobel", "mix"),
        ("uint8", "scharr", "each"),
        ("uint8", RANDOM, "mix"),
        ("uint8", RANDOM, "each"),
        ("float16", RANDOM, "mix"),
        ("float16", "sobel", "each"),
    ],
)
def test_the_matrices_of_the_tensor_cores_are_the_filter_over_a_group(
    dtype: str, filter: str, channels: str, padding: int, aligned: bool
) -> None:
    """A lane holds word w of row 4·w + lane % 4 of column lane // 4; together they are 16 samples × 8 columns.

    Where bytes become halves, a lane holds the rows of its four bytes, two of them in each word. Rows that do not start
    on 16 bytes are shifted, so that every group starts on a word whatever the padding.
    """
    problem = case(dtype, "abs", filter, channels, padding=padding)
    whole = sliding_arithmetic.has_int8_weights(problem)
    size, parts, part = problem.dtype.itemsize, 1 if whole else 2, np.dtype(np.int8 if whole else np.float16)
    directions = problem.directions
    products = 3 if directions == 2 else 2
    per_word = 4 // part.itemsize
    packed = sliding_packing.mma_weights(problem, aligned)
    scale, limit = packed[-2:].view(np.float32).astype(np.float64)
    assert limit * scale == 255
    scale *= 1 if whole or dtype == "float16" else 2.0**-24  # of a byte that is taken as a half
    held = packed[:-2].view(part).astype(np.float64).reshape(3, products, parts, 16 // per_word // 4, 32, per_word)
    held *= scale
    matrices = np.zeros((3, products, 16, 8))
    for word, lane, place in np.ndindex(*held.shape[3:]):
        row = (4 * word + lane % 4) * per_word + place
        if size < part.itemsize:
            row = lane % 4 * 4 + word * per_word + place
        matrices[:, :, row, lane // 4] = held[:, :, :, word, lane, place].sum(axis=2)  # both halves of a weight

    rng = np.random.default_rng(3)
    window = window_of(rng, 6)
    samples = 12 // products
    seen = 0
    for number in range(products):
        first_pixel = number * samples // 3
        phase = (first_pixel - (padding if aligned else 0)) * 3 * size % 4 // size
        under = rng.integers(0, 256, (3, 16))
        row = window[:, first_pixel:].reshape(3, -1)[:, : 16 - phase]
        under[:, phase : phase + row.shape[1]] = row
        sums = np.einsum("uk,ukn->n", under.astype(np.float64), matrices[:, number])
        for column in range(samples * directions):
            pixel, channel = divmod(number * samples + column // directions, 3)
            expected = response(problem, window, pixel, channel, column % directions)
            allowed = 0 if whole else 2.0**-21 * 27 * 255
            assert abs(sums[column] - expected) <= allowed, (number, column)
            seen += 1
        assert not matrices[:, number, :, samples * directions :].any()
    assert seen == 12 * directions


def test_two_halves_hold_what_float32_shows() -> None:
    weights = np.random.default_rng(4).uniform(-1, 1, (1, 3, 3, 3, 3)).astype(np.float32)
    high, low = sliding_arithmetic.halves(weights)
    assert (high == weights.astype(np.float16)).all()
    lost = np.abs(high.astype(np.float64) + low.astype(np.float64) - weights)
    assert (lost <= 2.0**-21).all()


@pytest.mark.parametrize(
    ("weight", "kept"),
    [
        (1.0, True),
        (1 + 2.0**-20, True),  # 11 bits and 11 more
        (60_000.5, True),
        (1e-7, False),  # below the least number that a half has 22 bits for
        (70_000.0, False),  # above the largest half
    ],
)
@pytest.mark.parametrize("channel", [0, 2])
def test_tensor_cores_take_weights_that_two_halves_hold_in_every_channel(
    channel: int, weight: float, kept: bool
) -> None:
    """By each output's own largest weight: a channel of small ones does not hide behind the others."""
    weights = np.ones((1, 3, 3, 3, 3), np.float32)
    weights[0, channel] = weight
    problem = make_problem((300, 500, 3), "float16", WeightSet(weights, 1), output_mode="raw")
    assert sliding_arithmetic.has_half_weights(problem) == kept
    assert sliding_arithmetic.arithmetic_for(problem) == ("mma" if kept else "fma")


@pytest.mark.parametrize(
    ("factor", "expected"),
    [
        (1.0, "mma"),
        (2.0**-10, "mma"),  # brought to where halves have 22 bits
        (2.0**-45, "fma"),  # squares of sums could vanish
        (8.0, "fma"),  # sums so large that tensor cores could be a sixteenth of a level off
    ],
)
def test_tensor_cores_take_bytes_where_their_bound_is_a_small_part_of_a_level(factor: float, expected: str) -> None:
    weights = np.random.default_rng(5).uniform(-1, 1, (1, 3, 3, 3, 3)).astype(np.float32) * np.float32(factor)
    problem = make_problem((300, 500, 3), "uint8", WeightSet(weights, 1), output_mode="abs")
    assert sliding_arithmetic.arithmetic_for(problem) == expected
    small = make_problem((30, 50, 3), "uint8", WeightSet(weights, 1), output_mode="abs")
    assert sliding_arithmetic.is_small(small) == (expected == "fma"), "a tile stores other bytes than the whole"


@pytest.mark.parametrize(
    ("channels", "filters", "side", "direct"),
    [
        (3, 4, 512, True),
        (3, 6, 512, False),
        (3, 8, 256, True),
        (3, 16, 128, True),
        (3, 16, 256, False),
        (3, 64, 128, False),
        (1, 8, 128, True),
        (1, 8, 256, False),
        (1, 32, 128, False),
    ],
)
def test_the_more_filters_the_smaller_are_the_pictures_of_one_thread_per_pixel(
    channels: int, filters: int, side: int, direct: bool
) -> None:
    weights = np.ones((1, filters, channels, 3, 3), np.float32)
    problem = make_problem((side, side, channels), "float32", WeightSet(weights, 1))
    assert sliding_arithmetic.is_small(problem) == direct


@pytest.mark.parametrize(
    ("channels", "filters", "shape", "passes"),
    [
        (3, 9, BankShape(3, 2, 6, 6, lanes=4, groups=1, weights_per_read=4), 1),
        (
            3,
            20,
            BankShape(3, 2, 6, 6, lanes=2, groups=3, weights_per_read=4),
            1,
        ),  # 24 outputs, where four lanes would compute 32
        (3, 64, BankShape(3, 2, 6, 6, lanes=8, groups=2, weights_per_read=4), 1),
        (
            3,
            130,
            BankShape(3, 2, 6, 4, lanes=2, groups=9, weights_per_read=4),
            2,
        ),  # of 72 outputs each, where four lanes would compute 80
        (1, 64, BankShape(2, 2, 10, 1, lanes=8, groups=2, weights_per_read=4), 1),
    ],
)
def test_lanes_share_the_outputs_of_a_bank(channels: int, filters: int, shape: BankShape, passes: int) -> None:
    weights = np.random.default_rng(1).uniform(-1, 1, (1, filters, channels, 3, 3)).astype(np.float32)
    problem = make_problem((512, 512, channels), "float32", WeightSet(weights, 1))
    found = sliding_bank.shape_for(problem)
    assert (found, sliding_bank.passes_of(problem, found)) == (shape, passes)
    packed = sliding_bank.bank_weights(problem, found)
    assert packed.shape == (passes, found.groups, 3, 3, channels, found.lanes, 1, 4)
    in_order = packed.transpose(0, 1, 5, 7, 4, 2, 3, 6).reshape(-1, channels, 3, 3)
    assert np.array_equal(in_order[:filters], weights[0])
    assert not in_order[filters:].any()


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_patches_and_weights_of_every_bank_fit_the_shared_memory_that_needs_no_asking(
    channels: int, directions: int, stride: int, dtype: str
) -> None:
    for filters in range(1, 257):
        weights = np.ones((directions, filters, channels, 3, 3), dtype)
        problem = make_problem((512, 512, channels), dtype, WeightSet(weights, 1), stride=stride)
        shape = sliding_bank.shape_for(problem)
        columns = (shape.tile - 1) * stride + KERNEL_SIZE
        patches = 2 * columns * channels * 4 * problem.dtype.itemsize  # a column has four rows
        weights_of_a_pass = shape.groups * shape.lanes * 9 * channels * 16
        assert patches + weights_of_a_pass == sliding_bank.shared_bytes(problem, shape) <= 48 * 1024
        assert sliding_bank.passes_of(problem, shape) * shape.outputs(directions) >= filters


def test_filters_lie_in_memory_as_cudnn_takes_them() -> None:
    """(responses, rows, columns, channels), zeros in channels that only fill up."""
    problem = case("uint8", "abs", RANDOM, "each")
    plan = object.__new__(cudnn.CudnnPlan)
    plan.problem, plan._responses, plan._channels, plan._sample = problem, 4, 4, np.dtype(np.float32)
    stored = plan._filter_memory()
    assert stored.shape == (4, 3, 3, 4)
    for output, inner, u, v in np.ndindex(4, 4, 3, 3):
        expected = problem.weights[0, output, 0, u, v] if output == inner < 3 else 0
        assert stored[output, u, v, inner] == expected


def test_every_plan_is_of_its_problem() -> None:
    problem = case("float32", "raw")
    for method in (sliding.CudaSliding(), im2col.CudaIm2col(), implicit.Implicit(), textbook.Textbook(), cudnn.CuDNN()):
        plan: Plan = method.prepare(problem, Options())
        assert plan.problem is problem


# --- the ladders -----------------------------------------------------------------------------------------------------


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the ladders' steps have asked to be compiled, and how the products' kernels were called."""
    calls: list[Any] = []

    def load(variant: Any) -> Any:
        class Kernel:
            kernel = SimpleNamespace(ptr=0)

            def __call__(self, *words: Any) -> None:
                calls.append(words)

        calls.append(variant)
        return Kernel()

    for module in (conv_kernels, gemm_kernels):
        monkeypatch.setattr(module, "load", load)
    return calls


def geometry_of(plan: Any) -> list[int]:
    """Sides of picture and output, and rows of a block or strip."""
    return [int(value) for value in plan._launch._by_value[0]]


@pytest.mark.parametrize(
    ("name", "stride", "shape", "block", "whole", "blocks", "rows"),
    [
        # one thread per pixel, 16 × 16 of them: 32 × 19 blocks of 500 × 300 pixels
        ("pixel", 1, (300, 500), (16, 16), 0, 32 * 19, 16),
        ("constant", 2, (300, 500), (16, 16), 0, 16 * 10, 16),
        # one warp per row: 16 × 38, and what a tile of 32 × 8 pixels needs at stride 3 still fits
        ("shared", 1, (300, 500), (32, 8), 0, 16 * 38, 8),
        ("shared", 3, (300, 500), (32, 8), 0, 6 * 13, 8),
        # strips of 16 rows: a pixel or four per thread, 128 threads
        ("rolling", 1, (300, 500), (128, 1), 0, 4 * 19, 16),
        ("vector", 1, (300, 500), (128, 1), 1, 1 * 19, 16),
        ("vector", 1, (300, 501), (128, 1), 0, 1 * 19, 16),
        ("vector", 2, (300, 500), (128, 1), 0, 1 * 10, 16),  # 250 pixels are 3,000 bytes: no multiple of 16
        ("vector", 2, (300, 520), (128, 1), 1, 1 * 10, 16),
        # 10 multiprocessors with 2 blocks each: 20 strips at once, in one wave
        ("waves", 1, (300, 500), (128, 1), 1, 20, 15),
        ("waves", 1, (1000, 520), (128, 1), 1, 2 * 59, 17),  # 10 strips at once, two across: six waves of 16.7 rows
    ],
)
def test_a_step_of_the_ladder_covers_the_output(
    loaded: list[Any],
    name: str,
    stride: int,
    shape: tuple[int, int],
    block: tuple[int, int],
    whole: int,
    blocks: int,
    rows: int,
) -> None:
    problem = case("float32", "raw", stride=stride, shape=shape)
    plan: Any = conv_kernels.prepare(name, problem)
    (variant,) = loaded
    assert variant.source == "bench/ladders/conv_kernels.cu"
    assert variant.entry == ("vector" if name == "waves" else name)
    defines = {"STRIDE": stride, "ACROSS": block[0], "DOWN": block[1], "WHOLE": whole}
    assert dict(variant.defines) == defines | ({"HAS_TILE": 1} if name == "shared" else {})
    height, width = problem.output_shape[:2]
    assert geometry_of(plan) == [*shape, height, width, rows]
    assert plan._launch._shape == (blocks, 1, 1, *block, 1)
    shown = "×".join(map(str, block))
    assert plan.choice == {"step": name, "block": shown, "rows_per_block": rows}
    assert plan.launches == 1
    held = 3 * 27 * 4 if name == "pixel" else 0
    assert plan.workspace_bytes == held
    pixels = 4 if name in ("vector", "waves") else 1
    across = -(-width // (block[0] * pixels))
    assert blocks == across * -(-height // rows)


@pytest.mark.parametrize("stride", conv_kernels.STRIDES)
def test_every_block_of_every_step_can_be_asked_for(loaded: list[Any], stride: int) -> None:
    """And what it asks to be compiled is listed, so that the compiler's check knows it."""
    listed = set(conv_kernels.variants())
    for entry in conv_kernels.STEPS:
        if entry.name in ("textbook", "sliding"):
            continue
        for block in entry.blocks_for(stride):
            for width in (500, 501):
                plan: Any = conv_kernels.prepare(
                    entry.name, case("float32", "raw", stride=stride, shape=(9, width)), block
                )
                assert plan._launch._shape[3:5] == (block.across, block.down)
                assert loaded.pop() in listed


def test_shared_memory_of_a_tile_by_hand() -> None:
    """(8 − 1) · s + 3 rows of (32 − 1) · s + 3 pixels of 12 bytes; a block has 48 KiB."""
    shared = conv_kernels.step("shared")
    block = conv_kernels.ConvBlock(32, 8)
    assert [shared.shared_bytes(block, stride) for stride in (1, 2, 3)] == [10 * 34 * 12, 17 * 65 * 12, 24 * 96 * 12]
    assert [str(block) for block in shared.blocks_for(1)] == ["32×8", "16×16", "8×8", "32×32"]
    assert [str(block) for block in shared.blocks_for(2)] == ["32×8", "16×16", "8×8"]  # 65 · 65 · 12 bytes are too many
    assert conv_kernels.step("pixel").shared_bytes(block, 1) == 0


def test_the_ends_of_the_ladder_are_the_methods() -> None:
    problem = case("float32", "raw", shape=(65, 33))
    for block, shape in (
        (None, (3 * 5, 16)),
        (conv_kernels.ConvBlock(8, 8), (5 * 9, 8)),
        (conv_kernels.ConvBlock(32, 32), (6, 32)),
    ):
        plan: Any = conv_kernels.prepare("textbook", problem, block)
        assert [(launch._shape[0], launch._shape[3]) for launch in plan._launches] == [shape] * 3
    assert type(conv_kernels.prepare("sliding", problem)) is type(sliding.CudaSliding().prepare(problem, Options()))


@pytest.mark.parametrize(
    ("height", "weights_per_read", "rows"),
    [
        (4096, 256, 16),  # one wave of 16 rows
        (4096, 132, 16),  # 31.03 rows in one wave: two of 15.5
        (4096, 100, 14),  # 2.56 waves of 16 rows: three of 13.65
        (100, 1000, 1),
        (640, 1, 16),  # one strip at a time: 40 waves
    ],
)
def test_rows_of_whole_waves_by_hand(height: int, weights_per_read: int, rows: int) -> None:
    assert conv_kernels.rows_of_whole_waves(height, weights_per_read) == rows


@pytest.mark.parametrize(
    ("name", "dtype", "sizes", "block", "grid", "threads", "defines"),
    [
        ("plain", "float32", (100, 200, 30), None, (13, 7), (16, 16), {"REAL": "float", "TILE": 16}),
        ("shared", "float64", (100, 200, 30), None, (7, 4), (32, 32), {"REAL": "double", "TILE": 32}),
        (
            "registers",
            "float32",
            (128, 256, 32),
            None,
            (2, 2),
            (128, 1),
            {"TILE_M": 64, "TILE_N": 128, "TILE_K": 16, "THREAD_M": 8, "THREAD_N": 8, "WHOLE": 1, "REAL": "float"}
            | {"BLOCKS_PER_MULTIPROCESSOR": 3},
        ),
        (
            "double_buffer",
            "float64",
            (128, 65, 16),
            2,
            (2, 2),
            (128, 1),
            {"TILE_M": 64, "TILE_N": 64, "TILE_K": 8, "THREAD_M": 8, "THREAD_N": 4, "WHOLE": 0, "REAL": "double"}
            | {"BLOCKS_PER_MULTIPROCESSOR": 3},
        ),
    ],
)
def test_a_product_covers_c_once(
    loaded: list[Any],
    name: str,
    dtype: str,
    sizes: tuple[int, int, int],
    block: int | None,
    grid: tuple[int, int],
    threads: tuple[int, int],
    defines: dict[str, Any],
) -> None:
    """m, n, k are the rows of C, its columns and what is summed; the grid is across and down."""
    chosen = None if block is None else gemm_kernels.step(name).blocks[dtype][block]
    gemm_kernels.prepare(name, dtype, *sizes, chosen)("a", "b", "c")
    variant, (asked_grid, asked_threads, arguments) = loaded
    assert (variant.source, variant.entry, dict(variant.defines)) == ("bench/ladders/gemm_kernels.cu", name, defines)
    assert (asked_grid, asked_threads) == (grid, threads)
    assert arguments == ("a", "b", "c", *sizes)


@pytest.mark.parametrize("sizes", [(63, 128, 16), (64, 127, 16), (64, 128, 15), (64, 128, 16)])
def test_only_sizes_that_are_multiples_of_a_tile_take_whole_tiles(loaded: list[Any], sizes: tuple[int, ...]) -> None:
    gemm_kernels.prepare("registers", "float32", *sizes)  # type: ignore[arg-type]
    assert dict(loaded[0].defines)["WHOLE"] == int(sizes == (64, 128, 16))


def test_every_product_that_can_be_asked_for_is_listed(loaded: list[Any]) -> None:
    listed = set(gemm_kernels.variants())
    for entry in gemm_kernels.STEPS:
        for dtype, blocks in entry.blocks.items():
            for block in blocks:
                for side in (block.rows * block.columns * block.depth, 7):
                    gemm_kernels.prepare(entry.name, dtype, side, side, side, block)
                    assert loaded.pop() in listed
    with pytest.raises(UsageError, match="float16"):
        gemm_kernels.prepare("plain", "float16", 1, 1, 1)


def test_a_block_says_what_it_is() -> None:
    assert str(gemm_kernels.GemmBlock(16, 16, 16)) == "16×16×16"
    assert str(gemm_kernels.GemmBlock(64, 128, 16, (8, 4))) == "64×128×16, 8×4 per thread"
    assert gemm_kernels.GemmBlock(64, 128, 16, (8, 4)).threads == (256, 1)
    assert gemm_kernels.GemmBlock(8, 16, 4).threads == (16, 8)


@pytest.mark.parametrize("method", [implicit.Implicit(), cudnn.CuDNN()], ids=["implicit", "cudnn"])
def test_what_does_not_compute_in_float64_says_so_and_what_does(method: Any) -> None:
    with pytest.raises(UnavailableError, match=r"float64.*Use --method sliding"):
        method.prepare(case("float64", "raw"), Options())
