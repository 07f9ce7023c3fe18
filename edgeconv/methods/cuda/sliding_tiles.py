"""How CUDA `sliding` cuts a picture into strips: a rule of twelve tiles, and the height of a strip.

Nothing here changes a result, only its speed. The tiles were measured on one NVIDIA H200 and one H100; of the GPU the
height of a strip depends on how many warps run at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from edgeconv.core.filters import RGB_CHANNELS
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem
from edgeconv.methods.cuda.kernel_args import WARP, round_up
from edgeconv.methods.cuda.sliding_arithmetic import arithmetic_for, form_for

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
    (1, 1): StripTile(4, 3, 2, 16),
    (1, 2): StripTile(4, 1, 1, 10),
    (1, 3): StripTile(4, 1, 2, 2),
    (2, 1): StripTile(4, 3, 2, 16),
    (2, 2): StripTile(2, 3, 1, 6),
    (2, 3): StripTile(2, 2, 1, 2),
    (4, 1): StripTile(2, 3, 2, 13),
    (4, 2): StripTile(1, 3, 1, 3),
    (4, 3): StripTile(1, 2, 1, 2),
    (8, 1): StripTile(1, 3, 2, 16),
    (8, 2): StripTile(1, 2, 2, 3),
    (8, 3): StripTile(1, 1, 1, 2),
}
"""By the bytes of a sample and the stride, from 3 on the same, for pixels of three channels."""
TENSOR_CORES = {1: StripTile(4, 4, 1, 24), 2: StripTile(4, 2, 1, 16)}
"""By the bytes of a sample."""
GREY_PIXELS = 4
"""A lane has so many times as many pixels of one channel."""
MOST_RESPONSES = 12
"""Responses of an output row that a lane holds, but for those of one pixel."""


def tile_for(problem: Problem) -> StripTile:
    """The tile for a problem."""
    if arithmetic_for(problem) == "mma":
        return TENSOR_CORES[problem.dtype.itemsize]
    tile = TILES[problem.dtype.itemsize, min(problem.stride, KERNEL_SIZE)]
    pixels = tile.thread_pixels * (GREY_PIXELS if problem.in_channels < RGB_CHANNELS else 1)
    form = form_for(problem)
    if form is not None and form.form == "taps" or problem.output_channels > RGB_CHANNELS:
        least = 4 // min(problem.dtype.itemsize, 4)  # whole words
        responses = problem.output_channels * problem.directions
        pixels = min(pixels, max(least, MOST_RESPONSES // responses))
    return replace(tile, thread_pixels=pixels)


def strip_height(problem: Problem, tile: StripTile, strips_at_once: int, pictures: int = 1) -> int:
    """Output rows of a strip where so many strips are worked on at a time: all of them get the same number in turn.

    But no fewer than pay for the rows that strips share, which count twice where samples are wide. The steps of a
    strip are whole ones, those counted that only bring the rows above its first output. Strips of a batch are worked
    on together.
    """
    all_rows = problem.output_height * pictures
    turns = max(1, round(-(-all_rows // strips_at_once) / tile.strip_rows))
    least = max(0, KERNEL_SIZE - problem.stride) * (2 if problem.dtype.itemsize >= 4 else 1)
    before = (KERNEL_SIZE - 1) // problem.stride
    rows = min(max(-(-all_rows // (strips_at_once * turns)), least, 1), problem.output_height)
    strips = -(-problem.output_height // rows)
    return round_up(-(-problem.output_height // strips) + before, tile.step_rows) - before
