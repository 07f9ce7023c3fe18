"""Tables (page/__init__.py) of records of a bench, which terminal, Markdown and page draw: the verdict comes first.

A page shows the first nine columns, a terminal those that fit it; both say that there are more. A spreadsheet has every
figure (rows.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from statistics import geometric_mean
from typing import TypeVar

import numpy as np

from edgeconv.bench.ab import AbRecord
from edgeconv.bench.goals import outcomes
from edgeconv.bench.intervals import CONFIDENCE, Ratio, mean_of_cases
from edgeconv.bench.record import BenchRecord
from edgeconv.bench.summary import groups, leads, median, winners
from edgeconv.bench.surface import shares
from edgeconv.core.text import counted, digits_text, seconds_text, share_text, visible
from edgeconv.core.timing import Series
from edgeconv.page import BAD, NOTHING, Table

BAR = "\\|"
"""A bar within a cell of Markdown."""
PERCENTILES = (5, 25, 50)
"""Of the shares of drawn cases."""
MARGIN = 0.05
"""Of a report that is made later: `--fail-on` of `bench ab` is 5 % too where nothing else is asked."""
VERDICTS = ("slower", "no verdict", "cannot run", "faster", "same")
T = TypeVar("T")


def without_empty_columns(table: Table) -> Table:
    """A column of which no row has anything says nothing."""
    kept = [place for place in range(len(table.header)) if any(row[place] not in ("", NOTHING) for row in table.rows)]
    rows = tuple(tuple(row[place] for place in kept) for row in table.rows)
    return replace(table, header=tuple(table.header[place] for place in kept), rows=rows)


def lines_of(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as lines of Markdown."""
    lines = (header, ("---",) * len(header), *rows)
    return "".join(f"| {' | '.join(visible(cell).replace('|', BAR) for cell in line)} |\n" for line in lines)


def tally(table: Table, noun: str) -> str:
    """`12 cases: 1 slower, 10 faster, 1 as fast`: how often each verdict fell, the bad ones first."""
    verdicts = sorted(Counter(row[0] for row in table.rows).items(), key=lambda each: (each[0] not in BAD, -each[1]))
    return f"{counted(len(table.rows), noun)}: {', '.join(f'{count} {verdict}' for verdict, count in verdicts)}"


def shown(value: T | None, text: Callable[[T], str] = str) -> str:
    """As text; nothing where it is not known."""
    return NOTHING if value is None else text(value)


def percent(share: float | None) -> str:
    """A share, or nothing."""
    return shown(share, share_text)


def seconds(value: float | None) -> str:
    """A time, or nothing."""
    return shown(value, seconds_text)


def rate(value: float | None) -> str:
    """GFLOPS or GB/s, or nothing."""
    return shown(value, lambda known: digits_text(known, 4))


def times(ratio: float) -> str:
    """`1.00 ×`."""
    return f"{ratio:.2f} ×" if ratio < 100 else f"{ratio:,.0f} ×"


def median_and_spread(series: Series) -> str:
    """`30.5 µs ± 0.4`: the median and half of what lies between p10 and p90, in its unit; alone of few samples."""
    text, spread = seconds_text(series.median_seconds), series.spread_seconds
    if spread is None:
        return text
    scale = {"s": 1.0, "ms": 1e3, "µs": 1e6}[text.rpartition(" ")[2]]
    return f"{text} ± {digits_text((spread[1] - spread[0]) / 2 * scale, 2)}"


# --- a bench --------------------------------------------------------------------------------------------------------


def fastest(record: BenchRecord) -> Table:
    """The fastest method at each case beside the fastest peer, in full arithmetic on both sides."""
    rows = []
    for group, winner in ((each, winner) for each in groups(record) for winner in winners(each)):
        method, peer = winner.method, winner.peer
        own = (group.title, str(method.case.size), method.candidate, seconds(median(method)))
        rival = (peer.candidate, seconds(median(peer))) if peer else (NOTHING, NOTHING)
        share = percent(getattr(method.lead_metrics, "floor_share", None))
        rows.append((_verdict(winner.ratio), shown(winner.ratio), *own, *rival, share))
    header = ("verdict", "peer / method", "case", "size", "method", "median", "fastest peer", "its median")
    return Table("The fastest method beside the fastest peer", (*header, "of copy speed"), tuple(rows))


def leads_by_peer(record: BenchRecord) -> Table:
    """Each peer's time over that of the fastest method, by kind of cases: the mean, and the least and where it is.

    The least stands first.
    """
    rows = []
    for (device, kind, peer), ratios in leads(record).items():
        case, least = min(ratios.items(), key=lambda item: item[1].ratio)
        mean = times(geometric_mean(ratio.ratio for ratio in ratios.values()))
        rows.append((least.ratio, (str(least), str(case), peer, device.upper(), kind, str(len(ratios)), mean)))
    header = ("least lead", "at", "over", "device", "channels", "cases", "mean lead")
    return Table("Leads over each peer", header, tuple(row for _, row in sorted(rows)))


def _verdict(ratio: Ratio | None) -> str:
    """Of the method."""
    if ratio is None:
        return "no peer"
    if ratio.doubt:
        return "no verdict"
    return "as fast" if ratio.low <= 1 <= ratio.high else "faster" if ratio.ratio > 1 else "slower"


def goals(record: BenchRecord) -> Table:
    """The project's own bars that the record has rows for, those that are missed first."""
    rows = []
    for outcome in sorted(outcomes(record), key=lambda outcome: outcome.met):
        goal = outcome.goal
        figure = seconds(outcome.figure) if goal.measure == "call" else digits_text(outcome.figure, 3)
        place = ("all", "all") if outcome.size is None else (str(outcome.size), str(outcome.stride))
        verdict, *missed = ("met", "", "") if outcome.met else ("MISSED", share_text(outcome.short_by), goal.binds)
        rows.append((verdict, goal.case, *place, outcome.words, outcome.candidate, figure, *missed))
    header = ("verdict", "case", "size", "stride", "goal", "by", "figure", "missed by", "what binds it")
    return Table("The project's own goals", header, tuple(rows))


def distribution(record: BenchRecord) -> Table:
    """Of drawn cases, which shares of the limit they reach; no rows for a grid that lists its cases."""
    draw, rows = record.grid.draw, []
    for device in record.roofs if draw else ():
        found = shares(record, device)
        leads = [share.lead for share in found if share.lead is not None]
        percentiles = np.percentile([share.share for share in found], PERCENTILES) if found else ()
        cells = (digits_text(float(value), 2) for value in percentiles)
        behind = str(sum(lead < 1 for lead in leads))
        mean = shown(mean_of_cases(leads) if leads else None)
        rows += [(device, str(len(found)), *cells, mean, str(len(leads)), behind)] if found else []
    header = ("device", "cases", *(f"p{percentile}" for percentile in PERCENTILES))
    more = ("lead over the fastest peer, geometric mean", "cases with a peer", "of them, peer faster")
    title = f"Share of the limit, {counted(draw.cases, 'case')} drawn from seed {draw.seed}" if draw else ""
    return Table(title, (*header, *more), tuple(rows))


def left_out(record: BenchRecord) -> Table:
    """What was not measured, and why."""
    rows = tuple(("left out", entry.name, entry.device, entry.reason) for entry in record.left_out)
    return Table("Left out", ("verdict", "name", "device", "reason"), rows)


# --- a comparison ----------------------------------------------------------------------------------------------------


def comparison(record: AbRecord, margin: float) -> Table:
    """What `bench ab` found: a line for each row, what is slower first, then what is undecided."""
    rows = []
    for row in sorted(record.rows, key=lambda row: VERDICTS.index(row.verdict(margin))):
        cells = (NOTHING, NOTHING, row.cannot or "", NOTHING)
        if row.cannot is None:
            turns = ([float(np.median(pair)) for pair in side] for side in (row.a_seconds, row.b_seconds))
            a, b = (seconds_text(geometric_mean(side)) for side in turns)
            cells = (a, b, str(row.ratio), str(len(row.a_seconds)))
        rows.append((row.verdict(margin), row.title, *cells))
    header = ("verdict", "row", "A", "B", f"B / A, {share_text(CONFIDENCE)} interval", "pairs")
    return Table(f"{record.b} (B) beside {record.a} (A)", header, tuple(rows))


def comparison_text(record: AbRecord, margin: float) -> str:
    """How often each verdict fell, and the mean of all rows."""
    mean = "" if record.mean is None else f"; geometric mean of B / A {record.mean}"
    return f"{tally(comparison(record, margin), 'row')}{mean}. Slower: the whole interval is above {1 + margin:.3g}."
