"""The only door for pixels: files in, files out. Inside the door pictures are RGB or grey, HWC and C-contiguous.

    read_image    any format of the table (formats/), or `-` for standard input, told by content and not by name
                  grey is one channel, or by `ReadRules.rgb` three equal ones; alpha is dropped; both are noted
                  grey is what the file calls grey; a palette is colour, but for BMP, which has no other grey: there
                  one of which each entry is a grey is grey
                  8 bits give uint8, 16 bits uint16, floats their own type
                  EXIF and TIFF orientation is applied; of several frames or pages the first is taken
    longest_side  what the header of a file says, no pixel read
    encode_bank   several pictures in one file: TIFF, a page each, or NPY
    write_image   by the suffix: 8 bits to all of them, 16 bits to PNG, TIFF and NPY, float32 and float64 to TIFF and
                  NPY. One channel is a grey file, WebP excepted, which has no grey; an NPY has the shape of the array

OpenCV decodes, but for a few TIFFs and JPEGs that Pillow does, and encodes all but PNG, which png.py writes faster;
always from and to memory, so that no path passes through it. What it does quietly wrong (a truncated JPEG, floats
saturated to PNG, 16 bits cut to 8) is caught here.
`import cv2` comes late: `import edgeconv` must not pay for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.filters import GREY_CHANNELS, RGB_CHANNELS
from edgeconv.errors import ImageReadError, ImageWriteError, MemoryLimitError, one_line
from edgeconv.io.files import empty, is_standard_stream, opened, write_bytes_atomically
from edgeconv.io.formats import (
    FORMATS,
    NAMES,
    SIGNATURE_BYTES,
    SUFFIXES,
    WRITTEN,
    Format,
    format_of,
    npy,
    pillow_decoder,
    tiff,
)
from edgeconv.io.formats.base import AGAIN, BadPicture, Header
from edgeconv.io.formats.byte_source import ByteSource, StreamSource, above_limit, sides_of
from edgeconv.io.formats.decoder_messages import LISTENER
from edgeconv.io.formats.shared_setting import PutBack, SharedSetting
from edgeconv.io.formats.unread import name_of
from edgeconv.io.read_limits import DEFAULT_RULES, ReadRules

MAX_SIDE = 1_000_000
"""libpng's own limit, and past any picture; kept for all formats."""

HASHED_BYTES = 2**24
"""A file that is no larger is read before it is looked at, so that a ledger knows by its hash what was refused."""

STREAM_NAME = "standard input"

ALL_OF_A_BANK = ("TIFF", "NPY")
"""Formats of which one file holds all that a filter bank gives."""

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
"""Samples are filtered as stored, and outputs carry no colour profile."""
DEPTH_NOTE = "kept at 16 bits per sample"
SAID_NOTE = "decoder: "
"""Prefix of the warnings of a decoder that read the picture nevertheless (decoder_messages.py)."""
STRICT_REMEDY = "export or download it again, or leave --strict out"


@dataclass(frozen=True, eq=False)
class Picture:
    """A decoded picture and where it came from."""

    pixels: NDArray[Any]
    """HWC, RGB or one channel of grey, C-contiguous: a type of `INPUT_DTYPES`; a `Decoder` may put it on a GPU."""
    source: str
    """The file's name as given, or `standard input`."""
    format: str
    """The format's name, as in the table of formats."""
    notes: tuple[str, ...] = ()
    """What was done beyond decoding, one phrase each."""
    channel_axis: bool = True
    """False where the file is an array (NPY) of height × width alone, of which `pixels` are one channel."""

    @property
    def shape(self) -> tuple[int, ...]:
        """That of `pixels`, without the axis for channels where the file has none."""
        shape: tuple[int, ...] = self.pixels.shape
        return shape if self.channel_axis else shape[:2]


Decoder = Callable[[bytes, Header], Any]
"""An alternative decoder from a file's bytes to upright pixels, of three channels; None for a file that it
does not decode."""


def read_image(source: Path | str, rules: ReadRules = DEFAULT_RULES) -> Picture:
    """Read a picture from a file, a pipe or a device, or from standard input for `-`.

    Raises ImageReadError for a file that is missing, damaged, cut short, not a picture or refused by `rules`, and
    MemoryLimitError where memory does not suffice to decode it.
    """
    name = STREAM_NAME if is_standard_stream(source) else str(source)
    return decode_image(read_picture_bytes(source, rules), name, rules)


def read_pages(source: Path | str, rules: ReadRules = DEFAULT_RULES) -> Picture:
    """All pages of a TIFF file, one below the other, where they have one size and type; otherwise as `read_image`.

    Of a stream no more is read than the first page.
    """
    if is_standard_stream(source) or not Path(source).is_file():
        return read_image(source, rules)
    data = read_picture_bytes(source, rules)
    first = decode_image(data, str(source), rules)
    if first.format != "TIFF" or FRAMES_NOTE not in first.notes:
        return first
    layout, found = (first.pixels.shape, first.pixels.dtype), [first.pixels]
    try:
        for number, page in enumerate(islice(tiff.pages(data), 1, None), 2):
            pixels = decode_image(page, f"{source} (page {number})", rules).pixels
            if (pixels.shape, pixels.dtype) != layout:  # a thumbnail, or the levels of a pyramid
                return first
            found.append(pixels)
            if sum(page.shape[0] * page.shape[1] for page in found) > rules.max_pixels:
                raise BadPicture(f"its pages have more than {rules.max_pixels:,} pixels", "raise --max-pixels")
        joined = np.concatenate(found)
    except BadPicture as bad:
        raise ImageReadError(f"{source}: TIFF: {bad.reason}: {bad.remedy}.") from None
    except MemoryError:
        raise MemoryLimitError(f"{source}: not enough memory for its pages: use a smaller picture.") from None
    note = f"{len(found)} pages, one below the other"
    return replace(first, pixels=joined, notes=tuple(note if said == FRAMES_NOTE else said for said in first.notes))


def read_picture_bytes(source: Path | str, rules: ReadRules = DEFAULT_RULES) -> bytes:
    """All of a picture file, or as much of a stream as belongs to the picture.

    The size of a file is known and compared with the limit before it is read, and its header with that of pixels, but
    for small files. A pipe, a device or standard input may have no end: there the format's reader requests what the
    header states, up to the limit. Raises ImageReadError, MemoryLimitError.
    """
    name = STREAM_NAME if is_standard_stream(source) else str(source)
    with opened(source) as (stream, size):
        begun = stream.read(SIGNATURE_BYTES)
        if not begun:
            raise empty(source)
        entry = format_of(begun)
        try:
            if size is None:
                feed = StreamSource(stream, begun, rules.max_bytes, partial(_check_sides, rules.max_pixels))
                _format_of(begun, name).read_header(feed)
                return bytes(feed.data)
            if size > rules.max_bytes:
                raise above_limit(f"it has {size:,} bytes", rules.max_bytes)
            first = stream.seek(-len(begun), os.SEEK_CUR)
            if size > HASHED_BYTES:
                _check_sides(rules.max_pixels, *sides_of(_format_of(begun, name).read_header, stream, size))
                stream.seek(first)
            return stream.read(size)
        except BadPicture as bad:
            raise _refused(name, entry, bad) from None
        except MemoryError:
            raise MemoryLimitError(
                f"{name}: not enough memory to read it: use a smaller picture, or --max-bytes."
            ) from None


def decode_image(
    data: bytes, name: str, rules: ReadRules = DEFAULT_RULES, *, decoder: Decoder | None = None
) -> Picture:
    """Decode the bytes of a picture file; `name` is for messages. Raises as `read_image` does.

    `decoder` is tried first, once the structure of the file was checked.
    """
    entry = _format_of(data, name)
    header: Header | None = None
    said: tuple[str, ...] = ()
    try:
        header = entry.read_header(ByteSource(data, partial(_check_sides, rules.max_pixels)))
        pixels: Any = None if decoder is None else decoder(data, header)
        if pixels is None:
            pixels, said = LISTENER.during(partial(_decode_or_say_why, data, entry, header))
        pixels = _with_channels(pixels, header, rules.rgb)
    except BadPicture as bad:
        raise _refused(name, entry, bad) from None
    except MemoryError:
        raise _no_memory(name, header, len(data)) from None
    if said and rules.strict:
        raise ImageReadError(f"{name}: {entry.name}: its decoder warns ({'; '.join(said)}): {STRICT_REMEDY}.")
    notes = (*_notes(header, entry, name, rules.rgb), *([f"{SAID_NOTE}{'; '.join(said)}"] if said else ()))
    return Picture(pixels, name, entry.name, notes, channel_axis=header.channel_axis or rules.rgb)


def longest_side(path: Path) -> int | None:
    """The larger of height and width, from the header of a file alone; None where there is no valid header."""

    try:
        with opened(path) as (stream, size):
            entry = _format_of(stream.read(SIGNATURE_BYTES), str(path))
            stream.seek(0)
            return max(sides_of(entry.read_header, stream, size or 0))
    except (ImageReadError, BadPicture):
        return None


def _format_of(data: bytes, name: str) -> Format:
    entry = format_of(data)
    if entry is None:
        met = name_of(data)
        what = "is not a picture that edgeconv reads" if met is None else f"is {met}, which edgeconv does not read"
        raise ImageReadError(f"{name}: {what}: use one of {NAMES}.")
    return entry


def _refused(name: str, entry: Format | None, bad: BadPicture) -> ImageReadError:
    kind = "" if entry is None else f"{entry.name}: "
    return ImageReadError(f"{name}: {kind}{bad.reason}: {bad.remedy}.")


def _no_memory(name: str, header: Header | None, file_bytes: int) -> MemoryLimitError:
    """The error for a file that does not fit, by its pixels where its header was read."""
    if header is None:
        return MemoryLimitError(f"{name}: not enough memory to parse {file_bytes:,} bytes: use a smaller picture.")
    needed = header.width * header.height * (1 if header.grey else 3) * max(1, header.bits // 8)
    return MemoryLimitError(
        f"{name}: not enough memory for {header.width:,}×{header.height:,} pixels ({needed:,} bytes decoded): "
        "use a smaller picture."
    )


def write_image(pixels: NDArray[Any], destination: Path | str, *, format: str | None = None) -> None:
    """Write `pixels` (HWC with 3 channels in RGB order, or 1; or HW) to a file, completely or not at all.

    An NPY has the shape of `pixels`; the other formats have no axis for one channel.

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
    """The bytes that `write_image` would write: PNG by up to `threads` threads, JPEG and WebP at `quality` 1 to 100.

    `png_level` is 0 (stored) to 9 (smallest); None is the fastest level that compresses. Raises ImageWriteError.
    """
    if not isinstance(pixels, np.ndarray):
        raise ImageWriteError(f"{destination}: a {type(pixels).__name__} is not a picture: use a NumPy array.")
    _check_shape(pixels, destination)
    entry = _format_for(pixels, destination, format)
    pixels = pixels.astype(pixels.dtype.newbyteorder("="), copy=False)  # OpenCV ignores the byte order of an array
    _check_fits(pixels, entry, destination)
    with _told_about(pixels, entry, destination):
        return _encode(pixels, entry, threads, quality, png_level)


def pictures_of(output: NDArray[Any], filters: int) -> list[NDArray[Any]]:
    """The pictures in the output (HWC) of a bank, one for each filter: grey, or RGB of three channels a filter."""
    return [output[:, :, number::filters] for number in range(filters)]


def encode_bank(
    output: NDArray[Any], filters: int, destination: Path | str, *, format: str | None = None
) -> bytes | memoryview:
    """The bytes of one file with all of a bank's output (HWC): TIFF, a page for each filter, or NPY, as it is.

    Raises ImageWriteError, for a format too that holds one picture.
    """
    entry = _format_for(output, destination, format)
    if entry.name not in ALL_OF_A_BANK:
        raise ImageWriteError(f"{destination}: {entry.name} holds one picture, not {filters}: use .tiff or .npy.")
    _check_fits(output, entry, destination)
    with _told_about(output, entry, destination):
        if entry.name == "NPY":
            return npy.encode(output)
        pages = [_as_opencv_has_it(page) for page in pictures_of(output, filters)]
        with _failures("encoded", "use another format") as cv2:
            done, encoded = cv2.imencodemulti(entry.suffixes[0], pages)
        if not done:
            raise BadPicture("it cannot be encoded", "use another format")
        buffer: NDArray[np.uint8] = encoded
        return buffer.data


def _check_shape(pixels: NDArray[Any], destination: Path | str) -> None:
    """Raise ImageWriteError for an array that is not a picture."""
    if pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] not in (1, 3)) or 0 in pixels.shape:
        raise ImageWriteError(
            f"{destination}: an array of shape {pixels.shape} is not a picture: use HWC with 1 or 3 channels."
        )


def _check_fits(pixels: NDArray[Any], entry: Format, destination: Path | str) -> None:
    """Raise ImageWriteError where a format cannot hold samples of this type, or sides as long."""
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


@contextmanager
def _told_about(pixels: NDArray[Any], entry: Format, destination: Path | str) -> Iterator[None]:
    """Failures of an encoder in the block become one line about `destination`."""
    height, width = pixels.shape[:2]
    try:
        yield
    except BadPicture as bad:
        raise ImageWriteError(f"{destination}: {entry.name}: {bad.reason}: {bad.remedy}.") from None
    except MemoryError:
        raise MemoryLimitError(
            f"{destination}: {entry.name}: not enough memory for {width:,}×{height:,} pixels ({pixels.nbytes:,} bytes "
            "and an encoded copy): use a smaller picture."
        ) from None


def _opencv() -> Any:
    """The module cv2, imported late and with its own, lower size limits lifted."""
    for limit in ("PIXELS", "WIDTH", "HEIGHT"):
        os.environ.setdefault(f"OPENCV_IO_MAX_IMAGE_{limit}", str(2**40))
    import cv2

    return cv2


def _check_sides(max_pixels: int, width: int, height: int) -> None:
    """Raise BadPicture for a header with impossible or too large sides."""
    sides = f"{width:,}×{height:,}"
    if width < 1 or height < 1:
        raise BadPicture(f"its header says {sides} pixels")
    if max(width, height) > MAX_SIDE:
        raise BadPicture(f"its header says {sides} pixels, and no side may be above {MAX_SIDE:,}", "cut it into parts")
    if width * height > max_pixels:
        raise BadPicture(
            f"its header says {sides} pixels, above the limit of {max_pixels:,}",
            "raise --max-pixels if it really is that large",
        )


def _decode_or_say_why(data: bytes, entry: Format, header: Header) -> NDArray[Any]:
    """As `_decode`; an error for a compression that the decoder may lack is not reported as damage."""
    try:
        return _decode(data, entry, header)
    except BadPicture:
        if header.rare_compression is None:
            raise
        reason = f"its compression ({header.rare_compression}) is not supported here, or its contents are damaged"
        raise BadPicture(reason, tiff.BY_TILES if entry.name == "TIFF" else f"{AGAIN}, or convert it to PNG") from None


def _decode(data: bytes, entry: Format, header: Header) -> NDArray[Any]:
    """The pixels, HWC RGB, upright. Raises BadPicture, MemoryError."""
    if entry.decode is not None:
        pixels = entry.decode(data, header)
    elif header.decoder == "pillow" and entry.name == "TIFF":
        pixels = pillow_decoder.decode_tiff(data, header)
    else:
        with _failures("decoded", AGAIN):
            if entry.name == "TIFF":  # OpenCV applies the orientation even when asked not to, and so does Pillow
                pixels = _decode_as_stored(tiff.without_the_rest(data))
            elif entry.name == "AVIF":  # with alpha OpenCV's own conversion to RGB gives BGR
                pixels = _turn_upright(_decode_as_stored(entry.for_decoder(data, header)), header.orientation)
            elif header.decoder == "pillow":
                _imdecode(data, _opencv().IMREAD_REDUCED_GRAYSCALE_8)  # for libjpeg's warnings, which Pillow hides
                pixels = _turn_upright(pillow_decoder.decode_cmyk_jpeg(data), header.orientation)
            else:
                pixels = _turn_upright(_decode_plain(entry.for_decoder(data, header), header.grey), header.orientation)
    pixels = _stretched(pixels, header.largest)
    return pixels if pixels.ndim == 3 else pixels[:, :, np.newaxis]


def _stretched(pixels: NDArray[Any], largest: int | None) -> NDArray[Any]:
    """Samples from 0 to `largest` over the full range of their type, to nearest: 10 bits become 16."""
    if largest is None or pixels.dtype.kind != "u" or (full := np.iinfo(pixels.dtype).max) == largest:
        return pixels
    table = np.rint(np.arange(full + 1.0).clip(max=largest) * full / largest).astype(pixels.dtype)
    stretched: NDArray[Any] = table[pixels]
    return stretched


def _with_channels(pixels: Any, header: Header, rgb: bool) -> Any:
    """Decoded pixels (HWC, NumPy or CuPy, alpha last) with the channels of a picture: one of grey, or three."""
    kept = GREY_CHANNELS if header.grey and not rgb else RGB_CHANNELS
    if header.grey or pixels.shape[2] < kept:
        colour = pixels if pixels.shape[2] == GREY_CHANNELS else pixels[:, :, :GREY_CHANNELS].copy()
        pixels = colour if kept == GREY_CHANNELS else colour.repeat(kept, axis=2)
    elif pixels.shape[2] > kept:
        pixels = pixels[:, :, :kept].copy()
    return np.ascontiguousarray(pixels) if isinstance(pixels, np.ndarray) else pixels


def _decode_plain(data: bytes, grey: bool) -> NDArray[Any]:
    """Decode with OpenCV to one channel of a grey file, else to three in RGB order, as stored."""
    cv2 = _opencv()
    colours = cv2.IMREAD_GRAYSCALE if grey else cv2.IMREAD_COLOR_RGB
    return _imdecode(data, colours | cv2.IMREAD_ANYDEPTH | cv2.IMREAD_IGNORE_ORIENTATION)


def _decode_as_stored(data: bytes) -> NDArray[Any]:
    """Decode with OpenCV to RGB, channels swapped here: its own conversion corrupts 16-bit TIFF and AVIF with alpha."""
    cv2 = _opencv()
    pixels = _imdecode(data, cv2.IMREAD_UNCHANGED)
    if pixels.ndim == 2 or pixels.shape[2] not in (3, 4):
        return pixels
    return _swap_red_and_blue(pixels[:, :, :RGB_CHANNELS])


def _swap_red_and_blue(pixels: NDArray[Any]) -> NDArray[Any]:
    """RGB from BGR and back."""
    cv2 = _opencv()
    if pixels.dtype == np.float64:  # which cvtColor does not have
        return np.ascontiguousarray(pixels[:, :, ::-1])
    swapped: NDArray[Any] = cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2BGR)
    return swapped


def _imdecode(data: bytes, flags: int) -> NDArray[Any]:
    """`cv2.imdecode` that raises BadPicture for damage."""
    cv2 = _opencv()
    with _OPENCV_SILENT:  # errors are reported by our own one-line message
        pixels: NDArray[Any] | None = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
    if pixels is None:
        raise BadPicture("it cannot be decoded, so its contents are damaged")
    return pixels


def _silence_opencv() -> PutBack:
    log = _opencv().utils.logging
    level = log.getLogLevel()
    log.setLogLevel(log.LOG_LEVEL_SILENT)
    return partial(log.setLogLevel, level)


_OPENCV_SILENT = SharedSetting(_silence_opencv)


@contextmanager
def _failures(what: str, remedy: str) -> Iterator[Any]:
    """The module cv2, whose errors in the block become MemoryError, or BadPicture: it cannot be `what`."""
    cv2 = _opencv()
    try:
        yield cv2
    except cv2.error as error:
        if error.code == cv2.Error.StsNoMem:
            raise MemoryError from None
        raise BadPicture(f"it cannot be {what} ({one_line(error)})", remedy) from None


def _encode(
    pixels: NDArray[Any], entry: Format, threads: int | None, quality: int | None, png_level: int | None
) -> bytes | memoryview:
    """A file's bytes. Raises BadPicture, MemoryError."""
    if entry.name == "NPY":
        return npy.encode(pixels)
    if entry.name == "PNG":
        from edgeconv.io.png import LEVEL, encode_png

        return b"".join(encode_png(pixels, threads, LEVEL if png_level is None else png_level))
    with _failures("encoded", "use another format") as cv2:
        flags = [] if quality is None else [getattr(cv2, QUALITY_FLAGS[entry.name]), quality]
        done, encoded = cv2.imencode(entry.suffixes[0], _as_opencv_has_it(pixels), flags)
    if not done:
        raise BadPicture("it cannot be encoded", "use another format")
    buffer: NDArray[np.uint8] = encoded
    return buffer.data


def _as_opencv_has_it(pixels: NDArray[Any]) -> NDArray[Any]:
    """A picture as OpenCV encodes it: BGR or grey, C-contiguous."""
    return np.ascontiguousarray(_swap_red_and_blue(pixels) if pixels.shape[2:] == (RGB_CHANNELS,) else pixels)


def _turn_upright(pixels: NDArray[Any], orientation: int) -> NDArray[Any]:
    """Apply an EXIF orientation."""
    cv2 = _opencv()
    transposed, flipped = TURNS[orientation]
    if transposed:
        pixels = cv2.transpose(pixels)
    return cv2.flip(pixels, {(0,): 0, (1,): 1, (0, 1): -1}[flipped]) if flipped else pixels


def _notes(header: Header, entry: Format, name: str, rgb: bool) -> list[str]:
    """What was changed or dropped in decoding, or may surprise the user."""
    notes = []
    if header.grey and rgb:
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
        notes.append(DEPTH_NOTE)
    if header.largest is not None and header.largest != (full := 2**header.bits - 1):
        notes.append(f"samples of 0 to {header.largest:,} stretched to 0 to {full:,}")
    named = SUFFIXES.get(PurePath(name).suffix.lower())
    if named is not None and named is not entry:
        notes.append(f"the contents are {entry.name}, not {named.name} as the name says")
    return notes


def _format_for(pixels: NDArray[Any], destination: Path | str, format: str | None) -> Format:
    """The format to write, from `format`, or from the suffix, or for standard output from the type."""
    if format is None and is_standard_stream(destination):
        format = "npy" if pixels.dtype.kind == "f" else "png"
    suffix = PurePath(destination).suffix.lower() if format is None else "." + format.lower().removeprefix(".")
    if suffix not in WRITTEN:
        raise ImageWriteError(
            f"{destination}: '{suffix}' is not a format that edgeconv writes: use one of {', '.join(WRITTEN)}."
        )
    return WRITTEN[suffix]
