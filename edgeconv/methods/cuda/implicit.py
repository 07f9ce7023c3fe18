"""implicit on CUDA: the GEMM whose right matrix is the picture itself, read through its index; nothing in memory.

    fma    float32 multiply-adds (implicit.cu), or float64 where float32 does not hold the sums (exactness.py)
    tf32   tensor cores, operands rounded to 11 bits, float32 sums (implicit_mma.cu)
    half   tensor cores, operands rounded to half, float32 sums (implicit_mma.cu)

One launch, no workspace beyond the weights' table of the tensor cores. A block makes a tile of the output.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.exactness import ARITHMETIC_OF_MATH, own_arithmetic, sums_for
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem
from edgeconv.hardware.cuda.kernels import KernelVariant, load
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason
from edgeconv.methods.base import Method, Plan, check_workspace, refuse
from edgeconv.methods.cuda.kernel_args import (
    MOST_RESPONSES,
    TENSOR_CORE_CAPABILITY,
    WARP,
    BankPart,
    Pitches,
    blocks_over,
    outputs_within,
    parts_of,
    problem_defines,
    refuse_reduced_16bit,
    response_count,
    sample_problems,
    strided_geometry,
    unique,
)
from edgeconv.methods.options import MATHS, Math, Options

FEW_RESPONSES, MANY_RESPONSES = 3, 8
FEW_OUTPUTS, MOST_OUTPUTS = 6, 16
"""Outputs of a launch: the values of a tile go through shared memory, of which every GPU has 48 KiB for a block."""
WIDE_BLOCKS = 3
"""Blocks of a multiprocessor where sums are float64, which need twice the registers."""
FEW_RESPONSES_BLOCKS = 7
SMALL_TILES_BLOCKS = 8
"""On the tensor cores with few responses. With the small tiles of small pictures eight blocks fit, at 64 registers a
thread; where the compiler may take two or three more, an H200 needs two waves of blocks for 512x512 pixels."""
TALL_ROWS = 2
"""Output rows that a warp makes of a large picture: they share half their reads."""


@dataclass(frozen=True)
class ImplicitShape:
    """How a kernel's blocks are cut: macros of implicit.cu and implicit_mma.cu that change speed and nothing else."""

    warps: int
    blocks_per_multiprocessor: int
    """How many blocks the registers are shared among."""
    columns_per_thread: int
    rows_per_warp: int = 1

    @property
    def tile_rows(self) -> int:
        """Output rows of a block."""
        return self.warps * self.rows_per_warp

    @property
    def tile_columns(self) -> int:
        """Output pixels of a block's row."""
        return WARP * self.columns_per_thread

    def tiles(self, problem: Problem) -> int:
        """Blocks that a problem takes."""
        return blocks_over(problem, self.tile_columns, self.tile_rows)


def shape_of(problem: Problem, math: Math, multiprocessors: int) -> ImplicitShape:
    """The shape for a problem: the largest tiles that still fill the GPU once, else the smallest."""
    step, responses = step_of(problem.stride), response_count(problem)
    warps = 4
    if sums_for(problem) == "float64":
        return ImplicitShape(warps, WIDE_BLOCKS, columns_per_thread=1 if math == "fma" else 2)
    if math == "fma":
        widths = {1: (4, 2, 1), 2: (2, 1), 3: (1,)}[step]
        blocks = 6 if responses <= FEW_RESPONSES else 4 if responses <= MANY_RESPONSES else 3
    else:
        widths = {1: (4, 2), 2: (2, 1), 3: (2,)}[step]
        blocks = FEW_RESPONSES_BLOCKS if responses <= FEW_RESPONSES and step < KERNEL_SIZE else 4
        if responses > MANY_RESPONSES:
            warps, blocks = 2, 6
        elif problem.output_channels > FEW_OUTPUTS:
            blocks = 3
    shapes = [ImplicitShape(warps, blocks, columns) for columns in widths]
    if step == 1:
        shapes.insert(0, replace(shapes[0], rows_per_warp=TALL_ROWS))
        if math != "fma" and blocks == FEW_RESPONSES_BLOCKS:
            shapes[-1] = replace(shapes[-1], blocks_per_multiprocessor=SMALL_TILES_BLOCKS)
    filling = [shape for shape in shapes if shape.tiles(problem) >= blocks * multiprocessors]
    return filling[0] if filling else shapes[-1]


ALIGNMENT = 16
CHUNK = 4
"""Bytes and float32 samples of one asynchronous copy where the rows allow it."""

N_TILE = 8
"""Columns of the right matrix that one tensor-core instruction takes."""
FLOAT32_BITS_BELOW_TF32 = 13


def step_of(stride: int) -> int:
    """The stride inside a patch: windows that do not touch are fetched side by side."""
    return min(stride, KERNEL_SIZE)


def lead_of(problem: Problem, aligned: bool) -> int:
    """Samples before a patch row's first one in its 16 bytes, where the rows of the picture start on 16 bytes."""
    return -problem.padding * problem.in_channels % CHUNK if aligned else 0


def parts(problem: Problem) -> tuple[BankPart, ...]:
    """The launches: one, or of a filter bank one for as many outputs as registers hold."""
    return parts_of(problem, min(MOST_OUTPUTS, outputs_within(problem, MOST_RESPONSES)))


def variant(
    problem: Problem, math: Math, shape: ImplicitShape, aligned: bool, pitches: Pitches | None = None
) -> KernelVariant:
    """The kernel for a problem; `aligned` for float32 pictures whose rows start on 16 bytes."""
    operands = np.dtype(np.float16 if math == "half" else np.float32)
    defines = (
        *problem_defines(problem, operands, pitches=pitches),
        ("STEP", step_of(problem.stride)),
        ("WARPS", shape.warps),
        ("ROWS_PER_WARP", shape.rows_per_warp),
        ("COLUMNS_PER_THREAD", shape.columns_per_thread),
        ("BLOCKS_PER_MULTIPROCESSOR", shape.blocks_per_multiprocessor),
        ("ALIGNED", int(aligned)),
        ("LEAD", lead_of(problem, aligned)),
    )
    if math == "fma":
        return KernelVariant("methods/cuda/implicit.cu", "implicit", defines)
    return KernelVariant("methods/cuda/implicit_mma.cu", "implicit_mma", (*defines, ("HALF", int(math == "half"))))


def variants() -> tuple[KernelVariant, ...]:
    """Representative kernels, for a machine without a GPU to compile."""
    return unique(
        [
            variant(part.problem, math, shape_of(part.problem, math, multiprocessors), aligned, part.pitches)
            for problem in sample_problems()
            if problem.dtype != np.float64
            for part in parts(problem)
            for math in MATHS
            for multiprocessors in (0, 1 << 20)  # so few that any picture is large, and so many that any is small
            for aligned in ((False, True) if _may_be_aligned(part) else (False,))
            if math == "fma" or problem.dtype != np.uint16
        ]
    )


def _may_be_aligned(part: BankPart) -> bool:
    """Whether rows may be fetched 16 bytes at a time, where they start on as many."""
    return part.problem.dtype == np.float32 and part.pitches[0] == part.problem.in_channels


# --- the weights as the tensor cores take them ------------------------------------------------------------------


def group_pixels(step: int) -> int:
    """Neighbouring output pixels that share a row of the left matrix: implicit_mma.cu's GROUP."""
    return 2 if step == 2 else 4


def right_matrix(problem: Problem, lead: int) -> NDArray[np.float32]:
    """What the samples under a group are multiplied with: (chunks, 4 samples, columns), before its zeros at the end.

    Chunks are those of patch row 0, then 1, then 2, each row starting `lead` samples early. Column n is response
    n % R of pixel n // R of the group (R responses a pixel).
    """
    step, responses = step_of(problem.stride), response_count(problem)
    group = group_pixels(step)
    channels = problem.in_channels
    chunks = -(-(lead + ((group - 1) * step + KERNEL_SIZE) * channels) // CHUNK)
    right = np.zeros((KERNEL_SIZE, chunks * CHUNK, group * responses), np.float32)
    dense = problem.dense_weights().reshape(responses, channels, KERNEL_SIZE, KERNEL_SIZE)
    for pixel in range(group):
        columns = slice(pixel * responses, (pixel + 1) * responses)
        for tap in range(KERNEL_SIZE):
            first = lead + (pixel * step + tap) * channels
            right[:, first : first + channels, columns] = dense[:, :, :, tap].transpose(2, 1, 0)
    return right.reshape(KERNEL_SIZE * chunks, CHUNK, group * responses)


def fragment_table(problem: Problem, math: Math, lead: int) -> NDArray[np.uint32]:
    """`right_matrix` in fragment order, (n tiles, k steps, lanes, 2) words: see implicit_mma.cu.

    Lane 4·g + t holds sample t of the chunks of a k step for column g of an n tile: with TF32 two chunks, a word
    each; with half four, two to a word.
    """
    right = right_matrix(problem, lead)
    chunks_per_step = 4 if math == "half" else 2
    chunks, samples, columns = right.shape
    steps, tiles = -(-chunks // chunks_per_step), -(-columns // N_TILE)
    filled = np.zeros((steps * chunks_per_step, samples, tiles * N_TILE), np.float32)
    filled[:chunks, :, :columns] = right
    # (k step, chunk, t, n tile, g) → (n tile, k step, g, t, chunk)
    ordered = filled.reshape(steps, chunks_per_step, samples, tiles, N_TILE).transpose(3, 0, 4, 2, 1)
    if math == "half":
        words = np.ascontiguousarray(ordered).astype(np.float16).view(np.uint32)
    else:
        words = _round_to_tf32(np.ascontiguousarray(ordered))
    return words.reshape(tiles, steps, WARP, 2)


def _round_to_tf32(values: NDArray[np.float32]) -> NDArray[np.uint32]:
    """The bits of float32 values rounded to nearest TF32, ties away from zero, as cvt.rna does."""
    half_step, kept = 1 << (FLOAT32_BITS_BELOW_TF32 - 1), -(1 << FLOAT32_BITS_BELOW_TF32) & 0xFFFFFFFF
    return (values.view(np.uint32) + np.uint32(half_step)) & np.uint32(kept)


# --- the plan ---------------------------------------------------------------------------------------------------


class ImplicitPlan(Plan):
    """One launch, one block per tile."""

    def __init__(self, problem: Problem, options: Options) -> None:
        import cupy

        from edgeconv.hardware.cuda.launch import PackedLaunch

        math = options.math
        self._parts = parts(problem)
        shape = shape_of(self._parts[0].problem, math, int(cupy.cuda.Device().attributes["MultiProcessorCount"]))
        tiles = shape.tiles(problem)
        self._tables: list[Any] = []

        def launch(part: BankPart, aligned: bool) -> Any:
            computed = part.problem
            arguments: tuple[Any, ...] = (strided_geometry(problem), computed.weights)
            if math != "fma":
                table = cupy.asarray(fragment_table(computed, math, lead_of(computed, aligned)))
                plain = cupy.asarray(computed.weights)  # for what a NaN spoils: mend.cuh
                self._tables += [table, plain]
                arguments = (strided_geometry(problem), np.uint64(table.data.ptr), np.uint64(plain.data.ptr))
            kernel = load(variant(computed, math, shape, aligned, part.pitches))
            return PackedLaunch(kernel, tiles, (shape.warps * WARP, 1), *arguments)

        row_bytes = problem.width * problem.in_channels * problem.dtype.itemsize
        can_be_aligned = _may_be_aligned(self._parts[0]) and row_bytes % ALIGNMENT == 0
        self._any_start = [launch(part, aligned=False) for part in self._parts]
        self._aligned_start = (
            [launch(part, aligned=True) for part in self._parts] if can_be_aligned else self._any_start
        )
        tables_bytes = sum(int(table.nbytes) for table in self._tables)
        check_workspace("implicit", tables_bytes, options)
        super().__init__(
            problem=problem,
            workspace_bytes=tables_bytes,
            moved_bytes=len(self._parts) * problem.input_bytes + problem.output_bytes,
            launches=len(self._parts),
            arithmetic=own_arithmetic(problem) if math == "fma" else ARITHMETIC_OF_MATH[math],
            choice={
                "math": math,
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

    def prepare(self, problem: Problem, options: Options) -> Plan:
        if problem.dtype == np.float64:
            raise refuse("implicit", "it does not compute in float64", "Use --method sliding.")
        refuse_reduced_16bit("implicit", problem, options)
        if options.math != "fma":
            import cupy

            capability = int(cupy.cuda.Device().compute_capability)
            if capability < TENSOR_CORE_CAPABILITY:
                reason = f"--math {options.math} needs compute capability 8.0, and this GPU has {capability / 10}"
                raise refuse("implicit", reason, "Use --math fma.")
        return ImplicitPlan(problem, options)
