"""The base of a picture that is read in parts: its size and type, and any block of its pixels as RGB or grey.

A chunk is what is decoded at once: a tile of a TIFF, some strips, a chunk of a Zarr. Pixels are as `io` gives them:
HWC, RGB, or grey of one channel, which the caller may ask for as three equal ones; alpha is dropped.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.filters import GREY_CHANNELS, RGB_CHANNELS
from edgeconv.errors import ImageReadError, one_line
from edgeconv.io.formats.base import BadPicture
from edgeconv.io.read_limits import ReadRules
from edgeconv.io.reading import DEPTH_NOTE, GREY_NOTE

Item = TypeVar("Item")
Result = TypeVar("Result")
Block = tuple[range, range]
"""Rows and columns."""

COPIES_WHILE_LOADING = 4
"""Of a chunk: as encoded, as decoded, as the library gives it, as it is given here."""
PART_BYTES = 2**20
"""Of rows that are read at once where the file has no chunks, or thin strips."""


class TileSource(ABC):
    """An open picture. `load` may be called from several threads at once."""

    height: int
    width: int
    format: str
    notes: tuple[str, ...]
    chunk: tuple[int, int]
    """Rows and columns that are decoded at once."""

    def __init__(self, path: Path, colours: int, dtype: np.dtype[Any], stored_channels: int, rgb: bool) -> None:
        self.path, self.dtype = path, dtype
        self.channels = RGB_CHANNELS if rgb or colours != GREY_CHANNELS else GREY_CHANNELS
        """Of the pixels as they are given."""
        self._stored_bytes = stored_channels * dtype.itemsize
        self._spread = self.channels > colours

    @abstractmethod
    def stored(self, rows: range, columns: range) -> NDArray[Any]:
        """A block of pixels as the file has them, HWC. Raises whatever its library does."""

    def close(self) -> None:  # noqa: B027  # most of them hold nothing open
        """Close the file."""

    def load(self, rows: range, columns: range) -> NDArray[Any]:
        """A block of pixels, HWC: grey spread where that was asked for, alpha dropped, native bytes.

        Raises ImageReadError.
        """
        try:
            pixels = self.stored(rows, columns)
        except MemoryError:
            raise
        except BadPicture as bad:
            raise refused(self.path, self.format, bad) from None
        except Exception as error:  # whatever a codec says of a damaged chunk
            place = f"rows {rows.start:,} to {rows.stop - 1:,}, columns {columns.start:,} to {columns.stop - 1:,}"
            damage = BadPicture(f"the piece at {place} cannot be decoded ({one_line(error)})")
            raise refused(self.path, self.format, damage) from None
        dtype = pixels.dtype.newbyteorder("=")
        if self._spread:
            return np.repeat(pixels[:, :, :1].astype(dtype, copy=False), self.channels, axis=2)
        return np.ascontiguousarray(pixels[:, :, : self.channels], dtype)

    @property
    def pixel_bytes(self) -> int:
        """Of a pixel as it is given."""
        return self.channels * self.dtype.itemsize

    @property
    def loading_bytes(self) -> int:
        """Most memory that a chunk takes while it is loaded."""
        rows, columns = self.chunk
        return COPIES_WHILE_LOADING * rows * columns * max(self._stored_bytes, self.pixel_bytes)

    def notes_of(self, notes: dict[str, bool], *, alpha: bool) -> tuple[str, ...]:
        """What a person may not expect to have happened to the picture: what holds of `notes`, and what all have."""
        deep = self.dtype == np.uint16
        known = {GREY_NOTE: self._spread, "alpha channel dropped": alpha, **notes, DEPTH_NOTE: deep}
        return tuple(note for note, holds in known.items() if holds)


def refused(path: Path, format: str, bad: BadPicture) -> ImageReadError:
    """The error for a file that cannot be read by tiles."""
    return ImageReadError(f"{path}: {format}: {bad.reason}: {bad.remedy}.")


def check_chunk(what: str, pixels: int, rules: ReadRules) -> None:
    """Raise BadPicture where more is decoded at once than the limit of pixels."""
    if pixels > rules.max_pixels:
        raise BadPicture(
            f"{what} of {pixels:,} pixels, which is decoded at once, is above the limit of {rules.max_pixels:,}",
            "raise --max-pixels if it really is that large",
        )


def in_order(pool: Executor, work: Callable[[Item], Result], items: Iterable[Item], ahead: int) -> Iterator[Result]:
    """`work(item)` for every item on `pool`, in order, with at most `ahead` of them started and not yet consumed."""
    started: deque[Future[Result]] = deque()
    try:
        for item in items:
            if len(started) == ahead:
                yield started.popleft().result()
            started.append(pool.submit(work, item))
        while started:
            yield started.popleft().result()
    finally:
        for future in started:
            future.cancel()


class Reader:
    """Puts windows together from chunks, and keeps those that a later window needs while there is room."""

    def __init__(
        self, source: TileSource, windows: Iterable[Block], kept_bytes: int, pool: Executor, threads: int
    ) -> None:
        self._source, self._pool, self._threads = source, pool, threads
        self._left = Counter(chunk for window in windows for chunk in self._chunks(window))
        self._kept: dict[Block, NDArray[Any]] = {}
        self._room = kept_bytes
        self._lock = threading.Lock()
        self.chunks = len(self._left)
        """Chunks that some window needs."""
        self.decoded = 0
        """Decodings so far; a chunk that is decoded twice counts twice."""

    def read(self, rows: range, columns: range) -> NDArray[Any]:
        """One of the windows, HWC and C-contiguous. Not thread-safe."""
        source = self._source
        window = np.empty((len(rows), len(columns), source.channels), source.dtype)

        def paste(chunk: Block) -> None:
            into, of = zip(*map(_overlap, (rows, columns), chunk), strict=True)
            window[into] = self._take(chunk)[of]

        for _ in in_order(self._pool, paste, self._chunks((rows, columns)), self._threads):
            pass
        return window

    def _chunks(self, window: Block) -> list[Block]:
        """The chunks that a window touches, as far as the picture goes."""
        sizes = (self._source.height, self._source.width)
        down, across = (
            [range(start, min(start + chunk, size)) for start in range(span.start // chunk * chunk, span.stop, chunk)]
            for span, chunk, size in zip(window, self._source.chunk, sizes, strict=True)
        )
        return list(product(down, across))

    def _take(self, place: Block) -> NDArray[Any]:
        with self._lock:
            self._left[place] -= 1
            last = self._left[place] <= 0
            chunk = self._kept.pop(place, None) if last else self._kept.get(place)
            if chunk is not None and last:
                self._room += chunk.nbytes
        if chunk is not None:
            return chunk
        chunk = self._source.load(*place)
        with self._lock:
            self.decoded += 1
            if not last and chunk.nbytes <= self._room:
                self._kept[place] = chunk
                self._room -= chunk.nbytes
        return chunk


def _overlap(window: range, chunk: range) -> tuple[slice, slice]:
    """What both have, as a slice of each."""
    start, stop = max(window.start, chunk.start), min(window.stop, chunk.stop)
    return slice(start - window.start, stop - window.start), slice(start - chunk.start, stop - chunk.start)
