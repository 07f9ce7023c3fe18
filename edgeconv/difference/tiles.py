"""Pictures as tiles of 256×256 pixels that a browser can decode: exact values, and a pyramid to see them from afar.

    level 0     the values themselves. 8 bits: a lossless WebP; one grey channel stands in it three times. Other types:
                one plane a byte of a sample, channel 0 byte 0, channel 0 byte 1, ... (little endian; float16 becomes
                float32, which holds the same values; float64 stays), as zlib
    level n ≥ 1 the picture as 8-bit RGB at 1 / 2ⁿ of its size, averages of blocks: a lossy WebP, to look at; and for
                inputs a plane of keys, 2 · class + (1 where negative), the largest of each block, as zlib

At level 0 an input's values are stored as differences from the reference's (mod 256), and the planes of a reference as
differences from the row above. What agrees with the reference is left out, of the smaller levels all around the part
that does not, so that N inputs that nearly agree cost hardly more than one. Each tile is base64 in a script block of
its own that the browser does not run: `<script type="text/plain" id="SET-PICTURE-LEVEL-ROW-COLUMN-KIND">`, KIND w for
WebP, v for values, k for keys.
"""

from __future__ import annotations

import base64
import io
import zlib
from collections.abc import Callable, Iterator
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

Planes = NDArray[np.uint8]
"""Planes × height × width."""
Window = tuple[slice, slice]
"""Rows and columns of a tile."""


class Encoded(NamedTuple):
    """What is stored of a tile: nothing where that agrees with the reference's."""

    data: bytes
    at: tuple[int, int] | None = None
    """x, y of the part that is stored, where that is not all of the tile."""


class TileWriter:
    """Encodes one set; every `add_...` answers whether it still fits within `limit_bytes`."""

    def __init__(self, number: int, limit_bytes: int) -> None:
        self.blocks: list[bytes] = []
        self.written_bytes = 0
        self.levels = 1
        self.dtype = ""
        self._number = number
        self._limit = limit_bytes

    def add_reference(self, pixels: NDArray[Any], low: float, high: float) -> bool:
        """Encode the reference (HWC) and keep what inputs are compared with."""
        self._reference, self._low, self._high = pixels, low, high
        self.dtype = "float32" if pixels.dtype == np.float16 else pixels.dtype.name
        while TILE << (self.levels - 1) < max(pixels.shape[:2]):
            self.levels += 1
        self._views = list(self._pyramid(pixels))
        return self._add_values(0, pixels) and self._add_views(0, self._views)

    def add_input(self, picture: int, pixels: NDArray[Any]) -> bool:
        """Encode input number `picture` (from 1), of the reference's shape and type."""
        if not (self._add_values(picture, pixels) and self._add_views(picture, list(self._pyramid(pixels)))):
            return False
        classes = maps.class_map(self._reference, pixels)
        keys = 2 * classes + (maps.sign_map(self._reference, pixels) < 0)

        def encode(window: Window, shrunk: NDArray[np.uint8]) -> Encoded:
            return Encoded(zlib.compress(shrunk[window].tobytes(), COMPRESSION) if shrunk[window].any() else b"")

        return all(
            self._write(picture, level, "k", shrunk.shape, partial(encode, shrunk=shrunk))
            for level, shrunk in ((level, maps.shrunk_map(keys, 1 << level)) for level in range(1, self.levels))
        )

    def _add_values(self, picture: int, pixels: NDArray[Any]) -> bool:
        """Level 0."""
        if self.dtype == "uint8":
            base = None if picture == 0 else self._reference

            def encode(window: Window) -> Encoded:
                tile = pixels[window] if base is None else pixels[window] - base[window]
                return Encoded(_webp(tile, EXACT) if base is None or tile.any() else b"")

            return self._write(picture, 0, "w", pixels.shape, encode)
        planes = _planes(pixels)
        if picture == 0:
            self._reference_planes = planes

        def encode_planes(window: Window) -> Encoded:
            tile = planes[:, window[0], window[1]]
            if picture == 0:
                rest = tile.copy()
                rest[:, 1:] -= tile[:, :-1]
            else:
                rest = tile - self._reference_planes[:, window[0], window[1]]
            return Encoded(zlib.compress(rest.tobytes(), COMPRESSION) if picture == 0 or rest.any() else b"")

        return self._write(picture, 0, "v", pixels.shape, encode_planes)

    def _add_views(self, picture: int, views: list[NDArray[np.uint8]]) -> bool:
        """The smaller levels."""

        def encode(window: Window, shown: NDArray[np.uint8], base: NDArray[np.uint8]) -> Encoded:
            tile = shown[window]
            if picture == 0:
                return Encoded(_webp(tile, FROM_AFAR))
            differs = (tile != base[window]).any(axis=2)
            if not differs.any():
                return Encoded(b"")
            (top, bottom), (left, right) = (_extent(differs.any(axis=axis)) for axis in (1, 0))
            return Encoded(_webp(tile[top:bottom, left:right], FROM_AFAR), (left, top))

        return all(
            self._write(picture, level, "w", shown.shape, partial(encode, shown=shown, base=base))
            for level, (shown, base) in enumerate(zip(views, self._views, strict=True), 1)
        )

    def _pyramid(self, pixels: NDArray[Any]) -> Iterator[NDArray[np.uint8]]:
        shown = maps.view(pixels, self._low, self._high)
        for level in range(1, self.levels):
            yield maps.shrunk_view(shown, 1 << level)

    def _write(
        self, picture: int, level: int, kind: str, shape: tuple[int, ...], encode: Callable[[Window], Encoded]
    ) -> bool:
        """A block for each tile of a level (height × width × ...) for which `encode` gives bytes."""
        places = [(y, x) for y in range(0, shape[0], TILE) for x in range(0, shape[1], TILE)]

        def block(place: tuple[int, int]) -> bytes:
            y, x = place
            found = encode((slice(y, y + TILE), slice(x, x + TILE)))
            if not found.data:
                return b""
            name = f'id="{self._number}-{picture}-{level}-{y // TILE}-{x // TILE}-{kind}"'
            if found.at is not None:
                name += f' data-at="{found.at[0]} {found.at[1]}"'
            return b'<script type="text/plain" %s>%s</script>' % (name.encode(), base64.b64encode(found.data))

        with ThreadPoolExecutor(usable_threads()) as pool:  # zlib and libwebp let go of the interpreter
            for written in pool.map(block, places):
                if written:
                    self.blocks.append(written)
                    self.written_bytes += len(written) + 1
        return self.written_bytes <= self._limit


def _extent(line: NDArray[np.bool_]) -> tuple[int, int]:
    """From the first that is true to behind the last."""
    found = np.flatnonzero(line)
    return int(found[0]), int(found[-1]) + 1


def _webp(pixels: NDArray[np.uint8], how: dict[str, Any]) -> bytes:
    """A picture, HWC with 1 or 3 channels, as WebP."""
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(np.broadcast_to(pixels, (*pixels.shape[:2], 3)))).save(stream, "WEBP", **how)
    return stream.getvalue()


def _planes(pixels: NDArray[Any]) -> Planes:
    """Values as bytes: (channels · bytes a sample) × height × width."""
    if pixels.dtype == np.float16:
        pixels = pixels.astype(np.float32)
    height, width, channels = pixels.shape
    stored = np.ascontiguousarray(pixels.astype(pixels.dtype.newbyteorder("<"), copy=False))
    as_bytes = stored.view(np.uint8).reshape(height, width, channels * stored.itemsize)
    return np.ascontiguousarray(as_bytes.transpose(2, 0, 1))
