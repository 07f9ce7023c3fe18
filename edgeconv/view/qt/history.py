"""Every measured run, the newest first, and the way back to its parameters."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHeaderView, QTreeWidget, QTreeWidgetItem

from edgeconv.core.units import digits_text, seconds_text
from edgeconv.view.qt.plain_text import tip
from edgeconv.view.state import MeasuredRun

COLUMNS = ("#", "Filter", "Method", "Kernel", "GFLOPS")
NUMBERS = (0, 3, 4)
"""Right-aligned columns."""


class HistoryPanel(QTreeWidget):
    """Every measured run; Enter or a double click goes back to its parameters."""

    chosen = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._shown: list[int] = []
        self.setHeaderLabels(COLUMNS)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setRootIsDecorated(False)
        self.setAlternatingRowColors(True)
        self.setAccessibleName("Runs")
        header = self.header()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)
        self.itemActivated.connect(lambda item: self.chosen.emit(item.data(0, Qt.ItemDataRole.UserRole)))

    def show_runs(self, runs: Sequence[MeasuredRun]) -> None:
        """Show the runs, which come with the newest last."""
        if [run.number for run in runs] == self._shown:
            return
        self._shown = [run.number for run in runs]
        self.clear()
        for run in runs:
            item = QTreeWidgetItem(_cells(run))
            item.setData(0, Qt.ItemDataRole.UserRole, run)
            for column in range(len(COLUMNS)):
                item.setToolTip(column, tip(f"{run.picture}\n{run.parameters.summary()}\n{run.method_label}"))
            for column in NUMBERS:
                item.setTextAlignment(column, Qt.AlignmentFlag.AlignRight)
            self.insertTopLevelItem(0, item)


def _cells(run: MeasuredRun) -> list[str]:
    kernel, speed = run.record.timing.kernel, run.record.speed
    return [
        str(run.number),
        run.parameters.summary(),
        f"{run.record.method.name} {run.record.device.kind.upper()}",
        "" if kernel is None else seconds_text(kernel.median_seconds),
        "" if speed is None else digits_text(speed.kernel_gflops, 4),
    ]
