"""Pictures as tiles of 256×256 pixels that a browser can inflate: exact values, and a pyramid to see them from afar.

    level 0     the values themselves, one plane a byte of a sample: channel 0 byte 0, channel 0 byte 1, ...
                (little endian; float16 becomes float32, which holds the same values; float64 stays)
    level n ≥ 1 the picture as 8-bit RGB at 1 / 2ⁿ of its size: three planes, averages of blocks; and for inputs a
                plane of keys, 2 · class + (1 where negative), the largest of each block

The reference's bytes are stored as differences from the row above; an input's as differences from the reference's
tile (all mod 256). What agrees with the reference is therefore zeros: a tile that agrees is left out, and N inputs
that nearly agree cost hardly more than one. Each tile is zlib-compressed base64 in a script block of its own that
the browser does not run: `<script type="text/plain" id="SET-PICTURE-LEVEL-ROW-COLUMN-KIND">`, KIND v or k.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.diff import maps
from edgeconv.hardware.threads import usable_threads

TILE = 256
"""Pixels of a tile's side: few enough to decode quickly, enough to compress well."""

COMPRESSION = 6
"""zlib's level: higher ones gain next to nothing on these bytes."""

Planes = NDArray[np.uint8]
"""Planes × height × width."""


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
        self._pyramid = [_planes(pixels), *self._views(pixels)]
        return all(self._write(0, level, "v", planes, None) for level, planes in enumerate(self._pyramid))

    def add_input(self, picture: int, pixels: NDArray[Any]) -> bool:
        """Encode input number `picture` (from 1), of the reference's shape and type."""
        pyramid = [_planes(pixels), *self._views(pixels)]
        pairs = enumerate(zip(pyramid, self._pyramid, strict=True))
        if not all(self._write(picture, level, "v", planes, base) for level, (planes, base) in pairs):
            return False
        classes = maps.class_map(self._reference, pixels)
        keys = 2 * classes + (maps.sign_map(self._reference, pixels) < 0)
        return all(
            self._write(picture, level, "k", maps.shrunk_map(keys, 1 << level)[None], np.zeros((1, 1, 1), np.uint8))
            for level in range(1, self.levels)
        )

    def _views(self, pixels: NDArray[Any]) -> Iterator[Planes]:
        shown = maps.view(pixels, self._low, self._high)
        for level in range(1, self.levels):
            yield np.ascontiguousarray(maps.shrunk_view(shown, 1 << level).transpose(2, 0, 1))

    def _write(self, picture: int, level: int, kind: str, planes: Planes, base: Planes | None) -> bool:
        _, height, width = planes.shape
        base = None if base is None else np.broadcast_to(base, planes.shape)
        places = [(y, x) for y in range(0, height, TILE) for x in range(0, width, TILE)]

        def encode(place: tuple[int, int]) -> bytes:
            y, x = place
            window = np.s_[:, y : y + TILE, x : x + TILE]
            tile = planes[window]
            if base is None:
                rest = tile.copy()
                rest[:, 1:] -= tile[:, :-1]
            else:
                rest = tile - base[window]
                if not rest.any():
                    return b""
            name = f"{self._number}-{picture}-{level}-{y // TILE}-{x // TILE}-{kind}"
            data = base64.b64encode(zlib.compress(rest.tobytes(), COMPRESSION))
            return b'<script type="text/plain" id="%s">%s</script>' % (name.encode(), data)

        with ThreadPoolExecutor(usable_threads()) as pool:  # zlib lets go of the interpreter
            for block in pool.map(encode, places):
                if block:
                    self.blocks.append(block)
                    self.written_bytes += len(block) + 1
        return self.written_bytes <= self._limit


def _planes(pixels: NDArray[Any]) -> Planes:
    """Values as bytes: (channels · bytes a sample) × height × width."""
    if pixels.dtype == np.float16:
        pixels = pixels.astype(np.float32)
    height, width, channels = pixels.shape
    stored = np.ascontiguousarray(pixels.astype(pixels.dtype.newbyteorder("<"), copy=False))
    as_bytes = stored.view(np.uint8).reshape(height, width, channels * stored.itemsize)
    return np.ascontiguousarray(as_bytes.transpose(2, 0, 1))
