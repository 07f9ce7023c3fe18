"""Every measured run, the newest first, and the way back to its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QVBoxLayout, QWidget

from edgeconv.core.units import digits_text, seconds_text
from edgeconv.view.qt.plain_text import tip
from edgeconv.view.state import MeasuredRun

Index = QModelIndex | QPersistentModelIndex

COLUMNS = ("#", "Filter", "Method", "Kernel", "GFLOPS")
NUMBERS = ("#", "Kernel", "GFLOPS")
"""Right-aligned columns."""


class _RunTable(QAbstractTableModel):
    """Runs, the newest first."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[MeasuredRun] = []

    def show_runs(self, runs: Sequence[MeasuredRun]) -> None:
        """Add new runs, and remove those that are no longer stored; the others keep their rows."""
        newest = self.runs[0].number if self.runs else 0
        added = [run for run in reversed(runs) if run.number > newest]
        if added:
            self.beginInsertRows(QModelIndex(), 0, len(added) - 1)
            self.runs = added + self.runs
            self.endInsertRows()
        if len(self.runs) > len(runs):
            self.beginRemoveRows(QModelIndex(), len(runs), len(self.runs) - 1)
            self.runs = self.runs[: len(runs)]
            self.endRemoveRows()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008  # Qt's own signature
        """See QAbstractItemModel.rowCount."""
        return 0 if parent.isValid() else len(self.runs)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        """See QAbstractItemModel.columnCount."""
        return len(COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """See QAbstractItemModel.headerData."""
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(section)
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[section]
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """See QAbstractItemModel.data."""
        run = self.runs[index.row()]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(index.column())
        if role == Qt.ItemDataRole.ToolTipRole:
            return tip(f"{run.picture}\n{run.parameters.summary()}\n{run.method_label}")
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        kernel, speed = run.record.timing.kernel, run.record.speed
        return (
            str(run.number),
            run.parameters.summary(),
            f"{run.record.method.name} {run.record.device.kind.upper()}",
            "" if kernel is None else seconds_text(kernel.median_seconds),
            "" if speed is None else digits_text(speed.kernel_gflops, 4),
        )[index.column()]


def _alignment(column: int) -> int:
    side = Qt.AlignmentFlag.AlignRight if COLUMNS[column] in NUMBERS else Qt.AlignmentFlag.AlignLeft
    return int(side | Qt.AlignmentFlag.AlignVCenter)


class HistoryPanel(QWidget):
    """Every measured run; Enter or a double click goes back to its parameters."""

    chosen = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._runs = _RunTable()
        self.table = QTableView()
        self.table.setModel(self._runs)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.table.setShowGrid(False)
        self.table.setAlternatingRowColors(True)
        self.table.setTabKeyNavigation(False)
        self.table.setWordWrap(False)
        self.table.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.table.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.table.setAccessibleName("Runs")
        self.table.verticalHeader().hide()
        header = self.table.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)
        self.table.activated.connect(lambda index: self.chosen.emit(self._runs.runs[index.row()]))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.table)

    def show_runs(self, runs: Sequence[MeasuredRun]) -> None:
        """Show the runs, the newest last."""
        self._runs.show_runs(runs)
