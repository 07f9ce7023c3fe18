"""TIFF and BigTIFF by tile or strip, through tifffile and its codecs (imagecodecs).

    8 and 16 bits, floats of 32 and 64 bits; grey (either polarity), RGB, a palette (which is colour), YCbCr in JPEG
    interleaved or in separate planes, any compression that imagecodecs supports; the first page
    strips without compression are read row by row, however tall they are: files of one strip are common

A stranger's tags may name the same bytes thousands of times, and tifffile reads them all: so they are counted first.
"""

from __future__ import annotations

import logging
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.errors import ImageReadError, one_line
from edgeconv.io.formats.tiff import (
    BIG,
    BLACK_IS_ZERO,
    COLOUR_PROFILE,
    CONVERT,
    FLOAT,
    ORIENTATION,
    RGB,
    SEPARATE_PLANES,
    TYPE_BYTES,
    UNCOMPRESSED,
    UNSIGNED,
    WHITE_IS_ZERO,
    YCBCR,
)
from edgeconv.io.read_limits import ReadRules
from edgeconv.io.reading import FRAMES_NOTE, PROFILE_NOTE
from edgeconv.run.sources.base import PART_BYTES, TileSource, check_decoded, check_sides, unusable
from edgeconv.run.sources.zarr import stored_block

FORMAT = "TIFF"
PALETTE = 3
COLOURS = {WHITE_IS_ZERO: 1, BLACK_IS_ZERO: 1, RGB: 3, PALETTE: 3, YCBCR: 3}
"""By photometric interpretation."""
TYPES = {(UNSIGNED, 8): "uint8", (UNSIGNED, 16): "uint16", (FLOAT, 32): "float32", (FLOAT, 64): "float64"}
"""By sample format and bits."""
JPEGS = (6, 7, 33007, 34892)
"""Compressions whose decoder turns YCbCr into RGB: JPEG, old and new, and two vendors' numbers for it."""
PALETTE_SHIFT = 8
"""Palettes have 16 bits per colour, of which the upper 8 are used, as in libtiff."""

TAG_BYTES = 2**28
"""All values of a page's tags together: places of the pieces of the largest picture are a hundred million bytes."""


def open_tiff(path: Path, rules: ReadRules) -> TiffSource:
    """Open the first page. Raises ImageReadError."""
    import tifffile

    logging.getLogger("tifffile").addHandler(logging.NullHandler())  # errors are reported by our own one-line message
    file: Any = None
    try:
        another = _look_at_tags(path)
        file = tifffile.TiffFile(path)
        return TiffSource(path, file, another, rules)
    except BaseException as error:
        if file is not None:
            file.close()
        if isinstance(error, OSError):
            raise ImageReadError(f"{path}: cannot be read ({error.strerror or error}): check its name.") from None
        if isinstance(error, ImageReadError | MemoryError) or not isinstance(error, Exception):
            raise
        # whatever the damage leads to: TiffFileError, struct.error, KeyError, …
        raise unusable(path, FORMAT, f"its directory cannot be read ({one_line(error)})") from None


def _look_at_tags(path: Path) -> bool:
    """Whether another page follows the first. Raises ImageReadError where its tags hold too much, struct.error."""
    with path.open("rb") as stream:
        begun = stream.read(16)
        order = {b"II": "<", b"MM": ">"}[begun[:2]]
        big = struct.unpack_from(f"{order}H", begun, 2)[0] == BIG
        number, counter, entry = ("Q", "Q", 20) if big else ("I", "H", 12)
        (place,) = struct.unpack_from(order + number, begun, 8 if big else 4)
        stream.seek(place)
        (count,) = struct.unpack(order + counter, stream.read(struct.calcsize(counter)))
        size = os.fstat(stream.fileno()).st_size
        if count * entry > size - place:
            raise unusable(path, FORMAT, "the file is cut short (its directory is not complete)")
        entries = struct.iter_unpack(f"{order}HH{number}{number}", stream.read(count * entry))
        held = sum(TYPE_BYTES.get(kind, 1) * length for _, kind, length, _ in entries)
        if held > TAG_BYTES:
            raise unusable(path, FORMAT, f"its tags hold {held:,} bytes, and no more than {TAG_BYTES:,} are read")
        following = stream.read(struct.calcsize(number))
        return bool(following.strip(b"\0"))


class TiffSource(TileSource):
    """The first page of a TIFF file."""

    format = FORMAT

    def __init__(self, path: Path, file: Any, another: bool, rules: ReadRules) -> None:
        page = file.pages.first
        stored = TYPES.get((int(page.sampleformat or UNSIGNED), page.bitspersample))
        photometric, compression = int(page.photometric), int(page.compression)
        orientation = int(page.tags.valueof(ORIENTATION, 1))
        check_sides(path, FORMAT, page.imagelength, page.imagewidth)
        if stored is None or photometric not in COLOURS or page.imagedepth != 1:
            layout = f"{page.samplesperpixel} samples of {page.bitspersample} bits, photometric {photometric}"
            raise unusable(path, FORMAT, f"its layout ({layout}) is not supported by tiles", CONVERT)
        if photometric == YCBCR and compression not in JPEGS:
            raise unusable(path, FORMAT, "YCbCr without JPEG is not supported", CONVERT)
        super().__init__(path, COLOURS[photometric], np.dtype(stored), page.samplesperpixel, rules.rgb)
        self.height, self.width = page.imagelength, page.imagewidth
        self.orientation = orientation if 1 <= orientation <= 8 else 1
        self._file, self._page, self._photometric = file, page, photometric
        self._apart = page.samplesperpixel > 1 and page.planarconfig == SEPARATE_PLANES
        self._palette = _palette(path, page) if photometric == PALETTE else None
        self._by_rows = _is_plain(page)
        if page.is_tiled:
            check_decoded(path, FORMAT, page.tilelength * page.tilewidth, rules, "a tile")
        elif not self._by_rows:
            check_decoded(path, FORMAT, min(page.rowsperstrip, self.height) * self.width, rules, "a strip")
        self.chunk = self._chunk()
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

    def load(self, rows: range, columns: range) -> NDArray[Any]:
        try:
            pixels = self._rows(rows) if self._by_rows else stored_block(self._array, self._axes, rows, columns)
        except MemoryError:
            raise
        except Exception as error:  # whatever a codec says of a damaged piece
            raise self.damaged(rows, columns, error) from None
        if self._palette is not None:
            pixels = self._palette[pixels[:, :, 0]]
        if self._photometric == WHITE_IS_ZERO:
            pixels = (np.iinfo(pixels.dtype).max if pixels.dtype.kind == "u" else 1) - pixels[:, :, :1]
        return self.as_given(pixels)

    def _rows(self, rows: range) -> NDArray[Any]:
        """Whole rows of a picture whose samples lie in the file one after another."""
        page, dtype = self._page, self.dtype.newbyteorder(self._file.byteorder)
        planes = page.samplesperpixel if self._apart else 1
        shape = (len(rows), self.width, page.samplesperpixel // planes)
        row_bytes = shape[1] * shape[2] * dtype.itemsize
        found = []
        for plane in range(planes):
            place = page.dataoffsets[0] + (plane * self.height + rows.start) * row_bytes
            found.append(np.fromfile(self.path, dtype, np.prod(shape, dtype=int), offset=place).reshape(shape))
        return found[0] if planes == 1 else np.concatenate(found, axis=2)

    def _chunk(self) -> tuple[int, int]:
        """Tiles as they are; strips as they are or, where they are thin or need not be decoded, some rows."""
        page = self._page
        if page.is_tiled:
            chunk = page.tilelength, page.tilewidth
        else:
            rows = max(1, PART_BYTES // (self.width * self._stored_bytes))
            if not self._by_rows:
                strip = min(page.rowsperstrip, self.height)
                rows = max(1, rows // strip) * strip
            chunk = min(rows, self.height), self.width
        if not self._by_rows:
            import zarr

            store = page.aszarr(fillvalue=0, maxworkers=2)  # so that a chunk is decoded outside zarr's only thread
            self._array, self._axes = zarr.open_array(store, mode="r"), page.axes.lower().replace("s", "c")
        return chunk

    def _count_left_out(self) -> int:
        """Strips or tiles of no bytes. Raises ImageReadError where one lies beyond the end of the file."""
        page, size = self._page, self._file.filehandle.size
        needed = max(map(sum, zip(page.dataoffsets, page.databytecounts, strict=False)), default=0)
        if len(page.dataoffsets) < np.prod(page.chunked):
            raise unusable(self.path, FORMAT, "the file is cut short (it does not say where its pixels are)")
        if needed > size:
            raise unusable(self.path, FORMAT, f"the file is cut short ({size:,} of {needed:,} bytes are there)")
        return sum(not count for count in page.databytecounts)


def _is_plain(page: Any) -> bool:
    """Whether the samples lie in the file one after another, as they are."""
    as_they_are = page.compression == UNCOMPRESSED and (page.predictor, page.fillorder) == (1, 1)
    return as_they_are and not page.is_tiled and page.is_contiguous and sum(page.databytecounts) >= page.nbytes


def _palette(path: Path, page: Any) -> NDArray[np.uint8]:
    """(entries, 3), 8 bits per colour."""
    if page.colormap is None or page.bitspersample != 8:
        raise unusable(path, FORMAT, f"a palette of {page.bitspersample} bits is not supported", CONVERT)
    if page.colormap.shape != (3, 256):
        raise unusable(path, FORMAT, "its palette is damaged")
    return np.ascontiguousarray((page.colormap.T >> PALETTE_SHIFT).astype(np.uint8))
