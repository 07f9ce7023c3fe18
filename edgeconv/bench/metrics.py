"""The metrics of a row: what its time means, every figure by a printed formula. Pure arithmetic.

`nominal`, `useful` and `fewest` are those of cost.py. The copy is measured in the same run, by turns with the
candidates, moves just the fewest bytes of this case, and finds the cache in the same state. Above stride 3 it reads the
lines of memory that hold a pixel under some window (`fetched_bytes`), as memory gives no less.
"""

from __future__ import annotations

from edgeconv.core.cost import Counts, Roof
from edgeconv.core.records import Amount, Part
from edgeconv.run.report import BoundBy

FORMULAS: dict[str, str] = {
    "gflops": "nominal FLOPs / median seconds / 1e9; nominal = 2 · 3 · 3 · Cin · Cout · Hout · Wout a direction",
    "useful_gflops": "useful FLOPs / median seconds / 1e9; useful = nominal without zero weights and shared work",
    "gigabytes_per_second": "fewest bytes / median seconds / 1e9; fewest = picture read once + output written once",
    "moved_gigabytes_per_second": "bytes that the method itself moves by design / median seconds / 1e9",
    "intensity_flops_per_byte": "nominal FLOPs / fewest bytes",
    "floor_share": "median seconds of the floor: a copy of the fewest bytes (same run, size, L2) / median seconds",
    "large_copy_share": "fewest bytes / bandwidth of a large copy measured in this run / median seconds",
    "roofline_share": "max(copy seconds as in floor_share, useful FLOPs / measured FMA rate) / median seconds",
}


class Metrics(Part):
    """What a time means; None for what was not measured."""

    seconds: Amount
    gflops: Amount
    useful_gflops: Amount
    gigabytes_per_second: Amount
    moved_gigabytes_per_second: Amount | None
    intensity_flops_per_byte: Amount
    floor_share: Amount | None
    large_copy_share: Amount | None
    roofline_share: Amount | None
    bound_by: BoundBy | None


def metrics_of(
    counts: Counts, seconds: float, copy_seconds: float | None, roof: Roof | None, moved_bytes: int | None
) -> Metrics:
    """The metrics of a run that took `seconds`; None for what was not measured."""
    arithmetic_seconds = None if roof is None else counts.useful_flops / roof.fma_flops_per_second
    floor_seconds = None
    if copy_seconds is not None and arithmetic_seconds is not None:
        floor_seconds = max(copy_seconds, arithmetic_seconds)
    return Metrics(
        seconds=seconds,
        gflops=counts.nominal_flops / seconds / 1e9,
        useful_gflops=counts.useful_flops / seconds / 1e9,
        gigabytes_per_second=counts.fewest_bytes / seconds / 1e9,
        moved_gigabytes_per_second=None if moved_bytes is None else moved_bytes / seconds / 1e9,
        intensity_flops_per_byte=counts.intensity_flops_per_byte,
        floor_share=None if copy_seconds is None else copy_seconds / seconds,
        large_copy_share=None if roof is None else counts.fewest_bytes / roof.copy_bytes_per_second / seconds,
        roofline_share=None if floor_seconds is None else floor_seconds / seconds,
        bound_by=None if floor_seconds is None else "memory" if floor_seconds == copy_seconds else "arithmetic",
    )
