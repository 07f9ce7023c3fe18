"""Headers that Pillow reads: GIF and BMP.

Pillow reads the blocks of a GIF's first frame and what lies between it and the second, for the format states no
lengths. Whether that frame is whole shows when it is decoded, by Pillow too. A BMP has no grey but a palette of greys,
so one whose palette holds nothing else is grey. Sources: GIF89a; Microsoft, BITMAPINFOHEADER and later.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from edgeconv.errors import one_line
from edgeconv.io.formats.base import BadPicture, Header, Sides, any_sides, cut_short, require, unpack

HEADER_BYTES = 2**21
"""Of a GIF's comments and metadata."""
TRAILER = b";"
"""Of a GIF."""
BYTES_PER_READ = 32
"""Pillow reads blocks of up to 255 bytes in two steps, and what belongs to no block byte by byte."""
GIF_BYTES_PER_PIXEL = 3
"""A code of 12 bits, and one before it that clears the table."""
RUN_BYTES = 2
"""A run of one pixel, an end of a row and the end of the picture of a BMP take as much each."""


class _Blocks(io.BytesIO):
    """A GIF of which blocks of `most` bytes are read at most. Raises BadPicture where there are more."""

    def __init__(self, data: bytes, most: int) -> None:
        super().__init__(data)
        self._most, self._reads = most, 0
        self.farthest = 0
        """How far it was read."""

    def read(self, count: int | None = -1) -> bytes:
        self._reads += 1
        if self.tell() > self._most or self._reads * BYTES_PER_READ > self._most:
            raise BadPicture("its blocks take more bytes than any program writes")
        found = super().read(count)
        self.farthest = max(self.farthest, self.tell())
        return found


def _guarded(read: Callable[[], Any]) -> Any:
    """What `read` returns; whatever damage makes Pillow raise becomes BadPicture."""
    try:
        return read()
    except (BadPicture, MemoryError):
        raise
    except Exception as error:  # whatever the damage leads to
        raise BadPicture(f"its header is damaged or not complete ({one_line(error)})") from None


def read_gif(data: bytes, sides: Sides = any_sides) -> Header:
    """Read a GIF file up to its end, or to its second frame. Raises BadPicture."""
    from PIL.GifImagePlugin import GifImageFile

    width, height = unpack(data, "<HH", 6)
    sides(width, height)
    stream = _Blocks(data, GIF_BYTES_PER_PIXEL * width * height + HEADER_BYTES)
    image = _guarded(lambda: GifImageFile(stream))
    if image.size != (width, height):
        raise BadPicture("its first frame does not lie inside the picture")
    alpha = "transparency" in image.info
    frames = 1 + _guarded(lambda: image.is_animated)
    if frames == 1 and data[stream.farthest - 1 : stream.farthest] != TRAILER:
        raise cut_short("no trailer")
    # The decoder would look for the end of a damaged frame in whatever follows.
    return Header(width, height, 8, alpha=alpha, frames=frames, decoder="pillow", file_bytes=stream.farthest)


def read_bmp(data: bytes, sides: Sides = any_sides) -> Header:
    """Read the headers of a whole BMP file. Raises BadPicture."""
    from PIL.BmpImagePlugin import BmpImageFile

    image = _guarded(lambda: BmpImageFile(io.BytesIO(data)))
    width, height = image.size
    sides(width, height)
    ((decoder, _, start, arguments),) = image.tile
    if decoder == "raw":
        needed = stop = start + arguments[1] * height
    else:  # the length that it states is only a hint
        (stored,) = unpack(data, "<I", 34)
        needed = start + stored
        stop = max(needed, start + RUN_BYTES * (width + 1) * (height + 1))
    require(data, needed)
    grey = image.mode in ("1", "L")
    if image.mode == "P":
        palette, step = image.palette.palette, len(image.palette.rawmode)
        grey = palette[::step] == palette[1::step] == palette[2::step]
    (bits,) = unpack(data, "<H", 28 if unpack(data, "<I", 14)[0] > 12 else 24)
    return Header(width, height, 8, grey=grey, alpha=bits == 32, file_bytes=stop)
