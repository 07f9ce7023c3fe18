"""A tiled TIFF, or BigTIFF from 4 GB on: pieces deflated side by side, appended as they come, then the directory set.

tifffile writes the directory first, with every piece left out; where they came to lie is filled in at the end. So
tiles may come in any order, and nothing but the piece in hand is held. The order in the file is the order of the
tiles, so the same job gives the same bytes. A filter bank gives a page for each filter.

Deflate is libdeflate's at level 1: nearly as fast as ISA-L's (png.py), a fifth smaller, and always the same bytes,
which ISA-L's were not once in some thousand pieces. No predictor: edges gain little by one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv import __version__
from edgeconv.io import temporary_files
from edgeconv.io.files import pass_permissions_on, take_name
from edgeconv.io.formats.tiff import TILE_BYTES, TILE_OFFSETS
from edgeconv.run.tiled.reader import in_order
from edgeconv.run.tiled.sinks.base import OutputShape, Sink

CLASSIC_BYTES = 2**32 - 2**26
"""Samples from which offsets of 32 bits might not do: what deflate adds to noise, and the directory, need some room."""

LEVEL = 1

Place = tuple[int, int, int]
"""Page of a piece, and its row and column in the output's pixels."""


class TiffSink(Sink):
    """See the module."""

    def __init__(self, target: Path, shape: OutputShape, piece: int) -> None:
        import tifffile

        super().__init__(target, shape, piece)
        self._across = -(-shape.width // piece)
        count = self._across * -(-shape.height // piece)
        self._offsets = [[0] * count for _ in range(shape.pictures)]
        self._byte_counts = [[0] * count for _ in range(shape.pictures)]
        channels = shape.picture_channels
        try:
            with tifffile.TiffWriter(self.path, bigtiff=shape.nbytes >= CLASSIC_BYTES) as writer:
                for _ in range(shape.pictures):
                    writer.write(
                        (b"" for _ in range(count)),
                        shape=(shape.height, shape.width, channels)[: 3 if channels > 1 else 2],
                        dtype=shape.dtype,
                        photometric="rgb" if channels > 1 else "minisblack",
                        planarconfig="contig" if channels > 1 else None,
                        tile=(piece, piece),
                        compression="adobe_deflate",
                        metadata=None,
                        software=f"edgeconv {__version__}",
                    )
            pass_permissions_on(target, self.path)
            self._stream = self.path.open("r+b")
            self._end = self._stream.seek(0, os.SEEK_END)
        except BaseException as error:
            self.discard()
            if isinstance(error, OSError):
                raise self.unwritable(error) from None
            raise

    def write(self, row: int, column: int, pixels: NDArray[Any], pool: Executor, threads: int) -> None:
        import imagecodecs

        def compress(place: Place) -> tuple[Place, bytes]:
            page, down, across = place
            piece = self._cut(pixels[:, :, page :: self.shape.pictures], down - row, across - column)
            return place, bytes(imagecodecs.deflate_encode(piece, level=LEVEL))

        for place, data in in_order(pool, compress, self._places(row, column, pixels), threads + 1):
            self._append(place, data)

    def finish(self) -> None:
        import tifffile

        try:
            self._stream.flush()
            os.fsync(self._stream.fileno())
            self._stream.close()
            with tifffile.TiffFile(self.path, mode="r+") as file:
                pages: Any = file.pages
                for page, offsets, counts in zip(pages, self._offsets, self._byte_counts, strict=True):
                    page.tags[TILE_OFFSETS].overwrite(offsets)
                    page.tags[TILE_BYTES].overwrite(counts)
                file.filehandle.flush()
                os.fsync(file.filehandle.fileno())
        except OSError as error:
            raise self.unwritable(error) from None

    def commit(self, replace: bool = True) -> None:
        target = Path(os.path.realpath(self.target))
        try:
            if replace:
                os.replace(self.path, target)
            else:
                take_name(self.path, target)
        except OSError as error:
            raise self.unwritable(error) from None
        temporary_files.end(self.path)

    def discard(self) -> None:
        if hasattr(self, "_stream"):
            with suppress(OSError):
                self._stream.close()
        with suppress(OSError):
            self.path.unlink()
        temporary_files.end(self.path)

    def _places(self, row: int, column: int, pixels: NDArray[Any]) -> Iterator[Place]:
        """The pieces of a tile."""
        for page in range(self.shape.pictures):
            for down in range(row, row + pixels.shape[0], self.piece):
                for across in range(column, column + pixels.shape[1], self.piece):
                    yield page, down, across

    def _cut(self, pixels: NDArray[Any], row: int, column: int) -> bytes:
        """A piece's samples, filled up with zeros where the picture ends."""
        part = pixels[row : row + self.piece, column : column + self.piece]
        if part.shape[:2] == (self.piece, self.piece):
            return part.tobytes()
        whole = np.zeros((self.piece, self.piece, self.shape.picture_channels), self.shape.dtype)
        whole[: part.shape[0], : part.shape[1]] = part
        return whole.tobytes()

    def _append(self, place: Place, data: bytes) -> None:
        page, row, column = place
        index = row // self.piece * self._across + column // self.piece
        try:
            self._stream.write(data)
        except OSError as error:
            raise self.unwritable(error) from None
        self._offsets[page][index], self._byte_counts[page][index] = self._end, len(data)
        self._end += len(data)
