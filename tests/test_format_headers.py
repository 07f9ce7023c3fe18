"""What headers say, field by field, in files that are put together here by hand."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pytest
import tifffile
from picture_files import png_chunk, png_head

from edgeconv.io.formats import png, tiff
from edgeconv.io.formats.base import BadPicture, Header, boxes
from edgeconv.io.formats.by_pillow import read_bmp
from edgeconv.io.formats.unread import name_of


def bmp_file(
    width: int, height: int, bits: int, pixels: int, compression: int = 0, stored: int = 0, start: int = 54
) -> bytes:
    head = b"BM" + struct.pack("<IHHI", start + pixels, 0, 0, start)
    return (
        head + struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, compression, stored, 0, 0, 0, 0) + bytes(pixels)
    )


@pytest.mark.parametrize(
    ("width", "height", "bits", "row_bytes"),
    [(5, 3, 24, 16), (5, -3, 24, 16), (4, 3, 24, 12), (5, 3, 16, 12), (5, 3, 32, 20)],
)
def test_bmp_rows_are_filled_up_to_four_bytes(width: int, height: int, bits: int, row_bytes: int) -> None:
    data = bmp_file(width, height, bits, 3 * row_bytes)
    expected = Header(width=width, height=3, bits=8, alpha=bits == 32, file_bytes=54 + 3 * row_bytes)
    assert read_bmp(data + b"behind it") == expected
    with pytest.raises(BadPicture, match=f"{len(data) - 1:,} of {len(data):,} bytes"):
        read_bmp(data[:-1])


def test_bmp_of_runs_may_be_longer_than_it_says() -> None:
    """Two bytes for each pixel, each end of a row, and the end: 2 · (5 + 1) · (3 + 1)."""
    for stored, needed in ((20, 2 * 6 * 4), (90, 90)):
        data = bmp_file(5, 3, 8, 1024 + 90, compression=1, stored=stored, start=54 + 1024)
        assert read_bmp(data).file_bytes == 54 + 1024 + needed


def test_an_old_bmp_has_sides_of_16_bits() -> None:
    head = b"BM" + struct.pack("<IHHI", 26 + 48, 0, 0, 26) + struct.pack("<IHHHH", 12, 5, 3, 1, 24)
    assert read_bmp(head + bytes(48)) == Header(width=5, height=3, bits=8, file_bytes=26 + 48)


# --- PNG -------------------------------------------------------------------------------------------------------------


def png_of(width: int, height: int, colour_type: int, stored: int, bits: int = 8, extra: bytes = b"") -> bytes:
    """A PNG with a number of bytes of pixel data, which no header reader unpacks."""
    pixels = png_chunk(b"IDAT", bytes(stored))
    return png_head(width, height, bits, colour_type) + extra + pixels + png_chunk(b"IEND", b"")


COLOUR_TYPES = {"grey": (0, 1), "RGB": (2, 3), "palette": (3, 1), "grey and alpha": (4, 2), "RGBA": (6, 4)}
"""PNG specification, table 11.1: number and samples per pixel."""
SHRINKS = 1032
"""Deflate's largest factor."""


@pytest.mark.parametrize("name", COLOUR_TYPES)
def test_a_png_has_as_much_data_as_its_pixels_need_and_not_much_more(name: str) -> None:
    number, samples = COLOUR_TYPES[name]
    width = 3 * SHRINKS // samples
    for data in (png_of(width, 1, number, 3), png_of(width // 2, 1, number, 3, bits=16)):
        png.read_header(data)
    for data in (
        png_of(width, 1, number, 2),
        png_of(width + 1, 1, number, 3),
        png_of(width // 2 + 1, 1, number, 3, 16),
    ):
        with pytest.raises(BadPicture, match="cannot hold"):
            png.read_header(data)
    most = 2 * 10 * 3 * samples + 3 + 2**16
    png.read_header(png_of(10, 3, number, most))
    with pytest.raises(BadPicture, match=f"{most + 1:,} bytes of pixel data are more than 10×3 pixels can take"):
        png.read_header(png_of(10, 3, number, most + 1))


# --- TIFF ------------------------------------------------------------------------------------------------------------

HALFS, WORDS, BYTES = "H", "I", "B"
TIFF_KINDS = {BYTES: 1, HALFS: 3, WORDS: 4}


def tiff_of(pixel_bytes: int, **changes: tuple[str, tuple[int, ...]] | None) -> bytes:
    """Grey of 6×4 pixels and 8 bits in one strip, by the least that TIFF 6.0 asks for; None leaves a field out."""
    fields: dict[int, tuple[str, tuple[int, ...]] | None] = {
        256: (HALFS, (6,)),
        257: (HALFS, (4,)),
        258: (HALFS, (8,)),
        262: (HALFS, (1,)),
        273: (WORDS, (8,)),
        279: (WORDS, (pixel_bytes,)),
    }
    fields |= {int(name.removeprefix("t")): value for name, value in changes.items()}
    start = 8 + pixel_bytes
    kept = {tag: value for tag, value in sorted(fields.items()) if value is not None}
    entries, beyond = b"", b""
    for tag, (code, values) in kept.items():
        value = struct.pack(f"<{len(values)}{code}", *values)
        if len(value) > 4:
            place = start + 2 + 12 * len(kept) + 4 + len(beyond)
            beyond, value = beyond + value, struct.pack("<I", place)
        entries += struct.pack("<HHI", tag, TIFF_KINDS[code], len(values)) + value.ljust(4, b"\0")
    head = b"II*\0" + struct.pack("<I", start) + bytes(pixel_bytes)
    return head + struct.pack("<H", len(kept)) + entries + bytes(4) + beyond


PLAIN_TIFF = Header(width=6, height=4, bits=8, grey=True)
RGB_TIFF = {"t262": (HALFS, (2,)), "t277": (HALFS, (3,)), "t258": (HALFS, (8, 8, 8))}
RGBA_TIFF = {**RGB_TIFF, "t277": (HALFS, (4,))}
PLANES = {"t284": (HALFS, (2,)), "t273": (WORDS, (8, 32, 56)), "t279": (WORDS, (24,) * 3)}
ONE_TILE = {"t322": (HALFS, (16,)), "t323": (HALFS, (16,)), "t324": (WORDS, (8,)), "t325": (WORDS, (24,))}


@pytest.mark.parametrize(
    ("pixel_bytes", "changes", "fields"),
    [
        (24, {}, {}),
        (24, {"t277": (HALFS, (1,)), "t259": (HALFS, (1,)), "t339": (HALFS, (1,)), "t274": (HALFS, (1,))}, {}),
        (24, {"t262": None}, {}),
        (24, {"t262": (HALFS, (0,))}, {}),
        (24, {"t262": (HALFS, (3,))}, {"grey": False}),
        (4, {"t258": None}, {"bits": 1}),
        (48, {"t258": (HALFS, (16,))}, {"bits": 16}),
        (96, {"t258": (HALFS, (32,)), "t339": (HALFS, (3,))}, {"bits": 32, "floats": True}),
        (72, RGB_TIFF, {"grey": False}),
        (72, {**RGB_TIFF, **PLANES}, {"grey": False}),
        (144, {**RGB_TIFF, "t258": (HALFS, (16,) * 3)}, {"grey": False, "bits": 16}),
        (96, RGBA_TIFF, {"grey": False, "alpha": True}),
        (96, {**RGBA_TIFF, "t338": (HALFS, (1,))}, {"grey": False, "alpha": True}),
        (96, {**RGBA_TIFF, "t338": (HALFS, (2,))}, {"grey": False, "alpha": True, "decoder": "pillow"}),
        (96, {**RGBA_TIFF, "t262": (HALFS, (5,))}, {"grey": False, "colours": "CMYK"}),
        (24, {"t274": (HALFS, (6,))}, {"orientation": 6}),
        (24, {"t274": (HALFS, (9,))}, {}),
        (24, {"t34675": (BYTES, (1,))}, {"profile": True}),
        (24, {"t278": (HALFS, (2,)), "t273": (WORDS, (8, 20)), "t279": (WORDS, (12, 12))}, {}),
        (24, {"t259": (HALFS, (5,))}, {"decoder": "pillow"}),
        (24, {"t259": (HALFS, (50000,))}, {"decoder": "pillow", "rare_compression": "Zstandard"}),
        (24, {"t259": (HALFS, (4711,))}, {"decoder": "pillow", "rare_compression": "number 4711"}),
        (48, {"t259": (HALFS, (5,)), "t258": (HALFS, (16,))}, {"bits": 16}),
        (24, {"t273": None, "t279": None, **ONE_TILE}, {"decoder": "pillow"}),
    ],
)
def test_what_a_tiff_says(pixel_bytes: int, changes: dict[str, Any], fields: dict[str, Any]) -> None:
    assert tiff.read_header(tiff_of(pixel_bytes, **changes)) == replace(PLAIN_TIFF, **fields)


@pytest.mark.parametrize(
    ("pixel_bytes", "changes"),
    [
        (24, {"t258": (HALFS, (3,))}),
        (24, {"t258": (HALFS, (32,))}),
        (48, {"t258": (HALFS, (16,)), "t339": (HALFS, (3,))}),
        (24, {"t339": (HALFS, (2,))}),
        (48, {"t258": (HALFS, (16,)), "t262": (HALFS, (0,))}),
        (96, {"t258": (HALFS, (16,)), "t277": (HALFS, (2,))}),
        (48, {**RGB_TIFF, "t277": (HALFS, (2,))}),
        (144, {**RGB_TIFF, "t258": (HALFS, (16,) * 3), "t284": (HALFS, (2,))}),
        (120, {**RGB_TIFF, "t277": (HALFS, (5,)), "t284": (HALFS, (2,))}),
        (48, {"t277": (HALFS, (2,)), "t284": (HALFS, (2,))}),
    ],
)
def test_a_tiff_of_a_layout_that_decoders_get_wrong_is_refused(pixel_bytes: int, changes: dict[str, Any]) -> None:
    with pytest.raises(BadPicture, match=r"its layout \(\d samples of \d+ bits\)"):
        tiff.read_header(tiff_of(pixel_bytes, **changes))


@pytest.mark.parametrize(
    ("pixel_bytes", "changes", "needed"),
    [
        (24, {}, 8 + 24),
        (24, {"t279": (WORDS, (20,))}, 8 + 24),
        (24, {"t278": (HALFS, (2,)), "t273": (WORDS, (8, 20)), "t279": (WORDS, (12, 9))}, 8 + 24),
        (18, {"t278": (HALFS, (3,)), "t273": (WORDS, (8, 26)), "t279": (WORDS, (18, 4))}, 26 + 6),
        (3, {"t258": (HALFS, (1,)), "t279": (WORDS, (1,))}, 8 + 4),
        (24, {"t259": (HALFS, (5,)), "t279": (WORDS, (30,))}, 8 + 30),
    ],
)
def test_plain_strips_are_as_long_as_their_rows_whatever_is_said_of_them(
    pixel_bytes: int, changes: dict[str, Any], needed: int
) -> None:
    """Here the pixels lie behind the directory, so that the file can be cut in them."""
    offsets = changes.get("t273", (WORDS, (8,)))[1]
    shift = 1000
    far = tiff_of(pixel_bytes, **{**changes, "t273": (WORDS, tuple(place + shift for place in offsets))})
    whole = far.ljust(needed + shift, b"\0")
    tiff.read_header(whole)
    with pytest.raises(BadPicture, match=rf"{len(whole) - 1:,} of {len(whole):,} bytes are there"):
        tiff.read_header(whole[:-1])


# --- others ----------------------------------------------------------------------------------------------------------


def test_iso_boxes_have_lengths_of_32_or_64_bits_or_go_on_to_the_end() -> None:
    plain = struct.pack(">I4s", 12, b"free") + bytes(4)
    large = struct.pack(">I4sQ", 1, b"mdat", 20) + bytes(4)
    rest = struct.pack(">I4s", 0, b"mdat") + bytes(9)
    data = plain + large + rest
    assert list(boxes(data, 0)) == [(b"free", 8, 12), (b"mdat", 28, 32), (b"mdat", 40, None)]
    assert list(boxes(data, 12, 32)) == [(b"mdat", 28, 32)]
    for bad in (struct.pack(">I4s", 7, b"free"), struct.pack(">I4sQ", 1, b"mdat", 15)):
        with pytest.raises(BadPicture, match="the length of a box is wrong"):
            list(boxes(bad + bytes(8), 0))


@pytest.mark.parametrize(
    ("starts", "name"),
    [
        (b"\x00\x00\x00\x18ftypheic", "HEIC"),
        (b"\x00\x00\x00\x18ftypmif1", "HEIF"),
        (b"\xff\x0a\xfa", "JPEG XL"),
        (b"\x00\x00\x00\x0cJXL \r\n\x87\n", "JPEG XL"),
        (b"%PDF-1.7", "PDF"),
        (b"<svg xmlns=", "SVG"),
        (b"8BPS\x00\x01", "Photoshop"),
        (b"v/1\x01\x02", "OpenEXR"),
        (b"#?RADIANCE\n", "Radiance HDR"),
        (b"P7\nWIDTH 4", "PAM"),
        (b"PF\n4 4\n", "PFM"),
        (b"qoif\x00", "QOI"),
        (b"DDS |\x00", "DDS"),
        (b"SIMPLE  =                    T", "FITS"),
        (b"Dear diary", None),
    ],
)
def test_files_that_nothing_here_reads_are_called_by_their_names(starts: bytes, name: str | None) -> None:
    assert name_of(starts) == name


def test_the_bytes_of_a_tiff_s_values_are_those_of_its_specification() -> None:
    """As tifffile has them, in the letters of `struct`."""
    known = {int(kind): struct.calcsize(f"<{letters}") for kind, letters in tifffile.TIFF.DATA_FORMATS.items()}
    assert known == tiff.TYPE_BYTES
