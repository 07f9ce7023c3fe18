"""The ladders of `bench conv` and `bench gemm` as tables: to learn from, a step's idea beside what it gained; or all.

Ideas and predictions are those of the steps themselves (bench/ladders), times those of a record. Where nothing else is
said a step stands with its usual thread blocks.
"""

from __future__ import annotations

from edgeconv.bench.ladders import conv, gemm
from edgeconv.bench.ladders.base import LadderRecord, LadderRow, Step
from edgeconv.bench.ladders.conv import COPY, ConvStep
from edgeconv.export.tables import percent, rate, seconds, shown, times
from edgeconv.page import NOTHING, Table

SIZE, CASES = 4096, {"bench conv": "stride 1", "bench gemm": "float32"}
"""What predictions are made for, and what documents show."""

# --- for documents ---------------------------------------------------------------------------------------------------


def steps(record: LadderRecord) -> Table:
    """Each step at `SIZE`: its idea and what came of it; of `bench conv` beside why it should help, and how much."""
    lines: list[tuple[str, ...]] = []
    for step, row in _climbed(record):
        name, gain, median, share = f"`{step.name}`", _gain(row), seconds(row.median_seconds), percent(row.share)
        if isinstance(step, ConvStep):
            predicted = shown(step.expected_gain, lambda factor: f"{factor:g} ×")
            lines.append((name, step.idea, step.because, predicted, gain, median, share))
        else:
            peak = percent(row.gflops * 1e9 / record.roof.fma_flops_per_second) if row.gflops else NOTHING
            lines.append((name, step.idea, shown(row.block), gain, median, rate(row.gflops), share, peak))
    if record.kind == "bench conv":
        header = ("step", "idea", "why it should help", "predicted", "gain", "median", "of copy speed")
        return Table("The ladder", header, tuple(lines))
    products = ("step", "idea", "blocks", "gain", "median", "nominal GFLOPS", "of cuBLAS", "of peak")
    return Table("The ladder of products", products, tuple(lines))


def conv_blocks(record: LadderRecord) -> Table:
    """Medians of every thread block at 4096, stride 1."""
    rows = [row for row in record.rows if (row.size, row.stride) == (SIZE, 1) and row.block]
    blocks = list(dict.fromkeys(shown(row.block) for row in rows))
    medians = {(row.step, row.block): seconds(row.median_seconds) for row in rows}
    named = dict.fromkeys(row.step for row in rows)
    lines = [(f"`{step}`", *(medians.get((step, block), NOTHING) for block in blocks)) for step in named]
    return Table("Thread blocks", ("step", *blocks), tuple(lines))


def _climbed(record: LadderRecord) -> list[tuple[Step, LadderRow]]:
    """Each step and its row, at `SIZE` and the case that documents show."""
    rows = usual(record, SIZE, CASES[record.kind])
    return [(step, rows[step.name]) for step in (conv.STEPS if record.kind == "bench conv" else gemm.STEPS)]


def _gain(row: LadderRow) -> str:
    return shown(row.gain, times)


# --- for reports ----------------------------------------------------------------------------------------------------


def by_size(record: LadderRecord) -> Table:
    """GFLOPS of every step over size, with its usual thread blocks; of products the share of the vendor's behind it."""
    sizes = sorted({row.size for row in record.rows})
    lines = []
    for case in dict.fromkeys(row.case for row in record.rows):
        found = {size: usual(record, size, case) for size in sizes}
        for step in dict.fromkeys(row.step for row in record.rows if row.step != COPY):
            lines.append((step, case, *(_rate_and_share(found[size].get(step)) for size in sizes)))
    return Table("Nominal GFLOPS over the side", ("step", "case", *map(str, sizes)), tuple(lines))


def usual(record: LadderRecord, size: int, case: str) -> dict[str, LadderRow]:
    """The first row of each step at a case, which has its usual blocks."""
    found: dict[str, LadderRow] = {}
    for row in record.rows:
        if (row.size, row.case) == (size, case):
            found.setdefault(row.step, row)
    return found


def _rate_and_share(row: LadderRow | None) -> str:
    share = None if row is None or row.stride is not None else row.share
    return rate(getattr(row, "gflops", None)) + ("" if share is None else f" ({percent(share)})")
