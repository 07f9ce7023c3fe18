"""Where a format's reader gets its bytes: a file that is in memory, or a stream that is read on demand.

The same code parses both, in one pass. A stream may have no end (a device, a pipe), so only what the format requests is
read, and never more than a limit; `sides` is called as soon as the parser knows them, so that a picture that is too
large is refused before its pixels are read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import IO

from edgeconv.io.formats.base import BadPicture

STEP_BYTES = 2**20
"""Bytes read from a stream at once, so that a length that a header merely claims is never allocated."""


class ByteSource:
    """Bytes that are all in memory."""

    def __init__(self, data: bytes | bytearray) -> None:
        self.data = data

    @property
    def most_bytes(self) -> int:
        """Upper limit of the number of bytes."""
        return len(self.data)

    def need(self, count: int) -> bool:
        """Whether the first `count` bytes are there, after an attempt to read them."""
        return count <= len(self.data)

    def grow(self) -> bool:
        """Read some more bytes; whether there were any."""
        return False

    def sides(self, width: int, height: int) -> None:
        """Called once the header has been read. May raise BadPicture."""


class StreamSource(ByteSource):
    """Bytes of a stream, up to `limit`. `begun` are those that were read from it before."""

    def __init__(self, stream: IO[bytes], begun: bytes, limit: int, sides: Callable[[int, int], None]) -> None:
        self._buffer = bytearray(begun)
        super().__init__(self._buffer)
        self._stream, self._limit, self._told = stream, limit, sides
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

    def sides(self, width: int, height: int) -> None:
        self._told(width, height)

    def _read(self, count: int) -> bool:
        if self._ended:
            return False
        piece = self._stream.read(min(count, STEP_BYTES))
        self._ended = not piece
        self._buffer += piece
        return not self._ended


def above_limit(what: str, limit: int) -> BadPicture:
    """The error for a file or stream of more bytes than may be read."""
    return BadPicture(f"{what}, above the limit of {limit:,} bytes", "raise --max-bytes if it really is that large")
