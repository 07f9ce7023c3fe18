"""Measured runs: the figures of one as lines of a narrow panel, and all of them, each a way back to its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHeaderView, QTreeWidget, QTreeWidgetItem

from edgeconv.core.text import digits_text, seconds_text
from edgeconv.run.report_text import measured
from edgeconv.view.qt.plain_text import tip
from edgeconv.view.state import MeasuredRun

if TYPE_CHECKING:
    from edgeconv.api.figures import RunFigures

COLUMNS = ("#", "Filter", "Method", "Kernel", "Nominal GFLOPS")
NUMBERS = (0, 3, 4)
"""Right-aligned columns."""


def speed_head(record: RunFigures) -> str:
    """The one figure that stands above all others."""
    if record.speed is not None:
        return f"{digits_text(record.speed.kernel_gflops, 4)} nominal GFLOPS"
    rates = record.throughput
    return "–" if rates is None else f"{digits_text(rates.pixels_per_second / 1e6, 4)} million pixels/s"


def speed_rows(record: RunFigures) -> list[tuple[str, str]]:
    """The report's figures."""
    phases = (f"{name.replace('_', ' ')} {seconds_text(value)}" for name, value in record.phases_seconds.items())
    return [("phases", ", ".join(phases)), *((row.label, row.text) for row in measured(record))]


class HistoryPanel(QTreeWidget):
    """The newest run stands first; Enter or a double click goes back to its parameters."""

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
