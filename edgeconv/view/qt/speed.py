"""Speed of the displayed output, its share of what this machine can do, and its error, as lines of a narrow panel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgeconv.core.units import digits_text, seconds_text
from edgeconv.run.report_text import measured

if TYPE_CHECKING:
    from edgeconv.api.figures import RunFigures


def speed_head(record: RunFigures) -> str:
    """The one figure that stands above all others."""
    if record.speed is not None:
        return f"{digits_text(record.speed.kernel_gflops, 4)} GFLOPS"
    rates = record.throughput
    return "–" if rates is None else f"{digits_text(rates.pixels_per_second / 1e6, 4)} million pixels/s"


def speed_rows(record: RunFigures) -> list[tuple[str, str]]:
    """The report's figures."""
    phases = (f"{name.replace('_', ' ')} {seconds_text(value)}" for name, value in record.phases_seconds.items())
    return [("phases", ", ".join(phases)), *((row.label, row.text) for row in measured(record))]
