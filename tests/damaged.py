"""Files that are not pictures, or no longer: name, content, and what the one line of error must say."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

import numpy as np
from picture_files import noisy, png, png_chunk, png_head, saved, tiff
from PIL import Image

SUFFIX_OF = {
    "JPEG": ".jpg",
    "TIFF": ".tif",
    "BigTIFF": ".tif",
    "WebP": ".webp",
    "BMP": ".bmp",
    "NPY": ".npy",
    "GIF": ".gif",
}


@dataclass(frozen=True)
class BadFile:
    """A file to refuse, with words that its message must hold beside its name."""

    what: str
    data: bytes
    says: str
    remedy: str = "export or download it again"

    @property
    def name(self) -> str:
        """A file name with the suffix of the format that is named first."""
        named = (SUFFIX_OF[word] for word in self.what.split() if word in SUFFIX_OF)
        return self.what.replace(" ", "-") + next(named, ".png")


def _cut(data: bytes, share: float) -> bytes:
    return data[: int(len(data) * share)]


def _with_byte(data: bytes, place: int, change: int = 0x55) -> bytes:
    changed = bytearray(data)
    changed[place] ^= change
    return bytes(changed)


def _npy(shape: tuple[int, ...], dtype: str, stored: int) -> bytes:
    """An NPY header for `shape` and `stored` bytes of zeros."""
    words = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    words += b" " * (-(len(words) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(words)) + words + bytes(stored)


def _bmp_head(width: int, height: int, bits: int) -> bytes:
    return b"BM" + struct.pack("<IHHIIiiHHIIiiII", 54, 0, 0, 54, 40, width, height, 1, bits, 0, 0, 0, 0, 0, 0)


def _with_wrong_checksum(data: bytes, place: int) -> bytes:
    """`data` with the last byte of the zlib stream at `place` changed, which no decoder needs for the pixels."""
    stream = zlib.decompressobj()
    stream.decompress(data[place:])
    return _with_byte(data, len(data) - len(stream.unused_data) - 1)


def _with_shorter_strip(data: bytes) -> bytes:
    """A TIFF whose directory says that its strip is three bytes shorter than it is: all its pixels are there."""
    place = data.index(struct.pack("<HHI", 279, 4, 1)) + 8
    (length,) = struct.unpack_from("<I", data, place)
    return data[:place] + struct.pack("<I", length - 3) + data[place + 4 :]


PNG = png(noisy())
JPEG = saved(noisy(), "JPEG")
RESTARTING = saved(noisy(), "JPEG", subsampling=0, restart_marker_blocks=1)
PROGRESSIVE = saved(noisy(), "JPEG", progressive=True)
TIFF = saved(noisy(), "TIFF")
DEFLATED = saved(noisy(), "TIFF", compression="tiff_deflate")
RARE = tiff(noisy()).replace(b"\x03\x01\x03\x00\x01\x00\x00\x00\x01\x00", b"\x03\x01\x03\x00\x01\x00\x00\x00\x52\xc3")
FLIPPED = _with_wrong_checksum(DEFLATED, 8)
WEBP = saved(noisy(), "WEBP")
BMP = saved(noisy(), "BMP")
GIF = saved(noisy(), "GIF")
MOVING = saved(noisy(), "GIF", save_all=True, append_images=[Image.fromarray(255 - noisy())], comment=b"two frames")
JPEG_2000 = saved(noisy(), "JPEG2000")
AVIF = saved(noisy(), "AVIF")

FORMATS = "PNG, JPEG, TIFF, WebP, BMP, NPY, GIF, PNM, JPEG 2000, AVIF"
CONVERT = "convert it to an interleaved 8- or 16-bit RGB TIFF or PNG"
RESAVE = "save a height × width × 3 or 1 array of uint8, uint16 or float32 with numpy.save"

BAD_FILES = (
    BadFile("empty", b"", "the file is empty (0 bytes)"),
    BadFile("one byte", b"\x89", "is not a picture that edgeconv reads", FORMATS),
    BadFile("text called .png", b"Dear diary,\n", "is not a picture that edgeconv reads", FORMATS),
    BadFile("a HEIC", b"\0\0\0\x18ftypheic" + bytes(64), "is HEIC, which edgeconv does not read", FORMATS),
    BadFile("GIF cut in its header", GIF[:9], "the file is cut short"),
    BadFile("GIF cut in its pixels", _cut(GIF, 0.8), "the file is cut short"),
    BadFile(
        "GIF without a frame", b"GIF89a" + struct.pack("<HHBBB", 4, 4, 0, 0, 0) + b";", "is damaged or not complete"
    ),
    BadFile("moving GIF cut before its second frame", MOVING[: MOVING.index(b"two frames")], "or not complete"),
    BadFile("GIF with data that ends early", GIF[: GIF.index(b"\x08\xff", 781) + 257] + b"\0;", "it cannot be decoded"),
    BadFile("PPM of text of 0 pixels", b"P3 0 4 255\n", "its header says 0×4 pixels"),
    BadFile("PPM whose header is cut", b"P6\n40 30", "the file is cut short"),
    BadFile("PGM above its maximum", b"P5 2 1 9\n\x09\x0a", "a sample is 10, and its header says 9 at most"),
    BadFile("PGM of text above its maximum", b"P2 2 1 9\n9 10\n", "a sample is 10, and its header says 9 at most"),
    BadFile("PGM of words", b"P2 2 1 9\nnine ten\n", "a sample is not a whole number"),
    BadFile("PPM without a maximum", b"P6 2 1 none\n" + bytes(6), "its header is not a PNM header"),
    BadFile("PPM of text with a sample missing", b"P3 1 1 255 1 2\n", "(1 samples are missing)"),
    BadFile("JPEG 2000 cut in its boxes", JPEG_2000[:40], "the file is cut short"),
    BadFile(
        "JPEG 2000 of five components",
        _with_byte(JPEG_2000, JPEG_2000.index(b"\xff\x51") + 39, 6),
        "5 components"[2:],
        "convert it to PNG or TIFF",
    ),
    BadFile("AVIF cut in its tables", AVIF[:80], "the file is cut short"),
    BadFile("AVIF without sides", AVIF.replace(b"ispe", b"free"), "it holds no picture"),
    BadFile("AVIF whose data is zero", AVIF[:-200] + bytes(200), "its compression (AV1)", "convert it to PNG"),
    BadFile("PNG cut in its header", PNG[:30], "the file is cut short"),
    BadFile("PNG with a changed pixel byte", _with_byte(PNG, len(PNG) // 2), "chunk 'IDAT' is damaged"),
    BadFile(
        "PNG whose checksum is right and whose pixels are not",
        png_head(40, 30) + png_chunk(b"IDAT", b"not what zlib writes") + png_chunk(b"IEND", b""),
        "it cannot be decoded",
    ),
    BadFile(
        "PNG with an unknown colour type",
        png_head(4, 4, colour_type=5) + png_chunk(b"IEND", b""),
        "its header is not a PNG header",
    ),
    BadFile("PNG of 0 pixels", png_head(0, 10) + png_chunk(b"IEND", b""), "its header says 0×10 pixels"),
    BadFile("PNG with numbers for a chunk's name", PNG[:33] + bytes(64), "there is no chunk at byte 33"),
    BadFile("JPEG start alone", JPEG[:3], "the file is cut short"),
    BadFile("JPEG cut in its tables", _cut(JPEG, 0.05), "the file is cut short (a segment"),
    BadFile("JPEG cut in its pixels", _cut(JPEG, 0.7), "the file is cut short (no end-of-image"),
    BadFile("JPEG with a byte too many", JPEG[:2] + b"\x00" + JPEG[2:], "is not a picture", FORMATS),
    BadFile("JPEG with a wrong length", JPEG[:5] + b"\x11" + JPEG[6:], "there is no marker at byte 21"),
    BadFile("JPEG with no frame", b"\xff\xd8\xff\xd9", "it has no frame header"),
    BadFile(
        "JPEG of 12 bits",
        b"\xff\xd8\xff\xc1\x00\x0b\x0c\x00\x10\x00\x10\x01\x01\x11\x00\xff\xd9",
        "JPEG of 12 bits is not supported",
        "convert it to a 16-bit PNG or TIFF",
    ),
    BadFile(
        "JPEG with restart markers whose second half is zero and whose end is there",
        RESTARTING[: len(RESTARTING) // 2] + bytes(len(RESTARTING) // 2 - 2) + JPEG[-2:],
        "its compressed data is damaged (",
    ),
    BadFile(
        "JPEG with restart markers cut, with an end marker put behind",
        _cut(RESTARTING, 0.9) + JPEG[-2:],
        "of 39 restart markers are there",
    ),
    BadFile(
        "JPEG with a restart marker out of order",
        RESTARTING.replace(b"\xff\xd3", b"\xff\xd5", 1),
        "its restart markers are out of order",
    ),
    BadFile("TIFF header alone", TIFF[:4], "the file is cut short (its directory"),
    BadFile(
        "TIFF whose strips are garbage",
        DEFLATED[:8] + b"\xff" * (len(DEFLATED) // 2) + DEFLATED[8 + len(DEFLATED) // 2 :],
        "it cannot be decoded",
    ),
    BadFile("TIFF of JPEG XL", RARE, "its compression (JPEG XL) is not supported here", f"--tile 1024), or {CONVERT}"),
    BadFile("deflated TIFF whose checksum is wrong", FLIPPED, "strip or tile 1 is damaged"),
    BadFile("deflated TIFF whose strip is cut", _with_shorter_strip(DEFLATED), "strip or tile 1 is damaged"),
    BadFile(
        "TIFF with a field twice",
        tiff(noisy()).replace(struct.pack("<HH", 278, 4), struct.pack("<HH", 277, 4)),
        "its directory has field 277 twice",
    ),
    BadFile(
        "16-bit TIFF in planes",
        tiff(noisy().astype(np.uint16), planar=2),
        "its layout (3 samples of 16 bits) is not supported",
        f"--tile 1024), or {CONVERT}",
    ),
    BadFile("TIFF in Lab", tiff(noisy(), photometric=8), "its colour space (photometric interpretation 8)", CONVERT),
    BadFile("TIFF without strips", tiff(noisy()).replace(b"\x11\x01\x04\x00", b"\x12\x81\x04\x00"), "where its pixels"),
    BadFile("WebP start alone", WEBP[:10], "is not a picture", FORMATS),
    BadFile("WebP with a chunk too long", WEBP[:18] + b"\x7f" + WEBP[19:], "chunk 'VP8 ' is not complete"),
    BadFile("WebP without a picture", b"RIFF\x04\x00\x00\x00WEBP", "is cut short"),
    BadFile(
        "WebP whose lossy picture ends in its header",
        b"RIFF\x12\x00\x00\x00WEBPVP8 \x06\x00\x00\x00\x00\x00\x00\x9d\x01\x2a",
        "is cut short",
    ),
    BadFile("BMP start alone", BMP[:10], "is damaged or not complete"),
    BadFile("BMP of 7 bits", _bmp_head(4, 4, 7), "is damaged or not complete"),
    BadFile("NPY header cut", _npy((4, 6, 3), "<f4", 0)[:20], "its NPY header is damaged"),
    BadFile(
        "NPY header without its closing brace",
        _npy((4, 6, 3), "<f4", 288).replace(b"}", b" "),
        "its NPY header is damaged",
    ),
    BadFile("NPY of text", _npy((4,), "<U4", 64), "is not a picture", RESAVE),
    BadFile("NPY of four dimensions", _npy((2, 2, 2, 3), "<f4", 96), "is not a picture", RESAVE),
    BadFile("NPY in CHW", _npy((3, 4, 6), "<f4", 288), "is not a picture", RESAVE),
    BadFile(
        "a side that no decoder takes",
        _npy((1, 2_000_000, 3), "|u1", 6_000_000),
        "no side may be above 1,000,000",
        "cut it into parts",
    ),
)
