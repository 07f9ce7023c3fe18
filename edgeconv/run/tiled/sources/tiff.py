"""TIFF and BigTIFF by tile or strip, through tifffile and its codecs (imagecodecs).

    8 and 16 bits, floats of 32 and 64 bits; grey (either polarity), RGB, a palette (which is colour), YCbCr in JPEG;
    alpha dropped
    interleaved or in separate planes, any compression that imagecodecs supports; the first page
    strips without compression are read row by row, however tall they are: files of one strip are common

Source of the layout: TIFF 6.0 and the BigTIFF proposal, as tifffile reads them.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.filters import GREY_CHANNELS, RGB_CHANNELS
from edgeconv.errors import ImageReadError, one_line
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
)
from edgeconv.io.image import DEPTH_NOTE, FRAMES_NOTE, GREY_NOTE, PROFILE_NOTE
from edgeconv.run.tiled.grid import even_cuts
from edgeconv.run.tiled.sources.base import ChunkLayout, TileSource, as_given, check_size, given_channels, unusable

FORMAT = "TIFF"
PALETTE = 3
COLOURS = {WHITE_IS_ZERO: 1, BLACK_IS_ZERO: 1, RGB: 3, PALETTE: 1, YCBCR: 3}
"""Samples of a colour by photometric interpretation."""
TYPES = {(UNSIGNED, 8): "uint8", (UNSIGNED, 16): "uint16", (FLOAT, 32): "float32", (FLOAT, 64): "float64"}
"""By sample format and bits."""

JPEGS = (6, 7, 33007, 34892)
"""Compressions whose decoder turns YCbCr into RGB: JPEG, old and new, and two vendors' numbers for it."""

PIECE_BYTES = 2**20
"""Of rows that are read at once where strips may be cut or put together: large enough for a disk, small for memory."""

PALETTE_SHIFT = 8
"""Palettes have 16 bits per colour, of which the upper 8 are used, as in libtiff."""


def open_tiff(path: Path, rgb: bool = False) -> TiffSource:
    """Open the first page. Raises ImageReadError."""
    file = _opened(path)
    try:
        try:
            page = file.pages.first
        except Exception as error:
            raise unusable(path, FORMAT, f"its directory cannot be read ({one_line(error)})") from None
        return TiffSource(path, file, page, rgb, threading.Lock())
    except BaseException:
        file.close()
        raise


def open_pages(path: Path) -> TiffPages:
    """Open all pages, which must be alike, as one picture of all their channels. Raises ImageReadError."""
    file = _opened(path)
    try:
        lock = threading.Lock()
        return TiffPages(path, [TiffSource(path, file, page, False, lock) for page in file.pages])
    except BaseException:
        file.close()
        raise


def _opened(path: Path) -> Any:
    import tifffile

    logging.getLogger("tifffile").addHandler(logging.NullHandler())  # errors are reported by our own one-line message
    try:
        return tifffile.TiffFile(path)
    except OSError as error:
        raise ImageReadError(f"{path}: cannot be read ({error.strerror or error}): check its name.") from None
    except Exception as error:  # whatever the damage leads to: TiffFileError, struct.error, KeyError, ...
        raise unusable(path, FORMAT, f"it cannot be opened ({one_line(error)})") from None


@dataclass(frozen=True)
class _Segments:
    """Where the strips or tiles of one colour plane lie in the file; `first` is the number of its first one."""

    first: int
    offsets: tuple[int, ...]
    byte_counts: tuple[int, ...]


class TiffSource(TileSource):
    """A page of a TIFF file; `lock` is held while the file is read, by all of its pages."""

    def __init__(self, path: Path, file: Any, page: Any, rgb: bool, lock: threading.Lock) -> None:
        super().__init__(path)
        self._file, self._page, self._lock = file, page, lock
        try:
            another = _has_second_page(file)
            self._stored = TYPES.get((int(page.sampleformat or UNSIGNED), page.bitspersample))
            photometric, compression = int(page.photometric), int(page.compression)
            self._planes_apart = page.samplesperpixel > 1 and page.planarconfig == SEPARATE_PLANES
            self._decode = page.decode
            orientation = int(page.tags.valueof(ORIENTATION, 1))
        except Exception as error:
            raise unusable(path, FORMAT, f"its directory cannot be read ({one_line(error)})") from None
        height, width = page.imagelength, page.imagewidth
        check_size(path, FORMAT, height, width)
        self.orientation = orientation if 1 <= orientation <= 8 else 1
        if self._stored is None or photometric not in COLOURS or page.imagedepth != 1:
            layout = f"{page.samplesperpixel} samples of {page.bitspersample} bits, photometric {photometric}"
            raise unusable(path, FORMAT, f"its layout ({layout}) is not supported by tiles", CONVERT)
        if photometric == YCBCR and compression not in JPEGS:
            raise unusable(path, FORMAT, "YCbCr without JPEG is not supported", CONVERT)
        self._colours = COLOURS[photometric]
        self._photometric = photometric
        self._palette = None if photometric != PALETTE else _palette(path, page)
        self._by_rows = not page.is_tiled and compression == UNCOMPRESSED and (page.predictor, page.fillorder) == (1, 1)
        self._strip_rows = height if page.is_tiled else min(page.rowsperstrip, height)
        self._planes = self._find_segments()
        extra = page.samplesperpixel > self._colours
        is_grey = photometric in (WHITE_IS_ZERO, BLACK_IS_ZERO)
        self._channels = given_channels(GREY_CHANNELS if is_grey else RGB_CHANNELS, rgb)
        self.layout = ChunkLayout(
            height=height,
            width=width,
            channels=self._channels,
            dtype=np.dtype(self._stored),
            format=FORMAT,
            notes=_notes(
                is_grey and rgb, extra, self._stored, another, self._empty_segments(), COLOUR_PROFILE in page.tags
            ),
            row_cuts=self._row_cuts(),
            column_cuts=even_cuts(width, page.tilewidth if page.is_tiled else width),
            stored_bytes_a_pixel=page.samplesperpixel * np.dtype(self._stored).itemsize,
        )

    def close(self) -> None:
        self._file.close()

    def load(self, row: int, column: int) -> NDArray[Any]:
        rows, columns = self.span(row, column)
        page = self._page
        samples = 1 if self._planes_apart else page.samplesperpixel
        planes = []
        try:
            for plane in self._planes:
                if page.is_tiled:
                    across = -(-self.layout.width // page.tilewidth)
                    tile = self._decoded(plane, row * across + column)
                    planes.append(tile[: len(rows), : len(columns)])
                    continue
                block = np.empty((len(rows), len(columns), samples), self._stored)
                self._load_strips(plane, rows.start, rows.stop, block)
                planes.append(block)
        except ImageReadError:
            raise
        except MemoryError:
            raise
        except Exception as error:
            raise self.damaged(row, column, error) from None
        return self._coloured(planes[0] if len(planes) == 1 else np.concatenate(planes, axis=2))

    def _load_strips(self, plane: _Segments, start: int, stop: int, block: NDArray[Any]) -> None:
        """Rows `start` to `stop`, from as many strips as they lie in."""
        row = start
        while row < stop:
            strip, first = divmod(row, self._strip_rows)
            count = min(stop - row, self._strip_rows - first)
            into = block[row - start : row - start + count]
            if self._by_rows:
                into[...] = self._rows_of(plane, strip, first, count, into.shape)
            else:
                into[...] = self._decoded(plane, strip)[first : first + count]
            row += count

    def _rows_of(
        self, plane: _Segments, strip: int, first: int, count: int, shape: tuple[int, ...]
    ) -> NDArray[Any] | int:
        """Some rows of a strip that is not compressed; 0 where the file leaves the strip out."""
        if not plane.byte_counts[strip]:
            return 0
        kind = np.dtype(self._stored).newbyteorder(self._file.byteorder)
        row_bytes = shape[1] * shape[2] * kind.itemsize
        if (first + count) * row_bytes > plane.byte_counts[strip]:
            raise ValueError(f"the strip has {plane.byte_counts[strip]:,} bytes of {(first + count) * row_bytes:,}")
        data = self._read(plane.offsets[strip] + first * row_bytes, count * row_bytes)
        return np.frombuffer(data, kind).reshape(shape)

    def _decoded(self, plane: _Segments, index: int) -> NDArray[Any]:
        """A whole strip or tile, HWC; zeros where the file leaves it out."""
        page = self._page
        if not plane.byte_counts[index]:
            rows = page.tilelength if page.is_tiled else self._strip_rows
            columns = page.tilewidth if page.is_tiled else page.imagewidth
            return np.zeros((rows, columns, 1 if self._planes_apart else page.samplesperpixel), self._stored)
        data = self._read(plane.offsets[index], plane.byte_counts[index])
        pixels, _, _ = self._decode(data, plane.first + index, jpegtables=page.jpegtables, jpegheader=page.jpegheader)
        if pixels.dtype != self._stored:
            raise ValueError(f"it holds {pixels.dtype} samples where the directory says {self._stored}")
        hwc: NDArray[Any] = pixels[0]
        return hwc

    def _read(self, offset: int, count: int) -> bytes:
        with self._lock:
            self._file.filehandle.seek(offset)
            data: bytes = self._file.filehandle.read(count)
        if len(data) != count:
            raise ValueError(f"{len(data):,} of {count:,} bytes are there")
        return data

    def _coloured(self, pixels: NDArray[Any]) -> NDArray[Any]:
        """Stored samples as they are given."""
        if self._palette is not None:
            return as_given(self._palette[pixels[:, :, 0]], self._channels)
        if self._photometric == WHITE_IS_ZERO:
            pixels = pixels[:, :, :1]
            pixels = (np.iinfo(pixels.dtype).max if pixels.dtype.kind == "u" else 1) - pixels
        return as_given(pixels[:, :, : self._colours], self._channels)

    def _find_segments(self) -> list[_Segments]:
        """The segments of each colour plane; raises ImageReadError where one lies beyond the end of the file."""
        page = self._page
        offsets, counts = tuple(page.dataoffsets), tuple(page.databytecounts)
        if page.is_tiled:
            a_plane = -(-page.imagelength // page.tilelength) * -(-page.imagewidth // page.tilewidth)
        else:
            a_plane = -(-page.imagelength // self._strip_rows)
        planes = page.samplesperpixel if self._planes_apart else 1
        if len(offsets) < a_plane * planes or len(counts) < a_plane * planes:
            raise unusable(self.path, FORMAT, "the file is cut short (it does not say where its pixels are)")
        size = self._file.filehandle.size
        needed = max(offset + count for offset, count in zip(offsets, counts, strict=False))
        if needed > size:
            raise unusable(self.path, FORMAT, f"the file is cut short ({size:,} of {needed:,} bytes are there)")
        kept = self._colours if self._planes_apart else 1
        return [
            _Segments(start, offsets[start : start + a_plane], counts[start : start + a_plane])
            for start in range(0, kept * a_plane, a_plane)
        ]

    def _empty_segments(self) -> int:
        return sum(not count for plane in self._planes for count in plane.byte_counts)

    def _row_cuts(self) -> tuple[int, ...]:
        """Tiles as they are; strips that may be cut by their rows, others put together where they are thin."""
        page = self._page
        if page.is_tiled:
            return even_cuts(page.imagelength, page.tilelength)
        row_bytes = page.imagewidth * page.samplesperpixel * np.dtype(self._stored).itemsize
        rows = max(1, PIECE_BYTES // row_bytes)
        if not self._by_rows:
            rows = max(1, rows // self._strip_rows) * self._strip_rows
        return even_cuts(page.imagelength, rows)


class TiffPages(TileSource):
    """The pages of an output of a filter bank: channel c of page k of K is channel c·K + k."""

    def __init__(self, path: Path, pages: list[TiffSource]) -> None:
        super().__init__(path)
        self._pages = pages
        first = pages[0].layout
        self.layout = replace(
            first,
            channels=first.channels * len(pages),
            stored_bytes_a_pixel=first.stored_bytes_a_pixel * len(pages),
        )

    def load(self, row: int, column: int) -> NDArray[Any]:
        rows, columns = self.span(row, column)
        chunk = np.empty((len(rows), len(columns), self.layout.channels), self.layout.dtype)
        for number, page in enumerate(self._pages):
            chunk[:, :, number :: len(self._pages)] = page.load(row, column)
        return chunk

    def close(self) -> None:
        self._pages[0].close()


def _has_second_page(file: Any) -> bool:
    try:
        file.pages[1]
    except IndexError:
        return False
    return True


def _palette(path: Path, page: Any) -> NDArray[np.uint8]:
    """(entries, 3), 8 bits per colour."""
    if page.colormap is None or page.bitspersample != 8:
        raise unusable(path, FORMAT, f"a palette of {page.bitspersample} bits is not supported", CONVERT)
    if page.colormap.shape != (3, 256):
        raise unusable(path, FORMAT, "its palette is damaged")
    return np.ascontiguousarray((page.colormap.T >> PALETTE_SHIFT).astype(np.uint8))


def _notes(spread: bool, extra: bool, stored: str, another: bool, empty: int, profile: bool) -> tuple[str, ...]:
    """What a person may not expect to have happened to this picture, in the words of image.py where it has them."""
    notes = []
    if spread:
        notes.append(GREY_NOTE)
    if extra:
        notes.append("alpha channel dropped")
    if another:
        notes.append(FRAMES_NOTE)
    if profile:
        notes.append(PROFILE_NOTE)
    if stored == "uint16":
        notes.append(DEPTH_NOTE)
    if empty:
        notes.append(f"{empty:,} strips or tiles that the file leaves out taken as zero")
    return tuple(notes)
