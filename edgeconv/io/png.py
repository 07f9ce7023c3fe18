"""PNG encoding for pictures that are written once and soon read again: about eight times OpenCV's speed.

    uint8 or uint16, HWC with 3 channels in RGB order, or 1; or HW     →     a PNG file

The rows are split into bands that are compressed in parallel, each as a separate IDAT chunk; together they form one
valid zlib stream (every band ends on a byte, and the Adler-32 sums are combined). Bands depend only on the picture's
size, so the file does not depend on the number of threads. A thread takes many bands in a few long calls, as each call
gives back the interpreter lock and waits for it again.

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
from edgeconv.io.formats.png import SIGNATURE, crc32
from edgeconv.io.huffman import LAST, Code, can_pack, packed

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
LENGTH_BYTES, CHUNK_SUM_BYTES, CHUNK_BYTES = 4, 4, 12
"""Of a chunk: its length before its kind, its checksum behind it, and all around its content."""

BAND_BYTES, TOGETHER_BYTES = 2**20, 2**24
"""Raw bytes of a band, much longer than the 32 KiB window that a new band starts without, and most of what a thread
takes at once."""
SAMPLED, TOGETHER = 8, 2
"""Places of the sample, and rows at each: what repeats from row to row is seen."""
LEAST_BYTES = 2**20
"""Of a picture that is packed by Huffman codes: fewer are compressed before the generated code is there."""
WORTH = 0.97
"""What repetitions must leave of the bytes to be looked for."""
UNLIKE = 1.2
"""A picture that takes so much more than the sample did is not like it, and may be smaller by deflate."""

Rows = NDArray[np.uint8]
"""(rows, bytes per row)."""


def encode_png(pixels: NDArray[Any], threads: int | None = None, level: int = LEVEL) -> memoryview:
    """Encode a picture at a level of LEVELS: the bytes of the file.

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
    pieces, checksum = _compressed(raw, filter_code, code, pixel_bytes, level, threads)
    if code is not None and sum(map(len, pieces)) > UNLIKE * code.share * raw.nbytes:
        pieces, checksum = _compressed(raw, filter_code, None, pixel_bytes, level, threads)
    header = struct.pack(">IIBBBBB", width, height, pixels.dtype.itemsize * 8, COLOUR_TYPES[channels], 0, 0, 0)
    begin = SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", ZLIB_HEADER)
    end = _chunk(b"IDAT", LAST + struct.pack(">I", checksum)) + _chunk(b"IEND", b"")
    return np.concatenate([np.frombuffer(piece, np.uint8) for piece in (begin, *pieces, end)]).data


def join_adler32(first: int, second: int, second_length: int) -> int:
    """Adler-32 of two byte strings put together, from the sums of each and the length of the second."""
    a1, b1, a2, b2 = first & 0xFFFF, first >> 16, second & 0xFFFF, second >> 16
    a = (a1 + a2 - 1) % ADLER_MODULUS
    b = (b1 + b2 + (a1 - 1) * second_length) % ADLER_MODULUS
    return b << 16 | a


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", crc32(content, crc32(kind)))


def _compressed(
    raw: Rows, filter_code: int, code: Code | None, pixel_bytes: int, level: int, threads: int | None
) -> tuple[list[bytes | memoryview], int]:
    """Chunks of all bands, and the Adler-32 of what they hold."""
    row_bytes = raw.shape[1] + 1
    band_rows = max(1, BAND_BYTES // row_bytes)
    count = -(-raw.shape[0] // band_rows)
    workers = threads_for(threads, raw.nbytes, count)
    bands_each = max(1, min(TOGETHER_BYTES // BAND_BYTES, -(-count // workers)))
    cuts = list(bands(raw.shape[0], bands_each * band_rows))
    pieces: list[bytes | memoryview] = [b""] * len(cuts)
    sums: list[int] = [1] * len(cuts)

    def compress(number: int, worker: int) -> None:
        start, stop = cuts[number]
        filtered = _filtered(raw[start:stop], raw[max(0, start - 1) : stop - 1], filter_code, pixel_bytes).ravel()
        sums[number] = fast_zlib.adler32(filtered)
        band_bytes = band_rows * row_bytes
        pieces[number] = _deflated(filtered, band_bytes, level) if code is None else _packed(filtered, band_bytes, code)

    run_pieces(compress, len(cuts), workers)
    checksum = 1
    for (start, stop), checksum_of_rows in zip(cuts, sums, strict=True):
        checksum = join_adler32(checksum, checksum_of_rows, (stop - start) * row_bytes)
    return pieces, checksum


def _packed(filtered: NDArray[np.uint8], band_bytes: int, code: Code) -> memoryview:
    """Chunks of bands by Huffman codes alone: what a chunk has around its content stands in gaps."""
    target, ends = packed(filtered, band_bytes, CHUNK_BYTES, code)
    view, start = target.data, 0
    for end in ends:
        struct.pack_into(">I4s", view, start + CHUNK_SUM_BYTES, end - start - CHUNK_BYTES, b"IDAT")
        struct.pack_into(">I", view, end, crc32(view[start + CHUNK_SUM_BYTES + LENGTH_BYTES : end]))
        start = end
    return view[CHUNK_SUM_BYTES : ends[-1] + CHUNK_SUM_BYTES]


def _deflated(filtered: NDArray[np.uint8], band_bytes: int, level: int) -> bytes:
    """Chunks of bands by deflate, which end on a byte."""
    library = fast_zlib if level in FAST_LEVELS else zlib
    chunks = []
    for start in range(0, filtered.size, band_bytes):
        compressor = library.compressobj(level, library.DEFLATED, RAW_DEFLATE)
        content = compressor.compress(filtered[start : start + band_bytes]) + compressor.flush(library.Z_SYNC_FLUSH)
        chunks.append(_chunk(b"IDAT", content))
    return b"".join(chunks)


NONE, SUB, UP = FILTERS = range(3)
"""PNG's codes of those that are used: the byte itself, its difference from that of the pixel to the left, or above."""


def _filtered(rows: Rows, above: Rows, code: int, pixel_bytes: int) -> Rows:
    """The filter's code and what is stored instead of the bytes, modulo 256, of rows.

    Where `above` has a row less, there is nothing above the first one.
    """
    filtered = np.empty((rows.shape[0], 1 + rows.shape[1]), np.uint8)
    filtered[:, 0], out = code, filtered[:, 1:]
    if code == UP:
        lacking = len(rows) - len(above)
        out[:lacking] = rows[:lacking]
        np.subtract(rows[lacking:], above, out=out[lacking:])
        return filtered
    out[...] = rows
    if code == SUB:
        out[:, pixel_bytes:] -= rows[:, :-pixel_bytes]
    return filtered


def _choose(raw: Rows, pixel_bytes: int, level: int) -> tuple[int, Code | None]:
    """The filter whose bytes have the least entropy on a sample of rows, and Huffman codes if they are enough."""
    places = np.arange(SAMPLED) * max(0, raw.shape[0] - TOGETHER) // (SAMPLED - 1)
    numbers = np.minimum(places[:, np.newaxis] + np.arange(TOGETHER), raw.shape[0] - 1).ravel()
    rows, above = raw[numbers], raw[numbers - 1]  # above the first row there is nothing, and here the last
    found = []
    for code in FILTERS:
        filtered = _filtered(rows, above, code, pixel_bytes)
        counts = np.bincount(filtered[::TOGETHER].ravel(), minlength=256)
        shares = counts[counts > 0] / counts.sum()
        found.append((-float((shares * np.log2(shares)).sum()), code, filtered, counts))
    _, best, filtered, counts = min(found, key=itemgetter(0))
    if level != LEVEL or raw.nbytes < LEAST_BYTES or not can_pack():
        return best, None
    codes = Code(counts)
    by_deflate = len(fast_zlib.compress(filtered, level, RAW_DEFLATE))
    return best, codes if by_deflate > WORTH * codes.share * filtered.size else None
