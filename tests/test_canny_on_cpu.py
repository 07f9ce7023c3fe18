"""Canny on the CPU engine: all pictures against the oracle, and against OpenCV where it has the type, byte for byte."""

from __future__ import annotations

import dataclasses
from itertools import product

import cv2
import llvmlite.binding as llvm
import numpy as np
import pytest
from canny_pictures import KINDS, PATHS, canny_chain, oracle, picture_of
from selection import pairs_then_slow
from test_cpu_methods import OTHER_PROCESSORS, called

from edgeconv.core.chains import Chain, ChainProblem, chain_problem
from edgeconv.hardware.cpu import compiler, jit
from edgeconv.hardware.cpu.processor import WORK
from edgeconv.methods.cpu import canny_edges, division
from edgeconv.methods.cpu.canny import prepare
from edgeconv.methods.cpu.canny_layout import CannyArgument, CannyShape
from edgeconv.methods.options import Options

BLURS = (0, 3, 5)
SHAPES = [
    CannyShape(source, channels, l2, blur, jit.processor().vector_bytes)
    for source, channels, l2, blur in product(("uint8", "uint16"), (1, 3), (False, True), BLURS)
]
"""All that code is written for."""
PICTURES = 15
"""Random ones for each of them."""


class CannyOfRows:
    """The engine's plan, for pictures and edges of (H, W) too."""

    def __init__(self, problem: ChainProblem, threads: int | None) -> None:
        self.plan = prepare(problem, Options(threads=threads))
        self.choice = self.plan.choice

    def run(self, picture: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        problem = self.plan.problem
        out = np.empty(problem.output_shape[:2], np.uint8) if out is None else out
        self.plan.run(picture.reshape(problem.input_shape), out.reshape(problem.output_shape))
        return out


def plan_canny(shape: tuple[int, ...], dtype: str, chain: Chain, threads: int | None = None) -> CannyOfRows:
    return CannyOfRows(chain_problem((*shape, 1)[:3], dtype, chain, "raw"), threads)


def chain_of(rng: np.random.Generator, shape: CannyShape) -> Chain:
    """Thresholds, in either order, where they decide something; small ones, and ones that nothing is above."""
    most = (1530 if shape.source == "uint8" else 1530 * 257) * float(rng.choice([0.02, 0.2, 1.2]))
    low, high = rng.uniform(0, most, 2)
    return canny_chain(float(low), float(high), shape.l2, shape.blur)


def assert_same(found: np.ndarray, expected: np.ndarray, what: object) -> None:
    """Fail with the first pixel that differs."""
    wrong = np.argwhere(found != expected)
    assert not len(wrong), f"{what}: {len(wrong)} pixels, first {wrong[0]}: {found[tuple(wrong[0])]}"


@pytest.mark.parametrize(
    "shape",
    pairs_then_slow(SHAPES, dataclasses.astuple),
    ids=lambda each: f"{each.source}-{each.channels}-{each.l2}-{each.blur}",
)
def test_random_pictures(shape):
    rng = np.random.default_rng(SHAPES.index(shape))
    dtype = shape.source
    for number in range(PICTURES):
        height, width = (int(side) for side in rng.integers(1, (150, 200)))
        size = (height, width, 3) if shape.channels == 3 else (height, width)
        chain = chain_of(rng, shape)
        plan = plan_canny(size, dtype, chain, int(rng.choice([1, 2, 3, 8])))
        for kind in KINDS:  # one plan: nothing of a picture may stay for the next
            picture = picture_of(kind, size, number, dtype)
            assert_same(plan.run(picture), oracle(picture, chain), (number, kind, size, chain))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    ("vector_bytes", "dtype", "l2", "blur"), [(16, "uint8", False, 0), (32, "uint8", True, 3), (64, "uint16", False, 5)]
)
def test_every_width_and_small_heights(channels, vector_bytes, dtype, l2, blur, monkeypatch):
    """Around the lengths of registers (LLVM cuts longer ones than this processor has), of a word of bits, and of a
    border; and nothing is written beside the output.
    """
    here = dataclasses.replace(jit.processor(), vector_bytes=vector_bytes)
    monkeypatch.setattr(jit, "processor", lambda: here)
    scale = 1 if dtype == "uint8" else 257
    chain = canny_chain(100 * scale, 300 * scale, l2, blur)
    for width in (*range(1, 70), 95, 96, 97, 127, 128, 129, 191, 192, 193, 321):
        for height in (1, 2, 3, 65):
            picture = picture_of("noise", (height, width, 3) if channels == 3 else (height, width), blur, dtype)
            memory = np.full(height * width + 256, 0xA5, np.uint8)
            out = memory[128:-128].reshape(height, width)
            plan_canny(picture.shape, dtype, chain, 2).run(picture, out)
            assert_same(out, oracle(picture, chain), (height, width))
            assert (memory[:128] == 0xA5).all()
            assert (memory[-128:] == 0xA5).all()


@pytest.mark.parametrize(
    ("target", "source", "channels", "l2", "blur"),
    [
        (target, *(("uint16", 1, True, 5) if number % 2 else ("uint8", 3, False, 0)))
        for number, target in enumerate(OTHER_PROCESSORS)
    ],
    ids=str,
)
def test_code_for_other_processors_calls_nothing_outside(target, source, channels, l2, blur):
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    code = compiler.assembly(canny_edges.write(CannyShape(source, channels, l2, blur, target.vector_bytes)), target)
    assert called(code) <= {WORK, canny_edges.GO_ON}


# --- hysteresis -------------------------------------------------------------------------------------------------------

LOW, HIGH = 100.0, 300.0
"""Between them are the edges of the paths, but for those in their middles."""


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("turned", ["", "upside down", "mirrored", "transposed"])
def test_edges_through_many_strips(name, turned):
    """Nearly all of an edge depends on one strong pixel at its end, whichever way it runs."""
    picture = picture_of(name, (400, 330), 0)
    turn = {"upside down": np.flipud, "mirrored": np.fliplr, "transposed": np.transpose}.get(turned, np.array)
    picture = np.ascontiguousarray(turn(picture))
    expected = cv2.Canny(picture, LOW, HIGH)
    strong = cv2.Canny(picture, HIGH, HIGH)
    assert np.count_nonzero(expected) > 15 * np.count_nonzero(strong) > 0, "this picture asks for no hysteresis"
    for threads in (1, 2, 3, 5, 8):
        plan = plan_canny(picture.shape, "uint8", canny_chain(LOW, HIGH), threads)
        for _ in range(3):
            assert_same(plan.run(picture), expected, threads)


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("strip_rows", [1, 2, 7])
def test_low_strips(name, strip_rows, monkeypatch):
    """Threads meet in the same strips all the time."""
    monkeypatch.setattr(division, "STRIP_ROWS", strip_rows)
    picture = picture_of(name, (300, 270), 0)
    expected = cv2.Canny(picture, LOW, HIGH)
    for threads in (1, 4):
        plan = plan_canny(picture.shape, "uint8", canny_chain(LOW, HIGH), threads)
        assert plan.choice["strip_rows"] == strip_rows
        for _ in range(20):
            assert_same(plan.run(picture), expected, (name, threads))


@pytest.mark.parametrize("aligned", [False, True])
def test_output_past_the_caches(aligned):
    """Rows that start a cache line are stored so, others as usual; words that change later are corrected in both."""
    width = 640 if aligned else 650
    picture = picture_of("comb", (300, width), 0)
    plan = plan_canny(picture.shape, "uint8", canny_chain(LOW, HIGH), 3)
    plan.plan._words[CannyArgument.STREAMING] = 1
    memory = jit.aligned_zeros(picture.size + 64)
    out = memory[: picture.size].reshape(picture.shape)
    for _ in range(3):
        plan.run(picture, out)
        assert_same(out, cv2.Canny(picture, LOW, HIGH), width)
    assert not memory[picture.size :].any(), "written beyond the output"
