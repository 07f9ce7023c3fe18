"""How CUDA `sliding` cuts a picture into strips: the measured table of tiles, and the height of a strip.

Nothing here changes a result, only its speed. The table is data, measured on one NVIDIA H200.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem
from edgeconv.methods.cuda.kernel_args import WARP, round_up
from edgeconv.methods.cuda.sliding_arithmetic import StripArithmetic, arithmetic_for, form_for, has_int8_weights
from edgeconv.methods.cuda.sliding_forms import FormMacro

CHUNK_BYTES = 16
"""What one asynchronous copy moves; rows that start on a multiple of it take the short way."""
LINE_BYTES = 128
"""A cache line: see sliding.cu."""
BARRIER_BYTES, LEAD_BYTES, WORD_BYTES, STAGES, JOINT_BYTES, BORDER_BYTES = 8, 4, 4, 2, 8, 512
MOST_SHARED_BYTES = 48 * 1024
"""What a block of any GPU may have without asking for more."""
MOST_BLOCKS = 16
"""Blocks that a multiprocessor of any GPU since Maxwell takes, at least."""

WORTH_FITTING = 0.88
"""Share of a tile's warps that another number of them must do with, for a kernel of its own."""


@dataclass(frozen=True)
class StripTile:
    """How the strips are cut: the macros of sliding.cu that change speed and nothing else, and the strips' height."""

    thread_pixels: int
    """Output pixels that a thread computes side by side."""
    step_rows: int
    """Output rows of a step, between two barriers; pairs of them for the tensor cores."""
    steps_ahead: int
    """Steps whose input rows are under way while one is computed."""
    warps: int
    """Warps that share a tile and a ring: one block."""
    min_blocks: int
    """Blocks that must fit a multiprocessor: caps the registers."""
    strip_rows: int
    """Output rows of a strip, about: made such that every resident block gets the same number of strips."""

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.warps * WARP

    @property
    def macros(self) -> tuple[tuple[str, int], ...]:
        """What sliding.cu is compiled with."""
        names = ("thread_pixels", "step_rows", "steps_ahead", "warps", "min_blocks")
        return tuple((name.upper(), getattr(self, name)) for name in names)


@dataclass(frozen=True)
class TileRow:
    """A line of TILES: the tile, and the problems that it is for (a field left out: all)."""

    tile: StripTile
    arithmetic: StripArithmetic | None = None
    stride: int | None = None
    directions: int | None = None
    sample_bytes: int | None = None
    least_pixels: int = 0
    """Of the output."""
    in_channels: int | None = None
    least_outputs: int = 0
    """Of a filter bank."""
    out_channels: int | None = None
    in_group: int | None = None
    """Input channels that an output sums."""
    whole_weights: bool | None = None
    """Of an 8-bit picture: signed bytes."""
    aligned: bool | None = None
    """Whether every row of the picture starts on 16 bytes."""
    form: FormMacro | None = None

    def fits(self, problem: Problem, arithmetic: StripArithmetic, aligned: bool) -> bool:
        """Whether the line is for problems like this one, whatever their size."""
        actual = (
            arithmetic,
            problem.stride,
            problem.directions,
            problem.dtype.itemsize,
            problem.in_channels,
            problem.output_channels,
            problem.weights.shape[2],
            has_int8_weights(problem),
            aligned,
            None if self.form is None else form_of(problem),
        )
        wanted = (
            self.arithmetic,
            self.stride,
            self.directions,
            self.sample_bytes,
            self.in_channels,
            self.out_channels,
            self.in_group,
            self.whole_weights,
            self.aligned,
            self.form,
        )
        return problem.output_channels >= self.least_outputs and all(
            want in (None, is_) for want, is_ in zip(wanted, actual, strict=True)
        )


TILES = (
    TileRow(StripTile(2, 2, 1, 4, 4, 16), "fma64", stride=1, directions=2, sample_bytes=8, in_channels=1),
    TileRow(StripTile(4, 2, 1, 4, 4, 16), "fma64", stride=1, sample_bytes=8, in_channels=1),
    TileRow(StripTile(2, 1, 1, 4, 4, 6), "fma64", stride=2, sample_bytes=8, in_channels=1),
    TileRow(StripTile(1, 4, 1, 4, 4, 24), "fma64", stride=1, sample_bytes=8, out_channels=1),
    TileRow(StripTile(2, 2, 1, 2, 8, 24), "fma64", stride=1, directions=2, sample_bytes=8, in_group=1),
    TileRow(StripTile(1, 3, 1, 4, 4, 8), "fma64", stride=1, sample_bytes=8, in_group=1),
    TileRow(StripTile(1, 2, 2, 4, 4, 10), "fma64", stride=1, sample_bytes=8, aligned=True),
    TileRow(StripTile(1, 3, 1, 4, 4, 16), "fma64", stride=1, sample_bytes=8),
    TileRow(StripTile(1, 1, 1, 4, 4, 3), "fma64", stride=2, sample_bytes=8),
    TileRow(StripTile(1, 1, 1, 2, 8, 3), "fma64", stride=3, sample_bytes=8),
    TileRow(StripTile(1, 1, 0, 2, 6, 1), "fma64", sample_bytes=8),
    TileRow(StripTile(1, 1, 1, 4, 3, 16), "planes64", stride=1, form="taps"),
    TileRow(StripTile(1, 2, 1, 4, 6, 16), "planes64", stride=1, in_group=1, aligned=False),
    TileRow(StripTile(1, 3, 1, 4, 6, 10), "planes64", stride=1, aligned=False),
    TileRow(StripTile(1, 3, 2, 4, 4, 16), "planes64", stride=1),
    TileRow(StripTile(1, 2, 0, 2, 8, 3), "planes64", stride=2),
    TileRow(StripTile(1, 1, 1, 2, 8, 3), "planes64", stride=3),
    TileRow(StripTile(1, 1, 0, 2, 6, 1), "planes64"),
    TileRow(StripTile(4, 2, 1, 4, 2, 16), "fma64", stride=1),
    TileRow(StripTile(4, 1, 1, 2, 4, 4), "fma64"),
    TileRow(StripTile(16, 3, 1, 4, 4, 16), "pairs", in_channels=1),
    TileRow(StripTile(8, 3, 1, 4, 5, 24), "pairs"),
    TileRow(StripTile(2, 2, 1, 4, 3, 16), "planes", stride=1, directions=8, sample_bytes=4, form="taps"),
    TileRow(StripTile(2, 2, 1, 4, 3, 16), "planes", stride=1, directions=8, sample_bytes=2, form="taps"),
    TileRow(StripTile(4, 2, 1, 4, 3, 16), "planes", stride=1, directions=8, form="taps"),
    TileRow(StripTile(2, 2, 1, 4, 3, 16), "planes", stride=2, directions=8, sample_bytes=2, form="taps"),
    TileRow(StripTile(4, 2, 1, 4, 4, 16), "planes", stride=1, sample_bytes=4, in_channels=1),
    TileRow(StripTile(1, 3, 1, 4, 6, 10), "planes", stride=1, sample_bytes=4, in_group=1, least_pixels=2**23),
    TileRow(StripTile(2, 3, 1, 4, 4, 16), "planes", stride=1, sample_bytes=4, in_group=1),
    TileRow(StripTile(2, 3, 1, 4, 4, 13), "planes", stride=1, sample_bytes=4, out_channels=1),
    TileRow(StripTile(1, 3, 1, 4, 4, 10), "planes", stride=1, sample_bytes=4),
    TileRow(StripTile(1, 2, 1, 4, 4, 6), "planes", stride=2, sample_bytes=4),
    TileRow(StripTile(1, 1, 1, 4, 6, 3), "planes", stride=3, sample_bytes=4),
    TileRow(StripTile(8, 3, 1, 4, 4, 24), "planes", stride=1, in_channels=1),
    TileRow(StripTile(4, 3, 1, 4, 4, 48), "planes", stride=1, in_group=1, least_pixels=2**23),
    TileRow(StripTile(4, 3, 1, 4, 4, 16), "planes", stride=1, sample_bytes=2, in_group=1),
    TileRow(StripTile(4, 3, 1, 2, 8, 16), "planes", stride=1, in_group=1),
    TileRow(
        StripTile(16, 3, 1, 2, 8, 16),
        "planes",
        stride=1,
        directions=2,
        sample_bytes=1,
        out_channels=1,
        least_pixels=2**23,
    ),
    TileRow(StripTile(8, 3, 1, 4, 6, 31), "planes", stride=1, sample_bytes=1, out_channels=1, least_pixels=2**21),
    TileRow(StripTile(8, 4, 1, 2, 10, 16), "planes", stride=1, sample_bytes=1, out_channels=1),
    TileRow(StripTile(4, 3, 1, 4, 6, 10), "planes", stride=1, directions=2, sample_bytes=1, least_pixels=2**23),
    TileRow(StripTile(8, 3, 1, 4, 6, 16), "planes", stride=1, sample_bytes=1, least_pixels=2**23),
    TileRow(StripTile(4, 3, 1, 4, 6, 16), "planes", stride=1, sample_bytes=1),
    TileRow(StripTile(4, 2, 1, 4, 6, 31), "planes", stride=1, out_channels=1, least_pixels=2**23),
    TileRow(StripTile(4, 3, 1, 4, 6, 10), "planes", stride=1, least_pixels=2**23),
    TileRow(StripTile(4, 2, 1, 4, 6, 20), "planes", stride=1, least_pixels=2**21, aligned=False),
    TileRow(StripTile(4, 3, 1, 4, 6, 10), "planes", stride=1),
    TileRow(StripTile(4, 2, 0, 2, 8, 13), "planes", stride=2, sample_bytes=1, in_group=3),
    TileRow(StripTile(4, 1, 1, 4, 4, 10), "planes", stride=2, sample_bytes=1),
    TileRow(StripTile(2, 2, 1, 4, 4, 16), "planes", stride=2),
    TileRow(StripTile(4, 1, 0, 4, 6, 2), "planes", stride=3, sample_bytes=1),
    TileRow(StripTile(2, 1, 1, 4, 4, 2), "planes", stride=3),
    TileRow(StripTile(4, 4, 1, 4, 5, 48), "mma", sample_bytes=1, whole_weights=False, least_pixels=2**23, aligned=True),
    TileRow(StripTile(4, 4, 1, 4, 4, 16), "mma", sample_bytes=1, whole_weights=False),
    TileRow(StripTile(2, 1, 2, 4, 4, 31), "fma", stride=1, least_outputs=6),
    TileRow(StripTile(2, 2, 1, 4, 4, 31), "fma", stride=1, least_outputs=4),
    TileRow(StripTile(1, 2, 1, 4, 4, 4), "fma", stride=2, least_outputs=4),
    TileRow(StripTile(1, 1, 1, 4, 4, 3), "fma", stride=3, least_outputs=4),
    TileRow(StripTile(16, 3, 1, 4, 4, 31), "dp4a", stride=1, directions=2, in_channels=1),
    TileRow(StripTile(16, 2, 1, 4, 4, 16), "dp4a", stride=1, in_channels=1),
    TileRow(StripTile(8, 2, 2, 4, 6, 31), "fma", stride=1, directions=2, sample_bytes=4, in_channels=1),
    TileRow(StripTile(4, 2, 1, 4, 4, 16), "fma", stride=1, directions=2, in_channels=1),
    TileRow(StripTile(4, 4, 1, 4, 8, 16), "fma", stride=1, sample_bytes=4, in_channels=1),
    TileRow(StripTile(8, 2, 2, 4, 6, 31), "fma", stride=1, in_channels=1),
    TileRow(StripTile(4, 1, 1, 4, 4, 6), stride=2, sample_bytes=4, in_channels=1),
    TileRow(StripTile(8, 1, 1, 4, 4, 6), stride=2, in_channels=1),
    TileRow(StripTile(4, 4, 1, 4, 4, 31), "mma", directions=2, sample_bytes=1, least_pixels=2**23),
    TileRow(StripTile(4, 4, 1, 4, 4, 16), "mma", directions=2, sample_bytes=1, aligned=False),
    TileRow(StripTile(8, 2, 1, 2, 8, 13), "mma", directions=2, sample_bytes=1, least_pixels=2**21),
    TileRow(StripTile(4, 2, 1, 4, 4, 10), "mma", directions=2, sample_bytes=1),
    TileRow(StripTile(4, 4, 1, 4, 4, 20), "mma", sample_bytes=1, aligned=False),
    TileRow(StripTile(4, 4, 1, 4, 4, 16), "mma", sample_bytes=1, least_pixels=2**23),
    TileRow(StripTile(4, 2, 1, 4, 4, 16), "mma", sample_bytes=1),
    TileRow(StripTile(4, 2, 1, 2, 8, 16), "mma", directions=2),
    TileRow(StripTile(4, 4, 1, 2, 8, 62), "mma", least_pixels=2**23, aligned=False),
    TileRow(StripTile(4, 2, 1, 4, 5, 24), "mma", least_pixels=2**23),
    TileRow(StripTile(4, 4, 1, 2, 8, 13), "mma", least_pixels=2**21, aligned=False),
    TileRow(StripTile(4, 2, 1, 2, 8, 10), "mma"),
    TileRow(StripTile(8, 3, 1, 4, 6, 20), "dp4a", stride=1, directions=1, least_pixels=2**21, aligned=False),
    TileRow(StripTile(8, 4, 1, 2, 12, 16), "dp4a", stride=1, directions=1, aligned=False),
    TileRow(StripTile(4, 4, 1, 4, 5, 16), "dp4a", stride=1, least_pixels=2**23),
    TileRow(StripTile(4, 2, 1, 4, 4, 13), "dp4a", stride=1),
    TileRow(StripTile(2, 2, 1, 4, 4, 8), stride=1, directions=2, sample_bytes=4),
    TileRow(StripTile(4, 2, 1, 4, 4, 62), stride=1, directions=2),
    TileRow(StripTile(2, 3, 1, 4, 6, 20), stride=1, sample_bytes=4, least_pixels=2**21, aligned=False),
    TileRow(StripTile(2, 3, 1, 4, 4, 10), stride=1, sample_bytes=4, aligned=False),
    TileRow(StripTile(2, 3, 2, 4, 4, 13), stride=1, sample_bytes=4, least_pixels=2**23),
    TileRow(StripTile(2, 3, 1, 4, 6, 10), stride=1, sample_bytes=4, least_pixels=2**21),
    TileRow(StripTile(4, 1, 1, 2, 12, 13), stride=1, sample_bytes=4, least_pixels=2**19),
    TileRow(StripTile(2, 2, 1, 2, 8, 8), stride=1, sample_bytes=4),
    TileRow(StripTile(2, 4, 1, 4, 6, 31), stride=1, sample_bytes=2, out_channels=3, in_group=3, least_pixels=2**21),
    TileRow(StripTile(4, 2, 1, 4, 6, 10), stride=1, sample_bytes=2, out_channels=3, in_group=3),
    TileRow(StripTile(4, 3, 1, 4, 6, 31), stride=1, sample_bytes=2, least_pixels=2**23, aligned=False),
    TileRow(StripTile(8, 2, 1, 4, 6, 16), stride=1, sample_bytes=2, out_channels=1, least_pixels=2**21, aligned=False),
    TileRow(StripTile(4, 2, 1, 4, 6, 31), stride=1, sample_bytes=2, least_pixels=2**21, aligned=False),
    TileRow(StripTile(4, 3, 1, 4, 6, 31), stride=1, sample_bytes=2, aligned=False),
    TileRow(StripTile(4, 2, 2, 4, 6, 8), stride=1, sample_bytes=2),
    TileRow(StripTile(8, 3, 1, 4, 4, 24), stride=1),
    TileRow(StripTile(1, 2, 1, 4, 6, 3), stride=2, sample_bytes=4, least_pixels=2**19),
    TileRow(StripTile(1, 2, 0, 4, 6, 3), stride=2, sample_bytes=4),
    TileRow(StripTile(2, 2, 1, 4, 4, 6), stride=2, sample_bytes=2),
    TileRow(StripTile(4, 1, 1, 8, 3, 31), stride=2, directions=2),
    TileRow(StripTile(4, 2, 0, 2, 8, 13), stride=2),
    TileRow(StripTile(1, 1, 0, 4, 4, 2), stride=3, sample_bytes=4),
    TileRow(StripTile(2, 1, 0, 4, 6, 2), stride=3, sample_bytes=2),
    TileRow(StripTile(4, 1, 0, 4, 6, 2), stride=3),
    TileRow(StripTile(1, 1, 0, 1, 12, 1), sample_bytes=4),
    TileRow(StripTile(2, 1, 0, 2, 6, 1), sample_bytes=2),
    TileRow(StripTile(4, 1, 0, 1, 12, 4)),
)
"""The first line that fits is taken."""


def form_of(problem: Problem) -> FormMacro | None:
    """The macro FORM of a problem."""
    found = form_for(problem)
    return None if found is None else found.form


def shared_bytes(problem: Problem, tile: StripTile) -> int:
    """Shared memory of a block, at most: the ring and the stages of sliding.cu."""
    in_pixel, out_pixel = (
        problem.in_channels * problem.dtype.itemsize,
        problem.output_channels * problem.output_dtype.itemsize,
    )
    pixels = (tile.threads * tile.thread_pixels - 1) * problem.stride + KERNEL_SIZE
    row = round_up(LINE_BYTES + pixels * in_pixel + CHUNK_BYTES + WORD_BYTES, LINE_BYTES)
    rows = tile.step_rows * min(problem.stride, KERNEL_SIZE)
    ring = (1 + tile.steps_ahead) * (rows * (row + LEAD_BYTES) + BARRIER_BYTES)
    staged = tile.threads * tile.thread_pixels * out_pixel + CHUNK_BYTES + (tile.warps + 1) * JOINT_BYTES
    return ring + STAGES * tile.step_rows * staged + BORDER_BYTES


def tiles_of(problem: Problem, aligned: bool) -> tuple[tuple[int, StripTile], ...]:
    """The tiles for problems like this one, each with the least output pixels that it is for, largest first.

    `aligned` says whether every row of the picture starts on 16 bytes.
    """
    arithmetic = arithmetic_for(problem)
    fitting = [
        (row.least_pixels, row.tile)
        for row in TILES
        if row.fits(problem, arithmetic, aligned) and shared_bytes(problem, row.tile) <= MOST_SHARED_BYTES
    ]
    last = [least for least, _ in fitting].index(0)
    return tuple(fitting[: last + 1])


def tile_for(problem: Problem, aligned: bool, pictures: int = 1) -> StripTile:
    """The tile that measured fastest for this problem; `aligned` as for `tiles_of`."""
    pixels = problem.output_height * problem.output_width * pictures
    return next(tile for least, tile in tiles_of(problem, aligned) if pixels >= least)


def fitted(problem: Problem, tile: StripTile) -> StripTile:
    """The tile with the number of warps that leaves the fewest of them beside the right edge of the picture.

    A block has half as many to half as many more, and as many threads on a multiprocessor as before, or fewer. In place
    of several warps one was faster at stride 1 alone.
    """
    across = -(-problem.output_width // (WARP * tile.thread_pixels))
    least = min(tile.warps, max(1 if problem.stride == 1 else 2, tile.warps // 2))
    most = tile.warps + tile.warps // 2
    others = [_with_warps(tile, warps) for warps in range(least, most + 1)]
    fitting = [other for other in others if shared_bytes(problem, other) <= MOST_SHARED_BYTES]
    best = min(fitting, key=lambda other: (round_up(across, other.warps), abs(other.warps - tile.warps), -other.warps))
    return best if round_up(across, best.warps) <= WORTH_FITTING * round_up(across, tile.warps) else tile


def _with_warps(tile: StripTile, warps: int) -> StripTile:
    return replace(tile, warps=warps, min_blocks=min(MOST_BLOCKS, max(1, tile.min_blocks * tile.warps // warps)))


def tile_for_batch(problem: Problem, aligned: bool, pictures: int) -> StripTile:
    """The tile for a batch, with no more warps side by side than a picture is wide.

    Multiply-adds take that of one picture, others that of a picture of as many pixels, which has taller strips:
    measured on one NVIDIA H200 for 1,024 pictures of 128×128, 256 of 256×256, 64 of 512×512.
    """
    tile = tile_for(problem, aligned, 1 if arithmetic_for(problem) in ("fma", "fma64") else pictures)
    warps = min(tile.warps, -(-problem.output_width // (WARP * tile.thread_pixels)))
    return _with_warps(tile, warps)


def batch_strip_height(problem: Problem, tile: StripTile, pictures: int, strips_at_once: int) -> int:
    """`strip_height` where the strips of all pictures of a batch are worked on together."""
    whole = replace(problem, height=problem.height * pictures)
    rows = min(strip_height(whole, tile, strips_at_once), problem.output_height)
    strips = -(-problem.output_height // rows)
    before = (KERNEL_SIZE - 1) // problem.stride
    return round_up(-(-problem.output_height // strips) + before, tile.step_rows) - before


def strip_height(problem: Problem, tile: StripTile, strips_at_once: int) -> int:
    """Output rows of a strip where so many strips are worked on at a time: all of them get the same number in turn.

    But no fewer than pay for the rows that strips share, which count twice where samples are wide. The steps of a
    strip are whole ones, those counted that only bring the rows above its first output.
    """
    rows_at_once = -(-problem.output_height // strips_at_once)
    turns = max(1, round(rows_at_once / tile.strip_rows))
    shared = KERNEL_SIZE - problem.stride
    least = shared * (2 if problem.dtype.itemsize >= 4 else 1)
    before = (KERNEL_SIZE - 1) // problem.stride
    rows = max(-(-problem.output_height // (strips_at_once * turns)), least)
    return round_up(rows + before, tile.step_rows) - before
