"""A ladder of matrix products for learners and for `bench gemm`: the table of steps, and a step made ready to run.

C (m × n) = A (m × k) · B (k × n), row-major, float32 or float64, any sizes. Each step of `STEPS` has one idea more than
the step before; gemm_kernels.cu explains it. The last step is the vendor's product, which the others are measured
against.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgeconv.hardware.cuda.kernels import KernelVariant, load

REALS = {"float32": "float", "float64": "double"}


@dataclass(frozen=True)
class GemmBlock:
    """What one thread block makes: `rows` × `columns` of C, `depth` of k per step, each thread `per_thread`."""

    rows: int
    columns: int
    depth: int
    per_thread: tuple[int, int] = (1, 1)
    resident: int = 1
    """Blocks that a multiprocessor's registers shall have room for."""

    @property
    def threads(self) -> tuple[int, int]:
        """Threads across and down; the tiled kernels count theirs in one row."""
        thread_rows, thread_columns = self.per_thread
        if self.per_thread == (1, 1):
            return self.columns, self.rows
        return self.rows // thread_rows * (self.columns // thread_columns), 1

    def __str__(self) -> str:
        shown = "" if self.per_thread == (1, 1) else f", {self.per_thread[0]}×{self.per_thread[1]} per thread"
        return f"{self.rows}×{self.columns}×{self.depth}{shown}"


@dataclass(frozen=True)
class GemmStep:
    """A rung: its name (the kernel's entry point), and its idea in a clause."""

    name: str
    idea: str
    blocks: dict[str, tuple[GemmBlock, ...]]
    """Shapes by dtype, the usual one first; none for the vendor's."""


def _squares(*sides: int) -> dict[str, tuple[GemmBlock, ...]]:
    return {name: tuple(GemmBlock(side, side, side) for side in sides) for name in REALS}


_TILED: dict[str, tuple[GemmBlock, ...]] = {
    "float32": (
        GemmBlock(64, 128, 16, (8, 8), resident=3),
        GemmBlock(64, 64, 16, (8, 8), resident=5),
        GemmBlock(64, 64, 32, (8, 8), resident=5),
        GemmBlock(128, 128, 16, (8, 16), resident=2),
        GemmBlock(128, 128, 8, (16, 8), resident=2),
    ),
    "float64": (
        GemmBlock(64, 64, 16, (8, 8), resident=4),
        GemmBlock(128, 64, 8, (8, 8), resident=2),
        GemmBlock(64, 64, 8, (8, 4), resident=3),
    ),
}

STEPS: tuple[GemmStep, ...] = (
    GemmStep("plain", "one thread per element of C, every operand from global memory", _squares(16, 8, 32)),
    GemmStep(
        "shared",
        "square tiles of A and B in shared memory: an operand is read from global memory as many times less often as a "
        "tile is wide",
        _squares(32, 16, 8),
    ),
    GemmStep(
        "registers",
        "a block of C in each thread's registers, 16-byte reads: an operand read from shared memory feeds 8 products",
        _TILED,
    ),
    GemmStep(
        "double_buffer", "two buffers: the next tiles are copied, asynchronously, while these are multiplied", _TILED
    ),
    GemmStep("cublas", "the vendor's product", {name: () for name in REALS}),
)


def variant(step: GemmStep, dtype: str, block: GemmBlock, whole: bool) -> KernelVariant:
    """The kernel of a step for a block shape; `whole` where the sizes are multiples of it."""
    defines: dict[str, str | int] = {"REAL": REALS[dtype]}
    if block.per_thread == (1, 1):
        defines["TILE"] = block.rows
    else:
        defines |= {"TILE_M": block.rows, "TILE_N": block.columns, "TILE_K": block.depth}
        defines |= {"THREAD_M": block.per_thread[0], "THREAD_N": block.per_thread[1], "WHOLE": int(whole)}
        defines["BLOCKS_PER_MULTIPROCESSOR"] = block.resident
    return KernelVariant("bench/ladders/gemm_kernels.cu", step.name, tuple(defines.items()))


def variants() -> tuple[KernelVariant, ...]:
    """Every kernel of the ladder."""
    return tuple(
        variant(step, dtype, block, whole)
        for step in STEPS
        for dtype, blocks in step.blocks.items()
        for block in blocks
        for whole in ((False,) if block.per_thread == (1, 1) else (False, True))
    )


def prepare(
    step: GemmStep, dtype: str, m: int, n: int, k: int, block: GemmBlock | None
) -> Callable[[Any, Any, Any], None]:
    """A step ready for products of these sizes: a function of (a, b, c), CuPy arrays, C-contiguous, on 16 bytes.

    `block` is None where the step has none to choose.
    """
    if block is None:
        import cupy

        return lambda a, b, c: cupy.matmul(a, b, out=c)
    whole = m % block.rows == 0 and n % block.columns == 0 and k % block.depth == 0
    kernel = load(variant(step, dtype, block, whole))
    grid = (-(-n // block.columns), -(-m // block.rows))
    sizes = (np.int32(m), np.int32(n), np.int32(k))
    return lambda a, b, c: kernel(grid, block.threads, (a, b, c, *sizes))
