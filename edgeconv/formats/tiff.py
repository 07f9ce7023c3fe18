"""TIFF and the EXIF block, which is a small TIFF: the first directory is read and every strip must be in the file.

OpenCV 5.0 was tried on every combination below and is wrong, without a word, on some of them. With more than 8 bits
it takes separate planes for interleaved ones and white-is-zero for black-is-zero, and it gives grey with alpha as
8 bits: refused here. With up to 8 bits it turns damaged compressed strips into black, multiplies colours by a
straight alpha, and scrambles mirrored tiles or refuses them: those files go to Pillow. Separate planes of grey and
alpha, and of more than one extra sample, are scrambled by one or the other, and refused. Source: TIFF 6.0; BigTIFF;
EXIF 2.32 for the orientation.
"""

from __future__ import annotations

import struct
import zlib

from edgeconv.formats.base import BadPicture, Header, cut_short

SIGNATURES = (b"II*\x00", b"MM\x00*", b"II+\x00", b"MM\x00+")
BIG = 43
EXIF_PREFIX = b"Exif\x00\x00"

TYPE_CODES = {1: "B", 3: "H", 4: "I", 13: "I", 16: "Q", 18: "Q"}
"""Field types of whole numbers, as struct codes: BYTE, SHORT, LONG, IFD, LONG8, IFD8. Others are not needed."""

WIDTH, HEIGHT, BITS, COMPRESSION, PHOTOMETRIC = 256, 257, 258, 259, 262
STRIP_OFFSETS, ORIENTATION, SAMPLES, STRIP_BYTES = 273, 274, 277, 279
FILL_ORDER = 266
PLANAR, TILE_OFFSETS, TILE_BYTES, EXTRA_SAMPLES, SAMPLE_FORMAT = 284, 324, 325, 338, 339

COLOUR_PROFILE = 34675

WHITE_IS_ZERO, BLACK_IS_ZERO, RGB, CMYK, YCBCR = 0, 1, 2, 5, 6
COLOUR_CHANNELS = {WHITE_IS_ZERO: 1, BLACK_IS_ZERO: 1, RGB: 3, 3: 1, CMYK: 4, YCBCR: 3}
"""By photometric interpretation; 3 is a palette."""
UNSIGNED, FLOAT = 1, 3
STRAIGHT_ALPHA = 2
UNCOMPRESSED = 1
DEFLATES = (8, 32946)
"""Compressions by zlib: Adobe's number, and the older one of PKZIP."""
INFLATE_BYTES = 2**20
"""Inflated at once while a checksum is compared, so that memory is bounded whatever a strip claims."""
SEPARATE_PLANES = 2

COMMON_COMPRESSIONS = (UNCOMPRESSED, 2, 3, 4, 5, 6, 7, 32773, *DEFLATES)
"""Those that every libtiff has: fax, LZW, JPEG and PackBits beside deflate."""
COMPRESSIONS = {34712: "JPEG 2000", 34887: "LERC", 34925: "LZMA", 50000: "Zstandard", 50001: "WebP", 50002: "JPEG XL"}
"""Names of others, which OpenCV's or Pillow's libtiff may lack; imagecodecs, which reads tiles, has them."""

CONVERT = "convert it to an interleaved 8- or 16-bit RGB TIFF or PNG"
BY_TILES = f"filter it by tiles (edgeconv run --tile 1024), or {CONVERT}"

Fields = dict[int, tuple[int, ...]]


def read_header(data: bytes) -> Header:
    """Read the first directory of a whole TIFF file and return what it says. Raises BadPicture."""
    fields, another = _first_directory(data)

    def one(tag: int, default: int) -> int:
        return fields.get(tag, (default,))[0]

    width, height = one(WIDTH, 0), one(HEIGHT, 0)
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
    if not known or scrambled or (deep and (planes_apart or not plain)):
        remedy = BY_TILES if known else CONVERT
        raise BadPicture(f"its layout ({samples} samples of {bits} bits) is not supported", remedy)
    _check_strips(data, fields)
    return Header(
        width=width,
        height=height,
        bits=bits,
        grey=photometric in (WHITE_IS_ZERO, BLACK_IS_ZERO),
        alpha=alpha,
        orientation=_orientation(fields),
        frames=2 if another else 1,
        profile=COLOUR_PROFILE in fields,
        rare_compression=None
        if compression in COMMON_COMPRESSIONS
        else COMPRESSIONS.get(compression, f"number {compression}"),
        colours={CMYK: "CMYK"}.get(photometric, "RGB"),
        decoder="pillow" if not deep and (compressed or straight_alpha or TILE_OFFSETS in fields) else "opencv",
    )


def orientation_of_exif(block: bytes) -> int:
    """The orientation in an EXIF block, 1 where it has none or is not readable: that spoils no pixel."""
    try:
        fields, _ = _first_directory(block.removeprefix(EXIF_PREFIX))
    except BadPicture:
        return 1
    return _orientation(fields)


def _orientation(fields: Fields) -> int:
    """1 to 8; 1 where it is not said or makes no sense."""
    orientation = fields.get(ORIENTATION, (1,))[0]
    return orientation if 1 <= orientation <= 8 else 1


def _first_directory(data: bytes) -> tuple[Fields, bool]:
    """The whole-number fields of the first directory, and whether another directory follows.

    Of a colour profile, which is no numbers, the length.
    """
    order = {b"II": "<", b"MM": ">"}.get(data[:2], "")
    if not order:
        raise BadPicture("it has no TIFF header")
    try:
        big = struct.unpack_from(order + "H", data, 2)[0] == BIG
        offset_code, count_code, entry_bytes = ("Q", "Q", 20) if big else ("I", "H", 12)
        (start,) = struct.unpack_from(order + offset_code, data, 8 if big else 4)
        (count,) = struct.unpack_from(order + count_code, data, start)
        first = start + struct.calcsize(order + count_code)
        fields: Fields = {}
        for entry in range(first, first + count * entry_bytes, entry_bytes):
            tag, kind, length = struct.unpack_from(order + "HH" + offset_code, data, entry)
            if tag == COLOUR_PROFILE:
                fields[tag] = (length,)
            if kind not in TYPE_CODES:
                continue
            size = length * struct.calcsize(order + TYPE_CODES[kind])
            place = entry + 4 + struct.calcsize(order + offset_code)
            if size > struct.calcsize(order + offset_code):
                (place,) = struct.unpack_from(order + offset_code, data, place)
            if length and place + size <= len(data):
                fields[tag] = struct.unpack_from(f"{order}{length}{TYPE_CODES[kind]}", data, place)
        (following,) = struct.unpack_from(order + offset_code, data, first + count * entry_bytes)
    except (struct.error, OverflowError):  # the second for a BigTIFF's places past any address
        raise cut_short("its directory is not complete") from None
    return fields, following != 0


def _check_strips(data: bytes, fields: Fields) -> None:
    """Raise BadPicture where a strip or tile of pixels lies beyond the file's end, or a deflated one is damaged."""
    offsets = fields.get(STRIP_OFFSETS) or fields.get(TILE_OFFSETS)
    lengths = fields.get(STRIP_BYTES) or fields.get(TILE_BYTES)
    if not offsets or not lengths:
        raise cut_short("it does not say where its pixels are")
    needed = max(offset + length for offset, length in zip(offsets, lengths, strict=False))
    if needed > len(data):
        raise cut_short(f"{len(data):,} of {needed:,} bytes are there")
    if fields.get(COMPRESSION, (UNCOMPRESSED,))[0] in DEFLATES and fields.get(FILL_ORDER, (1,))[0] == 1:
        for number, (offset, length) in enumerate(zip(offsets, lengths, strict=False), 1):
            if length and not _inflates(memoryview(data)[offset : offset + length]):
                raise BadPicture(f"it cannot be decoded (strip or tile {number:,} is damaged)")


def _inflates(stored: memoryview) -> bool:
    """Whether a zlib stream is whole and its checksum right: libtiff stops before it, once it has its pixels."""
    stream = zlib.decompressobj()
    rest: bytes | memoryview = stored
    try:
        while rest and not stream.eof:
            stream.decompress(rest, INFLATE_BYTES)
            rest = stream.unconsumed_tail
        stream.flush()
    except zlib.error:
        return False
    return stream.eof
