"""What `edgeconv bench` prints: a line for each case as soon as it is measured, and a summary at the end.

2048 s1 float32 random mix on cuda: sliding 30.5 µs, 15.97 × [15.92, 16.08] faster than torch, 88% of the floor
CUDA, float32, random, mix, stride 1: sliding, 7.41 × [7.32, 7.49] faster than the fastest peer (geometric mean of 5
sizes)

A lead stands with its 99 % interval; where that is wide, or of few samples, there is none (bench/intervals.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from edgeconv.bench.intervals import Ratio, mean_ratio
from edgeconv.bench.record import BenchRecord, BenchRow
from edgeconv.bench.summary import Group, Winner, groups, median, winners
from edgeconv.core.units import counted, digits_text, seconds_text, share_text

MOST_LINES = 25
"""Of the summary: what a person takes in, and a terminal shows."""


def case_line(rows: Sequence[BenchRow]) -> str:
    """The rows of one case on one device in one line."""
    case = rows[0].case
    picture = f"{Path(case.picture).name} " if case.picture else ""
    where = f"{picture}{case.named} on {rows[0].device}"
    found = winners(_alone(rows))
    if not found:
        reasons = "; ".join(f"{row.candidate} {row.status}" for row in rows if row.kind != "copy")
        return f"{where}: no method was timed ({reasons})"
    (winner,) = found
    parts = [f"{winner.method.candidate} {seconds_text(median(winner.method))}"]
    if winner.peer is not None and winner.ratio is not None:
        parts.append(lead_text(winner.ratio, winner.peer.candidate))
        if winner.library is not None and winner.library_ratio is not None and winner.library is not winner.peer:
            parts.append(lead_text(winner.library_ratio, winner.library.candidate))
    metrics = winner.method.lead_metrics
    if metrics is not None and metrics.floor_share is not None:
        parts.append(f"{share_text(metrics.floor_share)} of the floor")
    refused = ", ".join(f"{row.candidate} {row.status}" for row in rows if row.status in ("wrong", "disqualified"))
    return f"{where}: {', '.join(parts)}" + (f" ({refused})" if refused else "")


def lead_text(ratio: Ratio, rival: str) -> str:
    """`7.41 × [7.32, 7.49] faster than torch`, a rival's time over one's own; or why there is no verdict."""
    if ratio.doubt:
        return f"no verdict against {rival} ({ratio.doubt}: a longer --time-limit takes more)"
    if ratio.low <= 1 <= ratio.high:
        return f"as fast as {rival} ({ratio})"
    if ratio.ratio > 1:
        return f"{digits_text(ratio.ratio, 4)} × {ratio.interval} faster than {rival}"
    inverse = Ratio(1 / ratio.ratio, 1 / ratio.high, 1 / ratio.low, ratio.samples)
    return f"{digits_text(inverse.ratio, 4)} × {inverse.interval} slower than {rival}"


def lead_lines(record: BenchRecord) -> list[str]:
    """For each group with peers: by how much the fastest method is ahead of the fastest peer, as a geometric mean."""
    lines = []
    for group in groups(record):
        lead = _lead(winners(group))
        if lead is not None:
            lines.append(f"{group.title}, the fastest method: {lead}")
    return lines


def summary_lines(record: BenchRecord) -> list[str]:
    """The whole record in at most `MOST_LINES` lines."""
    lines = [line for group in groups(record) if (line := _group_line(group)) is not None]
    state = "" if record.complete else ", not complete: --resume goes on"
    timed = sum(bool(row.timings) for row in record.rows)
    head = f"{counted(timed, 'row')} timed in {seconds_text(record.wall_seconds)}{state}"
    most = MOST_LINES - 1
    if len(lines) > most:
        left = len(lines) - (most - 1)
        lines = [*lines[: most - 1], f"and {left} more kinds of cases, which the tables have"]
    return [head, *lines]


def _group_line(group: Group) -> str | None:
    found = winners(group)
    if not found:
        return None
    names = " or ".join(dict.fromkeys(winner.method.candidate for winner in found))
    parts = [f"{group.title}: {names}"]
    lead = _lead(found)
    if lead is not None:
        parts.append(lead)
    shares = [share for winner in found if (share := _floor_share(winner)) is not None]
    if shares:
        ends = dict.fromkeys(share_text(share) for share in (min(shares), max(shares)))
        parts.append(f"{' to '.join(ends)} of the floor")
    return ", ".join(parts)


def _lead(found: Sequence[Winner]) -> str | None:
    """Over the fastest peer, and over the fastest library where a peer that is written by hand is ahead of that."""
    ratios = [winner.ratio for winner in found if winner.ratio is not None]
    of_libraries = [winner.library_ratio for winner in found if winner.library_ratio is not None]
    mean, over_libraries = mean_ratio(ratios), mean_ratio(of_libraries)
    if mean is None:
        return None
    sizes = f" (geometric mean of {len(ratios)} sizes)" if len(ratios) > 1 else ""
    leads = [lead_text(mean, "the fastest peer")]
    if over_libraries is not None and over_libraries != mean:
        leads.append(lead_text(over_libraries, "the fastest library"))
    return f"{' and '.join(leads)}{sizes}"


def _floor_share(winner: Winner) -> float | None:
    metrics = winner.method.lead_metrics
    return None if metrics is None else metrics.floor_share


def _alone(rows: Sequence[BenchRow]) -> Group:
    case = rows[0].case
    picture, device = case.picture, rows[0].device
    return Group(device, picture, case.dtype, case.filter, case.channels, case.stride, tuple(rows))
