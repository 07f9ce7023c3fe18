"""TIFF and BigTIFF by tile or strip, through tifffile and its codecs (imagecodecs).

    8 and 16 bits, floats of 32 and 64 bits; grey (either polarity), RGB, a palette (which is colour), YCbCr in JPEG
    interleaved or in separate planes, any compression that imagecodecs supports; the first page
    strips without compression are read row by row, however tall they are: files of one strip are common

A stranger's tags may name the same bytes thousands of times, and tifffile reads them all: so they are counted first.
"""

from __future__ import annotations

import logging
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.io.formats.base import BadPicture, cut_short
from edgeconv.io.formats.tiff import (
    BLACK_IS_ZERO,
    COLOUR_PROFILE,
    CONVERT,
    FLOAT,
    ORIENTATION,
    RGB,
    SEPARATE_PLANES,
    UNCOMPRESSED,
    UNSIGNED,
    WHITE_IS_ZERO,
    YCBCR,
    picture_directory,
)
from edgeconv.io.read_limits import ReadRules
from edgeconv.io.reading import FRAMES_NOTE, MAX_SIDE, PROFILE_NOTE, check_sides
from edgeconv.run.sources.base import PART_BYTES, TileSource, check_chunk
from edgeconv.run.sources.zarr import stored_block

PALETTE = 3
COLOURS = {WHITE_IS_ZERO: 1, BLACK_IS_ZERO: 1, RGB: 3, PALETTE: 3, YCBCR: 3}
"""By photometric interpretation."""
TYPES = {(UNSIGNED, 8): "uint8", (UNSIGNED, 16): "uint16", (FLOAT, 32): "float32", (FLOAT, 64): "float64"}
"""By sample format and bits."""
JPEGS = (6, 7, 33007, 34892)
"""Compressions whose decoder turns YCbCr into RGB: JPEG, old and new, and two vendors' numbers for it."""
PALETTE_SHIFT = 8
"""Palettes have 16 bits per colour, of which the upper 8 are used, as in libtiff."""


class TiffSource(TileSource):
    """The first page of a TIFF file."""

    format = "TIFF"

    def __init__(self, path: Path, rules: ReadRules) -> None:
        """Raises BadPicture, OSError, and whatever tifffile says of damage."""
        import tifffile

        logging.getLogger("tifffile").addHandler(logging.NullHandler())  # our one line says what is wrong
        with path.open("rb") as stream, mmap(stream.fileno(), 0, access=ACCESS_READ) as data:
            another = bool(picture_directory(data).following)
        self._file = tifffile.TiffFile(path)
        try:
            self._read_directory(path, another, rules)
        except BaseException:
            self.close()
            raise

    def _read_directory(self, path: Path, another: bool, rules: ReadRules) -> None:
        page = self._page = self._file.pages.first
        dtype = TYPES.get((int(page.sampleformat or UNSIGNED), page.bitspersample))
        photometric, compression = int(page.photometric), int(page.compression)
        check_sides(MAX_SIDE**2, page.imagewidth, page.imagelength)
        if dtype is None or photometric not in COLOURS or page.imagedepth != 1:
            layout = f"{page.samplesperpixel} samples of {page.bitspersample} bits, photometric {photometric}"
            raise BadPicture(f"its layout ({layout}) is not supported by tiles", CONVERT)
        if photometric == YCBCR and compression not in JPEGS:
            raise BadPicture("YCbCr without JPEG is not supported", CONVERT)
        super().__init__(path, COLOURS[photometric], np.dtype(dtype), page.samplesperpixel, rules.rgb)
        orientation = int(page.tags.valueof(ORIENTATION, 1))
        self.orientation = orientation if 1 <= orientation <= 8 else 1
        self.height, self.width = page.imagelength, page.imagewidth
        self._photometric, self._palette = photometric, _palette(page) if photometric == PALETTE else None
        self._by_rows = _is_plain(page)
        self.chunk = self._chunk(rules)
        left_out = self._count_left_out()
        notes = {
            FRAMES_NOTE: another,
            PROFILE_NOTE: COLOUR_PROFILE in page.tags,
            f"{left_out:,} strips or tiles that the file leaves out taken as zero": left_out > 0,
        }
        spare = page.samplesperpixel - (1 if photometric == PALETTE else COLOURS[photometric])
        self.notes = self.notes_of(notes, alpha=spare > 0)

    def close(self) -> None:
        self._file.close()

    def stored(self, rows: range, columns: range) -> NDArray[Any]:
        pixels = self._rows(rows) if self._by_rows else stored_block(self._array, self._axes, rows, columns)
        if self._palette is not None:
            pixels = self._palette[pixels[:, :, 0]]
        if self._photometric == WHITE_IS_ZERO:
            pixels = (np.iinfo(pixels.dtype).max if pixels.dtype.kind == "u" else 1) - pixels[:, :, :1]
        return pixels

    def _rows(self, rows: range) -> NDArray[Any]:
        """Whole rows of a picture whose samples lie in the file one after another."""
        page, dtype = self._page, self.dtype.newbyteorder(self._file.byteorder)
        planes = page.samplesperpixel if page.planarconfig == SEPARATE_PLANES else 1
        shape = (len(rows), self.width, page.samplesperpixel // planes)
        row_bytes = shape[1] * shape[2] * dtype.itemsize
        places = (page.dataoffsets[0] + (plane * self.height + rows.start) * row_bytes for plane in range(planes))
        count = np.prod(shape, dtype=int)
        return np.concatenate([np.fromfile(self.path, dtype, count, offset=at).reshape(shape) for at in places], axis=2)

    def _chunk(self, rules: ReadRules) -> tuple[int, int]:
        """Tiles as they are; strips as they are or, where they are thin or need not be decoded, some rows."""
        page = self._page
        rows = max(1, PART_BYTES // (self.width * self._stored_bytes))
        if self._by_rows:
            return min(rows, self.height), self.width
        import zarr

        store = page.aszarr(fillvalue=0, maxworkers=2)  # so that a chunk is decoded outside zarr's only thread
        self._array, self._axes = zarr.open_array(store, mode="r"), page.axes.lower().replace("s", "c")
        if page.is_tiled:
            check_chunk("a tile", page.tilelength * page.tilewidth, rules)
            return page.tilelength, page.tilewidth
        strip = min(page.rowsperstrip, self.height)
        check_chunk("a strip", strip * self.width, rules)
        return min(max(1, rows // strip) * strip, self.height), self.width

    def _count_left_out(self) -> int:
        """Strips or tiles of no bytes. Raises BadPicture where one lies beyond the end of the file."""
        page, size = self._page, self._file.filehandle.size
        needed = max(map(sum, zip(page.dataoffsets, page.databytecounts, strict=False)), default=0)
        if len(page.dataoffsets) < np.prod(page.chunked):
            raise cut_short("it does not say where its pixels are")
        if needed > size:
            raise cut_short(f"{size:,} of {needed:,} bytes are there")
        return sum(not count for count in page.databytecounts)


def _is_plain(page: Any) -> bool:
    """Whether the samples lie in the file one after another, as they are."""
    as_they_are = page.compression == UNCOMPRESSED and (page.predictor, page.fillorder) == (1, 1)
    return as_they_are and not page.is_tiled and page.is_contiguous and sum(page.databytecounts) >= page.nbytes


def _palette(page: Any) -> NDArray[np.uint8]:
    """(entries, 3), 8 bits per colour."""
    if page.bitspersample != 8 or np.shape(page.colormap) != (3, 256):
        raise BadPicture("its palette is damaged, or not of 8 bits", CONVERT)
    return np.ascontiguousarray((page.colormap.T >> PALETTE_SHIFT).astype(np.uint8))
