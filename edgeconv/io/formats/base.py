"""What the header of a picture file states, the error for a file that cannot be used, and what its readers share.

A reader is given the bytes of a whole file. It calls `sides` as soon as it knows width and height, so that a picture
that is too large is refused before anything is done for each of its pixels.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from mmap import mmap
from typing import Any, Literal

import numpy as np

from edgeconv.core.filters import GREY_CHANNELS, RGB_CHANNELS

AGAIN = "export or download it again"
"""The remedy for a file that is damaged rather than of the wrong kind."""
MOST_BOXES = 2**16

Sides = Callable[[int, int], None]
"""Called with width and height; raises BadPicture where it refuses them."""


def any_sides(width: int, height: int) -> None:
    """Refuse none."""


@dataclass(frozen=True)
class Header:
    """One picture before any pixel is decoded. Sizes are as stored, before the orientation is applied."""

    width: int
    height: int
    bits: int
    """Bits per sample: 1 to 64."""
    floats: bool = False
    """Samples are floating-point numbers, not unsigned integers."""
    grey: bool = False
    """One colour channel, alpha not counted."""
    alpha: bool = False
    channel_axis: bool = True
    """False of an array (NPY) of height × width alone."""
    orientation: int = 1
    """EXIF: 1 upright, 2 to 8 mirrored or rotated."""
    frames: int = 1
    """Pictures in the file: pages of a TIFF, frames of an animation (2 where there is more than one but no count)."""
    profile: bool = False
    """Whether the file has a colour profile (ICC); samples are used as stored."""
    colours: str = "RGB"
    """Colour space as stored; anything but RGB is converted while it is decoded."""
    rare_compression: str | None = None
    """The name of a compression that not every decoder has."""
    gpu_jpeg: bool = False
    """A JPEG that decoders on GPUs read as those on the host do: 8×8 blocks in Huffman code, grey or YCbCr."""
    file_bytes: int | None = None
    """Where the picture ends in its file, if something may follow that a decoder would take for a part of it."""
    decoder: Literal["opencv", "pillow"] = "opencv"
    """Pillow for the few files that OpenCV decodes incorrectly without an error."""
    largest: int | None = None
    """The value of full intensity as stored, where that need not be the largest of 8 or 16 bits."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the decoded samples."""
        return np.dtype(f"float{self.bits}" if self.floats else np.uint8 if self.bits <= 8 else np.uint16)

    def shape(self, rgb: bool) -> tuple[int, int, int]:
        """Height, width and channels of the decoded picture, upright; `rgb` makes three channels of grey."""
        sides = (self.width, self.height) if self.orientation >= 5 else (self.height, self.width)
        return *sides, GREY_CHANNELS if self.grey and not rgb else RGB_CHANNELS


class BadPicture(Exception):
    """A file that cannot be used: `reason` says what is wrong, `remedy` what a person can do about it."""

    def __init__(self, reason: str, remedy: str = AGAIN) -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


def too_many(what: str, most: int) -> BadPicture:
    """The error for a file of more parts than any encoder writes: to parse them all would take minutes."""
    return BadPicture(f"it has more than {most:,} {what}")


def cut_short(detail: str) -> BadPicture:
    """The error for a file that ends too early."""
    return BadPicture(f"the file is cut short ({detail})")


def require(data: bytes, count: int) -> None:
    """Raise BadPicture for a file that has fewer bytes."""
    if len(data) < count:
        raise cut_short(f"{len(data):,} of {count:,} bytes are there")


def unpack(
    data: bytes | mmap, format: str, position: int, missing: str = "its header is not complete"
) -> tuple[Any, ...]:
    """The numbers at `position`, in a format of `struct`. Raises BadPicture where they are `missing`."""
    if position + struct.calcsize(format) > len(data):
        raise cut_short(missing)
    return struct.unpack_from(format, data, position)


def boxes(data: bytes, position: int, stop: int | None = None) -> Iterator[tuple[bytes, int, int | None]]:
    """Kind, start and end of the contents of each ISO box from `position` to `stop`; they need not be there.

    The end is None for a box that goes on to the end of the file. Raises BadPicture.
    """
    for _ in range(MOST_BOXES):
        if position == stop:
            return
        length, kind = unpack(data, ">I4s", position, "it ends before its picture")
        start = position + 8
        if length == 1:
            (length,), start = unpack(data, ">Q", start, "it ends before its picture"), start + 8
        end = position + length if length else None
        if end is not None and (end < start or (stop is not None and end > stop)):
            raise BadPicture("the length of a box is wrong")
        yield kind, start, end
        if end is None:
            return
        position = end
    raise too_many("boxes", MOST_BOXES)
