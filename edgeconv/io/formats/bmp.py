"""BMP: the header gives the place and the size of the pixels. Source: Microsoft, BITMAPINFOHEADER and later.

It has no grey but a palette of greys, so a picture whose palette holds nothing else is grey.
"""

from __future__ import annotations

import struct

from edgeconv.io.formats.base import BadPicture, Header, cut_short
from edgeconv.io.formats.byte_source import ByteSource

HEADER_BYTES = 38
"""File header and BITMAPINFOHEADER as far as they are read."""
OLD_HEADER_BYTES = 12
"""BITMAPCOREHEADER, with 16-bit sides; every later header has 32-bit sides."""
BITS = (1, 4, 8, 16, 24, 32)
RUN_BYTES = 2
"""A run of one pixel, an end of a row and the end of the picture take as much each."""
FILE_HEADER_BYTES, ENTRY_BYTES, OLD_ENTRY_BYTES = 14, 4, 3
"""Of a palette's entry: blue, green, red, and in all but the old header a byte that means nothing."""
UNCOMPRESSED = (0, 3, 6)
"""BI_RGB, BI_BITFIELDS and BI_ALPHABITFIELDS: rows lie as they are, each filled up to four bytes."""


def read_header(feed: ByteSource) -> Header:
    """Read the headers of a whole BMP file. Raises BadPicture."""
    data = feed.part(0, HEADER_BYTES)
    try:
        start, header_bytes = struct.unpack_from("<II", data, 10)
        if header_bytes == OLD_HEADER_BYTES:
            width, height, _, bits = struct.unpack_from("<HHHH", data, 18)
            compression, stored = 0, 0
        else:
            width, height, _, bits, compression, stored = struct.unpack_from("<iiHHII", data, 18)
    except struct.error:
        raise cut_short(f"{len(data)} bytes") from None
    height = abs(height)  # negative for rows from the top down
    if bits not in BITS or width < 1 or height < 1:
        raise BadPicture("its header is not a BMP header")
    feed.sides(width, height)
    row_bytes = (width * bits + 31) // 32 * 4
    needed = start + (row_bytes * height if compression in UNCOMPRESSED else stored)
    if not feed.need(needed):
        raise cut_short(f"{len(feed.data):,} of {needed:,} bytes are there")
    stop = needed
    if compression not in UNCOMPRESSED:  # what it says of its length is no more than a hint
        stop = max(needed, start + RUN_BYTES * (width + 1) * (height + 1))
        feed.need(stop)
    grey = _has_palette_of_greys(feed.data, start, header_bytes, bits)
    return Header(width=width, height=height, bits=8, grey=grey, alpha=bits == 32, file_bytes=stop)


def _has_palette_of_greys(data: bytes | bytearray, start: int, header_bytes: int, bits: int) -> bool:
    """Whether each entry of the palette, which lies between header and pixels, is a grey."""
    if bits > 8:
        return False
    entry_bytes = OLD_ENTRY_BYTES if header_bytes == OLD_HEADER_BYTES else ENTRY_BYTES
    first = FILE_HEADER_BYTES + header_bytes
    stop = min(start, first + entry_bytes * 2**bits)
    blue, green, red = (bytes(data[first + colour : stop : entry_bytes]) for colour in range(3))
    return bool(red) and blue == green == red
