"""TIFF and the EXIF block, which is a small TIFF: the first directory is read and every strip must be in the file.

OpenCV 5.0 was tested on every combination below and decodes some of them incorrectly without an error. With more than
8 bits it reads separate planes as interleaved and white-is-zero as black-is-zero, and returns grey with alpha as 8
bits: refused here. With up to 8 bits it decodes damaged compressed strips as black, multiplies colours by a straight
alpha, and corrupts or refuses mirrored tiles: those files go to Pillow. Separate planes of grey and alpha, and more
than one extra sample, are decoded incorrectly by one or the other, and refused.

Only the needed entries of a directory are read, each once and up to a limit: thousands of entries may refer to the same
bytes, and a library that reads them all takes gigabytes for a file of a megabyte. So a decoder may be given the file
with another directory behind it, of the entries that pixels depend on. Source: TIFF 6.0; BigTIFF; EXIF 2.32.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
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
SHORT = 3
TYPE_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}
"""Bytes of a value of each field type."""

WIDTH, HEIGHT, BITS, COMPRESSION, PHOTOMETRIC, FILL_ORDER = 256, 257, 258, 259, 262, 266
STRIP_OFFSETS, ORIENTATION, SAMPLES, ROWS_PER_STRIP, STRIP_BYTES, PLANAR = 273, 274, 277, 278, 279, 284
TILE_WIDTH, TILE_LENGTH, TILE_OFFSETS, TILE_BYTES, EXTRA_SAMPLES, SAMPLE_FORMAT = 322, 323, 324, 325, 338, 339
COLOUR_PROFILE = 34675

DECODED_BY = {
    *(WIDTH, HEIGHT, BITS, COMPRESSION, PHOTOMETRIC, FILL_ORDER, STRIP_OFFSETS, ORIENTATION, SAMPLES, ROWS_PER_STRIP),
    *(STRIP_BYTES, PLANAR, TILE_WIDTH, TILE_LENGTH, TILE_OFFSETS, TILE_BYTES, EXTRA_SAMPLES, SAMPLE_FORMAT),
    *(292, 293),  # options of fax compression
    *(317, 320, 332),  # predictor, palette, inks
    *(347, *range(512, 522)),  # tables of JPEG, new and old
    *(529, 530, 531, 532),  # YCbCr
    50674,  # parameters of LERC
}
"""Tags that affect the pixels."""
OTHER_BYTES = 2**20
"""Values of all other tags may take as much before a decoder is given the file without them."""

WHITE_IS_ZERO, BLACK_IS_ZERO, RGB, CMYK, YCBCR = 0, 1, 2, 5, 6
COLOUR_CHANNELS = {WHITE_IS_ZERO: 1, BLACK_IS_ZERO: 1, RGB: 3, 3: 1, CMYK: 4, YCBCR: 3}
"""By photometric interpretation; 3 is a palette."""
UNSIGNED, FLOAT = 1, 3
STRAIGHT_ALPHA = 2
MOST_EXTRA = 8
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


class Field(NamedTuple):
    """One entry of a directory: the type and number of its values, where they are, and the entry itself."""

    kind: int
    number: int
    place: int
    stored: bytes

    @property
    def size(self) -> int:
        """Bytes of all values."""
        return self.number * TYPE_BYTES.get(self.kind, 0)


@dataclass(frozen=True)
class Directory:
    """The entries of a directory; values are read when they are asked for."""

    data: bytes | mmap
    order: str
    """`<` or `>`."""
    big: bool
    entries: dict[int, Field]
    """By tag; of several entries for a tag the first one."""
    twice: frozenset[int]
    """Tags that pixels depend on and that have several entries: decoders disagree on which of them counts."""
    other_bytes: int
    """Values of entries that no pixel depends on, each counted as often as an entry points at it."""
    following: int
    """Where the next directory is; 0 where none follows."""

    def numbers(self, tag: int, most: int) -> Numbers:
        """The first `most` values of a tag of whole numbers; none where it is not there or is of another type."""
        entry = self.entries.get(tag)
        if entry is None or entry.kind not in NUMBER_TYPES:
            return np.empty(0, np.uint64)
        kind = np.dtype(self.order + NUMBER_TYPES[entry.kind])
        count = min(entry.number, most)
        is_there = entry.place + count * kind.itemsize <= len(self.data)
        return np.frombuffer(self.data, kind, count, entry.place) if count and is_there else np.empty(0, np.uint64)

    def one(self, tag: int, default: int) -> int:
        """The first value of a tag."""
        found = self.numbers(tag, 1)
        return int(found[0]) if found.size else default

    def head(self, place: int) -> bytes:
        """The head of the file with its first directory elsewhere."""
        start, code = (8, "Q") if self.big else (4, "I")
        return self.data[:start] + struct.pack(self.order + code, place)

    def lighter(self, changed: dict[int, bytes], behind: bytes = b"") -> bytes:
        """The file, some bytes `behind` it, and a directory of the entries that pixels depend on, some `changed`."""
        counter, end = ("Q", bytes(8)) if self.big else ("H", bytes(4))
        tags = sorted(self.entries.keys() & DECODED_BY)
        kept = [entry for tag in tags if (entry := changed.get(tag, self.entries[tag].stored))]
        head, count = self.head(len(self.data) + len(behind)), struct.pack(self.order + counter, len(kept))
        return b"".join((head, memoryview(self.data)[len(head) :], behind, count, *kept, end))


def read_header(data: bytes, sides: Sides = any_sides) -> Header:
    """Read the first directory of a whole TIFF file and return what it says. Raises BadPicture."""
    directory = first_directory(data, MOST_ENTRIES)
    one = directory.one
    width, height = one(WIDTH, 0), one(HEIGHT, 0)
    sides(width, height)
    if directory.twice:
        raise BadPicture(f"its directory has field {min(directory.twice)} twice")
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
    _check_strips(
        directory, width, height, planes, samples // planes * bits, is_plain=not compressed and photometric != YCBCR
    )
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
        return _orientation(first_directory(block.removeprefix(EXIF_PREFIX), MOST_EXIF_ENTRIES))
    except BadPicture:
        return 1


def for_opencv(data: bytes) -> bytes:
    """The file as it is, or where its directory is heavy, or names values that are not there, with a lighter one.

    `data` is one that `read_header` took.
    """
    directory = first_directory(data, MOST_ENTRIES)
    is_whole = all(entry.place + entry.size <= len(data) for entry in directory.entries.values())
    return data if directory.other_bytes <= OTHER_BYTES and is_whole else directory.lighter({})


def for_pillow(data: bytes) -> bytes:
    """The file with a lighter directory, without orientation, and with its first extra sample as straight alpha.

    Pillow divides colours by premultiplied alpha, and knows straight alpha in every layout.
    """
    directory = first_directory(data, MOST_ENTRIES)
    changed, behind = {ORIENTATION: b""}, b""
    if (extra := directory.entries.get(EXTRA_SAMPLES)) is not None:
        values = [STRAIGHT_ALPHA, *[0] * (min(extra.number, MOST_EXTRA) - 1)]
        stored = struct.pack(f"{directory.order}{len(values)}H", *values)
        code, room = ("Q", 8) if directory.big else ("I", 4)
        if len(stored) > room:
            behind, stored = stored, struct.pack(directory.order + code, len(data))
        head = struct.pack(f"{directory.order}HH{code}", EXTRA_SAMPLES, SHORT, len(values))
        changed[EXTRA_SAMPLES] = head + stored.ljust(room, b"\0")
    return directory.lighter(changed, behind)


def pages(data: bytes) -> Iterator[bytes]:
    """The file once for each of its pages, with that page as the first. Raises BadPicture for damage.

    `data` is a whole file that `read_header` took.
    """
    seen: set[int] = set()
    page = data
    while True:
        yield page
        directory = first_directory(page, MOST_ENTRIES)
        if not directory.following:
            return
        if directory.following in seen or len(seen) == MOST_PAGES:
            raise BadPicture(f"its pages have no end, or are more than {MOST_PAGES:,}")
        seen.add(directory.following)
        head = directory.head(directory.following)
        page = head + memoryview(data)[len(head) :]


def _orientation(directory: Directory) -> int:
    """1 to 8; 1 where it is not said or makes no sense."""
    orientation = directory.one(ORIENTATION, 1)
    return orientation if 1 <= orientation <= 8 else 1


def first_directory(data: bytes | mmap, most_entries: int) -> Directory:
    """The entries of the first directory, and whether another directory follows. Raises BadPicture."""
    order = {b"II": "<", b"MM": ">"}.get(data[:2], "")
    if not order:
        raise BadPicture("it has no TIFF header")
    missing = "its directory is not complete"
    big = unpack(data, order + "H", 2, missing)[0] == BIG
    offset_code, count_code, room = ("Q", "Q", 8) if big else ("I", "H", 4)
    (start,) = unpack(data, order + offset_code, 8 if big else 4, missing)
    (count,) = unpack(data, order + count_code, start, missing)
    if count > most_entries:
        raise too_many("entries in its directory", most_entries)
    first, entry_bytes = start + struct.calcsize(order + count_code), 4 + 2 * room
    table, following = unpack(data, f"{order}{entry_bytes * count}s{offset_code}", first, missing)
    entries: dict[int, Field] = {}
    other_bytes = 0
    twice = set()
    for position in range(0, len(table), entry_bytes):
        stored = table[position : position + entry_bytes]
        tag, kind, length, value = struct.unpack(f"{order}HH{offset_code}{offset_code}", stored)
        entry = Field(kind, length, first + position + entry_bytes - room, stored)
        if entry.size > room:
            entry = entry._replace(place=value)
        if tag not in DECODED_BY:
            other_bytes += entry.size
        elif tag in entries:
            twice.add(tag)
        if length or tag in DECODED_BY:
            entries.setdefault(tag, entry)
    return Directory(data, order, big, entries, frozenset(twice), other_bytes, following)


def _check_strips(
    directory: Directory, width: int, height: int, planes: int, pixel_bits: int, *, is_plain: bool
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
    require(directory.data, needed)
    if directory.one(COMPRESSION, UNCOMPRESSED) in DEFLATES and directory.one(FILL_ORDER, 1) == 1:
        most_bytes = rows * -(-columns * pixel_bits // 8)
        with memoryview(directory.data) as data:
            for number, (offset, length) in enumerate(zip(offsets.tolist(), lengths.tolist(), strict=True), 1):
                if length and not _inflates(data[offset : offset + length], most_bytes):
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
