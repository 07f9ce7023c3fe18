"""`edgeconv bench gemm`: the ladder of matrix products beside the vendor's, each checked first, timed by turns.

Square products C = A·B of random numbers from −1 to 1, float32 (multiply-adds, no TF32 on either side) and float64.

    gflops            2 · n³ / median seconds / 1e9
    share_of_vendor   median seconds of cuBLAS at the same size and type in the same run / median seconds
    share_of_peak     gflops / measured rate of float32 multiply-adds (float32 alone)

Some rows of each result are compared with the float64 product before anything is timed; a step that is wrong gets no
time. The L2 is emptied before each sample. With `all` blocks every thread-block shape of a step is a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.ladders.base import Blocks, Contender, LadderHead, StepRow, describe_step, described, time_by_turns
from edgeconv.bench.ladders.gemm_kernels import STEPS, GemmStep
from edgeconv.bench.ladders.gemm_kernels import prepare as prepare_step
from edgeconv.bench.watch import Watch
from edgeconv.core.cost import FLOPS_PER_MULTIPLY_ADD, Roof
from edgeconv.core.records import Amount, Meta
from edgeconv.core.timing import Budget
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


@dataclass(frozen=True)
class Operands:
    """A and B on the device, room for C, and the first rows of the exact product."""

    a: Any
    b: Any
    c: Any
    expected: NDArray[np.float64]

    @property
    def size(self) -> int:
        """The side of all three."""
        return int(self.a.shape[0])


def make_operands(size: int, dtype: Real, device: Device) -> Operands:
    """Random operands on the device."""
    rng = np.random.default_rng(SEED)
    a, b = (rng.uniform(-1, 1, (size, size)).astype(dtype) for _ in range(2))
    expected = a[:CHECKED_ROWS].astype(np.float64) @ b.astype(np.float64)
    on_device = [device.empty((size, size), dtype) for _ in range(3)]
    for host, place in zip((a, b), on_device[:2], strict=True):
        device.copy_in(host, place)
    return Operands(a=on_device[0], b=on_device[1], c=on_device[2], expected=expected)


def contenders(operands: Operands, dtype: Real, blocks: Blocks) -> list[Contender]:
    """Every step of the ladder, the vendor's last."""
    found = []
    for step in STEPS:
        shapes = step.blocks[dtype] or (None,)
        for block in shapes if blocks == "all" else shapes[:1]:
            product = prepare_step(step.name, dtype, *(operands.size,) * 3, block)
            found.append(_contender(step, None if block is None else str(block), product, operands))
    return found


def measure(
    sizes: Sequence[int],
    dtypes: Sequence[Real],
    blocks: Blocks,
    budget: Budget,
    device: Device,
    watch: Watch,
    progress: Callable[[int, str], None] = lambda done, note: None,
) -> GemmRecord:
    """The record: one row per step, block shape, size and type."""
    roof = device.roof()
    rows: list[GemmRow] = []
    cases = [(dtype, size) for dtype in dtypes for size in sizes]
    for index, (dtype, size) in enumerate(cases):
        progress(index, f"{size} {dtype}")
        operands = make_operands(size, dtype, device)
        watch.begin()
        rows += time_size(contenders(operands, dtype, blocks), operands, dtype, budget, device, roof, watch)
    return GemmRecord(**described(device, roof), kind=KIND, rows=rows)


def time_size(
    entered: Sequence[Contender],
    operands: Operands,
    dtype: Real,
    budget: Budget,
    device: Device,
    roof: Roof,
    watch: Watch,
) -> list[GemmRow]:
    """Check all, time those that are right by turns, and set each against the vendor's."""
    errors = [_error(contender, operands, device) for contender in entered]
    allowed = ERROR_STEPS * float(np.finfo(dtype).eps) * operands.size**0.5
    series = time_by_turns(entered, [error <= allowed for error in errors], budget, device, watch)
    seen = watch.report()
    medians = [None if found is None else found.statistics.median_seconds for found in series]
    vendor = next((m for m, contender in zip(medians, entered, strict=True) if contender.step == VENDOR), None)
    rows = []
    for contender, error, found, seconds in zip(entered, errors, series, medians, strict=True):
        rate = None if seconds is None else FLOPS_PER_MULTIPLY_ADD * operands.size**3 / seconds
        peak = roof.fma_flops_per_second if dtype == "float32" else None
        rows.append(
            GemmRow(
                **describe_step(contender, found, error),
                allowed_error=allowed,
                dtype=dtype,
                size=operands.size,
                gflops=None if rate is None else rate / 1e9,
                share_of_vendor=None if seconds is None or vendor is None else vendor / seconds,
                share_of_peak=None if rate is None or peak is None else rate / peak,
                machine=seen,
            )
        )
    return rows


def _contender(step: GemmStep, block: str | None, product: Callable[[Any, Any, Any], None], on: Operands) -> Contender:
    return Contender(step.name, step.idea, block, lambda: product(on.a, on.b, on.c))


def _error(contender: Contender, operands: Operands, device: Device) -> float:
    """Largest error of the checked rows over their root mean square; infinite where any is not a number."""
    operands.c[...] = np.nan
    contender.run()
    host = np.empty(operands.c.shape, operands.c.dtype)
    device.copy_out(operands.c, host)
    error = np.abs(host[:CHECKED_ROWS] - operands.expected).max()
    scale = np.sqrt(np.square(operands.expected).mean())
    return float(error / scale) if np.isfinite(host).all() else float("inf")
