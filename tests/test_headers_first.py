"""A picture that is too large by its header is refused, in every format and wherever the header lies in its file."""

from __future__ import annotations

import struct

import pytest
from damaged import AVIF, JPEG, JPEG_2000
from picture_files import png_head

from edgeconv.errors import ImageReadError
from edgeconv.io.formats import FORMATS, format_of
from edgeconv.io.reading import decode_image

FILE_BYTES = 2**21
SIDE = 60_000
"""Of a picture above the limit of pixels; every format can state it."""
SIDES = struct.pack(">II", SIDE, SIDE)
SMALL = struct.pack(">II", 60, 40)
SHORT_SIDES, SHORT_SMALL = struct.pack(">HH", SIDE, SIDE), struct.pack(">HH", 40, 60)


def npy_head() -> bytes:
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({SIDE}, {SIDE}, 3), }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def directory(place: int) -> list[tuple[int, bytes]]:
    """The parts of a TIFF whose directory lies at `place`."""
    entries = [(256, 4, SIDE), (257, 4, SIDE), (273, 4, 8), (279, 4, 8)]
    stored = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in entries)
    return [(0, b"II*\0" + struct.pack("<I", place)), (place, struct.pack("<H", len(entries)) + stored + bytes(4))]


def behind(data: bytes, place: int, kind: bytes) -> list[tuple[int, bytes]]:
    """A file of boxes whose second and later boxes lie at `place`, with a box of zeros before them."""
    (first,) = struct.unpack(">I", data[:4])
    return [(0, data[:first] + struct.pack(">I4s", place - first, kind)), (place, data[first:])]


AVIF_HEAD = AVIF.replace(b"ispe" + bytes(4) + SMALL, b"ispe" + bytes(4) + SIDES)
JPEG_2000_HEAD = JPEG_2000.replace(SMALL, SIDES).replace(struct.pack(">II", 40, 60), SIDES)
JPEG_HEAD = JPEG.replace(SHORT_SMALL, SHORT_SIDES, 1)
SEGMENT, SEGMENTS = b"\xff\xe9\xff\xff", 20
LATE = FILE_BYTES - 2**12

HEADERS: dict[str, list[tuple[int, bytes]]] = {
    "PNG": [(0, png_head(SIDE, SIDE))],
    "JPEG": [(0, JPEG_HEAD)],
    "JPEG behind segments of 64 KiB": [
        (0, JPEG[:2] + SEGMENT),
        *((2 + number * 65_537, SEGMENT) for number in range(1, SEGMENTS)),
        (2 + SEGMENTS * 65_537, JPEG_HEAD[2:]),
    ],
    "TIFF": directory(8),
    "TIFF with its directory at the end": directory(LATE),
    "WebP": [
        (0, b"RIFF" + struct.pack("<I", FILE_BYTES - 8) + b"WEBPVP8X" + struct.pack("<I", 10)),
        (24, 2 * (SIDE - 1).to_bytes(3, "little")),
    ],
    "BMP": [(0, b"BM" + struct.pack("<IIIIiiHHII", 0, 0, 54, 40, SIDE, SIDE, 1, 24, 0, 0))],
    "NPY": [(0, npy_head())],
    "GIF": [(0, b"GIF89a" + struct.pack("<HHB", SIDE, SIDE, 0))],
    "PNM": [(0, f"P6 {SIDE} {SIDE} 255\n".encode())],
    "JPEG 2000": [(0, JPEG_2000_HEAD)],
    "JPEG 2000 behind another box": behind(JPEG_2000_HEAD, LATE, b"free"),
    "AVIF": [(0, AVIF_HEAD)],
    "AVIF behind its data": behind(AVIF_HEAD, LATE, b"mdat"),
}
"""Places and bytes of files whose header states 60,000×60,000 pixels."""


def test_every_format_is_here() -> None:
    assert {format_of(parts[0][1]) for parts in HEADERS.values()} == set(FORMATS)


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_above_the_limit_is_refused(name: str) -> None:
    data = bytearray(FILE_BYTES)
    for place, part in HEADERS[name]:
        data[place : place + len(part)] = part
    with pytest.raises(ImageReadError, match="its header says 60,000×60,000 pixels, above the limit of 268,435,456"):
        decode_image(bytes(data), "large")
