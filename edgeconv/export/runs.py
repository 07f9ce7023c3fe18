"""Reports of `edgeconv run`, beside each other: how fast the kernel was, how near the roof, and where the time went.

They stand in the same files as records of `edgeconv bench` do, all of them together in one part. A figure that a report
lacks (no samples were asked for, no check) is shown as such.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from edgeconv.export.tables import Table, seconds
from edgeconv.methods.options import Options
from edgeconv.run.report import PHASES, InputPart, OutputPart, RunReport
from edgeconv.run.report_text import chain_text, mask_text


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


def phases(reports: Sequence[RunReport]) -> Table:
    """Seconds of each phase of the one pass whose output was saved."""
    named = zip(labels(reports), reports, strict=True)
    rows = [
        (name, *map(seconds, (report.whole_run_seconds, *map(report.phases_seconds.get, PHASES))))
        for name, report in named
    ]
    header = ("run", "whole run", *(phase.replace("_", " ") for phase in PHASES))
    return Table("Where the time went", header, tuple(rows))


def machine_lines(reports: Sequence[RunReport]) -> list[str]:
    """Where and with what they were measured, each machine once."""
    lines = []
    for report in reports:
        versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
        lines.append(f"{report.device.name}; edgeconv {report.edgeconv_version}; {versions}")
    return list(dict.fromkeys(lines))


def verdict(report: RunReport) -> str:
    """Whether it was checked and is what the oracle gives."""
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
        size_text(report.input),
        chain_text(problem) or problem.filter.name,
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


def size_text(picture: InputPart | OutputPart) -> str:
    """`640×480×3 uint8`."""
    return f"{picture.width}×{picture.height}×{picture.channels} {picture.dtype}"
