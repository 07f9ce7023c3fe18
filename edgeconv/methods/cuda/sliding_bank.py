"""CUDA `sliding` for filter banks: which shape of sliding_bank.cu suits a bank, its weights, and its plan.

For windows that overlap or touch (strides 1 to 3) and float32 sums of one or two directions. Which banks sliding.cu
takes in one pass instead is said in sliding_arithmetic.py.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.exactness import FLOAT32
from edgeconv.core.filters import CHANNEL_COUNTS, filter_bank
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem
from edgeconv.hardware.cuda.kernels import KernelVariant, load
from edgeconv.methods.base import AddressPlan
from edgeconv.methods.cuda.kernel_args import (
    WARP,
    batch_defines,
    depth_of,
    launch_of,
    picture_geometry,
    pitches_of,
    problem_defines,
    sample_problem,
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

    def outputs(self, directions: int) -> int:
        """Of a pass."""
        return self.groups * self.lanes * FOUR // directions

    @property
    def tile(self) -> int:
        """Output pixels of a block across."""
        return self.warps * WARP // self.lanes * self.across


FOUR = 4
"""Weights that a lane reads at once: of neighbouring outputs, in one direction or two."""
LANES = (2, 4, 8)
"""With fewer than 2, a store of four float32 samples would fill a sector by half."""
FILTERS_OF_LANES = {2: 8, 4: 32}
"""Filters up to which so many lanes measured faster than more, a direction counted as a filter."""
MOST_OUTPUTS = 128
"""Of a pass, in one direction; half as many in two. Their weights lie in shared memory, beside two patches."""


def shape_for(problem: Problem) -> BankShape:
    """The shape that leaves the fewest outputs of its lanes unused; of those the one with the most lanes.

    How it is cut was measured on one NVIDIA H200, for banks of 4 to 128 filters of 2048×2048 float32 pictures.
    """
    filters = problem.output_channels // problem.groups * problem.directions
    most = next((lanes for lanes, enough in FILTERS_OF_LANES.items() if filters <= enough), LANES[-1])
    cut = cut_for(problem, filters)
    shapes = [shape_of(problem, lanes, cut) for lanes in LANES if lanes <= most]
    return min(shapes, key=lambda shape: (shape.groups * shape.lanes * passes_of(problem, shape), -shape.lanes))


def cut_for(problem: Problem, filters: int) -> BankCut:
    """What measured fastest. Where weights are few, short strips keep the lines that are written at a time together."""
    if problem.in_channels == problem.groups:
        return BankCut(2, 2, 10, 1) if filters > 16 and problem.stride == 1 else BankCut(3, 4, 4, 3)
    if problem.stride == KERNEL_SIZE:
        return BankCut(3, 2, 5, 4)
    return BankCut(3, 2, 6, 6 if filters <= 64 else 4)


def shape_of(problem: Problem, lanes: int, cut: BankCut) -> BankShape:
    """A shape with so many groups that the passes of a bank are as few as can be, and no larger than they must."""
    filters = problem.output_channels // problem.groups * problem.directions
    groups = -(-filters // (lanes * FOUR))
    passes = -(-groups * lanes * FOUR // MOST_OUTPUTS)
    return BankShape(**asdict(cut), lanes=lanes, groups=-(-groups // passes))


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


def bank_variants() -> list[KernelVariant]:
    """Representative kernels, for a machine without a GPU to compile."""
    problems = [sample_problem("laplacian8", "mix", "float32", stride=stride) for stride in (1, 2, 3)]
    problems += [
        sample_problem("sobel", "each", "uint8", output_mode="abs"),
        sample_problem("laplacian8", "mix", "uint16", in_channels=1, output_mode="clip", border="replicate"),
        sample_problem("sobel", "luma", "float16", stride=2),
    ]
    for filters in (16, 40, 64):
        bank = filter_bank(("emboss",) * filters)
        problems += [sample_problem(bank, "mix", "float32", in_channels=channels) for channels in CHANNEL_COUNTS]
    return [bank_variant(problem, shape_for(problem)) for problem in problems]


def bank_weights(problem: Problem, shape: BankShape) -> NDArray[np.float32]:
    """(pass, group, row, column, channel, lane, direction, output of the lane): zero where the bank has no filter."""
    directions, outputs, in_group = problem.weights.shape[:3]
    filters = outputs // problem.groups
    slots, passes = shape.outputs(directions), passes_of(problem, shape)
    by_group = problem.weights.reshape(directions, problem.groups, filters, in_group, KERNEL_SIZE, KERNEL_SIZE)
    filled = np.zeros((directions, problem.groups, passes * slots, *by_group.shape[3:]), np.float32)
    filled[:, :, :filters] = by_group
    cut = (directions, problem.groups * passes, shape.groups, shape.lanes, FOUR // directions)
    lanes = filled.reshape(*cut, in_group, KERNEL_SIZE, KERNEL_SIZE)
    return np.ascontiguousarray(lanes.transpose(1, 2, 6, 7, 5, 3, 0, 4))


@dataclass
class BankPlan(AddressPlan):
    """All filters of a bank in one launch, of one pass or several."""

    shape: BankShape | None = None
    pictures: int = 1

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
        self.arithmetic = FLOAT32
        self.choice = {
            "kernel": "bank",
            "passes": passes,
            **asdict(shape),
            "arithmetic": FLOAT32.name,
            "multiply_adds_per_pixel": self._multiply_adds(passes),
        }

    def _multiply_adds(self, passes: int) -> int:
        """For an output pixel, those of unused outputs counted in."""
        problem = self.problem
        assert self.shape is not None
        return passes * self.shape.outputs(1) * depth_of(problem) // problem.groups

    def run(self, image: Any, out: Any) -> None:
        self.run_at(image.data.ptr, out.data.ptr)

    def run_at(self, image_address: int, out_address: int, stream: int | None = None) -> None:
        self._launch.at(image_address, out_address, stream)
