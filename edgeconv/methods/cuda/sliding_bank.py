"""CUDA `sliding` for filter banks: which shape of sliding_bank.cu suits a bank, its weights, and its plan.

For windows that overlap or touch (strides 1 to 3) and float32 sums of one or two directions; a bank that sliding.cu
takes in one pass is not for it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.exactness import FLOAT32
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem
from edgeconv.hardware.cuda.kernels import KernelVariant, load, resident_blocks
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
class BankShape:
    """How the outputs of a pixel are shared among lanes: the macros of sliding_bank.cu that change speed alone."""

    lanes: int
    """Lanes that share a pixel, a power of two."""
    per_lane: int
    """Outputs of each of them."""
    run: int = 12
    """Pixels that they take one after the other, a multiple of 3."""
    warps: int = 4
    min_blocks: int = 4
    """Blocks that must fit a multiprocessor: caps the registers."""

    @property
    def slots(self) -> int:
        """Outputs of a pass."""
        return self.lanes * self.per_lane

    @property
    def tile(self) -> int:
        """Output pixels of a block across."""
        return self.warps * WARP // self.lanes * self.run


MOST_WEIGHTS = 108
"""Weights of a lane: they stay in its registers, beside a window and addresses."""
BLOCKS_BY_WEIGHTS = ((27, 5), (54, 4), (81, 3), (MOST_WEIGHTS, 2))
"""Blocks that fit a multiprocessor with up to so many weights in each lane."""
LANES = (8, 16, 32)
"""With fewer than 8, a store of a warp would fill sectors in part."""
MOST_PER_LANE = 4


def shape_for(problem: Problem) -> BankShape:
    """The shape that leaves the fewest lanes idle; of those the one with the fewest passes and outputs per lane.

    Fewer outputs per lane leave room for more warps, which gained more than the reads that they share: measured on one
    NVIDIA H200 for banks of 16 to 256 on three channels.
    """
    filters = problem.output_channels // problem.groups
    weights_per_output = KERNEL_SIZE * KERNEL_SIZE * problem.weights.shape[2] * problem.directions
    most = max(1, min(MOST_PER_LANE, MOST_WEIGHTS // weights_per_output))

    def preference(shape: BankShape) -> tuple[int, int, int]:
        passes = -(-filters // shape.slots)
        return passes * shape.slots, passes, shape.per_lane

    def shape_of(lanes: int, per_lane: int) -> BankShape:
        blocks = blocks_for(per_lane * weights_per_output) if problem.stride == 1 else 2
        return BankShape(lanes, per_lane, run=6 if lanes == min(LANES) else 12, min_blocks=blocks)

    shapes = (shape_of(lanes, per_lane) for lanes in LANES for per_lane in range(1, most + 1))
    return min(shapes, key=preference)


def blocks_for(weights: int) -> int:
    """Blocks of four warps that fit a multiprocessor where a lane holds so many weights."""
    return next(blocks for most, blocks in BLOCKS_BY_WEIGHTS if weights <= most)


def bank_variant(problem: Problem, shape: BankShape, batch: bool = False) -> KernelVariant:
    """The kernel for a bank."""
    channels = problem.in_channels // problem.groups
    of_one = replace(problem, in_channels=channels, groups=1, weights=problem.weights[:, :1])  # the kernel asks no more
    defines = (
        *problem_defines(of_one, pitches=pitches_of(problem)),
        ("STRIDE", problem.stride),
        ("LANES", shape.lanes),
        ("PER_LANE", shape.per_lane),
        ("RUN", shape.run),
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
    return [bank_variant(problem, shape_for(problem)) for problem in problems]


def bank_weights(problem: Problem, shape: BankShape) -> NDArray[np.float32]:
    """(pass, direction, row, column, channel, slot): zero in the slots that no filter of the bank takes."""
    directions, outputs, in_group = problem.weights.shape[:3]
    filters = outputs // problem.groups
    passes = -(-filters // shape.slots)
    by_group = problem.weights.reshape(directions, problem.groups, filters, in_group, KERNEL_SIZE, KERNEL_SIZE)
    filled = np.zeros((directions, problem.groups, passes * shape.slots, *by_group.shape[3:]), np.float32)
    filled[:, :, :filters] = by_group
    slots = filled.reshape(directions, problem.groups * passes, shape.slots, in_group, KERNEL_SIZE, KERNEL_SIZE)
    return np.ascontiguousarray(slots.transpose(1, 0, 4, 5, 3, 2))


STRIP_STEPS = 8
"""Steps of a strip, about: its blocks read their weights once."""


@dataclass
class BankPlan(AddressPlan):
    """All filters of a bank in one launch, of a pass for each SLOTS of them."""

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
        step_rows = 2 if problem.stride == 1 else 1
        across = -(-problem.output_width // shape.tile)
        at_once = resident_blocks(kernel, shape.warps * WARP)
        turns = max(1, round(across * passes * problem.output_height / (STRIP_STEPS * step_rows) / at_once))
        strips = max(1, turns * at_once // (across * passes))
        rows = -(-problem.output_height // strips)
        rows = -(-rows // step_rows) * step_rows
        strips = -(-problem.output_height // rows)
        filters = problem.output_channels // problem.groups
        geometry = picture_geometry(problem, across, rows, filters, passes // problem.groups, passes)
        blocks = across * strips * passes
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
            "rows_per_strip": rows,
            **asdict(shape),
            "arithmetic": FLOAT32.name,
            "multiply_adds_per_pixel": passes * shape.slots * depth_of(problem) // problem.groups * problem.directions,
        }

    def run(self, image: Any, out: Any) -> None:
        """See Plan.run."""
        self.run_at(image.data.ptr, out.data.ptr)

    def run_at(self, image_address: int, out_address: int, stream: int | None = None) -> None:
        """See Plan.run_at."""
        self._launch.at(image_address, out_address, stream)
