"""Headers that Pillow reads: GIF and BMP.

Pillow reads no more of a source than it needs, and no more than a writer writes: of a GIF the blocks of the first frame
and what lies between it and the second, for the format states no lengths. Whether that frame is whole shows when it is
decoded, by Pillow too. A BMP has no grey but a palette of greys, so one whose palette holds nothing else is grey.
Sources: GIF89a; Microsoft, BITMAPINFOHEADER and later.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from edgeconv.errors import one_line
from edgeconv.io.formats.base import BadPicture, Header, cut_short
from edgeconv.io.formats.byte_source import ByteSource

HEADER_BYTES = 2**21
"""Of comments, profiles and metadata."""
TRAILER = b";"
"""Of a GIF."""
BYTES_PER_READ = 32
"""Pillow reads blocks of up to 255 bytes in two steps, and what belongs to no block byte by byte."""
GIF_BYTES_PER_PIXEL = 3
"""A code of 12 bits, and one before it that clears the table."""
RUN_BYTES = 2
"""A run of one pixel, an end of a row and the end of the picture of a BMP take as much each."""


class _Bytes(io.RawIOBase):
    """The bytes of a source as a file of `most` bytes at most. Raises BadPicture where more is read."""

    def __init__(self, feed: ByteSource, most: int) -> None:
        self._feed, self._most, self._place = feed, most, 0
        self.farthest, self.last = 0, b""
        """How far it was read, and the last byte there."""
        self._reads = 0

    def read(self, count: int = -1) -> bytes:
        self._reads += 1
        if count < 0 or self._place + count > self._most or self._reads * BYTES_PER_READ > self._most:
            raise BadPicture("its blocks take more bytes than any program writes")
        data = self._feed.part(self._place, self._place + count)
        self._place += len(data)
        if self._place > self.farthest:
            self.farthest, self.last = self._place, data[-1:]
        return data

    def seek(self, place: int, whence: int = io.SEEK_SET) -> int:
        self._place = place + (self._place if whence == io.SEEK_CUR else 0)
        return self._place

    def tell(self) -> int:
        return self._place


def _guarded(read: Callable[[], Any]) -> Any:
    """What `read` returns; whatever damage makes Pillow raise becomes BadPicture."""
    try:
        return read()
    except (BadPicture, MemoryError):
        raise
    except Exception as error:  # whatever the damage leads to
        raise BadPicture(f"its header is damaged or not complete ({one_line(error)})") from None


def read_gif(feed: ByteSource) -> Header:
    """Read a GIF file up to its end, or to its second frame. Raises BadPicture."""
    from PIL.GifImagePlugin import GifImageFile

    width, height = feed.unpack("<HH", 6)
    feed.sides(width, height)
    stream: Any = _Bytes(feed, GIF_BYTES_PER_PIXEL * width * height + HEADER_BYTES)
    image = _guarded(lambda: GifImageFile(stream))
    if image.size != (width, height):
        raise BadPicture("its first frame does not lie inside the picture")
    alpha = "transparency" in image.info
    frames = 1 + _guarded(lambda: image.is_animated)
    if frames == 1 and stream.last != TRAILER:
        raise cut_short("no trailer")
    # The decoder would look for the end of a damaged frame in whatever follows, of which a stream has nothing.
    return Header(width, height, 8, alpha=alpha, frames=frames, decoder="pillow", file_bytes=stream.farthest)


def read_bmp(feed: ByteSource) -> Header:
    """Read the headers of a whole BMP file. Raises BadPicture."""
    from PIL.BmpImagePlugin import BmpImageFile

    stream: Any = _Bytes(feed, HEADER_BYTES)
    image = _guarded(lambda: BmpImageFile(stream))
    width, height = image.size
    feed.sides(width, height)
    ((decoder, _, start, arguments),) = image.tile
    if decoder == "raw":
        needed = stop = start + arguments[1] * height
    else:  # the length that it states is only a hint
        (stored,) = feed.unpack("<I", 34)
        needed = start + stored
        stop = max(needed, start + RUN_BYTES * (width + 1) * (height + 1))
    if not feed.need(needed):
        raise cut_short(f"{len(feed.data):,} of {needed:,} bytes are there")
    feed.need(stop)
    grey = image.mode in ("1", "L")
    if image.mode == "P":
        palette, step = image.palette.palette, len(image.palette.rawmode)
        grey = palette[::step] == palette[1::step] == palette[2::step]
    (bits,) = feed.unpack("<H", 28 if feed.unpack("<I", 14)[0] > 12 else 24)
    return Header(width, height, 8, grey=grey, alpha=bits == 32, file_bytes=stop)
