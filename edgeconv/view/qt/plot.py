"""GFLOPS over size, drawn by hand: sides by doublings to the right, nominal GFLOPS upwards from zero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QWidget

from edgeconv.view.qt import theme

if TYPE_CHECKING:
    from edgeconv.view.picture_bench import SpeedCurve

STEPS = (1, 2, 2.5, 5, 10)
MOST_TICKS = 5
DOT = 3.0


def nice_step(most: float, ticks: int = MOST_TICKS) -> float:
    """The least round step (1, 2, 2.5 or 5 times a power of ten) that reaches `most` in at most `ticks`."""
    raw = most / ticks
    power = 10.0 ** math.floor(math.log10(raw))
    return next(step * power for step in STEPS if step * power >= raw * (1 - 1e-9))


class CurvePlot(QWidget):
    """Lines with a legend above."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.lines: list[SpeedCurve] = []
        self.setMinimumHeight(170)
        self.setAccessibleName("GFLOPS over size")

    def sizeHint(self) -> QSize:
        """See QWidget.sizeHint."""
        return QSize(300, 220)

    def show_lines(self, lines: Sequence[SpeedCurve]) -> None:
        """Draw others."""
        self.lines = [line for line in lines if line.points]
        told = "; ".join(
            f"{line.label}: {max(value for _, value in line.points):.4g} GFLOPS at best" for line in self.lines
        )
        self.setAccessibleDescription(told)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Axes, lines, dots, names."""
        if not self.lines:
            return
        ink = theme.colours()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        metrics = painter.fontMetrics()
        legend_height = self._draw_legend(painter, ink)
        sizes = sorted({size for line in self.lines for size, _ in line.points})
        most = max(value for line in self.lines for _, value in line.points)
        step = nice_step(most)
        top = step * math.ceil(most / step)
        ticks = [step * index for index in range(round(top / step) + 1)]
        left = max(metrics.horizontalAdvance(f"{tick:g}") for tick in ticks) + 10
        bottom = 2 * metrics.height() + 10
        area = QRectF(left, legend_height + 8, self.width() - left - 8, self.height() - legend_height - bottom - 8)

        def place(size: int, value: float) -> QPointF:
            low, high = math.log2(sizes[0]), math.log2(sizes[-1])
            share = (math.log2(size) - low) / (high - low) if high > low else 0.5
            return QPointF(area.left() + share * area.width(), area.bottom() - value / top * area.height())

        for tick in ticks:
            y = place(sizes[0], tick).y()
            painter.setPen(QPen(QColor(ink.line), 1))
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
            painter.setPen(QColor(ink.dim))
            painter.drawText(
                QRectF(0, y - metrics.height() / 2, left - 6, metrics.height()),
                Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter,
                f"{tick:g}",
            )
        self._draw_sizes(painter, [(size, place(size, 0).x()) for size in sizes], area)
        for index, line in enumerate(self.lines):
            colour = QColor(ink.curves[index % len(ink.curves)])
            painter.setPen(QPen(colour, 1.8))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            points = [place(size, value) for size, value in line.points]
            painter.drawPolyline(QPolygonF(points))
            painter.setBrush(colour)
            painter.setPen(Qt.PenStyle.NoPen)
            for point in points:
                painter.drawEllipse(point, DOT, DOT)

    def _draw_sizes(self, painter: QPainter, places: list[tuple[int, float]], area: QRectF) -> None:
        """The sides under the axis, as many as have room, and what they are."""
        metrics = painter.fontMetrics()
        free_from = -math.inf
        for size, x in places:
            width = metrics.horizontalAdvance(str(size))
            start = min(max(x - width / 2, 0), self.width() - width)
            if start >= free_from:
                painter.drawText(QPointF(start, area.bottom() + metrics.ascent() + 4), str(size))
                free_from = start + width + 6
        painter.drawText(
            QRectF(area.left(), area.bottom() + metrics.height() + 4, area.width(), metrics.height()),
            Qt.AlignmentFlag.AlignCenter,
            "longest side, pixels; nominal GFLOPS, warm",
        )

    def _draw_legend(self, painter: QPainter, ink: theme.Colours) -> float:
        """Names with their colours, in as many rows as they need; returns the height."""
        metrics = painter.fontMetrics()
        x, y = 0.0, 0.0
        for index, line in enumerate(self.lines):
            width = 20 + metrics.horizontalAdvance(line.label) + 14
            if x and x + width > self.width():
                x, y = 0.0, y + metrics.height() + 4
            painter.setPen(QPen(QColor(ink.curves[index % len(ink.curves)]), 3))
            painter.drawLine(QPointF(x, y + metrics.height() / 2), QPointF(x + 14, y + metrics.height() / 2))
            painter.setPen(QColor(ink.text))
            painter.drawText(QPointF(x + 20, y + metrics.ascent()), line.label)
            x += width
        return y + metrics.height()
