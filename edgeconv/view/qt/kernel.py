"""The 3×3 editor: nine cells that speak as soon as all of them hold numbers."""

from __future__ import annotations

import math

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QGridLayout, QLineEdit, QWidget

from edgeconv.geometry import KERNEL_SIZE

CELL_HEIGHT = 27


class KernelEditor(QWidget):
    """`edited` brings nine texts, row by row, each of them a finite number."""

    edited = Signal(list)
    spoilt = Signal(str)
    """A cell holds no number: why, for a person."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(4)
        self.cells: list[_Cell] = []
        for row in range(KERNEL_SIZE):
            for column in range(KERNEL_SIZE):
                cell = _Cell()
                cell.setAccessibleName(f"Kernel row {row + 1} column {column + 1}")
                cell.textEdited.connect(self._on_typing)
                cell.stepped.connect(self._move)
                grid.addWidget(cell, row, column)
                self.cells.append(cell)

    def texts(self) -> list[str]:
        """What the cells hold."""
        return [cell.text().strip() for cell in self.cells]

    def show_cells(self, texts: list[str]) -> None:
        """Show other numbers; a cell that holds the same number in other letters is left as it was typed."""
        for cell, text in zip(self.cells, texts, strict=True):
            if _number(cell.text()) != float(text):
                cell.setText(text)
            cell.mark(right=True)

    def _on_typing(self) -> None:
        right = True
        for cell in self.cells:
            holds = _number(cell.text()) is not None
            cell.mark(holds)
            right &= holds
        if right:
            self.edited.emit(self.texts())
        else:
            self.spoilt.emit("A cell of the kernel holds no number: the picture shows the last whole kernel.")

    def _move(self, cell: QLineEdit, rows: int, columns: int) -> None:
        """Go to a neighbouring cell, round the edges."""
        place = next(index for index, other in enumerate(self.cells) if other is cell)
        row, column = divmod(place, KERNEL_SIZE)
        target = self.cells[(row + rows) % KERNEL_SIZE * KERNEL_SIZE + (column + columns) % KERNEL_SIZE]
        target.setFocus(Qt.FocusReason.TabFocusReason)
        target.selectAll()


class _Cell(QLineEdit):
    """One number. Up and Down go to the row above and below; undo is the window's, not the letter's."""

    stepped = Signal(object, int, int)

    def __init__(self) -> None:
        super().__init__()
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setFixedHeight(CELL_HEIGHT)
        self.setMaxLength(16)
        self._right = True

    def mark(self, right: bool) -> None:
        """Show whether the cell holds a number."""
        if self._right == right:
            return
        self._right = right
        self.setProperty("wrong", not right)
        self.style().unpolish(self)
        self.style().polish(self)

    def event(self, event: QEvent) -> bool:
        """Leave undo and redo to the window."""
        if (
            event.type() == QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and (event.matches(QKeySequence.StandardKey.Undo) or event.matches(QKeySequence.StandardKey.Redo))
        ):
            event.ignore()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Up and Down leave the cell."""
        if event.key() == Qt.Key.Key_Up:
            self.stepped.emit(self, -1, 0)
        elif event.key() == Qt.Key.Key_Down:
            self.stepped.emit(self, 1, 0)
        else:
            super().keyPressEvent(event)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
