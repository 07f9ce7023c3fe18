"""What generated code and the plan that calls it agree on: arguments, tables, and the lengths of scratch rows.

A tile is `strip_rows` output rows of up to `tile_pixels` output pixels. Three staged rows are kept and reused from one
output row to the next (slot = row mod 3); a fourth is always zero. They have a length known here, so every tap is at a
constant distance and stays in the L1 or L2 cache. Where scratch rows are long, tiles are so short that the L1 cache
holds them. At strides 3 and 4, where no source row serves two output rows, such tiles are computed row by row, so that
three rows of the picture are read side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.hardware.cpu.caches import CACHE_LINE_BYTES
from edgeconv.hardware.cpu.emit import SCALAR_BYTES, is_float
from edgeconv.hardware.cpu.jit import Processor
from edgeconv.hardware.cpu.x86 import is_x86
from edgeconv.methods.cpu.lowering import Lowering
from edgeconv.methods.cpu.passes import BankPasses, cut_bank, cut_results

ADDRESS_BYTES = 8
ZERO_SLOT = KERNEL_SIZE
SLOTS = KERNEL_SIZE + 1
WIDEST_VECTOR_STRIDE = 6
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
    PASSES_ADDRESS = 12
    """int64 fields of every pass of a bank."""
    WEIGHTS_ADDRESS = 13
    """Of a bank, in the type of the sums: pass, direction, tap, output."""


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


class PassFields(IntEnum):
    """int64 fields of a pass over a bank: as many outputs of one group as registers hold."""

    PLANES_OFFSET_BYTES = 0
    """From the first plane to those of its group."""
    OUT_START = 1
    """Its first output within a pixel."""


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
    is_x86: bool
    """Whether hardware/cpu/x86.py has instructions for this processor."""
    block_pixels: int
    """Pixels (samples where flat) of one block of `respond`."""
    sum_pixels: int
    """Those whose sums are in registers together; a block is one or several of them."""
    results_per_pass: int
    """Results whose sums are in registers together; a block has as many passes as it takes."""
    bank: BankPasses | None
    tile_pixels: int
    """Output pixels of a tile at most."""
    row_by_row: bool
    """All tiles of an output row before the next row; else all rows of a strip before the next tile."""
    pitch: int
    """Elements from one staged phase to the next."""
    slot_bytes: int
    columns: int
    """Column rows that im2col copies out; 0 for a sliding window."""
    columns_pitch_bytes: int
    spare_bytes: int
    """Of the spare row, in which short runs end, or in which outputs are put together before they are stored."""
    spare_pixels: int
    """Whole blocks that the spare row holds; 0 where it is for short runs."""
    taps_bytes: int

    @property
    def columns_offset_bytes(self) -> int:
        """Where the columns lie in a worker's scratch."""
        return SLOTS * self.slot_bytes

    @property
    def spare_offset_bytes(self) -> int:
        """Where the spare row for short runs lies."""
        return self.columns_offset_bytes + self.columns * self.columns_pitch_bytes

    @property
    def taps_offset_bytes(self) -> int:
        """Where the addresses of a bank's taps lie."""
        return self.spare_offset_bytes + self.spare_bytes

    @property
    def scratch_bytes(self) -> int:
        """One worker's scratch."""
        return self.taps_offset_bytes + self.taps_bytes


def make_layout(lowering: Lowering, processor: Processor, tile_pixels: int, columns: bool) -> RowLayout:
    """Choose the lengths: blocks of one register of stored samples or a few of sums, rows padded to cache lines.

    Past the caches whole lines are stored, and what comes before the first of them in a run must fit into a block.
    """
    vector_bytes = processor.vector_bytes
    short = _wants_short_tiles(lowering) and not columns
    row_by_row = short and lowering.stride >= KERNEL_SIZE
    stored_bytes = SCALAR_BYTES[lowering.stored]
    bank = None if lowering.bank is None else cut_bank(lowering, lowering.bank, vector_bytes)
    if bank is not None:
        per_pass, block = bank.outputs, bank.block_pixels
        together = block
    else:
        per_pass, of_a_response = cut_results(lowering, vector_bytes)
        together = of_a_response * vector_bytes // SCALAR_BYTES[lowering.sum]
        block = max(vector_bytes // stored_bytes, together)
        if lowering.streaming:
            block = max(block, CACHE_LINE_BYTES // stored_bytes)
    spare_pixels = 0
    if puts_outputs_together(lowering):
        spare_pixels = max(1, SPARE_ROW_BYTES // (stored_per_pixel(lowering) * stored_bytes) // block) * block
    staged_bytes = SCALAR_BYTES[lowering.staged]
    if short:
        cache_bytes = int(L1_SHARE * processor.l1_bytes) // (2 if row_by_row else 1)
        tile_pixels = min(tile_pixels, _pixels_in_cache(lowering, block, cache_bytes))
    longest = max(tile_pixels, block, 2 * vector_bytes) + block + reach(lowering)
    pitch_bytes = _odd_lines(longest * staged_bytes)
    spare_samples = (spare_pixels or block) * stored_per_pixel(lowering)
    return RowLayout(
        vector_bytes=vector_bytes,
        is_x86=is_x86(processor.triple),
        block_pixels=block,
        sum_pixels=together,
        results_per_pass=per_pass,
        bank=bank,
        tile_pixels=tile_pixels,
        row_by_row=row_by_row,
        pitch=pitch_bytes // staged_bytes,
        slot_bytes=len(lowering.planes) * lowering.phases * pitch_bytes,
        columns=len(lowering.planes) * KERNEL_SIZE * KERNEL_SIZE if columns else 0,
        columns_pitch_bytes=pitch_bytes,
        spare_bytes=_odd_lines(spare_samples * stored_bytes + CACHE_LINE_BYTES),
        spare_pixels=spare_pixels,
        taps_bytes=0 if bank is None else _odd_lines(lowering.taps_per_response * ADDRESS_BYTES),
    )


L1_SHARE = 0.8
"""Of the L1 cache, for the scratch rows of a short tile; half of it row by row. Measured: docs/cpu-engine.md."""
WIDEST_SHORT_STRIDE = 4
"""Beyond it most of what is read is not staged at all."""
TAPS_READ_OFTEN = 64
"""Multiply-adds of a pixel from which short tiles pay although rows that overlap are then read in pieces."""


def _wants_short_tiles(lowering: Lowering) -> bool:
    """Whether tiles are to be so short that the L1 cache holds their scratch rows.

    That is where these are long, several channels apart in floats. Where rows overlap (strides 1 and 2) much must be
    computed too, and of bytes even a long row is read again from the L2 cache in less time than it costs to cut it.
    """
    long = len(lowering.planes) > 1 and not lowering.flat and is_float(lowering.staged)
    if lowering.stride >= KERNEL_SIZE:
        return long and lowering.stride <= WIDEST_SHORT_STRIDE
    return long and is_float(lowering.source) and lowering.multiply_adds >= TAPS_READ_OFTEN


def _pixels_in_cache(lowering: Lowering, block: int, cache_bytes: int) -> int:
    """Whole blocks of output pixels whose scratch rows a cache holds."""
    of_a_pixel = KERNEL_SIZE * len(lowering.planes) * lowering.phases * SCALAR_BYTES[lowering.staged]
    return max(1, cache_bytes // (of_a_pixel * block)) * block


SPARE_ROW_BYTES = 16 * 2**10
"""Outputs that are put together before they are stored: half of the L1 cache."""


def passes(lowering: Lowering, layout: RowLayout) -> int:
    """How often the taps of a block are read for all of its outputs."""
    if layout.bank is None or lowering.bank is None:
        return -(-lowering.different_outputs // layout.results_per_pass)
    return lowering.bank.groups * len(layout.bank.starts)


def puts_outputs_together(lowering: Lowering) -> bool:
    """Whether outputs go through the spare row: those of a bank, and past the caches an even number of them.

    Pixels of an odd number of outputs start on a cache line once in so many, wherever the output lies; those of an even
    number may never do so.
    """
    return lowering.bank is not None or (lowering.streaming and stored_per_pixel(lowering) % 2 == 0)


def splits_bytes(lowering: Lowering, layout: RowLayout) -> bool:
    """Whether bytes are summed in 16 bits by even and odd places, so that none has to be moved across a register."""
    in_bytes = lowering.staged == lowering.stored == "u8" and lowering.sum == "i16"
    return in_bytes and layout.sum_pixels >= layout.vector_bytes


MULTIPLY_ADDS_TO_HIDE_A_LINE = 16
"""Vector multiply-adds that take as long as a cache line takes to come at 20 GB/s: measured, docs/cpu-engine.md."""


def tap_step(lowering: Lowering) -> int:
    """Distance between horizontal neighbours in a staged row at stride 1."""
    return lowering.channels if lowering.flat else 1


def channels_per_pixel(lowering: Lowering) -> int:
    """Source samples that one staged position stands for."""
    return 1 if lowering.flat else lowering.channels


def stored_per_pixel(lowering: Lowering) -> int:
    """Output samples that one position of a run stands for."""
    return 1 if lowering.flat else lowering.stored_channels


def source_bytes_per_position(lowering: Lowering) -> int:
    """Bytes of one source row under one staged position of all phases."""
    return channels_per_pixel(lowering) * lowering.stride * SCALAR_BYTES[lowering.source]


def fetches_while_computing(lowering: Lowering, layout: RowLayout) -> bool:
    """Whether the source rows of the next output row are asked for while this one is computed.

    It hides the memory behind arithmetic where there is enough of it; where there is little, the requests pile
    up in front of the stores, and it is better to ask a page ahead while staging.
    """
    if not lowering.streaming or lowering.bank is not None:
        return False
    registers = layout.block_pixels * SCALAR_BYTES[lowering.sum] / layout.vector_bytes
    taps = lowering.operations_of_a_position
    lines = layout.block_pixels * source_bytes_per_position(lowering) * lowering.phases / CACHE_LINE_BYTES
    return taps * registers / lines >= MULTIPLY_ADDS_TO_HIDE_A_LINE


def reach(lowering: Lowering) -> int:
    """Staged positions to the right of a pixel that its taps read."""
    return (KERNEL_SIZE - 1) * tap_step(lowering)


def _odd_lines(size_bytes: int) -> int:
    """Whole cache lines, an odd number of them: rows at a power of two apart would fight for the same cache sets."""
    lines = -(-size_bytes // CACHE_LINE_BYTES)
    return (lines | 1) * CACHE_LINE_BYTES
