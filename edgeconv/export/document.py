"""What records have to say: for each a title, a summary, at most six plots and four tables. Each format draws these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from edgeconv.bench.ab import AbRecord
from edgeconv.bench.ladders.base import LadderRecord
from edgeconv.bench.record import BenchRecord
from edgeconv.core.records import plain
from edgeconv.core.text import counted, digits_text, local_time_text, seconds_text
from edgeconv.export import figures, ladders, rows, tables
from edgeconv.export.drawing import Drawing
from edgeconv.export.schemas import AnyRecord
from edgeconv.export.tables import tally
from edgeconv.page import Table
from edgeconv.run.report import RunReport
from edgeconv.run.report_text import summary


@dataclass(frozen=True)
class Document:
    """One record, or all reports of runs together."""

    title: str
    facts: str
    """When it was measured, and how much."""
    summary: Sequence[str]
    tables: Sequence[Table]
    drawings: Sequence[Drawing] = ()
    warnings: Sequence[str] = ()
    notes: dict[str, Sequence[str]] = field(default_factory=dict)
    """Lines by their title."""
    reports: Sequence[RunReport] = ()
    """Whose pictures a page may show."""


def documents(records: Sequence[AnyRecord]) -> Iterator[Document]:
    """In order; all reports of runs are one, the last."""
    for record in records:
        if isinstance(record, BenchRecord):
            yield _of_bench(record)
        elif isinstance(record, AbRecord):
            title, table = f"edgeconv bench ab: {record.b} beside {record.a}", tables.comparison(record, tables.MARGIN)
            said = tables.comparison_text(record, tables.MARGIN)
            yield Document(title, local_time_text(record.created_utc), [said], [table])
        elif not isinstance(record, RunReport):
            yield _of_ladder(record)
    reports = [record for record in records if isinstance(record, RunReport)]
    if reports:
        yield _of_runs(reports)


def _of_bench(record: BenchRecord) -> Document:
    fastest, goals, distribution = tables.fastest(record), tables.goals(record), tables.distribution(record)
    said = [tally(table, noun) for table, noun in ((fastest, "case"), (goals, "goal")) if table.rows]
    said += [f"least lead: {lead} over {peer} at {at}" for lead, at, peer, *_ in tables.leads_by_peer(record).rows[:1]]
    if distribution.rows:  # of drawn cases none is of interest by itself
        fastest, said = distribution, []
    stopped = [] if record.complete else ["Stopped before it was complete"]
    formulas = [f"{name.replace('_', ' ')} = {formula}" for name, formula in record.formulas.items()]
    return Document(
        title=f"edgeconv bench '{record.grid.name}': {record.grid.summary}",
        facts=f"{local_time_text(record.created_utc)}, {counted(len(record.rows), 'row')} in "
        f"{seconds_text(record.wall_seconds)}; ratios compare medians of interleaved runs",
        summary=said,
        tables=_not_empty(fastest, goals, rows.every_row(record), tables.left_out(record)),
        drawings=figures.of_bench(record),
        warnings=[*stopped, *record.warnings],
        notes={"Machine and versions": machine_lines(record), "Formulas": formulas},
    )


def _of_ladder(record: LadderRecord) -> Document:
    everybody = rows.every_row(record)
    return Document(
        title=f"edgeconv {record.kind} on {record.machine.name}",
        facts=local_time_text(record.created_utc),
        summary=[tally(everybody, "row")],
        tables=_not_empty(ladders.by_size(record), everybody),
        drawings=figures.of_ladder(record),
    )


def _of_runs(reports: Sequence[RunReport]) -> Document:
    shown = rows.run_tables(reports)
    machines = list(dict.fromkeys(f"{report.device.name}; {_versions(report)}" for report in reports))
    names = ", ".join(dict.fromkeys(Path(report.input.file).name for report in reports))
    said = [f"{row.label[0].upper()}{row.label[1:]}: {row.text}" for row in summary(reports[0])]
    return Document(
        title=f"edgeconv run: {names}",
        facts=local_time_text(min(report.created_utc for report in reports)),
        summary=said if len(reports) == 1 else [tally(shown[0], "run")],
        tables=shown,
        drawings=figures.of_runs(reports),
        notes={"Machine and versions": machines},
        reports=reports,
    )


def machine_lines(record: BenchRecord) -> list[str]:
    """Where and with what the record was measured."""
    lines = []
    for device, facts in record.machine.items():
        roof, named = record.roofs[device], device.upper()
        copy, fma = digits_text(roof.copy_bytes_per_second / 1e9, 4), digits_text(roof.fma_flops_per_second / 1e9, 4)
        rest = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in plain(facts).items() if name != "name")
        measured = f"copy {copy} GB/s, float32 multiply-adds {fma} GFLOPS ({roof.how})"
        lines += [f"{named}: {facts.name} ({rest})", f"{named} roof, measured in this run: {measured}"]
    return [*lines, _versions(record)]


def _versions(record: BenchRecord | RunReport) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    return f"edgeconv {record.edgeconv_version}; {versions}"


def _not_empty(*found: Table) -> list[Table]:
    return [tables.without_empty_columns(table) for table in found if table.rows]
