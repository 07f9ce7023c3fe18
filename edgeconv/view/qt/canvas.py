"""The picture area: one of five views of one or two layers, which share zoom and position.

Drawing happens in physical pixels, so that 1:1 is 1:1 on a screen of any density. How a layer is drawn is in
layer_painter.py; what lies over it, in overlays.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from PySide6.QtCore import QEvent, QPointF, QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QMouseEvent,
    QNativeGestureEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from edgeconv.difference.scale import Scale
from edgeconv.view.compute import Layer
from edgeconv.view.pyramid import Pyramid
from edgeconv.view.qt import overlays, theme
from edgeconv.view.qt.layer_painter import LayerPainter
from edgeconv.view.qt.tiles import TileStore
from edgeconv.view.qt.visible_region import VisibleRegion
from edgeconv.view.state import MODES, Mode
from edgeconv.view.viewport import Viewport

BLINK_MILLISECONDS = 500
BAR_REACH = 7
"""Distance from the bar, in logical pixels, within which it can be grabbed."""
BAR_STEP = 0.02
WHEEL_NOTCH = 120
"""Qt's angle of one step of a mouse wheel."""
NOTCHES_PER_DOUBLING = 3
ZOOM_STEP = math.sqrt(2)
PAN_STEP = 60
GAP = 2
"""Logical pixels between the two areas of the side-by-side view."""
HINT = "Open a picture: drop it here, paste it, or press Ctrl+O"


@dataclass(frozen=True)
class Heat:
    """A difference map with its scale and the labels of its two sides, which may change while it is displayed."""

    pyramid: Pyramid
    scale: Scale
    legend: tuple[int, ...]
    """Indexes of the classes that occur."""
    reference: str = ""
    other: str = ""

    @property
    def label(self) -> str:
        """Which two were subtracted."""
        return f"{self.other} − {self.reference}"


class Canvas(QWidget):
    """Shows layers. The window sets them; the user moves them."""

    hovered = Signal(object)
    """(x, y) of the pixel under the pointer in the first layer's coordinates, or None."""
    moved = Signal()
    """Zoom, place or bar changed."""
    painted = Signal()
    """A picture is on the screen, with every tile it needs."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.mode: Mode = MODES[0]
        self.left: Layer | None = None
        self.right: Layer | None = None
        self.heat: Heat | None = None
        self.viewport = Viewport(1, 1, 1, 1)
        self.note = ""
        """While there is no picture."""
        self.bar = 0.5
        self.shows_left = True
        """Of the blink view: which of the two is displayed now."""
        self.tiles = TileStore()
        self._layers = LayerPainter(self.tiles)
        self._held: QPointF | None = None
        self._pointer: QPointF | None = None
        self._holds_bar = False
        self._blink = QTimer(self)
        self._blink.setInterval(BLINK_MILLISECONDS)
        self._blink.timeout.connect(self._turn)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAccessibleName("Picture")
        self.setAccessibleDescription("Arrow keys move, plus and minus zoom, brackets move the bar of the split view.")

    def sizeHint(self) -> QSize:
        """See QWidget.sizeHint."""
        return QSize(820, 640)

    # --- what is shown ------------------------------------------------------------------------------------------

    def set_mode(self, mode: Mode) -> None:
        """Switch to another view."""
        self.mode = mode
        self.shows_left = True
        if mode.name == "blink":
            self._blink.start()
        else:
            self._blink.stop()
        self._follow_frame()

    def set_layers(self, left: Layer | None, right: Layer | None) -> None:
        """Replace the layers."""
        self.left, self.right = left, right
        self._follow_frame()

    def set_heat(self, heat: Heat | None) -> None:
        """Replace the difference map."""
        self.heat = heat
        self._follow_frame()

    def set_note(self, note: str) -> None:
        """Say what is awaited."""
        self.note = note
        if self.frame is None:
            self.update()

    @property
    def frame(self) -> Pyramid | None:
        """Whose pixels the coordinates count: the first of two sides, or the only one."""
        layer = (self.left if self.mode.needs_both else None) or self.right
        return None if layer is None else layer.pyramid

    @property
    def answer(self) -> Pyramid | None:
        """What the view is about: the map of differences, else the right side, or the only one."""
        if self.mode.name == "difference" and self.heat is not None:
            return self.heat.pyramid
        return None if self.right is None else self.right.pyramid

    def _follow_frame(self) -> None:
        frame = self.frame
        if frame is not None:
            self._set_area()
            self.viewport = self.viewport.of_picture(frame.width, frame.height)
        shown = [layer.pyramid for layer in (self.left, self.right) if layer is not None]
        self.tiles.keep_only([*shown, self.heat.pyramid] if self.heat is not None else shown)
        self._changed()

    def start_afresh(self) -> None:
        """The next layer is another picture: show all of it."""
        self.viewport = Viewport(1, 1, self.viewport.area_width, self.viewport.area_height)
        self.left = self.right = self.heat = None
        self._follow_frame()

    @property
    def complete(self) -> bool:
        """The last painting had every tile it needed."""
        return not self._layers.unfinished

    # --- zoom and pan -------------------------------------------------------------------------------------------

    def fit(self) -> None:
        """All of the picture, enlarged where it is small."""
        self.look(replace(self.viewport, enlarges=True).fit())

    def actual_size(self) -> None:
        """One physical pixel per picture pixel."""
        self.look(self.viewport.at_zoom(1.0))

    def zoom_by(self, factor: float, at: QPointF | None = None) -> None:
        """Zoom about a point of the widget, or the middle."""
        if at is None:
            self.look(self.viewport.zoomed(factor))
            return
        x, y = self._in_area(at)
        self.look(self.viewport.zoomed(factor, x, y))

    def pan(self, dx: float, dy: float) -> None:
        """Move the picture by logical pixels."""
        density = self.devicePixelRatioF()
        self.look(self.viewport.panned(dx * density, dy * density))

    def move_bar(self, by: float) -> None:
        """Move the bar of the split view by a share of the width."""
        self.bar = min(1.0, max(0.0, self.bar + by))
        self._changed()

    def look(self, viewport: Viewport) -> None:
        """Change position or zoom."""
        if self.frame is not None:
            self.viewport = viewport
            self._changed()

    def _changed(self) -> None:
        self.update()
        self.moved.emit()
        if self._pointer is not None:  # another pixel may be under it now
            self._hover(self._pointer)

    def _hover(self, place: QPointF | None) -> None:
        self._pointer = place
        if place is None or self.frame is None:
            self.hovered.emit(None)
        else:
            self.hovered.emit(self.viewport.pixel_at(*self._in_area(place)))

    def _set_area(self) -> None:
        density = self.devicePixelRatioF()
        width = self._area_width() * density
        self.viewport = self.viewport.resized(width, self.height() * density)

    def _area_width(self) -> float:
        return (self.width() - GAP) / 2 if self.mode.name == "side" else float(self.width())

    def _in_area(self, point: QPointF) -> tuple[float, float]:
        """A point of the widget in physical pixels of the area that it lies in."""
        density = self.devicePixelRatioF()
        x = point.x()
        if self.mode.name == "side" and x >= self._area_width() + GAP:
            x -= self._area_width() + GAP
        return x * density, point.y() * density

    # --- events -------------------------------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        """See QWidget.resizeEvent."""
        self._set_area()
        self._changed()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """A wheel zooms; a touch pad's pixels pan, and zoom with Ctrl."""
        pixels = event.pixelDelta()
        by_ctrl = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        if not pixels.isNull() and not by_ctrl and event.phase() != Qt.ScrollPhase.NoScrollPhase:
            self.pan(pixels.x(), pixels.y())
        else:
            notches = event.angleDelta().y() / WHEEL_NOTCH
            self.zoom_by(2 ** (notches / NOTCHES_PER_DOUBLING), event.position())
        event.accept()

    def event(self, event: QEvent) -> bool:
        """A pinch zooms; on a screen of another density 1:1 stays 1:1."""
        if event.type() == QEvent.Type.DevicePixelRatioChange:
            self._set_area()
            self._changed()
        if isinstance(event, QNativeGestureEvent) and event.gestureType() == Qt.NativeGestureType.ZoomNativeGesture:
            self.zoom_by(1 + event.value(), event.position())
            return True
        return super().event(event)

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
            self.bar = min(1.0, max(0.0, place.x() / max(1, self.width())))
            self._changed()
        elif self._held is not None:
            self.pan(place.x() - self._held.x(), place.y() - self._held.y())
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
        if self._over_bar(event.position()):
            self.bar = 0.5
            self._changed()
        elif self.viewport.fitted:
            self.look(self.viewport.at_zoom(1.0, *self._in_area(event.position())))
        else:
            self.fit()

    def leaveEvent(self, event: QEvent) -> None:
        """Nothing is under the pointer."""
        self._hover(None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrow keys pan."""
        steps = {
            Qt.Key.Key_Left: (PAN_STEP, 0),
            Qt.Key.Key_Right: (-PAN_STEP, 0),
            Qt.Key.Key_Up: (0, PAN_STEP),
            Qt.Key.Key_Down: (0, -PAN_STEP),
        }
        if event.key() in steps:
            self.pan(*steps[Qt.Key(event.key())])
        else:
            super().keyPressEvent(event)

    def _over_bar(self, place: QPointF) -> bool:
        return self.mode.name == "split" and abs(place.x() - self.bar * self.width()) <= BAR_REACH

    def _turn(self) -> None:
        self.shows_left = not self.shows_left
        self.update()

    # --- painting -----------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw everything, in physical pixels."""
        painter = QPainter(self)
        ink = theme.colours()
        painter.fillRect(self.rect(), QColor(ink.canvas))
        if self.frame is None:
            painter.setPen(QColor(ink.dim))
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, self.note or HINT)
            return
        density = self.devicePixelRatioF()
        painter.scale(1 / density, 1 / density)
        self._layers.begin()
        areas = list(self._areas(density))
        for area, pyramid, layer in areas:
            left = area.left() if self.mode.name == "side" else 0
            region = VisibleRegion(self.viewport, pyramid, left)
            self._layers.draw(painter, area, region, layer, self.font(), density)
        painter.resetTransform()
        self._draw_overlays(painter, ink)
        painter.end()
        if self._layers.unfinished:
            QTimer.singleShot(0, self.update)
        elif areas:
            self.painted.emit()

    def _areas(self, density: float) -> Iterator[tuple[QRect, Pyramid, Layer | None]]:
        """(area, pyramid, layer of the values) of everything that is displayed; rectangles in physical pixels."""
        width, height = round(self.width() * density), round(self.height() * density)
        everything = QRect(0, 0, width, height)
        left, right = self.left, self.right
        name = self.mode.name
        if name == "difference":
            if self.heat is not None:
                yield everything, self.heat.pyramid, None
            return
        if not self.mode.needs_both or left is None:
            if right is not None:
                yield everything, right.pyramid, right
            return
        if name == "blink":
            shown = left if self.shows_left or right is None else right
            yield everything, shown.pyramid, shown
            return
        if name == "split":
            cut = round(self.bar * width)
            halves = QRect(0, 0, cut, height), QRect(cut, 0, width - cut, height)
        else:
            half = round(self._area_width() * density)
            halves = QRect(0, 0, half, height), QRect(width - half, 0, half, height)
        for rectangle, layer in zip(halves, (left, right), strict=True):
            if layer is not None and not rectangle.isEmpty():
                yield rectangle, layer.pyramid, layer

    def _draw_overlays(self, painter: QPainter, ink: theme.Colours) -> None:
        """Names of the sides, the bar, the legend: in logical pixels, over the picture."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self.font())
        left = self.left.label if self.left is not None else ""
        right = self.right.label if self.right is not None else ""
        width, height, start = self.width(), self.height(), overlays.MARGIN
        if self.mode.name == "split":
            x = round(self.bar * width)
            painter.setClipRect(0, 0, x, height)
            overlays.draw_name(painter, left, start)
            painter.setClipRect(x, 0, width - x, height)
            overlays.draw_name(painter, right, width - start, from_right=True)
            painter.setClipping(False)
            overlays.draw_bar(painter, x, height)
        elif self.mode.name == "side":
            half = round(self._area_width())
            painter.fillRect(half, 0, GAP, height, QColor(ink.line))
            overlays.draw_name(painter, left, start)
            overlays.draw_name(painter, right, width - half + start)
        elif self.mode.name == "blink":
            overlays.draw_name(painter, left if self.shows_left else right, start)
        elif self.mode.name == "difference":
            if self.heat is not None:
                overlays.draw_name(painter, self.heat.label, start)
                overlays.draw_legend(painter, self.heat.scale, self.heat.legend, width, height)
        else:
            overlays.draw_name(painter, right, start)
