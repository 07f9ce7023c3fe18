"""Speed of the displayed output, its share of what this machine can do, and its error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from edgeconv.core.units import digits_text, seconds_text, share_text
from edgeconv.run.report_text import NOTHING_TO_CHECK
from edgeconv.view.qt.plain_text import plain_label
from edgeconv.view.qt.rows import Rows
from edgeconv.view.state import MeasuredRun

if TYPE_CHECKING:
    from edgeconv.api.figures import Check, Phase, RunFigures


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F52A0", "#A6761D")
"""Of the phases: Okabe and Ito's palette, which is seen on light and dark and by colour-blind people."""


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
        # The phases before anything that grows as the panel narrows, and over all of its width: never out of sight.
        for widget in (self.gflops, self.phases, self.phases_text, self.method):
            self.head.addWidget(widget)
        self.phases.hide()
        self.phases_text.hide()

    def show_run(self, run: MeasuredRun) -> None:
        """Show a measured run."""
        record = run.record
        speed = record.speed
        rates = record.throughput
        of_a_chain = "–" if rates is None else f"{digits_text(rates.pixels_per_second / 1e6, 4)} million pixels/s"
        self.gflops.setText(of_a_chain if speed is None else f"{digits_text(speed.kernel_gflops, 4)} GFLOPS")
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
        if kernel.spread_seconds is not None:
            lines.append(("p10 to p90", " to ".join(map(seconds_text, kernel.spread_seconds))))
    lines.append(("cold", seconds_text(timing.cold_seconds)))
    if timing.end_to_end is not None:
        lines.append(("end to end", seconds_text(timing.end_to_end.median_seconds)))
    if speed is not None:
        roof = speed.roof
        per_second = digits_text(speed.gigabytes_per_second, 4)
        share = speed.memory_floor_share
        lines.append(
            ("memory", f"{per_second} GB/s" + ("" if share is None else f", {share_text(share)} of the floor"))
        )
        if speed.roofline_share is not None:
            lines.append(("roofline", f"{share_text(speed.roofline_share)}, bound by {speed.bound_by}"))
        if roof is not None:
            copy, fma = (digits_text(each / 1e9, 4) for each in (roof.copy_bytes_per_second, roof.fma_flops_per_second))
            lines.append(("roof here", f"{copy} GB/s, {fma} GFLOPS"))
    check = record.check
    if check is not None:
        lines.append(("error", _error_text(check)))
    return lines


def _error_text(check: Check) -> str:
    if not check.checked_samples:
        return NOTHING_TO_CHECK
    verdict = "right" if check.passed else "WRONG"
    largest = "infinite" if check.max_abs_error is None else f"{check.max_abs_error:.3g}"
    return f"{verdict}, largest {largest} against float64 on {share_text(check.checked_share)}"


def phases_text(phases_seconds: Mapping[Phase, float]) -> str:
    """Each phase behind a square in its colour of the bar."""
    squares = (f"<span style='color: {COLOURS[index % len(COLOURS)]}'>■</span>" for index in range(len(phases_seconds)))
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
        x = 0.0
        for index, value in enumerate(self._phases.values()):
            width = value / total * self.width()
            painter.setBrush(QColor(COLOURS[index % len(COLOURS)]))
            painter.drawRect(QRectF(x, 0, width, self.height()))
            x += width
