"""The plots of a report: at most six, whatever the record. Each answers one question, from the record alone.

    a bench       GFLOPS over size, of the kinds of cases with the most candidates; then, of all kinds at their largest
                  size, the lead over the fastest peer, and how near the fastest method is to a copy's speed
    filter banks  GFLOPS over the number of filters, under what memory and arithmetic allow
    drawn cases   one distribution of the shares of the limit
    a ladder      GFLOPS of each step over size, and as bars at the largest
    runs          of several their GFLOPS, how near they are to a copy's speed, and the time of all of each run

A kind of case with one size has bars in place of single dots. Of many candidates those that everybody looks for are
drawn (`LOOKED_FOR`), then the fastest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from statistics import geometric_mean

from edgeconv.api.figures import share_of_limit
from edgeconv.bench.ladders.base import LadderRecord
from edgeconv.bench.ladders.conv import COPY
from edgeconv.bench.record import BenchRecord, BenchRow
from edgeconv.bench.summary import Group, groups, median, winners
from edgeconv.bench.surface import shares
from edgeconv.core.text import counted, digits_text, seconds_text, share_text
from edgeconv.export.banks import BankSeries, bank_series
from edgeconv.export.drawing import NAMES, Bars, Curve, Drawing, Lines, colours_of
from edgeconv.export.ladders import usual
from edgeconv.export.rows import labels
from edgeconv.export.tables import times
from edgeconv.run.report import RunReport

MOST_PLOTS, MOST_CURVES, MOST_BARS = 6, 8, 24
MOST_OVER_SIZE = 4
"""Plots over size, beside which the two of all kinds stand."""
LOOKED_FOR = ("sliding", "torch", "cudnn", "jax", "opencv-filter2d", "triton", "im2col")
SIDE = "side of the picture, pixels"
RATE = "GFLOPS (nominal)"
LIMIT = "limit: a plain copy"
NEAR = "share of copy speed"

Cases = Mapping[int, Sequence[BenchRow]]
"""Rows by the size of their picture, or by the number of their filters."""
_rate = partial(digits_text, digits=3)


def of_bench(record: BenchRecord) -> list[Drawing]:
    """Of a grid, of filter banks, or of drawn cases."""
    if record.grid.draw is not None:
        return [drawing for device in record.roofs for drawing in _distribution(record, device)]
    banks = [drawing for series in bank_series(record) for drawing in _bank(series)]
    if banks:
        return banks[:MOST_PLOTS]
    timed = [group for group in groups(record) if _chosen(group.rows)]
    most = sorted(timed, key=lambda group: -len({row.candidate for row in group.rows if row.timings}))
    over_size = [_over_size(group, number) for number, group in enumerate(most[:MOST_OVER_SIZE], 1)]
    return [*(drawing for found in over_size for drawing in found), *_of_all_kinds(timed)]


def _over_size(group: Group, number: int) -> list[Drawing]:
    name, shown = f"gflops_{number}", _chosen(group.rows)
    if len(group.sizes) == 1:
        rows = sorted((row for row in group.rows if row.candidate in ("copy", *shown) and row.timings), key=median)
        seconds = {LIMIT if row.kind == "copy" else row.candidate: median(row) for row in rows}
        title = f"Median time, {group.title}, {group.sizes[0]}"
        return _bars(name, title, "The fastest first; short bars are fast.", "median time", seconds, seconds_text)
    cases = {size: [row for row in group.rows if row.case.size == size] for size in group.sizes}
    left = len({row.candidate for row in group.rows} - {"copy", *shown})
    more = f" {counted(left, 'more candidate')} in the table." if left else ""
    caption = f"Nominal GFLOPS; both axes are logarithmic.{more}"
    limit = Curve(LIMIT, _rates(cases, "copy"), "soft", True)
    curves = [limit, *(Curve(name, _rates(cases, name), colour) for name, colour in colours_of(shown).items())]
    return _lines(name, f"Nominal GFLOPS, {group.title}", caption, SIDE, RATE, curves)


def _rates(cases: Cases, candidate: str) -> dict[int, float]:
    """Nominal GFLOPS of a candidate wherever it has a time."""
    timed = [(place, row) for place, rows in cases.items() for row in rows if row.candidate == candidate]
    return {place: row.counts.nominal_flops / median(row) / 1e9 for place, row in timed if row.timings}


def _chosen(rows: Iterable[BenchRow]) -> list[str]:
    """Those that everybody looks for, then the fastest, in the order of their speed.

    That is the geometric mean of their times over the least of each case, of the cases that they have a time for. Of a
    method or peer in several forms, the one without options stands for all, or else the fastest.
    """
    cases: dict[tuple[int, str], list[BenchRow]] = {}
    for row in rows:
        if row.timings and row.kind != "copy":
            cases.setdefault((row.case.size, row.case.filter), []).append(row)
    behind: dict[str, list[float]] = {}
    for timed in cases.values():
        least = min(map(median, timed))
        for row in timed:
            behind.setdefault(row.candidate, []).append(median(row) / least)
    ranked = sorted(behind, key=lambda name: geometric_mean(behind[name]))
    plain_last = sorted(reversed(ranked), key=lambda name: ":" not in name)
    one_each = {name.partition(":")[0]: name for name in plain_last}.values()
    first = sorted(one_each, key=lambda name: (name not in LOOKED_FOR, ranked.index(name)))[:MOST_CURVES]
    return sorted(first, key=ranked.index)


def _of_all_kinds(found: Sequence[Group]) -> list[Drawing]:
    """Of each kind of case at its largest size: the lead over the fastest peer, and the share of a copy's speed."""
    leads, near = {}, {}
    for group in found:
        for winner in winners(group)[-1:]:
            label, metrics = f"{group.title}, {winner.method.case.size}", winner.method.lead_metrics
            if winner.ratio is not None and winner.peer is not None:
                leads[f"{label}, over {winner.peer.candidate}"] = winner.ratio.ratio
            if metrics is not None and metrics.floor_share is not None:
                near[label] = metrics.floor_share
    words, title = "Each kind of case at its largest size.", "Lead of the fastest method over the fastest peer"
    return [
        *_bars("lead", title, words, "the peer's time / the method's", leads, times),
        *_bars("copy_speed", "How near the fastest method is to a copy", words, NEAR, near, share_text),
    ]


def _distribution(record: BenchRecord, device: str) -> list[Drawing]:
    """How many of the drawn cases reach which share of the limit."""
    tenths = Counter(min(int(10 * share.share), 10) for share in shares(record, device))
    caption = "The limit is a copy of the fewest bytes, or the arithmetic that no form saves, whichever takes longer."
    title = f"Share of the limit at {counted(tenths.total(), 'drawn case')}, {device.upper()}"
    below = {f"{10 * tenth} to {10 * tenth + 10} %": tenths[tenth] for tenth in range(9, -1, -1)}
    cases = {"100 % and more": tenths[10], **below} if tenths else {}
    return _bars(f"shares_{device}", title, caption, "cases", cases, str)


def _bank(series: BankSeries) -> list[Drawing]:
    """GFLOPS over the number of filters, under the two limits."""
    work = {filters: rows[0].counts.nominal_flops / 1e9 for filters, rows in series.rows.items()}
    limits = {filters: series.limits_seconds(filters) for filters in work}
    memory = {filters: work[filters] / by_memory for filters, (by_memory, _) in limits.items()}
    arithmetic = {filters: work[filters] / seconds for filters, (_, seconds) in limits.items() if seconds}
    curves = [Curve("limit: memory", memory, "soft", True), Curve("limit: arithmetic", arithmetic, "soft", True)]
    colours = colours_of(_chosen(row for rows in series.rows.values() for row in rows))
    curves += [Curve(name, _rates(series.rows, name), colour) for name, colour in colours.items()]
    return _lines(
        f"banks_{series.device}_{series.dtype}_{series.size}_{series.stride}_c{series.in_channels}",
        f"Filter banks, {series.title}, {series.device.upper()}",
        "Nominal GFLOPS under what a copy of the fewest bytes allows, and the measured rate of float32 multiply-adds.",
        "filters",
        RATE,
        curves,
    )


def of_ladder(record: LadderRecord) -> list[Drawing]:
    """Of each stride or type: the steps over size, and at the largest size."""
    drawings: list[Drawing] = []
    kind, sizes = record.kind.replace(" ", "_"), sorted({row.size for row in record.rows})
    usually = "Every step with its usual thread blocks; "
    over_size, at_largest = f"{usually}both axes are logarithmic.", f"{usually}from the top, as they are built up."
    for number, case in enumerate(dict.fromkeys(row.case for row in record.rows), 1):
        rates: dict[str, dict[int, float]] = {}
        for size in sizes:
            for step, row in usual(record, size, case).items():
                if row.gflops and step != COPY:
                    rates.setdefault(step, {})[size] = row.gflops
        colours = NAMES * len(rates)
        curves = [Curve(step, by_size, colour) for (step, by_size), colour in zip(rates.items(), colours, strict=False)]
        largest = {step: by_size[sizes[-1]] for step, by_size in rates.items() if sizes[-1] in by_size}
        words = f"Each step of edgeconv {record.kind}, {sizes[-1]}×{sizes[-1]}, {case}, {record.machine.name}"
        drawings += _lines(f"{kind}_{number}", f"Nominal GFLOPS of each step, {case}", over_size, "side", RATE, curves)
        drawings += _bars(f"{kind}_bars_{number}", words, at_largest, RATE, largest, _rate)
    return drawings[:MOST_PLOTS]


def of_runs(reports: Sequence[RunReport]) -> list[Drawing]:
    """What tells several runs apart."""
    named = dict(zip(labels(reports), reports, strict=True))
    speeds = {name: report.speed for name, report in named.items() if report.speed is not None}
    rates = {name: speed.kernel_gflops for name, speed in speeds.items()}
    near = {name: share for name, speed in speeds.items() if (share := share_of_limit(speed.memory_floor_share))}
    whole = {name: report.whole_run_seconds for name, report in named.items()}
    cached = "Runs whose data lie in a cache have no bar."
    from_start = "From the start of the process to the written file."
    return [
        *_bars("run_gflops", "Nominal GFLOPS of the kernel", "Medians of timed runs.", RATE, rates, _rate),
        *_bars("run_roof", "Share of copy speed", cached, NEAR, near, share_text),
        *_bars("run_whole", "Whole run", from_start, "seconds", whole, seconds_text),
    ]


def _lines(name: str, title: str, words: str, across: str, up: str, curves: Iterable[Curve]) -> list[Drawing]:
    """Curves that are lines: one dot on a logarithmic axis says nothing."""
    shown = tuple(curve for curve in curves if len(curve.points) > 1 and min(curve.points.values()) > 0)
    return [Lines(name, title, words, across, up, shown)] if shown else []


def _bars(
    name: str, title: str, words: str, across: str, values: Mapping[str, float], text: Callable[[float], str]
) -> list[Drawing]:
    """Bars of the first `MOST_BARS`; one alone says nothing."""
    more = f" The first {MOST_BARS} of {len(values)}." if len(values) > MOST_BARS else ""
    shown = dict([*values.items()][:MOST_BARS])
    return [Bars(name, title, words + more, across, shown, text)] if len(shown) > 1 else []
