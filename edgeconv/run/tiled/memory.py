"""Memory of tiles, and the largest tile that a limit allows: computed, except for the process itself.

The limit applies to the whole process, with interpreter and libraries. The memory that is resident once libraries are
loaded and the first code is compiled is measured; what the tiles add is computed:

    windows    one that is being assembled, one that is being filtered
    outputs    one that is being computed, one that is being compressed; for `normalize` each in two types; one that is
               read back to verify it; copies that a format makes
    chunks     one per thread, but no more than a window reaches; those cached for the next tiles
    pieces     one per thread, as samples and compressed
    working    memory of the method, the check and the allocator
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from edgeconv.core.chains import ChainProblem
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem
from edgeconv.errors import MemoryLimitError
from edgeconv.hardware.devices import get_device
from edgeconv.methods.reference import ROWS_PER_BAND
from edgeconv.run.tiled.grid import WindowRules, reached
from edgeconv.run.tiled.sources.base import ChunkLayout

MEBIBYTE = 2**20

PIECES = (512, 256, 128, 64, 32, 16)
"""Sides of the output file's pieces, the preferred one first; multiples of 16, as TIFF requires."""

TILE_STEP = PIECES[-1]
LEAST_PIECE = 128
"""Smallest piece for a tile that the user sets: smaller ones compress badly, and a file of many is slow to open."""

WINDOW_BYTES = 64 * MEBIBYTE
"""Largest window of a tile that is chosen: its halo is a small part already, and more gains nothing."""

SLACK_BYTES = 48 * MEBIBYTE
"""For freed memory that the allocator retains, the windows of the check and the blocks of the hash."""

STAGING_BYTES = 32 * MEBIBYTE
"""Page-locked slots of a GPU's transfers."""

COPIES_OF_A_PIECE = 3
"""While it is written: cut out, compressed, and waiting to be appended."""

KEEP_BYTES = 512 * MEBIBYTE
"""Most bytes of cached chunks where no limit is set."""

ROUND_BYTES = 8 * MEBIBYTE
"""A suggested limit is a multiple of this."""

FLOAT64_BYTES = np.dtype(np.float64).itemsize

COMPENSATED_ARRAYS = 8
"""The oracle's for a compensated sum: what is found and lost, a product and its halves, the sum before and after."""

CHAIN_BYTES_PER_SAMPLE = 200
"""Of a band of rows that the oracle computes by a chain, for each sample of the picture: about 25 arrays in 64 bits."""

UNKNOWN_RESIDENT_BYTES = 300 * MEBIBYTE
"""Assumed where the system does not tell the memory of the process."""


@dataclass(frozen=True)
class Cost:
    """Bytes of one plan."""

    resident: int
    """The process before the first tile."""
    tiles: int
    """Windows, outputs, pieces, working memory."""
    loading: int
    """Chunks that are being decoded."""
    keep: int
    """Chunks kept, so that nothing is decoded twice."""

    @property
    def least(self) -> int:
        """Without keeping any chunk."""
        return self.resident + self.tiles + self.loading

    @property
    def whole(self) -> int:
        """With every chunk kept that is needed again."""
        return self.least + self.keep


@dataclass(frozen=True)
class TilePlan:
    """The tile that was chosen."""

    tile: tuple[int, int]
    """Rows and columns of the output."""
    piece: int
    keep_bytes: int
    planned_bytes: int
    """Most memory of the process, as counted beforehand."""


@dataclass(frozen=True)
class TileDemand:
    """What a plan is made for."""

    layout: ChunkLayout
    rules: WindowRules
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
    verifying: bool = False
    """Whether the output is read back and compared."""
    copies_of_a_tile: int = 0
    """That the output's format holds while a tile is written."""

    def cost(self, tile: tuple[int, int], piece: int) -> Cost:
        """What tiles of `tile` (rows, columns of the output) cost with pieces of `piece`."""
        problem, layout = self.problem, self.layout
        rows, columns = min(tile[0], problem.output_height), min(tile[1], problem.output_width)
        window_rows, window_columns = (self.rules.window_side(side) for side in (rows, columns))
        window = window_rows * window_columns * problem.in_channels * problem.dtype.itemsize
        samples = rows * columns * problem.output_channels
        computed = samples * problem.output_dtype.itemsize
        finished = samples * self.finished_dtype.itemsize
        outputs = computed + 2 * finished if self.finishes else 2 * finished
        outputs += self.copies_of_a_tile * finished
        if isinstance(problem, ChainProblem):  # what a method gives for a window is cut afterwards
            outputs += window_rows * window_columns * problem.output_channels * problem.output_dtype.itemsize
        if self.verifying:
            outputs += finished
        a_piece = piece * piece * problem.output_channels * self.finished_dtype.itemsize
        pieces = (self.threads + 1) * COPIES_OF_A_PIECE * a_piece
        working = SLACK_BYTES + self._working_bytes(window_columns)
        return Cost(
            resident=self.resident_bytes,
            tiles=2 * window + outputs + pieces + working,
            loading=min(self.threads, self._chunks_of_a_window(tile)) * layout.loading_bytes,
            keep=self._keep_bytes(tile),
        )

    def _working_bytes(self, window_columns: int) -> int:
        """What the method itself takes; float64 in the oracle, a few rows of float32 for each thread elsewhere."""
        if self.device == "cuda":
            return STAGING_BYTES
        if isinstance(self.problem, ChainProblem):
            rows = ROWS_PER_BAND + 2 * self.problem.chain.reach
            return window_columns * rows * self.problem.in_channels * CHAIN_BYTES_PER_SAMPLE
        row = window_columns * max(self.problem.in_channels, self.problem.output_channels) * FLOAT64_BYTES
        if self.method == "reference":
            sums = COMPENSATED_ARRAYS if self.problem.dtype == np.float64 else 2
            return row * ROWS_PER_BAND * (2 * self.problem.stride + sums * self.problem.directions + 2)
        return row * KERNEL_SIZE * (self.problem.stride + 1) * self.threads

    def _chunks_of_a_window(self, tile: tuple[int, int]) -> int:
        """Most chunks that one window reaches; verifying cuts tiles elsewhere, which may be one more along an axis."""
        layout, found = self.layout, 1
        for axis, cuts in enumerate((layout.row_cuts, layout.column_cuts)):
            found *= min(len(cuts) - 1, self.sharing(axis, tile[axis]).most_reached + self.verifying)
        return found

    def _keep_bytes(self, tile: tuple[int, int]) -> int:
        """Chunks that reach into the next row of tiles, over the whole width, and a column of them beside the tile."""
        layout = self.layout
        rows, columns = self.sharing(0, tile[0]).shared_pixels, self.sharing(1, tile[1]).shared_pixels
        tall = min(layout.height, self.rules.window_side(tile[0]) + 2 * layout.chunk_rows)
        return (rows * layout.width + columns * tall) * layout.channels * layout.dtype.itemsize

    def decodings(self, tile: tuple[int, int]) -> int:
        """How many chunks are decoded where none is kept."""
        return self.sharing(0, tile[0]).chunks_reached * self.sharing(1, tile[1]).chunks_reached

    def sharing(self, axis: int, step: int) -> TileSharing:
        """What tiles of `step` share along an axis: 0 down, 1 across."""
        layout = self.layout
        size, cuts = ((layout.height, layout.row_cuts), (layout.width, layout.column_cuts))[axis]
        return _sharing(size, self.rules, step, cuts)


@dataclass(frozen=True)
class TileSharing:
    """What the tiles along one axis share."""

    shared_pixels: int
    """Most pixels of chunks that two neighbouring tiles both reach."""
    chunks_reached: int
    """By all tiles together: a chunk counts for every tile that reaches it."""
    most_reached: int
    """By one tile."""


@lru_cache(maxsize=256)
def _sharing(size: int, rules: WindowRules, step: int, chunk_cuts: tuple[int, ...]) -> TileSharing:
    axis = rules.axis(size, step)
    needed = [reached(axis.window(index)) for index in range(axis.count)]
    most = 0
    for before, after in pairwise(needed):
        first = bisect_right(chunk_cuts, after.start) - 1
        stop = bisect_left(chunk_cuts, before.stop)
        most = max(most, chunk_cuts[stop] - chunk_cuts[first] if stop > first else 0)
    reaches = [bisect_left(chunk_cuts, span.stop) - bisect_right(chunk_cuts, span.start) + 1 for span in needed]
    return TileSharing(most, sum(reaches), max(reaches))


def piece_of(side: int) -> int:
    """The side of the pieces that a tile of `side` is cut into: its largest fair divisor, or itself."""
    fair = (step for step in range(PIECES[0], LEAST_PIECE - 1, -TILE_STEP) if side % step == 0)
    return next(fair, side)


def plan_given(work: TileDemand, side: int, limit_bytes: int | None) -> TilePlan:
    """Tiles of `side` × `side`, which the user set. Raises MemoryLimitError where they do not fit."""
    tile, piece = (side, side), piece_of(side)
    cost = work.cost(tile, piece)
    if limit_bytes is None:
        keep = min(cost.keep, KEEP_BYTES)
        return TilePlan(tile, piece, keep, cost.least + keep)
    if cost.least > limit_bytes:
        raise MemoryLimitError(
            f"Tiles of {side}×{side} pixels need about {_mebibytes(cost.least)} of memory and the limit is "
            f"{_mebibytes(limit_bytes)}: leave --tile out, or set --memory-limit {_suggested(cost.least)}."
        )
    keep = min(cost.keep, limit_bytes - cost.least)
    return TilePlan(tile, piece, keep, cost.least + keep)


def plan_chosen(work: TileDemand, limit_bytes: int) -> TilePlan:
    """The best tile under the limit. Raises MemoryLimitError where there is none, with the limit that would do."""
    shapes = list(_shapes(work))
    costs = {shape: work.cost(*shape) for shape in shapes}
    fitting = [shape for shape in shapes if costs[shape].least <= limit_bytes]
    keeping = [shape for shape in fitting if costs[shape].whole <= limit_bytes]
    if fitting:
        tile, piece = keeping[0] if keeping else min(fitting, key=lambda shape: work.decodings(shape[0]))
        cost = costs[tile, piece]
        keep = min(cost.keep, limit_bytes - cost.least)
        return TilePlan(tile, piece, keep, cost.least + keep)
    least = min(cost.least for cost in costs.values())
    raise MemoryLimitError(
        f"The smallest tiles need about {_mebibytes(least)} of memory and the limit is {_mebibytes(limit_bytes)} "
        f"({_mebibytes(work.resident_bytes)} are the program itself): set --memory-limit {_suggested(least)}."
    )


def _shapes(work: TileDemand) -> Iterator[tuple[tuple[int, int], int]]:
    """Tiles worth a try, the best first: whole rows of the picture, then narrower tiles; large before small pieces.

    Whole rows come first because strips, which many files are made of, are then decoded once.
    """
    width = work.problem.output_width
    for piece in PIECES:
        yield from (((rows, width), piece) for rows in _heights(work, piece, width))
    for piece in PIECES:
        columns = width
        while columns > piece:
            columns = max(piece, -(-columns // 2 // piece) * piece)
            yield from (((rows, columns), piece) for rows in _heights(work, piece, columns))


def _heights(work: TileDemand, piece: int, columns: int) -> Iterator[int]:
    """Heights of tiles in whole pieces: the tallest that is worth it, then halves of it down to one piece."""
    stride = work.rules.stride
    row_bytes = work.rules.window_side(columns) * work.problem.in_channels * work.problem.dtype.itemsize
    pieces = max(1, min(WINDOW_BYTES // (row_bytes * stride * piece), -(-work.problem.output_height // piece)))
    while pieces:
        yield pieces * piece
        pieces //= 2


def resident_bytes() -> int:
    """The most that the process has held so far: what a limit is compared with."""
    return get_device("cpu").peak_bytes() or UNKNOWN_RESIDENT_BYTES


def _suggested(needed: int) -> str:
    """A sufficient limit with some margin, as the next run differs slightly; as a value of the option."""
    return f"{(needed // ROUND_BYTES + 2) * ROUND_BYTES // MEBIBYTE}MiB"


def _mebibytes(count: int) -> str:
    return f"{-(-count // MEBIBYTE):,} MiB"
