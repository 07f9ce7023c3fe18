"""Mutated files of every format, read in this process: the same cases for tests and scripts/fuzz.py.

A case is a number: it decides the file and the damage. What must hold of each: the reader returns a picture of one or
three channels, or raises an error of one line that names the file, and the same once more.

    refused      the damage is an error
    said         the picture is read, other than before, and its decoder complained: a note, an error under --strict
    unseen       the picture is read, other than before, and nobody noticed
    harmless     the picture is the same

The first time a PNG is decoded by our own code, the second time by OpenCV.
"""

from __future__ import annotations

import io
import random
import struct
import zlib
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from unittest.mock import patch

import numpy as np
from picture_files import exif, noisy, png, png_chunk, pnm, saved, smooth_image, tiff

from edgeconv.errors import EdgeconvError, ImageReadError, MemoryLimitError
from edgeconv.io.formats import png as png_format
from edgeconv.io.read_limits import ReadRules
from edgeconv.io.reading import SAID_NOTE, Picture, decode_image

RULES = ReadRules(max_pixels=2**20, max_bytes=2**24)
EXTREMES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)
NONE_SO_LARGE = 2**62
PNGS, MENDED = ("PNG", "PNG stored", "PNG palette", "PNG 16 bits"), ", sums mended"


class Broken(AssertionError):
    """A case that breaks what must hold."""


@dataclass(frozen=True)
class Case:
    """One damaged file."""

    number: int
    kind: str
    data: bytes
    mended: bool = False
    """Whether the sums of a PNG are right, so that nobody can notice damage by them."""

    @property
    def label(self) -> str:
        """What it is counted as."""
        return f"{self.kind}{MENDED if self.mended else ''}"


@cache
def whole_files() -> dict[str, bytes]:
    """One small file of every sort that is read by a path of its own."""
    picture, smooth = noisy(20, 30), smooth_image(20, 30)
    arrays = {}
    for dtype in ("u1", "f4", ">f8"):
        stream = io.BytesIO()
        np.save(stream, picture.astype(dtype))
        arrays[f"NPY {dtype}"] = stream.getvalue()
    return arrays | {
        "PNG": png(picture, extra=png_chunk(b"eXIf", exif(5).removeprefix(b"Exif\0\0"))),
        "PNG palette": saved(picture, "PNG", mode="P"),
        "PNG stored": png(picture, level=0),
        "PNG 16 bits": png(picture.astype(np.uint16) * 257),
        "JPEG": saved(picture, "JPEG", exif=exif(6)),
        "JPEG with restarts": saved(picture, "JPEG", restart_marker_blocks=1),
        "JPEG progressive": saved(smooth, "JPEG", progressive=True),
        "JPEG CMYK": saved(picture, "JPEG", mode="CMYK"),
        "TIFF": saved(picture, "TIFF"),
        "TIFF deflate": saved(smooth, "TIFF", compression="tiff_deflate"),
        "TIFF LZW": saved(picture, "TIFF", compression="tiff_lzw"),
        "TIFF PackBits": saved(smooth, "TIFF", compression="packbits"),
        "TIFF JPEG": saved(smooth, "TIFF", compression="jpeg"),
        "TIFF fax": saved(picture, "TIFF", mode="1", compression="group4"),
        "BigTIFF": tiff(picture.astype(np.uint16), big=True),
        "BigTIFF big-endian": tiff(picture.astype(np.float32), big=True, order=">"),
        "WebP": saved(picture, "WEBP", exif=exif(3)),
        "WebP lossless": saved(picture, "WEBP", lossless=True),
        "BMP": saved(picture, "BMP"),
        "GIF": saved(picture, "GIF"),
        "PPM": pnm(picture),
        "PGM text of 10 bits": pnm(picture[:, :, :1].astype(np.uint16) * 4, largest=1023, text=True),
        "PBM": pnm(picture[:, :, :1] // 128, largest=1),
        "JPEG 2000": saved(picture, "JPEG2000"),
        "AVIF": saved(smooth, "AVIF", quality=60),
    }


def labels() -> set[str]:
    """What cases are counted as."""
    return {*whole_files(), *(kind + MENDED for kind in PNGS)}


@cache
def whole_pixels(kind: str) -> np.ndarray:
    """The pixels of a whole file."""
    return decode_image(whole_files()[kind], "whole").pixels


def case(number: int) -> Case:
    """The damaged file of a number; each kind in turn."""
    chance = random.Random(number)
    kinds = list(whole_files())
    kind = kinds[number % len(kinds)]
    data = bytearray(whole_files()[kind])
    for _ in range(chance.choice((1, 1, 1, 2, 4, 8))):
        chance.choices((_flip, _overwrite, _number, _cut, _remove, _repeat, _splice), (8, 2, 3, 1, 1, 1, 1))[0](
            data, chance
        )
    mended = kind in PNGS and chance.randrange(2) == 0
    if mended:
        _mend(data, chance)
    return Case(number, kind, bytes(data), mended)


def run(number: int) -> tuple[str, str]:
    """The kind of a case and its outcome. Raises Broken."""
    made = case(number)
    whole, error = _read(made.data, 0)
    again, second_error = _read(made.data, NONE_SO_LARGE)
    if error is not None and ("\n" in str(error) or not str(error).startswith("damaged")):
        raise Broken(f"its error is not one line that begins with the name: {error!r}")
    if str(error) != str(second_error):
        raise Broken(f"once: {error or 'read'}; once more: {second_error or 'read'}")
    if whole is None or again is None:
        return made.label, "refused"
    if not _same(whole.pixels, again.pixels):
        raise Broken("it gives other pixels when it is read once more")
    if whole.pixels.ndim != 3 or whole.pixels.shape[2] not in (1, 3) or not whole.pixels.flags.c_contiguous:
        raise Broken(f"its pixels are {whole.pixels.shape}")
    if _same(whole.pixels, whole_pixels(made.kind)):
        return made.label, "harmless"
    return made.label, "said" if any(note.startswith(SAID_NOTE) for note in whole.notes) else "unseen"


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def _read(data: bytes, ours_from: int) -> tuple[Picture | None, EdgeconvError | None]:
    try:
        with patch.object(png_format, "LEAST_BYTES", ours_from):
            return decode_image(data, "damaged", RULES), None
    except (ImageReadError, MemoryLimitError) as error:
        return None, error


# --- damage -------------------------------------------------------------------------------------------------------


def _place(data: bytearray, chance: random.Random) -> int:
    """Mostly in the headers."""
    return chance.randrange(min(len(data), chance.choice((64, 256, len(data))))) if data else 0


def _flip(data: bytearray, chance: random.Random) -> None:
    if data:
        data[_place(data, chance)] ^= 1 << chance.randrange(8)


def _overwrite(data: bytearray, chance: random.Random) -> None:
    if data:
        data[_place(data, chance)] = chance.randrange(256)


def _number(data: bytearray, chance: random.Random) -> None:
    """A field of 1 to 8 bytes with a value at the edge of what it holds."""
    size = chance.choice((1, 2, 4, 8))
    place = _place(data, chance)
    value = chance.choice(EXTREMES) & (1 << 8 * size) - 1
    data[place : place + size] = value.to_bytes(size, chance.choice(("little", "big")))


def _cut(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(len(data) + 1) :]


def _remove(data: bytearray, chance: random.Random) -> None:
    place = _place(data, chance)
    del data[place : place + chance.randrange(1, 33)]


def _repeat(data: bytearray, chance: random.Random) -> None:
    place = _place(data, chance)
    piece = data[place : place + chance.randrange(1, 65)]
    data[place:place] = piece * chance.choice((1, 2, 64))


def _splice(data: bytearray, chance: random.Random) -> None:
    """A piece of another file in the place of one of this."""
    other = chance.choice(list(whole_files().values()))
    start = chance.randrange(len(other))
    place = _place(data, chance)
    size = chance.randrange(1, 129)
    data[place : place + size] = other[start : start + size]


def _mend(data: bytearray, chance: random.Random) -> None:
    """Set the sums of a PNG's chunks right, as far as they are there, and perhaps that of its pixels."""
    place = len(png_format.SIGNATURE)
    while place + 12 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, place)
        stop = place + 8 + length
        if stop + 4 > len(data):
            return
        if kind == b"IDAT" and chance.randrange(2):
            with suppress(zlib.error):
                pixels = zlib.decompressobj(-15).decompress(data[place + 10 : stop], RULES.max_bytes)
                data[stop - 4 : stop] = zlib.adler32(pixels).to_bytes(4)
        data[stop : stop + 4] = zlib.crc32(data[place + 4 : stop]).to_bytes(4)
        place = stop + 4
