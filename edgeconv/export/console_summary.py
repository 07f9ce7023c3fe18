"""What `edgeconv bench` says: a line for each case as soon as it is measured, and a table at its end.

2048 s1 float32 random mix on cuda: sliding 30.5 µs, 15.97 × [15.92, 16.08] faster than torch, 88 % of copy speed

A lead stands with its 99 % interval; where that is wide, or of few samples, there is none (bench/intervals.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from edgeconv.bench.intervals import Ratio
from edgeconv.bench.record import BenchRecord, BenchRow
from edgeconv.bench.summary import Group, groups, median, winners
from edgeconv.core.text import counted, digits_text, seconds_text, share_text
from edgeconv.export.rows import every_row
from edgeconv.export.tables import distribution, fastest
from edgeconv.page import Table

MOST_ROWS = 24
"""Of the table at the end: what a person takes in, and a terminal shows."""


def case_line(rows: Sequence[BenchRow]) -> str:
    """The rows of one case on one device in one line: the fastest method and its lead over the fastest peer."""
    where = f"{rows[0].case.named} on {rows[0].device}"
    found = winners(Group(tuple(rows)))
    if not found:
        reasons = "; ".join(f"{row.candidate} {row.status}" for row in rows if row.kind != "copy")
        return f"{where}: no method was timed ({reasons})"
    (winner,) = found
    parts = [f"{winner.method.candidate} {seconds_text(median(winner.method))}"]
    parts += [lead_text(winner.ratio, winner.peer.candidate)] if winner.ratio and winner.peer else []
    share = getattr(winner.method.lead_metrics, "floor_share", None)
    parts += [] if share is None else [f"{share_text(share)} of copy speed"]
    refused = ", ".join(f"{row.candidate} {row.status}" for row in rows if row.status in ("wrong", "disqualified"))
    return f"{where}: {', '.join(parts)}" + (f" ({refused})" if refused else "")


def lead_text(ratio: Ratio, rival: str) -> str:
    """`7.41 × [7.32, 7.49] faster than torch`, a rival's time over one's own; or why there is no verdict."""
    if ratio.doubt:
        return f"no verdict against {rival} ({ratio.doubt})"
    if ratio.low <= 1 <= ratio.high:
        return f"as fast as {rival} ({ratio})"
    if ratio.ratio > 1:
        return f"{digits_text(ratio.ratio, 4)} × {ratio.interval} faster than {rival}"
    inverse = Ratio(1 / ratio.ratio, 1 / ratio.high, 1 / ratio.low, ratio.samples)
    return f"{digits_text(inverse.ratio, 4)} × {inverse.interval} slower than {rival}"


def summary_lines(record: BenchRecord) -> list[str]:
    """How much was measured, and what to do where that was too little."""
    state = "" if record.complete else ", not complete: --resume goes on"
    timed = sum(bool(row.timings) for row in record.rows)
    doubt = any(winner.ratio and winner.ratio.doubt for group in groups(record) for winner in winners(group))
    more = ["Where there is no verdict, a longer --time-limit takes more samples."] if doubt else []
    return [f"{counted(timed, 'row')} timed in {seconds_text(record.wall_seconds)}{state}", *more]


def summary_tables(record: BenchRecord) -> list[Table]:
    """What a bench ends with: everybody at each case; of many rows the fastest alone, of drawn cases a distribution."""
    if record.grid.draw is not None:
        return [distribution(record)]
    everybody = every_row(record)
    table = everybody if len(everybody.rows) <= MOST_ROWS else fastest(record)
    more = f": the first {MOST_ROWS} of {len(table.rows)}" if len(table.rows) > MOST_ROWS else ""
    return [replace(table, title=table.title + more, rows=table.rows[:MOST_ROWS])] if table.rows else []
