"""The only door for pixels: files in, files out. Inside the door pictures are RGB, HWC and C-contiguous.

    read_image    PNG, JPEG, TIFF, WebP, BMP, NPY, or `-` for standard input, told by content and not by name
                  grey is spread to three equal channels; alpha is dropped; both are noted
                  8 bits give uint8, 16 bits uint16, floats float32 (a float16 NPY stays float16)
                  EXIF and TIFF orientation is applied; of several frames or pages the first is taken
    longest_side  what the header of a file says, no pixel read
    write_image   by the suffix: 8 bits to all of them, 16 bits to PNG, TIFF and NPY, float32 to TIFF and NPY

OpenCV decodes, but for a few TIFFs that Pillow does, and encodes all but PNG, which png.py writes faster; always from
and to memory, so that no path passes through it. What it does quietly wrong (a truncated JPEG, floats saturated to
PNG, 16 bits cut to 8) is caught here.
`import cv2` comes late: `import edgeconv` must not pay for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv import opencv_log
from edgeconv.errors import ImageReadError, ImageWriteError, MemoryLimitError
from edgeconv.files import is_standard_stream, read_bytes, write_bytes_atomically
from edgeconv.formats import FORMATS, NAMES, SUFFIXES, Format, by_pillow, format_of, npy, tiff
from edgeconv.formats.base import AGAIN, BadPicture, Header

DEFAULT_MAX_PIXELS = 2**28
"""16384×16384: larger headers are refused before anything is allocated, unless the caller raises the limit."""

MAX_SIDE = 1_000_000
"""libpng's own limit, and past any picture; kept for all formats."""

SIGNATURE_BYTES = 16
"""Enough of a file to tell its format by."""

STREAM_NAME = "standard input"

QUALITY_FLAGS = {"JPEG": "IMWRITE_JPEG_QUALITY", "WebP": "IMWRITE_WEBP_QUALITY"}
"""Formats that can lose something, and OpenCV's word for how little. JPEG is 95 unless asked, WebP loses nothing."""

TURNS: dict[int, tuple[bool, tuple[int, ...]]] = {
    1: (False, ()),
    2: (False, (1,)),
    3: (False, (0, 1)),
    4: (False, (0,)),
    5: (True, ()),
    6: (True, (1,)),
    7: (True, (0, 1)),
    8: (True, (0,)),
}
"""EXIF orientations: whether height and width change places, and the axes that are mirrored after that."""

GREY_NOTE = "grey spread to three channels"
FRAMES_NOTE = "first of several frames or pages taken"
PROFILE_NOTE = "colour profile dropped"
"""Samples are filtered as they are stored, and an output says nothing of what its colours mean."""


@dataclass(frozen=True, eq=False)
class Picture:
    """A decoded picture and where it came from."""

    pixels: NDArray[Any]
    """HWC, three channels, RGB, C-contiguous: uint8, uint16, float32 (or float16). By a `Decoder` maybe on a card."""
    source: str
    """The file's name as given, or `standard input`."""
    format: str
    """The format's name, as in the table of formats."""
    notes: tuple[str, ...] = ()
    """What was done beyond decoding, one phrase each."""
    grey: bool = False
    """The file holds one colour channel; `pixels` has it three times."""


Decoder = Callable[[bytes, Header], Any]
"""Another way from a file's bytes to pixels as in Picture, upright; None where this file is not one for it."""


def read_image(source: Path | str, *, max_pixels: int = DEFAULT_MAX_PIXELS) -> Picture:
    """Read a picture from a file, or from standard input for `-`.

    `max_pixels` bounds height × width as the header states them. Raises ImageReadError for a file that is
    missing, damaged, cut short, too large or of another sort, MemoryLimitError where decoding does not fit.
    """
    name = STREAM_NAME if is_standard_stream(source) else str(source)
    return decode_image(read_bytes(source), name, max_pixels=max_pixels)


def decode_image(
    data: bytes, name: str, *, max_pixels: int = DEFAULT_MAX_PIXELS, decoder: Decoder | None = None
) -> Picture:
    """Decode the bytes of a picture file; `name` stands in messages. Raises as `read_image` does.

    `decoder` is asked first, after the file was looked through.
    """
    entry = format_of(data)
    if entry is None:
        raise ImageReadError(f"{name}: is not a picture that edgeconv reads: use one of {NAMES}.")
    try:
        header = entry.read_header(data)
        _check_size(header, max_pixels)
        pixels = None if decoder is None else decoder(data, header)
        if pixels is None:
            pixels = _decode_or_say_why(data, entry, header)
    except BadPicture as bad:
        raise ImageReadError(f"{name}: {entry.name}: {bad.reason}: {bad.remedy}.") from None
    except MemoryError:
        needed = header.width * header.height * 3 * max(1, header.bits // 8)
        raise MemoryLimitError(
            f"{name}: no memory for {header.width:,}×{header.height:,} pixels ({needed:,} bytes decoded): "
            "use a smaller picture."
        ) from None
    return Picture(pixels, name, entry.name, tuple(_notes(header, entry, name)), header.grey)


def longest_side(path: Path) -> int | None:
    """The larger of height and width as the header of a file says, read alone; None where there is no such header."""
    try:
        with path.open("rb") as stream:
            entry = format_of(stream.read(SIGNATURE_BYTES))
            stream.seek(0)
            if entry is None:
                return None
            sides = npy.read_shape(stream)[0][:2] if entry.name == "NPY" else by_pillow.read_size(stream, entry.name)
    except (OSError, BadPicture):
        return None
    return max(sides)


def write_image(pixels: NDArray[Any], destination: Path | str, *, format: str | None = None) -> None:
    """Write `pixels` (HWC with 3 channels in RGB order, or 1; or HW) to a file, completely or not at all.

    The suffix of `destination` names the format unless `format` does (a name or suffix of the table, needed only for
    `-`, standard output, where PNG is the default for whole numbers and NPY for floats). Raises ImageWriteError
    where the format cannot hold the type or size, or the file cannot be written.
    """
    write_bytes_atomically(destination, encode_image(pixels, destination, format=format))


def encode_image(
    pixels: NDArray[Any],
    destination: Path | str,
    *,
    format: str | None = None,
    threads: int | None = None,
    quality: int | None = None,
    png_level: int | None = None,
) -> bytes | memoryview:
    """The bytes that `write_image` would write, PNG by up to `threads` threads, JPEG and WebP at `quality` 1 to 100.

    `png_level` is 0 (stored) to 9 (smallest); None is the fastest that compresses. Raises ImageWriteError.
    """
    if not isinstance(pixels, np.ndarray):
        raise ImageWriteError(f"{destination}: a {type(pixels).__name__} is not a picture: use a NumPy array.")
    entry = _format_for(pixels, destination, format)
    pixels = pixels.astype(pixels.dtype.newbyteorder("="), copy=False)  # OpenCV takes any bytes for this machine's
    height, width = pixels.shape[:2]
    if pixels.dtype.name not in entry.writes:
        able = [other.suffixes[0] for other in FORMATS if pixels.dtype.name in other.writes]
        raise ImageWriteError(
            f"{destination}: {entry.name} cannot hold {pixels.dtype.name} samples: use {' or '.join(able)}."
            if able
            else f"{destination}: no format holds {pixels.dtype.name} samples: convert to uint8, uint16 or float32."
        )
    if max(height, width) > entry.max_side:
        raise ImageWriteError(
            f"{destination}: {entry.name} cannot hold a side of {max(height, width):,} pixels "
            f"(at most {entry.max_side:,}): use .tiff or .npy."
        )
    try:
        return _encode(pixels, entry, threads, quality, png_level)
    except BadPicture as bad:
        raise ImageWriteError(f"{destination}: {entry.name}: {bad.reason}: {bad.remedy}.") from None
    except MemoryError:
        raise MemoryLimitError(
            f"{destination}: {entry.name}: no memory to encode {width:,}×{height:,} pixels ({pixels.nbytes:,} bytes "
            "and a copy): use a smaller picture."
        ) from None


def _opencv() -> Any:
    """The module cv2, loaded late and with its own, lower and unexplained size limits out of the way."""
    for limit in ("PIXELS", "WIDTH", "HEIGHT"):
        os.environ.setdefault(f"OPENCV_IO_MAX_IMAGE_{limit}", str(2**40))
    import cv2

    return cv2


def _check_size(header: Header, max_pixels: int) -> None:
    """Raise BadPicture for a header that no real picture has."""
    sides = f"{header.width:,}×{header.height:,}"
    if header.width < 1 or header.height < 1:
        raise BadPicture(f"its header says {sides} pixels")
    if max(header.width, header.height) > MAX_SIDE:
        raise BadPicture(f"its header says {sides} pixels, and no side may be above {MAX_SIDE:,}", "cut it into parts")
    if header.width * header.height > max_pixels:
        raise BadPicture(
            f"its header says {sides} pixels, above the limit of {max_pixels:,}",
            "raise --max-pixels if it really is that large",
        )


def _decode_or_say_why(data: bytes, entry: Format, header: Header) -> NDArray[Any]:
    """As `_decode`; what a decoder says of a compression that it may lack is not taken for damage."""
    try:
        return _decode(data, entry, header)
    except BadPicture:
        if header.rare_compression is None:
            raise
        reason = f"its compression ({header.rare_compression}) is not supported here, or its contents are damaged"
        raise BadPicture(reason, tiff.BY_TILES) from None


def _decode(data: bytes, entry: Format, header: Header) -> NDArray[Any]:
    """The pixels, HWC RGB, upright. Raises BadPicture, MemoryError."""
    if entry.name == "NPY":
        pixels = npy.decode(data)
    elif header.decoder == "pillow":
        pixels = by_pillow.decode_tiff(data, header)
    else:
        with _failures("decoded", AGAIN):
            if entry.name == "TIFF":  # turned upright by OpenCV even when told not to, as by Pillow
                pixels = _decode_tiff(data)
            else:
                pixels = _turn_upright(_decode_rgb(data), header.orientation)
    if pixels.ndim == 2 or pixels.shape[2] == 1:
        pixels = np.repeat(pixels.reshape(*pixels.shape[:2], 1), 3, axis=2)
    return np.ascontiguousarray(as_float32(pixels)[:, :, :3])


def as_float32(pixels: NDArray[Any]) -> NDArray[Any]:
    """`pixels`, rounded where they are float64; a value beyond float32 becomes infinite, without a warning."""
    if pixels.dtype != np.float64:
        return pixels
    with np.errstate(over="ignore", invalid="ignore"):
        return pixels.astype(np.float32)


def _decode_rgb(data: bytes) -> NDArray[Any]:
    """Decode with OpenCV to three channels in RGB order, as stored."""
    cv2 = _opencv()
    return _imdecode(data, cv2.IMREAD_COLOR_RGB | cv2.IMREAD_ANYDEPTH | cv2.IMREAD_IGNORE_ORIENTATION)


def _decode_tiff(data: bytes) -> NDArray[Any]:
    """Decode a TIFF with OpenCV. Its own conversion to RGB scrambles 16-bit samples, so that is done here."""
    cv2 = _opencv()
    pixels = _imdecode(data, cv2.IMREAD_UNCHANGED)
    if pixels.ndim == 2 or pixels.shape[2] not in (3, 4):
        return pixels
    pixels = as_float32(pixels)  # cvtColor has no float64
    rgb: NDArray[Any] = cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB if pixels.shape[2] == 3 else cv2.COLOR_BGRA2RGB)
    return rgb


def _imdecode(data: bytes, flags: int) -> NDArray[Any]:
    """`cv2.imdecode` that raises BadPicture for damage."""
    cv2 = _opencv()
    with opencv_log.silent():  # what it would print comes back as our one line
        pixels: NDArray[Any] | None = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
    if pixels is None:
        raise BadPicture("it cannot be decoded, so its contents are damaged")
    return pixels


@contextmanager
def _failures(what: str, remedy: str) -> Iterator[Any]:
    """The module cv2, whose errors in the block become MemoryError, or BadPicture: it cannot be `what`."""
    cv2 = _opencv()
    try:
        yield cv2
    except cv2.error as error:
        if error.code == cv2.Error.StsNoMem:
            raise MemoryError from None
        raise BadPicture(f"it cannot be {what} ({_first_line(error)})", remedy) from None


def _encode(
    pixels: NDArray[Any], entry: Format, threads: int | None, quality: int | None, png_level: int | None
) -> bytes | memoryview:
    """A file's bytes. Raises BadPicture, MemoryError."""
    if entry.name == "NPY":
        return npy.encode(pixels)
    if entry.name == "PNG":
        from edgeconv.png import LEVEL, encode_png

        return b"".join(encode_png(pixels, threads, LEVEL if png_level is None else png_level))
    with _failures("encoded", "use another format") as cv2:
        flags = [] if quality is None else [getattr(cv2, QUALITY_FLAGS[entry.name]), quality]
        bgr = cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR) if pixels.shape[2:] == (3,) else pixels
        done, encoded = cv2.imencode(entry.suffixes[0], np.ascontiguousarray(bgr), flags)
    if not done:
        raise BadPicture("it cannot be encoded", "use another format")
    buffer: NDArray[np.uint8] = encoded
    return buffer.data


def _turn_upright(pixels: NDArray[Any], orientation: int) -> NDArray[Any]:
    """Apply an EXIF orientation."""
    cv2 = _opencv()
    transposed, flipped = TURNS[orientation]
    if transposed:
        pixels = cv2.transpose(pixels)
    return cv2.flip(pixels, {(0,): 0, (1,): 1, (0, 1): -1}[flipped]) if flipped else pixels


def _notes(header: Header, entry: Format, name: str) -> list[str]:
    """What a person may not expect to have happened to this picture."""
    notes = []
    if header.grey:
        notes.append(GREY_NOTE)
    if header.alpha:
        notes.append("alpha channel dropped")
    if header.colours != "RGB":
        notes.append(f"{header.colours} converted to RGB")
    if header.orientation != 1:
        notes.append(f"orientation {header.orientation} applied")
    if header.frames > 1:
        notes.append(FRAMES_NOTE)
    if header.profile:
        notes.append(PROFILE_NOTE)
    if header.bits == 16:
        notes.append("16 bits a sample kept")
    if header.bits == 64:
        notes.append("float64 rounded to float32")
    named = SUFFIXES.get(PurePath(name).suffix.lower())
    if named is not None and named is not entry:
        notes.append(f"the contents are {entry.name}, not {named.name} as the name says")
    return notes


def _format_for(pixels: NDArray[Any], destination: Path | str, format: str | None) -> Format:
    """The format to write, from `format`, or from the suffix, or for standard output from the type."""
    if pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] not in (1, 3)) or 0 in pixels.shape:
        raise ImageWriteError(f"{destination}: an array of shape {pixels.shape} is not a picture: use HWC with 1 or 3.")
    if format is None and is_standard_stream(destination):
        format = "npy" if pixels.dtype.kind == "f" else "png"
    suffix = PurePath(destination).suffix.lower() if format is None else "." + format.lower().removeprefix(".")
    if suffix not in SUFFIXES:
        raise ImageWriteError(
            f"{destination}: '{suffix}' names no format that edgeconv writes: use one of {', '.join(SUFFIXES)}."
        )
    return SUFFIXES[suffix]


def _first_line(error: Exception) -> str:
    """An error's own words, on one line and not too many."""
    return " ".join(str(error).split())[:120]
