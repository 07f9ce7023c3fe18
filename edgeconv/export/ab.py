"""What `edgeconv bench ab` found, as a table: what is slower first, then what is undecided."""

from __future__ import annotations

from statistics import geometric_mean

from edgeconv.bench.ab import AbRecord, AbRow
from edgeconv.bench.intervals import CONFIDENCE
from edgeconv.core.units import counted, digits_text, seconds_text
from edgeconv.export.tables import NOTHING, Table

MARGIN = 0.05
"""Of a report that is made later: `--fail-on` of `bench ab` is 5 % too where nothing else is asked."""
ORDER = ("slower", "no verdict", "cannot run", "faster", "same")
HEADER = ("verdict", "row", "A", "B", f"B / A, {CONFIDENCE:.0%} interval", "pairs", "B, of a copy")


def table(record: AbRecord, margin: float) -> Table:
    """A row each."""
    rows = sorted(record.rows, key=lambda row: ORDER.index(row.verdict(margin)))
    return Table(f"{record.b} (B) beside {record.a} (A)", HEADER, tuple(_cells(row, margin) for row in rows))


def _cells(row: AbRow, margin: float) -> tuple[str, ...]:
    verdict = row.verdict(margin)
    if row.cannot is not None:
        return (verdict, row.title, NOTHING, NOTHING, row.cannot, NOTHING, NOTHING)
    a, b, copy = (geometric_mean(seconds) for seconds in (row.a_seconds, row.b_seconds, row.copy_seconds))
    share = digits_text(copy / b, 2)
    return (verdict, row.title, seconds_text(a), seconds_text(b), str(row.ratio), str(len(row.a_seconds)), share)


def summary(record: AbRecord, margin: float) -> str:
    """How often each verdict fell, and the mean of all rows."""
    verdicts = [row.verdict(margin) for row in record.rows]
    said = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in ORDER if verdict in verdicts)
    mean = "" if record.mean is None else f"; geometric mean of B / A {record.mean}"
    return f"{counted(len(verdicts), 'row')}: {said}{mean}. Slower: the whole interval is above {1 + margin:.3g}."
