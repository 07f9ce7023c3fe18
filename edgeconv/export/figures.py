"""The plots of a report: at most six, whatever the record. Each answers one question, from the record alone.

    a bench       GFLOPS over size, of the kinds of cases with the most candidates; then, of all kinds at their largest
                  size, the lead over the fastest peer, and how near the fastest method is to a copy's speed
    filter banks  GFLOPS over the number of filters, under what memory and arithmetic allow
    drawn cases   one distribution of the shares of the limit
    a ladder      GFLOPS of each step over size, and as bars at the largest
    runs          where the time of one run went; of several their GFLOPS, and how near they are to a copy's speed

A kind of case with one size has bars in place of single dots. Of many candidates those that everybody looks for are
drawn (`LOOKED_FOR`), then the fastest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from statistics import geometric_mean

from edgeconv.bench.ladders.conv import COPY
from edgeconv.bench.record import BenchRecord, BenchRow
from edgeconv.bench.summary import Group, groups, median, winners
from edgeconv.bench.surface import shares
from edgeconv.core.cost import share_of_limit
from edgeconv.core.units import counted, digits_text, seconds_text, share_text
from edgeconv.export.banks import BankSeries, bank_series
from edgeconv.export.colours import NAMES, colours_of
from edgeconv.export.drawing import Bar, Bars, Curve, Drawing, Lines
from edgeconv.export.ladders import LadderRecord, panels, usual
from edgeconv.export.runs import labels
from edgeconv.export.tables import times
from edgeconv.run.report import PHASES, RunReport

MOST_PLOTS, MOST_CURVES, MOST_BARS = 6, 8, 24
MOST_OVER_SIZE = 4
"""Plots over size, beside which the two of all kinds stand."""
LOOKED_FOR = ("sliding", "torch", "cudnn", "jax", "opencv-filter2d", "triton", "im2col")
SIDE = "side of the picture, pixels"
RATE = "GFLOPS (nominal)"
LIMIT = "limit: a plain copy"
NEAR = "share of copy speed"


def of_bench(record: BenchRecord) -> list[Drawing]:
    """Of a grid, of filter banks, or of drawn cases."""
    if record.grid.draw is not None:
        return _distribution(record)
    banks = [series for series in bank_series(record) if len(series.rows) > 1]
    if banks:
        return [_bank(series) for series in banks[:MOST_PLOTS]]
    timed = [group for group in groups(record) if _shown(group)]
    most = sorted(timed, key=lambda group: -len({row.candidate for row in group.rows if row.timings}))
    over_size = [_over_size(group, number) for number, group in enumerate(most[:MOST_OVER_SIZE], 1)]
    return [*over_size, *_of_all_kinds(timed)]


def _over_size(group: Group, number: int) -> Drawing:
    name, shown = f"gflops_{number}", _shown(group)
    colours = {"copy": "soft", **colours_of(shown)}
    if len(group.sizes) == 1:
        rows = sorted((row for row in group.rows if row.candidate in colours and row.timings), key=median)
        bars = tuple(
            Bar(
                LIMIT if row.kind == "copy" else row.candidate,
                median(row),
                seconds_text(median(row)),
                colours[row.candidate],
            )
            for row in rows
        )
        title = f"Median time, {group.title}, {group.sizes[0]}"
        return Bars(name, title, "The fastest first; short bars are fast.", "median time", bars)
    curves = (_curve(group, candidate, colour) for candidate, colour in colours.items())
    left = len({row.candidate for row in group.rows} - set(colours))
    more = f" {counted(left, 'more candidate')} in the table." if left else ""
    caption = f"Nominal GFLOPS; both axes are logarithmic.{more}"
    return Lines(name, f"GFLOPS, {group.title}", caption, SIDE, RATE, _lines(curves))


def _lines(curves: Iterable[Curve]) -> tuple[Curve, ...]:
    """Those that are lines: one dot on a logarithmic axis says nothing."""
    return tuple(curve for curve in curves if len(curve.points) > 1 and min(curve.points.values()) > 0)


def _curve(group: Group, candidate: str, colour: str) -> Curve:
    """Nominal FLOPs over the median, over the side."""
    rows = [row for row in group.rows if row.candidate == candidate and row.timings]
    points = {row.case.size: _gflops(row) for row in sorted(rows, key=lambda row: row.case.size)}
    return Curve(LIMIT if candidate == "copy" else candidate, points, colour, candidate == "copy")


def _gflops(row: BenchRow) -> float:
    return row.counts.nominal_flops / median(row) / 1e9


def _shown(group: Group) -> list[str]:
    """Those that everybody looks for, then the fastest; in the order of their speed."""
    return _chosen([row for row in group.rows if row.case.size == size] for size in group.sizes)


def _chosen(cases: Iterable[Sequence[BenchRow]]) -> list[str]:
    """By the geometric mean of their times over the least of each case, of the cases that they have a time for.

    Of a method or peer in several forms, the one without options stands for all, or else the fastest.
    """
    behind: dict[str, list[float]] = {}
    for rows in cases:
        timed = [row for row in rows if row.timings and row.kind != "copy"]
        least = min(map(median, timed), default=0.0)
        for row in timed:
            behind.setdefault(row.candidate, []).append(median(row) / least)
    ranked = sorted(behind, key=lambda name: geometric_mean(behind[name]))
    families: dict[str, str] = {}
    for name in sorted(ranked, key=lambda name: ":" in name):
        families.setdefault(name.partition(":")[0], name)
    one_each = [name for name in ranked if name in families.values()]
    first = sorted(one_each, key=lambda name: name not in LOOKED_FOR)[:MOST_CURVES]
    return [name for name in ranked if name in first]


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
        *_bars("lead", title, "the peer's time / the method's", words, leads, times),
        *_bars("copy_speed", "How near the fastest method is to a copy", NEAR, words, near, share_text),
    ]


def _distribution(record: BenchRecord) -> list[Drawing]:
    """How many of the drawn cases reach which share of the limit; one of each device."""
    caption = "The limit is a copy of the fewest bytes, or the arithmetic that no form saves, whichever takes longer."
    drawings: list[Drawing] = []
    for device in record.roofs:
        tenths = Counter(min(int(10 * share.share), 10) for share in shares(record, device))
        bars = tuple(
            Bar(
                f"{10 * tenth} to {10 * tenth + 10} %" if tenth < 10 else "100 % and more",
                tenths[tenth],
                str(tenths[tenth]),
            )
            for tenth in range(10, -1, -1)
        )
        title = f"Share of the limit that {tenths.total()} drawn cases reach, {device.upper()}"
        drawings += [Bars(f"shares_{device}", title, caption, "cases", bars)] if tenths else []
    return drawings


def _bank(series: BankSeries) -> Drawing:
    """GFLOPS over the number of filters, under the two limits."""
    memory, arithmetic = {}, {}
    for filters, rows in series.rows.items():
        work = rows[0].counts.nominal_flops / 1e9
        by_memory, by_arithmetic = series.limits_seconds(filters)
        memory[filters] = work / by_memory
        if by_arithmetic:
            arithmetic[filters] = work / by_arithmetic
    curves = [Curve("limit: memory", memory, "soft", True), Curve("limit: arithmetic", arithmetic, "soft", True)]
    for name, colour in colours_of(_chosen(series.rows.values())).items():
        found = {filters: row for filters, rows in series.rows.items() for row in rows if row.candidate == name}
        curves.append(Curve(name, {filters: _gflops(row) for filters, row in found.items()}, colour))
    return Lines(
        f"banks_{series.device}_{series.dtype}_{series.size}_{series.stride}_c{series.in_channels}",
        f"Filter banks, {series.title}, {series.device.upper()}",
        "Nominal GFLOPS under what a copy of the fewest bytes allows, and the measured rate of float32 multiply-adds.",
        "filters",
        RATE,
        _lines(curves),
    )


def of_ladder(record: LadderRecord) -> list[Drawing]:
    """Of each stride or type: the steps over size, and at the largest size."""
    lines: list[Drawing] = []
    bars: list[Drawing] = []
    kind, sizes = record.kind.replace(" ", "_"), sorted({row.size for row in record.rows})
    for number, (title, case) in enumerate(panels(record), 1):
        found = {size: usual(record.rows, size=size, **case) for size in sizes}
        steps = [name for name in dict.fromkeys(row.step for row in record.rows) if name != COPY]
        rates = {
            step: {size: rate for size in sizes if step in found[size] and (rate := found[size][step].gflops)}
            for step in steps
        }
        colours = dict(zip(steps, NAMES * len(steps), strict=False))
        curves = _lines(Curve(step, rates[step], colours[step]) for step in steps)
        if curves:
            caption = "Every step with its usual thread blocks; both axes are logarithmic."
            lines.append(Lines(f"{kind}_{number}", f"GFLOPS of each step, {title}", caption, "side", RATE, curves))
        largest = [(step, rates[step][sizes[-1]]) for step in steps if sizes[-1] in rates[step]]
        if largest:
            shown = tuple(Bar(step, rate, _rate(rate)) for step, rate in largest)
            words = f"Each step of edgeconv {record.kind}, {sizes[-1]}×{sizes[-1]}, {title}, {record.machine.name}"
            caption = "Every step with its usual thread blocks; from the top, as they are built up."
            bars.append(Bars(f"{kind}_bars_{number}", words, caption, "GFLOPS", shown))
    return [drawing for pair in zip_longest(lines, bars) for drawing in pair if drawing is not None][:MOST_PLOTS]


def of_runs(reports: Sequence[RunReport]) -> list[Drawing]:
    """Of one run its phases; of several what tells them apart."""
    if len(reports) == 1:
        found = reports[0].phases_seconds
        had = [phase for phase in PHASES if phase in found]
        phases = tuple(Bar(phase.replace("_", " "), found[phase], seconds_text(found[phase])) for phase in had)
        caption = "The one pass whose output was saved, from the start of the process to the written file."
        return [Bars("run_phases", "Where the time went", caption, "seconds of each phase", phases)]
    named = list(zip(labels(reports), reports, strict=True))
    timed = [(name, report.speed) for name, report in named if report.speed is not None]
    rates = {name: speed.kernel_gflops for name, speed in timed}
    near = {name: share for name, speed in timed if (share := share_of_limit(speed.memory_floor_share)) is not None}
    whole = {name: report.whole_run_seconds for name, report in named}
    cached, from_start = (
        "Runs whose data lie in a cache have no bar.",
        "From the start of the process to the written file.",
    )
    return [
        *_bars("run_gflops", "GFLOPS of the kernel", RATE, "Medians of timed runs.", rates, _rate),
        *_bars("run_roof", "Share of copy speed", NEAR, cached, near, share_text),
        *_bars("run_whole", "Whole run", "seconds", from_start, whole, seconds_text),
    ]


def _rate(value: float) -> str:
    return digits_text(value, 3)


def _bars(
    name: str, title: str, across: str, words: str, values: Mapping[str, float], text: Callable[[float], str]
) -> list[Drawing]:
    """Bars of the first `MOST_BARS`; one alone says nothing."""
    shown = tuple(Bar(label, value, text(value)) for label, value in [*values.items()][:MOST_BARS])
    more = f" The first {MOST_BARS} of {len(values)}." if len(values) > MOST_BARS else ""
    return [Bars(name, title, words + more, across, shown)] if len(shown) > 1 else []
