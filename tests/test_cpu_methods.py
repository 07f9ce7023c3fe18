"""Every CPU method against the oracle: any two things in which problems differ, whole and cut up; then what is special.

Problems that nobody listed are drawn in fuzz/test_fuzz.py, threads and forks in test_crew.py.
"""

from __future__ import annotations

import ctypes
import dataclasses
import mmap
import re
import sys
from itertools import islice
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from cpu_problems import FILTERS, PLAIN, RANDOM, Case, modes_of
from problems import assert_right, image_of, random_bank, random_image, run_on_host
from selection import drawn_pairs

import edgeconv
from edgeconv.core.chains import chain_problem, make_chain
from edgeconv.core.choices import BORDERS, CHANNELS
from edgeconv.core.filters import WeightSet
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.lowering import lower
from edgeconv.core.problem import INPUT_DTYPES, PictureProblem, Problem, make_problem
from edgeconv.errors import UsageError
from edgeconv.hardware.cpu import compiler, jit
from edgeconv.hardware.cpu.processor import WORK, Processor
from edgeconv.methods import method_names, require
from edgeconv.methods.base import Plan
from edgeconv.methods.cpu import native, rows
from edgeconv.methods.cpu.layout import Argument, make_layout
from edgeconv.methods.options import Options

SLIDING = require("sliding", "cpu")
ENGINE = pytest.mark.parametrize("method", ["sliding", "im2col"])
EACH = pytest.mark.parametrize("method", method_names("cpu"))

# --- any two of what a problem and a plan can differ in ------------------------------------------------------------

OTHER_PROCESSORS = [
    Processor("x86_64-unknown-linux-gnu", "x86-64-v2", "", 16, has_half=False),
    Processor("x86_64-unknown-linux-gnu", "x86-64-v3", "", 32, has_half=True),
    Processor("x86_64-unknown-linux-gnu", "x86-64-v4", "", 64, has_half=True),
    Processor("aarch64-unknown-linux-gnu", "neoverse-n1", "", 16, has_half=True),
    Processor("arm64-apple-darwin", "apple-m1", "", 16, has_half=True),
]
SMALLER = [
    processor
    for processor in OTHER_PROCESSORS
    if processor.triple == jit.processor().triple and processor.vector_bytes < jit.processor().vector_bytes
]
"""Their code runs here too: blocks end elsewhere with other registers, and shuffles are others."""
WAYS = {
    **{method: (method, jit.processor()) for method in ("sliding", "im2col", "opencv")},
    **{f"sliding for {processor.name}": ("sliding", processor) for processor in SMALLER},
}
"""A method, and the processor that code is made for."""
PROPERTIES = {
    "way": tuple(WAYS),
    "filter": FILTERS,
    "channels": CHANNELS,
    "dtype": INPUT_DTYPES,
    "output_mode": ("abs", "clip", "raw"),
    "stride": (1, 2, 3, 4, 7),
    "past_caches": ("nothing", "picture", "output"),
    "cut_up": (False, True),
    "samples": ("any", "black and white", "not finite"),
}
PLACES = drawn_pairs(
    [
        ((1, 1), (1, 7), (7, 1), (2, 2), (5, 4), (13, 45), (31, 33), (37, 131)),
        (0, 1, 2, 5),
        BORDERS,
        (0, 1, 31),
    ],
    lambda shape, padding, *_: min(shape) + 2 * padding >= KERNEL_SIZE,
)
"""Shape, padding, border, and how many samples past an aligned address the arrays start."""
PARTS = 12
"""Of the places, of which each row takes one."""
LONG = (9, 700), 21, "reflect101", 0
"""Several tiles and strips, where what lies outside is longer than a block."""
MOST_OUTPUTS_OF_LONG = 12


def is_a_problem(way: str, filter: tuple[str, int, int], channels: str, dtype: str, mode: str, *rest: Any) -> bool:
    """Whether the way takes it."""
    return (
        mode in modes_of(dtype)
        and (filter[2] == 3 or channels == "mix")
        and (dtype != "float16" or WAYS[way][1].has_half)
        and (way != "im2col" or filter in PLAIN)  # several directions take long to compile
        and (rest[-1] != "not finite" or dtype.startswith("float"))
    )


CASES = drawn_pairs(list(PROPERTIES.values()), is_a_problem)


def samples_of(problem: Problem, samples: str) -> np.ndarray:
    """Black and white alone drive every sum to its limits."""
    image = image_of(problem)
    if samples == "black and white":
        return np.where(image > image.mean(), image.max(), image.min()).astype(problem.dtype)
    if samples == "not finite":
        image[problem.height // 2, problem.width // 2, -1] = (np.nan, np.inf, -np.inf)[problem.width % 3]
    return image


def made_so(
    way: str, problem: Problem, threads: int | None = None, past_caches: str = "nothing", cut_up: bool = False
) -> Plan:
    """A plan for a picture, or an output too, that the caches do not hold; cut up, in many small tiles and bands."""
    limit = {"nothing": 2**40, "picture": problem.output_bytes, "output": 0}[past_caches]
    method, processor = WAYS[way]
    here = dataclasses.replace(processor, triple=jit.processor().triple)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "STREAMING_BYTES", limit)
        if cut_up:
            patch.setattr("edgeconv.methods.cpu.sliding.TILE_PIXELS", 300)
            patch.setattr("edgeconv.methods.cpu.sliding.IM2COL_TILE_PIXELS", 300)
            patch.setattr("edgeconv.methods.opencv.BAND_BYTES", 2000)
        patch.setattr(jit, "processor", lambda: here)
        return require(method, "cpu").prepare(problem, Options(threads=threads))


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: ", ".join(map(str, CASES[number])))
def test_every_pair(number: int) -> None:
    """Right to the bound in some of the places, and to the bit the same by one thread and by three."""
    way, (name, filters, in_channels), channels, dtype, mode, stride, past_caches, cut_up, samples = CASES[number]
    case = Case(name, channels, dtype, mode, stride, filters=filters, in_channels=in_channels)
    places = [*islice(PLACES, number % PARTS, None, PARTS), *[LONG] * (filters <= MOST_OUTPUTS_OF_LONG)]
    for shape, padding, border, offset in places:
        problem = dataclasses.replace(case, shape=shape, padding=padding, border=border).problem()
        image, outputs = samples_of(problem, samples), set()
        for threads in (1, 3):
            ran = run_on_host(made_so(way, problem, threads, past_caches, cut_up), image, problem, offset)
            assert ran.check.passed, f"{shape} {padding} {border}: worst {ran.check.worst}"
            outputs.add(ran.out.tobytes())
        assert len(outputs) == 1, f"{shape} {padding} {border}: other threads give other bytes"


@pytest.mark.parametrize("method", ["sliding", "im2col", "opencv"])
@pytest.mark.parametrize(
    "case",
    [
        Case("sobel", "each", "uint16", "raw", shape=(75, 1500), padding=0),
        Case(RANDOM, "mix", "float32", "raw", shape=(75, 750), stride=3, border="reflect"),
        Case(RANDOM, "mix", "float16", "abs", shape=(75, 750), padding=4, border="replicate", filters=4),
    ],
    ids=str,
)
def test_tiles_bands_and_stores_past_the_caches_change_no_bit(method: str, case: Case) -> None:
    problem = case.problem()
    image = image_of(problem)
    whole = run_on_host(made_so(method, problem, 1), image, problem)
    assert_right(whole)
    for past_caches in PROPERTIES["past_caches"]:
        cut = run_on_host(made_so(method, problem, 5, past_caches, cut_up=True), image, problem)
        assert cut.out.tobytes() == whole.out.tobytes(), f"past the caches: {past_caches}"


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("name", ["laplacian8", "sobel", RANDOM])
@pytest.mark.parametrize("past_caches", ["nothing", "output"])
def test_two_rows_together_change_no_bit(dtype: str, name: str, past_caches: str) -> None:
    """Of one row, of an odd number, of strips that end on one; shorter than a block, and longer."""
    for height, width in ((1, 200), (2, 64), (3, 5), (9, 192), (65, 320)):
        problem = Case(name, "each", dtype, "raw", shape=(height, width), in_channels=1).problem()
        image = image_of(problem)
        found = set()
        for together in (1, 2):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("edgeconv.methods.cpu.sliding.ROWS_TOGETHER", together)
                for threads in (1, 4):
                    plan = made_so("sliding", problem, threads, past_caches)
                    ran = run_on_host(plan, image, problem)
                    assert_right(ran)
                    found.add(ran.out.tobytes())
            if height > 1 and past_caches == "nothing" and name == "laplacian8":
                assert plan.choice["rows_together"] == together
        assert len(found) == 1, (height, width)


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_a_picture_too_large_for_the_caches_is_asked_for_early(stride: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However small its output is; where that is large as well, also while outputs are computed."""
    problem = Case(RANDOM, "mix", "float32", "raw", stride, shape=(60, 200)).problem()
    layouts: list[Any] = []
    monkeypatch.setattr(
        "edgeconv.methods.cpu.sliding.make_layout",
        lambda *of, **named: layouts.append(make_layout(*of, **named)) or layouts[-1],
    )
    for limit, early in ((problem.input_bytes, True), (problem.input_bytes + problem.output_bytes, False)):
        monkeypatch.setattr(native, "STREAMING_BYTES", limit)
        SLIDING.prepare(problem, Options())
        assert ("llvm.prefetch" in rows.write(layouts[-1])) is early
    staging, both = (dataclasses.replace(layouts[0], fetching=True, streaming=streaming) for streaming in (False, True))
    assert rows.write(both).count("llvm.prefetch") > rows.write(staging).count("llvm.prefetch")
    if stride == KERNEL_SIZE:
        assert "llvm.prefetch" in rows.write(dataclasses.replace(layouts[0], direct=True))


def before_unreadable(array: np.ndarray) -> np.ndarray:
    """A copy that ends where memory begins that cannot be read."""
    size_bytes = -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, size_bytes + mmap.PAGESIZE)
    start = np.frombuffer(memory, np.uint8).ctypes.data
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + size_bytes), mmap.PAGESIZE, 0) == 0
    moved = np.frombuffer(memory, array.dtype, array.size, size_bytes - array.nbytes).reshape(array.shape)
    moved[:] = array
    return moved


@pytest.mark.skipif(sys.platform != "linux", reason="protects memory by a call of Linux")
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("channels", ["each", "mix"])
@pytest.mark.parametrize("past_caches", PROPERTIES["past_caches"])
def test_nothing_is_read_behind_the_picture(past_caches: str, channels: str, stride: int) -> None:
    """The last windows end where the picture does, or a pixel before."""
    for dtype, width in (("uint8", 600), ("float32", 579), ("float32", 580)):
        problem = Case(RANDOM, channels, dtype, "raw", stride, shape=(9, width), padding=0).problem()
        plan, image = made_so("sliding", problem, 1, past_caches), image_of(problem)
        moved, out = before_unreadable(image), np.empty(problem.output_shape, problem.output_dtype)
        plan.run(moved, out)
        assert out.tobytes() == run_on_host(plan, image, problem).out.tobytes(), (dtype, width)


@pytest.mark.skipif(sys.platform != "linux", reason="protects memory by a call of Linux")
@pytest.mark.parametrize("stride", range(1, 8))
@pytest.mark.parametrize("channels", CHANNELS)
@ENGINE
def test_no_row_is_looked_up_behind_the_table_of_rows(
    method: str, channels: str, stride: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are asked for ahead of their use: here the table of them ends where nothing can be read."""

    def at_the_end(problem: Problem, code: Any, arguments: dict[Any, Any], *others: Any, **named: Any) -> Plan:
        moved = before_unreadable(arguments[Argument.SOURCE_ROWS_ADDRESS])
        return make(problem, code, {**arguments, Argument.SOURCE_ROWS_ADDRESS: moved}, *others, **named)

    make = native.NativePlan
    monkeypatch.setattr(native, "NativePlan", at_the_end)
    for height in (8, 9):
        problem = Case("laplacian8", channels, "float32", "raw", stride, shape=(height, 192)).problem()
        assert_right(run_on_host(made_so(method, problem, past_caches="output"), image_of(problem), problem))


# --- what is exact ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scale", "dtype"),
    [
        *((scale, "uint8") for scale in (1, 14, 15, -14, -15, 100, 2**21, 0.5, 2**13 + 0.5)),
        *((scale, "uint16") for scale in (1, 3640, 3641, -3641)),
    ],
)
@EACH
def test_sums_are_held_by_a_type_that_is_exact(method: str, scale: float, dtype: str) -> None:
    """All pixels white drives every sum to its limit: 16 bits end between 14 and 15, 32 bits between the last two."""
    weights = np.full((1, 3, 1, 3, 3), scale, np.float32)
    problem = make_problem((6, 90, 3), dtype, WeightSet(weights, groups=3))
    white = np.full(problem.input_shape, np.iinfo(dtype).max, dtype)
    assert_right(run_on_host(require(method, "cpu").prepare(problem, Options()), white, problem))


@pytest.mark.parametrize(
    ("scale", "dtype", "directions"), [(1, "uint8", 1), (2**13, "uint8", 1), (1, "uint16", 1), (1, "uint16", 2)]
)
def test_sums_of_banks_are_exact(scale: int, dtype: str, directions: int) -> None:
    """All pixels white; whole magnitudes of 16 bits are rounded by a square that float32 does not hold."""
    weights = random_bank(10, 1, directions=directions, whole=True)
    weights = dataclasses.replace(weights, weights=weights.weights * scale)
    problem = make_problem((6, 90, 1), dtype, weights, output_mode="abs")
    plan = SLIDING.prepare(problem, Options())
    for image in (np.full(problem.input_shape, np.iinfo(dtype).max, dtype), random_image(6, 90, dtype, channels=1)):
        ran = run_on_host(plan, image, problem)
        assert_right(ran)
        assert ran.check.exact


def test_a_weight_that_differs_in_its_last_bit_is_not_collapsed() -> None:
    weights = np.ones((1, 3, 3, 3, 3), np.float32)
    weights[0, 1, 2, 0, 0] = np.nextafter(np.float32(1), np.float32(2))
    problem = make_problem((8, 8, 3), "float32", WeightSet(weights, groups=1))
    assert_right(run_on_host(SLIDING.prepare(problem, Options()), random_image(8, 8, "float32"), problem))


@pytest.mark.parametrize("way", [way for way in WAYS if way.startswith("sliding")])
@pytest.mark.parametrize("sign", [1, -1])
def test_every_magnitude_of_bytes_is_the_nearest_byte(way: str, sign: int) -> None:
    """Both responses of every pixel are any two bytes; roots are estimated, and no pair may end in another byte."""
    weights = np.zeros((2, 1, 1, 3, 3), np.float32)
    weights[0, ..., 1, 1], weights[1, ..., 1, 2] = sign, 1
    problem = make_problem((256, 512, 1), "uint8", WeightSet(weights, groups=1, combine="magnitude"), output_mode="abs")
    first, second = np.mgrid[:256, :256].astype(np.uint8)
    image = np.stack([first, second], axis=-1).reshape(256, 512, 1)
    out = np.empty(problem.output_shape, np.uint8)
    made_so(way, problem).run(image, out)
    squares = first.astype(np.int64) ** 2 + second.astype(np.int64) ** 2
    expected = np.minimum(np.rint(np.sqrt(squares)), 255)
    assert np.array_equal(out[:, ::2, 0], expected)


@EACH
def test_wide_sums_of_luma_keep_the_bound_of_float64(method: str) -> None:
    """Shares of float32 weights would lose as much as float32 sums do; by slices, without the package."""
    image = random_image(40, 50, "uint16")
    kernel = np.array([[1999, -1, 7], [-3, 1501, 900], [17, -2000, 1]], float)
    rules = {"channels": "luma", "output_mode": "raw", "padding": 0, "device": "cpu"}
    plan = edgeconv.plan(image.shape, "uint16", filter=kernel, method=method, **rules)
    windows = np.lib.stride_tricks.sliding_window_view(image.astype(np.float64), (3, 3), axis=(0, 1))
    expected = (windows * plan.problem.weights[0, 0]).sum(axis=(2, 3, 4))
    stored = np.spacing(np.float32(np.abs(expected).max())) / 2  # half a step of the float32 output
    assert np.abs(plan(image).reshape(expected.shape) - expected).max() <= plan.bound[0] + stored


@pytest.mark.parametrize("padding", [1, 5, 10, 11, 21, 22, 42, 43, 85, 86, 171])
def test_flat_rows_are_read_where_they_lie_whatever_the_padding(padding: int) -> None:
    """Round a third of 32, 64, 128, 256 and 512 samples, wherever a processor's blocks end; wide ones are staged."""
    problem = Case("prewitt", "each", "uint8", "abs", shape=(4, 1000), padding=padding, border="reflect101").problem()
    plan = made_so("sliding", problem, past_caches="output")
    if padding in (1, 171):
        assert plan.choice["reads_picture_directly"] == (padding == 1)
    assert_right(run_on_host(plan, random_image(4, 1000, "uint8"), problem))


# --- refusals, and code for processors that are not here -------------------------------------------------------------


EACH = Case("laplacian8", "each", "uint8", "abs", shape=(8, 8)).problem()
CANNY = chain_problem((8, 8, 3), np.uint8, make_chain("canny", low=50, high=150), "abs")


@pytest.mark.parametrize(
    ("method", "problem"),
    [("opencv", EACH), ("sliding", EACH), ("im2col", EACH), ("opencv", CANNY), ("sliding", CANNY)],
    ids=["opencv", "sliding", "im2col", "opencv canny", "sliding canny"],
)
def test_refuses_arrays_that_the_plan_was_not_made_for(method: str, problem: PictureProblem) -> None:
    plan = require(method, "cpu").prepare(problem, Options())
    image, out = random_image(8, 8, "uint8"), np.empty(problem.output_shape, np.uint8)
    with pytest.raises(UsageError, match="C-contiguous"):
        plan.run(random_image(8, 16, "uint8")[:, ::2], out)
    with pytest.raises(UsageError, match="the plan was made for"):
        plan.run(random_image(8, 9, "uint8"), out)
    with pytest.raises(UsageError, match="the plan was made for"):
        plan.run(image, out.astype(np.float32))
    out.setflags(write=False)
    with pytest.raises(UsageError, match="read-only"):
        plan.run(image, out)


@ENGINE
def test_float16_is_refused_where_the_processor_does_not_convert_it(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jit, "processor", lambda: OTHER_PROCESSORS[0])
    assert "float16" in require(method, "cpu").reason(Case(RANDOM, "mix", "float16", "raw").problem(), Options())


CALLS = (r"^\s+(?:bl|callq?)\s+_?([a-z]\w*)$", r"^\s+movabsq?\s+\$_?([a-z]\w*),", r" _([a-z]\w*)@GOTPAGEOFF")
"""Names of functions: where they are called, and where their address is taken to be called."""


def called(code: str) -> set[str]:
    return {name for calls in CALLS for name in re.findall(calls, code, re.MULTILINE)}


HALVES = Case(RANDOM, "mix", "float16", "abs", stride=3)
"""What processors have least in common."""
OTHERS = [
    Case("sobel", "mix", "uint16", "abs"),
    Case("kirsch", "each", "uint8", "clip", stride=2),
    Case(RANDOM, "each", "float64", "raw"),
    Case("sobel,prewitt", "mix", "float32", "raw", filters=11),
    Case("robinson", "luma", "uint8", "abs"),
]


@pytest.mark.parametrize(
    ("target", "case"),
    [*((target, HALVES) for target in OTHER_PROCESSORS), *zip(OTHER_PROCESSORS, OTHERS, strict=True)],
    ids=lambda value: f"{value.triple}-{value.name}" if isinstance(value, Processor) else str(value),
)
def test_code_for_other_processors_calls_nothing_outside(target: Processor, case: Case) -> None:
    """No C library is linked to generated code: a call to one would end the process. It calls itself alone."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    layout = make_layout(lower(case.problem()), target, 2048, columns=False, streaming=True, fetching=True)
    assert called(compiler.assembly(rows.write(layout), target)) == {WORK}
