"""Tiles of pictures as QImages: created when they are drawn, the least recently drawn ones are evicted first."""

from __future__ import annotations

import time
from collections import OrderedDict

from PySide6.QtGui import QImage

from edgeconv.view.pyramid import Pyramid, Tile

LIMIT_BYTES = 192 * 2**20
"""Enough for two pictures on a screen of 8K; whatever the pictures' size."""
PAINT_SECONDS = 0.008
"""What making tiles may take of one painting: the rest comes with the next ones, so that the window never freezes."""

BYTES_PER_PIXEL = 4


class TileStore:
    """QImages of tiles, by the pyramid they come from."""

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._images: OrderedDict[tuple[int, Tile], QImage] = OrderedDict()
        self._held_bytes = 0
        self._alive: dict[int, Pyramid] = {}
        self._until = 0.0

    def begin_painting(self) -> None:
        """Start the allowance of time anew."""
        self._until = time.perf_counter() + PAINT_SECONDS

    def image(self, pyramid: Pyramid, place: Tile, must: bool = False) -> QImage | None:
        """A tile's image; None where it has yet to be made and there is no time left, unless it `must` be."""
        key = (id(pyramid), place)
        image = self._images.get(key)
        if image is not None:
            self._images.move_to_end(key)
            return image
        if not must and time.perf_counter() > self._until:
            return None
        pixels = pyramid.tile(place)
        height, width = pixels.shape[:2]
        view = QImage(pixels.data, width, height, 3 * width, QImage.Format.Format_RGB888)
        image = view.convertToFormat(QImage.Format.Format_RGB32)  # a copy, in the form that is drawn fastest
        self._images[key] = image
        self._alive[id(pyramid)] = pyramid
        self._held_bytes += width * height * BYTES_PER_PIXEL
        while self._held_bytes > self._limit_bytes and len(self._images) > 1:
            self._drop(next(iter(self._images)))
        return image

    def keep_only(self, pyramids: list[Pyramid]) -> None:
        """Evict every other pyramid's tiles."""
        wanted = {id(pyramid) for pyramid in pyramids}
        for key in [key for key in self._images if key[0] not in wanted]:
            self._drop(key)
        self._alive = {number: pyramid for number, pyramid in self._alive.items() if number in wanted}

    @property
    def held_bytes(self) -> int:
        """Bytes of the images."""
        return self._held_bytes

    def _drop(self, key: tuple[int, Tile]) -> None:
        image = self._images.pop(key)
        self._held_bytes -= image.width() * image.height() * BYTES_PER_PIXEL
