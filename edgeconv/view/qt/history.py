"""Every measured run, the newest first, and the way back to its parameters."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QAbstractItemView, QFrame, QHeaderView, QTableWidget, QTableWidgetItem

from edgeconv.core.units import digits_text, seconds_text
from edgeconv.view.qt.plain_text import tip
from edgeconv.view.state import MeasuredRun

COLUMNS = ("#", "Filter", "Method", "Kernel", "GFLOPS")
NUMBERS = ("#", "Kernel", "GFLOPS")
"""Right-aligned columns."""


class HistoryPanel(QTableWidget):
    """Every measured run; Enter or a double click goes back to its parameters."""

    chosen = Signal(object)

    def __init__(self) -> None:
        super().__init__(0, len(COLUMNS))
        self._runs: list[MeasuredRun] = []
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setShowGrid(False)
        self.setAlternatingRowColors(True)
        self.setTabKeyNavigation(False)
        self.setWordWrap(False)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName("Runs")
        self.verticalHeader().hide()
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)
        for column, name in enumerate(COLUMNS):
            title = QTableWidgetItem(name)
            title.setTextAlignment(_alignment(name))
            self.setHorizontalHeaderItem(column, title)
        self.activated.connect(lambda index: self.chosen.emit(self._runs[-1 - index.row()]))

    def show_runs(self, runs: Sequence[MeasuredRun]) -> None:
        """Show the runs, the newest last; those that are shown keep their rows."""
        newest = self._runs[-1].number if self._runs else 0
        for run in runs:
            if run.number > newest:
                self.insertRow(0)
                for column, (name, text) in enumerate(zip(COLUMNS, _cells(run), strict=True)):
                    cell = QTableWidgetItem(text)
                    cell.setTextAlignment(_alignment(name))
                    cell.setToolTip(tip(f"{run.picture}\n{run.parameters.summary()}\n{run.method_label}"))
                    self.setItem(0, column, cell)
        self.setRowCount(len(runs))
        self._runs = list(runs)


def _cells(run: MeasuredRun) -> tuple[str, ...]:
    kernel, speed = run.record.timing.kernel, run.record.speed
    return (
        str(run.number),
        run.parameters.summary(),
        f"{run.record.method.name} {run.record.device.kind.upper()}",
        "" if kernel is None else seconds_text(kernel.median_seconds),
        "" if speed is None else digits_text(speed.kernel_gflops, 4),
    )


def _alignment(name: str) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if name in NUMBERS else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter
