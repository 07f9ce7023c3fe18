"""The 3×3 editor: nine cells that take effect as soon as all of them are numbers."""

from __future__ import annotations

import math

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QGridLayout, QWidget

from edgeconv.core.filters import parse_weight
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.view.parameters import LONGEST_CELL, same_number
from edgeconv.view.qt.fields import LineField

CELL_HEIGHT = 27
WRONG = "border: 1px solid #c7362b"
"""Of a cell that holds no number."""


class KernelEditor(QWidget):
    """`edited` brings nine texts, row by row, each of them a finite number."""

    edited = Signal(list)
    spoilt = Signal(str)
    """A cell holds what is no number and does not become one by more letters: why, for a person."""

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
            if not same_number(cell.text(), text):
                cell.setText(text)
            cell.mark(right=True)

    def _on_typing(self) -> None:
        texts = self.texts()
        for cell, text in zip(self.cells, texts, strict=True):
            cell.mark(_is_number(text))
        if all(map(_is_number, texts)):
            self.edited.emit(texts)
        elif not all(map(_may_become_number, texts)):
            self.spoilt.emit("A cell of the kernel is not a number: the picture shows the last valid kernel.")

    def _move(self, cell: LineField, rows: int, columns: int) -> None:
        """Go to a neighbouring cell, round the edges."""
        place = next(index for index, other in enumerate(self.cells) if other is cell)
        row, column = divmod(place, KERNEL_SIZE)
        target = self.cells[(row + rows) % KERNEL_SIZE * KERNEL_SIZE + (column + columns) % KERNEL_SIZE]
        target.setFocus(Qt.FocusReason.TabFocusReason)
        target.selectAll()


class _Cell(LineField):
    """One number. Up and Down go to the row above and below."""

    stepped = Signal(object, int, int)

    def __init__(self) -> None:
        super().__init__()
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setFixedHeight(CELL_HEIGHT)
        self.setMaxLength(LONGEST_CELL)
        self._right = True

    def mark(self, right: bool) -> None:
        """Show whether the cell holds a number."""
        if self._right == right:
            return
        self._right = right
        self.setStyleSheet("" if right else WRONG)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Up and Down leave the cell."""
        if event.key() == Qt.Key.Key_Up:
            self.stepped.emit(self, -1, 0)
        elif event.key() == Qt.Key.Key_Down:
            self.stepped.emit(self, 1, 0)
        else:
            super().keyPressEvent(event)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(parse_weight(text))
    except ValueError:
        return False


def _may_become_number(text: str) -> bool:
    """Whether it is one, or the beginning of one, such as nothing, a sign, a point or `1/`."""
    return _is_number(text) or _is_number(text + "0") or _is_number(text + "1")
