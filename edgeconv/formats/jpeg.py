"""JPEG: the segments are walked up to the end-of-image marker, because decoders fill a missing end with grey.

Only the main picture's own segments are looked at: a thumbnail lies inside an APP1 segment and is stepped over,
and whatever follows the end marker is none of our business. Source: ITU-T T.81, annex B.
"""

from __future__ import annotations

import struct

import numpy as np

from edgeconv.formats.base import BadPicture, Header, cut_short
from edgeconv.formats.tiff import orientation_of_exif

SIGNATURE = b"\xff\xd8\xff"
MARKER, START_OF_SCAN, END_OF_IMAGE, APP1 = 0xFF, 0xDA, 0xD9, 0xE1
STUFFED, RESTART_FIRST, RESTART_LAST = 0x00, 0xD0, 0xD7
"""What may follow an 0xFF inside compressed data."""
ALONE = (0x01, *range(RESTART_FIRST, RESTART_LAST + 1), 0xD8)
"""Markers with no segment behind them: TEM, RST0 to RST7, SOI."""
FRAMES = tuple(marker for marker in range(0xC0, 0xD0) if marker not in (0xC4, 0xC8, 0xCC))
"""Start-of-frame markers; C4, C8 and CC are tables and a reserved code."""
EXIF = b"Exif\x00\x00"


def read_header(data: bytes) -> Header:
    """Walk the segments of a whole JPEG file and return what it says. Raises BadPicture."""
    position = 2
    frame: tuple[int, int, int, int] | None = None
    orientation = 1
    while True:
        position, marker = _next_marker(data, position)
        if marker == END_OF_IMAGE:
            break
        if marker in ALONE:
            continue
        if position + 2 > len(data):
            raise cut_short("a segment is not complete")
        (length,) = struct.unpack_from(">H", data, position)
        stop = position + length
        if length < 2 or stop > len(data):
            raise cut_short("a segment is not complete")
        if marker in FRAMES and length >= 8:
            frame = struct.unpack_from(">BHHB", data, position + 2)
        elif marker == APP1 and data.startswith(EXIF, position + 2):
            orientation = orientation_of_exif(data[position + 2 : stop])
        position = _end_of_scan(data, stop) if marker == START_OF_SCAN else stop
    if frame is None:
        raise BadPicture("it has no frame header")
    bits, height, width, components = frame
    if bits != 8:
        raise BadPicture(f"JPEG of {bits} bits is not supported", "convert it to a 16-bit PNG or TIFF")
    return Header(
        width=width,
        height=height,
        bits=bits,
        grey=components == 1,
        orientation=orientation,
        colours="CMYK" if components == 4 else "RGB",
    )


def _next_marker(data: bytes, position: int) -> tuple[int, int]:
    """The code of the marker at `position`, which fill bytes (0xFF) may precede, and the place behind it."""
    if position < len(data) and data[position] != MARKER:
        raise BadPicture(f"there is no marker at byte {position:,} where one must be")
    while position < len(data) and data[position] == MARKER:
        position += 1
    if position >= len(data):
        raise cut_short("no end-of-image marker")
    return position + 1, data[position]


def _end_of_scan(data: bytes, position: int) -> int:
    """Where the compressed data that starts at `position` ends: at the first marker that is not part of it."""
    codes = np.frombuffer(data, np.uint8, offset=position)
    places = np.flatnonzero(codes[:-1] == MARKER)
    following = codes[places + 1]
    in_scan = (following == STUFFED) | ((following >= RESTART_FIRST) & (following <= RESTART_LAST))
    markers = places[~in_scan]
    if not markers.size:
        raise cut_short("no end-of-image marker")
    return position + int(markers[0])
