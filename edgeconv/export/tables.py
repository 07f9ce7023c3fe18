"""The tables that Markdown and HTML share, as rows of plain text; each format only draws them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from edgeconv.bench.goals import GoalResult, outcomes
from edgeconv.bench.intervals import Ratio
from edgeconv.bench.metrics import Metrics
from edgeconv.bench.record import BenchRecord, BenchRow
from edgeconv.bench.summary import Group, groups, median, winners
from edgeconv.core.records import plain
from edgeconv.core.safe_text import visible
from edgeconv.core.units import digits_text, seconds_text, share_text
from edgeconv.run.report import RankedAlgorithm, Ranking, SeriesPart, ranking_of

NOTHING = "–"
BAR = "\\|"
"""A bar within a cell of Markdown."""


@dataclass(frozen=True)
class Table:
    """A header and rows of text."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def lines_of(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as lines of Markdown."""
    lines = (header, ("---",) * len(header), *rows)
    return "".join(f"| {' | '.join(visible(cell).replace('|', BAR) for cell in line)} |\n" for line in lines)


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


def left_out(record: BenchRecord) -> Table:
    """What was not measured, and why."""
    rows = tuple((entry.name, entry.device, entry.reason) for entry in record.left_out)
    return Table("Left out", ("name", "device", "reason"), rows)


def fastest(record: BenchRecord) -> Table:
    """The fastest method at each case beside the fastest peer, and beside the fastest library where a peer that a
    person wrote is faster than that at any case; in full arithmetic on both sides.
    """
    found = [(group, winner) for group in groups(record) for winner in winners(group)]
    has_libraries = any(winner.library is not winner.peer for _, winner in found)
    rows = []
    for group, winner in found:
        method = winner.method
        cells = (group.title, str(method.case.size), method.candidate, seconds_text(median(method)))
        library = _beside(winner.library, winner.library_ratio) if has_libraries else ()
        rows.append((*cells, *_beside(winner.peer, winner.ratio), *library))
    header = ("case", "size", "fastest method", "median", "fastest peer", "median", "peer / method, 99 % interval")
    library_header = ("fastest library", "median", "library / method") if has_libraries else ()
    return Table("The fastest", (*header, *library_header), tuple(rows))


def _beside(peer: BenchRow | None, ratio: Ratio | None) -> tuple[str, str, str]:
    """Three cells: who it is, its time, and that over the method's."""
    if peer is None or ratio is None:
        return NOTHING, NOTHING, NOTHING
    return peer.candidate, seconds_text(median(peer)), ratio_cell(ratio)


def ratio_cell(ratio: Ratio) -> str:
    """`15.97 [15.92, 16.08]`, or why there is no verdict."""
    return f"no verdict ({ratio.doubt})" if ratio.doubt else str(ratio)


def goals(record: BenchRecord) -> Table:
    """The project's own bars that the record has rows for: goal, figure, met or missed."""
    rows = []
    for outcome in outcomes(record):
        goal = outcome.goal
        figure = seconds_text(outcome.figure) if goal.measure == "call" else digits_text(outcome.figure, 3)
        place = ("all", "all") if outcome.size is None else (str(outcome.size), str(outcome.stride))
        verdict = ("met", "") if outcome.met else (f"MISSED by {share_text(outcome.short_by)}", goal.binds)
        rows.append((goal.case, *place, outcome.words, outcome.candidate, figure, *verdict))
    return Table("Goals", ("case", "size", "stride", "goal", "by", "figure", "", "what binds it"), tuple(rows))


def place_text(outcome: GoalResult) -> str:
    """`, 4096, stride 2`, or nothing for a goal over all cases."""
    return "" if outcome.size is None else f", {outcome.size}, stride {outcome.stride}"


def over_size(group: Group, title: str, cell: Callable[[BenchRow], str]) -> Table:
    """One line per candidate, one column per size."""
    rows = []
    for candidate in group.candidates:
        cells = [group.row(candidate, size) for size in group.sizes]
        rows.append((candidate, *(NOTHING if row is None else _or_status(row, cell) for row in cells)))
    return Table(title, ("", *map(str, group.sizes)), tuple(rows))


def time_cell(row: BenchRow) -> str:
    """The median."""
    return seconds_text(median(row)) + (" ⚑" if row.launch_bound else "")


def floor_cell(row: BenchRow) -> str:
    """The share of the floor."""
    return NOTHING if row.lead_metrics is None else percent(row.lead_metrics.floor_share)


def gflops_cell(row: BenchRow) -> str:
    """The headline."""
    found = row.lead_metrics
    return NOTHING if row.kind == "copy" or found is None else digits_text(found.gflops, 4)


METRICS_HEADER = (
    "candidate",
    "size",
    "L2",
    "median",
    "p10",
    "p90",
    "n",
    "stopped by",
    "GFLOPS",
    "useful GFLOPS",
    "GB/s",
    "moved GB/s",
    "FLOP/byte",
    "of floor",
    "of large copy",
    "of roofline",
    "bound by",
    "workspace",
    "error",
    "differs",
)


def metrics(group: Group) -> Table:
    """The metrics of each timed row, in each L2 state."""
    rows = [
        _metrics_row(row, state, series, row.metrics[state])
        for row in group.rows
        for state, series in row.timings.items()
    ]
    return Table(group.title, METRICS_HEADER, tuple(rows))


def untimed(record: BenchRecord) -> Table:
    """Rows that got no time, and why."""
    rows = [
        (group.title, str(row.case.size), row.candidate, row.status, row.reason or "")
        for group in groups(record)
        for row in group.rows
        if not row.timings
    ]
    return Table("Not timed", ("case", "size", "candidate", "status", "reason"), tuple(rows))


def cudnn_traces(record: BenchRecord) -> list[Table]:
    """The ranked list of cuDNN beside what was measured, for every row whose choice has one."""
    tables = []
    for row in record.rows:
        case, ranking = row.case, ranking_of(row.choice)
        if ranking.ranked:
            tables.append(cudnn_trace(f"{row.candidate}, {case.size}, stride {case.stride}, {case.dtype}", ranking))
    return tables


def cudnn_trace(title: str, ranking: Ranking) -> Table:
    """One such list."""
    lines = [("heuristic", str(number), *_trace(entry)) for number, entry in enumerate(ranking.ranked, 1)]
    lines += [("measured", str(number), *_trace(entry)) for number, entry in enumerate(ranking.measured or [], 1)]
    header = ("ranking", "place", "algorithm", "math", "workspace", "time", "reason")
    return Table(title, header, tuple(lines))


def percent(share: float | None) -> str:
    """A share, or nothing."""
    return NOTHING if share is None else share_text(share)


def _trace(entry: RankedAlgorithm) -> tuple[str, ...]:
    seconds = NOTHING if entry.time_seconds is None else seconds_text(entry.time_seconds)
    return (entry.algorithm, entry.math, f"{entry.workspace_bytes:,}", seconds, entry.skipped)


def _metrics_row(row: BenchRow, state: str, series: SeriesPart, found: Metrics) -> tuple[str, ...]:
    check, moved = row.check, found.moved_gigabytes_per_second
    spread = series.spread_seconds
    return (
        row.candidate,
        str(row.case.size),
        state,
        seconds_text(series.median_seconds),
        *((NOTHING, NOTHING) if spread is None else map(seconds_text, spread)),
        str(series.n),
        series.stopped_because,
        digits_text(found.gflops, 4),
        digits_text(found.useful_gflops, 4),
        digits_text(found.gigabytes_per_second, 4),
        NOTHING if moved is None else digits_text(moved, 4),
        digits_text(found.intensity_flops_per_byte, 4),
        percent(found.floor_share),
        percent(found.large_copy_share),
        percent(found.roofline_share),
        found.bound_by or NOTHING,
        NOTHING if row.workspace_bytes is None else f"{row.workspace_bytes:,}",
        NOTHING if check is None or check.relative_error is None else f"{check.relative_error:.1g}",
        row.differs or "",
    )


def _or_status(row: BenchRow, cell: Callable[[BenchRow], str]) -> str:
    return cell(row) if row.lead_series is not None else row.status
