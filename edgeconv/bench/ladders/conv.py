"""`edgeconv bench conv`: the ladder of convolutions, each step checked first, timed by turns beside a plain copy.

All steps compute the same thing: noise of size × size, random weights, float32, 3→3 channels, a zero border of one
pixel, strides 1 to 3.

A step whose output is not the float64 oracle's gets no time.

`STEPS` is the one place where predictions are written down: docs/kernels.md is made from it and from what was measured
(scripts/docs.py). Predictions were made before the ladder was first
measured, for 4096 × 4096 at stride 1 on one NVIDIA H200, by counting what a warp asks of the L1: one line of 128 bytes
per cycle and multiprocessor. The floor there is 97 µs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeconv.api.check import SAMPLED_CHECK, check, size_of
from edgeconv.bench.ladders.base import LadderCase, LadderTable, Step
from edgeconv.bench.synthetic import bench_filter
from edgeconv.core.cost import count
from edgeconv.core.filters import RGB_CHANNELS
from edgeconv.core.noise import noise_pixels
from edgeconv.core.problem import Problem
from edgeconv.core.request import make_request
from edgeconv.hardware.cuda.kernels import KernelVariant, load, resident_blocks
from edgeconv.hardware.device import Device
from edgeconv.methods.base import Plan
from edgeconv.methods.cuda.sliding import CudaSliding
from edgeconv.methods.cuda.textbook import Textbook
from edgeconv.methods.options import Options

COPY = "copy"
DTYPE: Literal["float32"] = "float32"
STRIDES = (1, 2, 3)
VECTOR_BYTES = 16
ROWS_OF_STRIP = 16
METHODS = {"textbook": Textbook, "sliding": CudaSliding}
"""Steps that are methods of the table."""


class ConvBlock(NamedTuple):
    """Threads of a block, across and down."""

    across: int
    down: int = 1

    def __str__(self) -> str:
        return f"{self.across}×{self.down}"


@dataclass(frozen=True)
class ConvStep(Step):
    """A rung, what it was expected to gain over the step before, and why."""

    because: str = ""
    expected_gain: float | None = None
    pixels: int = 1
    """Output pixels of a thread beside each other."""
    rows: int = 1
    """Output rows that a thread walks down; 0: as many as make whole waves of blocks."""


_SQUARES = tuple(ConvBlock(side, side) for side in (16, 8, 32))
_WARPS = ConvBlock(32, 8)
"""Each warp takes pixels of one row."""
_PIXELS = dict.fromkeys(STRIDES, (*_SQUARES, _WARPS))
_TILES = {stride: (_WARPS, *(_SQUARES if stride == 1 else _SQUARES[:2])) for stride in STRIDES}
"""At larger strides the tile of 32×32 threads is more than the 48 KiB that a block may have without asking."""
_ROWS = dict.fromkeys(STRIDES, tuple(ConvBlock(threads) for threads in (128, 64, 256)))

STEPS = (
    ConvStep(
        "textbook",
        "",
        "one thread per output value, one launch per output channel",
        dict.fromkeys(STRIDES, _SQUARES),
        because="27 reads of the picture, three lines each, and 27 of weights per value: 170 million lines, 650 µs",
    ),
    ConvStep(
        "pixel",
        "pixel",
        "one thread per output pixel: each sample is read once for its three channels",
        _PIXELS,
        because="the picture is read a third as often, the weights as often as before: 90 million lines",
        expected_gain=1.9,
    ),
    ConvStep(
        "constant",
        "constant",
        "weights as a kernel parameter: multiply-adds take them from the constant bank",
        _PIXELS,
        because="81 reads of weights per pixel are gone: 47 million lines",
        expected_gain=1.9,
    ),
    ConvStep(
        "shared",
        "shared",
        "a tile of the picture in shared memory: each sample is fetched once per block",
        _TILES,
        because="reads without conflicts, one line where there were three: 24 million, less than memory needs",
        expected_gain=1.4,
    ),
    ConvStep(
        "rolling",
        "rolling",
        "no tile: a thread walks down a strip, and each row it reads goes into the sums of three output rows at once",
        _ROWS,
        because="9 reads per pixel in place of 27, and no barrier between fetching and computing",
        expected_gain=1.1,
        rows=ROWS_OF_STRIP,
    ),
    ConvStep(
        "vector",
        "vector",
        "four pixels per thread, read and written 16 bytes at a time",
        _ROWS,
        because="5 reads per row of four pixels in place of 36, a third fewer lines",
        expected_gain=1.1,
        pixels=4,
        rows=ROWS_OF_STRIP,
    ),
    ConvStep(
        "waves",
        "vector",
        "the same kernel, strips as long as fill the GPU with whole waves of blocks",
        _ROWS,
        because="nothing here, where strips of 16 rows make 1.94 waves; much at 1024 and below, where they leave most "
        "of the GPU idle",
        expected_gain=1.0,
        pixels=4,
        rows=0,
    ),
    ConvStep(
        "sliding",
        "",
        "the shipped method: a warp has its rows in shared memory, and copies the next ones while it computes these",
        because="rows always under way, each read once by whole lines and written by whole lines, no barrier",
        expected_gain=1.05,
    ),
)


def variant(step: ConvStep, stride: int, block: ConvBlock, whole: bool) -> KernelVariant:
    """The kernel of a step; `whole` where rows of picture and output start on 16 bytes, which `vector` alone asks."""
    defines: dict[str, str | int] = {"STRIDE": stride, "ACROSS": block.across, "DOWN": block.down}
    defines["WHOLE"] = int(whole and step.pixels > 1)
    if step.name == "shared":
        defines["HAS_TILE"] = 1
    return KernelVariant("bench/ladders/conv_kernels.cu", step.kernel, tuple(defines.items()))


def prepare(step: ConvStep, problem: Problem, block: ConvBlock | None) -> Plan:
    """A step ready for a problem of the ladder's kind."""
    if not step.kernel:
        options = Options() if block is None else Options(block=block.across)  # type: ignore[arg-type]
        return METHODS[step.name]().prepare(problem, options)
    assert block is not None
    return StepPlan(problem, step, block)


class StepPlan(Plan):
    """A step that is a kernel of the ladder."""

    def __init__(self, problem: Problem, step: ConvStep, block: ConvBlock) -> None:
        import cupy

        from edgeconv.hardware.cuda.launch import PackedLaunch

        super().__init__(problem)
        row_samples = (problem.width | problem.output_width) * RGB_CHANNELS
        whole = row_samples * problem.dtype.itemsize % VECTOR_BYTES == 0
        kernel = load(variant(step, problem.stride, block, whole))
        across = -(-problem.output_width // (block.across * step.pixels))
        rows = block.down * step.rows
        if not rows:
            at_once = max(1, resident_blocks(kernel, block.across) // across)
            rows = rows_of_whole_waves(problem.output_height, at_once)
        down = -(-problem.output_height // rows)
        geometry = np.array([problem.height, problem.width, *problem.output_shape[:2], rows], np.int32)
        weights: Any = problem.weights
        if step.name == "pixel":
            self._weights = cupy.asarray(weights)
            weights = np.uint64(self._weights.data.ptr)
        self._launch = PackedLaunch(kernel, across * down, (block.across, block.down), geometry, weights)

    def run(self, image: Any, out: Any) -> None:
        """See Plan.run; arrays start on 16 bytes."""
        self._launch(image, out)


def rows_of_whole_waves(height: int, strips_at_once: int) -> int:
    """Rows of a strip, near to `ROWS_OF_STRIP`, such that the strips are a whole number of waves."""
    waves = max(1, round(height / strips_at_once / ROWS_OF_STRIP))
    return -(-height // (strips_at_once * waves))


def make_case(size: int, stride: int, device: Device) -> LadderCase:
    """Noise and random weights, and the oracle to judge by."""
    pixels = noise_pixels(size, size, DTYPE)
    request = make_request(bench_filter("random", "mix"), stride=stride, channels="mix", border="zero")
    problem = request.problem(pixels.shape, DTYPE)
    image, out = device.array_module.array(pixels), device.empty(problem.output_shape, problem.output_dtype)
    counts = count(problem)

    def judge(output: NDArray[Any]) -> tuple[bool, float, float]:
        against = check(pixels, output, problem, max_samples=SAMPLED_CHECK)
        return against.passed, size_of(against.relative_error), against.tolerance

    def ready(step: ConvStep, block: ConvBlock | None) -> Callable[[], None]:
        if not step.computes:
            half = counts.fewest_bytes // 2
            return device.floor(half, half)
        return partial(prepare(step, problem, block).run, image, out)

    return LadderCase(DTYPE, stride, out, counts.nominal_flops, judge, ready)


FLOOR = Step(COPY, "", "a plain copy of the fewest bytes: the floor", computes=False)
LADDER = LadderTable("bench conv", (FLOOR, *STEPS), COPY, variant, make_case)
