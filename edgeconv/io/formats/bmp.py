"""BMP: the header gives the place and the size of the pixels. Source: Microsoft, BITMAPINFOHEADER and later."""

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
UNCOMPRESSED = (0, 3, 6)
"""BI_RGB, BI_BITFIELDS and BI_ALPHABITFIELDS: rows lie as they are, each filled up to four bytes."""


def read_header(feed: ByteSource) -> Header:
    """Read the headers of a whole BMP file. Raises BadPicture."""
    feed.need(HEADER_BYTES)
    data = feed.data
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
        raise cut_short(f"{len(data):,} of {needed:,} bytes are there")
    stop = needed
    if compression not in UNCOMPRESSED:  # what it says of its length is no more than a hint
        stop = max(needed, start + RUN_BYTES * (width + 1) * (height + 1))
        feed.need(stop)
    return Header(width=width, height=height, bits=8, alpha=bits == 32, file_bytes=stop)
