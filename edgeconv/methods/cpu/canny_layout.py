"""What the code of Canny and its plan agree on: arguments, scratch of a worker, bits of a strip, and their addresses.

A strip is a unit of work: `STRIP_ROWS` rows of the picture. A worker's scratch holds the rows under way, each of
`ROW_BYTES` with a register to spare at both ends: samples, or twice as long numbers of every other pixel. (Codes of
squares are twice as long again, and take two rows.)

    raw      the last `blur` rows of the picture, a plane for each channel; only where the picture is smoothed
    sums     one row of vertical sums of the smoothing, even and odd pixels apart
    staged   the last three (smoothed) rows, a plane for each channel
    codes    those (canny_rows.py) of the last three rows, even and odd pixels apart
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
from itertools import accumulate

from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.hardware.cpu.caches import CACHE_LINE_BYTES
from edgeconv.hardware.cpu.processor import SCALAR_BYTES, Scalar

WORD_BITS = 64
WORD_BYTES = SCALAR_BYTES["int64"]
SPARE_WORDS = 8
PARITIES = 2
"""Even and odd pixels of a row."""
INT32_BYTES = SCALAR_BYTES["int32"]
SECTOR_BITS = 2
SECTOR_MASK = 2**SECTOR_BITS - 1

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
    ROW_BYTES = 11
    """Of one row of it."""
    SOURCE_ROWS_ADDRESS = 12
    """int32 of every row of the padded picture: its source row. Only where the picture is smoothed."""
    SOURCE_COLUMNS_ADDRESS = 13
    """int32 of the columns left of the picture, then of those right of it: their source columns."""
    WEAK_ADDRESS = 14
    """Bits of all edge pixels, weak or strong."""
    STRONG_ADDRESS = 15
    """Bits of those that are strong, or are connected to one as far as is known."""
    WORDS = 16
    """Words of a bit row, without those beside it."""
    STRIP_WORDS = 17
    """Words of all bit rows of a strip, and some to spare."""
    STATES_ADDRESS = 18
    """Of every strip its `StripState`, a cache line each."""
    RUN = 19
    """The number of this run, never 0: strips that have it are ready."""
    STREAMING = 20
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

    @property
    def code_rows(self) -> int:
        """Rows of the scratch that the codes of every other pixel take."""
        return SCALAR_BYTES[self.code] // SCALAR_BYTES[self.gradient]

    @property
    def first_rows(self) -> tuple[int, ...]:
        """Rows of the scratch at which `sums`, `staged`, `codes` and `queue` begin."""
        raw, sums = self.blur * self.channels, PARITIES if self.blur else 0
        return tuple(accumulate((raw, sums, KERNEL_SIZE * self.channels, KERNEL_SIZE * PARITIES * self.code_rows)))


def make_sizes(shape: CannyShape, height: int, width: int, strip_rows: int) -> dict[CannyArgument, int]:
    """The lengths among the arguments, for a picture in strips of this many rows."""
    blocks = -(-width // shape.block)
    words = -(-blocks * shape.block // WORD_BITS)
    row_bytes = _lines((blocks + 3) * shape.vector_bytes)
    strip_words = (strip_rows + 2) * (words + 2) + SPARE_WORDS
    return {
        CannyArgument.STRIP_ROWS: strip_rows,
        CannyArgument.HEIGHT: height,
        CannyArgument.WIDTH: width,
        CannyArgument.BLOCKED_WIDTH: blocks * shape.block,
        CannyArgument.SCRATCH_BYTES: shape.first_rows[-1] * row_bytes + _lines(strip_words * (INT32_BYTES + 1)),
        CannyArgument.ROW_BYTES: row_bytes,
        CannyArgument.WORDS: words,
        CannyArgument.STRIP_WORDS: strip_words,
    }


def _lines(size_bytes: int) -> int:
    """Whole cache lines."""
    return -(-size_bytes // CACHE_LINE_BYTES) * CACHE_LINE_BYTES
