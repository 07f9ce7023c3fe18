"""The lot: cases drawn at random from everything that a person may ask for, and what a record of them says.

    edgeconv bench --grid surface --seed 7 --cases 200

A drawn grid has axes to draw from in place of cases: types, filters, channels and strides of its part, sides between
the least and the largest of its sizes. Seed and number give the same cases on every machine; no row can be tuned for.

    shape      four of five have 1 to 30 megapixels (log-uniform, sides up to 4:1), the others sides of 1 to 1000
    filter     by name, random weights, whole or fractional, a kernel of whole numbers or of fractions; some on grey
    padding    same; one of eight another
    stride     two of five have the least, the others any
    border, output mode, channels, type   each with the same chance

What it says is a distribution. The limit of a case is the larger of two times, a copy of its fewest bytes in the same
run, and the operations that no form saves (core/forms.py) at the measured rate of multiply-adds; a method's share is
limit / median. Small cases are bound by neither, but by the start of a run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.grid import Case, CaseGrid, GridPart, cases
from edgeconv.bench.intervals import Ratio, mean_of_cases
from edgeconv.bench.record import BenchRecord, BenchRow
from edgeconv.bench.rules import TimingRules
from edgeconv.bench.summary import competes, fastest, median
from edgeconv.bench.synthetic import DRAWN_FILTERS, GREY_PREFIX, bench_channels, bench_filter, bench_filter_names
from edgeconv.core.choices import BORDERS
from edgeconv.core.filters import filter_names
from edgeconv.core.forms import operation_bytes_per_pixel
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.noise import noise_pixels
from edgeconv.core.request import make_request
from edgeconv.errors import UsageError

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
PERCENTILES = (5, 25, 50)
FLOAT32_BYTES, FLOPS_PER_MULTIPLY_ADD = 4, 2


@dataclass(frozen=True)
class Drawn:
    """A case with what its name does not say."""

    case: Case
    height: int
    width: int
    padding: str
    border: str
    output_mode: str

    def rules(self, rules: TimingRules) -> TimingRules:
        """`rules` with those of the case."""
        return replace(rules, padding=self.padding, border=self.border, output_mode=self.output_mode)

    def pixels(self) -> NDArray[np.generic]:
        """Noise."""
        return noise_pixels(self.height, self.width, self.case.dtype, bench_channels(self.case.filter))


def cases_of(grid: CaseGrid, pictures: tuple[str, ...] = ()) -> list[tuple[Case, GridPart]]:
    """The cases of a grid, drawn or listed."""
    if grid.draw is None:
        return list(cases(grid, pictures))
    if pictures:
        raise UsageError(f"Grid '{grid.name}' draws its own pictures: leave {pictures[0]!r} out, or take another grid.")
    return [(case, grid.parts[0]) for case in drawn_cases(grid)]


def drawn_case(grid: CaseGrid, case: Case) -> Drawn | None:
    """What was drawn for a case; None where the grid lists its cases."""
    return None if grid.draw is None else drawn_cases(grid)[case]


@lru_cache(maxsize=4)
def drawn_cases(grid: CaseGrid) -> dict[Case, Drawn]:
    """Small pictures first, so that a bench that is stopped has the many quick ones."""
    assert grid.draw is not None
    rng = np.random.default_rng(grid.draw.seed)
    found: dict[Case, Drawn] = {}
    while len(found) < grid.draw.cases:
        drawn = _one(rng, grid.parts[0])
        found.setdefault(drawn.case, drawn)
    return dict(sorted(found.items(), key=lambda entry: entry[1].height * entry[1].width))


def _one(rng: np.random.Generator, part: GridPart) -> Drawn:
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
    return Drawn(Case(None, max(height, width), stride, dtype, name, channels), height, width, padding, border, mode)


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

    @property
    def pixels(self) -> int:
        """Of the picture."""
        return self.row.case.height * self.row.case.width


def shares(record: BenchRecord, device: str) -> list[Share]:
    """One for each case that a method was timed at on a device, in the record's order."""
    rows_of_case: dict[tuple[object, ...], list[BenchRow]] = {}
    for row in record.rows:
        if row.device == device:
            rows_of_case.setdefault(row.place, []).append(row)
    roof = record.roofs[device]  # type: ignore[index]  # a device of the record's own rows
    operand_bytes = roof.fma_flops_per_second / FLOPS_PER_MULTIPLY_ADD * FLOAT32_BYTES
    found = []
    for rows in rows_of_case.values():
        method, peer = (
            fastest(row for row in rows if row.kind == kind and competes(row)) for kind in ("method", "peer")
        )
        copy = fastest(row for row in rows if row.kind == "copy")
        if method is None or copy is None:
            continue
        found.append(Share(method, max(median(copy), _operand_bytes(method) / operand_bytes), peer))
    return found


def _operand_bytes(row: BenchRow) -> float:
    """Of the operations that cannot be saved."""
    case = row.case
    request = make_request(
        bench_filter(case.filter, case.channels),
        channels=case.channels,
        stride=case.stride,
        padding=case.padding,
        border=case.border,
        output_mode=case.output_mode,
    )
    problem = request.problem((case.height, case.width, bench_channels(case.filter)), np.dtype(case.dtype))
    of_pixel = operation_bytes_per_pixel(problem, mends=row.device == "cuda")
    return float(of_pixel) * problem.output_height * problem.output_width


@dataclass(frozen=True)
class Distribution:
    """Of the shares of some cases."""

    what: str
    cases: int
    percentiles: tuple[float, ...]
    """At PERCENTILES."""
    leads: tuple[float, ...]
    """Over the fastest peer, of the cases that one could do, ascending."""

    @property
    def mean_lead(self) -> Ratio | None:
        """Geometric."""
        return mean_of_cases(self.leads) if self.leads else None

    @property
    def behind(self) -> int:
        """Cases at which a peer was faster."""
        return sum(lead < 1 for lead in self.leads)


def distributions(found: Sequence[Share]) -> list[Distribution]:
    """Of all cases, and of those above one megapixel."""
    large = [share for share in found if share.pixels >= MEGAPIXEL]
    return [_distribution(what, part) for what, part in (("all", found), ("1 megapixel and more", large)) if part]


def _distribution(what: str, part: Sequence[Share]) -> Distribution:
    values = np.percentile([share.share for share in part], PERCENTILES)
    leads = sorted(share.lead for share in part if share.lead is not None)
    return Distribution(what, len(part), tuple(map(float, values)), tuple(leads))
