"""What is drawn over the picture: names of the sides, the bar, the legend of differences, the pixel grid.

Plates are dark in light and in dark, so that they can be read over any picture.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from PySide6.QtCore import QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QStaticText, QTextOption

from edgeconv.view.layers import Legend

MARGIN, PADDING = 10, 8
PLATE, PLATE_TEXT = QColor(20, 21, 23, 200), QColor("#f2f2f4")
LEGEND_PLATE = QColor(84, 86, 92)
"""Between the darkest colour of a map and the lightest."""
ROUND = 5
GRID = QColor(128, 128, 128, 70)
HANDLE_WIDTH, HANDLE_HEIGHT = 22, 32
HANDLE_INK = QColor("#44474d")


def draw_name(painter: QPainter, text: str, room: QRectF, from_right: bool = False) -> None:
    """The name of a side at the top left of its area, or at the right; shortened where that is narrow."""
    metrics = painter.fontMetrics()
    text = metrics.elidedText(text, Qt.TextElideMode.ElideMiddle, int(room.width()) - 2 * MARGIN - 2 * PADDING)
    if not text:
        return
    width, height = metrics.horizontalAdvance(text) + 2 * PADDING, metrics.height() + 8
    plate = QRectF(room.right() - MARGIN - width if from_right else room.left() + MARGIN, MARGIN, width, height)
    _draw_plate(painter, plate)
    painter.setPen(PLATE_TEXT)
    painter.drawText(plate, Qt.AlignmentFlag.AlignCenter, text)


def draw_bar(painter: QPainter, x: int, height: int) -> None:
    """The bar of the split view, with a handle."""
    middle = height / 2
    painter.fillRect(QRectF(x - 1, 0, 2, height), QColor(255, 255, 255, 230))
    painter.setPen(QPen(QColor(0, 0, 0, 60), 1))
    painter.setBrush(QColor(255, 255, 255))
    handle = QRectF(x - HANDLE_WIDTH / 2, middle - HANDLE_HEIGHT / 2, HANDLE_WIDTH, HANDLE_HEIGHT)
    painter.drawRoundedRect(handle, HANDLE_WIDTH / 2, HANDLE_WIDTH / 2)
    painter.setPen(QPen(HANDLE_INK, 1.6, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
    for side in (-1, 1):
        tip = QPointF(x + side * 6, middle)
        painter.drawLine(tip, QPointF(x + side * 3, middle - 4))
        painter.drawLine(tip, QPointF(x + side * 3, middle + 4))


def draw_legend(painter: QPainter, legend: Legend, width: int, height: int) -> None:
    """A square and its |difference| for each class that occurs, at the bottom, in as many lines as they need."""
    squares = (f"<span style='color: {colour}'>■</span>&nbsp;{escape(label)}" for colour, label in legend)
    text = QStaticText(f"|difference| &nbsp; {' &nbsp; '.join(squares)}")
    text.setTextFormat(Qt.TextFormat.RichText)
    one_line = QTextOption()
    one_line.setWrapMode(QTextOption.WrapMode.NoWrap)
    text.setTextOption(one_line)
    text.prepare(font=painter.font())
    widest = width - 2 * (MARGIN + PADDING)
    if text.size().width() > widest:
        text.setTextOption(QTextOption())
        text.setTextWidth(widest)
    room = QRectF(QPointF(), text.size()).adjusted(-PADDING, -4, PADDING, 4)
    room.moveBottomLeft(QPointF(MARGIN, height - MARGIN))
    _draw_plate(painter, room, LEGEND_PLATE)
    painter.setPen(PLATE_TEXT)
    painter.drawStaticText(room.topLeft() + QPointF(PADDING, 4), text)


def draw_grid(painter: QPainter, target: Callable[[QRect], QRectF], part: QRect) -> None:
    """Lines between the pixels of `part`; `target` gives the place of a part on the screen."""
    painter.setPen(QPen(GRID, 1))
    area = target(part)
    for x in range(part.left(), part.left() + part.width() + 1):
        place = target(QRect(x, part.top(), 1, 1)).left()
        painter.drawLine(QPointF(place, area.top()), QPointF(place, area.bottom()))
    for y in range(part.top(), part.top() + part.height() + 1):
        place = target(QRect(part.left(), y, 1, 1)).top()
        painter.drawLine(QPointF(area.left(), place), QPointF(area.right(), place))


def _draw_plate(painter: QPainter, plate: QRectF, colour: QColor = PLATE) -> None:
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    painter.drawRoundedRect(plate, ROUND, ROUND)
