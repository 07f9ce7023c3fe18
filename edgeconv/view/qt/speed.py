"""Speed of the displayed output, its share of what this machine can do, and its error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from edgeconv.core.units import seconds_text
from edgeconv.run.report_text import NOTHING_TO_CHECK
from edgeconv.view.qt import theme
from edgeconv.view.qt.plain_text import plain_label
from edgeconv.view.qt.rows import Rows
from edgeconv.view.state import MeasuredRun

if TYPE_CHECKING:
    from edgeconv.run.report import CheckPart, Phase, RunFigures


class SpeedPanel(Rows):
    """Speed and error of the displayed output."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.gflops = plain_label("figure", "–")
        self.method = plain_label("dim", "open a picture to measure")
        self.method.setWordWrap(True)
        self.phases = PhaseBar()
        self.phases_text = plain_label()
        self.phases_text.setTextFormat(Qt.TextFormat.RichText)
        self.phases_text.setWordWrap(True)
        self._run: MeasuredRun | None = None
        # The phases before anything that grows as the panel narrows, and over all of its width: never out of sight.
        for widget in (self.gflops, self.phases, self.phases_text, self.method):
            self.head.addWidget(widget)
        self.phases.hide()
        self.phases_text.hide()

    def changeEvent(self, event: QEvent) -> None:
        """The squares follow light and dark."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self._run is not None:
            self.show_run(self._run)

    def show_run(self, run: MeasuredRun) -> None:
        """Show a measured run."""
        self._run = run
        record = run.record
        speed = record.speed
        rates = record.throughput
        of_a_chain = "–" if rates is None else f"{rates.pixels_per_second / 1e6:,.4g} million pixels/s"
        self.gflops.setText(of_a_chain if speed is None else f"{speed.kernel_gflops:,.4g} GFLOPS")
        self.method.setText(f"{run.method_label} · {record.method.why}")
        self.phases.show_phases(record.phases_seconds)
        self.phases_text.setText(phases_text(record.phases_seconds))
        self.phases.show()
        self.phases_text.show()
        self.show_rows(speed_rows(record))


def speed_rows(record: RunFigures) -> list[tuple[str, str]]:
    """The report's figures as lines of a narrow panel."""
    timing, speed = record.timing, record.speed
    lines = []
    if timing.kernel is not None:
        kernel = timing.kernel
        lines.append(("kernel", f"{seconds_text(kernel.median_seconds)}, median of {kernel.n}"))
        spread = " to ".join(map(seconds_text, (kernel.p10_seconds, kernel.p90_seconds)))
        lines.append(("p10 to p90", spread))
    lines.append(("cold", seconds_text(timing.cold_seconds)))
    if timing.end_to_end is not None:
        lines.append(("end to end", seconds_text(timing.end_to_end.median_seconds)))
    if speed is not None:
        roof = speed.roof
        memory, share = speed.memory_floor_share, speed.roofline_share
        of_floor = "" if memory is None else f", {memory:.0%} of the floor"
        lines.append(("memory", f"{speed.gigabytes_per_second:,.4g} GB/s{of_floor}"))
        if share is not None:
            lines.append(("roofline", f"{share:.0%}, bound by {speed.bound_by}"))
        if roof is not None:
            rates = f"{roof.copy_bytes_per_second / 1e9:,.4g} GB/s, {roof.fma_flops_per_second / 1e9:,.4g} GFLOPS"
            lines.append(("roof here", rates))
    check = record.check
    if check is not None:
        lines.append(("error", _error_text(check)))
    return lines


def _error_text(check: CheckPart) -> str:
    if not check.checked_samples:
        return NOTHING_TO_CHECK
    verdict = "right" if check.passed else "WRONG"
    largest = "infinite" if check.max_abs_error is None else f"{check.max_abs_error:.3g}"
    return f"{verdict}, largest {largest} against float64 on {check.checked_share:.0%}"


def phases_text(phases_seconds: Mapping[Phase, float]) -> str:
    """Each phase behind a square in its colour of the bar."""
    ink = theme.colours()
    squares = (
        f"<span style='color: {ink.curves[index % len(ink.curves)]}'>■</span>" for index in range(len(phases_seconds))
    )
    phases = (f"{name.replace('_', ' ')} {seconds_text(value)}" for name, value in phases_seconds.items())
    return "&nbsp; ".join(
        f"{square}&nbsp;{phase.replace(' ', '&nbsp;')}" for square, phase in zip(squares, phases, strict=True)
    )


class PhaseBar(QWidget):
    """Where the time of one run went, as a bar cut into phases."""

    HEIGHT = 10

    def __init__(self) -> None:
        super().__init__()
        self._phases: Mapping[Phase, float] = {}
        self.setFixedHeight(self.HEIGHT)
        self.setAccessibleName("Phases")

    def sizeHint(self) -> QSize:
        """See QWidget.sizeHint."""
        return QSize(200, self.HEIGHT)

    def show_phases(self, phases_seconds: Mapping[Phase, float]) -> None:
        """Draw others."""
        self._phases = phases_seconds
        told = "\n".join(f"{name.replace('_', ' ')}: {seconds_text(value)}" for name, value in phases_seconds.items())
        self.setToolTip(told)
        self.setAccessibleDescription(told)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """One segment per phase, as long as its share."""
        total = sum(self._phases.values())
        if not total:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        ink, x = theme.colours(), 0.0
        for index, value in enumerate(self._phases.values()):
            width = value / total * self.width()
            painter.setBrush(QColor(ink.curves[index % len(ink.curves)]))
            painter.drawRect(QRectF(x, 0, width, self.height()))
            x += width
