"""CUDA `sliding` for filter banks: which shape of sliding_bank.cu suits a bank, its weights, and its plan.

For windows that overlap or touch (strides 1 to 3), one or two directions, and sums in float32, of float64 pictures in
float64. Which banks sliding.cu takes in one pass instead is said in sliding_choice.py.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.exactness import own_arithmetic
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem
from edgeconv.hardware.cuda.kernels import KernelVariant, load
from edgeconv.methods.cuda.kernel_args import (
    WARP,
    CudaPlan,
    batch_defines,
    depth_of,
    launch_of,
    picture_geometry,
    pitches_of,
    problem_defines,
)


@dataclass(frozen=True)
class BankCut:
    """How a picture is cut for a bank: macros of sliding_bank.cu that change speed alone, and the height of strips."""

    across: int
    """Neighbouring pixels of a thread."""
    warps: int
    """Of a block."""
    min_blocks: int
    """Blocks that must fit a multiprocessor: caps the registers."""
    strip_steps: int
    """Steps of a block, of two output rows each at stride 1, of one at others."""


@dataclass(frozen=True)
class BankShape(BankCut):
    """The same, and how lanes share the outputs of their pixels."""

    lanes: int
    """Lanes that share a pixel, of LANES."""
    groups: int
    """Groups of outputs of a pass."""
    weights_per_read: int
    """Weights that a lane reads at once: of neighbouring outputs, in one direction or two."""

    def outputs(self, directions: int) -> int:
        """Of a pass."""
        return self.groups * self.lanes * self.weights_per_read // directions

    @property
    def tile(self) -> int:
        """Output pixels of a block across."""
        return self.warps * WARP // self.lanes * self.across


READ_BYTES = 16
LANES = (2, 4, 8)
"""With fewer than 2, a store of 16 bytes would fill a sector by half."""
READS_OF_LANES = {4: {2: 2, 4: 8}, 2: {2: 1, 4: 4}}
"""By the weights of a read: weights of a tap, in reads, up to which this number of lanes measured faster than more."""
MOST_READS = 32
"""Weights of a tap in a pass, in reads: those of 128 filters in float32. They lie in shared memory, beside patches."""
COLUMN_ROWS = 4
"""Of a column of a patch."""
MOST_SHARED_BYTES = 48 * 1024
"""What a block of any GPU may have without asking for more."""


def shape_for(problem: Problem) -> BankShape:
    """The shape that leaves the fewest outputs of its lanes unused; of those the one with the most lanes.

    How it is cut was measured on one NVIDIA H200, for banks of 4 to 128 filters of 2048×2048 float32 pictures, of
    6 to 64 of float64 ones.
    """
    reads = reads_of(problem)
    limits = READS_OF_LANES[weights_per_read(problem)]
    most = next((lanes for lanes, enough in limits.items() if reads <= enough), LANES[-1])
    cut = cut_for(problem, reads)
    shapes = [shape_of(problem, lanes, cut) for lanes in LANES]
    fitting = [shape for shape in shapes if shared_bytes(problem, shape) <= MOST_SHARED_BYTES]

    def order(shape: BankShape) -> tuple[bool, int, int]:
        return shape.lanes > most, shape.groups * shape.lanes * passes_of(problem, shape), -shape.lanes

    return min(fitting, key=order)


def weights_per_read(problem: Problem) -> int:
    """Weights that a lane reads at once."""
    return READ_BYTES // problem.weights.itemsize


def reads_of(problem: Problem) -> int:
    """Reads that bring the weights of a tap, of all filters that a channel has, or that sum all channels."""
    filters = problem.output_channels // problem.groups * problem.directions
    return -(-filters // weights_per_read(problem))


def cut_for(problem: Problem, reads: int) -> BankCut:
    """What measured fastest. Where weights are few, short strips keep the lines that are written at a time together."""
    if problem.dtype == np.float64:
        if problem.in_channels == problem.groups:
            return BankCut(3, 2, 6, 2) if reads <= 8 else BankCut(1, 2, 8, 2)
        most_blocks = 6 if problem.stride == KERNEL_SIZE else 8
        return BankCut(3, 2, most_blocks if reads <= 8 else 4, 6)
    if problem.in_channels == problem.groups:
        return BankCut(2, 2, 10, 1) if reads > 4 and problem.stride == 1 else BankCut(3, 4, 4, 3)
    if problem.stride == KERNEL_SIZE:
        return BankCut(3, 2, 5 if reads > 4 else 4, 4)
    return BankCut(3, 2, 6, 6 if reads <= 16 else 4)


def shape_of(problem: Problem, lanes: int, cut: BankCut) -> BankShape:
    """A shape whose groups make the passes of a bank as few as can be, and no larger than they must."""
    groups = -(-reads_of(problem) // lanes)
    passes = -(-groups * lanes // MOST_READS)
    return BankShape(
        **asdict(cut), lanes=lanes, groups=-(-groups // passes), weights_per_read=weights_per_read(problem)
    )


def shared_bytes(problem: Problem, shape: BankShape) -> int:
    """Shared memory of a block: two patches and the weights of a pass."""
    channels = problem.in_channels // problem.groups
    columns = (shape.tile - 1) * problem.stride + KERNEL_SIZE
    patches = 2 * columns * channels * COLUMN_ROWS * problem.weights.itemsize
    return patches + shape.groups * shape.lanes * depth_of(problem) // problem.groups * READ_BYTES


def passes_of(problem: Problem, shape: BankShape) -> int:
    """Passes of a channel, or of all where they are summed."""
    return -(-(problem.output_channels // problem.groups) // shape.outputs(problem.directions))


def bank_variant(problem: Problem, shape: BankShape, batch: bool = False) -> KernelVariant:
    """The kernel for a bank."""
    channels = problem.in_channels // problem.groups
    of_one = replace(problem, in_channels=channels, groups=1, weights=problem.weights[:, :1])  # the kernel asks no more
    defines = (
        *problem_defines(of_one, pitches=pitches_of(problem)),
        ("STRIDE", problem.stride),
        ("LANES", shape.lanes),
        ("GROUPS", shape.groups),
        ("ACROSS", shape.across),
        ("WARPS", shape.warps),
        ("MIN_BLOCKS", shape.min_blocks),
        *batch_defines(batch),
    )
    return KernelVariant("methods/cuda/sliding_bank.cu", "sliding_bank", defines)


def bank_weights(problem: Problem, shape: BankShape) -> NDArray[Any]:
    """(pass, group, row, column, channel, lane, direction, output of the lane): zero where the bank has no filter."""
    directions, outputs, in_group = problem.weights.shape[:3]
    filters = outputs // problem.groups
    slots, passes = shape.outputs(directions), passes_of(problem, shape)
    by_group = problem.weights.reshape(directions, problem.groups, filters, in_group, KERNEL_SIZE, KERNEL_SIZE)
    filled = np.zeros((directions, problem.groups, passes * slots, *by_group.shape[3:]), problem.weights.dtype)
    filled[:, :, :filters] = by_group
    cut = (directions, problem.groups * passes, shape.groups, shape.lanes, shape.weights_per_read // directions)
    lanes = filled.reshape(*cut, in_group, KERNEL_SIZE, KERNEL_SIZE)
    return np.ascontiguousarray(lanes.transpose(1, 2, 6, 7, 5, 3, 0, 4))


@dataclass
class BankPlan(CudaPlan):
    """All filters of a bank in one launch, of one pass or several."""

    problem: Problem
    shape: BankShape | None = None

    def __post_init__(self) -> None:
        import cupy

        problem = self.problem
        shape = self.shape = self.shape or shape_for(problem)
        kernel = load(bank_variant(problem, shape, self.pictures > 1))
        weights = bank_weights(problem, shape)
        self._weights = cupy.asarray(weights)
        passes = len(weights)
        across = -(-problem.output_width // shape.tile)
        rows = shape.strip_steps * (2 if problem.stride == 1 else 1)
        filters = problem.output_channels // problem.groups
        geometry = picture_geometry(problem, across, rows, filters, passes // problem.groups, passes)
        blocks = across * -(-problem.output_height // rows) * passes
        threads = (shape.warps * WARP, 1)
        self._launch = launch_of(
            problem, self.pictures, kernel, blocks, threads, geometry, np.uint64(self._weights.data.ptr)
        )
        self.launches = self._launch.launches
        self.workspace_bytes = int(weights.nbytes)
        self.arithmetic = own_arithmetic(problem)
        self.choice = {
            "kernel": "bank",
            "passes": passes,
            **asdict(shape),
            "arithmetic": self.arithmetic.name,
        }

    def run_at(self, image_address: int, out_address: int, stream: int | None = None) -> None:
        self._launch.at(image_address, out_address, stream)
