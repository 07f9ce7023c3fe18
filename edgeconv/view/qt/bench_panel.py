"""Starts and stops a bench, shows how far it is, and draws what it found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QPushButton, QVBoxLayout, QWidget

from edgeconv.view.qt.plain_text import plain_label
from edgeconv.view.qt.plot import CurvePlot
from edgeconv.view.qt.rows import MARGIN

if TYPE_CHECKING:
    from edgeconv.view.picture_bench import SpeedCurve


class BenchPanel(QWidget):
    """Starts and stops a bench, shows how far it is, and draws what it found."""

    started = Signal()
    stopped = Signal()
    saved = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.button = QPushButton("Bench this")
        self.button.setToolTip("GFLOPS over size for this picture and these parameters, by every method that runs here")
        self.save = QPushButton("Save record…")
        self.save.setEnabled(False)
        self.progress = QProgressBar()
        self.progress.setRange(0, 1000)
        self.progress.setTextVisible(False)
        self.progress.setFixedHeight(6)
        self.note = plain_label("dim")
        self.note.setWordWrap(True)
        self.plot = CurvePlot()
        buttons = QHBoxLayout()
        buttons.addWidget(self.button)
        buttons.addWidget(self.save)
        buttons.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, 10, MARGIN, 10)
        column.setSpacing(8)
        column.addLayout(buttons)
        column.addWidget(self.progress)
        column.addWidget(self.note)
        column.addWidget(self.plot, 1)
        self.progress.hide()
        self.running = False
        self.button.clicked.connect(lambda: (self.stopped if self.running else self.started).emit())
        self.save.clicked.connect(self.saved)

    def show_running(self, running: bool) -> None:
        """A benchmark started or ended."""
        self.running = running
        self.button.setText("Stop" if running else "Bench this")
        self.progress.setValue(0)
        self.progress.setVisible(running)
        if running:
            self.note.setText("")

    def show_progress(self, share: float, note: str) -> None:
        """Show the progress."""
        self.progress.setValue(round(share * self.progress.maximum()))
        self.note.setText(note)

    def show_lines(self, lines: Sequence[SpeedCurve], title: str) -> None:
        """Show the results."""
        self.note.setText(title)
        self.plot.show_lines(lines)
        self.save.setEnabled(bool(lines))
