"""What `edgeconv bench` says: a line for each case as soon as it is measured, and a table at its end.

2048 s1 float32 random mix on cuda: sliding 30.5 µs, 15.97 × [15.92, 16.08] faster than torch, 88 % of copy speed

A lead stands with its 99 % interval; where that is wide, or of few samples, there is none (bench/intervals.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from edgeconv.bench.intervals import Ratio, mean_ratio
from edgeconv.bench.record import BenchRecord, BenchRow
from edgeconv.bench.summary import Group, Winner, competes, groups, median, winners
from edgeconv.core.units import counted, digits_text, seconds_text
from edgeconv.export import surface
from edgeconv.export.tables import NOTHING, Table, median_and_spread, percent, times

MOST_ROWS = 24
"""Of the table at the end: what a person takes in, and a terminal shows."""


def case_line(rows: Sequence[BenchRow]) -> str:
    """The rows of one case on one device in one line."""
    case = rows[0].case
    picture = f"{Path(case.picture).name} " if case.picture else ""
    where = f"{picture}{case.named} on {rows[0].device}"
    found = winners(Group(tuple(rows)))
    if not found:
        reasons = "; ".join(f"{row.candidate} {row.status}" for row in rows if row.kind != "copy")
        return f"{where}: no method was timed ({reasons})"
    refused = ", ".join(f"{row.candidate} {row.status}" for row in rows if row.status in ("wrong", "disqualified"))
    method = found[0].method
    parts = [f"{method.candidate} {seconds_text(median(method))}", _lead(found), _copy_shares(found)]
    return f"{where}: {', '.join(filter(None, parts))}" + (f" ({refused})" if refused else "")


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


def lead_lines(record: BenchRecord) -> list[str]:
    """Of each kind of case: who is fastest, by how much ahead of peers or the next method, and how near a copy."""
    return [line for group in groups(record) if (line := _group_line(group)) is not None]


def summary_lines(record: BenchRecord) -> list[str]:
    """How much was measured, and what to do where that was too little."""
    state = "" if record.complete else ", not complete: --resume goes on"
    timed = sum(bool(row.timings) for row in record.rows)
    doubt = any(winner.ratio and winner.ratio.doubt for group in groups(record) for winner in winners(group))
    more = ["Where there is no verdict, a longer --time-limit takes more samples."] if doubt else []
    return [f"{counted(timed, 'row')} timed in {seconds_text(record.wall_seconds)}{state}", *more]


def summary_tables(record: BenchRecord) -> list[Table]:
    """What a bench ends with: each case's fastest first, at most `MOST_ROWS`; of drawn cases their distribution."""
    if record.grid.draw is not None:
        return surface.tables_of(record)
    cases = [_at(group, size) for group in groups(record) for size in group.sizes]
    total = sum(map(len, cases))
    if total > MOST_ROWS:
        cases = [_one_each(_at(group, max(group.sizes))) for group in groups(record)]
    each = max(1, MOST_ROWS // max(1, len(cases)) - 1)
    lines = [line for case in cases for line in _end_lines(case[:each])][:MOST_ROWS]
    title = "ratios compare medians of interleaved runs" + (f"; {total} rows in all" if total > MOST_ROWS else "")
    header = ("who", "median ± spread", "× fastest", "of copy speed")
    return [Table(f"The fastest first; {title}", header, tuple(lines))] if lines else []


def _at(group: Group, size: int) -> list[BenchRow]:
    """Everybody at a size but the copy, the fastest first, those without a time last."""
    return sorted((row for row in group.rows if row.case.size == size and row.kind != "copy"), key=median)


def _one_each(rows: Sequence[BenchRow]) -> list[BenchRow]:
    """The fastest method, and of each peer its fastest form, in full arithmetic."""
    found: dict[str, BenchRow] = {}
    for row in rows:
        if competes(row):
            found.setdefault(row.candidate.partition(":")[0] if row.kind == "peer" else row.kind, row)
    return list(found.values())


def _end_lines(case: Sequence[BenchRow]) -> Iterator[tuple[str, ...]]:
    """The case in a line, and a line for each."""
    picture = f"{Path(case[0].case.picture).name} " if case[0].case.picture else ""
    yield f"{picture}{case[0].case.named} on {case[0].device}", "", "", ""
    for row in case:
        if row.lead_series is None or row.lead_metrics is None:
            yield f"  {row.candidate}", row.status, NOTHING, NOTHING
        else:
            behind, share = times(median(row) / median(case[0])), percent(row.lead_metrics.floor_share)
            yield f"  {row.candidate}", median_and_spread(row.lead_series), behind, share


def _group_line(group: Group) -> str | None:
    found = winners(group)
    if not found:
        return None
    names = " or ".join(dict.fromkeys(winner.method.candidate.partition(":")[0] for winner in found))
    parts = [names, _lead(found) or _next(group, found), _copy_shares(found)]
    return f"{group.title}: {', '.join(filter(None, parts))}"


def _lead(found: Sequence[Winner]) -> str:
    """Over the fastest peer, and over the fastest library where a peer that is written by hand is ahead of that."""
    peers = [(winner.ratio, winner.peer) for winner in found if winner.ratio and winner.peer]
    libraries = [(winner.library_ratio, winner.library) for winner in found if winner.library_ratio and winner.library]
    leads = []
    for rivals, words in ((peers, "the fastest peer"), (libraries, "the fastest library")):
        mean = mean_ratio([ratio for ratio, _ in rivals])
        if mean is not None and (rivals is peers or [row for _, row in rivals] != [row for _, row in peers]):
            leads.append(lead_text(mean, words if len(found) > 1 else rivals[0][1].candidate))
    sizes = f" (geometric mean of {len(peers)} sizes)" if len(peers) > 1 else ""
    return f"{', '.join(leads)}{sizes}" if leads else ""


def _next(group: Group, found: Sequence[Winner]) -> str:
    """Without peers: how far the next method is behind at the largest size that has one."""
    for winner in reversed(found):
        others = [row for row in _at(group, winner.method.case.size) if row.timings and competes(row)]
        if len(others) > 1:
            return f"{times(median(others[1]) / median(others[0]))} faster than {others[1].candidate}"
    return ""


def _copy_shares(found: Sequence[Winner]) -> str:
    """`72 % to 92 % of copy speed`, the least and the most."""
    metrics = [winner.method.lead_metrics for winner in found]
    shares = sorted(each.floor_share for each in metrics if each is not None and each.floor_share is not None)
    ends = dict.fromkeys(percent(share) for share in (*shares[:1], *shares[-1:]))
    return f"{' to '.join(ends)} of copy speed" if ends else ""
