"""Picture files made by hand or by Pillow, so that edgeconv's own writer does not vouch for its reader; and pipes."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from problems import random_image

from edgeconv.errors import EdgeconvError
from edgeconv.io.resize import Resized, resize_files

GREY_TIFF, RGB_TIFF = 1, 2
UNSIGNED, FLOAT = 1, 3

ORIENTATIONS = {
    1: lambda pixels: pixels,
    2: lambda pixels: pixels[:, ::-1],
    3: lambda pixels: pixels[::-1, ::-1],
    4: lambda pixels: pixels[::-1],
    5: lambda pixels: pixels.swapaxes(0, 1),
    6: lambda pixels: pixels.swapaxes(0, 1)[:, ::-1],
    7: lambda pixels: pixels.swapaxes(0, 1)[::-1, ::-1],
    8: lambda pixels: pixels.swapaxes(0, 1)[::-1],
}
"""How a stored picture is turned upright (EXIF 2.32, table 6), by orientation."""


def smooth_image(height: int, width: int) -> np.ndarray:
    """HWC uint8 that survives JPEG almost unchanged, and looks different from every side."""
    y, x = np.mgrid[0:height, 0:width]
    planes = (60 + 120 * x // width, 40 + 150 * y // height, 200 - 60 * x // width - 80 * y // height)
    return np.stack(planes, axis=-1).astype(np.uint8)


def saved(pixels: np.ndarray, format: str, mode: str | None = None, **options: Any) -> bytes:
    """`pixels` (8 bits) as a file, by Pillow, converted to Pillow's `mode` first."""
    image = Image.fromarray(pixels)
    stream = io.BytesIO()
    (image.convert(mode) if mode else image).save(stream, format, **options)
    return stream.getvalue()


def exif(orientation: int) -> bytes:
    """An EXIF block (`Exif\\0\\0` and a TIFF directory) with an orientation."""
    block = Image.Exif()
    block[274] = orientation
    return block.tobytes()


def png_chunk(kind: bytes, body: bytes) -> bytes:
    """One PNG chunk with its checksum."""
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png_head(width: int, height: int, bits: int = 8, colour_type: int = 2) -> bytes:
    """A PNG's signature and IHDR chunk."""
    return b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour_type, 0, 0, 0))


def png(pixels: np.ndarray, extra: bytes = b"", level: int = -1) -> bytes:
    """A PNG of 8 or 16 bits, grey, grey + alpha, RGB or RGBA by its channels, with `extra` chunks before the pixels."""
    height, width, channels = pixels.shape
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    rows = pixels.astype(pixels.dtype.newbyteorder(">")).reshape(height, -1)
    body = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows), level)
    head = png_head(width, height, 8 * pixels.dtype.itemsize, kind)
    return head + extra + png_chunk(b"IDAT", body) + png_chunk(b"IEND", b"")


def tiff(
    pixels: np.ndarray,
    *,
    photometric: int | None = None,
    orientation: int = 1,
    extra_samples: int | None = None,
    planar: int = 1,
    order: str = "<",
    big: bool = False,
    next_directory: int = 0,
) -> bytes:
    """An uncompressed TIFF in one strip (or one a plane), as TIFF 6.0 or BigTIFF."""
    height, width, channels = pixels.shape
    stored = pixels.astype(pixels.dtype.newbyteorder(order))
    data = (stored if planar == 1 else stored.transpose(2, 0, 1)).tobytes()
    offset_code, count_code, header_bytes = ("Q", "Q", 16) if big else ("I", "H", 8)
    room = struct.calcsize(offset_code)
    strips = 1 if planar == 1 else channels
    strip_bytes = len(data) // strips
    fields: dict[int, tuple[str, tuple[int, ...]]] = {
        256: ("I", (width,)),
        257: ("I", (height,)),
        258: ("H", (8 * pixels.dtype.itemsize,) * channels),
        259: ("H", (1,)),
        262: ("H", (photometric if photometric is not None else RGB_TIFF if channels >= 3 else GREY_TIFF,)),
        273: ("I", tuple(header_bytes + strip_bytes * index for index in range(strips))),
        274: ("H", (orientation,)),
        277: ("H", (channels,)),
        278: ("I", (height,)),
        279: ("I", (strip_bytes,) * strips),
        282: ("rational", (72, 1)),
        284: ("H", (planar,)),
        339: ("H", (FLOAT if pixels.dtype.kind == "f" else UNSIGNED,) * channels),
    }
    if extra_samples is not None:
        fields[338] = ("H", (extra_samples,))
    entries, beyond, start = b"", b"", header_bytes + len(data)
    for tag, (code, values) in sorted(fields.items()):
        kind, count, packed = (5, 1, "II") if code == "rational" else ({"H": 3, "I": 4}[code], len(values), code)
        value = struct.pack(order + (packed if code == "rational" else code * len(values)), *values)
        if len(value) > room:
            place = struct.pack(order + offset_code, start + len(beyond))
            beyond += value + b"\0" * (len(value) % 2)
            value = place
        entries += struct.pack(order + "HH" + offset_code, tag, kind, count) + value.ljust(room, b"\0")
    directory = (
        struct.pack(order + count_code, len(fields)) + entries + struct.pack(order + offset_code, next_directory)
    )
    mark = b"II" if order == "<" else b"MM"
    head = struct.pack(order + "HHH", 43, 8, 0) if big else struct.pack(order + "H", 42)
    return mark + head + struct.pack(order + offset_code, start + len(beyond)) + data + beyond + directory


def pnm(pixels: np.ndarray, largest: int | None = None, text: bool = False) -> bytes:
    """A PBM (`largest` 1), PGM or PPM, binary or as text; samples as they are, but of a bitmap 1 is white here too."""
    height, width, channels = pixels.shape
    largest = largest or int(np.iinfo(pixels.dtype).max)
    bitmap = largest == 1
    kind = (1 if bitmap else 2 if channels == 1 else 3) + (0 if text else 3)
    head = f"P{kind}\n# made by hand\n{width} {height}\n{'' if bitmap else f'{largest}'}".rstrip() + "\n"
    values = 1 - pixels if bitmap else pixels
    if text:
        body = "\n".join(" ".join(map(str, row.ravel())) for row in values).encode() + b"\n"
    elif bitmap:
        body = np.packbits(values[:, :, 0], axis=1).tobytes()
    else:
        body = values.astype(">u2" if largest > 255 else np.uint8).tobytes()
    return head.encode() + body


class Piped:
    """Standard input or output: a pipe, or a terminal."""

    def __init__(self, stream: bytes | io.IOBase = b"", terminal: bool = False) -> None:
        self.buffer = io.BytesIO(stream) if isinstance(stream, bytes) else stream
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


def noisy(height: int = 40, width: int = 60) -> np.ndarray:
    """HWC uint8 noise: files of it are long enough to be cut in the middle of their pixels."""
    return random_image(height, width, "uint8", seed=5)


def resize_file(source: Path, sizes: Iterable[int], **options: Any) -> Resized:
    """One picture by `resize_files`, whose error is raised."""
    ((_, resized),) = resize_files([source], sizes, **options)
    if isinstance(resized, EdgeconvError):
        raise resized
    return resized
