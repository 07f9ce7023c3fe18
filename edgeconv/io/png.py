"""PNG encoding for pictures that are written once and soon read again: about seven times OpenCV's speed.

    uint8 or uint16, HWC with 3 channels in RGB order, or 1; or HW     →     pieces of a PNG file

The rows are split into bands that are compressed in parallel, each as a separate IDAT chunk; together they form
one valid zlib stream (every band but the last ends on a byte, and the Adler-32 sums are combined). Bands depend
only on the picture's size, so the file does not depend on the number of threads.

One row filter serves the whole picture: the one whose bytes have the least entropy on a sample of rows. Edge
pictures mostly take none, photographs a difference. (libpng's rule of thumb, the least sum of absolute
differences, took the wrong one for noisy edge pictures: 49 MB in place of 45.)

At level 1, large pictures whose sample has no repetitions worth looking for are packed by Huffman codes alone
(huffman.py), a third of the time of deflate for a file of the same size. Otherwise deflate is ISA-L's at levels 1
and 2 where the package `isal` is installed, else Python's own zlib: eight times as slow at level 1, and from level 3
on smaller than ISA-L can.
PNG: ISO/IEC 15948; zlib stream: RFC 1950.
"""

from __future__ import annotations

import struct
import zlib
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.geometry import bands
from edgeconv.hardware.pool import run_pieces, threads_for
from edgeconv.io.formats.png import SIGNATURE, adler32, crc32
from edgeconv.io.huffman import Code, can_pack, deflated

try:
    from isal import isal_zlib as fast_zlib
except ImportError:  # no wheel for this platform
    fast_zlib = zlib  # type: ignore[misc]

COLOUR_TYPES = {1: 0, 3: 2}
"""Channels to PNG's code: grey, and RGB."""

LEVEL = 1
LEVELS = range(10)
"""0 stores, 1 is the fastest that compresses, 9 makes the smallest files."""
FAST_LEVELS = (1, 2)
"""ISA-L's; its level 3 took twice as long as its 2 for larger files, and its 0 still compresses."""
RAW_DEFLATE = -15
ZLIB_HEADER = b"\x78\x01"
"""Deflate with a 32 KiB window, fastest level."""
ADLER_MODULUS = 65521

BAND_BYTES = 2**20
"""Raw bytes of a band: much longer than the 32 KiB window that a new band starts without, and long for a call, as each
call gives back the interpreter lock and waits for it again."""
SAMPLED, TOGETHER = 8, 4
"""Places of the sample, and rows at each: what repeats from row to row is seen."""
LEAST_BYTES = 2**20
"""Of a picture that is packed by Huffman codes: fewer are compressed before the generated code is there."""
WORTH = 0.97
"""What repetitions must leave of the bytes to be looked for."""
UNLIKE = 1.2
"""A band that takes so much more than the sample did is not like it, and may be smaller by deflate."""

Rows = NDArray[np.uint8]
"""(rows, bytes per row)."""


def encode_png(pixels: NDArray[Any], threads: int | None = None, level: int = LEVEL) -> list[bytes]:
    """Encode a picture at a level of LEVELS; the pieces in order are the file.

    Raises ValueError for a shape or type that PNG cannot hold.
    """
    channels = pixels.shape[2] if pixels.ndim == 3 else 1
    if pixels.ndim not in (2, 3) or channels not in COLOUR_TYPES or pixels.size == 0:
        raise ValueError(f"a picture of shape {pixels.shape} is not HW, HW1 or HW3")
    if pixels.dtype not in (np.uint8, np.uint16):
        raise ValueError(f"PNG holds uint8 and uint16 samples, not {pixels.dtype}")
    height, width = pixels.shape[:2]
    upper_first = np.ascontiguousarray(pixels, dtype=pixels.dtype.newbyteorder(">"))
    raw = upper_first.reshape(height, -1).view(np.uint8)
    pixel_bytes = channels * pixels.dtype.itemsize
    filter_code, code = _choose(raw, pixel_bytes, level)

    cuts = list(bands(height, max(1, BAND_BYTES // raw.shape[1])))
    compressed: list[bytes] = [b""] * len(cuts)
    sums: list[int] = [1] * len(cuts)

    def compress(number: int, worker: int) -> None:
        compressed[number], sums[number] = _compress_band(
            raw, *cuts[number], filter_code, code, pixel_bytes, level, is_last=number == len(cuts) - 1
        )

    run_pieces(compress, len(cuts), threads_for(threads, raw.nbytes, len(cuts)))
    checksum = 1
    for (start, stop), band_sum in zip(cuts, sums, strict=True):
        checksum = join_adler32(checksum, band_sum, (stop - start) * (raw.shape[1] + 1))

    header = struct.pack(">IIBBBBB", width, height, pixels.dtype.itemsize * 8, COLOUR_TYPES[channels], 0, 0, 0)
    compressed[0] = ZLIB_HEADER + compressed[0]
    compressed[-1] += struct.pack(">I", checksum)
    pieces = [SIGNATURE, *_chunk(b"IHDR", header)]
    for band in compressed:
        pieces += _chunk(b"IDAT", band)
    return pieces + _chunk(b"IEND", b"")


def join_adler32(first: int, second: int, second_length: int) -> int:
    """Adler-32 of two byte strings put together, from the sums of each and the length of the second."""
    a1, b1, a2, b2 = first & 0xFFFF, first >> 16, second & 0xFFFF, second >> 16
    a = (a1 + a2 - 1) % ADLER_MODULUS
    b = (b1 + b2 + (a1 - 1) * second_length) % ADLER_MODULUS
    return b << 16 | a


def _chunk(kind: bytes, data: bytes) -> list[bytes]:
    checksum = crc32(data, crc32(kind))
    return [struct.pack(">I", len(data)) + kind, data, struct.pack(">I", checksum)]


def _compress_band(
    raw: Rows, start: int, stop: int, filter_code: int, code: Code | None, pixel_bytes: int, level: int, is_last: bool
) -> tuple[bytes, int]:
    """The deflated rows `start` to `stop` and the Adler-32 of what was deflated."""
    filtered = np.empty((stop - start, raw.shape[1] + 1), np.uint8)
    filtered[:, 0] = filter_code
    above = raw[start - 1 : stop - 1] if start else np.vstack((np.zeros_like(raw[:1]), raw[: stop - 1]))
    _filter(filter_code, raw[start:stop], above, pixel_bytes, filtered[:, 1:])
    if code is not None:
        packed = deflated(filtered, code, is_last)
        if len(packed) < UNLIKE * code.share * filtered.size:
            return packed, adler32(filtered)
    library = fast_zlib if level in FAST_LEVELS else zlib
    compressor = library.compressobj(level, library.DEFLATED, RAW_DEFLATE)
    end = library.Z_FINISH if is_last else library.Z_SYNC_FLUSH
    return compressor.compress(filtered) + compressor.flush(end), adler32(filtered)


NONE, SUB, UP = FILTERS = range(3)
"""PNG's codes of those that are used: the byte itself, its difference from that of the pixel to the left, or above."""


def _filter(code: int, rows: Rows, above: Rows, pixel_bytes: int, out: Rows) -> None:
    """What is stored instead of the bytes of rows, modulo 256."""
    if code == UP:
        np.subtract(rows, above, out=out)
        return
    out[...] = rows
    if code == SUB:
        out[:, pixel_bytes:] -= rows[:, :-pixel_bytes]


def _choose(raw: Rows, pixel_bytes: int, level: int) -> tuple[int, Code | None]:
    """The filter whose bytes have the least entropy on a sample of rows, and Huffman codes if they are enough."""
    places = np.arange(SAMPLED) * max(0, raw.shape[0] - TOGETHER) // (SAMPLED - 1)
    numbers = np.minimum(places[:, np.newaxis] + np.arange(TOGETHER), raw.shape[0] - 1).ravel()
    rows, above = raw[numbers], raw[numbers - 1]  # above the first row there is nothing, and here the last
    found = []
    for code in FILTERS:
        filtered = np.empty_like(rows)
        _filter(code, rows, above, pixel_bytes, filtered)
        counts = np.bincount(filtered.ravel(), minlength=256)
        shares = counts[counts > 0] / filtered.size
        found.append((-float((shares * np.log2(shares)).sum()), code, filtered, counts))
    _, best, filtered, counts = min(found, key=itemgetter(0))
    if level != LEVEL or raw.nbytes < LEAST_BYTES or not can_pack():
        return best, None
    codes = Code(counts)
    by_deflate = len(fast_zlib.compress(filtered, level, RAW_DEFLATE))
    return best, codes if by_deflate > WORTH * codes.share * filtered.size else None
