"""One line per row and L2 state: RFC 4180, UTF-8, numbers in full, units in column names, empty for not measured."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from edgeconv.bench.ab import AbRecord
from edgeconv.bench.ladders.conv import DTYPE, ConvRow
from edgeconv.bench.ladders.gemm import GemmRow
from edgeconv.bench.record import BenchRecord, BenchRow
from edgeconv.core.safe_text import cell
from edgeconv.export.kinds import AnyRecord
from edgeconv.export.ladders import LadderRecord
from edgeconv.export.runs import verdict
from edgeconv.io.files import utf8
from edgeconv.run.report import RunReport

Line = dict[str, Any]
"""Values by column."""

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
    *("host_to_device_seconds", "device_to_host_seconds", "end_to_end_seconds", "flags"),
)


def export(records: Sequence[AnyRecord]) -> dict[str, bytes]:
    """See EXPORTERS; of `bench ab` there are no lines, as a pair of versions is no row."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(HEADER)
    for record in records:
        for line in _lines(record):
            writer.writerow(cell(line.get(name)) for name in HEADER)
    return {".csv": utf8(text.getvalue())}


def _lines(record: AnyRecord) -> Iterator[Line]:
    if isinstance(record, BenchRecord):
        for row in record.rows:
            yield from _bench_lines(record, row)
    elif isinstance(record, RunReport):
        yield _run_line(record)
    elif not isinstance(record, AbRecord):
        yield from (_step_line(record, row) for row in record.rows)


def _bench_lines(record: BenchRecord, row: BenchRow) -> Iterator[Line]:
    """One for each L2 state; one for a row that has no times."""
    facts = record.machine.get(row.device)
    known = _fields(row.case, row, row.check, row.launch, row.bus) | {
        "created_utc": record.created_utc,
        "machine": "" if facts is None else facts.name,
        "entrant": row.candidate,
        "end_to_end_seconds": None if row.end_to_end is None else row.end_to_end.median_seconds,
        "flags": "; ".join(row.machine.flags),
    }
    for state in row.timings or [None]:
        found = (row.timings[state], row.metrics[state]) if state else ()
        yield {**known, **_fields(*found, row.counts), "l2_state": state}


def _step_line(record: LadderRecord, row: ConvRow | GemmRow) -> Line:
    """A step of a ladder, as far as it has the figures."""
    return (
        {"dtype": DTYPE}
        | _fields(row, row.timing)
        | {
            "created_utc": record.created_utc,
            "machine": record.machine.name,
            "device": "cuda",
            "kind": record.kind,
            "entrant": row.step if row.block is None else f"{row.step} {row.block}",
            "status": "measured" if row.right else "wrong",
            "floor_share": getattr(row, "share_of_floor", None),
            "flags": "; ".join(row.machine.flags),
        }
    )


def _run_line(report: RunReport) -> Line:
    """A run, as far as it has the figures: its memory floor is that of a large copy."""
    timing, speed, phases, rates = report.timing, report.speed, report.phases_seconds, report.speed or report.throughput
    parts = (report.input, report.problem, report.method, timing, timing.kernel, rates, report.counts, report.check)
    return _fields(*parts) | {
        "created_utc": report.created_utc,
        "machine": report.device.name,
        "picture": report.input.file,
        "size": max(report.input.height, report.input.width),
        "filter": report.problem.filter.name,
        "device": report.device.kind,
        "kind": report.kind,
        "entrant": report.method.name,
        "status": "wrong" if verdict(report) == "WRONG" else "measured",
        "gflops": None if speed is None else speed.kernel_gflops,
        "large_copy_share": None if rates is None else rates.memory_floor_share,
        "set_up_seconds": phases.get("set_up"),
        "host_to_device_seconds": phases.get("host_to_device"),
        "device_to_host_seconds": phases.get("device_to_host"),
        "end_to_end_seconds": None if timing.end_to_end is None else timing.end_to_end.median_seconds,
    }


def _fields(*parts: object) -> Line:
    """The columns that parts have by their own names; where two have one, the last part's."""
    return {name: getattr(part, name) for part in parts for name in HEADER if hasattr(part, name)}
