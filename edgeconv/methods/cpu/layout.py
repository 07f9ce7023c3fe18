"""What generated code and the plan that calls it agree on: arguments, tables, and the lengths of scratch rows.

A tile is `strip_rows` output rows of up to `tile_pixels` output pixels. Three staged rows are kept and reused from one
output row to the next (slot = row mod 3); a fourth is always zero. They have a length known here, so every tap is at a
constant distance and stays in the L1 or L2 cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from edgeconv.core.filters import RGB_CHANNELS
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.hardware.cpu.jit import CACHE_LINE_BYTES
from edgeconv.hardware.cpu.scalars import SCALAR_BYTES
from edgeconv.methods.cpu.lowering import Lowering

ZERO_SLOT = KERNEL_SIZE
SLOTS = KERNEL_SIZE + 1
WIDEST_VECTOR_STRIDE = KERNEL_SIZE
"""Beyond it most of a source row is not read at all, and samples are picked one by one."""


class Argument(IntEnum):
    """Places in the block of int64 that the function is given; the names say what lies there."""

    IMAGE_ADDRESS = 0
    OUT_ADDRESS = 1
    UNITS = 2
    TILES_PER_STRIP = 3
    STRIP_ROWS = 4
    OUT_ROWS = 5
    IMAGE_ROW_SAMPLES = 6
    OUT_ROW_SAMPLES = 7
    SOURCE_ROWS_ADDRESS = 8
    """int32 of every padded row: the source row, or OUTSIDE."""
    TILES_ADDRESS = 9
    PICKS_ADDRESS = 10
    SCRATCH_ADDRESS = 11


class TileFields(IntEnum):
    """int64 fields of a tile, in pixels (in samples where the lowering is flat)."""

    OUT_START = 0
    OUT_COUNT = 1
    GROUPS_START = 2
    """Staged positions from here to GROUPS_STOP are filled by vectors from SOURCE_START on, stride pixels each."""
    GROUPS_STOP = 3
    SOURCE_START = 4
    PICKS_START = 5
    """The other positions are filled one by one, as PICKS_START to PICKS_STOP of the picks say."""
    PICKS_STOP = 6


class Pick(IntEnum):
    """int32 fields of a pick."""

    POSITION = 0
    """phase · pitch + index, in a plane."""
    SOURCE = 1
    """Source pixel of the row (sample where flat), or OUTSIDE for a zero."""


@dataclass(frozen=True)
class RowLayout:
    """Lengths that the code is written for, all derived from the lowering and the processor."""

    vector_bytes: int
    block_pixels: int
    """Pixels (samples where flat) of one block of `respond`."""
    tile_pixels: int
    pitch: int
    """Elements from one staged phase to the next."""
    slot_bytes: int
    columns: int
    """Column rows that im2col copies out; 0 for a sliding window."""
    columns_pitch_bytes: int
    spare_bytes: int

    @property
    def columns_offset_bytes(self) -> int:
        """Where the columns lie in a worker's scratch."""
        return SLOTS * self.slot_bytes

    @property
    def spare_offset_bytes(self) -> int:
        """Where the spare row for short runs lies."""
        return self.columns_offset_bytes + self.columns * self.columns_pitch_bytes

    @property
    def scratch_bytes(self) -> int:
        """One worker's scratch."""
        return self.spare_offset_bytes + self.spare_bytes


def make_layout(lowering: Lowering, vector_bytes: int, tile_pixels: int, columns: bool) -> RowLayout:
    """Choose the lengths: blocks of one register of stored samples or four of sums, rows padded to cache lines.

    Past the caches whole lines are stored, and what comes before the first of them in a run must fit into a block.
    """
    of_sums = SUM_REGISTERS * vector_bytes // SCALAR_BYTES[lowering.sum]
    block = max(vector_bytes // SCALAR_BYTES[lowering.stored], of_sums)
    if lowering.streaming:
        block = max(block, CACHE_LINE_BYTES // SCALAR_BYTES[lowering.stored])
    staged_bytes = SCALAR_BYTES[lowering.staged]
    longest = max(tile_pixels, block, 2 * vector_bytes) + block + reach(lowering)
    pitch_bytes = _odd_lines(longest * staged_bytes)
    return RowLayout(
        vector_bytes=vector_bytes,
        block_pixels=block,
        tile_pixels=tile_pixels,
        pitch=pitch_bytes // staged_bytes,
        slot_bytes=len(lowering.planes) * lowering.phases * pitch_bytes,
        columns=len(lowering.planes) * KERNEL_SIZE * KERNEL_SIZE if columns else 0,
        columns_pitch_bytes=pitch_bytes,
        spare_bytes=_odd_lines(block * RGB_CHANNELS * SCALAR_BYTES[lowering.stored]),
    )


MULTIPLY_ADDS_TO_HIDE_A_LINE = 16
"""Vector multiply-adds that take as long as a cache line takes to come at 20 GB/s: measured, docs/cpu-engine.md."""

SUM_REGISTERS = 4
"""Registers of sums in flight for each response: hides the latency of a multiply-add, and every weight and
every address is fetched once for all of them."""


def tap_step(lowering: Lowering) -> int:
    """Distance between horizontal neighbours in a staged row at stride 1."""
    return RGB_CHANNELS if lowering.flat else 1


def channels_per_pixel(lowering: Lowering) -> int:
    """Source samples that one staged position stands for."""
    return 1 if lowering.flat else RGB_CHANNELS


def stored_per_pixel(lowering: Lowering) -> int:
    """Output samples that one position of a run stands for."""
    return 1 if lowering.flat else len(lowering.result_of_output)


def source_bytes_per_position(lowering: Lowering) -> int:
    """Bytes of one source row under one staged position of all phases."""
    return channels_per_pixel(lowering) * lowering.stride * SCALAR_BYTES[lowering.source]


def fetches_while_computing(lowering: Lowering, layout: RowLayout) -> bool:
    """Whether the source rows of the next output row are asked for while this one is computed.

    It hides the memory behind arithmetic where there is enough of it; where there is little, the requests pile
    up in front of the stores, and it is better to ask a page ahead while staging.
    """
    if not lowering.streaming:
        return False
    registers = layout.block_pixels * SCALAR_BYTES[lowering.sum] / layout.vector_bytes
    taps = sum(len(response) for result in lowering.results for response in result)
    lines = layout.block_pixels * source_bytes_per_position(lowering) * lowering.phases / CACHE_LINE_BYTES
    return taps * registers / lines >= MULTIPLY_ADDS_TO_HIDE_A_LINE


def reach(lowering: Lowering) -> int:
    """Staged positions to the right of a pixel that its taps read."""
    return (KERNEL_SIZE - 1) * tap_step(lowering)


def _odd_lines(size_bytes: int) -> int:
    """Whole cache lines, an odd number of them: rows at a power of two apart would fight for the same cache sets."""
    lines = -(-size_bytes // CACHE_LINE_BYTES)
    return (lines | 1) * CACHE_LINE_BYTES
