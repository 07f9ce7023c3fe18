"""implicit on CUDA: the GEMM whose right matrix is the picture itself, read through its index; nothing in memory.

    fma    float32 multiply-adds (implicit.cu)
    tf32   tensor cores, operands rounded to 11 bits, float32 sums (implicit_mma.cu, patch in float32)
    half   tensor cores, operands rounded to half, float32 sums (implicit_mma.cu; patch in float16 unless the picture
           is float32, which is copied as it is and rounded on the way to the tensor cores)

One launch, no workspace beyond the weights' table of the tensor cores. Each block walks down a strip of the picture.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.filters import RGB_CHANNELS
from edgeconv.geometry import KERNEL_SIZE
from edgeconv.methods.base import MATHS, Math, Method, Options, Plan, refuse
from edgeconv.methods.cuda.kernels import KernelVariant, load
from edgeconv.methods.cuda.probe import cuda_unavailable_reason
from edgeconv.methods.cuda.product import (
    TENSOR_CORE_CAPABILITY,
    WARP,
    geometry_argument,
    problem_defines,
    refuse_reduced_16bit,
    response_count,
    round_up,
    sample_problems,
    unique,
)
from edgeconv.problem import Problem

WARPS = 4
COLUMNS_A_THREAD = {1: 4, 2: 2, 3: 1}
"""Output pixels of a row that a thread holds, by step: patch.cuh's constant of the same name."""
BLOCKS_BY_RESPONSES = ((3, 6), (8, 4), (24, 3))
"""(most responses, blocks that shall fit a multiprocessor): more accumulators leave registers for fewer blocks."""

ALIGNMENT = 16
CHUNK = 4
"""Bytes and float32 samples of one asynchronous copy where the rows allow it."""

N_TILE = 8
PIXELS_A_PAIR = 2
FLOAT32_BITS_BELOW_TF32 = 13


def step_of(stride: int) -> int:
    """The stride inside a patch: windows that do not touch are fetched side by side."""
    return min(stride, KERNEL_SIZE)


def blocks_a_multiprocessor(problem: Problem) -> int:
    """How many blocks the registers are shared among."""
    responses = response_count(problem)
    return next(blocks for most, blocks in BLOCKS_BY_RESPONSES if responses <= most)


def lead_of(problem: Problem, aligned: bool) -> int:
    """Samples before a patch row's first one in its 16 bytes, where the rows of the picture start on 16 bytes."""
    return -problem.padding * RGB_CHANNELS % CHUNK if aligned else 0


def variant(problem: Problem, math: Math, rows_a_warp: int, aligned: bool) -> KernelVariant:
    """The kernel for a problem; `rows_a_warp` output rows a step by each warp, `aligned` for float32 pictures."""
    patch = np.dtype(np.float16 if math == "half" and problem.dtype != np.float32 else np.float32)
    half = np.dtype(np.float16 if math == "half" else np.float32)
    defines = (
        *problem_defines(problem, half),
        ("STEP", step_of(problem.stride)),
        ("WARPS", WARPS),
        ("ROWS_A_WARP", rows_a_warp),
        ("BLOCKS_A_MULTIPROCESSOR", blocks_a_multiprocessor(problem)),
        ("PATCH", patch.name),
        ("ALIGNED", int(aligned)),
        ("LEAD", lead_of(problem, aligned)),
    )
    if math == "fma":
        return KernelVariant("implicit.cu", "implicit", defines)
    return KernelVariant("implicit_mma.cu", "implicit_mma", (*defines, ("HALF", int(math == "half"))))


def variants() -> tuple[KernelVariant, ...]:
    """Representative kernels, for a machine without a GPU to compile."""
    return unique(
        [
            variant(problem, math, rows, aligned)
            for problem in sample_problems()
            for math in MATHS
            for rows in ((1, 2) if problem.stride == 1 else (1,))
            for aligned in ((False, True) if problem.dtype == np.float32 else (False,))
            if math == "fma" or problem.dtype != np.uint16
        ]
    )


# --- the weights as the tensor cores take them ------------------------------------------------------------------


def fragment_table(problem: Problem, math: Math, lead: int = 0) -> NDArray[np.uint32]:
    """Weights in fragment order, (n tiles, k steps, lanes, 2) words: see implicit_mma.cu.

    Column n of the right matrix is response n % R of pixel n // R of a pair (R responses a pixel). Its rows are
    what lies under the pair: patch row u, then sample j of the row's (step + 3) · 3; pixel q of the pair has its
    tap (v, channel) at j = (q · step + v) · 3 + channel. An odd `lead` puts one more sample, of no weight, first.
    """
    odd = lead % 2
    step, responses = step_of(problem.stride), response_count(problem)
    half = math == "half"
    samples_a_row = round_up(odd + (step + KERNEL_SIZE) * RGB_CHANNELS, 2)
    depth_a_step = 16 if half else 8
    depth = round_up(KERNEL_SIZE * samples_a_row, depth_a_step)
    n_tiles = -(-PIXELS_A_PAIR * responses // N_TILE)
    right = np.zeros((depth, n_tiles * N_TILE), np.float32)
    dense = problem.dense_weights().reshape(responses, RGB_CHANNELS, KERNEL_SIZE, KERNEL_SIZE)
    for q in range(PIXELS_A_PAIR):
        for u in range(KERNEL_SIZE):
            for v in range(KERNEL_SIZE):
                for channel in range(RGB_CHANNELS):
                    j = odd + (q * step + v) * RGB_CHANNELS + channel
                    right[u * samples_a_row + j, q * responses : (q + 1) * responses] = dense[:, channel, u, v]

    # Lane 4·g + t holds column g. Its operand words come from sample pairs: half takes pairs t and t + 4 of the
    # k step as two words of two samples each, TF32 takes the two samples of pair t as its two words.
    steps = right.reshape(depth // depth_a_step, depth_a_step // 2, 2, n_tiles, N_TILE)
    if half:
        paired = np.ascontiguousarray(steps.transpose(3, 0, 4, 1, 2)).astype(np.float16)
        words = paired.view(np.uint32)[..., 0]  # (n tile, k step, g, pair of 8)
        table = np.stack([words[..., :4], words[..., 4:]], axis=-1)
    else:
        table = _round_to_tf32(np.ascontiguousarray(steps.transpose(3, 0, 4, 1, 2)))
    return np.ascontiguousarray(table.reshape(n_tiles, -1, WARP, 2))


def _round_to_tf32(values: NDArray[np.float32]) -> NDArray[np.uint32]:
    """The bits of float32 values rounded to nearest TF32, ties away from zero, as cvt.rna does."""
    half_step, kept = 1 << (FLOAT32_BITS_BELOW_TF32 - 1), -(1 << FLOAT32_BITS_BELOW_TF32) & 0xFFFFFFFF
    return (values.view(np.uint32) + np.uint32(half_step)) & np.uint32(kept)


# --- the plan ---------------------------------------------------------------------------------------------------


class ImplicitPlan(Plan):
    """One launch: strips of the picture, each shared out among a few blocks."""

    def __init__(self, problem: Problem, math: Math) -> None:
        import cupy

        from edgeconv.methods.cuda.launch import PackedLaunch

        multiprocessors = int(cupy.cuda.Device().attributes["MultiProcessorCount"])
        columns = WARP * COLUMNS_A_THREAD[step_of(problem.stride)]
        strips = -(-problem.output_width // columns)

        # Two rows a warp share half their reads; one row makes twice the blocks, which a small picture needs more.
        enough = blocks_a_multiprocessor(problem) * multiprocessors
        tall = problem.stride == 1 and strips * (problem.output_height // (2 * WARPS)) >= enough
        rows_a_warp = 2 if tall else 1

        row_bytes = problem.width * RGB_CHANNELS * problem.dtype.itemsize
        self._can_be_aligned = problem.dtype == np.float32 and row_bytes % ALIGNMENT == 0
        kernel = load(variant(problem, math, rows_a_warp, self._can_be_aligned))
        driver = cupy.cuda.driver
        resident = driver.occupancyMaxActiveBlocksPerMultiprocessor(kernel.kernel.ptr, WARPS * WARP, 0)
        # As many segments as make one wave of blocks, of a step at least: all blocks then end together.
        most = -(-problem.output_height // (rows_a_warp * WARPS))
        segments = max(1, min(most, resident * multiprocessors // strips))
        self._tables: list[Any] = []

        def launch(aligned: bool) -> Any:
            arguments: tuple[Any, ...] = (geometry_argument(problem), np.int32(segments), problem.weights)
            if math != "fma":
                table = cupy.asarray(fragment_table(problem, math, lead_of(problem, aligned)))
                self._tables.append(table)
                arguments = (*arguments[:-1], np.uint64(table.data.ptr))
            chosen = load(variant(problem, math, rows_a_warp, aligned))
            return PackedLaunch(chosen, strips * segments, (WARPS * WARP, 1), *arguments)

        self._any_start = launch(aligned=False)
        self._aligned_start = launch(aligned=True) if self._can_be_aligned else self._any_start
        table_bytes = sum(int(table.nbytes) for table in self._tables)
        super().__init__(
            problem=problem,
            workspace_bytes=table_bytes,
            moved_bytes=problem.input_bytes + problem.output_bytes,
            launches=1,
            choice={
                "math": math,
                "copies_bytes": ALIGNMENT if self._can_be_aligned else problem.dtype.itemsize,
                "rows_a_step": rows_a_warp * WARPS,
                "strip_columns": columns,
                "strips": strips,
                "segments": segments,
                "blocks_per_multiprocessor": resident,
            },
        )

    def run(self, image: Any, out: Any) -> None:
        """See Plan.run."""
        launch = self._any_start if image.data.ptr % ALIGNMENT else self._aligned_start
        launch(image, out)


class Implicit(Method):
    """The implicit GEMM on an NVIDIA card."""

    def unavailable_reason(self) -> str | None:
        """See Method.unavailable_reason."""
        return cuda_unavailable_reason()

    def prepare(self, problem: Problem, options: Options) -> Plan:
        """See Method.prepare."""
        refuse_reduced_16bit("implicit", problem, options)
        if options.math != "fma":
            import cupy

            capability = int(cupy.cuda.Device().compute_capability)
            if capability < TENSOR_CORE_CAPABILITY:
                reason = f"--math {options.math} needs compute capability 8.0, and this card has {capability / 10}"
                raise refuse("implicit", reason, "Use --math fma.")
        return ImplicitPlan(problem, options.math)
