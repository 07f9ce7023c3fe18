"""What was measured and checked, in words: of a run, of a tile, of a plan.

It takes the records of figures.py, and those of the reports that have the same parts.
"""

from __future__ import annotations

from typing import Any, Protocol

from edgeconv.core.text import digits_text, seconds_text, share_text

NOTHING_TO_CHECK = "nothing to check: every output reaches a pixel that is not a finite number"


class Measured(Protocol):
    """`RunFigures` of figures.py, and reports that have its parts too."""

    method: Any
    device: Any
    timing: Any
    speed: Any
    throughput: Any
    check: Any


def three_lines(found: Measured) -> str:
    """By what, how fast, and how exactly."""
    check, right = found.check, "not asked for"
    if check is not None:
        right = found_text(found, check) if check.checked_samples else NOTHING_TO_CHECK
    rows = {"method": f"{found.method.name} ({found.method.why})", "speed": speed_text(found), "check": right}
    return "\n".join(f"{name:<8}{text}" for name, text in rows.items())


def speed_text(report: Measured) -> str:
    """The time of a run, and beside a copy."""
    kernel, speed = report.timing.kernel, report.speed
    tile = "a tile " if getattr(report, "tiles", None) is not None else ""
    what = f"{tile}by {report.method.name} on {report.device.name}"
    if kernel is None:
        return f"{seconds_text(report.timing.cold_seconds)} {what}, the first run; none was timed after it"
    took = f"{seconds_text(kernel.median_seconds)} {what}{before(report)}"
    if report.throughput is not None:
        return f"{took}: {throughput_text(report)}"
    if speed is None:
        return took
    return f"{took}: {digits_text(speed.kernel_gflops, 4)} nominal GFLOPS{_share_text(report)}"


def throughput_text(report: Measured) -> str:
    """Of a chain: pixels, and how near it comes to a copy."""
    return f"{digits_text(report.throughput.pixels_per_second / 1e6, 4)} million pixels/s{_share_text(report)}"


def _share_text(report: Measured) -> str:
    """`, 81 % of a copy's speed`, where that is a limit."""
    rates = report.throughput or report.speed
    share = None if rates is None else rates.memory_floor_share
    return "" if share is None else f", {share_text(share)} of a copy's speed"


def before(report: Measured) -> str:
    """Which passes a time or a check leaves out."""
    return f" (before {report.timing.leaves_out})" if report.timing.leaves_out else ""


def errors(check: Any) -> tuple[str, str]:
    """The largest error in output units, and as a share of the largest value."""
    absolute = "infinite" if check.max_abs_error is None else f"{check.max_abs_error:.3g}"
    return absolute, "infinite" if check.relative_error is None else f"{check.relative_error:.2g}"


def found_text(report: Measured, check: Any) -> str:
    """Whether an output is right, by how much of it."""
    absolute, relative = errors(check)
    extent = f"{check.checked_samples:,} samples checked ({100 * check.checked_share:.3g} % of the output)"
    verdict = "right" if check.passed else "WRONG"
    return f"{verdict}{before(report)}: largest error {absolute} ({relative} relative) against float64; {extent}"
