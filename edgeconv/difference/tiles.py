"""Pictures as tiles of 256×256 pixels that a browser can decode: exact values, and a pyramid to see them from afar.

    level 0     the values themselves. 8 bits: a lossless WebP; one grey channel stands in it three times. Other types:
                one plane a byte of a sample, channel 0 byte 0, channel 0 byte 1, ... (little endian; float16 becomes
                float32, which holds the same values; float64 stays), as zlib
    level n ≥ 1 the picture as 8-bit RGB at 1 / 2ⁿ of its size, averages of blocks: a lossy WebP, to look at; and for
                inputs a plane of classes of difference, the largest of each block, as zlib

At level 0 an input's values are stored as differences from the reference's (mod 256), and the planes of a reference as
differences from the row above. What agrees with the reference is left out, of the smaller levels all around the part
that does not, so that N inputs that nearly agree cost hardly more than one. Each tile is base64 in a script block of
its own that the browser does not run: `<script type="text/plain" id="SET-PICTURE-LEVEL-ROW-COLUMN-KIND">`, KIND w for
WebP, v for values, k for classes.
"""

from __future__ import annotations

import base64
import io
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeconv.difference import maps
from edgeconv.hardware.threads import usable_threads

TILE = 256
"""Pixels of a tile's side: few enough to decode quickly, enough to compress well."""

COMPRESSION = 6
"""zlib's level: higher ones gain next to nothing on these bytes."""

EXACT: dict[str, Any] = {"lossless": True, "exact": True, "method": 1, "quality": 50}
"""Of a lossless WebP: as fast as zlib's level 6 and little more than half its size; method 4 takes five times as long
for 4 % less."""
FROM_AFAR: dict[str, Any] = {"quality": 90, "method": 2}

Window = tuple[slice, slice]
"""Rows and columns of a tile."""


class Encoded(NamedTuple):
    """What is stored of a tile: nothing where that agrees with the reference's."""

    data: bytes
    at: tuple[int, int] | None = None
    """x, y of the part that is stored, where that is not all of the tile."""


class TileWriter:
    """Encodes one set: the reference first, then what is compared with it."""

    def __init__(self, number: int, limit_bytes: int) -> None:
        self.blocks: list[bytes] = []
        self.written_bytes = 0
        self.levels = 1
        self.dtype = ""
        self._number = number
        self._limit = limit_bytes
        self._pictures = 0

    def add(self, pixels: NDArray[Any], low: float, high: float) -> bool:
        """Encode the next picture (HWC), all of one shape and type; whether what was written is within the limit."""
        is_first = self._pictures == 0
        if is_first:
            self.dtype = "float32" if pixels.dtype == np.float16 else pixels.dtype.name
            while TILE << (self.levels - 1) < max(pixels.shape[:2]):
                self.levels += 1
        shown = maps.view(pixels, low, high)
        views = [maps.shrunk_view(shown, 1 << level) for level in range(1, self.levels)]
        kind, stored = ("w", pixels) if self.dtype == "uint8" else ("v", _planes(pixels))
        if is_first:
            self._pixels, self._stored, self._views = pixels, stored, views
        encode = _exact_webp if kind == "w" else _exact_planes
        self._write(0, kind, pixels.shape, partial(encode, stored, None if is_first else self._stored))
        for level, (view, base) in enumerate(zip(views, self._views, strict=True), 1):
            self._write(level, "w", view.shape, partial(_from_afar, view, None if is_first else base))
        if not is_first:
            classes = maps.class_map(self._pixels, pixels)
            for level in range(1, self.levels):
                shrunk = maps.shrunk_map(classes, 1 << level)
                self._write(level, "k", shrunk.shape, partial(_classes, shrunk))
        self._pictures += 1
        return self.written_bytes <= self._limit

    def _write(self, level: int, kind: str, shape: tuple[int, ...], encode: Callable[[Window], Encoded]) -> None:
        """A block for each tile of a level (height × width × ...) for which `encode` gives bytes."""
        places = [(y, x) for y in range(0, shape[0], TILE) for x in range(0, shape[1], TILE)]

        def block(place: tuple[int, int]) -> bytes:
            y, x = place
            if self.written_bytes > self._limit:
                return b""
            found = encode((slice(y, y + TILE), slice(x, x + TILE)))
            if not found.data:
                return b""
            name = f'id="{self._number}-{self._pictures}-{level}-{y // TILE}-{x // TILE}-{kind}"'
            if found.at is not None:
                name += f' data-at="{found.at[0]} {found.at[1]}"'
            return b'<script type="text/plain" %s>%s</script>' % (name.encode(), base64.b64encode(found.data))

        with ThreadPoolExecutor(usable_threads()) as pool:  # zlib and libwebp let go of the interpreter
            for written in filter(None, pool.map(block, places)):
                self.blocks.append(written)
                self.written_bytes += len(written) + 1


def _exact_webp(pixels: NDArray[Any], base: NDArray[Any] | None, window: Window) -> Encoded:
    tile = pixels[window] if base is None else pixels[window] - base[window]
    return Encoded(webp(tile, EXACT) if base is None or tile.any() else b"")


def _exact_planes(planes: NDArray[Any], base: NDArray[Any] | None, window: Window) -> Encoded:
    tile = planes[(slice(None), *window)]
    rest = tile.copy() if base is None else tile - base[(slice(None), *window)]
    if base is None:
        rest[:, 1:] -= tile[:, :-1]
    return Encoded(zlib.compress(rest.tobytes(), COMPRESSION) if base is None or rest.any() else b"")


def _from_afar(shown: NDArray[np.uint8], base: NDArray[np.uint8] | None, window: Window) -> Encoded:
    tile = shown[window]
    if base is None:
        return Encoded(webp(tile, FROM_AFAR))
    differs = (tile != base[window]).any(axis=2)
    if not differs.any():
        return Encoded(b"")
    rows, columns = (np.flatnonzero(differs.any(axis=axis)) for axis in (1, 0))
    part = tile[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return Encoded(webp(part, FROM_AFAR), (int(columns[0]), int(rows[0])))


def _classes(classes: NDArray[np.uint8], window: Window) -> Encoded:
    tile = classes[window]
    return Encoded(zlib.compress(tile.tobytes(), COMPRESSION) if tile.any() else b"")


def webp(pixels: NDArray[np.uint8], how: dict[str, Any]) -> bytes:
    """A picture, HWC with 1 or 3 channels, as WebP."""
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(np.broadcast_to(pixels, (*pixels.shape[:2], 3)))).save(stream, "WEBP", **how)
    return stream.getvalue()


def _planes(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    """Values as bytes: (channels · bytes a sample) × height × width."""
    if pixels.dtype == np.float16:
        pixels = pixels.astype(np.float32)
    height, width, channels = pixels.shape
    stored = np.ascontiguousarray(pixels.astype(pixels.dtype.newbyteorder("<"), copy=False))
    as_bytes = stored.view(np.uint8).reshape(height, width, channels * stored.itemsize)
    return np.ascontiguousarray(as_bytes.transpose(2, 0, 1))
