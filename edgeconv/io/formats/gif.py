"""GIF: the blocks up to what follows the first frame tell whether that is whole. Source: GIF89a.

The first frame is read, by Pillow: OpenCV's decoder leaves what is missing of a frame black and says nothing. Of an
animation nothing behind the first frame is looked at. The format states no lengths, so that what is read is bounded by
what a frame of that size can take.
"""

from __future__ import annotations

import struct

from edgeconv.io.formats.base import BadPicture, Header, cut_short
from edgeconv.io.formats.byte_source import ByteSource

SIGNATURES = (b"GIF87a", b"GIF89a")
SCREEN_BYTES = 13
"""Signature and logical screen descriptor."""
EXTENSION, IMAGE, TRAILER = 0x21, 0x2C, 0x3B
GRAPHIC_CONTROL = 0xF9
TABLE_FLAG, TABLE_BITS, TRANSPARENT_FLAG = 0x80, 0x07, 0x01
IMAGE_BYTES = 10
MOST_BYTES_PER_PIXEL = 3
"""A code of 12 bits, and one before it that clears the table."""
MOST_OTHER_BYTES = 2**21
"""Of comments, profiles and metadata."""


def read_header(feed: ByteSource) -> Header:
    """Walk the blocks of a GIF file up to its trailer, or to its second frame. Raises BadPicture."""
    width, height, flags, _, _ = feed.unpack("<HHBBB", 6)
    feed.sides(width, height)
    position = SCREEN_BYTES + _table_bytes(flags)
    most_bytes = position + MOST_OTHER_BYTES
    frames, alpha = 0, False
    while (kind := _byte(feed, position)) != TRAILER:
        if kind == EXTENSION:
            if _byte(feed, position + 1) == GRAPHIC_CONTROL and frames == 0:
                alpha = bool(_byte(feed, position + 3) & TRANSPARENT_FLAG)
            position += 2
        elif kind == IMAGE:
            frames += 1
            if frames > 1:
                break
            _byte(feed, position + IMAGE_BYTES)
            left, top, wide, high, flags = struct.unpack_from("<HHHHB", feed.data, position + 1)
            if left + wide > width or top + high > height or not wide or not high:
                raise BadPicture("its first frame does not lie inside the picture")
            position += IMAGE_BYTES + _table_bytes(flags) + 1  # one byte says how wide codes begin
            most_bytes = position + MOST_BYTES_PER_PIXEL * wide * high + MOST_OTHER_BYTES
        else:
            raise BadPicture(f"there is no block at byte {position}")
        while length := _byte(feed, position):
            position += 1 + length
            if position > most_bytes:
                raise BadPicture("its blocks take more bytes than any program writes")
        position += 1
    if not frames:
        raise BadPicture("it holds no picture")
    stop = position + 1
    return Header(width=width, height=height, bits=8, alpha=alpha, frames=frames, file_bytes=stop, decoder="pillow")


def _byte(feed: ByteSource, position: int) -> int:
    if position >= len(feed.data) and not feed.need(position + 1):
        raise cut_short("no trailer")
    return feed.data[position]


def _table_bytes(flags: int) -> int:
    return 3 * (2 << (flags & TABLE_BITS)) if flags & TABLE_FLAG else 0
