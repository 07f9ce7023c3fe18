"""How CUDA `sliding` cuts a picture into strips: a rule of a few tiles, and the height of a strip.

Nothing here changes a result, only its speed. The tiles were measured on one NVIDIA H100 and one H200; the height of a
strip depends on how many warps the GPU runs at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from edgeconv.core.filters import RGB_CHANNELS
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem
from edgeconv.methods.cuda.kernel_args import round_up
from edgeconv.methods.cuda.sliding_choice import Strips

LINE_BYTES = 128
"""A cache line: see sliding_rows.cuh."""
CHUNK_BYTES = 16
"""What one asynchronous copy moves; rows that start on a multiple of it take the short way."""


@dataclass(frozen=True)
class StripTile:
    """How the strips are cut: the macros of sliding.cu that change speed and nothing else, and the strips' height."""

    thread_pixels: int
    """Output pixels that a lane computes side by side."""
    step_rows: int
    """Output rows of a step; pairs of them for the tensor cores."""
    steps_ahead: int
    """Steps whose input rows are under way while one is computed."""
    strip_rows: int
    """Output rows of a strip, about: made such that every warp that runs at once gets the same number of strips."""

    @property
    def macros(self) -> tuple[tuple[str, int], ...]:
        """What sliding.cu is compiled with."""
        names = ("thread_pixels", "step_rows", "steps_ahead")
        return tuple((name.upper(), getattr(self, name)) for name in names)


TILES = {
    (1, 1): StripTile(4, 3, 2, 8),
    (1, 2): StripTile(4, 1, 1, 10),
    (1, 3): StripTile(4, 1, 0, 2),
    (2, 1): StripTile(4, 3, 2, 6),
    (2, 2): StripTile(2, 2, 1, 6),
    (2, 3): StripTile(2, 2, 1, 1),
    (4, 1): StripTile(2, 3, 2, 6),
    (4, 2): StripTile(1, 2, 2, 3),
    (4, 3): StripTile(2, 1, 2, 2),
    (8, 1): StripTile(1, 3, 2, 8),
    (8, 2): StripTile(1, 2, 2, 3),
    (8, 3): StripTile(1, 1, 1, 2),
}
"""By the bytes of a sample and the stride, from 3 on the same, for pixels of three channels."""
WHOLE_PRODUCTS = StripTile(4, 4, 1, 12)
"""On the tensor cores, bytes by bytes."""
HALF_PRODUCTS = {(1, 1): StripTile(4, 2, 1, 48), (2, 1): StripTile(4, 2, 1, 32), (2, 2): StripTile(4, 4, 1, 16)}
"""On the tensor cores, halves by halves, by the bytes of a sample and the directions."""
ANYWHERE = StripTile(8, 2, 1, 48)
"""At stride 1, where rows of bytes, and of what the tensor cores take, start anywhere: more pixels share the words that
are shifted."""
QUAD_ROWS = 12
"""Rows of such a strip by dp4a, which has the least to compute."""
GREY_PIXELS = 2
"""A lane has this multiple of the pixels where there is one channel."""
MOST_RESPONSES = 72
"""Registers for the responses of the output rows that a lane sums at a time."""
MOST_DIRECTIONS = 12
"""Responses of an output row that a lane keeps to find the largest of."""


def tile_for(strips: Strips, aligned: bool = True) -> StripTile:
    """The tile for a problem: no more pixels for a lane than its registers hold the sums of.

    `aligned` says whether every row of the picture starts on 16 bytes.
    """
    problem, form = strips.problem, strips.form
    size = problem.dtype.itemsize
    shifts = not aligned and problem.stride == 1
    if strips.sums == "mma":
        if shifts:
            return ANYWHERE
        return WHOLE_PRODUCTS if strips.whole_bytes else HALF_PRODUCTS[size, problem.directions]
    tile = TILES[size, min(problem.stride, KERNEL_SIZE)]
    if shifts and size == 1:
        tile = replace(ANYWHERE, strip_rows=QUAD_ROWS) if strips.sums == "dp4a" else ANYWHERE
    words = 2 if strips.is_wide else 1
    if strips.sums == "fma64" and size < 8:
        tile = replace(tile, step_rows=1, steps_ahead=1)
    pixels = tile.thread_pixels * (GREY_PIXELS if problem.in_channels < RGB_CHANNELS else 1)
    responses = problem.output_channels * problem.directions
    if form is None:
        pixels = min(pixels, MOST_RESPONSES // (responses * words * max(1, KERNEL_SIZE + 1 - problem.stride)))
    elif form.form == "taps":
        pixels = min(pixels, MOST_DIRECTIONS // responses)
    least = max(1, 4 // size)  # whole words
    return replace(tile, thread_pixels=max(least, pixels // least * least))


def strip_height(problem: Problem, tile: StripTile, strips_at_once: int, pictures: int = 1) -> int:
    """Output rows of a strip where `strips_at_once` are worked on at a time: all of them get the same number in turn.

    But no fewer than pay for the rows that strips share, which count twice where samples are wide. The steps of a
    strip are whole ones, those counted that only bring the rows above its first output. Strips of a batch are worked
    on together.
    """
    before = (KERNEL_SIZE - 1) // problem.stride
    least = max(1, KERNEL_SIZE - problem.stride) * (2 if problem.dtype.itemsize >= 4 else 1)
    all_rows = problem.output_height * pictures

    def height(turns: int) -> int:
        rows = min(max(-(-all_rows // (strips_at_once * turns)), least), problem.output_height)
        strips = -(-problem.output_height // rows)
        return round_up(-(-problem.output_height // strips) + before, tile.step_rows) - before

    def time(rows: int) -> int:
        strips = -(-problem.output_height // rows) * pictures
        return -(-strips // strips_at_once) * (rows + before)

    turns = max(1, round(all_rows / strips_at_once / tile.strip_rows))
    return min((height(other) for other in (turns, turns + 1, max(1, turns - 1))), key=time)
