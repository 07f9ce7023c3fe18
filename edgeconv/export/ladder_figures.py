"""Drawings of the ladders of `bench conv` and `bench gemm`: GFLOPS of each step over size."""

from __future__ import annotations

from edgeconv.bench.ladders.conv import COPY, ConvRecord
from edgeconv.export.figures import COLOURS, Drawing, legend, literal, size_panels
from edgeconv.export.ladders import LadderRecord, panels, steps_of, usual


def draw_ladder(record: LadderRecord) -> list[Drawing]:
    """One drawing, with one panel per stride or type."""
    rows, sizes = record.rows, sorted({row.size for row in record.rows})
    found = panels(record)
    figure, axes = size_panels([sizes] * len(found))
    for axis, (title, case) in zip(axes, found, strict=True):
        for number, step in enumerate(step for step in steps_of(record) if step != COPY):
            points = [(size, usual(rows, size=size, **case).get(step)) for size in sizes]
            timed = [(size, row.gflops) for size, row in points if row is not None and row.gflops is not None]
            places, rates = [size for size, _ in timed], [rate for _, rate in timed]
            axis.plot(places, rates, "o-", color=COLOURS[number % len(COLOURS)], label=literal(step), markersize=3)
        axis.set_title(literal(title))
        if isinstance(record, ConvRecord):  # a hundredfold from the smallest picture to the largest
            axis.set_yscale("log")
        else:
            axis.set_ylim(bottom=0)
        axis.set_ylabel("GFLOPS")
    legend(figure, axes)
    name = record.kind.replace(" ", "_")
    caption = "Every step with its usual thread blocks."
    return [Drawing(name, f"GFLOPS of each step, edgeconv {record.kind}", caption, figure)]
