"""AVIF: the item table says where the picture's bytes lie. Sources: AV1 Image File Format; ISO/IEC 14496-12, 23008-12.

Walked are the boxes that decide whether the file is whole and how large the picture is: `meta` with the places of its
items (`iloc`) and their properties (`ispe` sides, `av1C` depth, `irot` and `imir` orientation). Samples of 10 or 12
bits are stretched to 16. The bytes of the picture itself have no checksum.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from edgeconv.io.formats.base import BadPicture, Header, cut_short, too_many
from edgeconv.io.formats.byte_source import ByteSource

BRANDS = (b"avif", b"avis")
SIGNATURES = tuple(b"ftyp" + brand for brand in BRANDS)
MOST_BOXES = 2**16
NOT_COMPLETE = "it ends before its picture"
TURNED = {
    (0, None): 1,
    (0, 0): 4,
    (0, 1): 2,
    (1, None): 8,
    (1, 0): 5,
    (1, 1): 7,
    (2, None): 3,
    (2, 0): 2,
    (2, 1): 4,
    (3, None): 6,
    (3, 0): 7,
    (3, 1): 5,
}
"""EXIF orientation by `irot` (quarter turns anticlockwise), then `imir` (0: top and bottom change places, 1: sides)."""


def read_header(feed: ByteSource) -> Header:
    """Read the items of a whole AVIF file. Raises BadPicture."""
    position = 0
    for _ in range(MOST_BOXES):
        kind, start, stop = _top_level(feed, position)
        if kind == b"meta":
            break
        position = stop
    else:
        raise too_many("boxes", MOST_BOXES)
    if not feed.need(stop):
        raise cut_short(NOT_COMPLETE)
    boxes = _all_below(feed, start + 4, stop)
    sides = [feed.unpack(">II", place + 4) for place, end in boxes.get(b"ispe", []) if end - place >= 12]
    if not sides:
        raise BadPicture("it holds no picture")
    width, height = max(sides, key=lambda both: both[0] * both[1])  # beside those of alpha, thumbnails and cells
    feed.sides(width, height)
    needed = max((_end_of_items(feed.data, *place) for place in boxes.get(b"iloc", [])), default=0)
    while stop < needed:
        _, _, stop = _top_level(feed, stop)
    if not feed.need(stop):
        raise cut_short(f"{len(feed.data):,} of {stop:,} bytes are there")
    config = [feed.data[place + 2] for place, end in boxes.get(b"av1C", []) if end - place >= 4]
    if not config:
        raise BadPicture("it holds no picture")
    bits = 8 if not config[0] & 0x40 else 12 if config[0] & 0x20 else 10
    turns = [feed.data[place] & 3 for place, end in boxes.get(b"irot", []) if end > place]
    mirrors = [feed.data[place] & 1 for place, end in boxes.get(b"imir", []) if end > place]
    return Header(
        width=width,
        height=height,
        bits=8 if bits == 8 else 16,
        grey=bool(config[0] & 0x10),
        alpha=b"auxC" in boxes,
        orientation=TURNED[turns[0] if turns else 0, mirrors[0] if mirrors else None],
        frames=2 if bytes(feed.data[8:12]) == b"avis" else 1,
        profile=any(bytes(feed.data[place : place + 4]) in (b"prof", b"rICC") for place, _ in boxes.get(b"colr", [])),
        largest=2**bits - 1,
        rare_compression="AV1",
        file_bytes=stop,
    )


def _top_level(feed: ByteSource, position: int) -> tuple[bytes, int, int]:
    """Kind, start and end of the contents of the box at `position`, which need not be there yet."""
    length, kind = feed.unpack(">I4s", position, NOT_COMPLETE)
    start = position + 8
    if length == 1:
        length, start = feed.unpack(">Q", start, NOT_COMPLETE)[0], start + 8
    if length == 0 and kind == b"mdat":
        length = feed.end() - position
    if position + length < start:  # 0 too, but for the last box
        raise BadPicture("the length of a box is wrong")
    return kind, start, position + length


def _all_below(feed: ByteSource, start: int, stop: int) -> dict[bytes, list[tuple[int, int]]]:
    """Where the contents of each box inside `meta` begin and end, by kind; of those that hold boxes, their boxes."""
    found: dict[bytes, list[tuple[int, int]]] = {}
    waiting, boxes = [(start, stop)], 0
    while waiting:
        for kind, place, end in _boxes(feed, *waiting.pop()):
            boxes += 1
            if boxes > MOST_BOXES:
                raise too_many("boxes", MOST_BOXES)
            found.setdefault(kind, []).append((place, end))
            if kind in (b"iprp", b"ipco"):
                waiting.append((place, end))
    return found


def _boxes(feed: ByteSource, start: int, stop: int) -> Iterator[tuple[bytes, int, int]]:
    while start < stop:
        if start + 8 > stop:
            raise BadPicture("the length of a box is wrong")
        length, kind = feed.unpack(">I4s", start)
        if length < 8 or start + length > stop:
            raise BadPicture("the length of a box is wrong")
        yield kind, start + 8, start + length
        start += length


def _end_of_items(data: bytes | bytearray, start: int, stop: int) -> int:
    """The place behind the last byte that an item lies at, by an `iloc` box. Raises BadPicture."""
    try:
        return _last_byte(bytes(data[start:stop]))
    except (struct.error, IndexError):
        raise BadPicture("its table of items is damaged") from None


def _last_byte(box: bytes) -> int:
    version, sizes = box[0], struct.unpack_from(">H", box, 4)[0]
    offset_bytes, length_bytes, base_bytes = sizes >> 12, sizes >> 8 & 15, sizes >> 4 & 15
    index_bytes = sizes & 15 if version else 0
    wide = version == 2
    (items,) = struct.unpack_from(">I" if wide else ">H", box, 6)
    position, last = 10 if wide else 8, 0
    for _ in range(items):
        position += 4 if wide else 2
        inside = False
        if version:
            inside = bool(struct.unpack_from(">H", box, position)[0] & 15)  # relative to another box of `meta`
            position += 2
        base = _number(box, position + 2, base_bytes)
        position += 2 + base_bytes
        (extents,) = struct.unpack_from(">H", box, position)
        position += 2
        for _ in range(extents):
            position += index_bytes
            offset = _number(box, position, offset_bytes)
            length = _number(box, position + offset_bytes, length_bytes)
            position += offset_bytes + length_bytes
            last = last if inside else max(last, base + offset + length)
    return last


def _number(box: bytes, position: int, count: int) -> int:
    if position + count > len(box):
        raise IndexError(position)
    return int.from_bytes(box[position : position + count])
