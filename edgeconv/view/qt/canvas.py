"""The picture area: one of four views of one or two layers, which share zoom and position.

A QGraphicsView, whose scene is the screen's area in logical pixels and holds an item for each layer (layer.py); what
lies over them is in overlays.py. Zoom and place are in physical pixels, so that 1:1 is 1:1 on a screen of any density.
"""

from __future__ import annotations

import math

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QKeyEvent,
    QMouseEvent,
    QNativeGestureEvent,
    QPainter,
    QPalette,
    QResizeEvent,
    QTransform,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QGraphicsScene, QGraphicsView, QSizePolicy

from edgeconv.view.layers import Layer
from edgeconv.view.qt import overlays
from edgeconv.view.qt.layer import LayerItem
from edgeconv.view.state import MODES

BAR_REACH = 7
"""Distance from the bar, in logical pixels, within which it can be grabbed."""
BAR_STEP = 0.02
NOTCH, NOTCHES_PER_DOUBLING = 120, 3
"""Qt's angle of one step of a mouse wheel, and how many of them double the zoom."""
ZOOM_STEP = math.sqrt(2)
PAN_STEP = 60
ARROWS = {Qt.Key.Key_Left: (1, 0), Qt.Key.Key_Right: (-1, 0), Qt.Key.Key_Up: (0, 1), Qt.Key.Key_Down: (0, -1)}
BACKGROUND = 112
"""Per cent: how much darker than the window the area round the picture is."""
GAP = 2
"""Logical pixels between the two areas of the side-by-side view."""
MAX_ZOOM = 256.0
"""One pixel then fills a hand's breadth, with room for its values."""
MAX_FIT = 16.0
"""To which Fit enlarges a small picture: larger pixels show no more of it."""
MIN_SHARE = 0.5
"""The least zoom is this share of what fits, or of 1:1 where the picture is smaller than the area."""
HINT = "Open a picture: drop it here, paste it, or press Ctrl+O"


class Canvas(QGraphicsView):
    """Shows layers. The window sets them; the user moves them."""

    hovered = Signal(object)
    """(x, y) of the pixel under the pointer in the first layer's coordinates, or None."""
    moved = Signal()
    """Zoom, place or bar changed."""

    def __init__(self) -> None:
        super().__init__()
        self.mode = MODES[0]
        self.left: Layer | None = None
        self.right: Layer | None = None
        self.heat: Layer | None = None
        """The map of differences."""
        self.zoom, self.centre = 1.0, QPointF(0.5, 0.5)
        """Physical screen pixels per picture pixel, and the point of the picture in the middle of the area."""
        self.fitted, self.enlarges = True, False
        """Whether it stays fitted when the area changes, and is enlarged for that as was asked for."""
        self._size = QSize(1, 1)
        self.note = ""
        """What is awaited, while there is no picture."""
        self.bar = 0.5
        self._items = LayerItem(), LayerItem()
        scene = QGraphicsScene(self)
        for item in self._items:
            scene.addItem(item)
        self.setScene(scene)
        self._held: QPointF | None = None
        self._pointer: QPointF | None = None
        self._holds_bar = False
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setViewportUpdateMode(QGraphicsView.ViewportUpdateMode.FullViewportUpdate)
        self.setAcceptDrops(False)  # the window takes them
        self.setAccessibleName("Picture")
        self.setAccessibleDescription("Arrow keys move, plus and minus zoom, brackets move the bar of the split view.")

    # --- what is shown ------------------------------------------------------------------------------------------

    def show_parts(self, **parts: Layer | str | None) -> None:
        """Replace `mode`, `left`, `right`, `heat` or `note`."""
        for name, part in parts.items():
            setattr(self, name, part)
        self._follow_frame()

    @property
    def frame(self) -> Layer | None:
        """Whose pixels the coordinates count: the first of two sides, or the only one."""
        return (None if self.mode == MODES[0] else self.left) or self.right

    @property
    def answer(self) -> Layer | None:
        """What the view is about: the map of differences, else the right side, or the only one."""
        return (self.heat if self.mode == "difference" else None) or self.right

    def _follow_frame(self) -> None:
        """The same part of a frame of another size, such as the output of a stride of 2: it stays where it is."""
        frame = self.frame
        if frame is not None:
            x, y = frame.width / self._size.width(), frame.height / self._size.height()
            self._size = QSize(frame.width, frame.height)
            self.zoom /= x
            self.centre = QPointF(self.centre.x() * x, self.centre.y() * y)
        self._hold()

    def start_afresh(self) -> None:
        """The next layer is another picture: show all of it."""
        self.zoom, self.centre, self.fitted, self.enlarges = 1.0, QPointF(0.5, 0.5), True, False
        self._size = QSize(1, 1)
        self.left = self.right = self.heat = None
        self._follow_frame()

    # --- zoom and pan -------------------------------------------------------------------------------------------

    def fit(self) -> None:
        """All of the picture, enlarged where it is small."""
        self.fitted = self.enlarges = True
        self._hold()

    def zoom_by(self, factor: float, at: QPointF | None = None) -> None:
        """Zoom about a point of the widget, or the middle."""
        self.zoom_to(self.zoom * factor, at)

    def zoom_to(self, zoom: float, at: QPointF | None = None) -> None:
        """The point of the picture at a point of the widget stays there."""
        area = self._area()
        middle = QPointF(area.width() / 2, area.height() / 2)
        place = middle if at is None else self._in_area(at)
        held = self.to_picture(place.x(), place.y())
        self.zoom = min(MAX_ZOOM, max(MIN_SHARE * min(1.0, self._fit_zoom()), zoom))
        self.fitted = False
        self.centre = held - (place - middle) / self.zoom
        self._hold()

    def pan(self, by: QPointF) -> None:
        """Move the picture by logical pixels."""
        self.fitted = False
        self.centre -= by * self.devicePixelRatioF() / self.zoom
        self._hold()

    def to_picture(self, x: float, y: float) -> QPointF:
        """The point of the picture at a point of its area, in physical pixels."""
        inverse, _ = self._transform(self._size).inverted()
        return inverse.map(QPointF(x, y))

    def to_screen(self, x: float, y: float) -> QPointF:
        """The point of the area, in physical pixels, of a point of the picture."""
        return self._transform(self._size).map(QPointF(x, y))

    def pixel_at(self, place: QPointF) -> tuple[int, int] | None:
        """(x, y) of the pixel at a point of the widget, or None outside the picture."""
        place = self._in_area(place)
        pixel = self.to_picture(place.x(), place.y())
        inside = 0 <= pixel.x() < self._size.width() and 0 <= pixel.y() < self._size.height()
        return (int(pixel.x()), int(pixel.y())) if inside and self.frame is not None else None

    def _transform(self, size: QSize) -> QTransform:
        """From pixels of a layer of that size, which is stretched over the frame, to physical pixels of its area."""
        area = self._area()
        moved = QTransform.fromTranslate(area.width() / 2, area.height() / 2).scale(self.zoom, self.zoom)
        moved.translate(-self.centre.x(), -self.centre.y())
        return moved.scale(self._size.width() / size.width(), self._size.height() / size.height())

    def _fit_zoom(self) -> float:
        """The zoom at which the whole picture is seen."""
        area, largest = self._area(), MAX_FIT if self.enlarges else 1.0
        return min(largest, area.width() / self._size.width(), area.height() / self._size.height())

    def _hold(self) -> None:
        """Keep what fits fitted, and the middle of the area on the picture, so that it is never lost."""
        width, height = self._size.width(), self._size.height()
        if self.fitted:
            self.zoom, self.centre = self._fit_zoom(), QPointF(width / 2, height / 2)
        self.centre = QPointF(min(max(self.centre.x(), 0.0), width), min(max(self.centre.y(), 0.0), height))
        self._changed()

    def move_bar(self, to: float) -> None:
        """Move the bar of the split view to a share of the width."""
        self.bar = min(1.0, max(0.0, to))
        self._changed()

    def _changed(self) -> None:
        density = self.devicePixelRatioF()
        areas = self._areas(density)
        for index, item in enumerate(self._items):
            item.hide()
            if index < len(areas):
                area, layer = areas[index]
                left = area.left() if self.mode == "side" else 0
                size = QSize(layer.width, layer.height)
                item.place(layer, area, self._transform(size) * QTransform.fromTranslate(left, 0), density)
        self.viewport().update()
        self.moved.emit()
        if self._pointer is not None:  # another pixel may be under it now
            self._hover(self._pointer)

    def _hover(self, place: QPointF | None) -> None:
        self._pointer = place
        self.hovered.emit(None if place is None else self.pixel_at(place))

    def _area(self) -> QSizeF:
        """Of a layer, in physical pixels."""
        return QSizeF(max(1.0, self._area_width()), max(1.0, float(self.height()))) * self.devicePixelRatioF()

    def _area_width(self) -> float:
        return (self.width() - GAP) / 2 if self.mode == "side" else float(self.width())

    def _in_area(self, point: QPointF) -> QPointF:
        """A point of the widget in physical pixels of the area that it lies in."""
        second = self._area_width() + GAP
        from_left = second if self.mode == "side" and point.x() >= second else 0.0
        return (point - QPointF(from_left, 0)) * self.devicePixelRatioF()

    # --- events -------------------------------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        """See QWidget.resizeEvent."""
        self.setSceneRect(QRectF(self.rect()))
        self._hold()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """A wheel zooms; a touch pad's pixels pan, and zoom with Ctrl."""
        pixels = event.pixelDelta()
        by_ctrl = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        if not pixels.isNull() and not by_ctrl and event.phase() != Qt.ScrollPhase.NoScrollPhase:
            self.pan(QPointF(pixels))
        else:
            self.zoom_by(2 ** (event.angleDelta().y() / NOTCH / NOTCHES_PER_DOUBLING), event.position())
        event.accept()

    def event(self, event: QEvent) -> bool:
        """On a screen of another density 1:1 stays 1:1."""
        if event.type() == QEvent.Type.DevicePixelRatioChange:
            self._hold()
        return super().event(event)

    def viewportEvent(self, event: QEvent) -> bool:
        """A pinch zooms; nothing is under a pointer that has left."""
        if event.type() == QEvent.Type.Leave:
            self._hover(None)
        if isinstance(event, QNativeGestureEvent) and event.gestureType() == Qt.NativeGestureType.ZoomNativeGesture:
            self.zoom_by(1 + event.value(), event.position())
            return True
        return super().viewportEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Grab the bar or the picture."""
        if event.button() in (Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton):
            self._held = event.position()
            self._holds_bar = event.button() == Qt.MouseButton.LeftButton and self._over_bar(event.position())
            if not self._holds_bar and self.frame is not None:
                self.setCursor(Qt.CursorShape.ClosedHandCursor)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Move what is grabbed, and report the pixel under the pointer."""
        place = event.position()
        if self._held is not None and self._holds_bar:
            self.move_bar(place.x() / max(1, self.width()))
        elif self._held is not None:
            self.pan(place - self._held)
            self._held = place
        elif self._over_bar(place):
            self.setCursor(Qt.CursorShape.SplitHCursor)
        else:
            self.unsetCursor()
        self._hover(place)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Release the bar or the picture."""
        self._held = None
        self.unsetCursor()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Toggle between the whole picture and 1:1 at the pointer."""
        self.zoom_to(1.0, event.position()) if self.fitted else self.fit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrow keys pan."""
        arrow = next((step for key, step in ARROWS.items() if key == event.key()), None)
        if arrow is not None:
            self.pan(QPointF(*arrow) * PAN_STEP)
        else:
            super().keyPressEvent(event)

    def _over_bar(self, place: QPointF) -> bool:
        return self.mode == "split" and abs(place.x() - self.bar * self.width()) <= BAR_REACH

    # --- painting -----------------------------------------------------------------------------------------------

    def drawBackground(self, painter: QPainter, rect: QRectF | QRect) -> None:
        """What lies round the picture, or in its place."""
        painter.fillRect(rect, self.palette().color(QPalette.ColorRole.Window).darker(BACKGROUND))
        if self.frame is None:
            painter.setPen(self.palette().color(QPalette.ColorRole.WindowText))
            flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(self.rect(), flags, self.note or HINT)

    def _areas(self, density: float) -> list[tuple[QRect, Layer]]:
        """The area, in physical pixels, of each layer that is displayed."""
        width, height = round(self.width() * density), round(self.height() * density)
        name, sides = self.mode, [self.right]
        edges = [(0, width)]
        if name == "difference":
            sides = [self.heat]
        elif name in ("split", "side") and self.left is not None:
            sides = [self.left, self.right]
            cut = round(self.bar * width) if name == "split" else round(self._area_width() * density)
            edges = [(0, cut), (cut if name == "split" else width - cut, width)]
        areas = [QRect(start, 0, end - start, height) for start, end in edges]
        return [(area, side) for area, side in zip(areas, sides, strict=True) if side is not None and area.width() > 0]

    def drawForeground(self, painter: QPainter, rect: QRectF | QRect) -> None:
        """Names of the sides, the bar, the legend: in logical pixels, over the picture."""
        if self.frame is None:
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self.font())
        width, height, density, split = self.width(), self.height(), self.devicePixelRatioF(), self.mode == "split"
        for area, layer in self._areas(density):
            room = QRectF(area.left() / density, 0, area.width() / density, height)
            overlays.draw_name(painter, layer.label, room, from_right=split and layer is self.right)
        if split:
            overlays.draw_bar(painter, round(self.bar * width), height)
        elif self.mode == "side":
            half = round(self._area_width())
            painter.fillRect(half, 0, GAP, height, self.palette().color(QPalette.ColorRole.Mid))
        elif self.mode == "difference" and self.heat is not None:
            overlays.draw_legend(painter, self.heat.legend, width, height)
