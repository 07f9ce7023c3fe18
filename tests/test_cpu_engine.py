"""The CPU's methods against the oracle, and what `sliding` and `im2col` promise beyond being right."""

from __future__ import annotations

import dataclasses
import platform
import re
from itertools import product

import cpu_problems
import llvmlite.binding as llvm
import numpy as np
import pytest
from cpu_problems import RANDOM, Case
from problems import assert_right, image_of, random_bank, random_image, run_on_host
from selection import pairs_then_slow

from edgeconv.core.filters import WeightSet
from edgeconv.core.lowering import lower
from edgeconv.core.problem import make_problem
from edgeconv.errors import MemoryLimitError, UsageError
from edgeconv.hardware.cpu import jit
from edgeconv.hardware.cpu.emit import WORK
from edgeconv.methods import require
from edgeconv.methods.cpu import native, rows
from edgeconv.methods.cpu.layout import make_layout
from edgeconv.methods.options import Options

SLIDING = require("sliding", "cpu")
IM2COL = require("im2col", "cpu")
OPENCV = require("opencv", "cpu")
NAMES = {SLIDING: "sliding", IM2COL: "im2col", OPENCV: "opencv"}
EACH = pytest.mark.parametrize("method", NAMES, ids=NAMES.get)


def id_of(value):
    return NAMES.get(value) or str(value) if hasattr(value, "prepare") else str(value)


def beside(others, cases):
    """Each of `others` with cases in which any two properties meet; more meet in what test_cpu_banks and fuzz draw."""
    crossed = [(other, case) for other in others for case in cases]
    chosen = pairs_then_slow(crossed, lambda both: (both[0], *dataclasses.astuple(both[1])), several=True)
    return [case for case in chosen if not hasattr(case, "values")]


OF_ANY_METHOD = cpu_problems.EVERY_FILTER + cpu_problems.EVERY_TYPE
WITHOUT_STRUCTURE = [case for case in cpu_problems.EVERY_TYPE if case.filter == RANDOM]


@pytest.mark.parametrize(
    ("method", "case"), [*beside([SLIDING], OF_ANY_METHOD), *beside([IM2COL], WITHOUT_STRUCTURE)], ids=id_of
)
def test_every_filter_type_and_mode(method, case):
    cpu_problems.check_case(method, case)


@pytest.mark.parametrize(
    ("method", "case"), beside([SLIDING, IM2COL], cpu_problems.GREY + cpu_problems.BANKS), ids=id_of
)
def test_grey_pictures_and_banks(method, case):
    cpu_problems.check_case(method, case)


GEOMETRY = [
    case
    for case in pairs_then_slow([(method, *row) for method in NAMES for row in cpu_problems.GEOMETRY])
    if not hasattr(case, "values") or case.values[0] is SLIDING
]
"""Of `sliding` all, of the others what holds every pair."""


@pytest.mark.parametrize(
    ("method", "work", "stride", "border"),
    GEOMETRY,
    ids=lambda value: id_of(value) if hasattr(value, "prepare") else None,
)
def test_geometry(method, work, stride, border):
    for case in cpu_problems.geometry_cases(work, stride, border):
        cpu_problems.check_case(method, case)


CUT_UP = [
    Case("laplacian8", "each", "uint8", "abs", shape=(75, 1500)),
    Case("laplacian8", "each", "float32", "raw", shape=(75, 1500), padding=4, border="replicate"),
    Case("sobel", "each", "uint16", "raw", shape=(75, 1500), padding=0),
    Case("prewitt", "each", "uint8", "abs", shape=(75, 1500), padding=70, border="reflect101"),
    Case("sobel", "mix", "uint8", "raw", shape=(75, 1500)),
    Case("kirsch", "luma", "uint16", "clip", shape=(75, 1500), stride=2),
    Case("robinson", "luma", "uint8", "abs", shape=(75, 1500)),
    Case("kirsch", "each", "uint8", "abs", shape=(75, 1500), stride=5),
    Case(RANDOM, "mix", "float32", "raw", shape=(75, 1500), stride=3, border="reflect"),
    Case(RANDOM, "mix", "float16", "abs", shape=(75, 1500), padding=4, border="replicate"),
    Case(RANDOM, "mix", "uint8", "abs", shape=(75, 1500)),
    Case(RANDOM, "each", "uint8", "abs", shape=(75, 1501), padding=4, border="reflect"),
    Case("sobel", "mix", "uint8", "abs", shape=(75, 1500), in_channels=1),
    Case(RANDOM, "mix", "float64", "raw", shape=(75, 1500), filters=4, in_channels=1),
    Case(RANDOM, "each", "float32", "raw", shape=(75, 750), filters=10, stride=2),
    Case("sobel,prewitt", "mix", "uint16", "abs", shape=(75, 750), filters=11, in_channels=1),
    Case(RANDOM, "mix", "uint8", "abs", shape=(40, 1290), stride=3, padding=40),
    Case(RANDOM, "mix", "uint8", "abs", shape=(64, 1290), stride=4, filters=9),
    Case(RANDOM, "mix", "float32", "raw", shape=(40, 1), stride=3, padding=5),
    Case(RANDOM, "mix", "float32", "raw", shape=(7, 2000), stride=4, padding=5, filters=9),
]


@pytest.mark.parametrize(("method", "case"), beside([SLIDING, IM2COL], CUT_UP), ids=id_of)
def test_tiles_strips_threads_and_streaming_change_no_bit(method, case, monkeypatch):
    """A picture cut into several tiles and strips, stored past the caches, by up to five threads."""
    problem = case.problem()
    image = image_of(problem)
    whole = run_on_host(method.prepare(problem, Options(threads=1)), image, problem)
    assert_right(whole)
    monkeypatch.setattr("edgeconv.methods.cpu.sliding.TILE_PIXELS", 300)
    monkeypatch.setattr("edgeconv.methods.cpu.sliding.IM2COL_TILE_PIXELS", 300)
    for streaming_bytes in (0, 2**40):
        monkeypatch.setattr(native, "STREAMING_BYTES", streaming_bytes)
        for threads in (1, 2, 5):
            cut = run_on_host(method.prepare(problem, Options(threads=threads)), image, problem)
            assert cut.out.tobytes() == whole.out.tobytes(), f"{threads} threads, streaming from {streaming_bytes}"


OTHER_PROCESSORS = [
    jit.Processor("x86_64-unknown-linux-gnu", "x86-64-v2", "", 16, has_half=False),
    jit.Processor("x86_64-unknown-linux-gnu", "x86-64-v3", "", 32, has_half=True),
    jit.Processor("x86_64-unknown-linux-gnu", "x86-64-v4", "", 64, has_half=True),
    jit.Processor("aarch64-unknown-linux-gnu", "neoverse-n1", "", 16, has_half=True),
    jit.Processor("arm64-apple-darwin", "apple-m1", "", 16, has_half=True),
]


def take_processor(name, monkeypatch):
    """Make code for a smaller processor than this one; None: for this one."""
    if name is None:
        return
    smaller = next(target for target in OTHER_PROCESSORS if target.name == name)
    if smaller.vector_bytes > jit.processor().vector_bytes:
        pytest.skip("this processor has no such vectors")
    here = dataclasses.replace(smaller, triple=jit.processor().triple)
    monkeypatch.setattr(jit, "processor", lambda: here)


ON_X86 = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="runs code for smaller x86-64 processors"
)


@ON_X86
@pytest.mark.parametrize(("name", "case"), beside(["x86-64-v2", "x86-64-v3", None], CUT_UP), ids=id_of)
def test_every_processor_is_right(case, name, monkeypatch):
    """Blocks end elsewhere with other registers, and shuffles are others; float16 needs an instruction."""
    take_processor(name, monkeypatch)
    problem = case.problem()
    if case.dtype == "float16" and not jit.processor().has_half:
        assert "float16" in SLIDING.reason(problem, Options())
        return
    image = image_of(problem)
    for tile_pixels in (300, 16384):
        monkeypatch.setattr("edgeconv.methods.cpu.sliding.TILE_PIXELS", tile_pixels)
        for streaming_bytes in (0, 2**40):
            monkeypatch.setattr(native, "STREAMING_BYTES", streaming_bytes)
            assert_right(run_on_host(SLIDING.prepare(problem, Options(threads=2)), image, problem))
    assert_right(run_on_host(IM2COL.prepare(problem, Options()), image, problem))


@pytest.mark.parametrize("offset", [0, 1, 31, 63])
@pytest.mark.parametrize(
    "case",
    [
        Case("kirsch", "each", "uint8", "abs", shape=(5, 333)),
        Case("robinson", "each", "uint8", "abs", shape=(5, 333)),
        Case("kirsch", "luma", "uint8", "abs", shape=(5, 333)),
        Case("robinson", "mix", "float32", "abs", shape=(5, 333)),
        Case("sobel", "mix", "uint16", "abs", shape=(5, 333), stride=4),
        Case("laplacian8", "each", "uint8", "abs", shape=(5, 333), stride=5),
        Case("kirsch", "each", "uint8", "abs", shape=(5, 333), stride=6),
        Case(RANDOM, "mix", "float32", "raw", shape=(5, 333), filters=4),
        Case(RANDOM, "mix", "float32", "raw", shape=(5, 333), filters=10),
    ],
    ids=str,
)
def test_nothing_is_written_outside_the_output_and_no_sample_outside_the_picture_matters(case, offset, monkeypatch):
    """Views that begin at any sample, with other values all around them, past the caches."""
    monkeypatch.setattr(native, "STREAMING_BYTES", 0)
    problem = case.problem()
    samples = image_of(problem)
    plan = SLIDING.prepare(problem, Options(threads=2))
    expected = run_on_host(plan, samples, problem).out
    for around in (0, 1):
        memory = np.full(samples.size + 256, around, samples.dtype)
        image = memory[offset : offset + samples.size].reshape(samples.shape)
        image[...] = samples
        memory = np.full(expected.size + 256, 7, expected.dtype)
        out = memory[offset : offset + expected.size].reshape(expected.shape)
        plan.run(image, out)
        assert np.array_equal(out, expected)
        assert (memory[:offset] == 7).all()
        assert (memory[offset + expected.size :] == 7).all()


@pytest.mark.parametrize(
    ("scale", "dtype", "directions"), [(1, "uint8", 1), (2**13, "uint8", 1), (1, "uint16", 1), (1, "uint16", 2)]
)
def test_sums_of_banks_are_exact(scale, dtype, directions):
    """All pixels white; whole magnitudes of 16 bits are rounded by a square that float32 does not hold."""
    weights = random_bank(10, 1, directions=directions, whole=True)
    weights = dataclasses.replace(weights, weights=weights.weights * scale)
    problem = make_problem((6, 90, 1), dtype, weights, output_mode="abs")
    plan = SLIDING.prepare(problem, Options())
    for image in (np.full(problem.input_shape, np.iinfo(dtype).max, dtype), random_image(6, 90, dtype, channels=1)):
        ran = run_on_host(plan, image, problem)
        assert_right(ran)
        assert ran.check.exact


@pytest.mark.parametrize("padding", [1, 5, 10, 11, 21, 22, 42, 43, 85, 86, 171])
def test_flat_rows_are_read_where_they_lie_whatever_the_padding(monkeypatch, padding):
    """Round a third of 32, 64, 128, 256 and 512 samples, wherever a processor's blocks end; wide ones are staged."""
    monkeypatch.setattr(native, "STREAMING_BYTES", 0)
    case = Case("prewitt", "each", "uint8", "abs", shape=(4, 1000), padding=padding, border="reflect101")
    problem = case.problem()
    plan = SLIDING.prepare(problem, Options())
    if padding in (1, 171):
        assert plan.choice["reads_picture_directly"] == (padding == 1)
    assert_right(run_on_host(plan, random_image(4, 1000, "uint8"), problem))


def test_a_weight_that_differs_in_its_last_bit_is_not_collapsed():
    weights = np.ones((1, 3, 3, 3, 3), np.float32)
    weights[0, 1, 2, 0, 0] = np.nextafter(np.float32(1), np.float32(2))
    problem = make_problem((8, 8, 3), "float32", WeightSet(weights, groups=1))
    plan = SLIDING.prepare(problem, Options())
    assert_right(run_on_host(plan, random_image(8, 8, "float32"), problem))


@pytest.mark.parametrize(
    ("scale", "dtype"),
    [
        *((scale, "uint8") for scale in (1, 14, 15, -14, -15, 100, 2**21, 0.5, 2**13 + 0.5)),
        *((scale, "uint16") for scale in (1, 3640, 3641, -3641)),
    ],
)
@pytest.mark.parametrize("method", [SLIDING, IM2COL, require("opencv", "cpu")], ids=["sliding", "im2col", "opencv"])
def test_sums_are_held_by_a_type_that_is_exact(method, scale, dtype):
    """All pixels white drives every sum to its limit: 16 bits end between 14 and 15, 32 bits between the last two."""
    weights = np.full((1, 3, 1, 3, 3), scale, np.float32)
    problem = make_problem((6, 90, 3), dtype, WeightSet(weights, groups=3))
    white = np.full(problem.input_shape, np.iinfo(dtype).max, dtype)
    assert_right(run_on_host(method.prepare(problem, Options()), white, problem))


@EACH
def test_refuses_arrays_that_the_plan_was_not_made_for(method):
    problem = Case("laplacian8", "each", "uint8", "abs", shape=(8, 8)).problem()
    plan = method.prepare(problem, Options())
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


@pytest.mark.parametrize("method", [SLIDING, IM2COL], ids=id_of)
def test_workspace_stays_under_the_limit_or_the_plan_is_refused(method):
    problem = Case("laplacian8", "mix", "float32", "raw", shape=(512, 512)).problem()
    plan = method.prepare(problem, Options(threads=1))
    assert plan.workspace_bytes < 16 * 2**20
    with pytest.raises(MemoryLimitError, match="--workspace-limit"):
        method.prepare(problem, Options(threads=1, workspace_limit_bytes=plan.workspace_bytes - 1))


CALLS = (r"^\s+(?:bl|callq?)\s+_?([a-z]\w*)$", r"^\s+movabsq?\s+\$_?([a-z]\w*),", r" _([a-z]\w*)@GOTPAGEOFF")
"""Names of functions: where they are called, and where their address is taken to be called."""


def called(code: str) -> set[str]:
    return {name for calls in CALLS for name in re.findall(calls, code, re.MULTILINE)}


@pytest.mark.parametrize(
    ("target", "case"),
    pairs_then_slow([*product(OTHER_PROCESSORS, CUT_UP)], lambda both: (both[0], both[1].dtype), several=True),
    ids=lambda value: f"{value.triple}-{value.name}" if isinstance(value, jit.Processor) else str(value),
)
def test_code_for_other_processors_calls_nothing_outside(target, case):
    """No C library is linked to generated code: a call to one would end the process. It calls itself alone."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    layout = make_layout(lower(case.problem()), target, 2048, columns=False, streaming=True)
    assert called(jit.assembly(rows.write(layout), target)) == {WORK}


@ON_X86
@pytest.mark.parametrize("name", ["x86-64-v2", "x86-64-v3", None])
@pytest.mark.parametrize("sign", [1, -1])
def test_every_magnitude_of_bytes_is_the_nearest_byte(name, sign, monkeypatch):
    """Both responses of every pixel are any two bytes; roots are estimated, and no pair may end in another byte."""
    take_processor(name, monkeypatch)
    weights = np.zeros((2, 1, 1, 3, 3), np.float32)
    weights[0, ..., 1, 1], weights[1, ..., 1, 2] = sign, 1
    problem = make_problem((256, 512, 1), "uint8", WeightSet(weights, groups=1, combine="magnitude"), output_mode="abs")
    first, second = np.mgrid[:256, :256].astype(np.uint8)
    image = np.stack([first, second], axis=-1).reshape(256, 512, 1)
    out = np.empty(problem.output_shape, np.uint8)
    SLIDING.prepare(problem, Options()).run(image, out)
    squares = first.astype(np.int64) ** 2 + second.astype(np.int64) ** 2
    expected = np.minimum(np.rint(np.sqrt(squares)), 255)
    assert np.array_equal(out[:, ::2, 0], expected)
