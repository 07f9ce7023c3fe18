"""The ledger in a remote store, whose objects cannot be appended to: a folder of segments, each written once.

    OUT/edgeconv-ledger/r0000000000000007-000001-5f0c31aa.jsonl

A segment holds the rows of some seconds. Its name has the number of the run and of the segment within it, so that names
in order are rows in order, independent of the clocks of several machines, and ends in a random part, so that two
simultaneous runs (`--shard`) never collide. A run that is killed loses the rows of its last seconds and no picture:
resuming it computes the same bytes again, finds them in place and writes the row.
"""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from threading import Lock
from types import TracebackType

from edgeconv.batch.row import LedgerRow
from edgeconv.batch.stores import store_of
from edgeconv.batch.stores.base import EmptyFileError
from edgeconv.errors import ImageWriteError

SEGMENTS_NAME = "edgeconv-ledger"
SUFFIX = ".jsonl"
MOST_ROWS = 512
MOST_SECONDS = 5.0
"""A compromise: rows that a killed run loses, against a request to the store for every row."""


def read_segments(place: str) -> bytes:
    """All lines of a ledger in the order written; the last line of a segment that is cut short stays separate."""
    store = store_of(place)
    segments = []
    for name in store.names(place):
        if name.endswith(SUFFIX):
            with suppress(EmptyFileError):  # the connection was lost while it was written: it never had a row
                segments.append(store.read(store.join(place, name)).removesuffix(b"\n") + b"\n")
    return b"".join(segments)


class SegmentLedger:
    """Collects rows and writes them in segments; for several threads at once."""

    def __init__(self, place: str, run: int) -> None:
        self.path, self._run = place, run
        self._store = store_of(place)
        self._random = secrets.token_hex(4)
        self._segments = 0
        self._lock = Lock()
        self._lines: list[bytes] = []
        self._put_at = time.monotonic()

    def append(self, row: LedgerRow) -> None:
        """Add a row, and write a segment if one is due. Raises ImageWriteError where that fails."""
        with self._lock:
            self._lines.append(row.to_line(self._run))
            if len(self._lines) >= MOST_ROWS or time.monotonic() - self._put_at >= MOST_SECONDS:
                self._put()

    def _put(self) -> None:
        name = f"r{self._run:016}-{self._segments + 1:06}-{self._random}{SUFFIX}"
        segment = self._store.join(self.path, name)
        try:
            self._store.write(segment, b"".join(self._lines))
        except ImageWriteError as error:
            raise ImageWriteError(f"Ledger: {str(error).rstrip('.')}. Nothing more was filtered.") from None
        self._lines.clear()
        self._segments += 1
        self._put_at = time.monotonic()

    def __enter__(self) -> SegmentLedger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            if self._lines:
                self._put()
