"""`edgeconv bench gemm`: the ladder of matrix products beside the vendor's, each checked first, timed by turns.

Square products C = A·B of random numbers from −1 to 1, float32 (multiply-adds, no TF32 on either side) and float64.

    gflops            2 · n³ / median seconds / 1e9
    share_of_vendor   median seconds of cuBLAS at the same size and type in the same run / median seconds
    share_of_peak     gflops / measured rate of float32 multiply-adds (float32 alone)

Some rows of each result are compared with the float64 product before anything is timed; a step that is wrong gets no
time. The L2 is emptied before each sample. With `all` blocks every thread-block shape of a step is a row.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.ladders.base import (
    Blocks,
    Contender,
    Judged,
    LadderCase,
    LadderHead,
    StepRow,
    climb,
    ratio,
    usual_median,
)
from edgeconv.bench.ladders.gemm_kernels import STEPS, prepare
from edgeconv.core.cost import FLOPS_PER_MULTIPLY_ADD, Roof
from edgeconv.core.records import Amount, Meta, fields_of
from edgeconv.runtime.devices.base import Device

KIND: Literal["bench gemm"] = "bench gemm"
VENDOR = STEPS[-1].name
SEED = 20_261_121
CHECKED_ROWS = 8
ERROR_STEPS = 8
"""A sum of n products errs by about √n roundings of its typical size; this many times that is wrong."""

Real = Literal["float32", "float64"]


class GemmRow(StepRow):
    """A step at a size and type."""

    dtype: Real
    share_of_vendor: Amount | None
    share_of_peak: Annotated[
        Amount | None, Meta(description="of the measured rate of float32 multiply-adds; null for float64")
    ]


class GemmRecord(LadderHead):
    """What `edgeconv bench gemm` measured."""

    kind: Literal["bench gemm"]
    rows: list[GemmRow]


def make_case(size: int, dtype: Real, blocks: Blocks, device: Device) -> LadderCase:
    """Random operands; every step of the ladder, the vendor's last."""
    rng = np.random.default_rng(SEED)
    host_a, host_b = (rng.uniform(-1, 1, (size, size)).astype(dtype) for _ in range(2))
    expected = host_a[:CHECKED_ROWS].astype(np.float64) @ host_b.astype(np.float64)
    a, b, c = (device.empty((size, size), dtype) for _ in range(3))
    device.copy_in(host_a, a)
    device.copy_in(host_b, b)
    flops, found = FLOPS_PER_MULTIPLY_ADD * size**3, []
    for step in STEPS:
        shapes = step.blocks[dtype] or (None,)
        for block in shapes if blocks == "all" else shapes[:1]:
            run = partial(prepare(step, dtype, size, size, size, block), a, b, c)
            found.append(Contender(step.name, step.idea, None if block is None else str(block), flops, run))

    def judge(output: NDArray[Any]) -> Judged:
        """Largest error of the checked rows over their root mean square; infinite where any is not a number."""
        error = np.abs(output[:CHECKED_ROWS] - expected).max() / np.sqrt(np.square(expected).mean())
        error = float(error) if np.isfinite(output).all() else float("inf")
        allowed = ERROR_STEPS * float(np.finfo(dtype).eps) * size**0.5
        return Judged(error <= allowed, error, allowed)

    return LadderCase(size, found, c, judge)


def compare(rows: list[StepRow], dtype: Real, roof: Roof) -> list[GemmRow]:
    """Rows of one size and type, each step beside the vendor's."""
    vendor = usual_median(rows, VENDOR)
    peak = roof.fma_flops_per_second / 1e9 if dtype == "float32" else None
    return [
        GemmRow(
            **fields_of(row),
            dtype=dtype,
            share_of_vendor=ratio(vendor, row.median_seconds),
            share_of_peak=ratio(row.gflops, peak),
        )
        for row in rows
    ]


measure = partial(climb, make_case, compare, partial(GemmRecord, kind=KIND))
"""`measure(sizes, types, blocks, budget, device, watch, progress)`: a row per step, block shape, size and type."""
