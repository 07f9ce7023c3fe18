"""Tables as rows of plain text, which terminal, Markdown and page only draw; and those of a bench record.

The first column is the verdict. Words stand left and figures right. A page shows the first `MOST` columns, a terminal
those that fit it; both say that there are more. A spreadsheet has every figure (csv.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

from edgeconv.bench.goals import outcomes
from edgeconv.bench.intervals import Ratio
from edgeconv.bench.record import BenchRecord, BenchRow
from edgeconv.bench.summary import competes, groups, median, winners
from edgeconv.bench.summary import fastest as fastest_of
from edgeconv.core.safe_text import visible
from edgeconv.core.units import digits_text, seconds_text, share_text
from edgeconv.run.report import SeriesPart

NOTHING = "–"
MOST = 9
LONG = 32
GOOD = ("faster", "met", "right", "fastest")
BAD = ("slower", "MISSED", "wrong", "WRONG", "failed", "disqualified")
FIGURE = re.compile(r"[≥≤±]? ?[\d.,+−-]+(e[+-]?\d+)?( ?[%×]| [µm]?s)?( [\[(±].*| ⚑)?")
"""What stands under its like: columns of these are set to the right."""


@dataclass(frozen=True)
class Table:
    """A header and rows of text."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    folded: bool = False
    """Whether a page shows it only when asked."""
    most: ClassVar[int] = MOST

    @staticmethod
    def tone(verdict: str) -> Literal["good", "bad", ""]:
        """How a row that begins with it is coloured."""
        return "good" if verdict in GOOD else "bad" if verdict in BAD else ""

    @cached_property
    def kinds(self) -> tuple[Literal["figure", "short", "words"], ...]:
        """What each column holds; words of which none is `LONG` stay in one line."""
        columns = ([row[place] for row in self.rows] for place in range(len(self.header)))
        return tuple(
            "figure" if _holds_figures(cells) else "short" if max(map(len, cells), default=0) < LONG else "words"
            for cells in columns
        )


def without_empty_columns(table: Table) -> Table:
    """A column of which no row has anything says nothing."""
    kept = [place for place in range(len(table.header)) if any(row[place] not in ("", NOTHING) for row in table.rows)]
    rows = tuple(tuple(row[place] for place in kept) for row in table.rows)
    return replace(table, header=tuple(table.header[place] for place in kept), rows=rows)


def _holds_figures(cells: Sequence[str]) -> bool:
    """Whether most cells are figures."""
    given = [cell for cell in cells if cell not in ("", NOTHING)]
    return 2 * sum(FIGURE.fullmatch(cell) is not None for cell in given) > len(given)


def lines_of(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as lines of Markdown."""
    lines = (header, ("---",) * len(header), *rows)
    return "".join(f"| {' | '.join(visible(cell).replace('|', BAR) for cell in line)} |\n" for line in lines)


BAR = "\\|"
"""A bar within a cell of Markdown."""


def percent(share: float | None) -> str:
    """A share, or nothing."""
    return NOTHING if share is None else share_text(share)


def times(ratio: float) -> str:
    """`1.00 ×`."""
    return f"{ratio:.2f} ×" if ratio < 100 else f"{ratio:,.0f} ×"


def median_and_spread(series: SeriesPart) -> str:
    """`30.5 µs ± 0.4`: the median and half of what lies between p10 and p90, in its unit; alone of few samples."""
    text, spread = seconds_text(series.median_seconds), series.spread_seconds
    if spread is None:
        return text
    scale = {"s": 1.0, "ms": 1e3, "µs": 1e6}[text.rpartition(" ")[2]]
    return f"{text} ± {digits_text((spread[1] - spread[0]) / 2 * scale, 2)}"


def ratio_cell(ratio: Ratio) -> str:
    """`15.97 [15.92, 16.08]`, or why there is no verdict."""
    return f"no verdict ({ratio.doubt})" if ratio.doubt else str(ratio)


# --- a bench --------------------------------------------------------------------------------------------------------


def fastest(record: BenchRecord) -> Table:
    """The fastest method at each case beside the fastest peer, and beside the fastest library where a peer that a
    person wrote is faster than that at any case; in full arithmetic on both sides.
    """
    found = [(group, winner) for group in groups(record) for winner in winners(group)]
    has_libraries = any(winner.library is not winner.peer for _, winner in found)
    rows = []
    for group, winner in found:
        method = winner.method
        share = None if method.lead_metrics is None else method.lead_metrics.floor_share
        own = (group.title, str(method.case.size), method.candidate, seconds_text(median(method)))
        library = _beside(winner.library, winner.library_ratio) if has_libraries else ()
        peer, took, lead = _beside(winner.peer, winner.ratio)
        rows.append((_verdict(winner.ratio), lead, *own, peer, took, percent(share), *library))
    header = ("verdict", "peer / method", "case", "size", "method", "median", "fastest peer", "its median")
    library_header = ("fastest library", "the library's median", "library / method") if has_libraries else ()
    title = "The fastest method beside the fastest peer"
    return Table(title, (*header, "of copy speed", *library_header), tuple(rows))


def _verdict(ratio: Ratio | None) -> str:
    """Of the method."""
    if ratio is None:
        return "no peer"
    if ratio.doubt:
        return "no verdict"
    return "as fast" if ratio.low <= 1 <= ratio.high else "faster" if ratio.ratio > 1 else "slower"


def _beside(peer: BenchRow | None, ratio: Ratio | None) -> tuple[str, str, str]:
    """Three cells: who it is, its time, and that over the method's."""
    if peer is None or ratio is None:
        return NOTHING, NOTHING, NOTHING
    return peer.candidate, seconds_text(median(peer)), str(ratio)


def goals(record: BenchRecord) -> Table:
    """The project's own bars that the record has rows for, those that are missed first."""
    rows = []
    for outcome in sorted(outcomes(record), key=lambda outcome: outcome.met):
        goal = outcome.goal
        figure = seconds_text(outcome.figure) if goal.measure == "call" else digits_text(outcome.figure, 3)
        place = ("all", "all") if outcome.size is None else (str(outcome.size), str(outcome.stride))
        verdict, short = ("met", "") if outcome.met else ("MISSED", share_text(outcome.short_by))
        why = "" if outcome.met else goal.binds
        rows.append((verdict, goal.case, *place, outcome.words, outcome.candidate, figure, short, why))
    header = ("verdict", "case", "size", "stride", "goal", "by", "figure", "missed by", "what binds it")
    return Table("The project's own goals", header, tuple(rows))


def _of_metrics(name: str, cell: Callable[[Any], str]) -> Callable[[BenchRow], str]:
    def read(row: BenchRow) -> str:
        found = None if row.lead_metrics is None else getattr(row.lead_metrics, name)
        return NOTHING if found is None else cell(found)

    return read


def _rate(value: float) -> str:
    return digits_text(value, 4)


FIGURES_OF_ROW: dict[str, Callable[[BenchRow], str]] = {
    "median": lambda row: NOTHING if row.lead_series is None else median_and_spread(row.lead_series),
    "GFLOPS": lambda row: NOTHING if row.kind == "copy" else _of_metrics("gflops", _rate)(row),
    "GB/s": _of_metrics("gigabytes_per_second", _rate),
    "of copy speed": _of_metrics("floor_share", percent),
    "why not, or what differs": lambda row: row.reason or row.differs or "",
    "of roofline": _of_metrics("roofline_share", percent),
    "bound by": lambda row: "launch" if row.launch_bound else _of_metrics("bound_by", str)(row),
    "samples": lambda row: NOTHING if row.lead_series is None else str(row.lead_series.n),
    "L2": lambda row: row.lead_l2_state or NOTHING,
    "workspace": lambda row: NOTHING if row.workspace_bytes is None else f"{row.workspace_bytes:,}",
    "relative error": lambda row: (
        NOTHING if row.check is None or row.check.relative_error is None else f"{row.check.relative_error:.1g}"
    ),
}
"""Columns of `every_row` behind its first."""


def every_row(record: BenchRecord) -> Table:
    """Everybody at each case, the fastest first; last those that got no time, and why."""
    rows = []
    for group in groups(record):
        for size in group.sizes:
            of_case = sorted((row for row in group.rows if row.case.size == size), key=median)
            best = fastest_of(row for row in of_case if row.kind != "copy" and competes(row))
            for row in of_case:
                behind = times(median(row) / median(best)) if best and row.timings else NOTHING
                cells = (cell(row) for cell in FIGURES_OF_ROW.values())
                rows.append((_standing(row, best), behind, row.candidate, next(cells), group.title, str(size), *cells))
    median_column, *more = FIGURES_OF_ROW
    header = ("verdict", "× fastest", "who", median_column, "case", "size", *more)
    return Table(f"Everybody at each case: {len(rows):,} rows", header, tuple(rows), folded=True)


def _standing(row: BenchRow, best: BenchRow | None) -> str:
    if row.timings:
        return "limit" if row.kind == "copy" else "fastest" if row is best else "right"
    return row.status


def left_out(record: BenchRecord) -> Table:
    """What was not measured, and why."""
    rows = tuple(("left out", entry.name, entry.device, entry.reason) for entry in record.left_out)
    return Table("Left out", ("verdict", "name", "device", "reason"), rows)
