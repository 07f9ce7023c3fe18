"""The drawings, made with matplotlib from a record alone. Each answers one question; `PLOTS` lists them.

    gflops      how fast, over size, one panel per stride                (log axes; the lab reports' plot)
    time        how long, over size, with the floor drawn in             (log axes)
    roofline    how near to what this machine can do at all
    floor       share of the floor, every candidate at every size          (heat map)
    waterfall   where a whole picture's time goes, and at which sizes a GPU pays
    cudnn       what cuDNN's heuristic put first, and what was fastest
    banks       GFLOPS over the number of filters of a bank, under what memory and arithmetic allow

Ink and background: axes and text are drawn in `INK`, which the page replaces by its own text colour; every colour can
be read on light and on dark (colours.py). A plot has at most `MOST_SERIES` series, the fastest.

Text that comes from a record goes through `literal`, for matplotlib takes what stands between two `$` as maths.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from edgeconv.bench.record import BenchRecord, BenchRow
from edgeconv.bench.summary import Group, Phases, geometric_mean, groups, median, phases
from edgeconv.core.safe_text import visible_lines
from edgeconv.core.units import digits_text, share_text
from edgeconv.export.banks import BankPoint, BankSeries, bank_series
from edgeconv.export.colours import FLOOR, INK, colour_of, place_of
from edgeconv.io.files import xml_text
from edgeconv.run.report import ranking_of

MOST_SERIES = 8
"""Labelled in one plot; the floor is one more."""
PHASE_COLOURS = {
    "start": "#8a8d91",
    "set up": "#A6761D",
    "decode": "#CC79A7",
    "host to device": "#5F8C2B",
    "convolve": "#0072B2",
    "threshold": "#8C8200",
    "device to host": "#D55E00",
    "encode": "#7F52A0",
}
LINE_STYLES = {"method": ("-", "-.", (0, (5, 1))), "peer": ("--", (0, (2, 1)), (0, (4, 2))), "copy": (":",)}
"""By kind: for the first series of a colour, and for others of the same. Methods have markers too."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
"""By colour, so that a method is known without it."""
LINE_WORDS = "With markers: methods. Dashed: peers."
PANEL_INCHES = (4.2, 3.4)
SECONDS_PER_MICROSECOND = 1e-6


@dataclass(frozen=True)
class Drawing:
    """A figure, its file name's part, and what it shows in words (also for who cannot see it)."""

    name: str
    title: str
    caption: str
    figure: Figure


def draw(record: BenchRecord) -> list[Drawing]:
    """Every drawing that the record has figures for."""
    return [drawing for plot in PLOTS for drawing in plot(record)]


def gflops(record: BenchRecord) -> list[Drawing]:
    """GFLOPS over size, one panel per stride."""
    drawings = []
    for key, panels in _by_stride(record):
        figure, axes = _panels(panels)
        shown, left_words = _fastest_series(panels)
        for axis, group in zip(axes, panels, strict=True):
            _lines(axis, group, _gflops, shown)
            axis.set_title(f"stride {group.stride}")
            axis.set_ylabel("GFLOPS (nominal)")
            axis.set_yscale("log")
            axis.minorticks_off()
        legend(figure, axes)
        caption = f"Nominal GFLOPS over the side of the picture, both logarithmic. {LINE_WORDS}{left_words}"
        drawings.append(Drawing(f"gflops_{key}", f"GFLOPS, {_short(panels[0])}", caption, figure))
    return drawings


def times(record: BenchRecord) -> list[Drawing]:
    """Microseconds over size, both logarithmic, with the copy as the floor."""
    drawings = []
    for key, panels in _by_stride(record):
        figure, axes = _panels(panels)
        shown, left_words = _fastest_series(panels)
        for axis, group in zip(axes, panels, strict=True):
            _lines(axis, group, lambda row: median(row) / SECONDS_PER_MICROSECOND, ("copy", *shown))
            axis.set_title(f"stride {group.stride}")
            axis.set_ylabel("median time, µs")
            axis.set_yscale("log")
            axis.minorticks_off()
        legend(figure, axes)
        state = next((row.lead_l2_state for row in panels[0].rows if row.lead_l2_state), "")
        caption = f"Median time with a {state} L2. Dotted: the fewest bytes read and written, the floor. {LINE_WORDS}"
        caption += left_words
        drawings.append(Drawing(f"time_{key}", f"Time, {_short(panels[0])}", caption, figure))
    return drawings


def roofline(record: BenchRecord) -> list[Drawing]:
    """GFLOPS over intensity under the measured roof, at the largest size of each group."""
    drawings = []
    for device, roof in record.roofs.items():
        rows = [row for group in groups(record) if group.device == device for row in _at_largest_size(group)]
        rows = [row for row in rows if row.kind != "copy"]
        if not rows:
            continue
        copy, fma = roof.copy_bytes_per_second / 1e9, roof.fma_flops_per_second / 1e9
        figure = _figure(1, 1.6)
        axis = figure.add_subplot()
        ridge = fma / copy
        spread = [row.counts.intensity_flops_per_byte for row in rows] + [ridge]
        low, high = min(spread) / 3, max(spread) * 3
        axis.plot([low, ridge, high], [low * copy, fma, fma], color=INK, linewidth=1.5)
        shown, left_words = _fastest_series([group for group in groups(record) if group.device == device])
        labelled = set()
        for row in rows:
            if row.candidate not in shown:
                continue
            marker = "o" if row.kind == "method" else "x"
            label = None if row.candidate in labelled else literal(row.candidate)
            labelled.add(row.candidate)
            place = (row.counts.intensity_flops_per_byte, _gflops(row))
            axis.plot(*place, marker, color=colour_of(row.candidate), label=label, markersize=6)
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel("nominal FLOPs a byte of picture and output")
        axis.set_ylabel("GFLOPS (nominal)")
        axis.grid(True, alpha=0.25)
        legend(figure, [axis])
        caption = (
            f"The largest size of each case under the roof measured in this run: {digits_text(copy, 4)} GB/s copied, "
            f"{digits_text(fma, 4)} GFLOPS of float32 multiply-adds. Crosses: peers. Above it may stand what shares "
            "work, what computes in narrower numbers (8-bit pictures, half, TF32), and what finds its picture in a "
            f"cache.{left_words}"
        )
        drawings.append(Drawing(f"roofline_{device}", f"Roofline, {device.upper()}", caption, figure))
    return drawings


def floor(record: BenchRecord) -> list[Drawing]:
    """Share of the floor as a heat map: candidates down, strides and sizes across."""
    drawings = []
    for key, panels in _by_stride(record):
        timed = [row.candidate for group in panels for row in group.rows if row.lead_series]
        candidates = [name for name in dict.fromkeys(timed) if name != "copy"]
        columns = [(group, size) for group in panels for size in group.sizes]
        shares = [[_share(group, name, size) for group, size in columns] for name in candidates]
        figure = Figure(figsize=(2.0 + 0.52 * len(columns), 1.2 + 0.3 * len(candidates)), layout="constrained")
        axis = figure.add_subplot()
        ink(axis)
        drawn = axis.imshow(shares, cmap="viridis", vmin=0, vmax=1, aspect="auto")
        bar = figure.colorbar(
            drawn, ax=axis, ticks=[0, 0.25, 0.5, 0.75, 1], format=lambda value, _: f"{value:.0%}", pad=0.02
        )
        bar.set_label("share of the floor")
        bar.outline.set_visible(False)
        ink(bar.ax)
        for y, line in enumerate(shares):
            for x, share in enumerate(line):
                if not math.isnan(share):
                    colour = "white" if share < 0.6 else "black"
                    axis.text(x, y, share_text(share), ha="center", va="center", color=colour, fontsize=7)
        axis.set_yticks(range(len(candidates)), [literal(name) for name in candidates], fontsize=8)
        labels = [f"{size}\ns{group.stride}" for group, size in columns]
        axis.set_xticks(range(len(columns)), labels, fontsize=7)
        caption = (
            "Time of reading and writing the fewest bytes over the median, by side and stride; 100 % is the floor."
        )
        drawings.append(Drawing(f"floor_{key}", f"Share of the floor, {_short(panels[0])}", caption, figure))
    return drawings


def waterfall(record: BenchRecord) -> list[Drawing]:
    """Phases of a whole picture with the fastest method of each device, size by size."""
    drawings = []
    for key, panels in _by_case(record):
        bars: list[tuple[str, dict[str, float], str]] = []
        for size in sorted({size for group in panels for size in group.sizes}):
            for group in panels:
                found = phases(record, group, size)
                if found is not None:
                    note = f"{digits_text(_total(found) * 1e3, 3)} ms  {found.method}"
                    bars.append((f"{size} {group.device}", found.seconds, note))
        if not bars:
            continue
        figure = stacked_bars(bars)
        caption = f"From file to file in memory, with the fastest method of each device.{_gpu_words(record, panels)}"
        title = f"Where the time goes, {_short(panels[0], False)}, stride {panels[0].stride}"
        drawings.append(Drawing(f"waterfall_{key}", title, caption, figure))
    return drawings


def cudnn(record: BenchRecord) -> list[Drawing]:
    """Measured times of cuDNN's algorithms in the order of its heuristic, at the largest size of each group."""
    drawings = []
    for number, row in enumerate(_cudnn_rows(record), 1):
        ranking = ranking_of(row.choice)
        times = {(line.algorithm, line.math): line.time_seconds or 0.0 for line in ranking.measured or []}
        ranked = [(line.algorithm, line.math) for line in ranking.ranked]
        names = [name for name in ranked if times.get(name)] + [n for n in times if n not in ranked and times[n]]
        if not names:
            continue
        figure = _figure(1, 1.6)
        axis = figure.add_subplot()
        ink(axis)
        fastest = min(names, key=lambda name: times[name])
        for place, name in enumerate(names):
            colour = "#009E73" if name == fastest else "#0072B2"
            axis.barh(place, times[name] / SECONDS_PER_MICROSECOND, color=colour)
        labels = [literal(f"{math_type}\n{algorithm}") for algorithm, math_type in names]
        axis.set_yticks(range(len(names)), labels, fontsize=7)
        axis.invert_yaxis()
        axis.set_xlabel("measured time, µs")
        case = row.case
        caption = "From the top: as the heuristic ranks them. Green: the fastest as measured."
        title = f"cuDNN's ranking, {case.size}, stride {case.stride}, {case.dtype}, {row.candidate}"
        drawings.append(Drawing(f"cudnn_{number}", title, caption, figure))
    return drawings


def banks(record: BenchRecord) -> list[Drawing]:
    """GFLOPS over the number of filters, both logarithmic, under the two limits; one panel per kind of picture."""
    drawings = []
    of_device = sorted(
        bank_series(record), key=lambda series: (series.device, series.dtype, series.size, series.stride)
    )
    for key, found in groupby(of_device, lambda series: (series.device, series.dtype, series.size, series.stride)):
        panels = [series for series in found if len(series.points) > 1]
        if not panels:
            continue
        device, dtype, size, stride = key
        figure = _figure(len(panels), 1.25)
        axes = list(figure.subplots(1, len(panels), squeeze=False)[0])
        shown, left_words = _fastest(point.rows for series in panels for point in series.points)
        for axis, series in zip(axes, panels, strict=True):
            _bank_lines(axis, series, shown)
        legend(figure, axes)
        caption = (
            "Nominal GFLOPS over the number of filters. Dotted: what a copy of the fewest bytes allows; dash-dotted: "
            "the measured rate of float32 multiply-adds; no float32 method can be above either. "
            f"{LINE_WORDS}{left_words}"
        )
        title = f"Filter banks, {dtype}, {size}×{size}, stride {stride}, {device.upper()}"
        drawings.append(Drawing(f"banks_{device}_{dtype}_{size}_{stride}", title, caption, figure))
    return drawings


def _bank_lines(axis: Axes, series: BankSeries, shown: Sequence[str]) -> None:
    filters = [point.filters for point in series.points]
    flops = [point.rows[0].counts.nominal_flops / 1e9 for point in series.points]
    for limit, style, name in ((_memory, ":", "limit: memory"), (_arithmetic, "-.", "limit: arithmetic")):
        values = [work / limit(point) for work, point in zip(flops, series.points, strict=True)]
        axis.plot(filters, values, linestyle=style, color=INK, linewidth=1.2, label=name)
    for candidate in series.candidates:
        if candidate not in shown:
            continue
        rows = [(point.filters, point.row(candidate)) for point in series.points]
        timed = [(number, row) for number, row in rows if row is not None]
        is_method = timed[0][1].kind == "method"
        axis.plot(
            [number for number, _ in timed],
            [_gflops(row) for _, row in timed],
            linestyle="-" if is_method else "--",
            marker="o" if is_method else None,
            markersize=3,
            color=colour_of(candidate),
            linewidth=1.6,
            label=literal(candidate),
        )
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_xticks(filters, [str(number) for number in filters], fontsize=7)
    axis.minorticks_off()
    axis.set_title(series.title.partition(",")[0])
    axis.set_xlabel("filters")
    axis.set_ylabel("GFLOPS (nominal)")
    axis.grid(True, alpha=0.25)


def _memory(point: BankPoint) -> float:
    return point.memory_seconds


def _arithmetic(point: BankPoint) -> float:
    return point.arithmetic_seconds


PLOTS: tuple[Callable[[BenchRecord], list[Drawing]], ...] = (gflops, times, floor, roofline, waterfall, cudnn, banks)


# --- what the drawings share ------------------------------------------------------------------------------------


def _by_stride(record: BenchRecord) -> list[tuple[str, list[Group]]]:
    """Groups that differ in nothing but the stride, under a name for files."""
    return _gather(record, lambda group: (group.device, group.picture, group.dtype, group.filter, group.channels))


def _by_case(record: BenchRecord) -> list[tuple[str, list[Group]]]:
    """Groups that differ in nothing but the device."""
    return _gather(record, lambda group: (group.picture, group.dtype, group.filter, group.channels, group.stride))


def _gather(record: BenchRecord, key: Callable[[Group], tuple[Any, ...]]) -> list[tuple[str, list[Group]]]:
    found: dict[tuple[Any, ...], list[Group]] = {}
    for group in groups(record):
        if any(row.lead_series for row in group.rows):
            found.setdefault(key(group), []).append(group)
    names = ["_".join(_file_word(part) for part in parts if part) for parts in found]
    return list(zip(_numbered(names), found.values(), strict=True))


def _numbered(names: Sequence[str]) -> list[str]:
    """The same, numbered where they repeat, as those of pictures of one name in two folders; case tells none apart."""
    spelled = [name.casefold() for name in names]
    numbers = [spelled[: place + 1].count(name) for place, name in enumerate(spelled)]
    return [
        name if spelled.count(name.casefold()) == 1 else f"{name}_{number}"
        for name, number in zip(names, numbers, strict=True)
    ]


def _file_word(part: Any) -> str:
    text = str(part) if isinstance(part, str) else f"s{part}"
    return "".join(letter if letter.isalnum() else "-" for letter in text.rpartition("/")[2])


def _short(group: Group, with_device: bool = True) -> str:
    words = [group.device.upper()] if with_device else []
    return ", ".join([*words, *([group.picture] if group.picture else []), group.dtype, group.filter, group.channels])


def _at_largest_size(group: Group) -> list[BenchRow]:
    timed = [row for row in group.rows if row.lead_series]
    largest = max((row.case.size for row in timed), default=0)
    return [row for row in timed if row.case.size == largest]


def _cudnn_rows(record: BenchRecord) -> list[BenchRow]:
    """Rows with a measured ranking, at the largest size of each group."""
    return [row for group in groups(record) for row in _at_largest_size(group) if ranking_of(row.choice).measured]


def _share(group: Group, candidate: str, size: int) -> float:
    row = group.row(candidate, size)
    found = None if row is None else row.lead_metrics
    return math.nan if found is None or found.floor_share is None else found.floor_share


def _gflops(row: BenchRow) -> float:
    return math.nan if row.lead_metrics is None else row.lead_metrics.gflops


def _gpu_words(record: BenchRecord, panels: Sequence[Group]) -> str:
    """A sentence about the sizes at which a GPU with both ways over the bus beats the CPU; none where only one ran."""
    faster = []
    for size in sorted({size for group in panels for size in group.sizes}):
        found = {group.device: phases(record, group, size) for group in panels}
        cpu, cuda = found.get("cpu"), found.get("cuda")
        if cpu is not None and cuda is not None:
            faster.append((size, _total(cuda) < _total(cpu)))
    stretches = [[size for size, _ in sizes] for won, sizes in groupby(faster, lambda entry: entry[1]) if won]
    if not stretches:
        return " At none of the sizes timed on both does the GPU with its bus beat the CPU." if faster else ""
    words = [f"at {sizes[0]}" if len(sizes) == 1 else f"from {sizes[0]} to {sizes[-1]}" for sizes in stretches]
    return f" Of the sizes timed on both, the GPU with its bus beats the CPU {' and '.join(words)}."


def _total(found: Phases) -> float:
    return sum(found.seconds.values())


def stacked_bars(bars: Sequence[tuple[str, dict[str, float], str]]) -> Figure:
    """A line for each (name, seconds by phase, note): its phases as shares of its whole, the first on top."""
    figure = Figure(figsize=(7.2, 1.4 + 0.26 * len(bars)), layout="constrained")
    axis = figure.add_subplot()
    ink(axis)
    labelled = set()
    for place, (_, phases_seconds, note) in enumerate(bars):
        left, total = 0.0, sum(phases_seconds.values())
        for name, seconds in phases_seconds.items():
            label = None if name in labelled else name
            labelled.add(name)
            axis.barh(place, seconds / total, left=left, color=PHASE_COLOURS[name], label=label, height=0.8)
            left += seconds / total
        axis.text(1.01, place, literal(note), va="center", color=INK, fontsize=7)
    axis.set_yticks(range(len(bars)), [literal(name) for name, _, _ in bars], fontsize=8)
    axis.set_xlim(0, 1)
    axis.set_xlabel("share of the whole")
    axis.invert_yaxis()
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    legend(figure, [axis])
    return figure


def _figure(columns: int, widen: float = 1.0) -> Figure:
    width, height = PANEL_INCHES
    return Figure(figsize=(width * columns * widen, height), layout="constrained")


def _panels(panels: Sequence[Group]) -> tuple[Figure, list[Axes]]:
    figure, axes = size_panels([group.sizes for group in panels])
    for axis in axes:
        axis.set_xlabel("side of the picture")
    return figure, axes


def size_panels(sizes: Sequence[Sequence[int]]) -> tuple[Figure, list[Axes]]:
    """A row of axes over size, logarithmic in the side; one for each list of sizes."""
    figure = _figure(len(sizes))
    axes = list(figure.subplots(1, len(sizes), squeeze=False)[0])
    for axis, ticks in zip(axes, sizes, strict=True):
        ink(axis)
        axis.set_xscale("log", base=2)
        axis.set_xticks(list(ticks), [str(size) for size in ticks], fontsize=7)
        axis.minorticks_off()
        axis.set_xlabel("side")
        axis.grid(True, alpha=0.25)
    return figure, axes


def _fastest_series(panels: Iterable[Group]) -> tuple[tuple[str, ...], str]:
    """The fastest candidates of groups: see `_fastest`."""
    return _fastest([row for row in group.rows if row.case.size == size] for group in panels for size in group.sizes)


def _fastest(cases: Iterable[Sequence[BenchRow]]) -> tuple[tuple[str, ...], str]:
    """The fastest candidates beside the floor, in the order of the rows, and a sentence about those left out.

    By the geometric mean of their times over the least of each case, of the cases that they have a time for.
    """
    behind: dict[str, list[float]] = {}
    for rows in cases:
        timed = [row for row in rows if row.lead_series and row.kind != "copy"]
        least = min(map(median, timed), default=0.0)
        for row in timed:
            behind.setdefault(row.candidate, []).append(median(row) / least)
    ranked = sorted(behind, key=lambda name: geometric_mean(behind[name]) or math.inf)
    shown = set(ranked[:MOST_SERIES])
    left = [name for name in behind if name not in shown]
    words = f" Not shown, as they are slower: {', '.join(left)}." if left else ""
    return tuple(name for name in behind if name in shown), words


def _lines(axis: Axes, group: Group, value: Callable[[BenchRow], float], shown: Sequence[str]) -> None:
    drawn: dict[tuple[str, str], int] = {}
    for name in group.candidates:
        rows = [row for row in group.rows if row.candidate == name and row.lead_series]
        if name not in shown or not rows:
            continue
        styles = LINE_STYLES[rows[0].kind]
        colour = FLOOR if rows[0].kind == "copy" else colour_of(name)
        alike = drawn.setdefault((rows[0].kind, colour), 0)  # the same method with other options, say
        drawn[rows[0].kind, colour] += 1
        axis.plot(
            [row.case.size for row in rows],
            [value(row) for row in rows],
            linestyle=styles[alike % len(styles)],
            color=colour,
            marker=MARKERS[place_of(name) % len(MARKERS)] if rows[0].kind == "method" else None,
            markersize=4,
            linewidth=1.6,
            label=literal(name),
        )


def literal(text: str) -> str:
    """Text for matplotlib that is drawn as it stands, never as maths, and that an SVG can hold."""
    return xml_text(visible_lines(text)).replace("$", r"\$")


def ink(axis: Axes) -> None:
    """Draw what is not data in `INK`."""
    axis.tick_params(which="both", colors=INK)
    for part in (axis.xaxis.label, axis.yaxis.label, axis.title):
        part.set_color(INK)
    for spine in axis.spines.values():
        spine.set_color(INK)
        spine.set_alpha(0.5)
    axis.patch.set_alpha(0)


def legend(figure: Figure, axes: Sequence[Axes]) -> None:
    """One legend under all panels, each label once."""
    for axis in axes:
        ink(axis)
    found: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    columns = min(len(found), 4 if len(axes) == 1 else 6)
    if found:
        figure.legend(
            found.values(),
            found.keys(),
            loc="outside lower center",
            ncols=columns,
            fontsize=8,
            frameon=False,
            labelcolor=INK,
        )
