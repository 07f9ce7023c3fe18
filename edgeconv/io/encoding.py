"""The only door for pixels that go out: the bytes of a file by format, quality and level, and the options for them.

    write_image   by the suffix: 8 bits to all formats that are written, 16 bits to PNG, TIFF and NPY, float32 and
                  float64 to TIFF and NPY. One channel is a grey file, WebP excepted, which has no grey; an NPY has the
                  shape of the array
    encode_image  the bytes of such a file, or of one with all pictures of a bank: TIFF, a page each, or NPY

OpenCV encodes all but NPY and PNG, which png.py writes faster. What it would do quietly wrong (floats saturated to PNG,
16 bits cut to 8) is refused here.
"""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.chains import Chain
from edgeconv.core.filters import RGB_CHANNELS, Filter
from edgeconv.core.option import listed
from edgeconv.errors import ImageWriteError, MemoryLimitError, UsageError
from edgeconv.io.atomic import NameTakenError, write_bytes_atomically
from edgeconv.io.decoding import failures, swap_red_and_blue
from edgeconv.io.files import is_standard_stream
from edgeconv.io.formats import FORMATS, WRITTEN, Format, npy
from edgeconv.io.formats.base import BadPicture
from edgeconv.io.png import LEVEL, LEVELS, encode_png

ALL_OF_A_BANK = ("TIFF", "NPY")
"""Formats of which one file holds all that a filter bank gives."""

QUALITY_FLAGS = {"JPEG": "IMWRITE_JPEG_QUALITY", "WebP": "IMWRITE_WEBP_QUALITY"}
"""Formats that can lose something, and OpenCV's word for how little. JPEG is 95 unless asked, WebP loses nothing."""

BANK_FORMAT = "tiff"
"""Of a filter bank's outputs in a batch, unless another is asked for: a picture has one output file there."""


def write_image(
    pixels: NDArray[Any], destination: Path | str, *, format: str | None = None, overwrite: bool = False
) -> None:
    """Write `pixels` (HWC with 3 channels in RGB order, or 1; or HW) to a file, completely or not at all.

    An NPY has the shape of `pixels`; the other formats have no axis for one channel.

    The suffix of `destination` names the format unless `format` does (a name or suffix of the table, needed only for
    `-`, standard output, where PNG is the default for whole numbers and NPY for floats). Raises ImageWriteError
    where the format cannot hold the type or size, the file cannot be written, or exists and `overwrite` is not set.
    """
    encoded = encode_image(pixels, destination, format=format)
    try:
        write_bytes_atomically(destination, encoded, replace=overwrite)
    except NameTakenError:
        raise NameTakenError(f"{destination}: exists: pass overwrite=True, or choose another name.") from None


def encode_image(
    pixels: NDArray[Any],
    destination: Path | str,
    *,
    format: str | None = None,
    bank: int = 0,
    threads: int | None = None,
    quality: int | None = None,
    png_level: int | None = None,
) -> bytes | memoryview:
    """The bytes that `write_image` would write: PNG by up to `threads` threads, JPEG and WebP at `quality` 1 to 100.

    `bank` is the number of filters of a bank: one file holds all its pictures, TIFF as pages, NPY as one array.
    `png_level` is 0 (stored) to 9 (smallest); None is the fastest level that compresses. Raises ImageWriteError.
    """
    if not isinstance(pixels, np.ndarray):
        raise ImageWriteError(f"{destination}: a {type(pixels).__name__} is not a picture: use a NumPy array.")
    is_picture = pixels.ndim == 2 or (pixels.ndim == 3 and (bank or pixels.shape[2] in (1, 3)))
    if not is_picture or 0 in pixels.shape:
        raise ImageWriteError(
            f"{destination}: an array of shape {pixels.shape} is not a picture: use HWC with 1 or 3 channels."
        )
    entry = _entry_for(pixels, destination, format)
    if bank and entry.name not in ALL_OF_A_BANK:
        raise ImageWriteError(f"{destination}: {entry.name} holds one picture, not {bank}: use .tiff or .npy.")
    pixels = pixels.astype(pixels.dtype.newbyteorder("="), copy=False)  # OpenCV ignores the byte order of an array
    try:
        if entry.name == "NPY":
            return npy.encode(pixels)
        if entry.name == "PNG":
            return encode_png(pixels, threads, LEVEL if png_level is None else png_level)
        return _by_opencv(pixels, entry, bank, quality)
    except BadPicture as bad:
        raise ImageWriteError(f"{destination}: {entry.name}: {bad.reason}: {bad.remedy}.") from None
    except MemoryError:
        height, width = pixels.shape[:2]
        raise MemoryLimitError(
            f"{destination}: {entry.name}: not enough memory for {width:,}×{height:,} pixels ({pixels.nbytes:,} bytes "
            "and an encoded copy): use a smaller picture."
        ) from None


def pictures_of(output: NDArray[Any], filters: int) -> list[NDArray[Any]]:
    """The pictures in the output (HWC) of a bank, one for each filter: grey, or RGB of three channels a filter."""
    return [output[:, :, number::filters] for number in range(filters)]


def _by_opencv(pixels: NDArray[Any], entry: Format, bank: int, quality: int | None) -> memoryview:
    """A file's bytes, of a bank with a page each. Raises BadPicture, MemoryError."""
    pages = [
        np.ascontiguousarray(swap_red_and_blue(page) if page.shape[2:] == (RGB_CHANNELS,) else page)
        for page in (pictures_of(pixels, bank) if bank else [pixels])
    ]
    with failures("encoded", "use another format") as cv2:
        flags = [] if quality is None else [getattr(cv2, QUALITY_FLAGS[entry.name]), quality]
        encode, content = (cv2.imencodemulti, pages) if bank else (cv2.imencode, pages[0])
        done, encoded = encode(entry.suffixes[0], content, flags)
    if not done:
        raise BadPicture("it cannot be encoded", "use another format")
    buffer: NDArray[np.uint8] = encoded
    return buffer.data


def _entry_for(pixels: NDArray[Any], destination: Path | str, format: str | None) -> Format:
    """The format to write, from `format`, or from the suffix, or for standard output from the type.

    Raises ImageWriteError where it cannot hold the pixels.
    """
    dtype, longest = pixels.dtype.name, max(pixels.shape[:2])
    if format is None and is_standard_stream(destination):
        format = "npy" if pixels.dtype.kind == "f" else "png"
    suffix = PurePath(destination).suffix.lower() if format is None else "." + format.lower().removeprefix(".")
    if suffix not in WRITTEN:
        raise ImageWriteError(
            f"{destination}: '{suffix}' is not a format that edgeconv writes: use one of {', '.join(WRITTEN)}."
        )
    entry = WRITTEN[suffix]
    if dtype not in entry.writes:
        able = [other.suffixes[0] for other in FORMATS if dtype in other.writes]
        raise ImageWriteError(
            f"{destination}: {entry.name} cannot hold {dtype} samples: use {' or '.join(able)}."
            if able
            else f"{destination}: no format holds {dtype} samples: convert to uint8, uint16 or float32."
        )
    if longest > entry.max_side:
        raise ImageWriteError(
            f"{destination}: {entry.name} cannot hold a side of {longest:,} pixels "
            f"(at most {entry.max_side:,}): use .tiff or .npy."
        )
    return entry


# --- options of commands ----------------------------------------------------------------------------------------------


def parse_format(text: str | None) -> str | None:
    """A suffix of the table of formats, given with or without its dot, without it. Raises UsageError."""
    if text is None:
        return None
    suffix = "." + text.lower().lstrip(".")
    if suffix not in WRITTEN:
        known = ", ".join(sorted(known.lstrip(".") for known in WRITTEN))
        raise UsageError(f"--format '{text}' is not one of {known}.")
    return suffix.lstrip(".")


def format_of_name(name: str | None) -> str | None:
    """The suffix of an output's name without its dot, where it is that of a format."""
    suffix = PurePath(name or "").suffix.lower()
    return suffix.lstrip(".") if suffix in WRITTEN else None


def settle_bank(format: str | None, chosen: Filter | Chain, template: str) -> str | None:
    """The format that outputs of `chosen` get: as asked for, and of a bank TIFF where nothing was. Raises UsageError.

    `template` is that of `--name`, which may end in a format's suffix.
    """
    if not chosen.labels:
        return format
    named = format_of_name(template)
    asked = format or named or BANK_FORMAT
    if WRITTEN[f".{asked}"].name not in ALL_OF_A_BANK:
        raise UsageError(
            f"A batch writes one file for each picture, and {asked} holds one of the {chosen.filters} that a filter "
            "bank gives: use --format tiff (a page each) or npy."
        )
    return format or (None if asked == named else asked)


def parse_quality(quality: int | None, format: str | None) -> int | None:
    """1 to 100, for a lossy format. Raises UsageError."""
    if quality is None:
        return None
    able = sorted(suffix.lstrip(".") for suffix, entry in WRITTEN.items() if entry.name in QUALITY_FLAGS)
    if format not in able:
        raise UsageError(f"--quality applies to lossy formats: use it with --format {listed(tuple(able))}.")
    if not 1 <= quality <= 100:
        raise UsageError(f"--quality {quality} is not a whole number from 1 to 100.")
    return quality


def parse_png_level(level: int | None, format: str | None) -> int | None:
    """A level of png.py, where outputs are or may be PNG. Raises UsageError."""
    if level is None:
        return None
    if format not in (None, "png"):
        raise UsageError(f"--png-level is for PNG, and --format is {format}: leave one of the two out.")
    if level not in LEVELS:
        raise UsageError(f"--png-level {level} is not a whole number from {LEVELS[0]} to {LEVELS[-1]}.")
    return level
