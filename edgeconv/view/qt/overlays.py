"""What is drawn over the picture: names of the sides, the bar, the legend of differences.

Plates are dark in light and in dark, so that they can be read over any picture.
"""

from __future__ import annotations

from html import escape

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QStaticText, QTextOption

from edgeconv.view.layers import Legend

MARGIN, PADDING = 10, 8
PLATE, PLATE_TEXT = QColor(20, 21, 23, 200), QColor("#f2f2f4")
LEGEND_PLATE = QColor(84, 86, 92)
"""Between the darkest colour of a map and the lightest."""
ROUND = 5
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
    painter.setPen(HANDLE_INK)
    painter.drawText(handle, Qt.AlignmentFlag.AlignCenter, "↔")


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


def _draw_plate(painter: QPainter, plate: QRectF, colour: QColor = PLATE) -> None:
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    painter.drawRoundedRect(plate, ROUND, ROUND)
