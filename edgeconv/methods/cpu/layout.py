"""What generated code and the plan that calls it agree on: arguments, tables, lengths, and how a row is computed.

A tile is `strip_rows` output rows of up to `tile_pixels` output pixels. The staged rows that an output row reads, or
two that are computed together, are kept and reused for the next (slot = row mod their number); one more is always zero.
They have a length known here, so every tap is at a constant distance and stays in the L1 or L2 cache.

As many outputs are computed together as have their sums in registers, the rest in further passes:

    results   pixels side by side in registers: some results, each of all directions, with 1, 2 or 4 registers each
    banks     outputs side by side: some registers of outputs, for some pixels
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.lowering import BankStructure, Lowering
from edgeconv.hardware.cpu.caches import CACHE_LINE_BYTES
from edgeconv.hardware.cpu.processor import SCALAR_BYTES, Processor, Scalar

ADDRESS_BYTES = 8
WIDEST_VECTOR_STRIDE = 6
"""Beyond it most of a source row is not read at all, and samples are picked one by one."""

SUM_REGISTERS = 4
"""Registers of sums in flight for each response: hides the latency of a multiply-add, and every weight and
every address is fetched once for all of them."""
FEW_RESULTS = 3
"""Results that are always computed in one pass."""
RESPONSES_PER_PASS = 6
"""Responses of a pass where there are more results: two registers each leave room for samples and a weight."""
ROWS_TOGETHER = 2
"""Output rows whose taps are loaded once, where registers hold the sums of both: six loads an output, and not nine."""
RING_RESPONSES = 3
"""As many responses as a ring takes registers: sums of pairs, the largest so far, and samples."""
VECTOR_BYTES_OF_MANY, SUM_REGISTERS_OF_MANY, SUM_REGISTERS_OF_FEW = 64, 24, 12
"""Registers that sums may take: AVX-512 has 32, others at least 16."""
RESPONSE_REGISTERS_OF_FEW = 6
"""Those that sums of few results take of 16: LLVM fetches samples early, and what it then spills costs more than
fetching weights twice (docs/cpu-engine.md)."""
DIRECTIONS_HELD = 2
"""Values of one output that are in registers at once: both of a magnitude, or a response and the largest before it."""
VECTORS_PREFERRED = (2, 3, 1)
"""Registers of outputs in a pass of a bank, the first of those that compute fewest outputs twice: twelve multiply-adds
take eight loads with two (and six pixels), seven with three (and four), thirteen with one (and twelve)."""

SPARE_ROW_BYTES = 16 * 2**10
"""Outputs that are put together before they are stored: half of the L1 cache."""


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
    """int32 of every pick: its position in a plane (phase · pitch + index), and its source pixel in the row (a sample
    where flat), or OUTSIDE for a zero."""
    SCRATCH_ADDRESS = 11
    PASSES_ADDRESS = 12
    """int64 of every pass over a bank, which is as many outputs of one group as registers hold: bytes from the first
    plane to those of its group, and its first output within a pixel."""
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


@dataclass(frozen=True)
class BankPasses:
    """How the outputs of a group are cut into passes, and a pass into registers."""

    structure: BankStructure
    lanes: int
    """Outputs in a register."""
    vectors: int
    """Registers of outputs of one pixel in a pass."""
    block_pixels: int
    """Pixels whose sums of a pass are in registers together."""
    starts: tuple[int, ...]
    """First output of each pass; the last is moved back to end where the group ends."""

    @property
    def outputs(self) -> int:
        """Of a pass."""
        return self.lanes * self.vectors


@dataclass(frozen=True)
class RowLayout:
    """What the code of a lowering is written for on a processor; equal ones share code."""

    lowering: Lowering
    streaming: bool
    """Store past the caches: for outputs too large to be found there again."""
    fetching: bool
    """Ask for rows of the picture early: too large a picture to be found in the caches."""
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
    pitch: int
    """Elements from one staged phase to the next."""
    columns: int
    """Column rows that im2col copies out; 0 for a sliding window."""
    spare_bytes: int
    """Of a spare row, in which short runs end, or in which a bank's outputs are put together before they are stored."""
    spare_pixels: int
    """Whole blocks that the spare row holds; 0 where it is for short runs."""
    unshared: bool
    """Every sample has one tap, none is summed before, and the picture is large: staging gains nothing inside it."""
    rows_together: int
    """Output rows that are computed together; the last of a strip is computed once more where their number is odd."""
    has_short_runs: bool = True
    """Whether a run may be shorter than a block: code for it is written only then."""
    direct: bool = False
    """Taps read the picture itself, and only its borders are staged, as they lie there: rows that are long enough, flat
    ones of the staged type or unshared ones."""

    # --- scratch of a worker --------------------------------------------------------------------------------------

    @property
    def pitch_bytes(self) -> int:
        """From one staged phase to the next, or from one column row to the next."""
        return self.pitch * SCALAR_BYTES[self.lowering.staged]

    @property
    def rows_held(self) -> int:
        """Staged rows at once, each in a slot; the slot behind them is zero."""
        return KERNEL_SIZE + self.rows_together - 1

    @property
    def slot_bytes(self) -> int:
        """From one staged row to the next."""
        return len(self.lowering.planes) * self.phases * self.pitch_bytes

    @property
    def columns_offset_bytes(self) -> int:
        """Where the columns lie."""
        return (self.rows_held + 1) * self.slot_bytes

    @property
    def spare_offset_bytes(self) -> int:
        """Where the spare row lies."""
        return self.columns_offset_bytes + self.columns * self.pitch_bytes

    @property
    def taps_offset_bytes(self) -> int:
        """Where the addresses of a bank's taps lie."""
        return self.spare_offset_bytes + self.rows_together * self.spare_bytes

    @property
    def scratch_bytes(self) -> int:
        """All of it."""
        taps = _odd_lines(self.lowering.taps_per_response * ADDRESS_BYTES) if self.bank is not None else 0
        return self.taps_offset_bytes + taps

    # --- rows -----------------------------------------------------------------------------------------------------

    @property
    def phases(self) -> int:
        """Horizontal residues modulo the stride that a 3×3 filter reads; each is a separate scratch row."""
        return min(self.lowering.stride, KERNEL_SIZE)

    @property
    def tap_step(self) -> int:
        """Distance between horizontal neighbours in a staged row at stride 1."""
        return self.lowering.channels if self.lowering.flat else 1

    @property
    def reach(self) -> int:
        """Staged positions to the right of a pixel that its taps read."""
        return (KERNEL_SIZE - 1) // self.lowering.stride * self.tap_step

    @property
    def read_per_position(self) -> int:
        """Source samples that one staged position stands for."""
        return 1 if self.lowering.flat else self.lowering.channels

    @property
    def stored_per_pixel(self) -> int:
        """Output samples that one position of a run stands for."""
        return 1 if self.lowering.flat else self.lowering.stored_channels

    @property
    def stored_bytes(self) -> int:
        """Of those."""
        return self.stored_per_pixel * SCALAR_BYTES[self.lowering.stored]

    @property
    def source_bytes_per_position(self) -> int:
        """Bytes of one source row under one staged position of all phases."""
        return self.read_per_position * self.lowering.stride * SCALAR_BYTES[self.lowering.source]

    @property
    def source_lanes(self) -> int:
        """Source samples in a register."""
        return self.vector_bytes // SCALAR_BYTES[self.lowering.source]

    @property
    def passes(self) -> int:
        """How often the taps of a block are read for all of its outputs."""
        if self.bank is None:
            return -(-self.lowering.different_outputs // self.results_per_pass)
        return self.bank.structure.groups * len(self.bank.starts)

    @property
    def splits_bytes(self) -> bool:
        """Whether bytes are summed in 16 bits by even and odd places, so that none has to move across a register."""
        lowering = self.lowering
        in_bytes = lowering.staged == lowering.stored == "uint8" and lowering.sums == "int16"
        return in_bytes and self.sum_pixels >= self.vector_bytes


def make_layout(
    lowering: Lowering,
    processor: Processor,
    tile_pixels: int,
    *,
    columns: bool,
    streaming: bool,
    fetching: bool,
    rows_together: int = 1,
) -> RowLayout:
    """Choose the lengths: blocks of one register of stored samples or a few of sums, rows padded to cache lines.

    Past the caches whole lines are stored, and what comes before the first of them in a run must fit into a block. No
    more than `rows_together` output rows are computed together.
    """
    vector_bytes = processor.vector_bytes
    stored_bytes, staged_bytes = SCALAR_BYTES[lowering.stored], SCALAR_BYTES[lowering.staged]
    stored_per_pixel = 1 if lowering.flat else lowering.stored_channels
    bank = None if lowering.bank is None else _cut_bank(lowering.sums, lowering.bank, vector_bytes)
    # Pixels of an odd number of outputs start on a cache line once in that many, wherever the output lies; those of an
    # even number may never do so.
    streaming = streaming and (bank is not None or stored_per_pixel % 2 == 1)
    one_tap = lowering.stride == KERNEL_SIZE and len(lowering.planes) > 1
    unshared = one_tap and fetching and not columns and bank is None
    if columns or not _shares_taps(lowering):
        rows_together = 1
    if bank is not None:
        per_pass, block = bank.outputs, bank.block_pixels
        together = block
    else:
        per_pass, of_a_response = _cut_results(lowering, vector_bytes, rows_together)
        if of_a_response == 1 and rows_together > 1:  # what is saved is lost again by shorter blocks
            rows_together = 1
            per_pass, of_a_response = _cut_results(lowering, vector_bytes, rows_together)
        together = of_a_response * vector_bytes // SCALAR_BYTES[lowering.sums]
        if unshared:
            together = vector_bytes // SCALAR_BYTES[lowering.source]
        block = max(vector_bytes // stored_bytes, together)
        if streaming:
            block = max(block, CACHE_LINE_BYTES // stored_bytes)
    spare_pixels = 0 if bank is None else max(1, SPARE_ROW_BYTES // (stored_per_pixel * stored_bytes) // block) * block
    reach = (KERNEL_SIZE - 1) * (lowering.channels if lowering.flat else 1)
    longest = max(tile_pixels, block, 2 * vector_bytes) + block + reach
    return RowLayout(
        lowering=lowering,
        streaming=streaming,
        fetching=fetching,
        vector_bytes=vector_bytes,
        is_x86=processor.is_x86,
        block_pixels=block,
        sum_pixels=together,
        results_per_pass=per_pass,
        bank=bank,
        tile_pixels=tile_pixels,
        pitch=_odd_lines(longest * staged_bytes) // staged_bytes,
        columns=len(lowering.planes) * KERNEL_SIZE**2 if columns else 0,
        spare_bytes=_odd_lines((spare_pixels or block) * stored_per_pixel * stored_bytes + CACHE_LINE_BYTES),
        spare_pixels=spare_pixels,
        unshared=unshared,
        rows_together=rows_together,
    )


def _shares_taps(lowering: Lowering) -> bool:
    """Whether two output rows gain by loading their taps once: arithmetic binds several outputs and double roots."""
    binds = lowering.different_outputs > 1 or (lowering.sums == "float64" and lowering.combine == "magnitude")
    return lowering.bank is None and not lowering.rings and lowering.stride == 1 and not binds


def _cut_results(lowering: Lowering, vector_bytes: int, rows_together: int) -> tuple[int, int]:
    """Results of a pass, and registers of sums for each of their responses: 1, 2 or 4."""
    results = lowering.different_outputs
    directions = RING_RESPONSES if lowering.rings else len(lowering.responses[0])
    per_pass = max(1, results)
    registers = most = _sum_registers(vector_bytes)
    if results > FEW_RESULTS:
        most = RESPONSES_PER_PASS
    elif vector_bytes < VECTOR_BYTES_OF_MANY:
        registers = most = RESPONSE_REGISTERS_OF_FEW
    if results * directions > most:
        passes = -(-results // max(1, most // directions))
        per_pass = -(-results // passes)
    fitting = registers // (per_pass * directions * rows_together)
    return per_pass, SUM_REGISTERS if fitting >= SUM_REGISTERS else 2 if fitting >= 2 else 1


def _cut_bank(sums: Scalar, bank: BankStructure, vector_bytes: int) -> BankPasses:
    """Registers no longer than a group, and as many as compute fewest outputs twice."""
    lanes = vector_bytes // SCALAR_BYTES[sums]
    while lanes > bank.outputs:
        lanes //= 2
    vectors = min(
        (vectors for vectors in VECTORS_PREFERRED if vectors * lanes <= bank.outputs),
        key=lambda vectors: -(-bank.outputs // (vectors * lanes)) * vectors,
    )
    outputs = vectors * lanes
    starts = tuple(min(start, bank.outputs - outputs) for start in range(0, bank.outputs, outputs))
    held = min(bank.directions, DIRECTIONS_HELD)
    return BankPasses(bank, lanes, vectors, _sum_registers(vector_bytes) // (vectors * held), starts)


def _sum_registers(vector_bytes: int) -> int:
    return SUM_REGISTERS_OF_MANY if vector_bytes >= VECTOR_BYTES_OF_MANY else SUM_REGISTERS_OF_FEW


def _odd_lines(size_bytes: int) -> int:
    """Whole cache lines, an odd number of them: rows at a power of two apart would fight for the same cache sets."""
    lines = -(-size_bytes // CACHE_LINE_BYTES)
    return (lines | 1) * CACHE_LINE_BYTES
