"""Flat rows on CUDA: channels that are filtered by themselves, at stride 1, as one row of samples (flat_rows.cu).

A kernel row is a *line*: a weighted sum along the row, such as 1, 2, 1. Kernel rows that are equal up to a factor share
a line, and each direction joins the lines of three picture rows. So a Sobel filter is two lines, 1, 2, 1 and -1, 0, 1,
each of which a row of the picture gives once. The largest of eight directions is a ring (core/lowering.py).

For uint8, uint16, float16 and float32 pictures that are padded by 1 and stored in their own type, where every row
starts on 16 bytes; of uint8 where pairs of halves hold every partial sum, or what they round is clipped in any case.
Everything else, and arrays that start elsewhere, are for the other kernels of `sliding`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.exactness import WHOLE, is_whole, own_arithmetic, sums_for
from edgeconv.core.filters import COMPASS_RING
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.lowering import lower
from edgeconv.core.problem import Problem
from edgeconv.hardware.cuda.kernels import KernelVariant, load
from edgeconv.methods.base import AddressPlan
from edgeconv.methods.cuda.kernel_args import CudaPlan, batch_defines, launch_of, picture_geometry, problem_defines

Kind = Literal["any", "sum", "difference", "beside"]
"""How three numbers are joined: weighted; plainly; the last less the first; the outer two and a weighted middle one."""
Interval = tuple[float, float]
FlatForm = Literal["lines", "ring_of_three", "ring_of_differences"]

MOST_CHANNELS, MOST_LINES, MOST_DIRECTIONS = 4, 6, 2
LARGEST_WHOLE_HALF = 2048
"""Halves hold all whole numbers up to it."""
LARGEST_OF_HALVES = 2.0**32
"""Weights up to it, along a row and across rows, times any halves: no sum and no square overflows a float."""
VECTOR_BYTES = 16
"""Of a thread in a row, at most; rows start on a multiple of it."""
LARGEST_PITCH = 2**31
RECIPROCAL_OF = 2**32 - 1
"""What flat_rows.cu multiplies by to divide: the high word of a product."""


@dataclass(frozen=True)
class Join:
    """Three numbers joined, along a row or across rows."""

    kind: Kind
    weights: tuple[float, float, float]

    @property
    def taps(self) -> int:
        """A bit for each number that is taken."""
        return sum(1 << i for i, weight in enumerate(self.weights) if weight)

    def partial_sums(self, numbers: Sequence[Interval]) -> list[Interval]:
        """Within what each sum on the way lies, the result last; `numbers` are what the three lie in."""
        ends = [(weight * low, weight * high) for weight, (low, high) in zip(self.weights, numbers, strict=True)]
        first, middle, last = ((min(pair), max(pair)) for pair in ends)
        terms = [_sum_of(first, last), middle] if self.kind == "beside" else [first, middle, last]
        return list(accumulate((term for term in terms if any(term)), _sum_of))


def _sum_of(first: Interval, second: Interval) -> Interval:
    return first[0] + second[0], first[1] + second[1]


@dataclass(frozen=True)
class FlatFilter:
    """One filter for every channel, as flat_rows.cu computes it."""

    form: FlatForm
    has_pairs: bool = False
    lines: tuple[Join, ...] = ()
    of_row: tuple[tuple[int, ...], ...] = ()
    """Of each direction the line of each row of the kernel."""
    rows: tuple[Join, ...] = ()
    """Of each direction how the lines of three rows are joined."""
    near: float = 0.0
    """Of a ring, as in forms.Ring."""
    far: float = 0.0
    names: tuple[str, ...] = ()

    @property
    def macros(self) -> tuple[tuple[str, str | int], ...]:
        """What flat_rows.cu is compiled with."""
        return (
            ("FORM", self.form),
            *((("PAIRS", 1),) if self.has_pairs else ()),
            *(self._macros_of_lines() if self.lines else ()),
        )

    def _macros_of_lines(self) -> Iterator[tuple[str, str | int]]:
        yield "LINES", len(self.lines)
        for name, values in (
            ("LINE_KINDS", [f"Kind::{line.kind}" for line in self.lines]),
            ("LINE_TAPS", [line.taps for line in self.lines]),
            ("LINE_OF_ROW", [line for direction in self.of_row for line in direction]),
            ("ROWS_KINDS", [f"Kind::{rows.kind}" for rows in self.rows]),
            ("ROWS_TAPS", [rows.taps for rows in self.rows]),
        ):
            yield name, "{" + ",".join(map(str, values)) + "}"

    def packed(self) -> NDArray[np.uint32]:
        """The struct `FlatWeights` of flat_rows.cu, as 32-bit words."""
        joins = np.zeros((MOST_LINES + MOST_DIRECTIONS, KERNEL_SIZE), np.float32)
        for place, join in (*enumerate(self.lines), *enumerate(self.rows, MOST_LINES)):
            joins[place] = join.weights
        lanes = np.append(joins, np.array((self.near, self.far), np.float32))
        return (np.repeat(lanes.astype(np.float16), 2) if self.has_pairs else lanes).view(np.uint32)


# --- a problem as lines or as a ring ----------------------------------------------------------------------------------


def flat_filter(problem: Problem) -> FlatFilter | None:
    """The problem as flat rows, or None."""
    weights = problem.weights
    row_bytes = problem.width * problem.in_channels * problem.dtype.itemsize
    if weights.shape[2] != 1 or problem.output_channels != problem.in_channels or (weights != weights[:, :1]).any():
        return None
    if (problem.stride, problem.padding, problem.output_dtype) != (1, 1, problem.dtype):
        return None
    if problem.in_channels > MOST_CHANNELS or row_bytes % VECTOR_BYTES:
        return None
    if not VECTOR_BYTES < row_bytes < LARGEST_PITCH:
        return None
    if sums_for(problem) == "float64" or (problem.dtype == np.uint8 and not is_whole(problem)):
        return None
    found = _ring(problem) if problem.combine == "maximum" else _lines(problem)
    if found is None or problem.dtype != np.uint8:
        return found
    holds = _hold_pairs(found) if found.lines else _ring_holds_pairs(found.near, found.far, found.form)
    return replace(found, has_pairs=True) if holds else None


def _ring(problem: Problem) -> FlatFilter | None:
    left = lower(problem, recomputes=True, banks=False)
    if not left.rings:
        return None
    (ring,) = left.rings
    form: FlatForm = "ring_of_differences" if ring.of_differences else "ring_of_three"
    return FlatFilter(form, near=ring.near, far=ring.far, names=left.forms)


def _lines(problem: Problem) -> FlatFilter | None:
    """Each direction by lines. Its sign is free where the output has none."""
    is_unsigned = problem.combine == "magnitude" or problem.output_mode == "abs"
    kernels = problem.weights[:, 0, 0]
    lines: list[Join] = []
    of_row, rows = [], []
    for kernel in kernels:
        found = [_line_of(row, lines) for row in kernel]
        factors = [factor for _, factor in found]
        if is_unsigned and factors[2] == -1 and abs(factors[0]) == 1:
            factors = [-factor for factor in factors]
        of_row.append(tuple(line for line, _ in found))
        rows.append(_rows_joined(factors))
    return FlatFilter("lines", False, tuple(lines), tuple(of_row), tuple(rows)) if lines else None


def _line_of(row: NDArray[Any], lines: list[Join]) -> tuple[int, float]:
    """The line of a kernel row, added where it is new, and the factor that makes it the row; 0 of an empty row."""
    first, middle, last = map(float, row)
    factor = 1.0
    if not row.any():
        return 0, 0.0
    if first == -last and not middle:
        line, factor = Join("difference", (-1.0, 0.0, 1.0)), last
    elif np.count_nonzero(row) == 1:
        line, factor = Join("sum", (float(first != 0), float(middle != 0), float(last != 0))), first + middle + last
    elif first == last and (ratio := float(np.float32(middle / first))) * first == middle:
        line, factor = Join("beside" if ratio else "sum", (1.0, ratio, 1.0)), first
    else:
        for number, line in enumerate(lines):
            factor = max(map(float, row), key=abs) / max(line.weights, key=abs)
            if (
                tuple(weight * factor for weight in line.weights) == (first, middle, last)
                and np.float32(factor) == factor
            ):
                return number, factor
        line, factor = Join("any", (first, middle, last)), 1.0
    if line not in lines:
        lines.append(line)
    return lines.index(line), factor


def _rows_joined(factors: Sequence[float]) -> Join:
    """How the lines of three rows are joined."""
    first, middle, last = factors
    kind: Kind = "any"
    if (first, middle, last) == (-1, 0, 1):
        kind = "difference"
    elif set(factors) <= {0, 1}:
        kind = "sum"
    elif first == last == 1:
        kind = "beside"
    return Join(kind, (first, middle, last))


def _hold_pairs(filter_: FlatFilter) -> bool:
    """Whether every sum of bytes is a half, but for the last of a direction: beyond 2,048 it is clipped in any case."""
    sample = (0.0, float(np.iinfo(np.uint8).max))
    sums = [line.partial_sums([sample] * KERNEL_SIZE) for line in filter_.lines]
    on_the_way = [each for of_line in sums for each in of_line]
    for of_row, rows in zip(filter_.of_row, filter_.rows, strict=True):
        on_the_way += rows.partial_sums([sums[line][-1] for line in of_row])[:-1]
    weights = [abs(weight) for join in (*filter_.lines, *filter_.rows) for weight in join.weights]
    are_whole = all(weight == np.rint(weight) and weight <= LARGEST_WHOLE_HALF for weight in weights)
    return are_whole and all(max(-low, high) <= LARGEST_WHOLE_HALF for low, high in on_the_way)


def _ring_holds_pairs(near: float, far: float, form: str) -> bool:
    """Whether halves hold every partial sum of a ring of bytes."""
    if not (_is_whole_half(near) and _is_whole_half(far)):
        return False
    if form == "ring_of_differences":  # the product may round, but only what is clipped anyway
        return True
    never_negative = near * KERNEL_SIZE + far * len(COMPASS_RING) >= 0
    return never_negative and _significant(near) * KERNEL_SIZE * np.iinfo(np.uint8).max <= LARGEST_WHOLE_HALF


def _significant(weight: float) -> float:
    """A whole number without its factors of two."""
    number = abs(int(weight))
    return float(number // (number & -number)) if number else 0.0


def _is_whole_half(weight: float) -> bool:
    return weight == np.rint(weight) and abs(weight) <= LARGEST_WHOLE_HALF


# --- tiles and plans --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FlatTile:
    """How rows are shared out: the macros of flat_rows.cu that change speed and nothing else."""

    vector_bytes: int
    rows: int


TILES = {
    "uint8": (FlatTile(8, 3), FlatTile(16, 5)),
    "uint16": (FlatTile(16, 3), FlatTile(16, 6)),
    "float16": (FlatTile(16, 3), FlatTile(16, 6)),
    "ring of float16": (FlatTile(16, 3), FlatTile(16, 3)),
    "float32": (FlatTile(16, 4), FlatTile(16, 4)),
}
"""Of small pictures and of large ones."""
SMALL_PIXELS = 8192
"""A picture of no more pixels for each multiprocessor is small: it takes as long as a few loads one after the other."""
THREADS = 64
"""Of a block."""


def tile_of(problem: Problem, filter_: FlatFilter, pictures: int, multiprocessors: int) -> FlatTile:
    """The tile for a problem, measured on one H200 and one H100: of the GPU only the multiprocessors count."""
    ring = f"ring of {problem.dtype.name}"
    small, large = TILES[ring if filter_.form != "lines" and ring in TILES else problem.dtype.name]
    return small if pictures * problem.height * problem.width <= SMALL_PIXELS * multiprocessors else large


def needs_mending(problem: Problem, filter_: FlatFilter) -> bool:
    """Whether an output that is not finite may be another than the plain sum's.

    Lines take each sample with the sign that the plain sum gives it, so only a sum that overflows on the way differs.
    None does of halves, whose largest is far from that of a float.
    """
    if problem.dtype.kind != "f":
        return False
    weights = [abs(weight) for join in (*filter_.lines, *filter_.rows) for weight in join.weights]
    return problem.dtype != np.float16 or not filter_.lines or max(weights) > LARGEST_OF_HALVES


def flat_variant(problem: Problem, filter_: FlatFilter, tile: FlatTile, batch: bool = False) -> KernelVariant:
    """The kernel of a problem."""
    tile_macros = [("THREADS", THREADS), *((name.upper(), value) for name, value in asdict(tile).items())]
    mends = (("MENDS", 1),) if needs_mending(problem, filter_) else ()
    defines = (*problem_defines(problem), *filter_.macros, *tile_macros, *mends, *batch_defines(batch))
    return KernelVariant("methods/cuda/flat_rows.cu", "flat_rows", defines)


@dataclass
class FlatPlan(CudaPlan):
    """One launch of flat_rows.cu, for one picture or a batch."""

    filter: FlatFilter = field(kw_only=True)
    elsewhere: Callable[[], AddressPlan] = field(kw_only=True)
    """Makes the plan for arrays that do not start on 16 bytes; their first run costs another compile."""
    tile: FlatTile | None = None
    """One that is asked for; else that of `tile_of`."""

    def __post_init__(self) -> None:
        import cupy

        problem = self.problem
        multiprocessors = int(cupy.cuda.Device().attributes["MultiProcessorCount"])
        tile = self.tile or tile_of(problem, self.filter, self.pictures, multiprocessors)
        pointers = []
        if needs_mending(problem, self.filter):
            self._plain_weights = cupy.asarray(problem.weights)
            self.workspace_bytes = int(self._plain_weights.nbytes)
            pointers.append(np.uint64(self._plain_weights.data.ptr))
        across = problem.width * problem.in_channels * problem.dtype.itemsize // tile.vector_bytes
        groups = -(-problem.height // tile.rows)
        kernel = load(flat_variant(problem, self.filter, tile, self.pictures > 1))
        arguments = (picture_geometry(problem, 1, across, RECIPROCAL_OF // across), self.filter.packed(), *pointers)
        blocks = -(-groups * across // THREADS)
        self._launch = launch_of(problem, self.pictures, kernel, blocks, (THREADS, 1), *arguments)
        self._other: AddressPlan | None = None
        self.launches = self._launch.launches
        self.arithmetic = WHOLE if self.filter.has_pairs else own_arithmetic(problem)
        self.choice = {
            "kernel": "flat rows",
            "lines": len(self.filter.lines),
            **asdict(tile),
            "arithmetic": "whole numbers, two halves per register" if self.filter.has_pairs else self.arithmetic.name,
            "forms": ", ".join(self.filter.names) or "plain sums",
        }

    def run_at(self, image_address: int, out_address: int, stream: int | None = None) -> None:
        if (image_address | out_address) % VECTOR_BYTES == 0:
            self._launch.at(image_address, out_address, stream)
            return
        self._other = self._other or self.elsewhere()
        self._other.run_at(image_address, out_address, stream)
