"""The interface of a picture that is read in chunks: its size, its type, and any of its chunks as RGB or grey.

A chunk is what is decoded at once: a tile of a TIFF, some strips, a chunk of a Zarr. Pixels are as in io/image.py: HWC,
RGB, or grey of one channel, which the caller may ask for as three equal ones; alpha dropped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.filters import GREY_CHANNELS, RGB_CHANNELS
from edgeconv.errors import ImageReadError, one_line
from edgeconv.io.formats.base import AGAIN
from edgeconv.io.image import MAX_SIDE
from edgeconv.run.tiled.grid import Span

COPIES_WHILE_LOADING = 3
"""Of a decoded chunk: as encoded, as decoded, as given; each at most about as large as a chunk of all its channels."""


@dataclass(frozen=True)
class ChunkLayout:
    """What a picture is, and how it is cut into chunks."""

    height: int
    width: int
    channels: int
    """Of the pixels as they are given: 3, or 1 of grey."""
    dtype: np.dtype[Any]
    """Of the pixels as they are given: one of `INPUT_DTYPES`."""
    format: str
    notes: tuple[str, ...]
    row_cuts: tuple[int, ...]
    column_cuts: tuple[int, ...]
    """Ascending from 0 to the size; neighbours bound a chunk."""
    stored_bytes_a_pixel: int
    """Of a decoded pixel with all its channels, before anything is dropped."""
    loader_bytes: int = 0
    """What the library that reads it holds for a chunk beside."""

    @property
    def chunk_rows(self) -> int:
        """Rows of the tallest chunk."""
        return max(np.diff(self.row_cuts).tolist())

    @property
    def chunk_columns(self) -> int:
        """Columns of the widest chunk."""
        return max(np.diff(self.column_cuts).tolist())

    @property
    def loading_bytes(self) -> int:
        """Most memory that `load` holds at once."""
        pixel_bytes = max(self.stored_bytes_a_pixel, self.channels * self.dtype.itemsize)
        return COPIES_WHILE_LOADING * self.chunk_rows * self.chunk_columns * pixel_bytes + self.loader_bytes


class TileSource(ABC):
    """An open picture. `load` may be called from several threads at once."""

    layout: ChunkLayout

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def load(self, row: int, column: int) -> NDArray[Any]:
        """Chunk (row, column), HWC with the layout's channels. Raises ImageReadError with the chunk's place."""

    @abstractmethod
    def close(self) -> None:
        """Close the file."""

    def span(self, row: int, column: int) -> tuple[Span, Span]:
        """Rows and columns of a chunk."""
        rows, columns = self.layout.row_cuts, self.layout.column_cuts
        return Span(rows[row], rows[row + 1]), Span(columns[column], columns[column + 1])

    def damaged(self, row: int, column: int, reason: object) -> ImageReadError:
        """The error for a chunk that cannot be decoded."""
        rows, columns = self.span(row, column)
        return ImageReadError(
            f"{self.path}: {self.layout.format}: the piece at rows {rows}, columns {columns} cannot be decoded "
            f"({one_line(reason)}): {AGAIN}."
        )


def unusable(path: Path, format: str, reason: str, remedy: str = AGAIN) -> ImageReadError:
    """The error for a file that cannot be read by tiles."""
    return ImageReadError(f"{path}: {format}: {reason}: {remedy}.")


def check_size(path: Path, format: str, height: int, width: int) -> None:
    """Raise ImageReadError for impossible sides. The number of pixels is not limited: the tile bounds memory."""
    if min(height, width) < 1:
        raise unusable(path, format, f"its header says {width:,}×{height:,} pixels")
    if max(height, width) > MAX_SIDE:
        raise unusable(
            path,
            format,
            f"its header says {width:,}×{height:,} pixels, and no side may be above {MAX_SIDE:,}",
            "cut it into parts",
        )


def given_channels(colours: int, rgb: bool) -> int:
    """Channels that a picture of so many colours is given with; `rgb` asks for three of grey too."""
    return RGB_CHANNELS if rgb or colours != GREY_CHANNELS else GREY_CHANNELS


def as_given(pixels: NDArray[Any], channels: int) -> NDArray[Any]:
    """`pixels` (HWC, 1 to 4 channels) with 1 or 3: grey spread for 3, alpha dropped, native bytes."""
    dtype = pixels.dtype.newbyteorder("=")
    if pixels.shape[2] < channels:
        return np.repeat(pixels[:, :, :1].astype(dtype, copy=False), channels, axis=2)
    return np.ascontiguousarray(pixels[:, :, :channels], dtype)
