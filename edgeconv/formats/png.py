"""PNG: every chunk is walked and its checksum compared, so that damage is found before libpng prints about it.

The walk costs about 1 % of the decoding. Source: PNG specification, third edition (W3C), sections 5 and 11.
"""

from __future__ import annotations

import os
import struct
import zlib
from typing import IO

from edgeconv.formats.base import BadPicture, Header, cut_short
from edgeconv.formats.tiff import orientation_of_exif

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Samples a pixel, by colour type: grey, RGB, palette, grey + alpha, RGB + alpha."""
GREY_TYPES = (0, 4)
ALPHA_TYPES = (4, 6)
LARGEST_DEFLATE_RATIO = 1032
"""Deflate cannot shrink by more: 258 bytes out of a 2-bit code (zlib technical notes)."""


def read_header(data: bytes) -> Header:
    """Check the chunks of a whole PNG file and return what it says. Raises BadPicture."""
    view = memoryview(data)
    position = len(SIGNATURE)
    width = height = bits = colour_type = 0
    stored = 0
    transparency, orientation, frames, profile = False, 1, 1, False
    ended = False
    while not ended:
        if position + 12 > len(data):
            raise cut_short("no IEND chunk at its end")
        length, kind = struct.unpack_from(">I4s", data, position)
        stop = position + 8 + length
        if stop + 4 > len(data):
            raise cut_short(f"chunk {kind.decode('latin-1')!r} is not complete")
        (checksum,) = struct.unpack_from(">I", data, stop)
        if zlib.crc32(view[position + 4 : stop]) != checksum:
            raise BadPicture(f"chunk {kind.decode('latin-1')!r} is damaged (its checksum is wrong)")
        body = view[position + 8 : stop]
        if kind == b"IHDR" and length >= 10:
            width, height, bits, colour_type = struct.unpack_from(">IIBB", body)
        elif kind == b"IDAT":
            stored += length
        elif kind == b"tRNS":
            transparency = True
        elif kind == b"iCCP":
            profile = True
        elif kind == b"eXIf":
            orientation = orientation_of_exif(bytes(body))
        elif kind == b"acTL" and length >= 4:
            (frames,) = struct.unpack_from(">I", body)
        ended = kind == b"IEND"
        position = stop + 4
    if colour_type not in CHANNELS or not bits:
        raise BadPicture("its header is not a PNG header")
    if width * height * CHANNELS[colour_type] * bits > 8 * LARGEST_DEFLATE_RATIO * stored:
        raise cut_short(f"{stored:,} bytes of pixel data cannot hold {width:,}×{height:,} pixels")
    return Header(
        width=width,
        height=height,
        bits=8 if colour_type == 3 else bits,
        grey=colour_type in GREY_TYPES,
        alpha=transparency or colour_type in ALPHA_TYPES,
        orientation=orientation,
        frames=max(1, frames),
        profile=profile,
    )


def check_end(stream: IO[bytes]) -> None:
    """Raise BadPicture where a file lacks its end, found by a step from chunk to chunk that reads none of them."""
    size = stream.seek(0, os.SEEK_END)
    position = len(SIGNATURE)
    kind = b""
    while kind != b"IEND":
        stream.seek(position)
        head = stream.read(8)
        if len(head) < 8:
            raise cut_short("no IEND chunk at its end")
        length, kind = struct.unpack(">I4s", head)
        position += 12 + length
        if position > size:
            raise cut_short(f"chunk {kind.decode('latin-1')!r} is not complete")
