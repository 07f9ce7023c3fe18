"""AVIF: boxes tell where the file ends and how large the picture is. Sources: AV1 Image File Format; ISO/IEC 14496-12.

`meta` holds the properties: `ispe` sides, `av1C` depth, `irot` and `imir` orientation. The picture's bytes lie in the
boxes `mdat`; the decoder finds what they lack, and they have no checksum. Samples of 10 or 12 bits are stretched to 16.
"""

from __future__ import annotations

from edgeconv.io.formats.base import BadPicture, Header, Sides, any_sides, boxes, cut_short, require, unpack

SIGNATURES = (b"ftypavif", b"ftypavis")
META, DATA, PROPERTIES = b"meta", b"mdat", (b"iprp", b"ipco")
TURNED = (
    {None: 1, 0: 4, 1: 2},
    {None: 8, 0: 5, 1: 7},
    {None: 3, 0: 2, 1: 4},
    {None: 6, 0: 7, 1: 5},
)
"""EXIF orientation by `irot` (quarter turns anticlockwise), then `imir` (0: top and bottom change places, 1: sides)."""

Place = tuple[int, int]
"""Where the contents of a box begin and end."""


def read_header(data: bytes, sides: Sides = any_sides) -> Header:
    """Read the properties of a whole AVIF file. Raises BadPicture."""
    found: dict[bytes, list[Place]] = {}
    for kind, start, end in boxes(data, 0):
        if end is None and kind != DATA:
            raise BadPicture("the length of a box is wrong")
        stop = len(data) if end is None else end
        found.setdefault(kind, []).append((start, stop))
        if kind == META:
            if stop > len(data):
                raise cut_short("it ends before its picture")
            width, height = _properties(data, start, stop, found)
            sides(width, height)
        if META in found and (DATA in found or stop + 8 > len(data)):
            break
    require(data, stop)

    def first(kind: bytes, place: int = 0) -> int | None:
        """A byte of the first box of a kind."""
        return next((data[start + place] for start, end in found.get(kind, []) if start + place < end), None)

    config, turns, mirror = first(b"av1C", 2), first(b"irot"), first(b"imir")
    if config is None:
        raise BadPicture("it holds no picture")
    bits = 8 if not config & 0x40 else 12 if config & 0x20 else 10
    return Header(
        width,
        height,
        bits=8 if bits == 8 else 16,
        grey=bool(config & 0x10),
        alpha=b"auxC" in found,
        orientation=TURNED[(turns or 0) & 3][None if mirror is None else mirror & 1],
        frames=2 if data[8:12] == b"avis" else 1,
        profile=any(data[start : start + 4] in (b"prof", b"rICC") for start, _ in found.get(b"colr", [])),
        largest=2**bits - 1,
        rare_compression="AV1",
        file_bytes=stop,
    )


def _properties(data: bytes, start: int, stop: int, found: dict[bytes, list[Place]]) -> Place:
    """Add the boxes of `meta` to `found`; width and height, which are those of the largest picture of the file."""
    waiting = [(start + 4, stop)]
    while waiting:
        for kind, place, end in boxes(data, *waiting.pop()):
            if end is None:
                raise BadPicture("the length of a box is wrong")
            found.setdefault(kind, []).append((place, end))
            if kind in PROPERTIES:
                waiting.append((place, end))
    stated = [unpack(data, ">II", place + 4) for place, end in found.get(b"ispe", []) if end - place >= 12]
    if not stated:
        raise BadPicture("it holds no picture")
    width, height = max(stated, key=lambda both: int(both[0] * both[1]))  # beside those of alpha, thumbnails and cells
    return width, height
