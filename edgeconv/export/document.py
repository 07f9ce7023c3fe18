"""What records have to say: for each a title, a summary, at most six plots and four tables. Each format draws these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from edgeconv.bench.ab import AbRecord
from edgeconv.bench.goals import outcomes
from edgeconv.bench.record import BenchRecord
from edgeconv.core.records import plain
from edgeconv.core.units import counted, digits_text, seconds_text
from edgeconv.export import ab, figures, ladders, runs, surface, tables
from edgeconv.export.drawing import Drawing
from edgeconv.export.kinds import AnyRecord
from edgeconv.export.ladders import LadderRecord
from edgeconv.export.spoken import lead_lines
from edgeconv.export.tables import Table
from edgeconv.run.report import RunReport

MOST_LEADING = 12
"""Lines of a summary about kinds of cases; the table has all."""


@dataclass(frozen=True)
class Document:
    """One record, or all reports of runs together."""

    title: str
    facts: str
    """When it was measured, and how much."""
    summary: tuple[str, ...]
    tables: tuple[Table, ...]
    drawings: tuple[Drawing, ...] = ()
    warnings: tuple[str, ...] = ()
    machine: tuple[str, ...] = ()
    formulas: tuple[str, ...] = ()
    reports: tuple[RunReport, ...] = ()
    """Whose pictures a page may show."""


def documents(records: Sequence[AnyRecord]) -> Iterator[Document]:
    """In order; all reports of runs are one, the last."""
    reports = []
    for record in records:
        if isinstance(record, RunReport):
            reports.append(record)
        elif isinstance(record, BenchRecord):
            yield _of_bench(record)
        elif isinstance(record, AbRecord):
            yield _of_ab(record)
        else:
            yield _of_ladder(record)
    if reports:
        yield _of_runs(reports)


def _of_bench(record: BenchRecord) -> Document:
    lines = lead_lines(record)
    more = len(lines) - MOST_LEADING
    if more > 0:
        lines = [*lines[:MOST_LEADING], f"{counted(more, 'more kind')} of cases in the table below"]
    drawn, judged = surface.tables_of(record), outcomes(record)
    if judged:
        lines.append(f"{sum(outcome.met for outcome in judged)} of {counted(len(judged), 'goal')} met")
    shown = drawn or [tables.fastest(record), tables.goals(record), tables.every_row(record)]
    stopped = () if record.complete else ("Stopped before it was complete",)
    return Document(
        title=f"edgeconv bench '{record.grid.name}': {record.grid.summary}",
        facts=f"{record.created_utc}, {len(record.rows):,} rows in {seconds_text(record.wall_seconds)}; "
        "ratios compare medians of interleaved runs",
        summary=() if drawn else tuple(lines),
        tables=_not_empty(*shown, tables.left_out(record)),
        drawings=tuple(figures.of_bench(record)),
        warnings=(*stopped, *record.warnings),
        machine=tuple(machine_lines(record)),
        formulas=tuple(f"{name.replace('_', ' ')} = {formula}" for name, formula in record.formulas.items()),
    )


def _of_ladder(record: LadderRecord) -> Document:
    return Document(
        title=ladders.title(record),
        facts=f"{record.created_utc}, {len(record.rows)} rows",
        summary=tuple(ladders.lead(record)),
        tables=_not_empty(ladders.by_size(record), ladders.every_row(record)),
        drawings=tuple(figures.of_ladder(record)),
    )


def _of_ab(record: AbRecord) -> Document:
    return Document(
        title=f"edgeconv bench ab: {record.b} beside {record.a}",
        facts=record.created_utc,
        summary=(ab.summary(record, ab.MARGIN),),
        tables=(ab.table(record, ab.MARGIN),),
    )


def _of_runs(reports: Sequence[RunReport]) -> Document:
    first = min(report.created_utc for report in reports)
    return Document(
        title=runs.title(reports),
        facts=f"{counted(len(reports), 'report')}, {first}{' and later' if len(reports) > 1 else ''}",
        summary=tuple(runs.lead(reports)),
        tables=_not_empty(runs.overview(reports), runs.phases(reports)),
        drawings=tuple(figures.of_runs(reports)),
        warnings=tuple(runs.wrong(reports)),
        machine=tuple(runs.machine_lines(reports)),
        reports=tuple(reports),
    )


def machine_lines(record: BenchRecord) -> list[str]:
    """Where and with what the record was measured."""
    lines = []
    for device, facts in record.machine.items():
        roof = record.roofs[device]
        copy, fma = (digits_text(rate / 1e9, 4) for rate in (roof.copy_bytes_per_second, roof.fma_flops_per_second))
        rest = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in plain(facts).items() if name != "name")
        lines.append(f"{device.upper()}: {facts.name} ({rest})")
        lines.append(
            f"{device.upper()} roof, measured in this run: copy {copy} GB/s, "
            f"float32 multiply-adds {fma} GFLOPS ({roof.how})"
        )
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    return [*lines, f"edgeconv {record.edgeconv_version}; {versions}"]


def _not_empty(*found: Table) -> tuple[Table, ...]:
    return tuple(tables.without_empty_columns(table) for table in found if table.rows)
