"""The control of a threshold: a slider over the values of the output, and the number, which may be typed as well."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QSlider, QWidget

from edgeconv.core.output import threshold_text
from edgeconv.view.qt.fields import Calm
from edgeconv.view.render import ThresholdScale

MIN_NUMBER_WIDTH, NUMBER_WIDTH = 44, 64
PAGES = 16
"""Steps of Page Up and Page Down from end to end."""


class ThresholdField(QWidget):
    """`turned` brings a threshold, or None: the slider at its left end, an empty number. `off` says what that means."""

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
