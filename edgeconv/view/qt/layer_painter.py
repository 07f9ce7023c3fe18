"""One layer of the picture area: its tiles, the outlines of enlarged pixels, and their values written on them.

Everything is in physical pixels. Enlarged pixels stay square and sharp; from `VALUES_FROM` screen pixels per pixel on,
their values are written on them. Missing tiles are drawn from a coarser level and refined by the next paintings.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from PySide6.QtCore import QRect, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter

from edgeconv.difference.text import number
from edgeconv.view.compute import Layer
from edgeconv.view.pyramid import TILE
from edgeconv.view.qt import overlays
from edgeconv.view.qt.tiles import TileStore
from edgeconv.view.qt.visible_region import VisibleRegion

GRID_FROM, VALUES_FROM = 12, 52
"""Logical screen pixels per pixel from which pixels are outlined, and from which their values are written."""
VALUES_PIXELS = 13
"""The largest letters of those values, in logical pixels."""
MOST_VALUES = 600
"""Most pixels whose values are written: more take too long to draw."""
MIDDLE_GREY = 127
ON_BRIGHT, ON_DARK = QColor(0, 0, 0, 200), QColor(255, 255, 255, 215)


class LayerPainter:
    """Draws layers from a store of tiles; `unfinished` where a finer tile is still to be made."""

    def __init__(self, tiles: TileStore) -> None:
        self._tiles = tiles
        self.unfinished = False

    def begin(self) -> None:
        """A painting starts."""
        self._tiles.begin_painting()
        self.unfinished = False

    def draw(
        self, painter: QPainter, area: QRect, region: VisibleRegion, layer: Layer | None, font: QFont, density: float
    ) -> None:
        """What of `region` lies in `area`, with the values of `layer` where there is room for them."""
        painter.save()
        painter.setClipRect(area)
        level = region.pyramid.level_for(region.zoom)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, region.zoom < 1)
        visible = region.visible(area)
        span = TILE << level
        for row in range(visible.top() // span, -(-(visible.top() + visible.height()) // span)):
            for column in range(visible.left() // span, -(-(visible.left() + visible.width()) // span)):
                self._draw_part(painter, region, level, QRect(column * span, row * span, span, span) & visible)
        logical_zoom = region.zoom / density
        if logical_zoom >= GRID_FROM:
            overlays.draw_grid(painter, region, visible)
        few = visible.width() * visible.height() <= MOST_VALUES
        if layer is not None and few and logical_zoom >= VALUES_FROM:
            _draw_values(painter, region, layer, visible, QFont(font), density)
        painter.restore()

    def _draw_part(self, painter: QPainter, region: VisibleRegion, level: int, part: QRect) -> None:
        """A part (in pixels of level 0, within one tile of `level`) from that level, or a coarser one for now."""
        pyramid = region.pyramid
        for source in range(level, pyramid.levels):
            span, factor = TILE << source, 1 << source
            row, column = part.top() // span, part.left() // span
            image = self._tiles.image(pyramid, (source, row, column), must=source == pyramid.levels - 1)
            if image is None:
                self.unfinished = True
                continue
            left, top = (part.left() - column * span) / factor, (part.top() - row * span) / factor
            within = QRectF(left, top, part.width() / factor, part.height() / factor)
            painter.drawImage(region.target(part), image, within & QRectF(image.rect()))
            return


def _draw_values(
    painter: QPainter, region: VisibleRegion, layer: Layer, part: QRect, font: QFont, density: float
) -> None:
    """The samples of each pixel, written on it where they have room."""
    lines = layer.pixels.shape[2]
    font.setPixelSize(max(6, round(min(region.zoom / (lines + 1.2), VALUES_PIXELS * density))))
    painter.setFont(font)
    width_of = cache(QFontMetricsF(font).horizontalAdvance)
    rows, columns = slice(part.top(), part.top() + part.height()), slice(part.left(), part.left() + part.width())
    shown = region.pyramid.part(rows, columns).astype(np.int16)
    bright = (shown.max(axis=2) + shown.min(axis=2)) // 2 > MIDDLE_GREY
    for row, line in enumerate(layer.pixels[rows, columns].tolist()):
        for column, values in enumerate(line):
            texts = [number(value) for value in values]
            if max(map(width_of, texts)) <= region.zoom - 4:
                painter.setPen(ON_BRIGHT if bright[row, column] else ON_DARK)
                place = region.target(QRect(part.left() + column, part.top() + row, 1, 1))
                painter.drawText(place, Qt.AlignmentFlag.AlignCenter, "\n".join(texts))
