"""Which rectangles of an output are computed one after another, from which pixels, in how much memory. Integers only.

    rectangle    rows and columns of the output, row by row over the picture
    window       the pixels that a rectangle is computed from: a picture like any other, cut out of the whole. It begins
                 at a multiple of the stride and reaches so far that what its own border spoils is cut away again
    piece        side of the squares that the output file is made of: a rectangle begins at a multiple of it

A rectangle is as wide as the picture where memory allows, so that strips and rows of chunks are decoded once. The limit
on memory is for the whole process: what is resident once everything is loaded is measured, and this is added:

    windows      one that is read, one that is filtered         chunks    one a thread, and those that are kept, as
    outputs      one that is computed, one that is written                the next rectangles need them again
    pieces       one a thread, as samples and compressed        working   memory of the method and of the allocator
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.chains import ChainProblem
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem
from edgeconv.errors import MemoryLimitError
from edgeconv.methods.reference import ROWS_PER_BAND
from edgeconv.run.job import TILE_STEP
from edgeconv.run.sources.base import TileSource

MEBIBYTE = 2**20

LARGEST_PIECE, SMALLEST_PIECE = 512, 128
"""Smaller ones compress badly, and a file of many is slow to open; a rectangle below them is one piece."""

WINDOW_BYTES = 64 * MEBIBYTE
"""Largest window of a rectangle that is chosen: its halo is a small part already, and more gains nothing."""
KEPT_BYTES = 512 * MEBIBYTE
"""Most bytes of chunks that are kept where no limit is set."""
SLACK_BYTES = 48 * MEBIBYTE
"""For freed memory that the allocator retains, the check and the blocks of the hash."""
STAGING_BYTES = 32 * MEBIBYTE
"""Page-locked slots of a GPU's transfers."""
COPIES_OF_A_PIECE = 3
"""While it is written: cut out, compressed, and waiting to be appended."""
CHAIN_BYTES_PER_SAMPLE = 200
"""Of a band of rows that the oracle computes by a chain, for each sample of the picture: about 25 arrays in 64 bits."""
ORACLE_ARRAYS = 16
"""In float64 that the oracle holds for each direction of a band of rows."""
ROUND_BYTES = 8 * MEBIBYTE
"""A suggested limit is a multiple of this."""


class Rectangle(NamedTuple):
    """Rows and columns."""

    rows: range
    columns: range


class Tile(NamedTuple):
    """A rectangle of the output with the pixels that it is computed from."""

    rectangle: Rectangle
    window: Rectangle
    """Of the input."""
    inside: Rectangle
    """Where the rectangle lies in the output of its window."""

    def part_of(self, filtered: NDArray[Any]) -> NDArray[Any]:
        """The rectangle's pixels (HWC) in the output of its window."""
        rows, columns = self.inside
        return filtered[rows.start : rows.stop, columns.start : columns.stop]


@dataclass(frozen=True)
class Halo:
    """How far around an output pixel the input is read; of a chain `padding` is the reach of its stages."""

    stride: int
    padding: int
    taps: int = KERNEL_SIZE

    @classmethod
    def of(cls, problem: Problem | ChainProblem) -> Halo:
        """That of a problem."""
        if isinstance(problem, ChainProblem):
            return cls(1, problem.chain.reach, 2 * problem.chain.reach + 1)
        return cls(problem.stride, problem.padding)

    def window(self, size: int, wanted: range) -> tuple[range, range]:
        """The pixels of an axis of `size` that give the outputs `wanted`, and where these are in the window's output.

        A border mirrors up to `padding` pixels, so that a window at an end of the axis has that many beside the edge.
        """
        first = max(0, wanted.start - -(-self.padding // self.stride))
        stop = min(size, (wanted.stop - 1) * self.stride - self.padding + self.taps)
        if first == 0:
            stop = max(stop, min(size, self.padding + 1))
        if stop == size:
            first = min(first, max(0, size - 1 - self.padding) // self.stride)
        return range(first * self.stride, stop), range(wanted.start - first, wanted.stop - first)

    def longest(self, size: int, outputs: int) -> int:
        """Pixels of the longest window for `outputs` in a row."""
        return min(size, outputs * self.stride + 2 * (self.padding + self.stride) + self.taps)


@dataclass(frozen=True)
class Demand:
    """What a cut is made for."""

    source: TileSource
    problem: Problem | ChainProblem
    """Of the whole picture."""
    finished_dtype: np.dtype[Any]
    """Of the output as it is written."""
    finishes: bool
    """Whether `normalize` or a threshold makes the output in an array of its own."""
    method: str
    device: str
    threads: int
    resident_bytes: int
    """Of the process before the first rectangle."""
    copies: int = 0
    """Of a rectangle that the output's format holds while it is written."""

    @property
    def output(self) -> tuple[int, int]:
        """Rows and columns of the whole output."""
        return self.problem.output_shape[0], self.problem.output_shape[1]

    def windows(self, axis: int, step: int) -> list[range]:
        """What rectangles of `step` rows (axis 0) or columns (axis 1) read along the axis."""
        size, halo = (self.source.height, self.source.width)[axis], Halo.of(self.problem)
        return [halo.window(size, span)[0] for span in spans(self.output[axis], step)]

    def decodings(self, rows: int, columns: int) -> int:
        """Decoded chunks where none is kept."""
        down, across = (
            sum(-(-window.stop // chunk) - window.start // chunk for window in self.windows(axis, step))
            for axis, (step, chunk) in enumerate(zip((rows, columns), self.source.chunk, strict=True))
        )
        return down * across

    def kept_bytes(self, rows: int, columns: int) -> int:
        """Chunks that rectangles share: with the next row of them over the whole width, and with the one beside."""
        shared = [
            max((-(-before.stop // chunk) - after.start // chunk for before, after in pairwise(windows)), default=0)
            * chunk
            for windows, chunk in zip((self.windows(0, rows), self.windows(1, columns)), self.source.chunk, strict=True)
        ]
        tall = min(self.source.height, Halo.of(self.problem).longest(self.source.height, rows) + 2 * shared[0])
        return (shared[0] * self.source.width + shared[1] * tall) * self.source.pixel_bytes

    def least_bytes(self, rows: int, columns: int) -> int:
        """Memory of the process for rectangles of that size, without chunks that are kept."""
        problem, source, halo = self.problem, self.source, Halo.of(self.problem)
        rows, columns = min(rows, self.output[0]), min(columns, self.output[1])
        height, width = halo.longest(source.height, rows), halo.longest(source.width, columns)
        window = height * width * source.pixel_bytes
        samples, channels = rows * columns * problem.output_channels, problem.output_channels
        raw = (height // halo.stride + 1) * (width // halo.stride + 1) * channels * problem.output_dtype.itemsize
        finished = samples * self.finished_dtype.itemsize
        outputs = 2 * raw + (2 * finished if self.finishes else 0) + self.copies * finished
        piece = piece_of(rows) ** 2 * channels * self.finished_dtype.itemsize
        chunks = [
            min(-(-size // chunk), -(-side // chunk) + 1)
            for size, side, chunk in zip((source.height, source.width), (height, width), source.chunk, strict=True)
        ]
        loading = min(self.threads, chunks[0] * chunks[1]) * source.loading_bytes
        pieces = (self.threads + 1) * COPIES_OF_A_PIECE * piece
        fixed = self.resident_bytes + SLACK_BYTES + self._working_bytes(width)
        return fixed + 2 * window + outputs + pieces + loading

    def _working_bytes(self, width: int) -> int:
        """Of the method itself; float64 in the oracle, a few rows of float32 for each thread elsewhere."""
        problem = self.problem
        if self.device == "cuda":
            return STAGING_BYTES
        if isinstance(problem, ChainProblem):
            return width * (ROWS_PER_BAND + 2 * problem.chain.reach) * problem.in_channels * CHAIN_BYTES_PER_SAMPLE
        row = width * max(problem.in_channels, problem.output_channels) * np.dtype(np.float64).itemsize
        if self.method == "reference":
            return row * ROWS_PER_BAND * (2 * problem.stride + ORACLE_ARRAYS * problem.directions)
        return row * KERNEL_SIZE * (problem.stride + 1) * self.threads


@dataclass(frozen=True)
class TilePlan:
    """How an output is cut into rectangles of `rows` × `columns`, or fewer at its ends."""

    rows: int
    columns: int
    kept_bytes: int
    """Chunks that are kept for the next rectangles may take as much."""
    planned_bytes: int
    """Most memory of the process, as counted beforehand."""

    @property
    def piece(self) -> int:
        """Side of the output file's pieces."""
        return piece_of(self.rows)

    def tiles(self, problem: Problem | ChainProblem) -> list[Tile]:
        """All of them, row by row over the output of a problem."""
        halo, (height, width, _) = Halo.of(problem), problem.input_shape
        rows, columns = spans(problem.output_shape[0], self.rows), spans(problem.output_shape[1], self.columns)
        pairs = product(
            [(span, *halo.window(height, span)) for span in rows],
            [(span, *halo.window(width, span)) for span in columns],
        )
        return [Tile(*map(Rectangle, down, across)) for down, across in pairs]


def spans(size: int, step: int) -> list[range]:
    """0 to `size` in ranges of `step`, the last of what is left."""
    return [range(start, min(start + step, size)) for start in range(0, size, step)]


def piece_of(rows: int) -> int:
    """The side of the pieces for rectangles of `rows` rows: their largest fair divisor, or all of them."""
    fair = (side for side in range(LARGEST_PIECE, SMALLEST_PIECE - 1, -TILE_STEP) if rows % side == 0)
    return next(fair, -(-rows // TILE_STEP) * TILE_STEP)


def cut(demand: Demand, side: int | None, limit_bytes: int | None) -> TilePlan:
    """Squares of `side` where the user set it, else the best rectangles under the limit.

    Raises MemoryLimitError where they do not fit, with a limit that would do.
    """
    sizes = list(_sizes(demand)) if side is None else [(side, side)]
    least = {size: demand.least_bytes(*size) for size in sizes}
    room = {size: KEPT_BYTES if limit_bytes is None else limit_bytes - least[size] for size in sizes}
    fitting = [size for size in sizes if room[size] >= 0]
    if not fitting:
        raise _too_small(demand, side, min(least.values()), limit_bytes or 0)
    whole = next((size for size in fitting if demand.kept_bytes(*size) <= room[size]), None)
    size = whole or min(fitting, key=lambda size: demand.decodings(*size))
    kept = min(demand.kept_bytes(*size), room[size])
    return TilePlan(*size, kept, least[size] + kept)


def _sizes(demand: Demand) -> Iterator[tuple[int, int]]:
    """Rows and columns worth a try, the best first: as wide as the picture, then narrower; few rows last."""
    height, width = demand.output
    window_bytes = demand.source.pixel_bytes * Halo.of(demand.problem).stride ** 2
    sides = [TILE_STEP << power for power in range((max(height, width, LARGEST_PIECE) // TILE_STEP).bit_length())]
    narrower = [side for side in reversed(sides) if SMALLEST_PIECE <= side < width]
    for rows_are_few in (False, True):
        for columns, rows in product((width, *narrower), reversed(sides)):
            is_small = rows <= LARGEST_PIECE or rows * columns * window_bytes <= WINDOW_BYTES
            is_whole = columns == width or columns % piece_of(rows) == 0
            if is_small and is_whole and (rows < SMALLEST_PIECE) == rows_are_few:
                yield rows, columns


def _too_small(demand: Demand, side: int | None, least: int, limit_bytes: int) -> MemoryLimitError:
    chunk, of = demand.source.chunk, demand.source.loading_bytes
    huge = demand.resident_bytes + SLACK_BYTES + of > limit_bytes
    what, way_out = (
        ("The smallest tiles", "set")
        if side is None
        else (f"Tiles of {side}×{side} pixels", "leave --tile out, or set")
    )
    why = f", as a piece of {chunk[1]:,}×{chunk[0]:,} pixels is decoded at once" if huge else ""
    # with some margin, as the next run differs slightly
    suggested = (least // ROUND_BYTES + 2) * ROUND_BYTES // MEBIBYTE
    return MemoryLimitError(
        f"{what} need about {_mebibytes(least)} of memory{why}, and the limit is {_mebibytes(limit_bytes)} "
        f"({_mebibytes(demand.resident_bytes)} are the program itself): {way_out} --memory-limit {suggested}MiB."
    )


def _mebibytes(count: int) -> str:
    return f"{-(-count // MEBIBYTE):,} MiB"
