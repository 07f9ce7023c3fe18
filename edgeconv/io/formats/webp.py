"""WebP: the RIFF container's own length tells whether the file is whole. Source: RFC 9649.

Pillow, which could read the rest, refuses pictures above a limit of its own that is below the format's.
"""

from __future__ import annotations

import struct

from edgeconv.io.formats.base import BadPicture, Header, Sides, any_sides, require, too_many, unpack
from edgeconv.io.formats.tiff import EXIF_BYTES, orientation_of_exif

ALPHA_FLAG, ANIMATION_FLAG, LOSSLESS_ALPHA = 0x10, 0x02, 1 << 28
LOSSY_START, LOSSLESS_START = b"\x9d\x01\x2a", 0x2F
FIRST_CHUNK_BYTES = 18
"""Enough of any first chunk to tell the sides by."""
MOST_CHUNKS = 2**16
"""An animation has one for a frame."""


def read_header(data: bytes, sides: Sides = any_sides) -> Header:
    """Walk the chunks of a whole WebP file. Raises BadPicture."""
    needed = 8 + unpack(data, "<I", 4)[0]
    require(data, max(needed, 12 + FIRST_CHUNK_BYTES))
    width, height = _sides_of(data[12:16], data[20 : 12 + FIRST_CHUNK_BYTES])
    if not width or not height:
        raise BadPicture("it holds no picture")
    sides(width, height)
    chunks: dict[bytes, bytes] = {}
    position, number = 12, 0
    while position + 8 <= needed:
        number += 1
        if number > MOST_CHUNKS:
            raise too_many("chunks", MOST_CHUNKS)
        kind, length = struct.unpack_from("<4sI", data, position)
        if position + 8 + length > needed:
            raise BadPicture(f"chunk {kind.decode('latin-1')!r} is not complete")
        most = EXIF_BYTES if kind == b"EXIF" else FIRST_CHUNK_BYTES
        chunks.setdefault(kind, data[position + 8 : position + 8 + min(length, most)])
        position += 8 + length + length % 2
    flags = chunks.get(b"VP8X", b"\0")[0]
    return Header(
        width,
        height,
        bits=8,
        alpha=bool(flags & ALPHA_FLAG or int.from_bytes(chunks.get(b"VP8L", b"")[1:5], "little") & LOSSLESS_ALPHA),
        orientation=orientation_of_exif(chunks.get(b"EXIF", b"")),
        frames=2 if flags & ANIMATION_FLAG else 1,
        profile=b"ICCP" in chunks,
        file_bytes=needed,
    )


def _sides_of(kind: bytes, body: bytes) -> tuple[int, int]:
    """Width and height in the first ten bytes of the first chunk; zeros where it is another."""
    if kind == b"VP8X":
        return 1 + int.from_bytes(body[4:7], "little"), 1 + int.from_bytes(body[7:10], "little")
    if kind == b"VP8 " and body[3:6] == LOSSY_START:
        return int.from_bytes(body[6:8], "little") & 0x3FFF, int.from_bytes(body[8:10], "little") & 0x3FFF
    if kind == b"VP8L" and body[0] == LOSSLESS_START:
        packed = int.from_bytes(body[1:5], "little")
        return 1 + (packed & 0x3FFF), 1 + (packed >> 14 & 0x3FFF)
    return 0, 0
