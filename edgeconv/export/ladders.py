"""The ladders of `bench conv` and `bench gemm` as tables: to learn from, a step's idea beside what it gained; or all.

Ideas and predictions are those of the steps themselves (bench/ladders), times those of a record. Where nothing else is
said a step stands with its usual thread blocks.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, TypeVar

from edgeconv.bench.ladders import conv, gemm
from edgeconv.bench.ladders.base import StepRow
from edgeconv.bench.ladders.conv import COPY, ConvRecord, ConvRow
from edgeconv.bench.ladders.gemm import GemmRow
from edgeconv.export.schemas import LadderRecord
from edgeconv.export.tables import percent, rate, seconds, shown, times
from edgeconv.page import NOTHING, Table

SIZE, STRIDE, DTYPE = 4096, 1, "float32"
"""What predictions are made for, and what documents show."""
WIDTH = 110
"""Letters of a line in a source's header, beside its comment mark."""

L = TypeVar("L", bound=StepRow)


# --- for documents and sources ---------------------------------------------------------------------------------------


def steps(record: LadderRecord) -> Table:
    """Each step at `SIZE`: its idea and what came of it; of `bench conv` beside why it should help, and how much."""
    lines: list[tuple[str, ...]] = []
    for step, row, gain in _climbed(record):
        name, median = f"`{step.name}`", seconds(row.median_seconds)
        if isinstance(row, ConvRow):
            predicted = shown(step.expected_gain, lambda factor: f"{factor:g} ×")
            lines.append((name, step.idea, step.because, predicted, gain, median, percent(row.share_of_floor)))
        else:
            near = (percent(row.share_of_vendor), percent(row.share_of_peak))
            lines.append((name, step.idea, shown(row.block), gain, median, rate(row.gflops), *near))
    if isinstance(record, ConvRecord):
        header = ("step", "idea", "why it should help", "predicted", "gain", "median", "of copy speed")
        return Table("The ladder", header, tuple(lines))
    products = ("step", "idea", "blocks", "gain", "median", "GFLOPS", "of cuBLAS", "of peak")
    return Table("The ladder of products", products, tuple(lines))


def conv_blocks(record: ConvRecord) -> Table:
    """Medians of every thread block at 4096, stride 1."""
    rows = [row for row in record.rows if (row.size, row.stride) == (SIZE, STRIDE) and row.block]
    blocks = list(dict.fromkeys(shown(row.block) for row in rows))
    medians = {(row.step, row.block): seconds(row.median_seconds) for row in rows}
    named = dict.fromkeys(row.step for row in rows)
    lines = [(f"`{step}`", *(medians.get((step, block), NOTHING) for block in blocks)) for step in named]
    return Table("Thread blocks", ("step", *blocks), tuple(lines))


def source(record: LadderRecord) -> list[str]:
    """The steps as lines of a source's header: name, median, gain, and the idea, which is wrapped."""
    climbed = [(step.name, seconds(row.median_seconds), gain, step.idea) for step, row, gain in _climbed(record)]
    widths = [max(len(step[column]) for step in climbed) for column in range(3)]
    lines = []
    for name, median, gain, idea in climbed:
        head = f"  {name:<{widths[0]}}  {median:>{widths[1]}}  {gain:>{widths[2]}}  "
        lines += textwrap.wrap(idea, WIDTH, initial_indent=head, subsequent_indent=" " * len(head))
    case, more = DTYPE, ""
    if isinstance(record, ConvRecord):
        copy = usual(record.rows, size=SIZE, stride=STRIDE)[COPY]
        case, more = f"stride {STRIDE}", f"; a copy takes {seconds(copy.median_seconds)}"
    where = f"{record.machine.name}, {SIZE} × {SIZE}, {case}, cold L2{more}"
    return [*lines, f"Medians and gains over the step before on one {where}."]


def _climbed(record: LadderRecord) -> list[tuple[Any, Any, str]]:
    """Each step, its row, and its gain over the step before, at `SIZE` and the case that documents show."""
    known: tuple[Any, ...] = conv.STEPS if isinstance(record, ConvRecord) else gemm.STEPS
    case = {"stride": STRIDE} if isinstance(record, ConvRecord) else {"dtype": DTYPE}
    rows: dict[str, Any] = usual(record.rows, size=SIZE, **case)
    medians = [rows[step.name].median_seconds for step in known]
    gains = (times(before / after) if before and after else NOTHING for before, after in pairwise(medians))
    return [(step, rows[step.name], gain) for step, gain in zip(known, (NOTHING, *gains), strict=True)]


# --- for reports ----------------------------------------------------------------------------------------------------


def panels(record: LadderRecord) -> list[tuple[str, dict[str, Any]]]:
    """The cases of a ladder, and the fields of a row that belong there: strides, or types."""
    found = dict.fromkeys(_case(row) for row in record.rows)
    return [(words, {name: value}) for words, name, value in found]


def _case(row: ConvRow | GemmRow) -> tuple[str, str, Any]:
    if isinstance(row, ConvRow):
        return f"stride {row.stride}", "stride", row.stride
    return row.dtype, "dtype", row.dtype


def by_size(record: LadderRecord) -> Table:
    """GFLOPS of every step over size, with its usual thread blocks; of products the share of the vendor's behind it."""
    sizes = sorted({row.size for row in record.rows})
    lines = []
    for words, case in panels(record):
        found = {size: usual(record.rows, size=size, **case) for size in sizes}
        for step in dict.fromkeys(row.step for row in record.rows if row.step != COPY):
            lines.append((step, words, *(_rate_and_share(found[size].get(step)) for size in sizes)))
    return Table("GFLOPS over the side", ("step", "case", *map(str, sizes)), tuple(lines))


def usual(rows: Iterable[L], **case: Any) -> dict[str, L]:
    """The first row of each step at a case, which has its usual blocks."""
    found: dict[str, L] = {}
    for row in rows:
        if all(getattr(row, name) == value for name, value in case.items()):
            found.setdefault(row.step, row)
    return found


def _rate_and_share(row: StepRow | None) -> str:
    share = getattr(row, "share_of_vendor", None)
    return rate(getattr(row, "gflops", None)) + ("" if share is None else f" ({percent(share)})")
