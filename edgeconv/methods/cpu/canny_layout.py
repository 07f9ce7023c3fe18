"""What the code of Canny and its plan agree on: arguments, scratch of a worker, bits of a strip, and their addresses.

A strip is a unit of work: `STRIP_ROWS` rows of the picture. A worker's scratch holds the rows under way, each with a
block of samples to spare at both ends:

    raw      the last `blur` rows of the picture, a plane for each channel; only where the picture is smoothed
    sums     one row of vertical sums of the smoothing, even and odd pixels apart
    staged   the last three (smoothed) rows, a plane for each channel
    ring     the codes (canny_rows.py) of the last three rows, even and odd pixels apart
    queue    places of words that hysteresis has to look at again, and a byte for each word: whether it is queued

Edge pixels are bits, in words of 64 pixels of a row; the first pixel is the lowest bit. Bit rows lie strip by strip,
each strip between two rows of its own and each row between two words of its own (`weak` and `strong` alike). Words to
spare follow, as the last register of words ends beyond the last row.

    row 0           of `strong`: what the last row of the strip above has; of `weak`: nothing, so it is never changed
    row 1 to n      the strip's rows
    row n + 1       of `strong`: what the first row of the strip below has
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from llvmlite import ir

from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.hardware.cpu.caches import CACHE_LINE_BYTES
from edgeconv.hardware.cpu.emit import SCALAR_BYTES, Array, Scalar, Unit, Value

WORD_BITS = 64
WORD_BYTES = SCALAR_BYTES["int64"]
SPARE_WORDS = 8
PARITIES = 2
"""Even and odd pixels of a row."""
INT32_BYTES = SCALAR_BYTES["int32"]

GRADIENT_TYPE: dict[Scalar, Scalar] = {"uint8": "int16", "uint16": "int32"}
"""Holds every response and every |gx| + |gy| of a sample type, times four."""
SQUARES_TYPE: dict[Scalar, Scalar] = {"uint8": "int32", "uint16": "int64"}
"""Holds every gx² + gy², times four."""
SUM_TYPE: dict[Scalar, Scalar] = {"uint8": "uint16", "uint16": "int32"}
"""Holds 256 times a sample, and half of 256 more, without its sign."""


class CannyArgument(IntEnum):
    """Places in the block of int64 that the functions are given; the names say what lies there."""

    IMAGE_ADDRESS = 0
    OUT_ADDRESS = 1
    STRIPS = 2
    """Units of work."""
    STRIP_ROWS = 3
    HEIGHT = 4
    WIDTH = 5
    BLOCKED_WIDTH = 6
    """The width rounded up to whole blocks."""
    LOW_CODE = 7
    """Codes greater than this are above the lower threshold; `HIGH_CODE` alike."""
    HIGH_CODE = 8
    SCRATCH_ADDRESS = 9
    SCRATCH_BYTES = 10
    """Of one worker."""
    SUMS_OFFSET = 11
    """In bytes, from the worker's scratch, which begins with the raw rows; the other offsets alike."""
    STAGED_OFFSET = 12
    RING_OFFSET = 13
    QUEUE_OFFSET = 14
    QUEUED_OFFSET = 15
    PLANE_BYTES = 16
    """Of one row of samples of one channel."""
    SUMS_BYTES = 17
    """Of the vertical sums of every other pixel of a row."""
    RING_BYTES = 18
    """Of the codes of every other pixel of a row."""
    SOURCE_ROWS_ADDRESS = 19
    """int32 of every row of the padded picture: its source row. Only where the picture is smoothed."""
    SOURCE_COLUMNS_ADDRESS = 20
    """int32 of the columns left of the picture, then of those right of it: their source columns."""
    WEAK_ADDRESS = 21
    """Bits of all edge pixels, weak or strong."""
    STRONG_ADDRESS = 22
    """Bits of those that are strong, or are connected to one as far as is known."""
    WORDS = 23
    """Words of a bit row, without those beside it."""
    STRIP_WORDS = 24
    """Words of all bit rows of a strip, and some to spare."""
    STATES_ADDRESS = 25
    """Of every strip its `StripState`, a cache line each."""
    RUN = 26
    """The number of this run, never 0: strips that have it are ready."""
    STREAMING = 27
    """Not 0: the output goes past the caches."""


class StripState(IntEnum):
    """int32 fields of a strip that threads tell each other by; see canny_edges.py."""

    READY = 0
    """The run in which its rows have been done."""
    STALE = 1
    """1 where a row beside it has changed, or may have, since it was looked at."""
    TAKEN = 2
    """1 while a thread lets it grow."""


STATE_FIELDS = CACHE_LINE_BYTES // INT32_BYTES


@dataclass(frozen=True)
class CannyShape:
    """What the code is written for; sizes and thresholds are arguments."""

    source: Scalar
    """uint8 or uint16."""
    channels: int
    """1 or 3."""
    l2: bool
    blur: int
    vector_bytes: int

    @property
    def block(self) -> int:
        """Pixels that are computed at once: a register of samples, as even and odd halves."""
        return self.vector_bytes // SCALAR_BYTES[self.source]

    @property
    def half(self) -> int:
        """Even or odd pixels of a block."""
        return self.block // PARITIES

    @property
    def gradient(self) -> Scalar:
        """The type of gx and gy."""
        return GRADIENT_TYPE[self.source]

    @property
    def code(self) -> Scalar:
        """The type of a pixel's code."""
        return SQUARES_TYPE[self.source] if self.l2 else self.gradient

    @property
    def reach(self) -> int:
        """Columns left and right of the picture that are read when a row is staged."""
        return max(1, self.blur // 2)


def make_sizes(shape: CannyShape, height: int, width: int, strip_rows: int) -> dict[CannyArgument, int]:
    """The lengths among the arguments, for a picture in strips of this many rows."""
    blocked = -(-width // shape.block) * shape.block
    words = -(-blocked // WORD_BITS)
    plane = _lines((blocked + 3 * shape.block) * SCALAR_BYTES[shape.source])
    every_other = blocked // PARITIES + 3 * shape.half
    sums = _lines(every_other * SCALAR_BYTES[SUM_TYPE[shape.source]])
    ring = _lines(every_other * SCALAR_BYTES[shape.code])
    strip_words = (strip_rows + 2) * (words + 2) + SPARE_WORDS
    sums_offset = plane * shape.channels * shape.blur
    staged_offset = sums_offset + (sums * PARITIES if shape.blur else 0)
    ring_offset = staged_offset + plane * shape.channels * KERNEL_SIZE
    queue_offset = ring_offset + ring * PARITIES * KERNEL_SIZE
    queued_offset = queue_offset + _lines(strip_words * INT32_BYTES)
    return {
        CannyArgument.STRIP_ROWS: strip_rows,
        CannyArgument.HEIGHT: height,
        CannyArgument.WIDTH: width,
        CannyArgument.BLOCKED_WIDTH: blocked,
        CannyArgument.SCRATCH_BYTES: queued_offset + _lines(strip_words),
        CannyArgument.SUMS_OFFSET: sums_offset,
        CannyArgument.STAGED_OFFSET: staged_offset,
        CannyArgument.RING_OFFSET: ring_offset,
        CannyArgument.QUEUE_OFFSET: queue_offset,
        CannyArgument.QUEUED_OFFSET: queued_offset,
        CannyArgument.PLANE_BYTES: plane,
        CannyArgument.SUMS_BYTES: sums,
        CannyArgument.RING_BYTES: ring,
        CannyArgument.WORDS: words,
        CannyArgument.STRIP_WORDS: strip_words,
    }


def _lines(size_bytes: int) -> int:
    """Whole cache lines."""
    return -(-size_bytes // CACHE_LINE_BYTES) * CACHE_LINE_BYTES


class CannyUnit(Unit):
    """One function over (arguments, worker, ...) while it is written: rows and bits by their addresses."""

    def __init__(self, module: ir.Module, name: str, shape: CannyShape, more: int) -> None:
        super().__init__(module, name, more)
        self.shape = shape
        # Read once at the start: no pass moves a load out of a loop.
        self._known = {argument: self.words[int(argument)] for argument in CannyArgument}
        scratch = self.worker * self[CannyArgument.SCRATCH_BYTES]
        self.scratch = self.at(CannyArgument.SCRATCH_ADDRESS).at(scratch)

    def __getitem__(self, name: IntEnum) -> Value:
        """The argument of that name."""
        return self._known[CannyArgument(name)]

    # --- rows -----------------------------------------------------------------------------------------------------

    def raw_plane(self, slot: Value, channel: int) -> Array:
        """A channel in a slot of `raw`, from pixel 0 on."""
        return self._plane(self.int64(0), slot, channel)

    def staged_plane(self, slot: Value, channel: int) -> Array:
        """A channel in a slot of `staged`, from pixel 0 on."""
        return self._plane(self[CannyArgument.STAGED_OFFSET], slot, channel)

    def _plane(self, section: Value, slot: Value, channel: int) -> Array:
        number = slot * self.shape.channels + channel
        start = self.scratch.at(section + number * self[CannyArgument.PLANE_BYTES])
        return start.at(self.shape.block * SCALAR_BYTES[self.shape.source]).of(self.shape.source)

    def sums(self) -> list[Array]:
        """The vertical sums from pixel 0 on, and from pixel 1."""
        kind = SUM_TYPE[self.shape.source]
        start = self.scratch.at(self[CannyArgument.SUMS_OFFSET])
        parts = [self[CannyArgument.SUMS_BYTES] * parity for parity in range(PARITIES)]
        return [start.at(part).at(self.shape.half * SCALAR_BYTES[kind]).of(kind) for part in parts]

    def codes(self, row: Value) -> list[Array]:
        """The codes of a row from pixel 0 on, and from pixel 1; -1 is the row above the picture."""
        slot, kind = (row + KERNEL_SIZE) % KERNEL_SIZE, self.shape.code
        start = self.scratch.at(self[CannyArgument.RING_OFFSET])
        numbers = [slot * PARITIES + parity for parity in range(PARITIES)]
        parts = [self[CannyArgument.RING_BYTES] * number for number in numbers]
        return [start.at(part).at(self.shape.half * SCALAR_BYTES[kind]).of(kind) for part in parts]

    # --- bits -----------------------------------------------------------------------------------------------------

    def pitch(self) -> Value:
        """Words from one bit row to the next."""
        return self[CannyArgument.WORDS] + 2

    def strip_bits(self, bits: CannyArgument, strip: Value) -> Array:
        """A strip's bits from its bit row 0 on."""
        return self.at(bits, "int64").at(strip * self[CannyArgument.STRIP_WORDS])

    def rows_of(self, strip: Value) -> tuple[Value, Value]:
        """The first row of a strip, and how many it has."""
        start = strip * self[CannyArgument.STRIP_ROWS]
        return start, self[CannyArgument.STRIP_ROWS].min(self[CannyArgument.HEIGHT] - start)

    def state(self, field: StripState, strip: Value) -> Array:
        """A field of a strip's state, which threads read and write by shared accesses."""
        return self.at(CannyArgument.STATES_ADDRESS, "int32").at(strip * STATE_FIELDS + int(field))

    def is_ready(self, strip: Value) -> Value:
        """Whether the strip's rows have been done in this run."""
        run = self[CannyArgument.RUN].narrow("int32")
        return self.state(StripState.READY, strip).load_shared().equals(run)
