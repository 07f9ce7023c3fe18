"""Where a format's reader gets its bytes: memory, a stream that is read on demand, or the header of a file.

The same code parses all three. A stream may have no end (a device, a pipe), so only what the format requests is
read, and never more than a limit. `sides` is called as soon as the parser knows them, so that a picture that is too
large is refused before its pixels are read. Up to then a reader requests bytes by `part` and `unpack` alone, and few of
them: of a file, which can be read anywhere, nothing else is read, wherever its header lies. After that it may use
`data`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import IO, Any

from edgeconv.io.formats.base import BadPicture, Header, cut_short, too_many

STEP_BYTES = 2**20
"""Bytes read from a stream at once, so that a length that a header merely claims is never allocated."""


MOST_BOXES = 2**16


class ByteSource:
    """Bytes that are all in memory. `sides` is called once the header has been read, and may raise BadPicture."""

    def __init__(self, data: bytes | bytearray, sides: Callable[[int, int], None] = lambda width, height: None) -> None:
        self.data, self.sides = data, sides

    @property
    def most_bytes(self) -> int:
        """Upper limit of the number of bytes."""
        return len(self.data)

    def need(self, count: int) -> bool:
        """Whether the first `count` bytes are there, after an attempt to read them."""
        return count <= len(self.data)

    def part(self, start: int, stop: int) -> bytes:
        """The bytes from `start` to `stop`, fewer where the file ends before."""
        self.need(stop)
        return bytes(self.data[start:stop])

    def unpack(self, format: str, position: int, missing: str = "its header is not complete") -> tuple[Any, ...]:
        """The numbers at `position`, in a format of `struct`. Raises BadPicture where they are `missing`."""
        stored = self.part(position, position + struct.calcsize(format))
        if len(stored) < struct.calcsize(format):
            raise cut_short(missing)
        return struct.unpack(format, stored)

    def end(self) -> int:
        """How many bytes there are in all, after an attempt to read them."""
        while self.grow():
            pass
        return len(self.data)

    def grow(self) -> bool:
        """Read some more bytes; whether there were any."""
        return False


def boxes(feed: ByteSource, position: int, stop: int | None = None) -> Iterator[tuple[bytes, int, int | None]]:
    """Kind, start and end of the contents of each ISO box from `position` to `stop`; they need not be there yet.

    The end is None for a box that goes on to the end of the file. Raises BadPicture.
    """
    for _ in range(MOST_BOXES):
        if position == stop:
            return
        length, kind = feed.unpack(">I4s", position, "it ends before its picture")
        start = position + 8
        if length == 1:
            (length,), start = feed.unpack(">Q", start, "it ends before its picture"), start + 8
        end = position + length if length else None
        if end is not None and (end < start or (stop is not None and end > stop)):
            raise BadPicture("the length of a box is wrong")
        yield kind, start, end
        if end is None:
            return
        position = end
    raise too_many("boxes", MOST_BOXES)


class StreamSource(ByteSource):
    """Bytes of a stream, up to `limit`. `begun` are those that were read from it before."""

    def __init__(self, stream: IO[bytes], begun: bytes, limit: int, sides: Callable[[int, int], None]) -> None:
        self._buffer = bytearray(begun)
        super().__init__(self._buffer, sides)
        self._stream, self._limit = stream, limit
        self._ended = False

    @property
    def most_bytes(self) -> int:
        return self._limit

    def need(self, count: int) -> bool:
        """See ByteSource.need. Raises BadPicture where that is above the limit."""
        if count > self._limit:
            raise above_limit(f"its header states {count:,} bytes or more", self._limit)
        while len(self.data) < count and self._read(count - len(self.data)):
            pass
        return len(self.data) >= count

    def grow(self) -> bool:
        """See ByteSource.grow. Raises BadPicture where there is more than the limit."""
        if not self._read(STEP_BYTES):
            return False
        if len(self.data) > self._limit:
            raise above_limit("it has not ended", self._limit)
        return True

    def _read(self, count: int) -> bool:
        if self._ended:
            return False
        piece = self._stream.read(min(count, STEP_BYTES))
        self._ended = not piece
        self._buffer += piece
        return not self._ended


class HeaderSource(ByteSource):
    """The next `size` bytes of a file, read part by part and no further than its sides: see `sides_of`."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        super().__init__(b"", _found)
        self._stream, self._first, self._size = stream, stream.tell(), size

    @property
    def most_bytes(self) -> int:
        return self._size

    def need(self, count: int) -> bool:
        """Whether the file has `count` bytes; none is read."""
        return count <= self._size

    def part(self, start: int, stop: int) -> bytes:
        stop = min(stop, self._size)
        if start >= stop:
            return b""
        self._stream.seek(self._first + start)
        return self._stream.read(stop - start)

    def end(self) -> int:
        return self._size


def sides_of(read_header: Callable[[ByteSource], Header], stream: IO[bytes], size: int) -> tuple[int, int]:
    """Width and height in the header of a file that begins here and has `size` bytes. Raises BadPicture."""
    try:
        header = read_header(HeaderSource(stream, size))
    except _SidesFound as found:
        return found.width, found.height
    return header.width, header.height


class _SidesFound(Exception):
    """Stops the reading of a file once its header has been read."""

    def __init__(self, width: int, height: int) -> None:
        super().__init__()
        self.width, self.height = width, height


def _found(width: int, height: int) -> None:
    raise _SidesFound(width, height)


def above_limit(what: str, limit: int) -> BadPicture:
    """The error for a file or stream of more bytes than may be read."""
    return BadPicture(f"{what}, above the limit of {limit:,} bytes", "raise --max-bytes if it really is that large")
