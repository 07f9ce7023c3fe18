"""The controls: one widget per parameter, in the order in which one thinks of them. They say what changed, no more.

Those of methods come from the table of method options (methods/options.py): what is added there appears here.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QFormLayout,
    QLabel,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from edgeconv.core.chains import DEFAULT_RULE, THRESHOLD_RULES, parse_thresholds
from edgeconv.core.choices import CHAINS
from edgeconv.core.filters import CUSTOM, Filter
from edgeconv.core.option import AUTO, Option, options_of
from edgeconv.core.output import threshold_text
from edgeconv.errors import EdgeconvError
from edgeconv.options import MethodOptions
from edgeconv.view.parameters import CHOICES, KNOWN, Parameters, kernel_cells, kernel_text, value_of
from edgeconv.view.qt.fields import Combo, LineField, Spin
from edgeconv.view.qt.kernel import KernelEditor
from edgeconv.view.qt.plain_text import plain_label
from edgeconv.view.qt.threshold import ThresholdField
from edgeconv.view.threshold_scale import ThresholdScale

MOST_STRIDE = 999
MOST_NUMBER = 1024
"""Of an option of methods that is a number, such as threads."""
MNEMONICS_TAKEN = "clspbortdfevhmguw"
"""Letters of the labels above those of methods, and of the menus."""
SIDE_MARGIN = 14
MASK_TIP = "A mask: white where |output| is at least this, else black; saved by --threshold"
LOW_TIP = "Edges go on along ridges above this that touch one above the upper threshold"
HIGH_TIP = "Ridges above this are edges"


class Controls(QWidget):
    """`changed` brings the parameters that the user turned, by name."""

    changed = Signal(dict)
    replaced = Signal(object)
    """Parameters as a whole, where one control moves several."""
    complained = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shown = Parameters()
        self.filter = Combo(CHOICES["filter"])
        self.filter.setAccessibleName("Filter")
        self.kernel = KernelEditor()
        self.note = plain_label("dim")
        self.note.setWordWrap(True)
        self.channels, self.luma = self._combo("channels"), self._combo("luma")
        self.border, self.output_mode = self._combo("border"), self._combo("output_mode")
        self.threshold = ThresholdField("Threshold", MASK_TIP)
        self.thresholds = Combo(THRESHOLD_RULES, own=True)
        self.thresholds.setToolTip(KNOWN["thresholds"].help)
        self.low, self.high = ThresholdField("Low", LOW_TIP, "0"), ThresholdField("High", HIGH_TIP, "0")
        self.gradient, self.blur = self._combo("gradient"), self._combo("blur")
        self.method, self.device = self._combo("method"), self._combo("device")
        self.of_methods = {entry.name: self._field(entry) for entry in options_of(MethodOptions)}
        self.stride = Spin(1, MOST_STRIDE)
        self.padding = Combo((*CHOICES["padding"], "0", "1", "2"), own=True)
        self.advanced = QToolButton()
        self._lay_out()
        self._listen()

    def show_parameters(self, parameters: Parameters) -> None:
        """Turn the controls to what holds; what they say meanwhile is what is `_shown` already, and so no change."""
        self._shown = parameters
        names = [*CHOICES["filter"], CUSTOM] if parameters.filter_label == CUSTOM else [*CHOICES["filter"]]
        if self.filter.count() != len(names):
            self.filter.clear()
            self.filter.addItems(names)
        self.filter.setCurrentText(parameters.filter_label)
        self._show_filter(parameters)
        for name in ("channels", "luma", "border", "method", "device", "blur"):
            combo: Combo = getattr(self, name)
            combo.setCurrentText(str(getattr(parameters, name)))
        self.output_mode.setCurrentText(parameters.output_mode or AUTO)
        self.gradient.setCurrentText(parameters.gradient or AUTO)
        self.thresholds.setCurrentText(parameters.thresholds or DEFAULT_RULE)
        given = parse_thresholds(parameters.thresholds)
        if "low" in given:
            self._show_hysteresis(**given)
        of_filters = (self.channels, self.stride, self.padding, self.border, self.output_mode, self.threshold)
        for row in (*of_filters, self.thresholds, self.low, self.high, self.gradient, self.blur):
            self._rules.setRowVisible(row, (row in of_filters) != parameters.has_chain)
        self._rules.setRowVisible(self.luma, parameters.channels == "luma" and not parameters.has_chain)
        self.threshold.show_threshold(parameters.threshold)
        self.stride.setValue(parameters.stride)
        if self.padding.currentText() != parameters.padding:
            self.padding.setCurrentText(parameters.padding)
        for name, widget in self.of_methods.items():
            _show(widget, getattr(parameters, name))

    def _show_filter(self, parameters: Parameters) -> None:
        if parameters.has_chain:
            stages = parameters.chain or ", ".join(CHAINS[parameters.filter])
            self.kernel.setVisible(False)
            self.note.setText(f"a chain of stages: {stages}")
            return
        try:
            chosen = parameters.chosen_filter()
        except EdgeconvError as error:  # a kernel file that has gone since
            self.note.setText(str(error))
            return
        self.kernel.setVisible(True)
        self.kernel.show_cells(kernel_cells(chosen))
        self.kernel.setEnabled(not chosen.is_full_set)
        self.note.setText(_filter_note(parameters, chosen))

    def _combo(self, name: str) -> Combo:
        combo = Combo(CHOICES[name])
        combo.textActivated.connect(lambda word: self._turn(name, value_of(name, word)))
        return combo

    def _field(self, entry: Option) -> QWidget:
        """The widget of an option of methods, by what it takes."""
        if entry.choices:
            return self._combo(entry.name)
        if entry.type is bool:
            box = QCheckBox()
            box.toggled.connect(lambda wanted: self._turn(entry.name, wanted))
            return box
        if entry.type is int:
            spin = Spin(0, MOST_NUMBER)
            if entry.may_be_none:
                spin.setSpecialValueText(AUTO)
            spin.valueChanged.connect(lambda value: self._turn(entry.name, value or (None if entry.may_be_none else 0)))
            return spin
        line = LineField()
        line.editingFinished.connect(lambda: self._turn(entry.name, line.text().strip()))
        return line

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(SIDE_MARGIN, 10, SIDE_MARGIN, 10)
        column.setSpacing(6)
        column.addWidget(plain_label("heading", "Filter"))
        column.addWidget(self.filter)
        column.addWidget(self.kernel)
        column.addWidget(self.note)
        column.addSpacing(6)
        column.addWidget(plain_label("heading", "Convolution"))
        self._rules = _form(
            ("&Channels", self.channels),
            ("&Luma", self.luma),
            ("&Stride", self.stride),
            ("&Padding", self.padding),
            ("&Border", self.border),
            ("&Output", self.output_mode),
            ("Th&reshold", self.threshold),
            ("Thresholds", self.thresholds),
            ("Lo&w", self.low),
            ("High", self.high),
            ("&Gradient", self.gradient),
            ("Bl&ur", self.blur),
        )
        column.addLayout(self._rules)
        column.addSpacing(6)
        column.addWidget(plain_label("heading", "Method"))
        column.addLayout(_form(("Me&thod", self.method), ("&Device", self.device)))
        self.advanced.setText("More")
        self.advanced.setCheckable(True)
        self.advanced.setArrowType(Qt.ArrowType.RightArrow)
        self.advanced.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.advanced.setAutoRaise(True)
        self.advanced.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        more = QWidget()
        taken = set(MNEMONICS_TAKEN)
        more.setLayout(_form(*((_label(KNOWN[name], taken), widget) for name, widget in self.of_methods.items())))
        for name, widget in self.of_methods.items():
            widget.setToolTip(KNOWN[name].help)
        more.setVisible(False)
        self.advanced.toggled.connect(more.setVisible)
        self.advanced.toggled.connect(
            lambda opened: self.advanced.setArrowType(Qt.ArrowType.DownArrow if opened else Qt.ArrowType.RightArrow)
        )
        column.addWidget(self.advanced)
        column.addWidget(more)
        column.addStretch(1)

    def _listen(self) -> None:
        self.filter.textActivated.connect(self._choose_filter)
        self.kernel.edited.connect(lambda cells: self.replaced.emit(self._shown.with_kernel(kernel_text(cells))))
        self.kernel.spoilt.connect(self.complained)
        self.stride.valueChanged.connect(lambda value: self._turn("stride", value))
        self.threshold.turned.connect(lambda value: self._turn("threshold", value))
        self.threshold.complained.connect(self.complained)
        for field in (self.low, self.high):
            field.turned.connect(partial(self._turn_one, field))
            field.complained.connect(self.complained)
        self.thresholds.textActivated.connect(self._turn_thresholds)
        self.padding.textActivated.connect(lambda word: self._turn("padding", word))
        for combo, turn in ((self.padding, partial(self._turn, "padding")), (self.thresholds, self._turn_thresholds)):
            line = combo.lineEdit()
            assert line is not None  # a number may be typed
            line.editingFinished.connect(lambda line=line, turn=turn: turn(line.text().strip()))

    def show_hysteresis(self, scale: ThresholdScale, low: float, high: float) -> None:
        """The thresholds of the edges that are displayed, given or as the rule chose them in this picture."""
        self.low.show_scale(scale)
        self.high.show_scale(scale)
        self._show_hysteresis(low, high)

    def _show_hysteresis(self, low: float, high: float) -> None:
        self.low.show_threshold(low or None)
        self.high.show_threshold(high or None)

    def _turn_thresholds(self, text: str) -> None:
        self._turn("thresholds", None if text in ("", DEFAULT_RULE) else text)

    def _turn_one(self, field: ThresholdField, value: float | None) -> None:
        """Move one of the two thresholds, and the other as far as it is in the way."""
        low, high = self.low.value, self.high.value
        if field is self.low:
            low = value or 0.0
            high = max(low, high)
        else:
            high = value or 0.0
            low = min(low, high)
        self._turn("thresholds", f"{threshold_text(low)},{threshold_text(high)}")

    def _choose_filter(self, name: str) -> None:
        if name != CUSTOM:
            self.replaced.emit(self._shown.with_filter(name))

    def _turn(self, name: str, value: Any) -> None:
        if getattr(self._shown, name) != value:
            self.changed.emit({name: value})


def _show(widget: QWidget, value: Any) -> None:
    """Turn a widget of `_field` to a value."""
    if isinstance(widget, Combo):
        widget.setCurrentText(AUTO if value is None else str(value))
    elif isinstance(widget, QCheckBox):
        widget.setChecked(value)
    elif isinstance(widget, Spin):
        widget.setValue(value or 0)
    elif isinstance(widget, LineField) and widget.text() != value:
        widget.setText(value)


def _label(entry: Option, taken: set[str]) -> str:
    """The name of an option with a mnemonic that no other label has."""
    text = entry.parameter.replace("_", " ").capitalize()
    for place, letter in enumerate(text):
        if letter.isalpha() and letter.lower() not in taken:
            taken.add(letter.lower())
            return f"{text[:place]}&{text[place:]}"
    return text


def _form(*rows: tuple[str, QWidget]) -> QFormLayout:
    form = QFormLayout()
    form.setContentsMargins(0, 0, 0, 0)
    form.setVerticalSpacing(5)
    form.setHorizontalSpacing(12)
    form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft)
    form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
    for text, widget in rows:
        label = QLabel(text)
        label.setMinimumWidth(76)
        label.setBuddy(widget.focusProxy() or widget)  # a buddy without a focus of its own is never gone to
        widget.setAccessibleName(text.replace("&", ""))
        form.addRow(label, widget)
    return form


def _filter_note(parameters: Parameters, chosen: Filter) -> str:
    """A line under the editor."""
    if chosen.is_full_set:
        return f"{chosen.name}: 3×3×3×3, a kernel for each pair of channels"
    if parameters.kernel is not None or parameters.kernel_file is not None:
        return "your own kernel" if parameters.kernel_file is None else f"from {parameters.kernel_file}"
    first = "" if chosen.directions == 1 else f" (the first of {chosen.directions} is shown)"
    return chosen.summary + first
