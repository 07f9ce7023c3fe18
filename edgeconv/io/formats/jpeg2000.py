"""JPEG 2000 in JP2 files. Sources: ISO/IEC 15444-1, annexes A and I.

The lengths of boxes and tile-parts lead to the end marker, so that a file that is cut is found: OpenJPEG decodes what
is there of it and fills up the rest. Samples of 9 to 15 bits are stretched to 16.
"""

from __future__ import annotations

from edgeconv.io.formats.base import BadPicture, Header, Sides, any_sides, boxes, cut_short, require, too_many, unpack

FILE_SIGNATURE = b"\x00\x00\x00\x0cjP  \r\n\x87\n"
STREAM_SIGNATURE = b"\xff\x4f\xff\x51"
SOT, END = 0xFF90, 0xFFD9
SOT_BYTES = 12
SIZ_FORMAT = ">4s4x4I16xH"
"""Marker SOC and segment SIZ: signature, length and capabilities, picture area, tiles, and the number of components."""
MOST_PARTS = 2**21
"""65,535 tiles of a few parts each."""
YCC_COLOURS = 18
CONVERT = "convert it to PNG or TIFF"
SUPERBOX = b"jp2h"


def read_header(data: bytes, sides: Sides = any_sides) -> Header:
    """Find the codestream and walk it to its end. Raises BadPicture."""
    facts: dict[str, int] = {}
    for kind, start, stop in boxes(data, 0):
        if kind == b"jp2c":
            return _codestream(data, sides, start, stop, facts)
        if stop is None:
            break
        if kind == SUPERBOX:
            require(data, stop)
            for part, body, end in boxes(data, start, stop):
                if part == b"pclr":
                    facts["palette"] = 1
                elif part == b"colr" and end is not None and end - body >= 3:
                    (method,) = unpack(data, "B", body)
                    if method == 2:
                        facts["profile"] = 1
                    elif method == 1 and end - body >= 7:
                        facts.setdefault("space", unpack(data, ">I", body + 3)[0])
    raise BadPicture("it holds no picture")


def _codestream(data: bytes, sides: Sides, start: int, stop: int | None, facts: dict[str, int]) -> Header:
    """The header of the codestream at `start`, once all of it is there; `stop` is the end of its box, if stated."""
    begun, right, bottom, left, top, components = unpack(data, SIZ_FORMAT, start)
    if begun != STREAM_SIGNATURE:
        raise BadPicture("its codestream does not begin like one")
    width, height = right - left, bottom - top
    if components not in (1, 2, 3, 4):
        raise BadPicture(f"a picture of {components} components is not supported", CONVERT)
    kinds = {unpack(data, "3B", start + 42 + 3 * each) for each in range(components)}
    depth, across, down = min(kinds)
    bits = depth + 1
    if len(kinds) > 1 or (across, down) != (1, 1) or not 0 < bits <= 16:
        raise BadPicture("its layout (components of other sizes, signs or depths) is not supported", CONVERT)
    sides(max(0, width), max(0, height))
    end = _end_of(data, start)
    if stop is not None and end > stop:
        raise BadPicture("its codestream is longer than its box")
    whole = end if stop is None else stop
    require(data, whole)
    has_palette = bool(facts.get("palette"))
    return Header(
        width=width,
        height=height,
        bits=16 if bits > 8 and not has_palette else 8,
        grey=components < 3 and not has_palette,
        alpha=components in (2, 4),
        profile=bool(facts.get("profile")),
        colours="YCC" if facts.get("space") == YCC_COLOURS else "RGB",
        largest=None if has_palette else 2**bits - 1,
        file_bytes=whole,
    )


def _end_of(data: bytes, start: int) -> int:
    """The place behind the end marker, by the lengths of main header and tile-parts."""
    position, parts = start + 2, 0
    while (marker := _marker(data, position)) != SOT:
        if not 0xFF50 <= marker <= 0xFF7F:
            raise BadPicture(f"there is no marker at byte {position}")
        (length,) = unpack(data, ">H", position + 2)
        if length < 2:
            raise BadPicture("the length of a marker segment is wrong")
        position += 2 + length
    while (marker := _marker(data, position)) != END:
        parts += 1
        if parts > MOST_PARTS:
            raise too_many("tile-parts", MOST_PARTS)
        if marker != SOT:
            raise BadPicture(f"there is no tile-part at byte {position}")
        (length,) = unpack(data, ">I", position + 6, "a tile-part is not complete")
        if length == 0:  # up to the first end marker, wherever that is: no two bytes of packets are above FF8F
            found = data.find(b"\xff\xd9", position)
            if found < 0:
                raise cut_short("no end marker")
            return found + 2
        if length < SOT_BYTES:
            raise BadPicture("the length of a tile-part is wrong")
        position += length
    return position + 2


def _marker(data: bytes, position: int) -> int:
    return int(unpack(data, ">H", position, "no end marker")[0])
