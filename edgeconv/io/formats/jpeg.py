"""JPEG: the segments are parsed up to the end-of-image marker, because decoders fill a missing end with grey.

Only the main picture's own segments are parsed: a thumbnail lies inside an APP1 segment and is skipped, and data after
the end marker is ignored. Where the file has restart markers, as many cameras write them, every scan must have all of
them in order. Other damage inside compressed data is not detected here: that takes decoding, and libjpeg replaces what
is missing. Parsing takes one pass, and files of more segments or scans than any encoder writes are refused: a decoder
processes the whole picture for each scan.
Source: ITU-T T.81, annexes A and B.
"""

from __future__ import annotations

import re
import struct

import numpy as np

from edgeconv.io.formats.base import BadPicture, Header, Sides, any_sides, cut_short, too_many, unpack
from edgeconv.io.formats.tiff import orientation_of_exif

SIGNATURE = b"\xff\xd8\xff"
MARKER, START_OF_SCAN, END_OF_IMAGE, RESTART_INTERVAL = 0xFF, 0xDA, 0xD9, 0xDD
APP1, APP2, APP14 = 0xE1, 0xE2, 0xEE
RESTART_FIRST, RESTART_LAST = 0xD0, 0xD7
"""These and 0x00 may follow an 0xFF inside compressed data, and another 0xFF, which fills up before a marker."""
FILL = re.compile(rb"\xff+")
"""Begins a marker; all but its last byte fill up."""
MOST_SEGMENTS = 2**14
"""A colour profile has at most 255, and a gigabyte of other data beside a picture as many as this."""
MOST_SCANS = 100
"""Progressive files of usual encoders have about ten."""
RESTARTS = 8
"""Restart markers are counted from 0 to 7 and again from 0."""
ALONE = (0x01, *range(RESTART_FIRST, RESTART_LAST + 1), 0xD8)
"""Markers with no segment behind them: TEM, RST0 to RST7, SOI."""
FRAMES = tuple(marker for marker in range(0xC0, 0xD0) if marker not in (0xC4, 0xC8, 0xCC))
"""Start-of-frame markers; C4, C8 and CC are tables and a reserved code."""
DCT_FRAMES = (0xC0, 0xC1, 0xC2)
"""Frames of 8×8 blocks in Huffman code: baseline, extended and progressive."""
BLOCK = 8
KIND_BYTES = 12
"""Of a segment: they tell whose it is, and of Adobe's all that is needed."""
EXIF = b"Exif\x00\x00"
PROFILE = b"ICC_PROFILE\x00"
ADOBE = b"Adobe"
ADOBE_TRANSFORM, YCBCR = 11, 1
"""Offset of the colour transform in Adobe's segment, and its code for YCbCr (0: none)."""
RGB_NAMES = b"RGB"
"""Names of components by which libjpeg knows colours that were not turned into YCbCr."""


def read_header(data: bytes, sides: Sides = any_sides) -> Header:
    """Parse the segments of a whole JPEG file and return its header. Raises BadPicture."""
    position, segments, scans = 2, 0, 0
    frame: tuple[int, int, int, int] | None = None
    orientation: int | None = None
    profile, as_they_come = False, False
    blocks_frame = b""
    interval = 0
    while True:
        position, marker = _next_marker(data, position)
        if marker == END_OF_IMAGE:
            break
        segments += 1
        if segments > MOST_SEGMENTS:
            raise too_many("segments", MOST_SEGMENTS)
        if marker in ALONE:
            continue
        (length,) = unpack(data, ">H", position, "a segment is not complete")
        start, stop = position + 2, position + length
        if length < 2 or stop > len(data):
            raise cut_short("a segment is not complete")
        kind = data[start : min(stop, start + KIND_BYTES)]
        if marker in FRAMES and length >= 8:
            frame = struct.unpack_from(">BHHB", kind)
            sides(frame[2], frame[1])
            blocks_frame = data[start:stop] if marker in DCT_FRAMES else b""
            as_they_come |= blocks_frame[6:15:3] == RGB_NAMES
        elif marker == RESTART_INTERVAL and length >= 4:
            (interval,) = struct.unpack_from(">H", kind)
        elif marker == APP1 and orientation is None and kind.startswith(EXIF):
            orientation = orientation_of_exif(data[start:stop])
        elif marker == APP2 and kind.startswith(PROFILE):
            profile = True
        elif marker == APP14 and kind.startswith(ADOBE) and len(kind) > ADOBE_TRANSFORM:
            as_they_come |= kind[ADOBE_TRANSFORM] != YCBCR
        if marker == START_OF_SCAN:
            scans += 1
            if scans > MOST_SCANS:
                raise too_many("scans", MOST_SCANS)
            if frame is None:
                break
            position = _end_of_scan(data, stop)
            if interval and blocks_frame:
                expected = max(0, -(-_units(blocks_frame, data[start:stop]) // interval) - 1)
                _check_restarts(data[stop:position], expected)
        else:
            position = stop
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
        orientation=orientation or 1,
        profile=profile,
        colours="CMYK" if components == 4 else "RGB",
        decoder="pillow" if components == 4 else "opencv",
        gpu_jpeg=bool(blocks_frame) and (components == 1 or (components == 3 and not as_they_come)),
    )


def _next_marker(data: bytes, position: int) -> tuple[int, int]:
    """The place behind the marker at `position`, which fill bytes (0xFF) may precede, and its code."""
    fill = FILL.match(data, position)
    code = position if fill is None else fill.end()
    if code >= len(data):
        raise cut_short("no end-of-image marker")
    if fill is None or not data[code]:
        raise BadPicture(f"there is no marker at byte {position:,} where one must be")
    return code + 1, data[code]


def _end_of_scan(data: bytes, start: int) -> int:
    """The place of the first marker that is not part of compressed data. Raises BadPicture where there is none.

    NumPy looks, which gives back the interpreter lock: this is most of the time that a header takes.
    """
    codes = np.frombuffer(data, np.uint8)[start:]
    places = np.flatnonzero(codes[:-1] == MARKER)
    following = codes[places + 1]
    in_data = (following == 0) | (following == MARKER)
    ends = places[~(in_data | ((following >= RESTART_FIRST) & (following <= RESTART_LAST)))]
    if not len(ends):
        raise cut_short("no end-of-image marker")
    return start + int(ends[0])


def _check_restarts(data: bytes, expected: int) -> None:
    """Raise BadPicture where compressed data lacks one of its restart markers. More than needed do no harm."""
    codes = np.frombuffer(data, np.uint8)
    following = codes[1:][codes[:-1] == MARKER]
    restarts = following[(following >= RESTART_FIRST) & (following <= RESTART_LAST)]
    if len(restarts) < expected:
        raise BadPicture(
            f"its compressed data is damaged ({len(restarts):,} of {expected:,} restart markers are there)"
        )
    if (restarts[:expected] - RESTART_FIRST != np.arange(expected) % RESTARTS).any():
        raise BadPicture("its compressed data is damaged (its restart markers are out of order)")


def _units(frame: bytes, scan: bytes) -> int:
    """The units (MCUs) of a scan: groups of blocks of all its components, or the blocks of a single one (T.81, A.2)."""
    try:
        _, height, width, components = struct.unpack_from(">BHHB", frame)
        sampling = {frame[6 + 3 * index]: divmod(frame[7 + 3 * index], 16) for index in range(components)}
        most_across, most_down = (max(factors) for factors in zip(*sampling.values(), strict=True))
        chosen = [sampling[component] for component in scan[1 : 1 + 2 * scan[0] : 2]]
        across, down = chosen[0] if len(chosen) == 1 else (1, 1)
        columns = -(-width * across // most_across)
        rows = -(-height * down // most_down)
        units: int = -(-columns // BLOCK) * -(-rows // BLOCK)
    except (struct.error, IndexError, KeyError, ValueError, ZeroDivisionError):
        raise BadPicture("its scan does not fit its frame") from None
    return units
