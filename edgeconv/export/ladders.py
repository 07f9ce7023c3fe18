"""The ladders of `bench conv` and `bench gemm` as tables: to learn from, a step's idea beside what it gained; or all.

Ideas and predictions are those of the steps themselves (bench/ladders), times those of a record. Where nothing else is
said a step stands with its usual thread blocks.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, TypeVar

from edgeconv.bench.intervals import ratio_interval
from edgeconv.bench.ladders import conv, gemm
from edgeconv.bench.ladders.base import StepRow
from edgeconv.bench.ladders.conv import COPY, ConvRecord, ConvRow
from edgeconv.bench.ladders.gemm import VENDOR, GemmRecord, GemmRow
from edgeconv.core.units import digits_text, seconds_text
from edgeconv.export.spoken import lead_text
from edgeconv.export.tables import NOTHING, Table, percent

SIZE, STRIDE, DTYPE = 4096, 1, "float32"
"""What predictions are made for, and what documents show."""
WIDTH = 110
"""Letters of a line in a source's header, beside its comment mark."""

LadderRecord = ConvRecord | GemmRecord
L = TypeVar("L", bound=StepRow)


# --- for documents and sources ---------------------------------------------------------------------------------------


def conv_steps(record: ConvRecord) -> Table:
    """Each step at 4096, stride 1: its idea, why it should help, what was predicted, and what came of it."""
    lines = []
    for step, row, gain in _climbed(record):
        expected = NOTHING if step.expected_gain is None else f"{step.expected_gain:g} ×"
        figures = (expected, gain, _median(row), percent(row.share_of_floor))
        lines.append((f"`{step.name}`", step.idea, step.because, *figures))
    header = ("step", "idea", "why it should help", "predicted", "gain", "median", "of copy speed")
    return Table("The ladder", header, tuple(lines))


def conv_blocks(record: ConvRecord) -> Table:
    """Medians of every thread block at 4096, stride 1."""
    rows = [row for row in record.rows if (row.size, row.stride) == (SIZE, STRIDE) and row.block]
    blocks = [block for block in dict.fromkeys(row.block for row in rows) if block]
    times = {(row.step, row.block): _median(row) for row in rows}
    steps = dict.fromkeys(row.step for row in rows)
    lines = [(f"`{step}`", *(times.get((step, block), NOTHING) for block in blocks)) for step in steps]
    return Table("Thread blocks", ("step", *blocks), tuple(lines))


def gemm_steps(record: GemmRecord) -> Table:
    """Each step of the products at 4096 in float32: its idea, its gain, and how near it comes to the vendor's."""
    lines = []
    for step, row, gain in _climbed(record):
        figures = (_rate(row), percent(row.share_of_vendor), percent(row.share_of_peak))
        lines.append((f"`{step.name}`", step.idea, row.block or NOTHING, gain, _median(row), *figures))
    header = ("step", "idea", "blocks", "gain", "median", "GFLOPS", "of cuBLAS", "of peak")
    return Table("The ladder of products", header, tuple(lines))


def source(record: LadderRecord) -> list[str]:
    """The steps as lines of a source's header: name, median, gain, and the idea, which is wrapped."""
    steps = [(step.name, _median(row), gain, step.idea) for step, row, gain in _climbed(record)]
    widths = [max(len(step[column]) for step in steps) for column in range(3)]
    lines = []
    for name, median, gain, idea in steps:
        head = f"  {name:<{widths[0]}}  {median:>{widths[1]}}  {gain:>{widths[2]}}  "
        lines += textwrap.wrap(idea, WIDTH, initial_indent=head, subsequent_indent=" " * len(head))
    case, more = DTYPE, ""
    if isinstance(record, ConvRecord):
        case = f"stride {STRIDE}"
        more = f"; a copy takes {_median(usual(record.rows, size=SIZE, stride=STRIDE)[COPY])}"
    where = f"{record.machine.name}, {SIZE} × {SIZE}, {case}, cold L2{more}"
    return [*lines, f"Medians and gains over the step before on one {where}."]


def _climbed(record: LadderRecord) -> list[tuple[Any, Any, str]]:
    """Each step, its row, and its gain over the step before, at `SIZE` and the case that documents show."""
    if isinstance(record, ConvRecord):
        rows, steps = usual(record.rows, size=SIZE, stride=STRIDE), conv.STEPS
        return [(step, rows[step.name], _gain(rows[step.name])) for step in steps]
    products = usual(record.rows, size=SIZE, dtype=DTYPE)
    seconds = [products[step.name].median_seconds for step in gemm.STEPS]
    gains = (f"{before / after:.2f} ×" if before and after else NOTHING for before, after in pairwise(seconds))
    return [(step, products[step.name], gain) for step, gain in zip(gemm.STEPS, (NOTHING, *gains), strict=True)]


# --- for reports ----------------------------------------------------------------------------------------------------


def title(record: LadderRecord) -> str:
    """What was measured, in a few words."""
    return f"edgeconv {record.kind} on {record.machine.name}"


def lead(record: LadderRecord) -> list[str]:
    """What the ladder gains at its largest size: the fastest step beside the first, and how near it comes."""
    lines = []
    size = max(row.size for row in record.rows)
    for words, case in panels(record):
        found = usual(record.rows, size=size, **case)
        timed = [(row.timing, row) for name, row in found.items() if row.timing and name not in (COPY, VENDOR)]
        if not timed:
            continue
        (slow, first), (fast, best) = timed[0], min(timed, key=lambda entry: entry[0].median_seconds)
        share, of_what = _shares(best)[0], "of copy speed" if isinstance(best, ConvRow) else "of cuBLAS's speed"
        line = f"{words}, side {size}: {best.step} takes {_median(best)}, {percent(share)} {of_what}"
        ahead = lead_text(ratio_interval(fast.samples_seconds, slow.samples_seconds), first.step)
        lines.append(line if best is first else f"{line}, {ahead}")
    return lines


def panels(record: LadderRecord) -> list[tuple[str, dict[str, Any]]]:
    """The cases of a ladder, and the fields of a row that belong there: strides, or types."""
    if isinstance(record, ConvRecord):
        strides = dict.fromkeys(row.stride for row in record.rows)
        return [(f"stride {stride}", {"stride": stride}) for stride in strides]
    return [(dtype, {"dtype": dtype}) for dtype in dict.fromkeys(row.dtype for row in record.rows)]


def by_size(record: LadderRecord) -> Table:
    """GFLOPS of every step over size, with its usual thread blocks; of products the share of the vendor's behind it."""
    sizes = sorted({row.size for row in record.rows})
    lines = []
    for words, case in panels(record):
        found = {size: usual(record.rows, size=size, **case) for size in sizes}
        for step in dict.fromkeys(row.step for row in record.rows if row.step != COPY):
            cells = (_rate_and_share(found[size].get(step)) for size in sizes)
            lines.append((step, words, *cells))
    return Table("GFLOPS over the side", ("step", "case", *map(str, sizes)), tuple(lines))


def every_row(record: LadderRecord) -> Table:
    """One line per row, in the order of the record."""
    shares = ("of copy speed", "gain") if isinstance(record, ConvRecord) else ("of cuBLAS", "of peak")
    lines = []
    for row in record.rows:
        case = f"stride {row.stride}" if isinstance(row, ConvRow) else row.dtype
        error = "infinite" if row.relative_error is None else f"{row.relative_error:.1g}"
        first, second = _shares(row)
        cells = (percent(first), _gain(row) if isinstance(row, ConvRow) else percent(second))
        verdict = "right" if row.right else "WRONG"
        known = (verdict, case, str(row.size), row.step, row.block or NOTHING)
        lines.append((*known, _median(row), _rate(row), *cells, error))
    header = ("verdict", "case", "size", "step", "blocks", "median", "GFLOPS", *shares, "error")
    return Table("Every row", header, tuple(lines), folded=True)


def usual(rows: Iterable[L], **case: Any) -> dict[str, L]:
    """The first row of each step at a case, which has its usual blocks."""
    found: dict[str, L] = {}
    for row in rows:
        if all(getattr(row, name) == value for name, value in case.items()):
            found.setdefault(row.step, row)
    return found


def _shares(row: StepRow) -> tuple[float | None, float | None]:
    """Of a copy's speed; or of the vendor's, and of the peak."""
    if isinstance(row, GemmRow):
        return row.share_of_vendor, row.share_of_peak
    return (row.share_of_floor if isinstance(row, ConvRow) else None), None


def _rate(row: StepRow) -> str:
    return NOTHING if row.gflops is None else digits_text(row.gflops, 4)


def _rate_and_share(row: StepRow | None) -> str:
    if row is None or row.gflops is None:
        return NOTHING
    return f"{_rate(row)} ({percent(row.share_of_vendor)})" if isinstance(row, GemmRow) else _rate(row)


def _median(row: StepRow) -> str:
    return NOTHING if row.median_seconds is None else seconds_text(row.median_seconds)


def _gain(row: ConvRow) -> str:
    return NOTHING if row.gain is None else f"{row.gain:.2f} ×"
