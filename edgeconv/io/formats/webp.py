"""WebP: the RIFF container's own length tells whether the file is whole. Source: RFC 9649."""

from __future__ import annotations

import struct

from edgeconv.io.formats.base import BadPicture, Header, cut_short, too_many
from edgeconv.io.formats.byte_source import ByteSource
from edgeconv.io.formats.tiff import EXIF_BYTES, orientation_of_exif

LOSSY_START = b"\x9d\x01\x2a"
LOSSLESS_START = 0x2F
ALPHA_FLAG, ANIMATION_FLAG = 0x10, 0x02
FIRST_CHUNK_BYTES = 18
"""Enough of any first chunk to tell the sides by."""
MOST_CHUNKS = 2**16
"""An animation has one for a frame."""


def read_header(feed: ByteSource) -> Header:
    """Walk the chunks of a whole WebP file and return what it says. Raises BadPicture."""
    needed = 8 + feed.unpack("<I", 4)[0]
    stop = min(needed, 12 + FIRST_CHUNK_BYTES)
    first = feed.part(12, stop)
    if len(first) < stop - 12:
        raise cut_short(f"{feed.end():,} of {needed:,} bytes are there")
    width, height = _sides_of(first[:4], first[8:])
    if not width or not height:
        raise BadPicture("it holds no picture")
    feed.sides(width, height)
    if not feed.need(needed):
        raise cut_short(f"{len(feed.data):,} of {needed:,} bytes are there")
    data = feed.data
    alpha, frames, profile = False, 1, False
    orientation: int | None = None
    position, chunks = 12, 0
    while position + 8 <= needed:
        chunks += 1
        if chunks > MOST_CHUNKS:
            raise too_many("chunks", MOST_CHUNKS)
        kind, length = struct.unpack_from("<4sI", data, position)
        body = data[position + 8 : position + 8 + min(length, 10)]
        if position + 8 + length > needed:
            raise cut_short(f"chunk {kind.decode('latin-1')!r} is not complete")
        if kind == b"VP8X" and len(body) == 10:
            alpha |= bool(body[0] & ALPHA_FLAG)
            frames = 2 if body[0] & ANIMATION_FLAG else 1
        elif kind == b"VP8L" and len(body) >= 5 and body[0] == LOSSLESS_START:
            alpha |= bool(int.from_bytes(body[1:5], "little") >> 28 & 1)
        elif kind == b"ICCP":
            profile = True
        elif kind == b"EXIF" and orientation is None:
            orientation = orientation_of_exif(bytes(data[position + 8 : position + 8 + min(length, EXIF_BYTES)]))
        position += 8 + length + length % 2
    return Header(
        width=width,
        height=height,
        bits=8,
        alpha=alpha,
        orientation=orientation or 1,
        frames=frames,
        profile=profile,
        file_bytes=needed,
    )


def _sides_of(kind: bytes, body: bytes) -> tuple[int, int]:
    """Width and height in the first ten bytes of the first chunk; zeros where they are not there."""
    if kind == b"VP8X" and len(body) == 10:
        return 1 + int.from_bytes(body[4:7], "little"), 1 + int.from_bytes(body[7:10], "little")
    if kind == b"VP8 " and len(body) == 10 and body[3:6] == LOSSY_START:
        width, height = struct.unpack_from("<HH", body, 6)
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8L" and len(body) >= 5 and body[0] == LOSSLESS_START:
        packed = int.from_bytes(body[1:5], "little")
        return 1 + (packed & 0x3FFF), 1 + (packed >> 14 & 0x3FFF)
    return 0, 0
