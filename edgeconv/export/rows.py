"""Every row of any record as a line of values: what a spreadsheet holds, and a table shows by `COLUMNS`.

A value has the name that its record gives it. A table's line has more than a spreadsheet's: who is fastest at its case,
or what tells a run from others.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from edgeconv.api.figures import PHASES, share_of_limit
from edgeconv.bench.ab import AbRecord
from edgeconv.bench.ladders.base import LadderRecord, LadderRow
from edgeconv.bench.record import BenchRecord, BenchRow
from edgeconv.bench.summary import competes, fastest, groups, median
from edgeconv.core.text import cell, counted, seconds_text, share_text
from edgeconv.export.schemas import AnyRecord
from edgeconv.export.tables import median_and_spread, rate, shown, times, without_empty_columns
from edgeconv.io.files import utf8
from edgeconv.methods.options import Options
from edgeconv.page import Table
from edgeconv.run.report import RunReport
from edgeconv.run.report_text import chain_text

Line = dict[str, Any]
"""Values by name."""

HEADER = (
    *("created_utc", "machine", "picture", "size", "height", "width", "stride", "dtype", "filter", "channels"),
    *("padding", "border", "output_mode", "threshold"),
    *("device", "kind", "entrant", "status", "reason", "differs", "launch_bound", "l2_state"),
    *("median_seconds", "p10_seconds", "p90_seconds", "min_seconds", "n", "stopped_because"),
    *("gflops", "useful_gflops", "gigabytes_per_second", "moved_gigabytes_per_second"),
    *("floor_share", "large_copy_share", "roofline_share", "bound_by"),
    *("nominal_flops", "useful_flops", "fewest_bytes", "intensity_flops_per_byte"),
    *("moved_bytes", "workspace_bytes", "launches", "set_up_seconds", "cold_seconds"),
    *("max_abs_error", "relative_error", "checked_share", "enqueue_seconds", "stream_seconds"),
    *("end_to_end_seconds", "flags"),
    *("end_to_end_gflops", "whole_run_seconds", "gain", "share_of_vendor"),
)
"""Of a spreadsheet."""

Columns = dict[str, tuple[str, Callable[[Any], str]]]
"""By their headings: which value, and how it is written."""

COLUMNS: Columns = {
    "verdict": ("verdict", str),
    "× fastest": ("behind", times),
    "who": ("entrant", str),
    "median": ("series", median_and_spread),
    "of copy speed": ("floor_share", share_text),
    "size": ("size", str),
    "case": ("case", str),
    "nominal GFLOPS": ("gflops", rate),
    "GB/s": ("gigabytes_per_second", rate),
    "why not, or what differs": ("why", str),
    "gain": ("gain", times),
    "of cuBLAS": ("share_of_vendor", share_text),
    "of roofline": ("roofline_share", share_text),
    "bound by": ("bound_by", str),
    "nominal GFLOPS, end to end": ("end_to_end_gflops", rate),
    "whole run": ("whole_run_seconds", seconds_text),
    "samples": ("n", str),
    "L2": ("l2_state", str),
    "relative error": ("relative_error", "{:.1g}".format),
    "picture": ("picture", str),
}
"""Of a table. A page shows the first nine that a record has."""

PHASE_COLUMNS: Columns = {
    "run": ("entrant", str),
    "whole run": ("whole_run_seconds", seconds_text),
    **{phase.replace("_", " "): (f"{phase}_seconds", seconds_text) for phase in PHASES},
}
"""Seconds of each phase of the one pass whose output was saved."""

TOLD_BY = (
    *("stride", "size", "dtype", "filter", "channels", "output_mode", "threshold", "border", "picture"),
    *("math", "gemm", "block", "machine"),
)
"""What tells runs of a method apart, from what matters most."""


# --- spreadsheets -----------------------------------------------------------------------------------------------------


def export(records: Sequence[AnyRecord]) -> dict[str, bytes]:
    """See EXPORTERS: RFC 4180, UTF-8, numbers in full, units in column names, empty for not measured."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(HEADER)
    for record in records:
        writer.writerows([cell(line.get(name)) for name in HEADER] for line in lines_of(record))
    return {".csv": utf8(text.getvalue())}


def lines_of(record: AnyRecord) -> Iterator[Line]:
    """A line for each row and L2 state; none for `bench ab`, whose rows compare two versions."""
    if isinstance(record, BenchRecord):
        yield from (_bench_line(record, row, state) for row in record.rows for state in row.timings or [None])
    elif isinstance(record, RunReport):
        yield run_line(record)
    elif not isinstance(record, AbRecord):
        yield from (_step_line(record, row) for row in record.rows)


def _bench_line(record: BenchRecord, row: BenchRow, state: Any) -> Line:
    parts = (row.timings[state], row.metrics[state]) if state else ()
    return _line(
        *(row.case, row, row.check, row.launch, *parts, row.counts),
        created_utc=record.created_utc,
        machine=getattr(record.machine.get(row.device), "name", ""),
        entrant=row.candidate,
        l2_state=state,
        series=parts[0] if parts else None,
        flags="; ".join(row.machine.flags),
    )


def _step_line(record: LadderRecord, row: LadderRow) -> Line:
    """A step of a ladder, as far as it has the figures."""
    return _line(
        *(row, row.timing),
        created_utc=record.created_utc,
        machine=record.machine.name,
        device="cuda",
        kind=record.kind,
        entrant=row.step if row.block is None else f"{row.step} {row.block}",
        status="measured" if row.right else "wrong",
        verdict="right" if row.right else "WRONG",
        series=row.timing,
        case=row.case,
        l2_state="cold",
        **{"floor_share" if record.kind == "bench conv" else "share_of_vendor": row.share},
        flags="; ".join(row.machine.flags),
    )


def run_line(report: RunReport) -> Line:
    """A run, as far as it has the figures: its memory floor is that of a large copy."""
    problem, timing, rates = report.problem, report.timing, report.speed or report.throughput
    return _line(
        *(report, report.input, problem, report.method, timing, timing.kernel, rates, report.counts, report.check),
        machine=report.device.name,
        picture=report.input.file,
        size=max(report.input.height, report.input.width),
        filter=problem.filter.name,
        device=report.device.kind,
        entrant=report.method.name,
        status="wrong" if verdict(report) == "WRONG" else "measured",
        verdict=verdict(report),
        series=timing.kernel,
        case=f"{chain_text(problem) or problem.filter.name}, {problem.channels}, stride {problem.stride}",
        gflops=getattr(rates, "kernel_gflops", None),
        large_copy_share=getattr(rates, "memory_floor_share", None),
        end_to_end_seconds=getattr(timing.end_to_end, "median_seconds", None),
        **{f"{phase}_seconds": seconds for phase, seconds in report.phases_seconds.items()},
    )


def _line(*parts: object, **own: Any) -> Line:
    """The columns that parts have by their own names, where two have one the last part's; and those of the line."""
    return {name: getattr(part, name) for part in parts for name in HEADER if hasattr(part, name)} | own


# --- tables -----------------------------------------------------------------------------------------------------------


def table_of(title: str, lines: Iterable[Line], columns: Columns = COLUMNS, folded: bool = False) -> Table:
    """The columns of which any line has something."""
    rows = tuple(tuple(shown(line.get(name), text) for name, text in columns.values()) for line in lines)
    return without_empty_columns(Table(title, tuple(columns), rows, folded))


def every_row(record: BenchRecord | LadderRecord) -> Table:
    """Of a ladder in the order of the record; of a bench everybody at each case, the fastest first."""
    lines = list(_ranked(record) if isinstance(record, BenchRecord) else lines_of(record))
    return table_of(f"Everybody at each case: {counted(len(lines), 'row')}", lines, folded=True)


def _ranked(record: BenchRecord) -> Iterator[Line]:
    """Last those that got no time, and why."""
    for group in groups(record):
        for size in group.sizes:
            rows = sorted((row for row in group.rows if row.case.size == size), key=median)
            best = fastest(row for row in rows if row.kind != "copy" and competes(row))
            for row in rows:
                line = _bench_line(record, row, row.lead_l2_state)
                standing = "limit" if row.kind == "copy" else "fastest" if row is best else "right"
                yield line | {
                    "verdict": standing if row.timings else row.status,
                    "behind": median(row) / median(best) if best and row.timings else None,
                    "case": group.title,
                    "gflops": None if row.kind == "copy" else line.get("gflops"),
                    "why": row.reason or row.differs or "",
                    "bound_by": "launch" if row.launch_bound else line.get("bound_by"),
                }


# --- runs -------------------------------------------------------------------------------------------------------------


def verdict(report: RunReport) -> str:
    """Whether it was checked and is what the oracle gives."""
    if report.check is None or not report.check.checked_samples:
        return "unchecked"
    return "right" if report.check.passed else "WRONG"


def labels(reports: Sequence[RunReport]) -> list[str]:
    """A name for each: device and method, and whatever else tells them apart; numbered where nothing does."""
    lines = []
    for report in reports:
        filter = chain_text(report.problem) or report.problem.filter.name
        options = dict(vars(report.method.options).items() - vars(Options()).items())
        lines.append(run_line(report) | options | {"picture": Path(report.input.file).name, "filter": filter})
    apart = [name for name in TOLD_BY if len({line.get(name) for line in lines}) > 1]
    if len({line["machine"] for line in lines}) == len({line["device"] for line in lines}):
        apart = [name for name in apart if name != "machine"]  # one for each kind of device: its name adds nothing
    names = []
    for line in lines:
        told = (f"{name.replace('_', ' ')} {line[name]}" for name in apart if line.get(name) is not None)
        names.append(" ".join((line["device"], line["entrant"], *told)))
    return [name if names.count(name) == 1 else f"{name} #{number}" for number, name in enumerate(names, 1)]


def run_tables(reports: Sequence[RunReport]) -> list[Table]:
    """One line per run: whether it is right, the kernel's time and what it means; and where the time went."""
    lines = []
    for name, report in zip(labels(reports), reports, strict=True):
        line = run_line(report)
        near, roofline = map(share_of_limit, (line["large_copy_share"], line.get("roofline_share")))
        lines.append(line | {"entrant": name, "floor_share": near, "roofline_share": roofline})
    return [table_of("Runs", lines), table_of("Where the time went", lines, PHASE_COLUMNS)]
