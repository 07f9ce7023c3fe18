"""A layer as an item of the picture area's scene: its tiles, the outlines of enlarged pixels, and their values.

Everything is in physical pixels, so that 1:1 is 1:1 on a screen of any density. Enlarged pixels stay square and sharp.
Missing tiles are drawn from a coarser level and refined by the next paintings, so that the window never freezes.
"""

from __future__ import annotations

import math
import time
from functools import cache

import numpy as np
from PySide6.QtCore import QRect, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QImage, QPainter, QPixmap, QPixmapCache, QTransform
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from edgeconv.difference.text import number
from edgeconv.view.pyramid import TILE, Pyramid, Tile
from edgeconv.view.qt import overlays
from edgeconv.view.render import Layer

CACHE_KIB = 192 * 1024
"""Of tiles: enough for two pictures on a screen of 8K, whatever the pictures' size."""
PAINT_SECONDS = 0.008
"""What making tiles may take of one painting: the rest comes with the next ones."""
GRID_FROM, VALUES_FROM = 12, 52
"""Logical screen pixels per pixel from which pixels are outlined, and from which their values are written."""
VALUES_PIXELS = 13
"""The largest letters of those values, in logical pixels."""
MAX_VALUES = 600
"""Most pixels whose values are written: more take too long to draw."""
MIDDLE_GREY = 127
ON_BRIGHT, ON_DARK = QColor(0, 0, 0, 200), QColor(255, 255, 255, 215)


class LayerItem(QGraphicsItem):
    """One layer within an area of the screen; `unfinished` where a finer tile is still to be made."""

    def __init__(self) -> None:
        super().__init__()
        self.unfinished = False
        self._pyramid: Pyramid | None = None
        self._layer: Layer | None = None
        self._area, self._density, self._to_screen = QRect(), 1.0, QTransform()
        QPixmapCache.setCacheLimit(CACHE_KIB)

    def place(self, pyramid: Pyramid, layer: Layer | None, area: QRect, to_screen: QTransform, density: float) -> None:
        """Show a pyramid, and the values of `layer` where they have room, by a transform to physical pixels."""
        self.prepareGeometryChange()
        self._pyramid, self._layer, self._area = pyramid, layer, area
        self._to_screen, self._density = to_screen, density
        self.show()

    def boundingRect(self) -> QRectF:
        """See QGraphicsItem.boundingRect."""
        return QTransform.fromScale(1 / self._density, 1 / self._density).mapRect(QRectF(self._area))

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """See QGraphicsItem.paint."""
        pyramid = self._pyramid
        if pyramid is None:
            return
        self.unfinished = False
        until = time.perf_counter() + PAINT_SECONDS
        painter.scale(1 / self._density, 1 / self._density)
        painter.setClipRect(self._area)
        zoom = self._to_screen.m11()
        level = pyramid.level_for(zoom)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, zoom < 1)
        visible = self._visible(pyramid)
        span = TILE << level
        for row in range(visible.top() // span, -(-(visible.top() + visible.height()) // span)):
            for column in range(visible.left() // span, -(-(visible.left() + visible.width()) // span)):
                part = QRect(column * span, row * span, span, span) & visible
                self._draw_part(painter, pyramid, level, part, until)
        if zoom / self._density >= GRID_FROM:
            overlays.draw_grid(painter, self._target, visible)
        few = visible.width() * visible.height() <= MAX_VALUES
        if self._layer is not None and few and zoom / self._density >= VALUES_FROM:
            self._draw_values(painter, pyramid, self._layer, visible)

    def _visible(self, pyramid: Pyramid) -> QRect:
        """The pixels that the area shows at least in part."""
        inverse, _ = self._to_screen.inverted()
        seen = inverse.mapRect(QRectF(self._area))
        left, top = max(0, math.floor(seen.left())), max(0, math.floor(seen.top()))
        right, bottom = min(pyramid.width, math.ceil(seen.right())), min(pyramid.height, math.ceil(seen.bottom()))
        return QRect(left, top, max(0, right - left), max(0, bottom - top))

    def _target(self, part: QRect) -> QRectF:
        """Where a part lies on the screen, its edges on whole pixels so that neighbours meet.

        However far away, it is a pixel long and wide: a line of pixels stays a line.
        """
        exact = self._to_screen.mapRect(QRectF(part))
        left, top = nearest(exact.left()), nearest(exact.top())
        return QRectF(left, top, max(1, nearest(exact.right()) - left), max(1, nearest(exact.bottom()) - top))

    def _draw_part(self, painter: QPainter, pyramid: Pyramid, level: int, part: QRect, until: float) -> None:
        """A part (in pixels of level 0, within one tile of `level`) from that level, or a coarser one for now."""
        for source in range(level, pyramid.levels):
            span, factor = TILE << source, 1 << source
            row, column = part.top() // span, part.left() // span
            tile = _tile(pyramid, (source, row, column), math.inf if source == pyramid.levels - 1 else until)
            if tile is None:
                self.unfinished = True
                continue
            left, top = (part.left() - column * span) / factor, (part.top() - row * span) / factor
            within = QRectF(left, top, part.width() / factor, part.height() / factor)
            painter.drawPixmap(self._target(part), tile, within & QRectF(tile.rect()))
            return

    def _draw_values(self, painter: QPainter, pyramid: Pyramid, layer: Layer, part: QRect) -> None:
        """The samples of each pixel, written on it where they have room."""
        zoom, lines, font = self._to_screen.m11(), layer.pixels.shape[2], QFont(painter.font())
        font.setPixelSize(max(6, round(min(zoom / (lines + 1.2), VALUES_PIXELS * self._density))))
        painter.setFont(font)
        width_of = cache(QFontMetricsF(font).horizontalAdvance)
        rows, columns = slice(part.top(), part.top() + part.height()), slice(part.left(), part.left() + part.width())
        shown = pyramid.part(rows, columns).astype(np.int16)
        bright = (shown.max(axis=2) + shown.min(axis=2)) // 2 > MIDDLE_GREY
        for row, line in enumerate(layer.pixels[rows, columns].tolist()):
            for column, values in enumerate(line):
                texts = [number(value) for value in values]
                if max(map(width_of, texts)) <= zoom - 4:
                    painter.setPen(ON_BRIGHT if bright[row, column] else ON_DARK)
                    place = self._target(QRect(part.left() + column, part.top() + row, 1, 1))
                    painter.drawText(place, Qt.AlignmentFlag.AlignCenter, "\n".join(texts))


def _tile(pyramid: Pyramid, place: Tile, until: float) -> QPixmap | None:
    """A tile of a pyramid; None where it has yet to be made and the time is over."""
    key = f"{pyramid.serial} {place}"
    found = QPixmap()
    if QPixmapCache.find(key, found):
        return found
    if time.perf_counter() > until:
        return None
    pixels = pyramid.tile(place)
    height, width = pixels.shape[:2]
    image = QImage(pixels.data, width, height, 3 * width, QImage.Format.Format_RGB888)
    made = QPixmap.fromImage(image.convertToFormat(QImage.Format.Format_RGB32))
    QPixmapCache.insert(key, made)
    return made


def nearest(place: float) -> int:
    """The nearest whole pixel, halves always upwards: Python's own rounding would stretch every other tile by one."""
    return math.floor(place + 0.5)
