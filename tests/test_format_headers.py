"""What headers say, field by field, in files that are put together here by hand."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
import pytest

from edgeconv.io.formats import bmp, npy, webp
from edgeconv.io.formats.base import BadPicture, Header
from edgeconv.io.formats.byte_source import STEP_BYTES, ByteSource, StreamSource


def bmp_file(
    width: int, height: int, bits: int, pixels: int, compression: int = 0, stored: int = 0, start: int = 54
) -> bytes:
    head = b"BM" + struct.pack("<IHHI", start + pixels, 0, 0, start)
    return (
        head + struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, compression, stored, 0, 0, 0, 0) + bytes(pixels)
    )


@pytest.mark.parametrize(
    ("width", "height", "bits", "row_bytes"),
    [
        (5, 3, 24, 16),
        (5, -3, 24, 16),
        (4, 3, 24, 12),
        (5, 3, 8, 8),
        (9, 3, 4, 8),
        (9, 3, 1, 4),
        (5, 3, 16, 12),
        (5, 3, 32, 20),
    ],
)
def test_bmp_rows_are_filled_up_to_four_bytes(width: int, height: int, bits: int, row_bytes: int) -> None:
    data = bmp_file(width, height, bits, 3 * row_bytes)
    expected = Header(width=width, height=3, bits=8, alpha=bits == 32, file_bytes=54 + 3 * row_bytes)
    assert bmp.read_header(ByteSource(data + b"behind it")) == expected
    for compression in (3, 6):
        again = bmp_file(width, height, bits, 3 * row_bytes, compression, stored=10**6)
        assert bmp.read_header(ByteSource(again)) == expected
    with pytest.raises(BadPicture, match=f"{len(data) - 1:,} of {len(data):,} bytes"):
        bmp.read_header(ByteSource(data[:-1]))


def test_bmp_of_runs_may_be_longer_than_it_says() -> None:
    """Two bytes for each pixel, each end of a row, and the end: 2 · (5 + 1) · (3 + 1)."""
    found = bmp.read_header(ByteSource(bmp_file(5, 3, 8, 40, compression=1, stored=20)))
    assert (found.width, found.height, found.file_bytes) == (5, 3, 54 + 2 * 6 * 4)
    assert bmp.read_header(ByteSource(bmp_file(5, 3, 8, 90, compression=1, stored=90))).file_bytes == 54 + 90


def test_an_old_bmp_has_sides_of_16_bits() -> None:
    head = b"BM" + struct.pack("<IHHI", 26 + 48, 0, 0, 26) + struct.pack("<IHHHH", 12, 5, 3, 1, 24)
    assert bmp.read_header(ByteSource(head + bytes(48))) == Header(width=5, height=3, bits=8, file_bytes=26 + 48)


@pytest.mark.parametrize("words", [(0, 3, 24), (5, 0, 24), (-5, 3, 24), (5, 3, 2), (5, 3, 0)])
def test_a_bmp_without_sides_or_of_odd_bits_is_none(words: tuple[int, int, int]) -> None:
    with pytest.raises(BadPicture, match="not a BMP header"):
        bmp.read_header(ByteSource(bmp_file(*words, 100)))
    with pytest.raises(BadPicture, match="20 bytes"):
        bmp.read_header(ByteSource(bmp_file(5, 3, 24, 48)[:20]))


# --- WebP ------------------------------------------------------------------------------------------------------------


def chunk(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)


def webp_file(*chunks: bytes) -> bytes:
    body = b"WEBP" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def lossy(width: int, height: int, scale: int = 0) -> bytes:
    sides = struct.pack("<HH", width | scale << 14, height | scale << 14)
    return chunk(b"VP8 ", b"\x30\x01\x00" + webp.LOSSY_START + sides + b"data")


def lossless(width: int, height: int, alpha: int = 0) -> bytes:
    packed = (width - 1) | (height - 1) << 14 | alpha << 28
    return chunk(b"VP8L", b"\x2f" + packed.to_bytes(4, "little") + b"data")


def extended(width: int, height: int, flags: int = 0) -> bytes:
    sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return chunk(b"VP8X", bytes([flags, 0, 0, 0]) + sides)


def exif(orientation: int) -> bytes:
    tag = struct.pack("<HHIHH", 0x0112, 3, 1, orientation, 0)
    return chunk(b"EXIF", b"II*\0" + struct.pack("<I", 8) + struct.pack("<H", 1) + tag + bytes(4))


@pytest.mark.parametrize(
    ("chunks", "fields"),
    [
        ([lossy(300, 200)], {}),
        ([lossy(300, 200, scale=3)], {}),
        ([lossless(300, 200)], {}),
        ([lossless(300, 200, alpha=1)], {"alpha": True}),
        ([extended(300, 200), lossy(7, 9)], {}),
        ([extended(300, 200), lossless(7, 9)], {}),
        ([extended(300, 200, 0x10), lossy(300, 200)], {"alpha": True}),
        ([extended(300, 200, 0x02), lossy(300, 200)], {"frames": 2}),
        ([extended(300, 200), chunk(b"ICCP", b"abc"), lossy(300, 200)], {"profile": True}),
        ([extended(300, 200), lossy(300, 200), exif(6)], {"orientation": 6}),
        ([extended(300, 200), lossy(300, 200), chunk(b"XMP ", b"odd"), exif(8), exif(3)], {"orientation": 8}),
    ],
)
def test_the_chunks_of_a_webp(chunks: list[bytes], fields: dict[str, Any]) -> None:
    data = webp_file(*chunks)
    expected = Header(width=300, height=200, bits=8, file_bytes=len(data), **fields)
    assert webp.read_header(ByteSource(data + b"behind it")) == expected
    with pytest.raises(BadPicture, match="bytes are there"):
        webp.read_header(ByteSource(data[:-1]))


def test_a_webp_without_a_picture_or_with_a_chunk_that_is_too_long_is_none() -> None:
    with pytest.raises(BadPicture, match="holds no picture"):
        webp.read_header(ByteSource(webp_file(chunk(b"XMP ", b"text" * 8))))
    with pytest.raises(BadPicture, match="chunk 'XMP ' is not complete"):
        webp.read_header(ByteSource(webp_file(lossy(3, 2), b"XMP " + struct.pack("<I", 11) + b"0123456789")))


# --- NPY -------------------------------------------------------------------------------------------------------------


def npy_file(shape: tuple[int, ...], dtype: str, version: int = 1, padding: int = 0) -> bytes:
    """An array of zeros whose header is followed by `padding` spaces."""
    text = f"{{'descr': '{np.dtype(dtype).str}', 'fortran_order': False, 'shape': {shape}}}".encode()
    text += b" " * padding + b"\n"
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return npy.SIGNATURE + bytes([version, 0]) + length + text + np.zeros(shape, dtype).tobytes()


@pytest.mark.parametrize(
    ("shape", "dtype", "fields"),
    [
        ((3, 5), "uint8", {"bits": 8, "grey": True}),
        ((3, 5, 1), "uint16", {"bits": 16, "grey": True}),
        ((3, 5, 3), "float32", {"bits": 32}),
        ((3, 5, 4), "float64", {"bits": 64, "alpha": True}),
    ],
)
@pytest.mark.parametrize(("version", "padding"), [(1, 0), (1, 300), (2, 0), (2, 300)])
def test_an_npy_says_what_it_holds(
    shape: tuple[int, ...], dtype: str, fields: dict[str, Any], version: int, padding: int
) -> None:
    data = npy_file(shape, dtype, version, padding)
    assert npy.read_header(ByteSource(data + b"behind it")) == Header(width=5, height=3, **fields)
    told: list[tuple[int, int]] = []
    feed = StreamSource(io.BytesIO(data + bytes(10)), b"", 10**6, lambda width, height: told.append((width, height)))
    npy.read_header(feed)
    assert (bytes(feed.data), told) == (data, [(5, 3)]), "no byte more is asked for"
    with pytest.raises(BadPicture, match=f"{len(data) - 1:,} of {len(data):,} bytes"):
        npy.read_header(ByteSource(data[:-1]))


@pytest.mark.parametrize("shape", [(5,), (3, 5, 2), (3, 5, 5), (1, 3, 5, 3), ()])
def test_an_npy_of_another_shape_or_type_is_no_picture(shape: tuple[int, ...]) -> None:
    with pytest.raises(BadPicture, match="is not a picture"):
        npy.read_header(ByteSource(npy_file(shape, "uint8")))
    with pytest.raises(BadPicture, match="int32 is not a picture"):
        npy.read_header(ByteSource(npy_file((3, 5, 3), "int32")))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("kept", [0, 8, 11, 12, 60])
def test_an_npy_whose_header_is_cut_or_too_long_is_damaged(kept: int, version: int) -> None:
    with pytest.raises(BadPicture, match="NPY header is damaged"):
        npy.read_header(ByteSource(npy_file((3, 5, 3), "uint8", version)[:kept]))
    with pytest.raises(BadPicture, match="NPY header is damaged"):
        npy.read_header(ByteSource(npy_file((3, 5, 3), "uint8", 2, padding=npy.MOST_HEADER_BYTES)))


# --- streams ---------------------------------------------------------------------------------------------------------


def feed_of(data: bytes, limit: int = 100, begun: bytes = b"") -> tuple[StreamSource, list[tuple[int, int]]]:
    told: list[tuple[int, int]] = []
    return StreamSource(io.BytesIO(data), begun, limit, lambda width, height: told.append((width, height))), told


def test_a_stream_gives_as_much_as_is_needed() -> None:
    feed, told = feed_of(b"0123456789", begun=b"ab")
    assert feed.need(2)
    assert bytes(feed.data) == b"ab"
    assert feed.need(5)
    assert bytes(feed.data) == b"ab012"
    assert feed.need(12)
    assert not feed.need(13)
    assert bytes(feed.data) == b"ab0123456789"
    assert not feed.grow()
    feed.sides(3, 4)
    assert (told, feed.most_bytes) == ([(3, 4)], 100)


def test_a_stream_ends_at_the_limit() -> None:
    feed, _ = feed_of(b"x" * 200)
    assert feed.need(100)
    with pytest.raises(BadPicture, match="101 bytes or more, above the limit of 100 bytes"):
        feed.need(101)
    with pytest.raises(BadPicture, match="it has not ended, above the limit of 100"):
        feed.grow()
    feed, _ = feed_of(b"x" * 100)
    assert feed.grow()
    assert not feed.grow()
    feed, _ = feed_of(b"x" * (3 * STEP_BYTES), limit=10**9)
    assert feed.grow()
    assert len(feed.data) == STEP_BYTES
