"""Fields and lists of the controls.

Undo and redo are the window's, not the letters'. The wheel turns nothing while the panel is scrolled. What is dropped
on a field goes to the window, which opens pictures.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent, QKeySequence, QWheelEvent
from PySide6.QtWidgets import QComboBox, QLineEdit, QSpinBox


class LineField(QLineEdit):
    """A line of text."""

    def __init__(self) -> None:
        super().__init__()
        self.setAcceptDrops(False)

    def event(self, event: QEvent) -> bool:
        """Leave undo and redo to the window."""
        return _left_to_window(event) or super().event(event)


class Combo(QComboBox):
    """A list of words; `own` ones may be typed into it."""

    def __init__(self, words: tuple[str, ...], own: bool = False) -> None:
        super().__init__()
        self.addItems(list(words))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        if own:
            self.setEditable(True)
            self.setLineEdit(LineField())
            self.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Only where it has the focus."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()


class Spin(QSpinBox):
    """A whole number."""

    def __init__(self, least: int, most: int) -> None:
        super().__init__()
        self.setRange(least, most)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setKeyboardTracking(True)
        self.lineEdit().setAcceptDrops(False)

    def event(self, event: QEvent) -> bool:
        """Leave undo and redo to the window."""
        return _left_to_window(event) or super().event(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Only where it has the focus."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()


def _left_to_window(event: QEvent) -> bool:
    """Whether a field is asked if it wants the keys of undo or redo for itself; says no, where it is."""
    if event.type() != QEvent.Type.ShortcutOverride or not isinstance(event, QKeyEvent):
        return False
    if not any(map(event.matches, (QKeySequence.StandardKey.Undo, QKeySequence.StandardKey.Redo))):
        return False
    event.ignore()
    return True
