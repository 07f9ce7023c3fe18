"""WebP: the RIFF container's own length tells whether the file is whole. Source: RFC 9649."""

from __future__ import annotations

import struct

from edgeconv.formats.base import BadPicture, Header, cut_short
from edgeconv.formats.tiff import orientation_of_exif

LOSSY_START = b"\x9d\x01\x2a"
LOSSLESS_START = 0x2F
ALPHA_FLAG, ANIMATION_FLAG = 0x10, 0x02


def read_header(data: bytes) -> Header:
    """Walk the chunks of a whole WebP file and return what it says. Raises BadPicture."""
    if len(data) < 12:
        raise cut_short(f"{len(data)} bytes")
    needed = 8 + struct.unpack_from("<I", data, 4)[0]
    if needed > len(data):
        raise cut_short(f"{len(data):,} of {needed:,} bytes are there")
    width = height = 0
    alpha, orientation, frames, profile = False, 1, 1, False
    position = 12
    while position + 8 <= needed:
        kind, length = struct.unpack_from("<4sI", data, position)
        body = data[position + 8 : position + 8 + min(length, 10)]
        if position + 8 + length > needed:
            raise cut_short(f"chunk {kind.decode('latin-1')!r} is not complete")
        if kind == b"VP8X" and len(body) == 10:
            alpha |= bool(body[0] & ALPHA_FLAG)
            frames = 2 if body[0] & ANIMATION_FLAG else 1
            width = 1 + int.from_bytes(body[4:7], "little")
            height = 1 + int.from_bytes(body[7:10], "little")
        elif kind == b"VP8 " and not width and len(body) == 10 and body[3:6] == LOSSY_START:
            width, height = (side & 0x3FFF for side in struct.unpack_from("<HH", body, 6))
        elif kind == b"VP8L" and len(body) >= 5 and body[0] == LOSSLESS_START:
            packed = int.from_bytes(body[1:5], "little")
            alpha |= bool(packed >> 28 & 1)
            if not width:
                width, height = 1 + (packed & 0x3FFF), 1 + (packed >> 14 & 0x3FFF)
        elif kind == b"ICCP":
            profile = True
        elif kind == b"EXIF":
            orientation = orientation_of_exif(data[position + 8 : position + 8 + length])
        position += 8 + length + length % 2
    if not width:
        raise BadPicture("it holds no picture")
    return Header(
        width=width, height=height, bits=8, alpha=alpha, orientation=orientation, frames=frames, profile=profile
    )
