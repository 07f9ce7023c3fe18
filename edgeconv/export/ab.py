"""What `edgeconv bench ab` found, as a table: what is slower first, then what is undecided."""

from __future__ import annotations

from statistics import geometric_mean, median

from edgeconv.bench.ab import AbRecord, AbRow
from edgeconv.bench.intervals import CONFIDENCE
from edgeconv.core.units import seconds_text, share_text
from edgeconv.export.tables import NOTHING, Table, tally

MARGIN = 0.05
"""Of a report that is made later: `--fail-on` of `bench ab` is 5 % too where nothing else is asked."""
ORDER = ("slower", "no verdict", "cannot run", "faster", "same")
HEADER = ("verdict", "row", "A", "B", f"B / A, {CONFIDENCE:.0%} interval", "pairs")


def table(record: AbRecord, margin: float) -> Table:
    """A row each."""
    rows = sorted(record.rows, key=lambda row: ORDER.index(row.verdict(margin)))
    return Table(f"{record.b} (B) beside {record.a} (A)", HEADER, tuple(_cells(row, margin) for row in rows))


def _cells(row: AbRow, margin: float) -> tuple[str, ...]:
    verdict = row.verdict(margin)
    if row.cannot is not None:
        return (verdict, row.title, NOTHING, NOTHING, row.cannot, NOTHING)
    a, b = (geometric_mean(map(median, seconds)) for seconds in (row.a_seconds, row.b_seconds))
    return (verdict, row.title, seconds_text(a), seconds_text(b), str(row.ratio), str(len(row.a_seconds)))


def summary(record: AbRecord, margin: float) -> str:
    """How often each verdict fell, and the mean of all rows."""
    mean = "" if record.mean is None else f"; geometric mean of B / A {record.mean}"
    return f"{tally(table(record, margin), 'row')}{mean}. Slower: the whole interval is above {1 + margin:.3g}."


def cut_table(record: AbRecord, comparisons: int, margin: float) -> Table:
    """How often each verdict falls where the pairs of each row are cut into comparisons, and what was known then."""
    lines: list[tuple[str, list[AbRow]]] = [(row.title, row.cut(comparisons)) for row in record.rows]
    every = [part for _, parts in lines for part in parts]
    rows = tuple(_verdicts(title, parts, margin) for title, parts in [*lines, ("all", every)] if parts)
    header = ("row", "comparisons", "slower", "faster", "same", "no verdict", "half width, median", "largest")
    return Table(f"Verdicts with a margin of {share_text(margin)}; planted {share_text(record.planted)}", header, rows)


def _verdicts(title: str, parts: list[AbRow], margin: float) -> tuple[str, ...]:
    verdicts, widths = [part.verdict(margin) for part in parts], [part.half_width for part in parts]
    counts = (str(verdicts.count(verdict)) for verdict in ("slower", "faster", "same", "no verdict"))
    return (title, str(len(parts)), *counts, share_text(median(widths)), share_text(max(widths)))
