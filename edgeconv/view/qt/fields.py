"""The fields of the controls: one for each kind of option row, the nine cells of a kernel, and a threshold's slider.

Undo and redo are the window's, not the letters'. The wheel turns nothing while the panel is scrolled. What is dropped
on a field goes to the window, which opens pictures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QEvent, QObject, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence, QRegularExpressionValidator
from PySide6.QtWidgets import QCheckBox, QComboBox, QGridLayout, QHBoxLayout, QLineEdit, QSlider, QSpinBox, QWidget

from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.option import AUTO, Option
from edgeconv.core.output import threshold_text
from edgeconv.view.parameters import CHOICES, MAX_CELL, same_number, value_of
from edgeconv.view.render import ThresholdScale

MAX_NUMBER = 1024
"""Of an option that is a number, such as threads or the stride."""
CELL_HEIGHT = 27
NUMBER = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"
WEIGHT = rf"{NUMBER}(/{NUMBER})?"
"""A number, or a fraction such as 1/9; nothing else can be typed."""
MIN_NUMBER_WIDTH, NUMBER_WIDTH = 44, 64
PAGES = 16
"""Steps of Page Up and Page Down from end to end of a threshold's slider."""


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


class KernelEditor(QWidget):
    """The 3×3 editor; `edited` brings nine texts, row by row, each of them a number."""

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


class ThresholdField(QWidget):
    """A slider over the values of the output, and the number.

    `turned` brings a threshold, or None: the slider at its left end, an empty number. `off` says what that means."""

    turned = Signal(object)
    complained = Signal(str)

    def __init__(self, calm: Calm, name: str, tip: str, off: str) -> None:
        super().__init__()
        self._scale, self._name, self._off = ThresholdScale(), name, off
        self._shown: float | None = None
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.number = QLineEdit()
        calm.watch(self.slider, self.number)
        self.slider.setAccessibleName(name)
        self.number.setPlaceholderText(off)
        self.number.setMinimumWidth(MIN_NUMBER_WIDTH)
        self.number.setMaximumWidth(NUMBER_WIDTH)
        self.number.setAccessibleName(f"{name} as a number")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self.slider, 2)
        row.addWidget(self.number, 1)
        self.setFocusProxy(self.slider)
        self.setToolTip(tip)
        self.slider.valueChanged.connect(self._on_slider)
        self.number.editingFinished.connect(self._on_number)
        self.show_scale(self._scale)

    @property
    def value(self) -> float:
        """What is shown; 0 for none."""
        return self._shown or 0.0

    def show_scale(self, scale: ThresholdScale) -> None:
        """The output that is displayed has other values."""
        self._scale = scale
        with QSignalBlocker(self.slider):
            self.slider.setRange(0, scale.positions)
            self.slider.setPageStep(max(1, scale.positions // PAGES))
        self.show_threshold(self._shown)

    def show_threshold(self, threshold: float | None) -> None:
        """Turn slider and number to what holds, which emits nothing."""
        self._shown = threshold
        with QSignalBlocker(self.slider):
            self.slider.setValue(self._scale.position_of(threshold))
        self.number.setText("" if threshold is None else threshold_text(threshold))

    def _on_slider(self, position: int) -> None:
        if position != self._scale.position_of(self._shown):
            self.turned.emit(self._scale.threshold_at(position))

    def _on_number(self) -> None:
        text = self.number.text().strip()
        try:
            threshold = None if text in ("", self._off) else float(text)
        except ValueError:
            self.complained.emit(f"{self._name} '{text}' is not a number above 0.")
            self.show_threshold(self._shown)
            return
        if threshold != self._shown:
            self.turned.emit(threshold)
