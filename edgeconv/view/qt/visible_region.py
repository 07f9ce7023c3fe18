"""A layer in the viewport: which of its pixels are visible, and where on the screen each part lies."""

from __future__ import annotations

import math
from dataclasses import dataclass

from PySide6.QtCore import QRect, QRectF

from edgeconv.view.pyramid import Pyramid
from edgeconv.view.viewport import Viewport


@dataclass(frozen=True)
class VisibleRegion:
    """A layer of any size is stretched over the viewport's picture; `offset` shifts it right, in screen pixels."""

    viewport: Viewport
    pyramid: Pyramid
    offset: int = 0

    @property
    def scale_x(self) -> float:
        """Pixels of the viewport's picture per layer pixel."""
        return self.viewport.width / self.pyramid.width

    @property
    def scale_y(self) -> float:
        """The same downwards."""
        return self.viewport.height / self.pyramid.height

    @property
    def zoom(self) -> float:
        """Screen pixels per layer pixel."""
        return self.viewport.zoom * self.scale_x

    def visible(self, area: QRect) -> QRect:
        """The layer's pixels that the area (in screen pixels) shows at least in part."""
        x0, y0 = self.viewport.to_picture(area.left() - self.offset, area.top())
        x1, y1 = self.viewport.to_picture(area.left() - self.offset + area.width(), area.top() + area.height())
        left, top = max(0, math.floor(x0 / self.scale_x)), max(0, math.floor(y0 / self.scale_y))
        right = min(self.pyramid.width, math.ceil(x1 / self.scale_x))
        bottom = min(self.pyramid.height, math.ceil(y1 / self.scale_y))
        return QRect(left, top, max(0, right - left), max(0, bottom - top))

    def target(self, part: QRect) -> QRectF:
        """Where a part of the layer lies on the screen, its edges on whole pixels so that neighbours meet.

        However far away, it is a pixel long and wide: a line of pixels stays a line.
        """
        x0, y0 = self.viewport.to_screen(part.left() * self.scale_x, part.top() * self.scale_y)
        right, bottom = part.left() + part.width(), part.top() + part.height()
        x1, y1 = self.viewport.to_screen(right * self.scale_x, bottom * self.scale_y)
        left, top = nearest(x0) + self.offset, nearest(y0)
        return QRectF(left, top, max(1, nearest(x1) + self.offset - left), max(1, nearest(y1) - top))


def nearest(place: float) -> int:
    """The nearest whole pixel, halves always upwards: Python's own rounding would stretch every other tile by one."""
    return math.floor(place + 0.5)
