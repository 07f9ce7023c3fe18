"""TIFF and the EXIF block, which is a small TIFF: the first directory is read and every strip must be in the file.

OpenCV 5.0 was tested on every combination below and decodes some of them incorrectly without an error. With more than
8 bits it reads separate planes as interleaved and white-is-zero as black-is-zero, and returns grey with alpha as 8
bits: refused here. With up to 8 bits it decodes damaged compressed strips as black, multiplies colours by a straight
alpha, and corrupts or refuses mirrored tiles: those files go to Pillow. Separate planes of grey and alpha, and more
than one extra sample, are decoded incorrectly by one or the other, and refused.

Thousands of entries may refer to the same bytes, and a library that reads them all takes gigabytes for a file of a
megabyte: a file whose entries hold more bytes than it has is refused. Source: TIFF 6.0; BigTIFF; EXIF 2.32.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from mmap import mmap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeconv.io.formats.base import BadPicture, Header, Sides, any_sides, cut_short, require, too_many, unpack

SIGNATURES = (b"II*\x00", b"MM\x00*", b"II+\x00", b"MM\x00+")
BIG = 43
EXIF_PREFIX = b"Exif\x00\x00"
EXIF_BYTES = 2**16
"""Bytes of an EXIF block that are read: a JPEG has no room for more."""
MOST_EXIF_ENTRIES = 1024
MOST_ENTRIES = 2**16 - 1
"""What a TIFF can state; a BigTIFF could state more."""
MOST_PAGES = 2**12

NUMBER_TYPES = {1: "u1", 3: "u2", 4: "u4", 13: "u4", 16: "u8", 18: "u8"}
"""Field types of whole numbers: BYTE, SHORT, LONG, IFD, LONG8, IFD8. Others are not needed."""
ASCII = 2
TYPE_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}
"""Bytes of a value of each field type."""

WIDTH, HEIGHT, BITS, COMPRESSION, PHOTOMETRIC, FILL_ORDER = 256, 257, 258, 259, 262, 266
STRIP_OFFSETS, ORIENTATION, SAMPLES, ROWS_PER_STRIP, STRIP_BYTES, PLANAR = 273, 274, 277, 278, 279, 284
TILE_WIDTH, TILE_LENGTH, TILE_OFFSETS, TILE_BYTES, EXTRA_SAMPLES, SAMPLE_FORMAT = 322, 323, 324, 325, 338, 339
COLOUR_PROFILE = 34675

WHITE_IS_ZERO, BLACK_IS_ZERO, RGB, CMYK, YCBCR = 0, 1, 2, 5, 6
COLOUR_CHANNELS = {WHITE_IS_ZERO: 1, BLACK_IS_ZERO: 1, RGB: 3, 3: 1, CMYK: 4, YCBCR: 3}
"""By photometric interpretation; 3 is a palette."""
UNSIGNED, FLOAT = 1, 3
STRAIGHT_ALPHA = 2
MOST_SAMPLES = 2**16 - 1
UNCOMPRESSED = 1
DEFLATES = (8, 32946)
"""Compressions by zlib: Adobe's number, and the older one of PKZIP."""
DEFLATED_BYTES = 2**16
"""Given to zlib at once, which makes at most a thousand times as much of it, whatever a strip claims."""
SEPARATE_PLANES = 2

COMMON_COMPRESSIONS = (UNCOMPRESSED, 2, 3, 4, 5, 6, 7, 32773, *DEFLATES)
"""Those that every libtiff has: fax, LZW, JPEG and PackBits beside deflate."""
COMPRESSIONS = {34712: "JPEG 2000", 34887: "LERC", 34925: "LZMA", 50000: "Zstandard", 50001: "WebP", 50002: "JPEG XL"}
"""Names of others, which OpenCV's or Pillow's libtiff may lack; imagecodecs, which reads tiles, has them."""

CONVERT = "convert it to an interleaved 8- or 16-bit RGB TIFF or PNG"
BY_TILES = f"filter it by tiles (edgeconv run --tile 1024), or {CONVERT}"

Numbers = NDArray[Any]
Bytes = bytes | mmap
"""Of a file: all of them, or as the system maps them."""


class Field(NamedTuple):
    """One entry of a directory: the type and number of its values, and where they are."""

    kind: int
    number: int
    place: int


@dataclass(frozen=True)
class Directory:
    """The entries of a directory; values are read when they are asked for."""

    data: Bytes
    order: str
    """`<` or `>`."""
    big: bool
    entries: dict[int, Field]
    """By tag; of several entries for a tag the first one."""
    twice: frozenset[int]
    """Tags that have several entries, texts excepted, which some programs write twice."""
    held_bytes: int
    """Values of all entries."""
    following: int
    """Where the next directory is; 0 where none follows."""

    def numbers(self, tag: int, most: int) -> Numbers:
        """The first `most` values of a tag of whole numbers; none where it is not there or is of another type."""
        entry = self.entries.get(tag)
        if entry is None or entry.kind not in NUMBER_TYPES:
            return np.empty(0, np.uint64)
        kind = np.dtype(self.order + NUMBER_TYPES[entry.kind])
        size = min(entry.number, most) * kind.itemsize
        if entry.place + size > len(self.data):
            return np.empty(0, np.uint64)
        return np.frombuffer(self.data[entry.place : entry.place + size], kind)

    def one(self, tag: int, default: int) -> int:
        """The first value of a tag."""
        found = self.numbers(tag, 1)
        return int(found[0]) if found.size else default


def read_header(data: bytes, sides: Sides = any_sides) -> Header:
    """Read the first directory of a whole TIFF file and return what it says. Raises BadPicture."""
    directory = picture_directory(data)
    one = directory.one
    width, height = one(WIDTH, 0), one(HEIGHT, 0)
    sides(width, height)
    bits, kind = one(BITS, 1), one(SAMPLE_FORMAT, UNSIGNED)
    samples, photometric = one(SAMPLES, 1), one(PHOTOMETRIC, BLACK_IS_ZERO)
    if photometric not in COLOUR_CHANNELS:
        raise BadPicture(f"its colour space (photometric interpretation {photometric}) is not supported", CONVERT)
    colours = COLOUR_CHANNELS[photometric]
    alpha = samples > colours
    deep = bits > 8
    compression = one(COMPRESSION, UNCOMPRESSED)
    compressed = compression != UNCOMPRESSED
    straight_alpha = photometric == RGB and alpha and one(EXTRA_SAMPLES, 0) == STRAIGHT_ALPHA
    known = (kind == UNSIGNED and bits in (1, 2, 4, 8, 16)) or (kind == FLOAT and bits in (32, 64))
    planes_apart = samples > 1 and one(PLANAR, 1) == SEPARATE_PLANES
    plain = photometric == RGB or (photometric == BLACK_IS_ZERO and not alpha)
    scrambled = planes_apart and (samples > colours + 1 or (alpha and colours == 1 and not compressed))
    if not known or samples < colours or scrambled or (deep and (planes_apart or not plain)):
        remedy = BY_TILES if known and samples >= colours else CONVERT
        raise BadPicture(f"its layout ({samples} samples of {bits} bits) is not supported", remedy)
    planes = samples if planes_apart else 1
    is_plain = not compressed and photometric != YCBCR
    _check_strips(data, directory, width, height, planes, samples // planes * bits, is_plain=is_plain)
    return Header(
        width=width,
        height=height,
        bits=bits,
        floats=kind == FLOAT,
        grey=photometric in (WHITE_IS_ZERO, BLACK_IS_ZERO),
        alpha=alpha,
        orientation=_orientation(directory),
        frames=2 if directory.following else 1,
        profile=COLOUR_PROFILE in directory.entries,
        rare_compression=None
        if compression in COMMON_COMPRESSIONS
        else COMPRESSIONS.get(compression, f"number {compression}"),
        colours={CMYK: "CMYK"}.get(photometric, "RGB"),
        decoder="pillow"
        if not deep and (compressed or straight_alpha or TILE_OFFSETS in directory.entries)
        else "opencv",
    )


def orientation_of_exif(block: bytes) -> int:
    """The orientation in an EXIF block, 1 where it has none or is not readable: that spoils no pixel."""
    try:
        return _orientation(_first_directory(block.removeprefix(EXIF_PREFIX), MOST_EXIF_ENTRIES))
    except BadPicture:
        return 1


def for_pillow(data: bytes) -> bytes:
    """The file with its picture upright, and with its first extra sample as straight alpha.

    Pillow divides colours by premultiplied alpha, and knows straight alpha in every layout. `data` is one that
    `read_header` took.
    """
    directory, changed = picture_directory(data), bytearray(data)
    for tag, first in ((ORIENTATION, 1), (EXTRA_SAMPLES, STRAIGHT_ALPHA)):
        values = np.zeros_like(directory.numbers(tag, MOST_SAMPLES))
        if values.size:
            values[0], place = first, directory.entries[tag].place
            changed[place : place + values.nbytes] = values.tobytes()
    return bytes(changed)


def pages(data: bytes) -> Iterator[bytes]:
    """The file once for each of its pages, with that page as the first. Raises BadPicture for damage.

    `data` is a whole file that `read_header` took.
    """
    seen: set[int] = set()
    page = data
    while True:
        yield page
        directory = picture_directory(page)
        if not directory.following:
            return
        if directory.following in seen or len(seen) == MOST_PAGES:
            raise BadPicture(f"its pages have no end, or are more than {MOST_PAGES:,}")
        seen.add(directory.following)
        start, code = (8, "Q") if directory.big else (4, "I")
        head = data[:start] + struct.pack(directory.order + code, directory.following)
        page = head + memoryview(data)[len(head) :]


def _orientation(directory: Directory) -> int:
    """1 to 8; 1 where it is not said or makes no sense."""
    orientation = directory.one(ORIENTATION, 1)
    return orientation if 1 <= orientation <= 8 else 1


def picture_directory(data: Bytes) -> Directory:
    """The first directory of a TIFF file, which decoders read in bounded memory and in one way. Raises BadPicture."""
    directory = _first_directory(data, MOST_ENTRIES)
    if directory.twice:
        raise BadPicture(f"its directory has field {min(directory.twice)} twice")
    if directory.held_bytes > len(data):
        raise BadPicture(f"its tags hold {directory.held_bytes:,} bytes, more than the whole file")
    return directory


def _first_directory(data: Bytes, most_entries: int) -> Directory:
    read = partial(unpack, data, missing="its directory is not complete")
    (mark,) = read("2s", 0)
    order = {b"II": "<", b"MM": ">"}.get(mark, "")
    if not order:
        raise BadPicture("it has no TIFF header")
    big = read(order + "H", 2)[0] == BIG
    offset_code, count_code, room = ("Q", "Q", 8) if big else ("I", "H", 4)
    (start,) = read(order + offset_code, 8 if big else 4)
    (count,) = read(order + count_code, start)
    if count > most_entries:
        raise too_many("entries in its directory", most_entries)
    first, entry_bytes = start + struct.calcsize(order + count_code), 4 + 2 * room
    table, following = read(f"{order}{entry_bytes * count}s{offset_code}", first)
    entries: dict[int, Field] = {}
    twice, held_bytes = set(), 0
    for position in range(0, len(table), entry_bytes):
        tag, kind, number, place = struct.unpack_from(f"{order}HH{offset_code}{offset_code}", table, position)
        size = number * TYPE_BYTES.get(kind, 0)
        if tag in entries and kind != ASCII:
            twice.add(tag)
        entries.setdefault(tag, Field(kind, number, place if size > room else first + position + entry_bytes - room))
        held_bytes += size
    return Directory(data, order, big, entries, frozenset(twice), held_bytes, following)


def _check_strips(
    data: bytes, directory: Directory, width: int, height: int, planes: int, pixel_bits: int, *, is_plain: bool
) -> None:
    """Raise BadPicture where a strip or tile of pixels lies beyond the file's end, or a deflated one is damaged.

    A directory may list more than the picture has: no more than that are looked at. Of plain samples (`is_plain`)
    libtiff knows how many there are, whatever the directory says.
    """
    tiled = TILE_OFFSETS in directory.entries and STRIP_OFFSETS not in directory.entries
    if tiled:
        columns, rows = max(1, directory.one(TILE_WIDTH, width)), max(1, directory.one(TILE_LENGTH, height))
    else:
        columns, rows = max(1, width), max(1, min(height, directory.one(ROWS_PER_STRIP, height)))
    most = max(1, planes * -(-height // rows) * -(-width // columns))
    offsets = directory.numbers(TILE_OFFSETS if tiled else STRIP_OFFSETS, most)
    lengths = directory.numbers(TILE_BYTES if tiled else STRIP_BYTES, most)
    if not offsets.size or not lengths.size:
        raise cut_short("it does not say where its pixels are")
    pairs = min(offsets.size, lengths.size)
    offsets, lengths = offsets[:pairs].astype(np.uint64), lengths[:pairs].astype(np.uint64)
    if is_plain and not tiled:
        row_bytes = -(-width * pixel_bits // 8)
        first_rows = np.arange(pairs, dtype=np.uint64) % np.uint64(max(1, -(-height // rows))) * np.uint64(rows)
        lengths = np.maximum(lengths, np.minimum(rows, height - first_rows) * np.uint64(row_bytes))
    ends = offsets + lengths
    # a sum past 64 bits wraps round to less than what was added
    needed = 2**64 if (ends < offsets).any() else int(ends.max())
    require(data, needed)
    if directory.one(COMPRESSION, UNCOMPRESSED) in DEFLATES and directory.one(FILL_ORDER, 1) == 1:
        most_bytes = rows * -(-columns * pixel_bits // 8)
        view = memoryview(data)
        for number, (offset, length) in enumerate(zip(offsets.tolist(), lengths.tolist(), strict=True), 1):
            if length and not _inflates(view[offset : offset + length], most_bytes):
                raise BadPicture(f"it cannot be decoded (strip or tile {number:,} is damaged)")


def _inflates(stored: memoryview, most_bytes: int) -> bool:
    """Whether a zlib stream is whole and its checksum right: libtiff stops before it, once it has its pixels.

    One that gives more than its strip holds is not followed to its end: libtiff does not either.
    """
    stream, given = zlib.decompressobj(), 0
    try:
        for position in range(0, len(stored), DEFLATED_BYTES):
            piece = stored[position : position + DEFLATED_BYTES]
            given += len(stream.decompress(piece, most_bytes + 1 - given))
            if stream.eof or given > most_bytes:
                return True
    except zlib.error:
        pass
    return False
