"""What the code of Canny and its plan agree on: arguments, scratch of a worker, and the bits of a strip.

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

from edgeconv.core.canny import CannySettings
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.hardware.cpu.caches import CACHE_LINE_BYTES
from edgeconv.hardware.cpu.emit import SCALAR_BYTES, Scalar

WORD_BITS = 64
WORD_BYTES = 8
SPARE_WORDS = 8
PARITIES = 2
"""Even and odd pixels of a row."""
INT32_BYTES = 4

GRADIENT_TYPE: dict[Scalar, Scalar] = {"u8": "i16", "u16": "i32"}
"""Holds every response and every |gx| + |gy| of a sample type, times four."""
SQUARES_TYPE: dict[Scalar, Scalar] = {"u8": "i32", "u16": "i64"}
"""Holds every gx² + gy², times four."""
SUM_TYPE: dict[Scalar, Scalar] = {"u8": "u16", "u16": "i32"}
"""Holds 256 times a sample, and half of 256 more, without its sign."""


class CannyArgument(IntEnum):
    """Places in the block of int64 that the functions are given; the names say what lies there."""

    IMAGE_ADDRESS = 0
    OUT_ADDRESS = 1
    STRIPS = 2
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
    """int32 fields of a strip that threads tell each other by; see canny_code.py."""

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
    """u8 or u16."""
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


@dataclass(frozen=True)
class CannySizes:
    """Lengths in memory for one size of picture, in bytes unless the name says otherwise."""

    blocked_width: int
    words: int
    plane: int
    sums: int
    ring: int
    sums_offset: int
    staged_offset: int
    ring_offset: int
    queue_offset: int
    queued_offset: int
    scratch: int
    strip_words: int
    bits: int
    """Of all bit rows of `weak`, or of `strong`."""


def make_shape(source: Scalar, channels: int, settings: CannySettings, vector_bytes: int) -> CannyShape:
    """The shape of the code for pictures of a sample type and so many channels."""
    return CannyShape(source, channels, settings.l2, settings.blur, vector_bytes)


def make_sizes(shape: CannyShape, height: int, width: int, strip_rows: int) -> CannySizes:
    """Lengths for a picture in strips of so many rows."""
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
    strips = -(-height // strip_rows)
    return CannySizes(
        blocked_width=blocked,
        words=words,
        plane=plane,
        sums=sums,
        ring=ring,
        sums_offset=sums_offset,
        staged_offset=staged_offset,
        ring_offset=ring_offset,
        queue_offset=queue_offset,
        queued_offset=queued_offset,
        scratch=queued_offset + _lines(strip_words),
        strip_words=strip_words,
        bits=strips * strip_words * WORD_BYTES,
    )


def _lines(size_bytes: int) -> int:
    """Whole cache lines."""
    return -(-size_bytes // CACHE_LINE_BYTES) * CACHE_LINE_BYTES
