"""A ladder of convolutions for learners and for `bench conv`: the table of steps, and a step made ready to run.

All steps compute the same thing (float32, 3→3 channels, a zero border of one pixel, strides 1 to 3), and each has
one idea more than the step before. `STEPS` is the one place where ideas and predictions are written down: the header
of conv_kernels.cu and docs/kernels.md are made from it and from what `bench conv` measured (scripts/docs.py).

Predictions were made before the ladder was first measured, for 4096 × 4096 at stride 1 on one NVIDIA H200, by counting
what a warp asks of the L1: one line of 128 bytes per cycle and multiprocessor. The floor there is 97 µs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgeconv.core.filters import RGB_CHANNELS
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem
from edgeconv.errors import UsageError
from edgeconv.hardware.cuda.kernels import KernelVariant, load, resident_blocks
from edgeconv.methods.base import Plan
from edgeconv.methods.cuda.sliding import CudaSliding
from edgeconv.methods.cuda.textbook import Textbook
from edgeconv.methods.options import BLOCKS, Options

STRIDES = (1, 2, 3)
PADDING = 1
PIXELS_PER_THREAD = 4
"""Of the step `vector` and those after it."""
VECTOR_BYTES = 16
ROWS_PER_STRIP = 16
"""Where they are not made to fill whole waves."""
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
    walks: bool = False
    """Whether a thread goes down a strip of rows."""
    entry: str = ""
    """The kernel, where it is not called as the step is."""
    whole_waves: bool = False

    def blocks_for(self, stride: int) -> tuple[ConvBlock, ...]:
        """The thread blocks whose shared memory suffices at a stride."""
        return tuple(block for block in self.blocks if self.shared_bytes(block, stride) <= SHARED_BYTES)

    def shared_bytes(self, block: ConvBlock, stride: int) -> int:
        """What the tile of a block takes."""
        if self.name != TILED:
            return 0
        rows, columns = ((side - 1) * stride + KERNEL_SIZE for side in (block.down, block.across))
        return rows * columns * RGB_CHANNELS * np.dtype(np.float32).itemsize


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
        walks=True,
    ),
    ConvStep(
        "vector",
        "four pixels per thread, read and written 16 bytes at a time",
        "5 reads per row of four pixels in place of 36, a third fewer lines",
        1.1,
        _ROWS,
        pixels=PIXELS_PER_THREAD,
        walks=True,
    ),
    ConvStep(
        "waves",
        "the same kernel, strips as long as fill the GPU with whole waves of blocks",
        "nothing here, where strips of 16 rows make 1.94 waves; much at 1024 and below, where they leave most of the "
        "GPU idle",
        1.0,
        _ROWS,
        pixels=PIXELS_PER_THREAD,
        walks=True,
        entry="vector",
        whole_waves=True,
    ),
    ConvStep(
        "sliding",
        "the shipped method: a block shares a ring of rows that the copy engine fills and empties",
        "no instructions for reading and writing, full lines for the halo, some rows always under way",
        1.05,
    ),
)


def step(name: str) -> ConvStep:
    """The rung of that name; raises UsageError naming those there are."""
    for entry in STEPS:
        if entry.name == name:
            return entry
    raise UsageError(f"Convolution step '{name}' is not known: use one of {', '.join(entry.name for entry in STEPS)}.")


def variant(chosen: ConvStep, stride: int, block: ConvBlock, whole: bool) -> KernelVariant:
    """The kernel of a step; `whole` where rows of picture and output start on 16 bytes."""
    defines: tuple[tuple[str, str | int], ...] = (("STRIDE", stride), ("ACROSS", block.across), ("DOWN", block.down))
    defines += (("WHOLE", int(whole)), *((("HAS_TILE", 1),) if chosen.name == TILED else ()))
    return KernelVariant("bench/ladders/conv_kernels.cu", chosen.entry or chosen.name, defines)


def variants() -> tuple[KernelVariant, ...]:
    """Every kernel of the ladder that is not a method's."""
    return tuple(
        dict.fromkeys(
            variant(chosen, stride, block, whole)
            for chosen in STEPS
            if chosen.name not in _OF_METHODS
            for stride in STRIDES
            for block in chosen.blocks_for(stride)
            for whole in ((False, True) if chosen.pixels > 1 else (False,))
        )
    )


def prepare(name: str, problem: Problem, block: ConvBlock | None = None) -> Plan:
    """A step ready for a problem of the ladder's kind; raises UsageError for another."""
    chosen = step(name)
    rules = (problem.dtype.name, problem.border, problem.output_mode, problem.combine)
    shape = (problem.groups, problem.output_channels, problem.padding)
    is_ours = rules == ("float32", "zero", "raw", "single") and shape == (1, RGB_CHANNELS, PADDING)
    if not is_ours or problem.stride not in STRIDES:
        raise UsageError("The ladder does float32, 3→3 channels, one filter, a zero border of 1 and strides 1 to 3.")
    if block is None and chosen.blocks:
        block = chosen.blocks_for(problem.stride)[0]
    if name in _OF_METHODS:
        return _OF_METHODS[name](problem, block)
    return StepPlan(problem, step=chosen, block=block)


@dataclass
class StepPlan(Plan):
    """A step that is a kernel of the ladder."""

    step: ConvStep | None = None
    block: ConvBlock | None = None

    def __post_init__(self) -> None:
        import cupy

        from edgeconv.hardware.cuda.launch import PackedLaunch

        problem, chosen, block = self.problem, self.step, self.block
        assert chosen is not None  # only the base class's defaults make these optional
        assert block is not None
        whole = (problem.width | problem.output_width) * RGB_CHANNELS * problem.dtype.itemsize % VECTOR_BYTES == 0
        kernel = load(variant(chosen, problem.stride, block, whole and chosen.pixels > 1))
        across = -(-problem.output_width // (block.across * chosen.pixels))
        rows = block.down
        if chosen.whole_waves:
            resident = resident_blocks(kernel, block.across)
            rows = rows_of_whole_waves(problem.output_height, max(1, resident // across))
        elif chosen.walks:
            rows = ROWS_PER_STRIP
        down = -(-problem.output_height // rows)
        geometry = np.array([problem.height, problem.width, *problem.output_shape[:2], rows], np.int32)
        weights: Any = problem.weights
        if chosen.name == "pixel":
            self._weights = cupy.asarray(weights)
            weights = np.uint64(self._weights.data.ptr)
            self.workspace_bytes = problem.weights.nbytes
        self._launch = PackedLaunch(kernel, across * down, (block.across, block.down), geometry, weights)
        self.launches = 1
        self.choice = {"step": chosen.name, "block": str(block), "rows_per_block": rows}

    def run(self, image: Any, out: Any) -> None:
        """See Plan.run; arrays start on 16 bytes."""
        self._launch(image, out)


def rows_of_whole_waves(height: int, strips_at_once: int) -> int:
    """Rows of a strip, near to `ROWS_PER_STRIP`, such that the strips are a whole number of waves."""
    waves = max(1, round(height / strips_at_once / ROWS_PER_STRIP))
    return -(-height // (strips_at_once * waves))


def _textbook(problem: Problem, block: ConvBlock | None) -> Plan:
    sides = {side: Options(block=side) for side in BLOCKS}
    return Textbook().prepare(problem, Options() if block is None else sides[block.across])  # type: ignore[index]


def _sliding(problem: Problem, block: ConvBlock | None) -> Plan:
    return CudaSliding().prepare(problem, Options())


_OF_METHODS: dict[str, Callable[[Problem, ConvBlock | None], Plan]] = {"textbook": _textbook, "sliding": _sliding}
"""Steps that are methods of the table."""
