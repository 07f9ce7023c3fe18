"""What `edgeconv bench ab` found, as a table: what is slower first, then what is undecided."""

from __future__ import annotations

from statistics import geometric_mean, median

from edgeconv.bench.ab import AbRecord
from edgeconv.bench.intervals import CONFIDENCE
from edgeconv.core.units import seconds_text, share_text
from edgeconv.export.tables import tally
from edgeconv.page import NOTHING, Table

MARGIN = 0.05
"""Of a report that is made later: `--fail-on` of `bench ab` is 5 % too where nothing else is asked."""
ORDER = ("slower", "no verdict", "cannot run", "faster", "same")


def table(record: AbRecord, margin: float) -> Table:
    """A row each."""
    rows = []
    for row in sorted(record.rows, key=lambda row: ORDER.index(row.verdict(margin))):
        cells = (NOTHING, NOTHING, row.cannot or "", NOTHING)
        if row.cannot is None:
            a, b = (seconds_text(geometric_mean(map(median, sides))) for sides in (row.a_seconds, row.b_seconds))
            cells = (a, b, str(row.ratio), str(len(row.a_seconds)))
        rows.append((row.verdict(margin), row.title, *cells))
    header = ("verdict", "row", "A", "B", f"B / A, {share_text(CONFIDENCE)} interval", "pairs")
    return Table(f"{record.b} (B) beside {record.a} (A)", header, tuple(rows))


def summary(record: AbRecord, margin: float) -> str:
    """How often each verdict fell, and the mean of all rows."""
    mean = "" if record.mean is None else f"; geometric mean of B / A {record.mean}"
    return f"{tally(table(record, margin), 'row')}{mean}. Slower: the whole interval is above {1 + margin:.3g}."
