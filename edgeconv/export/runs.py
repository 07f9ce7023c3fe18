"""Reports of `edgeconv run`, beside each other: where a run's time went, how fast the kernel was, how near the roof.

They stand in the same files as records of `edgeconv bench` do, all of them together in one part. A figure that a report
lacks (no samples were asked for, no check) is shown as such.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from edgeconv.core.cost import share_of_limit
from edgeconv.core.units import counted, digits_text, seconds_text
from edgeconv.export.tables import NOTHING, Table, percent
from edgeconv.methods.options import Options
from edgeconv.run.report import PHASES, InputPart, OutputPart, ProblemPart, RunReport
from edgeconv.run.report_text import chain_text, mask_text, summary

MOST_LEADING = 8
"""Runs that a summary of one screen has room for."""


def labels(reports: Sequence[RunReport]) -> list[str]:
    """A name for each: device and method, and whatever else tells them apart; numbered where nothing does."""
    parts = [_parts(report) for report in reports]
    if len({part[-1] for part in parts}) == len({part[0] for part in parts}):
        parts = [part[:-1] for part in parts]  # one machine for each kind of device: its name adds nothing
    varying = [column for column, values in enumerate(zip(*parts, strict=True)) if len(set(values)) > 1]
    names = [
        " ".join([*part[:2], *(part[column] for column in varying if column > 1 and part[column])]) for part in parts
    ]
    return [name if names.count(name) == 1 else f"{name} #{number}" for number, name in enumerate(names, 1)]


def title(reports: Sequence[RunReport]) -> str:
    """What was run, in a few words."""
    return "edgeconv run: " + ", ".join(dict.fromkeys(Path(report.input.file).name for report in reports))


def lead(reports: Sequence[RunReport]) -> list[str]:
    """Of one run what was written, how fast and whether it is right; of several a line each, the fastest first."""
    if len(reports) == 1:
        return [f"{row.label[0].upper()}{row.label[1:]}: {row.text}" for row in summary(reports[0])]
    lines = []
    for name, report in sorted(zip(labels(reports), reports, strict=True), key=lambda named: -_gflops(named[1])):
        _, speed, verdict, *_ = summary(report)
        lines.append(f"{name}: {speed.text}; {verdict.label}")
    more = len(lines) - MOST_LEADING
    return lines if more <= 0 else [*lines[:MOST_LEADING], f"{counted(more, 'more run')} in the table below"]


def overview(reports: Sequence[RunReport]) -> Table:
    """One line per run: whether it is right, the kernel's time and what it means."""
    rows = []
    for name, report in zip(labels(reports), reports, strict=True):
        speed, series, rates = report.speed, report.timing.kernel, report.speed or report.throughput
        median = NOTHING if series is None else seconds_text(series.median_seconds)
        bound = NOTHING if speed is None or speed.bound_by is None else speed.bound_by
        cells = (
            _rate(None if speed is None else speed.kernel_gflops),
            _rate(None if speed is None else speed.end_to_end_gflops),
            _rate(None if rates is None else rates.gigabytes_per_second),
            percent(share_of_limit(None if rates is None else rates.memory_floor_share)),
            percent(share_of_limit(None if speed is None else speed.roofline_share)),
        )
        whole, problem = seconds_text(report.whole_run_seconds), report.problem
        rules = f"padding {problem.padding} {problem.border}, output {problem.output_mode}{mask_text(problem)}"
        filter = f"{chain_text(problem) or problem.filter.name}, {problem.channels}, stride {problem.stride}"
        more = (bound, report.input.file, _size(report.input), filter, rules, _size(report.output))
        rows.append((_verdict(report), name, median, *cells, whole, *more))
    header = ("verdict", "run", "kernel", "GFLOPS", "end to end GFLOPS", "GB/s", "of copy speed", "of roofline")
    more = ("bound by", "picture", "size", "filter", "rules", "output")
    return Table("Runs", (*header, "whole run", *more), tuple(rows))


def phases(reports: Sequence[RunReport]) -> Table:
    """Seconds of each phase of the one pass whose output was saved; those that no run had are left out."""
    had = [phase for phase in PHASES if any(phase in report.phases_seconds for report in reports)]
    rows = []
    for name, report in zip(labels(reports), reports, strict=True):
        found = report.phases_seconds
        cells = (seconds_text(found[phase]) if phase in found else NOTHING for phase in had)
        rows.append((name, seconds_text(report.whole_run_seconds), *cells))
    return Table("Where the time went", ("run", "whole run", *(phase.replace("_", " ") for phase in had)), tuple(rows))


def machine_lines(reports: Sequence[RunReport]) -> list[str]:
    """Where and with what they were measured, each machine once."""
    lines = []
    for report in reports:
        versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
        lines.append(f"{report.device.name}; edgeconv {report.edgeconv_version}; {versions}")
        rates = report.speed or report.throughput
        roof = None if rates is None else rates.roof
        if roof is not None:
            lines.append(f"Roof of {report.device.name}, measured anew in each run: {roof.how}")
    return list(dict.fromkeys(lines))


def wrong(reports: Sequence[RunReport]) -> list[str]:
    """A sentence for each run whose output is not the oracle's."""
    named = zip(labels(reports), reports, strict=True)
    return [f"{name}: the output is not what the float64 oracle gives" for name, report in named if is_wrong(report)]


def is_wrong(report: RunReport) -> bool:
    """Whether it was checked and is not what the oracle gives."""
    return report.check is not None and not report.check.passed


def _verdict(report: RunReport) -> str:
    if report.check is None or not report.check.checked_samples:
        return "unchecked"
    return "right" if report.check.passed else "WRONG"


def _parts(report: RunReport) -> tuple[str, ...]:
    """Device and method, then what may tell runs apart, from what matters most."""
    problem, options = report.problem, report.method.options
    return (
        report.device.kind,
        report.method.name,
        f"s{problem.stride}",
        _size(report.input),
        problem.filter.name,
        _chain_settings(problem),
        problem.channels,
        problem.output_mode,
        mask_text(problem).removeprefix(", "),
        problem.border,
        Path(report.input.file).name,
        options.math,
        options.gemm,
        f"block {options.block}" if options.block != Options.block else "",
        report.device.name,
    )


def _chain_settings(problem: ProblemPart) -> str:
    """What tells two runs of one chain apart: `l2 50-150`; nothing of a single filter."""
    chain = problem.filter.chain
    if chain is None:
        return ""
    limits = "" if chain.low is None or chain.high is None else f" {chain.low:g}-{chain.high:g}"
    return f"{chain.gradient}{limits}"


def _gflops(report: RunReport) -> float:
    return 0.0 if report.speed is None else report.speed.kernel_gflops


def _rate(value: float | None) -> str:
    return NOTHING if value is None else digits_text(value, 4)


def _size(picture: InputPart | OutputPart) -> str:
    return f"{picture.width}×{picture.height}×{picture.channels} {picture.dtype}"
