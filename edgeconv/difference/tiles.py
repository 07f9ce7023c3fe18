"""Pictures as tiles of 256×256 pixels that a browser can decode: exact values, and a pyramid to see them from afar.

    level 0     the values themselves, one plane a byte of a sample, channel 0 byte 0, channel 0 byte 1, ... (little
                endian; float16 becomes float32, which holds the same values; float64 stays), as zlib
    level n ≥ 1 the picture as 8-bit RGB at 1 / 2ⁿ of its size, averages of blocks: a lossy WebP, to look at, behind x
                and y of its corner in the tile, a byte each; and for inputs a plane of classes of difference, the
                largest of each block, as zlib

At level 0 an input's bytes are stored as differences from the reference's (mod 256), and those of a reference as
differences from the row above. What agrees with the reference is left out, of the smaller levels all around the part
that does not, so that N inputs that nearly agree cost hardly more than one. Each tile is base64 in a script block of
its own that the browser does not run: `<script type="text/plain" id="SET-PICTURE-LEVEL-ROW-COLUMN-KIND">`, KIND v for
values, p for a part to look at, k for classes.
"""

from __future__ import annotations

import base64
import io
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.difference import maps
from edgeconv.hardware.threads import usable_threads

TILE = 256
"""Pixels of a tile's side: few enough to decode quickly, enough to compress well."""

COMPRESSION = 6
"""zlib's level: higher ones gain next to nothing on these bytes."""

FROM_AFAR: dict[str, Any] = {"quality": 90, "method": 2}

Window = tuple[slice, slice]
"""Rows and columns of a tile."""


class TileWriter:
    """Encodes one set: the reference first, then what is compared with it."""

    def __init__(self, number: int) -> None:
        self.blocks: list[bytes] = []
        self.levels = 1
        self.dtype = ""
        self._number = number
        self._pictures = 0

    def add(self, pixels: NDArray[Any], low: float, high: float) -> None:
        """Encode the next picture (HWC), all of one shape and type."""
        is_first = self._pictures == 0
        if is_first:
            self.dtype = "float32" if pixels.dtype == np.float16 else pixels.dtype.name
            while TILE << (self.levels - 1) < max(pixels.shape[:2]):
                self.levels += 1
        shown = maps.view(pixels, low, high)
        views = [maps.shrunk_view(shown, 1 << level) for level in range(1, self.levels)]
        stored = _bytes(pixels)
        if is_first:
            self._pixels, self._stored, self._views = pixels, stored, views
        self._write(0, "v", stored, partial(_values, stored, None if is_first else self._stored))
        for level, (view, base) in enumerate(zip(views, self._views, strict=True), 1):
            self._write(level, "p", view, partial(_from_afar, view, None if is_first else base))
        if not is_first:
            classes = maps.class_map(self._pixels, pixels)
            for level in range(1, self.levels):
                shrunk = maps.shrunk_map(classes, 1 << level)
                self._write(level, "k", shrunk, partial(_classes, shrunk))
        self._pictures += 1

    def _write(self, level: int, kind: str, picture: NDArray[Any], encode: Callable[[Window], bytes]) -> None:
        """A block for each tile of a level (height × width × ...) for which `encode` gives bytes."""
        height, width = picture.shape[:2]

        def block(place: tuple[int, int]) -> bytes:
            y, x = place
            data = encode((slice(y, y + TILE), slice(x, x + TILE)))
            name = f"{self._number}-{self._pictures}-{level}-{y // TILE}-{x // TILE}-{kind}"
            return data and script_block(name, data)

        with ThreadPoolExecutor(usable_threads()) as pool:  # zlib and libwebp let go of the interpreter
            self.blocks += filter(None, pool.map(block, product(range(0, height, TILE), range(0, width, TILE))))


def script_block(name: str, data: bytes) -> bytes:
    """Bytes as base64 in a script block that the browser does not run."""
    return b'<script type="text/plain" id="%s">%s</script>' % (name.encode(), base64.b64encode(data))


def _values(samples: NDArray[Any], base: NDArray[Any] | None, window: Window) -> bytes:
    tile = samples[window]
    rest = tile.copy() if base is None else tile - base[window]
    if base is None:
        rest[1:] -= tile[:-1]
    return zlib.compress(rest.transpose(2, 0, 1).tobytes(), COMPRESSION) if base is None or rest.any() else b""


def _from_afar(shown: NDArray[np.uint8], base: NDArray[np.uint8] | None, window: Window) -> bytes:
    tile = shown[window]
    differs = np.ones(tile.shape[:2], bool) if base is None else (tile != base[window]).any(axis=2)
    if not differs.any():
        return b""
    rows, columns = (np.flatnonzero(differs.any(axis=axis)) for axis in (1, 0))
    part = tile[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return bytes((columns[0], rows[0])) + webp(part, FROM_AFAR)


def _classes(classes: NDArray[np.uint8], window: Window) -> bytes:
    tile = classes[window]
    return zlib.compress(tile.tobytes(), COMPRESSION) if tile.any() else b""


def webp(pixels: NDArray[np.uint8], how: dict[str, Any]) -> bytes:
    """A picture, HWC with 1 or 3 channels, as WebP."""
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(np.broadcast_to(pixels, (*pixels.shape[:2], 3)))).save(stream, "WEBP", **how)
    return stream.getvalue()


def _bytes(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    """Samples as little endian bytes: height × width × (channels · bytes a sample)."""
    little = np.dtype(np.float32 if pixels.dtype == np.float16 else pixels.dtype).newbyteorder("<")
    return np.ascontiguousarray(pixels.astype(little, copy=False)).view(np.uint8)
