"""Small files that would stop a machine, each made by a few lines: lying sizes, many entries, nesting, huge chunks.

BOMBS    what, bytes, what must come of it: a part of the error message, or None where it is read
"""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from damaged import JPEG, JPEG_2000, PNG, PROGRESSIVE, WEBP
from picture_files import noisy, png, png_chunk, png_head, saved, tiff

GIB = 2**30


@dataclass(frozen=True)
class Bomb:
    """One file."""

    what: str
    make: Callable[[], bytes]
    says: str | None = None
    """Part of the error; None where the picture is read all the same."""
    need_bytes: int = 0
    """What decoding the picture itself takes, as its header says."""
    size: int = 0
    """Zeros follow up to a length, and take no place on a disk."""

    def write(self, folder: Path) -> Path:
        """The file, by the name of what it is."""
        path = folder / self.what
        path.write_bytes(self.make())
        if self.size:
            os.truncate(path, self.size)
        return path


def zeros(count: int) -> bytes:
    """`count` zero bytes (whole MiB) as a zlib stream, at once: the same compressed MiB again and again."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    piece = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = struct.pack(">HH", count % 65_521, 1)  # Adler-32 of zeros: their number, and 1
    return b"\x78\xda" + piece * (count // 2**20) + b"\x03\x00" + checksum


def _directory(count: int, values: int, kind: int = 4, first_tag: int = 40_000, orientation: int = 6) -> bytes:
    """A TIFF directory at byte 8: an orientation, and `count` entries of `values` numbers that all lie at byte 8."""
    entries = struct.pack("<HHIHH", 274, 3, 1, orientation, 0)
    entries += b"".join(struct.pack("<HHII", (first_tag + i) % 2**16, kind, values, 8) for i in range(count))
    return b"II*\0\x08\0\0\0" + struct.pack("<H", count + 1) + entries + bytes(4)


def _exif_in_jpeg() -> bytes:
    block = b"Exif\0\0" + _directory(5_400, 16_000)
    return JPEG[:2] + b"\xff\xe1" + struct.pack(">H", len(block) + 2) + block + JPEG[2:]


def _many_exif_in_jpeg() -> bytes:
    block = b"Exif\0\0" + _directory(5_400, 16_000, orientation=1)[:-400]
    segment = b"\xff\xe1" + struct.pack(">H", len(block) + 2) + block
    return JPEG[:2] + segment * 500 + JPEG[2:]


def _exif_in_png() -> bytes:
    return png(noisy(), extra=png_chunk(b"eXIf", _directory(65_000, 195_000)))


def _exif_in_webp() -> bytes:
    block = _directory(65_000, 195_000)
    body = WEBP[12:] + b"EXIF" + struct.pack("<I", len(block)) + block
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def _many_entries(data: bytes) -> bytes:
    """A little-endian TIFF with 60,000 entries more, all of which point at the same 700 KB of the file."""
    (place,) = struct.unpack_from("<I", data, 4)
    (count,) = struct.unpack_from("<H", data, place)
    entries = [data[place + 2 + 12 * i : place + 14 + 12 * i] for i in range(count)]
    more = [struct.pack("<HHII", 1000 + i, 4, 175_000, 8) for i in range(60_000) if not 30_000 < 1000 + i < 38_000]
    taken = {struct.unpack("<H", entry[:2])[0] for entry in entries}
    more = [entry for entry in more if struct.unpack("<H", entry[:2])[0] not in taken]
    directory = struct.pack("<H", len(entries) + len(more)) + b"".join(entries + more) + bytes(4)
    return data[:4] + struct.pack("<I", len(data)) + data[8:] + directory


def _same_strips() -> bytes:
    """A deflated TIFF whose 2,000 strips are all the same megabyte, which inflates to a gigabyte."""
    height = 2_000
    packed = zeros(GIB)
    start = 8 + len(packed)
    offsets, lengths = struct.pack(f"<{height}I", *[8] * height), struct.pack(f"<{height}I", *[len(packed)] * height)
    fields = {
        256: (4, 1, 10),
        257: (4, 1, height),
        258: (3, 1, 8),
        259: (3, 1, 8),
        262: (3, 1, 1),
        273: (4, height, start),
        277: (3, 1, 1),
        278: (4, 1, 1),
        279: (4, height, start + len(offsets)),
    }
    directory = struct.pack("<H", len(fields))
    directory += b"".join(struct.pack("<HHII", tag, *field) for tag, field in fields.items()) + bytes(4)
    place = start + len(offsets) + len(lengths)
    return b"II*\0" + struct.pack("<I", place) + packed + offsets + lengths + directory


def _big_tiff(count: int, start: int = 16) -> bytes:
    return b"II+\0\x08\0\0\0" + struct.pack("<QQ", start, count) + bytes(4_000)


def _many_scans() -> bytes:
    """A JPEG of 2 MB that is nothing but scans."""
    start = JPEG.index(b"\xff\xda")
    (length,) = struct.unpack_from(">H", JPEG, start + 2)
    scan = JPEG[start : start + 2 + length] + b"\x00"
    return JPEG[:start] + scan * (2 * 2**20 // len(scan)) + JPEG[-2:]


def _scans_of_a_large_picture(scans: int) -> bytes:
    """A progressive JPEG of 4096 × 4096 whose scans each say that there is nothing to add."""
    large = bytearray(saved(np.zeros((8, 8, 3), np.uint8), "JPEG", progressive=True))
    frame = large.index(b"\xff\xc2")
    large[frame + 5 : frame + 9] = struct.pack(">HH", 4096, 4096)
    start = large.rindex(b"\xff\xda")
    (length,) = struct.unpack_from(">H", large, start + 2)
    scan = bytes(large[start : start + 2 + length]) + b"\x00" * 8
    return bytes(large[:start]) + scan * scans + b"\xff\xd9"


def _npy(words: bytes, length: int | None = None) -> bytes:
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(words) if length is None else length) + words


DAMAGED = "cut short"
SHARED = "bytes, more than the whole file"
TOO_LONG = "no side may be above 1,000,000"
BOMBS = (
    Bomb("JPEG whose EXIF entries share their bytes", _exif_in_jpeg),
    Bomb("JPEG of 500 EXIF segments", _many_exif_in_jpeg),
    Bomb("JPEG of 100,000 scans", _many_scans, "it has more than 100 scans"),
    Bomb("JPEG of 90 scans of 16 Mpixels", lambda: _scans_of_a_large_picture(90), need_bytes=200 * 2**20),
    Bomb("JPEG of 500,000 segments", lambda: JPEG[:2] + b"\xff\xe9\0\x02" * 500_000 + JPEG[2:], "16,384 segments"),
    Bomb("JPEG of fill bytes", lambda: JPEG[:2] + b"\xff" * 2**25 + JPEG[2:]),
    Bomb("JPEG without an end in its data", lambda: JPEG[:-2] + b"\xff\0" * 2**24, DAMAGED),
    Bomb("JPEG of 65,500 × 65,500", lambda: PROGRESSIVE.replace(b"\0\x28\0\x3c", b"\xff\xdc\xff\xdc", 1), "limit"),
    Bomb("PNG whose EXIF entries share their bytes", _exif_in_png),
    Bomb("PNG of 2,000,000 chunks", lambda: PNG[:33] + png_chunk(b"teSt", b"") * 2_000_000 + PNG[33:], "chunks"),
    Bomb("PNG whose profile inflates to 1 GiB", lambda: png(noisy(), extra=png_chunk(b"iCCP", b"x\0\0" + zeros(GIB)))),
    Bomb("PNG whose text inflates to 1 GiB", lambda: png(noisy(), extra=png_chunk(b"zTXt", b"x\0\0" + zeros(GIB)))),
    Bomb(
        "PNG of 4 × 4 whose pixels inflate to 1 GiB",
        lambda: png_head(4, 4) + png_chunk(b"IDAT", zeros(GIB)) + png_chunk(b"IEND", b""),
        "are more than 4×4 pixels can take",
    ),
    Bomb("TIFF of entries that share their bytes", lambda: _many_entries(tiff(noisy(500, 500))), SHARED),
    Bomb("TIFF whose strips are the same megabyte", _same_strips),
    Bomb("BigTIFF of 2^60 entries", lambda: _big_tiff(2**60), "more than 65,535 entries"),
    Bomb("BigTIFF past any address", lambda: _big_tiff(1, 2**64 - 9), DAMAGED),
    Bomb("WebP whose EXIF entries share their bytes", _exif_in_webp),
    Bomb(
        "WebP of 200,000 chunks",
        lambda: b"RIFF" + struct.pack("<I", len(WEBP) - 8 + 8 * 200_000) + WEBP[8:] + b"teSt\0\0\0\0" * 200_000,
        "65,536 chunks",
    ),
    Bomb(
        "GIF with zeros in place of its blocks",
        lambda: b"GIF89a" + struct.pack("<HHBBB", 4, 4, 0, 0, 0) + bytes(2**24),
        "more bytes than any program writes",
    ),
    Bomb(
        "BMP of 2^31 × 2^31",
        lambda: b"BM" + struct.pack("<IIIIiiHHII", 9, 0, 54, 40, 2**31 - 1, 2**31 - 1, 1, 24, 0, 0) + bytes(16),
        TOO_LONG,
    ),
    Bomb(
        "JPEG 2000 of 100,000 boxes in its header",
        lambda: JPEG_2000[:12] + struct.pack(">I4s", 8 + 8 * 100_000, b"jp2h") + b"\0\0\0\x08teSt" * 100_000,
        "65,536 boxes",
    ),
    Bomb("NPY with a header of 4 GiB", lambda: _npy(b"{", 2**32 - 1), "its NPY header is damaged"),
    Bomb("NPY with a header nested 60,000 deep", lambda: _npy(b"(" * 60_000), "its NPY header is damaged"),
    Bomb(
        "NPY of 10^15 pixels",
        lambda: _npy(b"{'descr': '|u1', 'fortran_order': False, 'shape': (1000000, 1000000000, 3), }\n"),
        TOO_LONG,
    ),
    Bomb("text of 4 GiB", lambda: b"a" * 2**20, "is not a picture that edgeconv reads", size=4 * GIB),
)


class Endless(io.RawIOBase):
    """A stream that begins with some bytes and never ends; counts what was read of it."""

    def __init__(self, begin: bytes, more: Callable[[int], bytes]) -> None:
        super().__init__()
        self._begin, self._more = begin, more
        self.given = 0

    def read(self, size: int = -1) -> bytes:  # type: ignore[override]
        if size < 0:
            raise AssertionError("an endless stream was read to its end")
        piece = self._begin[self.given : self.given + size]
        piece += self._more(size - len(piece))
        self.given += size
        return piece
