"""One line a row and L2 state: RFC 4180, UTF-8, numbers in full, units in the column names, empty for not measured."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from edgeconv.bench.record import Record, Row
from edgeconv.core.safe_text import cell
from edgeconv.export import ladders, runs
from edgeconv.export.kinds import split
from edgeconv.io.files import utf8

WORK = (
    "picture",
    "size",
    "height",
    "width",
    "stride",
    "dtype",
    "filter",
    "channels",
    "padding",
    "border",
    "output_mode",
)
ENTRANT = ("device", "kind", "entrant", "status", "reason", "differs", "launch_bound")
SERIES = ("median_seconds", "p10_seconds", "p90_seconds", "min_seconds", "n", "stopped_because")
ACCOUNT = (
    "gflops",
    "useful_gflops",
    "gigabytes_per_second",
    "moved_gigabytes_per_second",
    "floor_share",
    "large_copy_share",
    "roofline_share",
    "bound_by",
)
COUNTS = ("nominal_flops", "useful_flops", "fewest_bytes", "intensity_flops_per_byte")
OWN = ("moved_bytes", "workspace_bytes", "launches", "set_up_seconds", "cold_seconds")
CHECK = ("max_abs_error", "relative_error", "checked_share")
LAUNCH = ("enqueue_seconds", "stream_seconds")
BUS = ("host_to_device_seconds", "device_to_host_seconds")

HEADER = (
    "created_utc",
    "machine",
    *WORK,
    *ENTRANT,
    "l2_state",
    *SERIES,
    *ACCOUNT,
    *COUNTS,
    *OWN,
    *CHECK,
    *LAUNCH,
    *BUS,
    "end_to_end_seconds",
    "flags",
)


def export(records: Sequence[Record]) -> dict[str, bytes]:
    """See Exporter.load."""
    text = io.StringIO()
    writer = csv.writer(text)

    def write(*values: Any) -> None:
        writer.writerow(map(cell, values))

    write(*HEADER)
    given = split(records)
    for record in given.benches:
        for row in record["rows"]:
            machine = record["machine"].get(row["device"], {}).get("name", "")
            for state in row["timings"] or [None]:
                write(record["created_utc"], machine, *_values(row, state))
    for record in given.ladders:
        for step in record["rows"]:
            row = ladders.as_row(record, step)
            write(record["created_utc"], record["machine"]["name"], *_values(row, step["l2_state"]))
    for report in given.runs:
        state = report["timing"]["l2_state"]
        write(report["created_utc"], report["device"]["name"], *_values(runs.as_row(report), state))
    return {".csv": utf8(text.getvalue())}


def _values(row: Row, state: str | None) -> list[Any]:
    series = row["timings"].get(state, {})
    account = row["accounts"].get(state, {})
    end_to_end = row["end_to_end"] or {}

    def several(names: Sequence[str], source: dict[str, Any] | None) -> list[Any]:
        return [(source or {}).get(name) for name in names]

    return [
        *several(WORK, row["work"]),
        *several(ENTRANT, row),
        state,
        *several(SERIES, series),
        *several(ACCOUNT, account),
        *several(COUNTS, row["counts"]),
        *several(OWN, row),
        *several(CHECK, row["check"]),
        *several(LAUNCH, row["launch"]),
        *several(BUS, row["bus"]),
        end_to_end.get("median_seconds"),
        "; ".join(row["machine"]["flags"]),
    ]
