"""Outputs that are written in pieces, under a temporary name: a tiled TIFF, or an OME-Zarr. One table of them.

TIFF   deflated tiles, as they come; tifffile writes the directory first, with every tile left out, and where they came
       to lie is filled in at the end. Rectangles come in a fixed order, so the same job gives the same bytes. BigTIFF
       from 4 GB on; a filter bank gives a page for each filter
Zarr   NGFF 0.5, Zarr 3, one resolution: axes c, y, x, a chunk for every piece, compressed by Zstandard; a filter bank
       gives all its channels, each in chunks of its own

Deflate is libdeflate's at level 1: nearly as fast as ISA-L's (io/png.py), a fifth smaller, and always the same bytes,
which ISA-L's were not once in some thousand pieces. No predictor: edges gain little by one.
"""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv import __version__
from edgeconv.errors import ImageWriteError
from edgeconv.io.formats.tiff import TILE_BYTES, TILE_OFFSETS
from edgeconv.run.rectangles import Rectangle, spans
from edgeconv.run.sources.base import in_order

CLASSIC_BYTES = 2**32 - 2**26
"""Samples from which offsets of 32 bits might not do: what deflate adds to noise, and the directory, need some room."""
LEVEL = 1
LEVEL_NAME = "0"
"""Of the only resolution of a Zarr."""


@dataclass(frozen=True)
class OutputShape:
    """The whole output."""

    height: int
    width: int
    channels: int
    dtype: np.dtype[Any]
    pictures: int = 1
    """Of a filter bank one for each filter: channels c·K + k are those of picture k of K."""

    @property
    def nbytes(self) -> int:
        """Bytes of all samples."""
        return self.height * self.width * self.channels * self.dtype.itemsize


class Sink(ABC):
    """An output that takes rectangles in any order; it is complete after `finish`. All raise OSError."""

    name: str
    suffixes: tuple[str, ...]
    """The first is that of an output which is not named."""
    dtypes: tuple[str, ...]
    """Sample types that it can hold without conversion."""
    copies: int
    """Copies of a rectangle in memory while it is written."""

    def __init__(self, path: Path, shape: OutputShape, piece: int) -> None:
        self.path, self.shape, self.piece = path, shape, piece

    @abstractmethod
    def write(self, rectangle: Rectangle, pixels: NDArray[Any], pool: Executor, threads: int) -> None:
        """Put the pixels of a rectangle (HWC), compressed on `pool`."""

    def finish(self) -> None:  # noqa: B027  # every chunk of a Zarr is a complete file already
        """Complete the output."""

    def close(self) -> None:  # noqa: B027
        """Let go of the file; harmless at any time."""


class TiffSink(Sink):
    """See the module."""

    name, suffixes, copies = "TIFF", (".tiff", ".tif"), 0
    dtypes = ("uint8", "uint16", "float32", "float64")

    def __init__(self, path: Path, shape: OutputShape, piece: int) -> None:
        import tifffile

        super().__init__(path, shape, piece)
        count = len(spans(shape.height, piece)) * len(spans(shape.width, piece))
        self._places: NDArray[np.int64] = np.zeros(
            (shape.pictures, 2, count), np.int64
        )  # offset and length of each tile
        channels = shape.channels // shape.pictures
        with tifffile.TiffWriter(path, bigtiff=shape.nbytes >= CLASSIC_BYTES) as writer:
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
        self._stream = path.open("r+b")
        self._end = self._stream.seek(0, os.SEEK_END)

    def write(self, rectangle: Rectangle, pixels: NDArray[Any], pool: Executor, threads: int) -> None:
        import imagecodecs

        side, pages = self.piece, self.shape.pictures

        def compress(place: tuple[int, range, range]) -> bytes:
            page, rows, columns = place
            samples: NDArray[Any] = pixels[rows.start : rows.stop, columns.start : columns.stop, page::pages]
            if samples.shape[:2] != (side, side):  # filled up with zeros where the picture ends
                rest = [(0, side - size) for size in samples.shape[:2]]
                samples = np.pad(samples, [*rest, (0, 0)])
            return bytes(imagecodecs.deflate_encode(samples.tobytes(), level=LEVEL))

        rows_of, columns_of = (spans(len(span), side) for span in rectangle)
        pieces = list(product(range(pages), rows_of, columns_of))
        across = len(spans(self.shape.width, side))
        first = rectangle.rows.start // side * across + rectangle.columns.start // side
        for (page, rows, columns), data in zip(pieces, in_order(pool, compress, pieces, threads + 1), strict=True):
            self._stream.write(data)
            index = first + rows.start // side * across + columns.start // side
            self._places[page, :, index] = self._end, len(data)
            self._end += len(data)

    def finish(self) -> None:
        import tifffile

        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._stream.close()
        with tifffile.TiffFile(self.path, mode="r+") as file:
            pages: Any = file.pages
            for page, (offsets, counts) in zip(pages, self._places.tolist(), strict=True):
                page.tags[TILE_OFFSETS].overwrite(offsets)
                page.tags[TILE_BYTES].overwrite(counts)
            file.filehandle.flush()
            os.fsync(file.filehandle.fileno())

    def close(self) -> None:
        self._stream.close()


@contextmanager
def _zarr_at_rest() -> Iterator[None]:
    """An error leaves the block when Zarr has ended its other writes: late ones would make removed folders again."""
    from zarr.core.sync import sync

    async def others_have_ended() -> None:
        if others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(others)

    try:
        yield
    except BaseException:
        sync(others_have_ended())
        raise


class ZarrSink(Sink):
    """See the module. Zarr itself spreads the chunks of a rectangle over its threads."""

    name, suffixes, copies = "Zarr", (".zarr",), 2
    dtypes = ("uint8", "uint16", "float16", "float32", "float64")

    def __init__(self, path: Path, shape: OutputShape, piece: int) -> None:
        import zarr

        super().__init__(path, shape, piece)
        with _zarr_at_rest():
            group = zarr.open_group(str(path), mode="w-", zarr_format=3)
            self._array = group.create_array(
                LEVEL_NAME,
                shape=(shape.channels, shape.height, shape.width),
                chunks=(shape.channels if shape.pictures == 1 else 1, piece, piece),
                dtype=shape.dtype,
                dimension_names=("c", "y", "x"),
            )
            axes: Any = [
                {"name": "c", "type": "channel"},
                {"name": "y", "type": "space"},
                {"name": "x", "type": "space"},
            ]
            scale = {"type": "scale", "scale": [1.0] * len(axes)}
            datasets: Any = [{"path": LEVEL_NAME, "coordinateTransformations": [scale]}]
            group.attrs["ome"] = {"version": "0.5", "multiscales": [{"axes": axes, "datasets": datasets}]}

    def write(self, rectangle: Rectangle, pixels: NDArray[Any], pool: Executor, threads: int) -> None:
        rows, columns = (slice(span.start, span.stop) for span in rectangle)
        with _zarr_at_rest():
            self._array[:, rows, columns] = np.moveaxis(pixels, 2, 0)


SINKS: tuple[type[Sink], ...] = (TiffSink, ZarrSink)


def sink_for(path: Path, dtype: str) -> type[Sink]:
    """The sink for the suffix of `path` and samples of `dtype`. Raises ImageWriteError."""
    sink = next((sink for sink in SINKS if path.suffix.lower() in sink.suffixes), None)
    able = [other.suffixes[0] for other in SINKS if dtype in other.dtypes]
    if sink is None:
        raise ImageWriteError(
            f"{path}: '{path.suffix}' is not a format that can be written by tiles: use {' or '.join(able)}."
        )
    if dtype not in sink.dtypes:
        raise ImageWriteError(f"{path}: {sink.name} cannot hold {dtype} samples: use {' or '.join(able)}.")
    return sink
