"""`edgeconv bench gemm`: the ladder of matrix products beside the vendor's, each checked first, timed by turns.

C (m × n) = A (m × k) · B (k × n), row-major, of random numbers from −1 to 1, float32 (multiply-adds, no TF32 on either
side) or float64. What is measured is square; the kernels take any sizes. gemm_kernels.cu explains the steps.

Some rows of each result are compared with the float64 product before anything is timed; a step that is wrong gets no
time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.ladders.base import LadderCase, LadderTable, Step
from edgeconv.core.cost import FLOPS_PER_MULTIPLY_ADD
from edgeconv.hardware.cuda.kernels import KernelVariant, load
from edgeconv.hardware.device import Device

VENDOR = "cublas"
SEED = 20_261_121
CHECKED_ROWS = 8
ERROR_STEPS = 8
"""A sum of n products errs by about √n roundings of its typical size; this many times that is wrong."""

Real = Literal["float32", "float64"]
REALS = {"float32": "float", "float64": "double"}


class GemmBlock(NamedTuple):
    """What one thread block makes: `rows` × `columns` of C, `depth` of k per step, each thread `down` × `across`."""

    rows: int
    columns: int
    depth: int
    down: int = 1
    across: int = 1
    resident: int = 1
    """Blocks that a multiprocessor's registers shall have room for."""

    def __str__(self) -> str:
        shown = f", {self.down}×{self.across} per thread" if self.down > 1 else ""
        return f"{self.rows}×{self.columns}×{self.depth}{shown}"


def _squares(*sides: int) -> dict[str, tuple[GemmBlock, ...]]:
    return dict.fromkeys(REALS, tuple(GemmBlock(side, side, side) for side in sides))


_TILED = {
    "float32": (
        GemmBlock(64, 128, 16, 8, 8, resident=3),
        GemmBlock(64, 64, 16, 8, 8, resident=5),
        GemmBlock(64, 64, 32, 8, 8, resident=5),
        GemmBlock(128, 128, 16, 8, 16, resident=2),
        GemmBlock(128, 128, 8, 16, 8, resident=2),
    ),
    "float64": (
        GemmBlock(64, 64, 16, 8, 8, resident=4),
        GemmBlock(128, 64, 8, 8, 8, resident=2),
        GemmBlock(64, 64, 8, 8, 4, resident=3),
    ),
}

STEPS = (
    Step("plain", "plain", "one thread per element of C, every operand from global memory", _squares(16, 8, 32)),
    Step(
        "shared",
        "shared",
        "square tiles of A and B in shared memory: an operand is read from global memory as many times less often as a "
        "tile is wide",
        _squares(32, 16, 8),
    ),
    Step(
        "registers",
        "registers",
        "a block of C in each thread's registers, 16-byte reads: an operand read from shared memory feeds 8 products",
        _TILED,
    ),
    Step(
        "double_buffer",
        "double_buffer",
        "two buffers: the next tiles are copied, asynchronously, while these are multiplied",
        _TILED,
    ),
    Step(VENDOR, "", "the vendor's product"),
)


def variant(step: Step, dtype: str, block: GemmBlock, whole: bool) -> KernelVariant:
    """The kernel of a step; `whole` where the sizes are multiples of the block's."""
    defines: dict[str, str | int] = {"REAL": REALS[dtype]}
    if block.down == 1:
        defines["TILE"] = block.rows
    else:
        defines |= {"TILE_M": block.rows, "TILE_N": block.columns, "TILE_K": block.depth, "WHOLE": int(whole)}
        defines |= {"THREAD_M": block.down, "THREAD_N": block.across, "BLOCKS_PER_MULTIPROCESSOR": block.resident}
    return KernelVariant("bench/ladders/gemm_kernels.cu", step.kernel, tuple(defines.items()))


def prepare(step: Step, dtype: str, m: int, n: int, k: int, block: GemmBlock | None) -> Callable[[Any, Any, Any], None]:
    """A step ready for products of these sizes: a function of (a, b, c), CuPy arrays, C-contiguous, on 16 bytes."""
    if block is None:
        import cupy

        return lambda a, b, c: cupy.matmul(a, b, out=c)
    whole = m % block.rows == n % block.columns == k % block.depth == 0
    kernel = load(variant(step, dtype, block, whole))
    grid = (-(-n // block.columns), -(-m // block.rows))
    down, across = block.rows // block.down, block.columns // block.across
    threads = (across, down) if block.down == 1 else (down * across, 1)
    sizes = (np.int32(m), np.int32(n), np.int32(k))
    return lambda a, b, c: kernel(grid, threads, (a, b, c, *sizes))


def make_case(size: int, dtype: Real, device: Device) -> LadderCase:
    """Random operands, and the first rows of their product."""
    rng = np.random.default_rng(SEED)
    host_a, host_b = (rng.uniform(-1, 1, (size, size)).astype(dtype) for _ in range(2))
    expected = host_a[:CHECKED_ROWS].astype(np.float64) @ host_b.astype(np.float64)
    a, b, c = map(device.array_module.array, (host_a, host_b, np.empty_like(host_a)))

    def judge(output: NDArray[Any]) -> tuple[bool, float, float]:
        """Largest error of the checked rows over their root mean square; infinite where any is not a number."""
        error = np.abs(output[:CHECKED_ROWS] - expected).max() / np.sqrt(np.square(expected).mean())
        error = float(error) if np.isfinite(output).all() else float("inf")
        allowed = ERROR_STEPS * float(np.finfo(dtype).eps) * size**0.5
        return error <= allowed, error, allowed

    def ready(step: Step, block: GemmBlock | None) -> Callable[[], None]:
        return partial(prepare(step, dtype, size, size, size, block), a, b, c)

    return LadderCase(dtype, None, c, FLOPS_PER_MULTIPLY_ADD * size**3, judge, ready)


LADDER = LadderTable("bench gemm", STEPS, VENDOR, variant, make_case)
