"""What records have to say, as headings, sentences and tables: drawn as Markdown (markdown.py), or for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from edgeconv.bench.record import BenchRecord
from edgeconv.bench.summary import groups
from edgeconv.core.units import seconds_text
from edgeconv.export import ladders, runs, surface, tables
from edgeconv.export.kinds import AnyRecord, split
from edgeconv.export.spoken import lead_lines
from edgeconv.export.tables import Table
from edgeconv.run.report import RunReport


@dataclass(frozen=True)
class Heading:
    """Level 1 begins what one record, or all reports of runs, have to say."""

    level: int
    text: str


@dataclass(frozen=True)
class Sentence:
    """A line by itself."""

    text: str
    strong: bool = False


@dataclass(frozen=True)
class Items:
    """Lines that belong together."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Warned:
    """What a reader must know before the figures."""

    text: str


@dataclass(frozen=True)
class Tabled:
    """A table under its own title, which is a heading of a level."""

    table: Table
    level: int


Block = Heading | Sentence | Items | Warned | Tabled


def document(records: Sequence[AnyRecord]) -> Iterator[Block]:
    """All of it, in order."""
    given = split(records)
    for bench in given.benches:
        yield from _record(bench)
    for ladder in given.ladders:
        yield Heading(1, ladders.title(ladder))
        yield Sentence(f"{ladder.created_utc}, {len(ladder.rows)} rows")
        yield from (Tabled(table, 2) for table in ladders.shown(ladder))
    if given.runs:
        yield from _runs(given.runs)


def _runs(reports: Sequence[RunReport]) -> Iterator[Block]:
    yield Heading(1, runs.title(reports))
    yield Items(tuple(runs.machine_lines(reports)))
    yield from map(Warned, runs.wrong(reports))
    shown = (runs.overview(reports), runs.phases(reports), runs.pictures(reports), *runs.cudnn_traces(reports))
    yield from (Tabled(table, 2) for table in shown)


def _record(record: BenchRecord) -> Iterator[Block]:
    yield Heading(1, f"Bench '{record.grid.name}': {record.grid.summary}")
    yield Sentence(f"{record.created_utc}, {len(record.rows)} rows in {seconds_text(record.wall_seconds)}")
    if not record.complete:
        yield Sentence("Stopped before it was complete.", strong=True)
    yield Items(tuple(tables.machine_lines(record)))
    yield from map(Warned, record.warnings)
    yield Items(tuple(f"{line}." for line in lead_lines(record)))
    yield from (Tabled(table, 2) for table in surface.tables_of(record))
    yield Tabled(tables.fastest(record), 2)
    goals = tables.goals(record)
    if goals.rows:
        yield Tabled(goals, 2)
    for group in groups(record):
        yield Heading(2, group.title)
        lead = group.rows[0].lead_l2_state or "no"
        times = f"Median time, {lead} L2 (⚑ bound by the launch)"
        yield Tabled(tables.over_size(group, times, tables.time_cell), 3)
        floors = "Share of the floor (a copy of the fewest bytes)"
        yield Tabled(tables.over_size(group, floors, tables.floor_cell), 3)
        yield Tabled(tables.over_size(group, "GFLOPS (nominal)", tables.gflops_cell), 3)
    traces = tables.cudnn_traces(record)
    if traces:
        yield Heading(2, "What cuDNN ranked and what was measured")
    yield from (Tabled(table, 3) for table in traces)
    untimed = tables.untimed(record)
    if untimed.rows:
        yield Tabled(untimed, 2)
    if record.left_out:
        yield Tabled(tables.left_out(record), 2)
    yield Heading(2, "Metrics")
    yield Items(tuple(f"{name.replace('_', ' ')} = {formula}" for name, formula in record.formulas.items()))
    yield from (Tabled(tables.metrics(group), 3) for group in groups(record))
