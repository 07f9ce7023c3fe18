"""Tables to read and to commit: the fastest first, then times, shares and GFLOPS per group, then each row's metrics."""

from __future__ import annotations

from collections.abc import Sequence

from edgeconv.bench.record import BenchRecord
from edgeconv.bench.summary import groups
from edgeconv.core.safe_text import visible
from edgeconv.export import ladders, runs, tables
from edgeconv.export.kinds import AnyRecord, LadderRecord, split
from edgeconv.export.tables import Table
from edgeconv.io.files import utf8
from edgeconv.run.report import RunReport


def export(records: Sequence[AnyRecord]) -> dict[str, bytes]:
    """See Exporter.load."""
    given = split(records)
    parts = [*map(_record, given.benches), *map(_ladder, given.ladders)]
    parts += [_runs(given.runs)] if given.runs else []
    return {".md": utf8("\n".join(parts))}


def every_row(record: LadderRecord) -> str:
    """All rows of a ladder's record as one table."""
    return _draw(ladders.every_row(record), 2)


def _ladder(record: LadderRecord) -> str:
    lines = [f"# {visible(ladders.title(record))}", "", f"{record.created_utc}, {len(record.rows)} rows", ""]
    return "\n".join([*lines, *(_draw(table, 2) for table in ladders.shown(record))])


def _runs(reports: Sequence[RunReport]) -> str:
    lines = [
        f"# {visible(runs.title(reports))}",
        "",
        *(f"- {visible(line)}" for line in runs.machine_lines(reports)),
        "",
    ]
    lines += [f"**Note:** {visible(warning)}.\n" for warning in runs.wrong(reports)]
    shown = (runs.overview(reports), runs.phases(reports), runs.pictures(reports), *runs.cudnn_traces(reports))
    return "\n".join([*lines, *(_draw(table, 2) for table in shown)])


def _record(record: BenchRecord) -> str:
    lines = [visible(f"# Bench '{record.grid.name}': {record.grid.summary}"), ""]
    lines += [f"{record.created_utc}, {len(record.rows)} rows in {record.wall_seconds:.0f} s", ""]
    if not record.complete:
        lines += ["**Stopped before it was complete.**", ""]
    lines += [*(f"- {visible(line)}" for line in tables.machine_lines(record)), ""]
    lines += [f"**Note:** {visible(warning)}.\n" for warning in record.warnings]
    lines += [f"- {visible(line)}." for line in tables.lead(record)]
    lines += ["", _draw(tables.fastest(record), 2)]
    goals = tables.goals(record)
    if goals.rows:
        lines += [_draw(goals, 2)]
    for group in groups(record):
        lines += [f"## {visible(group.title)}", ""]
        lead = group.rows[0].lead_l2_state or "no"
        lines += [
            _draw(tables.over_size(group, f"Median time, {lead} L2 (⚑ bound by the launch)", tables.time_cell), 3)
        ]
        lines += [
            _draw(tables.over_size(group, "Share of the floor (a copy of the fewest bytes)", tables.floor_cell), 3)
        ]
        lines += [_draw(tables.over_size(group, "GFLOPS (nominal)", tables.gflops_cell), 3)]
    traces = tables.cudnn_traces(record)
    lines += ["## What cuDNN ranked and what was measured", ""] if traces else []
    lines += [_draw(table, 3) for table in traces]
    untimed = tables.untimed(record)
    if untimed.rows:
        lines.append(_draw(untimed, 2))
    if record.left_out:
        lines.append(_draw(tables.left_out(record), 2))
    lines += ["## Accounting GPUs", ""]
    lines += [f"- {name.replace('_', ' ')} = {formula}" for name, formula in record.formulas.items()]
    lines.append("")
    lines += [_draw(tables.gpus(group), 3) for group in groups(record)]
    return "\n".join(lines)


def _draw(table: Table, level: int) -> str:
    return f"{'#' * level} {visible(table.title)}\n\n{tables.lines_of(table.header, table.rows)}"
