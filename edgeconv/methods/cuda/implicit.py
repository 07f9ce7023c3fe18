"""implicit on CUDA: the GEMM whose right matrix is the picture itself, read through its index; nothing in memory.

float32 multiply-adds, or float64 where float32 does not hold the sums (exactness.py). No workspace. A block makes a
tile of the output.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from edgeconv.core.exactness import own_arithmetic, sums_for
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import PictureProblem, Problem
from edgeconv.hardware.cuda.kernels import KernelVariant, load
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason
from edgeconv.methods.base import Method, Plan
from edgeconv.methods.cuda.kernel_args import (
    MOST_RESPONSES,
    WARP,
    BankPart,
    Pitches,
    blocks_over,
    outputs_within,
    parts_of,
    problem_defines,
    response_count,
    strided_geometry,
)
from edgeconv.methods.options import Options

WARPS = 4
"""Warps of a block."""
FEW_RESPONSES, MANY_RESPONSES = 3, 8
MOST_OUTPUTS = 16
"""Outputs of a launch: the values of a tile go through shared memory, of which every GPU has 48 KiB for a block."""
WIDE_BLOCKS = 3
"""Blocks of a multiprocessor where sums are float64, which need twice the registers."""
TALL_ROWS = 2
"""Output rows that a warp makes of a large picture: they share half their reads."""


@dataclass(frozen=True)
class ImplicitShape:
    """How a kernel's blocks are cut: macros of implicit.cu that change speed and nothing else."""

    blocks_per_multiprocessor: int
    """How many blocks the registers are shared among."""
    columns_per_thread: int
    rows_per_warp: int = 1

    @property
    def tile_rows(self) -> int:
        """Output rows of a block."""
        return WARPS * self.rows_per_warp

    @property
    def tile_columns(self) -> int:
        """Output pixels of a block's row."""
        return WARP * self.columns_per_thread

    def tiles(self, problem: Problem) -> int:
        """Blocks that a problem takes."""
        return blocks_over(problem, self.tile_columns, self.tile_rows)


def shape_of(problem: Problem, multiprocessors: int) -> ImplicitShape:
    """The shape for a problem: the largest tiles that still fill the GPU once, else the smallest."""
    if sums_for(problem) == "float64":
        return ImplicitShape(WIDE_BLOCKS, columns_per_thread=1)
    step, responses = step_of(problem.stride), response_count(problem)
    widths = {1: (4, 2, 1), 2: (2, 1), 3: (1,)}[step]
    blocks = 6 if responses <= FEW_RESPONSES else 4 if responses <= MANY_RESPONSES else 3
    shapes = [ImplicitShape(blocks, columns) for columns in widths]
    if step == 1:
        shapes.insert(0, replace(shapes[0], rows_per_warp=TALL_ROWS))
    filling = [shape for shape in shapes if shape.tiles(problem) >= blocks * multiprocessors]
    return filling[0] if filling else shapes[-1]


ALIGNMENT = 16
CHUNK = 4
"""Bytes and float32 samples of one asynchronous copy where the rows allow it."""


def step_of(stride: int) -> int:
    """The stride inside a patch: windows that do not touch are fetched side by side."""
    return min(stride, KERNEL_SIZE)


def lead_of(problem: Problem, aligned: bool) -> int:
    """Samples before a patch row's first one in its 16 bytes, where the rows of the picture start on 16 bytes."""
    return -problem.padding * problem.in_channels % CHUNK if aligned else 0


def parts(problem: Problem) -> tuple[BankPart, ...]:
    """The launches: one, or of a filter bank one for as many outputs as registers hold."""
    return parts_of(problem, min(MOST_OUTPUTS, outputs_within(problem, MOST_RESPONSES)))


def variant(problem: Problem, shape: ImplicitShape, aligned: bool, pitches: Pitches | None = None) -> KernelVariant:
    """The kernel for a problem; `aligned` for float32 pictures whose rows start on 16 bytes."""
    defines = (
        *problem_defines(problem, pitches=pitches),
        ("STEP", step_of(problem.stride)),
        ("WARPS", WARPS),
        ("ROWS_PER_WARP", shape.rows_per_warp),
        ("COLUMNS_PER_THREAD", shape.columns_per_thread),
        ("BLOCKS_PER_MULTIPROCESSOR", shape.blocks_per_multiprocessor),
        ("ALIGNED", int(aligned)),
        ("LEAD", lead_of(problem, aligned)),
    )
    return KernelVariant("methods/cuda/implicit.cu", "implicit", defines)


def _may_be_aligned(part: BankPart) -> bool:
    """Whether rows may be fetched 16 bytes at a time, where they start on as many."""
    return part.problem.dtype == np.float32 and part.pitches[0] == part.problem.in_channels


class ImplicitPlan(Plan):
    """One launch, one block per tile."""

    def __init__(self, problem: Problem) -> None:
        import cupy

        from edgeconv.hardware.cuda.launch import PackedLaunch

        self._parts = parts(problem)
        shape = shape_of(self._parts[0].problem, int(cupy.cuda.Device().attributes["MultiProcessorCount"]))
        tiles = shape.tiles(problem)

        def launch(part: BankPart, aligned: bool) -> PackedLaunch:
            kernel = load(variant(part.problem, shape, aligned, part.pitches))
            arguments = (strided_geometry(problem), part.problem.weights)
            return PackedLaunch(kernel, tiles, (WARPS * WARP, 1), *arguments)

        row_bytes = problem.width * problem.in_channels * problem.dtype.itemsize
        can_be_aligned = _may_be_aligned(self._parts[0]) and row_bytes % ALIGNMENT == 0
        self._any_start = [launch(part, aligned=False) for part in self._parts]
        self._aligned_start = (
            [launch(part, aligned=True) for part in self._parts] if can_be_aligned else self._any_start
        )
        super().__init__(
            problem=problem,
            workspace_bytes=0,
            moved_bytes=len(self._parts) * problem.input_bytes + problem.output_bytes,
            launches=len(self._parts),
            arithmetic=own_arithmetic(problem),
            choice={
                "math": "fma",
                "copy_bytes": ALIGNMENT if can_be_aligned else problem.dtype.itemsize,
                "tile_rows": shape.tile_rows,
                "tile_columns": shape.tile_columns,
                "tiles": tiles,
            },
        )

    def run(self, image: Any, out: Any) -> None:
        launches = self._any_start if image.data.ptr % ALIGNMENT else self._aligned_start
        for part, launch in zip(self._parts, launches, strict=True):
            launch.at(image.data.ptr + part.image_offset_bytes, out.data.ptr + part.out_offset_bytes)


class Implicit(Method):
    """The implicit GEMM on an NVIDIA GPU."""

    def unavailable_reason(self) -> str | None:
        return cuda_unavailable_reason()

    def reason(self, problem: PictureProblem, options: Options) -> str | None:
        if problem.dtype == np.float64:
            return "it does not compute in float64"
        return super().reason(problem, options)

    def prepare(self, problem: Problem, options: Options, pictures: int = 1) -> Plan:
        return ImplicitPlan(problem)
