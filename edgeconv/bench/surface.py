"""The lot: cases drawn at random from everything that a person may ask for, and a method's share of the limit at each.

    edgeconv bench --grid surface --seed 7 --cases 200

A drawn grid has axes to draw from in place of cases: types, filters, channels and strides of its part, sides between
the least and the largest of its sizes. Seed and number give the same cases on every machine; no row can be tuned for.

    shape      four of five have 1 to 30 megapixels (log-uniform, sides up to 4:1), the others sides of 1 to 1000
    filter     by name, random weights, whole or fractional, a kernel of whole numbers or of fractions; some on grey
    padding    same; one of eight another
    stride     two of five have the least, the others any
    border, output mode, channels, type   each with the same chance

The limit of a case is the larger of two times, a copy of its fewest bytes in the same run, and the operations that no
form saves (core/lowering.py) at the measured rate of multiply-adds; a method's share is limit / median. Small cases are
bound by neither, but by the start of a run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from edgeconv.bench.grid import Case, CaseGrid, Drawn, GridPart, cases
from edgeconv.bench.measure import request_for
from edgeconv.bench.record import BenchRecord, BenchRow
from edgeconv.bench.summary import competes, fastest, median, timed_by_case
from edgeconv.bench.synthetic import DRAWN_FILTERS, GREY_PREFIX, bench_channels, bench_filter_names
from edgeconv.core.choices import BORDERS
from edgeconv.core.exactness import needs_exact_root
from edgeconv.core.filters import filter_names
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.lowering import lower
from edgeconv.core.problem import Problem

MEGAPIXEL = 10**6
LARGEST_MEGAPIXELS = 30
SMALL_SIDE = 1000
SMALL_SHARE, GREY_SHARE, OTHER_PADDING_SHARE, LEAST_STRIDE_SHARE = 0.2, 0.15, 0.125, 0.4
LONGEST_ASPECT = 4.0
MOST_BYTES = 2**29
"""Of picture and output together: a machine with little memory does the same cases."""
OTHER_PADDINGS = ("valid", "2", "3")
OWN_LARGEST = 9
WEIGHT_OF_FAMILY = 3
"""Chances of random weights and of own kernels, each, beside one named filter."""
FLOAT32_BYTES, FLOPS_PER_MULTIPLY_ADD = 4, 2
ROOT_OPERATIONS, EXACT_ROOT_OPERATIONS = 9, 20
"""A root of two responses, as multiply-adds: 4.5 cycles of a register where two of those are begun in each
(docs/cpu-engine.md); with the correction that makes a 16-bit sample exact."""


def cases_of(grid: CaseGrid) -> list[tuple[Case, GridPart]]:
    """The cases of a grid, drawn or listed."""
    if grid.draw is None:
        return cases(grid)
    return [(case, grid.parts[0]) for case in drawn_cases(grid)]


def drawn_cases(grid: CaseGrid) -> list[Case]:
    """Small pictures first, so that a bench that is stopped has the many quick ones."""
    assert grid.draw is not None
    rng, found = np.random.default_rng(grid.draw.seed), dict[Case, Drawn]()
    while len(found) < grid.draw.cases:
        case, drawn = _one(rng, grid.parts[0])
        found.setdefault(case, drawn)
    area = {case: drawn.height * drawn.width for case, drawn in found.items()}
    return [replace(case, drawn=found[case]) for case in sorted(found, key=area.__getitem__)]


def _one(rng: np.random.Generator, part: GridPart) -> tuple[Case, Drawn]:
    named = filter_names()
    filters = [name for name in part.filters for _ in range(1 if name in named else WEIGHT_OF_FAMILY)]
    dtype, name, channels = (_pick(rng, axis) for axis in (part.dtypes, filters, part.channels))
    stride = min(part.strides) if rng.random() < LEAST_STRIDE_SHARE else int(rng.choice(part.strides))
    if name in DRAWN_FILTERS:  # the rows of a kernel of one's own
        kernel = rng.integers(-OWN_LARGEST, OWN_LARGEST, (KERNEL_SIZE, KERNEL_SIZE), endpoint=True)
        below = f"/{int(rng.integers(2, 4 * OWN_LARGEST))}" if name == "own-fractions" else ""
        name = ";".join(",".join(f"{weight}{below}" for weight in row) for row in kernel.tolist())
    elif rng.random() < GREY_SHARE and name in bench_filter_names():
        name = GREY_PREFIX + name
    height, width = _shape(rng, part, 2 * bench_channels(name) * np.dtype(dtype).itemsize)
    border = _pick(rng, BORDERS)
    mode = _pick(rng, ("abs", "clip", "raw") if np.dtype(dtype).kind == "u" else ("abs", "raw"))
    other = rng.random() < OTHER_PADDING_SHARE and min(height, width) >= KERNEL_SIZE
    padding = _pick(rng, OTHER_PADDINGS) if other else "same"
    case = Case(max(height, width), stride, dtype, name, channels)
    return case, Drawn(height, width, padding, border, mode)


def _pick(rng: np.random.Generator, words: Sequence[str]) -> str:
    return words[int(rng.integers(len(words)))]


def _shape(rng: np.random.Generator, part: GridPart, pixel_bytes: int) -> tuple[int, int]:
    """Height and width, each within the part's sizes."""
    least, largest = min(part.sizes), max(part.sizes)
    if rng.random() < SMALL_SHARE:
        most = math.log(min(SMALL_SIDE, largest) + 1)
        sides = [int(math.exp(rng.uniform(math.log(least), most))) for _ in range(2)]
    else:
        pixels = MEGAPIXEL * math.exp(rng.uniform(0, math.log(LARGEST_MEGAPIXELS)))
        aspect = math.exp(rng.uniform(-math.log(LONGEST_ASPECT), math.log(LONGEST_ASPECT)))
        pixels = min(pixels, MOST_BYTES / pixel_bytes)
        sides = [round(math.sqrt(pixels * aspect)), round(math.sqrt(pixels / aspect))]
    height, width = (min(max(side, least), largest) for side in sides)
    return height, width


# --- what a record says -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Share:
    """The fastest method at a case, beside its limit and the fastest peer."""

    row: BenchRow
    limit_seconds: float
    peer: BenchRow | None

    @property
    def share(self) -> float:
        """Limit / time."""
        return self.limit_seconds / median(self.row)

    @property
    def lead(self) -> float | None:
        """The peer's time over its own."""
        return None if self.peer is None else median(self.peer) / median(self.row)


def shares(record: BenchRecord, device: str) -> list[Share]:
    """One for each case that a method was timed at on a device, in the record's order."""
    timed = [rows for (where, _), rows in timed_by_case(record).items() if where == device]
    roof = record.roofs[device]  # type: ignore[index]  # a device of the record's own rows
    operand_bytes = roof.fma_flops_per_second / FLOPS_PER_MULTIPLY_ADD * FLOAT32_BYTES
    found = []
    for rows in timed:
        method = fastest(row for row in rows if row.kind == "method" and competes(row))
        peer = fastest(row for row in rows if row.kind == "peer" and competes(row))
        copy = fastest(row for row in rows if row.kind == "copy")
        if method is not None and copy is not None:
            found.append(Share(method, max(median(copy), _operand_bytes(method) / operand_bytes), peer))
    return found


def _operand_bytes(row: BenchRow) -> float:
    """Of the operations that cannot be saved."""
    case = row.case
    shape = case.height, case.width, bench_channels(case.filter)
    problem = request_for(case, case).problem(shape, np.dtype(case.dtype))
    of_pixel = operation_bytes_per_pixel(problem, recomputes=row.device == "cuda")
    return float(of_pixel) * problem.output_height * problem.output_width


def operation_bytes_per_pixel(problem: Problem, *, recomputes: bool = False) -> int:
    """What no form saves of an output pixel: operations, each times the bytes of the type that it is done in.

    Divided by the bytes of a register it is a number of instructions. Additions, multiply-adds and maxima count as one;
    rounding, storing and fetching are left out. `recomputes` as for `lower`.
    """
    lowering = lower(problem, recomputes=recomputes, banks=False)
    outputs = lowering.channels if lowering.flat else 1
    of_maxima = lowering.combine == "maximum"
    operations = lowering.multiply_adds + (problem.in_channels - (not lowering.shares)) * lowering.collapsed
    if of_maxima:
        operations += outputs * sum(len(result) * (1 + lowering.by_size) - 1 for result in lowering.responses)
    float_bytes = 8 if problem.dtype == np.float64 else 4
    root = 0
    if lowering.combine == "magnitude":
        each = EXACT_ROOT_OPERATIONS if needs_exact_root(problem) else ROOT_OPERATIONS
        root = outputs * len(lowering.results) * each
    return operations * (2 if lowering.sums == "int16" else float_bytes) + root * float_bytes
