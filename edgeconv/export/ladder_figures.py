"""Drawings of the ladders of `bench conv` and `bench gemm`: GFLOPS of each step over size, and as bars at one."""

from __future__ import annotations

from matplotlib.figure import Figure

from edgeconv.bench.ladders.conv import COPY, ConvRecord
from edgeconv.core.units import digits_text
from edgeconv.export.colours import INK, SERIES
from edgeconv.export.figures import Drawing, ink, legend, literal, size_panels
from edgeconv.export.ladders import LadderRecord, panels, steps_of, usual


def draw_ladder(record: LadderRecord) -> list[Drawing]:
    """Lines with one panel per stride or type, and bars of the largest size for each of them."""
    return [_lines(record), *_bars(record)]


def _bars(record: LadderRecord) -> list[Drawing]:
    drawings = []
    size = max(row.size for row in record.rows)
    for title, case in panels(record):
        steps = usual(record.rows, size=size, **case)
        rates = {step: row.gflops for step, row in steps.items() if step != COPY and row.gflops is not None}
        names = [step for step in steps_of(record) if step in rates]
        if not names:
            continue
        figure = Figure(figsize=(7.2, 1.0 + 0.3 * len(names)), layout="constrained")
        axis = figure.add_subplot()
        ink(axis)
        bars = axis.barh(range(len(names)), [rates[name] for name in names], color=SERIES[0], height=0.7)
        axis.bar_label(bars, [digits_text(rates[name], 3) for name in names], fontsize=7, padding=3, color=INK)
        axis.set_yticks(range(len(names)), [literal(name) for name in names], fontsize=8)
        axis.invert_yaxis()
        axis.margins(x=0.12)
        axis.set_xlabel("GFLOPS")
        device = record.machine.name
        words = f"Each step of edgeconv {record.kind}, {size}×{size}, {title}, {device}"
        name = "_".join([record.kind.replace(" ", "_"), "bars", *(str(value) for value in case.values())])
        drawings.append(
            Drawing(name, words, "Every step with its usual thread blocks; from the top, as they are built up.", figure)
        )
    return drawings


def _lines(record: LadderRecord) -> Drawing:
    rows, sizes = record.rows, sorted({row.size for row in record.rows})
    found = panels(record)
    figure, axes = size_panels([sizes] * len(found))
    for axis, (title, case) in zip(axes, found, strict=True):
        for number, step in enumerate(step for step in steps_of(record) if step != COPY):
            points = [(size, usual(rows, size=size, **case).get(step)) for size in sizes]
            timed = [(size, row.gflops) for size, row in points if row is not None and row.gflops is not None]
            places, rates = [size for size, _ in timed], [rate for _, rate in timed]
            axis.plot(places, rates, "o-", color=SERIES[number % len(SERIES)], label=literal(step), markersize=3)
        axis.set_title(literal(title))
        if isinstance(record, ConvRecord):  # a hundredfold from the smallest picture to the largest
            axis.set_yscale("log")
        else:
            axis.set_ylim(bottom=0)
        axis.set_ylabel("GFLOPS")
    legend(figure, axes)
    name = record.kind.replace(" ", "_")
    caption = "Every step with its usual thread blocks."
    return Drawing(name, f"GFLOPS of each step, edgeconv {record.kind}", caption, figure)
