"""An option row becomes a field: a list of choices, a number, a tick or a line. All say their value in one way.

Undo and redo are the window's, not the letters'. The wheel turns nothing while the panel is scrolled. What is dropped
on a field goes to the window, which opens pictures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QCheckBox, QComboBox, QLineEdit, QSpinBox, QWidget

from edgeconv.core.option import AUTO, Option
from edgeconv.view.parameters import CHOICES, value_of

MAX_NUMBER = 1024
"""Of an option that is a number, such as threads or the stride."""


class Calm(QObject):
    """Watches fields, and leaves to the window and the panel what is theirs."""

    def watch(self, *fields: QWidget) -> None:
        """Watch fields from now on."""
        for field in fields:
            field.installEventFilter(self)
            field.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            for line in [field] if isinstance(field, QLineEdit) else field.findChildren(QLineEdit):
                line.setAcceptDrops(False)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The wheel, unless a field has the focus, and the keys of undo and redo."""
        theirs = event.type() == QEvent.Type.Wheel and isinstance(watched, QWidget) and not watched.hasFocus()
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride:
            theirs = event.matches(QKeySequence.StandardKey.Undo) or event.matches(QKeySequence.StandardKey.Redo)
        if theirs:
            event.ignore()
        return theirs


def field_of(entry: Option, turned: Callable[[Any], None]) -> QWidget:
    """The widget of an option, by what it takes; `turned` is called with each value that the user gives it."""
    if words := CHOICES.get(entry.name):
        combo = QComboBox()
        combo.addItems(list(words))
        combo.textActivated.connect(lambda word: turned(value_of(entry.name, word)))
        return combo
    if entry.type is bool:
        box = QCheckBox()
        box.toggled.connect(turned)
        return box
    if entry.type is int:
        spin = QSpinBox()
        spin.setRange(0 if entry.may_be_none else 1, MAX_NUMBER)
        if entry.may_be_none:
            spin.setSpecialValueText(AUTO)
        spin.valueChanged.connect(lambda value: turned(value or None))
        return spin
    line = QLineEdit()
    line.editingFinished.connect(lambda: turned(line.text().strip()))
    return line


def show_value(field: QWidget, value: Any) -> None:
    """Turn a field of `field_of` to a value; what it says meanwhile is that value."""
    if isinstance(field, QComboBox):
        word = AUTO if value is None else str(value)
        if field.findText(word) < 0:  # given on the command line, such as a padding of 7
            field.addItem(word)
        field.setCurrentText(word)
    elif isinstance(field, QCheckBox):
        field.setChecked(value)
    elif isinstance(field, QSpinBox):
        field.setValue(value or 0)
    elif isinstance(field, QLineEdit) and field.text() != value:
        field.setText(value)
