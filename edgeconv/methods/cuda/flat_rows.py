"""Flat rows on CUDA: channels that are filtered by themselves, at stride 1, as one row of samples (flat_rows.cu).

A kernel row is a *line*: a weighted sum along the row, such as 1, 2, 1. Kernel rows that are equal up to a factor share a
line, and each direction joins the lines of three picture rows. So a Sobel filter is two lines, 1, 2, 1 and -1, 0, 1, of
which each row of the picture gives one once. The largest of eight directions is a ring (core/forms.py).

Bytes with whole weights are computed as pairs of halves where these hold every partial sum, or what they round is clipped
in any case. Everything else takes a float32 or a float64 for each sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgeconv.core import forms
from edgeconv.core.exactness import WHOLE, is_whole, own_arithmetic, sums_for
from edgeconv.core.filters import COMPASS_RING
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem
from edgeconv.hardware.cuda.kernels import KernelVariant, load
from edgeconv.methods.base import AddressPlan
from edgeconv.methods.cuda.kernel_args import WARP, batch_defines, launch_of, picture_geometry, problem_defines

Kind = Literal["any", "sum", "difference", "beside", "even"]
"""How three numbers are joined: weighted; plainly; the last less the first; the outer two and a weighted middle one; the
sum of the outer two, weighted, and a weighted middle one."""
Interval = tuple[float, float]
FlatForm = Literal["lines", "differences", "ring_of_three", "ring_of_differences"]

MOST_CHANNELS, MOST_LINES, MOST_DIRECTIONS = 4, 6, 2
LARGEST_WHOLE_HALF = 2048
"""Halves hold all whole numbers up to it."""
PIECE_BYTES = 16
"""Of the largest load and store."""


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
        terms = [(min(w * low, w * high), max(w * low, w * high)) for w, (low, high) in zip(self.weights, numbers)]
        first, middle, last = terms
        if self.kind in ("beside", "even"):
            terms = [_sum_of(first, last), middle]
        return list(accumulate((term for term in terms if any(term)), _sum_of))


def _sum_of(first: Interval, second: Interval) -> Interval:
    return first[0] + second[0], first[1] + second[1]


@dataclass(frozen=True)
class FlatFilter:
    """One filter for every channel, as flat_rows.cu computes it."""

    form: FlatForm
    has_pairs: bool
    lines: tuple[Join, ...] = ()
    of_row: tuple[tuple[int, int, int], ...] = ()
    """Of each direction the line of each row of the kernel."""
    rows: tuple[Join, ...] = ()
    """Of each direction how the lines of three rows are joined."""
    near: float = 0.0
    """Of a ring, as in forms.Ring."""
    far: float = 0.0
    names: tuple[forms.FormName, ...] = ()

    @property
    def macros(self) -> tuple[tuple[str, str | int], ...]:
        """What flat_rows.cu is compiled with."""
        macros: list[tuple[str, str | int]] = [("FORM", self.form), *((("PAIRS", 1),) if self.has_pairs else ())]
        if self.lines:
            macros += [
                ("LINES", len(self.lines)),
                ("LINE_KINDS", _listed(f"Kind::{line.kind}" for line in self.lines)),
                ("LINE_TAPS", _listed(line.taps for line in self.lines)),
                ("LINE_OF_ROW", _listed(line for direction in self.of_row for line in direction)),
                ("ROWS_KINDS", _listed(f"Kind::{rows.kind}" for rows in self.rows)),
                ("ROWS_TAPS", _listed(rows.taps for rows in self.rows)),
            ]
        return tuple(macros)

    def packed(self, real: np.dtype[Any]) -> NDArray[Any]:
        """The struct `FlatWeights` of flat_rows.cu, as 32-bit words."""
        lanes = np.zeros((MOST_LINES + MOST_DIRECTIONS, KERNEL_SIZE), real)
        for place, join in (*enumerate(self.lines), *enumerate(self.rows, MOST_LINES)):
            lanes[place] = join.weights
        lanes = np.append(lanes.reshape(-1), np.array((self.near, self.far), real))
        if self.has_pairs:
            lanes = np.repeat(lanes.astype(np.float16), 2)
        return lanes.view(np.uint32)


def _listed(values: Any) -> str:
    return "{" + ",".join(map(str, values)) + "}"


# --- a problem as lines or rings ------------------------------------------------------------------------------------


def flat_filter(problem: Problem) -> FlatFilter | None:
    """The problem as flat rows; None where it is not one filter for every channel, at stride 1, or rows are short."""
    weights = problem.weights
    short = problem.output_width * problem.in_channels < 2 * PIECE_BYTES + problem.in_channels
    if weights.shape[2] != 1 or problem.output_channels != problem.in_channels or problem.in_channels > MOST_CHANNELS:
        return None
    if problem.stride != 1 or problem.padding > 1 or short or (weights != weights[:, :1]).any():
        return None
    if problem.dtype.kind == "u" and sums_for(problem) == "float64":
        return None
    kernels = weights[:, 0, 0]
    return _largest(problem) if problem.combine == "maximum" else _by_lines(problem, kernels)


def _largest(problem: Problem) -> FlatFilter | None:
    found = forms.reduced(problem, problem.weights[:, :1], mends=True)
    if not found.directions.rings:
        return None
    ring = found.directions.rings[0]
    form: FlatForm = "ring_of_differences" if ring.of_differences else "ring_of_three"
    has_pairs = _is_of_bytes(problem) and _ring_holds_pairs(ring)
    return FlatFilter(form, has_pairs, near=ring.near, far=ring.far, names=found.names)


def _by_lines(problem: Problem, kernels: NDArray[Any]) -> FlatFilter:
    """Each direction by lines. Its sign is free where the output has none."""
    is_unsigned = problem.combine == "magnitude" or problem.output_mode == "abs"
    lines: list[Join] = []
    of_row, rows = [], []
    for kernel in kernels:
        found = [_line_of(row, lines) for row in kernel]
        factors = [factor for _, factor in found]
        first, middle, last = factors
        if is_unsigned and ((first == 1 and last == -1 and not middle) or first == last == -1):
            factors = [-factor for factor in factors]
        of_row.append(tuple(line for line, _ in found))
        rows.append(_join_of(factors))
    names: tuple[forms.FormName, ...] = ("shared rows",) if len(lines) < np.any(kernels, axis=2).sum() else ()
    of_lines = FlatFilter("lines", False, tuple(lines), tuple(of_row), tuple(rows), names=names)
    if not _is_of_bytes(problem):
        return of_lines
    for candidate in (of_lines, _by_differences(of_lines)):
        if candidate is not None and _lines_hold_pairs(candidate):
            return FlatFilter(**{**_fields(candidate), "has_pairs": True})
    return of_lines


def _fields(filter_: FlatFilter) -> dict[str, Any]:
    return {name: getattr(filter_, name) for name in filter_.__dataclass_fields__}


def _line_of(row: NDArray[Any], lines: list[Join]) -> tuple[int, float]:
    """The line of a kernel row, added where it is new, and the factor that makes it the row; 0 of an empty row."""
    first, middle, last = map(float, row)
    if not row.any():
        return 0, 0.0
    real = row.dtype.type
    if first == -last and not middle:
        new, factor = Join("difference", (-1.0, 0.0, 1.0)), last
    elif np.count_nonzero(row) == 1:
        new, factor = Join("sum", tuple(float(weight != 0) for weight in row)), first + middle + last  # type: ignore[arg-type]
    elif first == last and float(real(middle / first)) * first == middle:
        ratio = float(real(middle / first))
        new, factor = Join("beside" if ratio else "sum", (1.0, ratio, 1.0)), first
    else:
        for number, line in enumerate(lines):
            factor = max(map(float, row), key=abs) / max(line.weights, key=abs)
            if tuple(weight * factor for weight in line.weights) == (first, middle, last) and real(factor) == factor:
                return number, factor
        kind: Kind = "even" if first == last else "sum" if set(map(float, row)) <= {0.0, 1.0} else "any"
        new, factor = Join(kind, (first, middle, last)), 1.0
    if new not in lines:
        lines.append(new)
    return lines.index(new), factor


def _join_of(factors: Sequence[float]) -> Join:
    """How the lines of three rows are joined."""
    first, middle, last = factors
    kind: Kind = "any"
    if (first, middle, last) == (-1, 0, 1):
        kind = "difference"
    elif set(factors) <= {0, 1}:
        kind = "sum"
    elif first == last == 1:
        kind = "beside"
    elif first and first == last:
        kind = "even"
    return Join(kind, (first, middle, last))


def _by_differences(filter_: FlatFilter) -> FlatFilter | None:
    """The second of two directions as a line of the difference of two rows, where it is that."""
    if len(filter_.rows) != MOST_DIRECTIONS or filter_.rows[1].kind != "difference":
        return None
    first, _, last = filter_.of_row[1]
    if first != last or first in filter_.of_row[0] or first != len(filter_.lines) - 1:
        return None
    return FlatFilter(**{**_fields(filter_), "form": "differences"})


# --- whether halves hold it ---------------------------------------------------------------------------------------------


def _is_of_bytes(problem: Problem) -> bool:
    return problem.dtype == problem.output_dtype == np.uint8 and is_whole(problem)


def _lines_hold_pairs(filter_: FlatFilter) -> bool:
    """Whether every sum of bytes is a half, but for the last of a direction: beyond 2,048 that is clipped in any case."""
    white = float(np.iinfo(np.uint8).max)
    sample, difference = (0.0, white), (-white, white)
    on_the_way: list[Interval] = []
    of_line = []
    for line in filter_.lines:
        *first, last = line.partial_sums([sample] * KERNEL_SIZE)
        on_the_way += first
        of_line.append(last)
    if filter_.form == "differences":
        on_the_way += filter_.lines[-1].partial_sums([difference] * KERNEL_SIZE)[:-1]
        of_line[-1] = sample
    on_the_way += of_line
    for of_row, rows in zip(filter_.of_row, filter_.rows, strict=True):
        on_the_way += rows.partial_sums([of_line[line] for line in of_row])[:-1]
    if any(max(-low, high) > LARGEST_WHOLE_HALF for low, high in on_the_way):
        return False
    every = [weight for join in (*filter_.lines, *filter_.rows) for weight in join.weights]
    return all(weight == np.rint(weight) and abs(weight) <= LARGEST_WHOLE_HALF for weight in every)


def _ring_holds_pairs(ring: forms.Ring) -> bool:
    near, far = ring.near, ring.far
    if not all(weight == np.rint(weight) and abs(weight) <= LARGEST_WHOLE_HALF for weight in (near, far)):
        return False
    if ring.of_differences:  # the product may round, but only what is clipped anyway
        return True
    never_negative = near * KERNEL_SIZE + far * len(COMPASS_RING) >= 0
    return never_negative and _significant(near) * KERNEL_SIZE * np.iinfo(np.uint8).max <= LARGEST_WHOLE_HALF


def _significant(weight: float) -> float:
    """A whole number without its factors of two."""
    number = abs(int(weight))
    return float(number // (number & -number)) if number else 0.0


# --- tiles and plans ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FlatTile:
    """How rows are shared out: the macros of flat_rows.cu that change speed and nothing else."""

    vector_bytes: int
    step_rows: int
    steps: int
    threads: int

    @property
    def rows(self) -> int:
        """Output rows of a thread."""
        return self.step_rows * self.steps


SMALL, LARGE, ANYWHERE = 0, 1, 2
TILES = {
    1: (FlatTile(8, 3, 1, 64), FlatTile(8, 8, 1, 128), FlatTile(16, 4, 1, 64)),
    2: (FlatTile(8, 3, 1, 128), FlatTile(16, 4, 1, 64), FlatTile(16, 4, 1, 64)),
    4: (FlatTile(16, 2, 1, 128), FlatTile(16, 2, 2, 128), FlatTile(16, 2, 1, 64)),
    8: (FlatTile(32, 2, 1, 64), FlatTile(32, 2, 1, 64), FlatTile(32, 2, 1, 64)),
}
"""By the bytes of an output sample: of pictures that do not fill the GPU twice, of larger ones, and of rows that start
anywhere. Found on one NVIDIA H200 and one H100 (docs/kernels.md)."""
PIXELS_OF_A_PROCESSOR = 8192
"""Up to so many for each multiprocessor a picture is small: its time is that of a few loads behind each other."""


def tile_of(problem: Problem, aligned: bool, pictures: int, processors: int) -> FlatTile:
    """The tile for a problem; it depends on the GPU by its multiprocessors alone."""
    of_size = TILES[problem.output_dtype.itemsize]
    if not aligned:
        return of_size[ANYWHERE]
    pixels = pictures * problem.output_height * problem.output_width
    return of_size[SMALL if pixels <= PIXELS_OF_A_PROCESSOR * processors else LARGE]


def flat_variant(
    problem: Problem, filter_: FlatFilter, tile: FlatTile, aligned: bool, batch: bool = False
) -> KernelVariant:
    """The kernel; aligned where rows of picture and output start on 16 bytes, and the padding is 1."""
    tile_macros = [(name.upper(), value) for name, value in asdict(tile).items()]
    mends = (("MENDS", 1),) if problem.dtype.kind == "f" else ()
    place = () if aligned else (("ANYWHERE", 1),)
    defines = (*problem_defines(problem), *filter_.macros, *tile_macros, *mends, *place, *batch_defines(batch))
    return KernelVariant("methods/cuda/flat_rows.cu", "flat_rows", defines)


def flat_variants(problems: Iterable[Problem]) -> Iterator[KernelVariant]:
    """The kernels of those that are flat rows, with every tile."""
    for problem in problems:
        filter_ = flat_filter(problem)
        if filter_ is not None:
            for number, tile in enumerate(TILES[problem.output_dtype.itemsize]):
                yield flat_variant(problem, filter_, tile, aligned=number != ANYWHERE)


@dataclass
class FlatPlan(AddressPlan):
    """One launch of flat_rows.cu, for one picture or a batch."""

    filter: FlatFilter = field(kw_only=True)
    tile: FlatTile | None = None
    """One that is asked for; else that of `tile_of`."""
    pictures: int = 1

    def __post_init__(self) -> None:
        import cupy

        problem = self.problem
        samples = problem.output_width * problem.in_channels
        self._pitches = (
            problem.width * problem.in_channels * problem.dtype.itemsize,
            samples * problem.output_dtype.itemsize,
        )
        self._steps = (problem.input_bytes, problem.output_bytes) if self.pictures > 1 else (0, 0)
        self._pointers: list[Any] = []
        if problem.dtype.kind == "f":
            self._plain_weights = cupy.asarray(problem.weights)
            self.workspace_bytes = int(self._plain_weights.nbytes)
            self._pointers.append(np.uint64(self._plain_weights.data.ptr))
        self.arithmetic = WHOLE if self.filter.has_pairs else own_arithmetic(problem)
        self._launches: dict[bool, Any] = {}
        aligned = self._is_aligned(0, 0)
        self._usual = self._launch(aligned)
        self.launches = self._usual.launches
        lanes = "pairs of halves" if self.filter.has_pairs else self.arithmetic.name
        self.choice = {
            "kernel": "flat rows",
            **asdict(self._tile(aligned)),
            "arithmetic": lanes,
            "forms": ", ".join(self.filter.names) or "plain sums",
        }

    def run(self, image: Any, out: Any) -> None:
        """See Plan.run. The first arrays that do not start on 16 bytes cost another compile."""
        self.run_at(image.data.ptr, out.data.ptr)

    def run_at(self, image_address: int, out_address: int, stream: int | None = None) -> None:
        launch = self._usual
        if (image_address | out_address) % PIECE_BYTES:
            launch = self._launch(self._is_aligned(image_address, out_address))
        launch.at(image_address, out_address, stream)

    def _is_aligned(self, *addresses: int) -> bool:
        starts = (*addresses, *self._pitches, *self._steps)
        return self.problem.padding == 1 and all(start % PIECE_BYTES == 0 for start in starts)

    def _tile(self, aligned: bool) -> FlatTile:
        import cupy

        processors = int(cupy.cuda.Device().attributes["MultiProcessorCount"])
        return self.tile or tile_of(self.problem, aligned, self.pictures, processors)

    def _launch(self, aligned: bool) -> Any:
        if aligned not in self._launches:
            problem, tile = self.problem, self._tile(aligned)
            kernel = load(flat_variant(problem, self.filter, tile, aligned, self.pictures > 1))
            samples = problem.output_width * problem.in_channels
            of_thread = tile.vector_bytes // problem.output_dtype.itemsize
            across = -(-samples // of_thread)
            if not aligned:  # two vectors end a row, and each warp has one of the warp before
                across = -(-((samples - problem.in_channels) // of_thread + 1) // (WARP - 1)) * WARP
            groups = -(-problem.output_height // tile.rows)
            blocks = -(-groups * across // tile.threads)
            arguments = (
                picture_geometry(problem, 1, across),
                self.filter.packed(problem.weights.dtype),
                *self._pointers,
            )
            self._launches[aligned] = launch_of(problem, self.pictures, kernel, blocks, (tile.threads, 1), *arguments)
        return self._launches[aligned]
