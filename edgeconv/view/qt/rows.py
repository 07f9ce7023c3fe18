"""Figures as names and values in two columns; among them those of `edgeconv diff`."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from edgeconv.difference.compare import DiffRecord
from edgeconv.difference.text import rows
from edgeconv.view.qt.plain_text import plain_label

MARGIN = 14


class Rows(QScrollArea):
    """Names and values in two columns; values may be selected and copied."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.head = QVBoxLayout()
        self._body = QWidget()
        column = QVBoxLayout(self._body)
        column.setContentsMargins(MARGIN, 10, MARGIN, 10)
        column.setSpacing(8)
        column.addLayout(self.head)
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(4)
        self._grid.setColumnStretch(1, 1)
        column.addLayout(self._grid)
        column.addStretch(1)
        self.setWidget(self._body)
        self._labels: list[tuple[QLabel, QLabel]] = []

    def show_rows(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Show other rows, reusing the labels."""
        while len(self._labels) < len(pairs):
            name, value = plain_label("dim"), plain_label()
            name.setAlignment(Qt.AlignmentFlag.AlignTop)
            value.setWordWrap(True)
            value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            self._grid.addWidget(name, len(self._labels), 0)
            self._grid.addWidget(value, len(self._labels), 1)
            self._labels.append((name, value))
        for index, (name, value) in enumerate(self._labels):
            used = index < len(pairs)
            words, text = pairs[index] if used else ("", "")
            name.setText(words)
            value.setText(text)
            name.setVisible(used)
            value.setVisible(used)

    def texts(self) -> list[tuple[str, str]]:
        """What is shown."""
        return [(name.text(), value.text()) for name, value in self._labels if name.text() or value.text()]


class DifferencePanel(Rows):
    """The figures of `edgeconv diff`."""

    def show_comparisons(self, comparisons: DiffRecord | None) -> None:
        """Show the figures; for None, how to get them."""
        if comparisons is None:
            self.show_rows([("", "Press 5 to compare the two sides.")])
            return
        lines = list(zip(("reference", "other"), comparisons.labels, strict=True))
        self.show_rows([*lines, *rows(comparisons, 0)])
