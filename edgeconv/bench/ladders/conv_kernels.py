"""A ladder of convolutions for learners and for `bench conv`: the table of steps, and a step made ready to run.

All steps compute the same thing (float32, 3→3 channels, a zero border of one pixel, strides 1 to 3), and each has
one idea more than the step before. `STEPS` is the one place where ideas and predictions are written down: the header
of conv_kernels.cu and docs/kernels.md are made from it and from what `bench conv` measured (scripts/docs.py).

Predictions were made before the ladder was first measured, for 4096 × 4096 at stride 1 on one NVIDIA H200, by counting
what a warp asks of the L1: one line of 128 bytes per cycle and multiprocessor. The floor there is 97 µs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from edgeconv.core.filters import RGB_CHANNELS
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem
from edgeconv.hardware.cuda.kernels import KernelVariant, load, resident_blocks
from edgeconv.methods.base import Plan
from edgeconv.methods.cuda.sliding import CudaSliding
from edgeconv.methods.cuda.textbook import Textbook
from edgeconv.methods.options import Options

STRIDES = (1, 2, 3)
PIXELS_PER_THREAD = 4
"""Of the step `vector` and those after it."""
VECTOR_BYTES = 16
ROWS_OF_STRIP = 16
METHODS = {"textbook": Textbook, "sliding": CudaSliding}
"""Steps that are methods of the table."""
TILED = "shared"
"""The step that has a tile."""
SHARED_BYTES = 48 * 2**10
"""What a block may have without asking for more."""


@dataclass(frozen=True)
class ConvBlock:
    """Threads of a block, across and down."""

    across: int
    down: int = 1

    def __str__(self) -> str:
        return f"{self.across}×{self.down}"


@dataclass(frozen=True)
class ConvStep:
    """A rung: its idea in a clause, and what it was expected to gain over the step before, and why."""

    name: str
    idea: str
    because: str
    expected_gain: float | None
    blocks: tuple[ConvBlock, ...] = ()
    """Thread blocks, the usual one first; none where the kernel sets them."""
    pixels: int = 1
    """Output pixels of a thread beside each other."""
    rows: int | None = 1
    """Output rows that a thread walks down; None: as many as make whole waves of blocks."""
    kernel: str = ""
    """Where it is not called as the step is."""

    def blocks_for(self, stride: int) -> tuple[ConvBlock, ...]:
        """The thread blocks whose tile fits shared memory at a stride."""

        def tile_bytes(block: ConvBlock) -> int:
            rows, columns = ((side - 1) * stride + KERNEL_SIZE for side in (block.down, block.across))
            return rows * columns * RGB_CHANNELS * np.dtype(np.float32).itemsize

        return tuple(block for block in self.blocks if self.name != TILED or tile_bytes(block) <= SHARED_BYTES)


_SQUARES = tuple(ConvBlock(side, side) for side in (16, 8, 32))
_WARPS = ConvBlock(32, 8)
"""Each warp takes pixels of one row."""
_ROWS = tuple(ConvBlock(threads) for threads in (128, 64, 256))

STEPS: tuple[ConvStep, ...] = (
    ConvStep(
        "textbook",
        "one thread per output value, one launch per output channel",
        "27 reads of the picture, three lines each, and 27 of weights per value: 170 million lines, 650 µs",
        None,
        _SQUARES,
    ),
    ConvStep(
        "pixel",
        "one thread per output pixel: each sample is read once for its three channels",
        "the picture is read a third as often, the weights as often as before: 90 million lines",
        1.9,
        (*_SQUARES, _WARPS),
    ),
    ConvStep(
        "constant",
        "weights as a kernel parameter: multiply-adds take them from the constant bank",
        "81 reads of weights per pixel are gone: 47 million lines",
        1.9,
        (*_SQUARES, _WARPS),
    ),
    ConvStep(
        "shared",
        "a tile of the picture in shared memory: each sample is fetched once per block",
        "reads without conflicts, one line where there were three: 24 million, less than memory needs",
        1.4,
        (_WARPS, *_SQUARES),
    ),
    ConvStep(
        "rolling",
        "no tile: a thread walks down a strip, and each row it reads goes into the sums of three output rows at once",
        "9 reads per pixel in place of 27, and no barrier between fetching and computing",
        1.1,
        _ROWS,
        rows=ROWS_OF_STRIP,
    ),
    ConvStep(
        "vector",
        "four pixels per thread, read and written 16 bytes at a time",
        "5 reads per row of four pixels in place of 36, a third fewer lines",
        1.1,
        _ROWS,
        pixels=PIXELS_PER_THREAD,
        rows=ROWS_OF_STRIP,
    ),
    ConvStep(
        "waves",
        "the same kernel, strips as long as fill the GPU with whole waves of blocks",
        "nothing here, where strips of 16 rows make 1.94 waves; much at 1024 and below, where they leave most of the "
        "GPU idle",
        1.0,
        _ROWS,
        pixels=PIXELS_PER_THREAD,
        rows=None,
        kernel="vector",
    ),
    ConvStep(
        "sliding",
        "the shipped method: a block shares a ring of rows that the copy engine fills and empties",
        "no instructions for reading and writing, full lines for the halo, some rows always under way",
        1.05,
    ),
)


def variant(step: ConvStep, stride: int, block: ConvBlock, whole: bool) -> KernelVariant:
    """The kernel of a step; `whole` where rows of picture and output start on 16 bytes."""
    defines: tuple[tuple[str, str | int], ...] = (("STRIDE", stride), ("ACROSS", block.across), ("DOWN", block.down))
    defines += (("WHOLE", int(whole)), *((("HAS_TILE", 1),) if step.name == TILED else ()))
    return KernelVariant("bench/ladders/conv_kernels.cu", step.kernel or step.name, defines)


def variants() -> tuple[KernelVariant, ...]:
    """Every kernel of the ladder that is not a method's."""
    return tuple(
        dict.fromkeys(
            variant(step, stride, block, whole)
            for step in STEPS
            if step.name not in METHODS
            for stride in STRIDES
            for block in step.blocks_for(stride)
            for whole in ((False, True) if step.pixels > 1 else (False,))
        )
    )


def prepare(step: ConvStep, problem: Problem, block: ConvBlock | None) -> Plan:
    """A step ready for a problem of the ladder's kind; `block` is None where the step has none to choose."""
    if step.name in METHODS:
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
        whole = step.pixels > 1 and row_samples * problem.dtype.itemsize % VECTOR_BYTES == 0
        kernel = load(variant(step, problem.stride, block, whole))
        across = -(-problem.output_width // (block.across * step.pixels))
        if step.rows is None:
            at_once = max(1, resident_blocks(kernel, block.across) // across)
            rows = rows_of_whole_waves(problem.output_height, at_once)
        else:
            rows = block.down * step.rows
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
