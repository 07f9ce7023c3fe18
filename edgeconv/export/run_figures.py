"""Drawings of reports of `edgeconv run`: where the time goes, how many GFLOPS, and what share of the roof."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from edgeconv.core.cost import share_of_limit
from edgeconv.core.units import digits_text, seconds_text, share_text
from edgeconv.export.colours import INK, SERIES
from edgeconv.export.figures import Drawing, ink, legend, literal, stacked_bars
from edgeconv.export.runs import labels
from edgeconv.run.report import PHASES, RunReport, SpeedPart

BAR = 0.38
"""Height of each of two bars of a run."""


def draw_runs(reports: Sequence[RunReport]) -> list[Drawing]:
    """Every drawing that the reports have figures for."""
    return [drawing for plot in (phases, gflops, shares) for drawing in plot(reports)]


def phases(reports: Sequence[RunReport]) -> list[Drawing]:
    """Each run's phases as shares of its whole."""
    bars = []
    for name, report in zip(labels(reports), reports, strict=True):
        found = report.phases_seconds
        seconds = {phase.replace("_", " "): found[phase] for phase in PHASES if phase in found}
        bars.append((name, seconds, seconds_text(report.whole_run_seconds)))
    caption = "The one pass whose output was saved, from the start of the process to the written file."
    return [Drawing("run_phases", "Where the time goes", caption, stacked_bars(bars))]


def gflops(reports: Sequence[RunReport]) -> list[Drawing]:
    """GFLOPS of the kernel and end to end."""
    timed = _timed(reports)
    if not timed:
        return []
    figure, axis = _bars([name for name, _ in timed])
    # Points, for a bar's length means nothing on a logarithmic axis.
    # Rings around them, for on a CPU both are the same.
    fields = (("kernel_gflops", "kernel", "full", 5), ("end_to_end_gflops", "end to end", "none", 9))
    for colour, (field, label, fill, size) in zip(SERIES, fields, strict=False):
        values = [getattr(speed, field) for _, speed in timed]
        axis.plot(values, range(len(values)), "o", color=colour, label=label, fillstyle=fill, markersize=size)
        for place, value in enumerate(values):
            text = digits_text(value, 3)
            axis.annotate(text, (value, place), (6, 3), textcoords="offset points", fontsize=7, color=INK)
    axis.set_xscale("log")
    axis.margins(x=0.15)
    axis.set_xlabel("GFLOPS (nominal)")
    legend(figure, [axis])
    caption = "Nominal GFLOPS, medians; end to end: host array in, host array out. The axis is logarithmic."
    return [Drawing("run_gflops", "GFLOPS", caption, figure)]


def shares(reports: Sequence[RunReport]) -> list[Drawing]:
    """Shares of the memory floor and of the roofline, where the roof was measured."""
    timed = [
        (name, speed)
        for name, speed in _timed(reports)
        if share_of_limit(speed.roofline_share) is not None and share_of_limit(speed.memory_floor_share) is not None
    ]
    if not timed:
        return []
    figure, axis = _bars([name for name, _ in timed])
    fields = (("memory_floor_share", "of the memory floor"), ("roofline_share", "of the roofline"))
    for offset, (field, label) in enumerate(fields):
        values = [getattr(speed, field) for _, speed in timed]
        _row_of_bars(axis, values, offset, label, [share_text(value) for value in values])
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axis.set_xlabel("share of what this machine was measured to do")
    legend(figure, [axis])
    caption = "Runs that the measured roof does not limit, as their data lie in a cache, have no bars."
    return [Drawing("run_roof", "Share of the roof", caption, figure)]


def _timed(reports: Sequence[RunReport]) -> list[tuple[str, SpeedPart]]:
    named = zip(labels(reports), reports, strict=True)
    return [(name, report.speed) for name, report in named if report.speed is not None]


def _bars(names: Sequence[str]) -> tuple[Figure, Axes]:
    """Axes with a place for each run, the first on top."""
    figure = Figure(figsize=(7.2, 1.4 + 0.42 * len(names)), layout="constrained")
    axis = figure.add_subplot()
    ink(axis)
    axis.set_yticks(range(len(names)), [literal(name) for name in names], fontsize=8)
    axis.invert_yaxis()
    axis.grid(True, axis="x", alpha=0.25)
    return figure, axis


def _row_of_bars(axis: Axes, values: Sequence[float], offset: int, label: str, texts: Sequence[str]) -> None:
    places = [number + (offset - 0.5) * BAR for number in range(len(values))]
    bars = axis.barh(places, values, height=BAR, color=SERIES[offset], label=label)
    axis.bar_label(bars, texts, fontsize=7, padding=3, color=INK)
    axis.margins(x=0.12)
