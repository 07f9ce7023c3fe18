"""The only door for pixels that come in: RGB or grey, HWC, C-contiguous and upright, whatever the file.

    read_image    any format of the table (formats/), or `-` for standard input, told by content and not by name
                  grey is one channel, or by `ReadRules.rgb` three equal ones; alpha is dropped; both are noted
                  grey is what the file calls grey; a palette is colour, but for BMP, which has no other grey: there
                  one of which each entry is a grey is grey
                  8 bits give uint8, 16 bits uint16, floats their own type
                  EXIF and TIFF orientation is applied; of several frames or pages the first is taken
    read_header   size and type, before any pixel is decoded

A header is read first and refused by its size before any pixel is decoded (decoding.py). A file is read as a whole
before that, and a pipe or a device up to its end or the limit of bytes; what does not begin like a picture is not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path, PurePath
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.filters import GREY_CHANNELS, RGB_CHANNELS
from edgeconv.errors import ImageReadError, MemoryLimitError
from edgeconv.io.decoding import decode
from edgeconv.io.files import empty, is_standard_stream, label_of, opened
from edgeconv.io.formats import NAMES, SIGNATURE_BYTES, SUFFIXES, Format, format_of, tiff
from edgeconv.io.formats.base import BadPicture, Header
from edgeconv.io.formats.unread import name_of
from edgeconv.io.read_limits import DEFAULT_RULES, ReadRules

MAX_SIDE = 1_000_000
"""libpng's own limit, and past any picture; kept for all formats."""

HASHED_BYTES = 2**24
"""A file of at most this size is read even if it does not begin like a picture: the ledger needs its hash."""
STEP_BYTES = 2**20
"""Read from a stream at once."""

GREY_NOTE = "grey spread to three channels"
FRAMES_NOTE = "first of several frames or pages taken"
PROFILE_NOTE = "colour profile dropped"
"""Samples are filtered as stored, and outputs carry no colour profile."""
DEPTH_NOTE = "kept at 16 bits per sample"
SAID_NOTE = "decoder: "
"""Prefix of the warnings of a decoder that read the picture nevertheless (formats/messages.py)."""
HOST_NOTE = "JPEG decoded by the host, not by the GPU"
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


def read_image(source: Path | str | IO[bytes], rules: ReadRules = DEFAULT_RULES) -> Picture:
    """Read a picture from a file, a pipe or a device, from standard input for `-`, or from an open file.

    An open file (`io.BytesIO`, `open(path, "rb")`) is read from where it is to its end. Raises ImageReadError for a
    file that is missing, damaged, cut short, not a picture or refused by `rules`, and MemoryLimitError where memory
    does not suffice to decode it.
    """
    return decode_image(read_picture_bytes(source, rules), label_of(source), rules)


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
    with _refusals(str(source), "TIFF", "for its pages"):
        for number, page in enumerate(islice(tiff.pages(data), 1, None), 2):
            pixels = decode_image(page, f"{source} (page {number})", rules).pixels
            if (pixels.shape, pixels.dtype) != layout:  # a thumbnail, or the levels of a pyramid
                return first
            found.append(pixels)
            if sum(page.shape[0] * page.shape[1] for page in found) > rules.max_pixels:
                raise BadPicture(f"its pages have more than {rules.max_pixels:,} pixels", "raise --max-pixels")
        joined = np.concatenate(found)
    note = f"{len(found)} pages, one below the other"
    return replace(first, pixels=joined, notes=tuple(note if said == FRAMES_NOTE else said for said in first.notes))


def read_picture_bytes(source: Path | str | IO[bytes], rules: ReadRules = DEFAULT_RULES) -> bytes:
    """All of a file that begins like a picture, or of a stream, which may have no end.

    The size of a file is known and compared with the limit before it is read, that of a stream while it is. Raises
    ImageReadError, MemoryLimitError.
    """
    name = label_of(source)
    with opened(source) as (stream, size):
        begun = stream.read(SIGNATURE_BYTES)
        if not begun:
            raise empty(source)
        if not isinstance(begun, bytes):
            raise ImageReadError(f"{name}: gives text, and not bytes: open it with 'rb'.")
        while len(begun) < SIGNATURE_BYTES and (piece := stream.read(SIGNATURE_BYTES - len(begun))):
            begun += piece  # an unbuffered source gives what it has
        entry = format_of(begun)
        if entry is None and (size is None or size > HASHED_BYTES):
            raise _unread(begun, name)
        with _refusals(name, None if entry is None else entry.name, "to read it"):
            if size is not None:
                if size > rules.max_bytes:
                    raise _above_limit(f"it has {size:,} bytes", rules.max_bytes)
                stream.seek(-len(begun), os.SEEK_CUR)
                return stream.read(size)
            data = bytearray(begun)
            while piece := stream.read(STEP_BYTES):
                data += piece
                if len(data) > rules.max_bytes:
                    raise _above_limit("it has not ended", rules.max_bytes)
            return bytes(data)


def read_header(data: bytes, name: str, rules: ReadRules = DEFAULT_RULES) -> Header:
    """Size and type of a picture file, whose structure is checked, before any pixel is decoded.

    `name` is for messages. Raises ImageReadError, MemoryLimitError.
    """
    entry = format_of(data)
    if entry is None:
        raise _unread(data, name)
    with _refusals(name, entry.name, f"to parse {len(data):,} bytes"):
        return entry.read_header(data, partial(check_sides, rules.max_pixels))


def decode_image(
    data: bytes,
    name: str,
    rules: ReadRules = DEFAULT_RULES,
    *,
    header: Header | None = None,
    decoder: Decoder | None = None,
) -> Picture:
    """Decode the bytes of a picture file; `name` is for messages. Raises as `read_image` does.

    `header` is what `read_header` gave for them, which is read here where it is not given; `decoder` is tried first.
    """
    header, entry = header or read_header(data, name, rules), format_of(data)
    assert entry is not None  # or there is no header
    said: tuple[str, ...] = ()
    needed = header.width * header.height * (1 if header.grey else 3) * max(1, header.bits // 8)
    size = f"for {header.width:,}×{header.height:,} pixels ({needed:,} bytes decoded)"
    with _refusals(name, entry.name, size):
        pixels: Any = None if decoder is None else decoder(data, header)
        refused = decoder is not None and pixels is None and header.gpu_jpeg
        if pixels is None:
            pixels, said = decode(data, entry, header)
        pixels = _with_channels(pixels, header, rules.rgb)
        if pixels.shape != (stated := header.shape(rules.rgb)) or pixels.dtype != header.dtype:
            raise BadPicture(
                f"its header says {stated} {header.dtype}, and its contents are {pixels.shape} {pixels.dtype}"
            )
    if said and rules.strict:
        raise ImageReadError(f"{name}: {entry.name}: its decoder warns ({'; '.join(said)}): {STRICT_REMEDY}.")
    notes = (*_notes(header, entry, name, rules.rgb), *([f"{SAID_NOTE}{'; '.join(said)}"] if said else ()))
    notes += (HOST_NOTE,) if refused else ()
    return Picture(pixels, name, entry.name, notes, channel_axis=header.channel_axis or rules.rgb)


def _unread(data: bytes, name: str) -> ImageReadError:
    met = name_of(data)
    what = "is not a picture that edgeconv reads" if met is None else f"is {met}, which edgeconv does not read"
    return ImageReadError(f"{name}: {what}: use one of {NAMES}.")


def _above_limit(what: str, limit: int) -> BadPicture:
    return BadPicture(f"{what}, above the limit of {limit:,} bytes", "raise --max-bytes if it really is that large")


@contextmanager
def _refusals(name: str, format: str | None, what: str) -> Iterator[None]:
    """Failures in the block become one line about the file: what is wrong with it, or too little memory `what`."""
    try:
        yield
    except BadPicture as bad:
        kind = "" if format is None else f"{format}: "
        raise ImageReadError(f"{name}: {kind}{bad.reason}: {bad.remedy}.") from None
    except MemoryError:
        raise MemoryLimitError(f"{name}: not enough memory {what}: use a smaller picture.") from None


def _with_channels(pixels: Any, header: Header, rgb: bool) -> Any:
    """Decoded pixels (HWC, NumPy or CuPy, alpha last) with the channels of a picture: one of grey, or three."""
    kept = GREY_CHANNELS if header.grey and not rgb else RGB_CHANNELS
    if header.grey or pixels.shape[2] < kept:
        colour = pixels if pixels.shape[2] == GREY_CHANNELS else pixels[:, :, :GREY_CHANNELS].copy()
        pixels = colour if kept == GREY_CHANNELS else colour.repeat(kept, axis=2)
    elif pixels.shape[2] > kept:
        pixels = pixels[:, :, :kept].copy()
    return np.ascontiguousarray(pixels) if isinstance(pixels, np.ndarray) else pixels


def check_sides(max_pixels: int, width: int, height: int) -> None:
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
