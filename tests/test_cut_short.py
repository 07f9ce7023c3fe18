"""A file without its last bytes is cut short, in every format and for every number of them that a container fills up.

A picture above the limit of pixels is refused by its header, in every format.

Rows of a BMP are filled up to four bytes, chunks of a WebP to two: what is missing there holds no pixel, and decoders
take no offence. And what follows a chunk that was filled up is found.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable

import numpy as np
import pytest
from picture_files import exif, noisy, png, png_chunk, pnm, saved, tiff
from PIL import Image

from edgeconv.errors import ImageReadError
from edgeconv.io import reading
from edgeconv.io.formats import FORMATS, format_of
from edgeconv.io.read_limits import ReadRules
from edgeconv.io.reading import decode_image


def npy(pixels: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, pixels)
    return stream.getvalue()


def bmp(mode: str) -> Callable[[np.ndarray], bytes]:
    return lambda pixels: saved(pixels, "BMP", mode=mode)


MAKERS: dict[str, Callable[[np.ndarray], bytes]] = {
    "PNG": png,
    "16-bit PNG": lambda pixels: png(pixels.astype(np.uint16) * 257),
    "JPEG": lambda pixels: saved(pixels, "JPEG"),
    "TIFF": tiff,
    "TIFF in planes": lambda pixels: tiff(pixels, planar=2),
    "BigTIFF": lambda pixels: tiff(pixels, big=True),
    "deflated TIFF": lambda pixels: saved(pixels, "TIFF", compression="tiff_deflate"),
    "lossy WebP": lambda pixels: saved(pixels, "WEBP"),
    "lossless WebP": lambda pixels: saved(pixels, "WEBP", lossless=True),
    "BMP of 24 bits": bmp("RGB"),
    "BMP of 32 bits": bmp("RGBA"),
    "BMP of 8 bits": bmp("L"),
    "BMP of 1 bit": bmp("1"),
    "grey PNG": lambda pixels: png(pixels[:, :, :1]),
    "grey JPEG": lambda pixels: saved(pixels, "JPEG", "L"),
    "grey TIFF": lambda pixels: tiff(pixels[:, :, :1]),
    "NPY": npy,
    "GIF": lambda pixels: saved(pixels, "GIF"),
    "PPM": pnm,
    "16-bit PPM": lambda pixels: pnm(pixels.astype(np.uint16) * 257),
    "PBM": lambda pixels: pnm(pixels[:, :, :1] // 128, largest=1),
    "JPEG 2000": lambda pixels: saved(pixels, "JPEG2000"),
    "AVIF": lambda pixels: saved(pixels, "AVIF"),
}
GREY = ("BMP of 8 bits", "BMP of 1 bit", "grey PNG", "grey JPEG", "grey TIFF", "PBM")
SIDES = ((5, 1), (5, 2), (5, 3), (4, 4), (3, 5), (1, 33))
"""Rows (height, width) that are filled up by every number of bytes there is."""
MOST_CUT = 4


@pytest.mark.parametrize("name", MAKERS)
def test_a_file_without_its_last_bytes_is_refused(name: str) -> None:
    for height, width in SIDES:
        data = MAKERS[name](noisy(height, width))
        assert decode_image(data, name).pixels.shape == (height, width, 1 if name in GREY else 3)
        for cut in range(1, MOST_CUT + 1):
            with pytest.raises(ImageReadError, match=r"cut short|cannot be decoded") as raised:
                decode_image(data[:-cut], name)
            assert " at 0x" not in str(raised.value), "no two runs say the same of one file"


def test_every_format_is_here() -> None:
    assert {format_of(make(noisy())) for make in MAKERS.values()} == set(FORMATS)


@pytest.mark.parametrize("name", MAKERS)
def test_a_header_above_the_limit_is_refused_before_a_pixel_is_decoded(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = MAKERS[name](noisy(5, 33))
    assert decode_image(data, name, ReadRules(max_pixels=5 * 33)).pixels.shape[:2] == (5, 33)
    monkeypatch.setattr(reading, "decode", None)
    with pytest.raises(ImageReadError, match="its header says 33×5 pixels, above the limit of 164"):
        decode_image(data, name, ReadRules(max_pixels=5 * 33 - 1))


def riff(*chunks: tuple[bytes, bytes]) -> bytes:
    """A WebP of these chunks, each filled up to two bytes."""
    body = b"WEBP"
    for kind, data in chunks:
        body += kind + struct.pack("<I", len(data)) + data + bytes(len(data) % 2)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def webp_behind(length: int, before_the_picture: bool) -> bytes:
    """A lossless WebP that lies on its side, with a chunk of `length` bytes before its EXIF."""
    pixels = noisy(6, 10)
    stream = saved(pixels, "WEBP", lossless=True)
    size = struct.unpack_from("<I", stream, 16)[0]
    picture = (b"VP8L", stream[20 : 20 + size])
    has_exif = 0x08
    head = (b"VP8X", struct.pack("<I", has_exif) + (9).to_bytes(3, "little") + (5).to_bytes(3, "little"))
    odd = (b"teSt", b"x" * length)
    middle = (odd, picture) if before_the_picture else (picture, odd)
    return riff(head, *middle, (b"EXIF", exif(6).removeprefix(b"Exif\0\0")))


def png_behind(length: int, before_the_picture: bool) -> bytes:
    """The same as a PNG, whose chunks are never filled up."""
    turned = png_chunk(b"eXIf", exif(6).removeprefix(b"Exif\0\0"))
    return png(noisy(6, 10), extra=png_chunk(b"teSt", b"x" * length) + turned)


def jpeg_behind(length: int, before_the_picture: bool) -> bytes:
    """The same as a JPEG, with a comment before its EXIF segment."""
    data = saved(noisy(6, 10), "JPEG", exif=exif(6))
    return data[:2] + b"\xff\xfe" + struct.pack(">H", length + 2) + b"x" * length + data[2:]


@pytest.mark.parametrize("before_the_picture", [False, True])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 5, 7, 255, 256, 4097])
@pytest.mark.parametrize("make", [webp_behind, png_behind, jpeg_behind])
def test_what_stands_behind_a_chunk_of_any_length_is_found(
    make: Callable[[int, bool], bytes], length: int, before_the_picture: bool
) -> None:
    data = make(length, before_the_picture)
    with Image.open(io.BytesIO(data)) as opened:
        assert opened.getexif()[274] == 6, "the file is not what this test means it to be"
    picture = decode_image(data, "turned")
    assert picture.pixels.shape == (10, 6, 3)
    assert any("orientation 6 applied" in note for note in picture.notes)
    if make is not jpeg_behind:
        assert np.array_equal(picture.pixels, np.rot90(noisy(6, 10), -1))
