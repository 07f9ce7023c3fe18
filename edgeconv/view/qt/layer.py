"""A layer as an item of the picture area's scene: its pixels, and the values of enlarged ones.

Everything is in physical pixels, so that 1:1 is 1:1 on a screen of any density. Enlarged pixels stay square and sharp.
"""

from __future__ import annotations

import math
from functools import cache

import cv2
import numpy as np
from PySide6.QtCore import QRect, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QImage, QPainter, QTransform
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from edgeconv.difference.text import number
from edgeconv.view.layers import Layer

VALUES_FROM = 52
"""Logical screen pixels per pixel from which values are written."""
VALUES_PIXELS = 13
"""The largest letters of those values, in logical pixels."""
MAX_VALUES = 600
"""Most pixels whose values are written: more take too long to draw."""
MIDDLE_GREY = 127
ON_BRIGHT, ON_DARK = QColor(0, 0, 0, 200), QColor(255, 255, 255, 215)


class LayerItem(QGraphicsItem):
    """One layer within an area of the screen."""

    def __init__(self) -> None:
        super().__init__()
        self._layer: Layer | None = None
        self._area, self._density, self._to_screen = QRect(), 1.0, QTransform()

    def place(self, layer: Layer, area: QRect, to_screen: QTransform, density: float) -> None:
        """Show a layer by a transform from its pixels to physical ones."""
        self.prepareGeometryChange()
        self._layer, self._area, self._to_screen, self._density = layer, area, to_screen, density
        self.show()

    def boundingRect(self) -> QRectF:
        """See QGraphicsItem.boundingRect."""
        return QTransform.fromScale(1 / self._density, 1 / self._density).mapRect(QRectF(self._area))

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """See QGraphicsItem.paint."""
        layer = self._layer
        if layer is None:
            return
        width, height = layer.width, layer.height
        painter.scale(1 / self._density, 1 / self._density)
        painter.setClipRect(self._target(QRect(0, 0, width, height)) & QRectF(self._area))
        inverse, _ = self._to_screen.inverted()
        visible = inverse.mapRect(QRectF(self._area)).toAlignedRect() & QRect(0, 0, width, height)
        if visible.isEmpty():
            return
        self._draw_pixels(painter, layer, visible)
        size = self._to_screen.m11() / self._density
        if not layer.legend and size >= VALUES_FROM and visible.width() * visible.height() <= MAX_VALUES:
            self._draw_values(painter, layer, visible)

    def _target(self, part: QRect) -> QRectF:
        """Where a part lies on the screen, its edges on whole pixels so that neighbours meet.

        However far away, it is a pixel long and wide: a line of pixels stays a line.
        """
        exact = self._to_screen.mapRect(QRectF(part))
        left, top = nearest(exact.left()), nearest(exact.top())
        return QRectF(left, top, max(1, nearest(exact.right()) - left), max(1, nearest(exact.bottom()) - top))

    def _draw_pixels(self, painter: QPainter, layer: Layer, visible: QRect) -> None:
        """From the level that has a pixel for each of the screen; OpenCV shrinks faster than Qt's painter."""
        zoom = self._to_screen.m11()
        level = layer.level_for(zoom)
        left, top = visible.left() >> level, visible.top() >> level
        right, bottom = (visible.right() >> level) + 1, (visible.bottom() >> level) + 1
        pixels = layer.levels[level][top:bottom, left:right]
        target = self._target(QRect(left << level, top << level, (right - left) << level, (bottom - top) << level))
        if zoom < 1:
            sides = round(target.width()), round(target.height())
            pixels = cv2.resize(pixels, sides, interpolation=cv2.INTER_LINEAR)
        pixels = np.ascontiguousarray(pixels)
        height, width = pixels.shape[:2]
        painter.drawImage(target, QImage(pixels.data, width, height, 3 * width, QImage.Format.Format_RGB888))

    def _draw_values(self, painter: QPainter, layer: Layer, part: QRect) -> None:
        """The samples of each pixel, written on it where they have room."""
        rows, columns = slice(part.top(), part.top() + part.height()), slice(part.left(), part.left() + part.width())
        zoom, lines, font = self._to_screen.m11(), layer.pixels.shape[2], QFont(painter.font())
        font.setPixelSize(max(6, round(min(zoom / (lines + 1.2), VALUES_PIXELS * self._density))))
        painter.setFont(font)
        width_of = cache(QFontMetricsF(font).horizontalAdvance)
        shown = layer.levels[0][rows, columns].astype(np.int16)
        bright = (shown.max(axis=2) + shown.min(axis=2)) // 2 > MIDDLE_GREY
        for row, line in enumerate(layer.pixels[rows, columns].tolist()):
            for column, values in enumerate(line):
                texts = [number(value) for value in values]
                if max(map(width_of, texts)) <= zoom - 4:
                    painter.setPen(ON_BRIGHT if bright[row, column] else ON_DARK)
                    place = self._target(QRect(part.left() + column, part.top() + row, 1, 1))
                    painter.drawText(place, Qt.AlignmentFlag.AlignCenter, "\n".join(texts))


def nearest(place: float) -> int:
    """The nearest whole pixel, halves always upwards: Python's own rounding goes to even ones."""
    return math.floor(place + 0.5)
