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
from edgeconv.export.runs import is_wrong
from edgeconv.io.files import utf8
from edgeconv.run.report import RunReport

Line = dict[str, Any]
"""Values by column."""

SHAPE = ("picture", "size", "height", "width", "stride", "dtype", "filter", "channels")
CASE = (*SHAPE, "padding", "border", "output_mode", "threshold")
CANDIDATE = ("device", "kind", "entrant", "status", "reason", "differs", "launch_bound")
SERIES = ("median_seconds", "p10_seconds", "p90_seconds", "min_seconds", "n", "stopped_because")
RATES = ("gflops", "useful_gflops", "gigabytes_per_second", "moved_gigabytes_per_second")
METRICS = (*RATES, "floor_share", "large_copy_share", "roofline_share", "bound_by")
COUNTS = ("nominal_flops", "useful_flops", "fewest_bytes", "intensity_flops_per_byte")
OWN = ("moved_bytes", "workspace_bytes", "launches", "set_up_seconds", "cold_seconds")
CHECK = ("max_abs_error", "relative_error", "checked_share")
LAUNCH = ("enqueue_seconds", "stream_seconds")
BUS = ("host_to_device_seconds", "device_to_host_seconds")
HEADER = (
    *("created_utc", "machine", *CASE, *CANDIDATE, "l2_state", *SERIES),
    *(*METRICS, *COUNTS, *OWN, *CHECK, *LAUNCH, *BUS, "end_to_end_seconds", "flags"),
)


def export(records: Sequence[AnyRecord]) -> dict[str, bytes]:
    """See Exporter.load; of `bench ab` there are no lines, as a pair of versions is no row."""
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
    for state in row.timings or [None]:
        yield {
            "created_utc": record.created_utc,
            "machine": "" if facts is None else facts.name,
            **_some(CASE, row.case),
            **_some(CANDIDATE, row),
            "entrant": row.candidate,
            "l2_state": state,
            **_some(SERIES, row.timings.get(state) if state else None),
            **_some(METRICS, row.metrics.get(state) if state else None),
            **_some(COUNTS, row.counts),
            **_some(OWN, row),
            **_some(CHECK, row.check),
            **_some(LAUNCH, row.launch),
            **_some(BUS, row.bus),
            "end_to_end_seconds": None if row.end_to_end is None else row.end_to_end.median_seconds,
            "flags": "; ".join(row.machine.flags),
        }


def _step_line(record: LadderRecord, row: ConvRow | GemmRow) -> Line:
    """A step of a ladder, as far as it has the figures."""
    return {
        "created_utc": record.created_utc,
        "machine": record.machine.name,
        **_some(("size", "stride", "gflops"), row),
        "dtype": getattr(row, "dtype", DTYPE),
        "device": "cuda",
        "kind": record.kind,
        "entrant": row.step if row.block is None else f"{row.step} {row.block}",
        "status": "measured" if row.right else "wrong",
        "l2_state": row.l2_state,
        **_some(SERIES, row.timing),
        "floor_share": getattr(row, "share_of_floor", None),
        "relative_error": row.relative_error,
        "flags": "; ".join(row.machine.flags),
    }


def _run_line(report: RunReport) -> Line:
    """A run, as far as it has the figures: its memory floor is that of a large copy."""
    timing, speed, phases = report.timing, report.speed, report.phases_seconds
    rates = speed or report.throughput
    return {
        "created_utc": report.created_utc,
        "machine": report.device.name,
        "picture": report.input.file,
        "size": max(report.input.height, report.input.width),
        **_some(("height", "width", "dtype"), report.input),
        **_some(("stride", "channels", "padding", "border", "output_mode", "threshold"), report.problem),
        "filter": report.problem.filter.name,
        "device": report.device.kind,
        "kind": report.kind,
        "entrant": report.method.name,
        "status": "wrong" if is_wrong(report) else "measured",
        "l2_state": timing.l2_state,
        **_some(SERIES, timing.kernel),
        **_some(METRICS, rates),
        "gflops": None if speed is None else speed.kernel_gflops,
        "large_copy_share": None if rates is None else rates.memory_floor_share,
        **_some(COUNTS, report.counts),
        **_some(("moved_bytes", "workspace_bytes", "launches"), report.method),
        "set_up_seconds": phases.get("set_up"),
        "cold_seconds": timing.cold_seconds,
        **_some(CHECK, report.check),
        "host_to_device_seconds": phases.get("host_to_device"),
        "device_to_host_seconds": phases.get("device_to_host"),
        "end_to_end_seconds": None if timing.end_to_end is None else timing.end_to_end.median_seconds,
    }


def _some(names: Sequence[str], part: object) -> Line:
    """The fields that a part has of `names`."""
    return {name: getattr(part, name, None) for name in names}
