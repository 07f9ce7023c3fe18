"""Speed of the displayed output, its share of what this machine can do, and its error, as lines of a narrow panel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgeconv.core.units import digits_text, seconds_text, share_text
from edgeconv.run.report_text import NOTHING_TO_CHECK

if TYPE_CHECKING:
    from edgeconv.api.figures import Check, RunFigures


def speed_head(record: RunFigures) -> str:
    """The one figure that stands above all others."""
    if record.speed is not None:
        return f"{digits_text(record.speed.kernel_gflops, 4)} GFLOPS"
    rates = record.throughput
    return "–" if rates is None else f"{digits_text(rates.pixels_per_second / 1e6, 4)} million pixels/s"


def speed_rows(record: RunFigures) -> list[tuple[str, str]]:
    """The report's figures."""
    timing, speed = record.timing, record.speed
    phases = (f"{name.replace('_', ' ')} {seconds_text(value)}" for name, value in record.phases_seconds.items())
    lines = [("phases", ", ".join(phases))]
    if timing.kernel is not None:
        kernel = timing.kernel
        lines.append(("kernel", f"{seconds_text(kernel.median_seconds)}, median of {kernel.n}"))
        if kernel.spread_seconds is not None:
            lines.append(("p10 to p90", " to ".join(map(seconds_text, kernel.spread_seconds))))
    lines.append(("cold", seconds_text(timing.cold_seconds)))
    if timing.end_to_end is not None:
        lines.append(("end to end", seconds_text(timing.end_to_end.median_seconds)))
    if speed is not None:
        share = "" if speed.memory_floor_share is None else f", {share_text(speed.memory_floor_share)} of the floor"
        lines.append(("memory", f"{digits_text(speed.gigabytes_per_second, 4)} GB/s{share}"))
        if speed.roofline_share is not None:
            lines.append(("roofline", f"{share_text(speed.roofline_share)}, bound by {speed.bound_by}"))
        if speed.roof is not None:
            rates = speed.roof.copy_bytes_per_second, speed.roof.fma_flops_per_second
            copy, fma = (digits_text(each / 1e9, 4) for each in rates)
            lines.append(("roof here", f"{copy} GB/s, {fma} GFLOPS"))
    if record.check is not None:
        lines.append(("error", _error_text(record.check)))
    return lines


def _error_text(check: Check) -> str:
    if not check.checked_samples:
        return NOTHING_TO_CHECK
    verdict = "right" if check.passed else "WRONG"
    largest = "infinite" if check.max_abs_error is None else f"{check.max_abs_error:.3g}"
    return f"{verdict}, largest {largest} against float64 on {share_text(check.checked_share)}"
