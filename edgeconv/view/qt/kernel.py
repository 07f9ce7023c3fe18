"""The 3×3 editor: nine cells that take effect as soon as all of them are numbers."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QRegularExpressionValidator
from PySide6.QtWidgets import QGridLayout, QLineEdit, QWidget

from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.view.parameters import MAX_CELL, same_number
from edgeconv.view.qt.fields import Calm

CELL_HEIGHT = 27
NUMBER = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"
WEIGHT = rf"{NUMBER}(/{NUMBER})?"
"""A number, or a fraction such as 1/9; nothing else can be typed."""


class KernelEditor(QWidget):
    """`edited` brings nine texts, row by row, each of them a number."""

    edited = Signal(list)

    def __init__(self, calm: Calm) -> None:
        super().__init__()
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(4)
        self.cells = [QLineEdit() for _ in range(KERNEL_SIZE**2)]
        calm.watch(*self.cells)
        for place, cell in enumerate(self.cells):
            row, column = divmod(place, KERNEL_SIZE)
            cell.setAccessibleName(f"Kernel row {row + 1} column {column + 1}")
            cell.setAlignment(Qt.AlignmentFlag.AlignCenter)
            cell.setFixedHeight(CELL_HEIGHT)
            cell.setMaxLength(MAX_CELL)
            cell.setValidator(QRegularExpressionValidator(WEIGHT, cell))
            cell.textEdited.connect(self._on_typing)
            grid.addWidget(cell, row, column)

    def show_cells(self, texts: list[str]) -> None:
        """Show other numbers; a cell that holds the same number in other letters is left as it was typed.

        While a cell holds no number, the one that is in force stands in it in grey.
        """
        for cell, text in zip(self.cells, texts, strict=True):
            cell.setPlaceholderText(text)
            if not same_number(cell.text(), text):
                cell.setText(text)

    def _on_typing(self) -> None:
        if all(cell.hasAcceptableInput() for cell in self.cells):
            self.edited.emit([cell.text() for cell in self.cells])
