"""The controls: a field per parameter, in the order in which one thinks of them. They say what changed, no more.

Fields are made from the rows of edgeconv/options.py and methods/options.py: what is added there appears here. Filter,
kernel and thresholds have controls of their own.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QFormLayout, QLabel, QToolButton, QVBoxLayout, QWidget

from edgeconv.core.chains import DEFAULT_RULE, THRESHOLD_RULES, parse_thresholds
from edgeconv.core.choices import CHAINS
from edgeconv.core.filters import CUSTOM, Filter
from edgeconv.core.option import options_of
from edgeconv.core.output import threshold_text
from edgeconv.errors import EdgeconvError
from edgeconv.options import MethodOptions
from edgeconv.view.parameters import CHOICES, KNOWN, OF_CHAINS, OF_FILTERS, Parameters, kernel_cells, kernel_text
from edgeconv.view.qt.fields import Calm, KernelEditor, ThresholdField, field_of, show_value
from edgeconv.view.qt.plain_text import plain_label
from edgeconv.view.render import ThresholdScale

SIDE_MARGIN = 14
LABEL_WIDTH = 76
BY_HAND = "by hand"
"""Of thresholds that are two numbers."""
MASK_TIP = "A mask: white where |output| is at least this, else black; saved by --threshold"
LOW_TIP = "Edges go on along ridges above this that touch one above the upper threshold"
HIGH_TIP = "Ridges above this are edges"


class Controls(QWidget):
    """`changed` brings the parameters that the user turned, by name."""

    changed = Signal(dict)
    replaced = Signal(object)
    """Parameters as a whole, where one control moves several."""
    complained = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._shown = Parameters()
        calm = Calm(self)
        self.filter = QComboBox()
        self.filter.addItems([*CHOICES["filter"], CUSTOM])
        self.filter.setAccessibleName("Filter")
        self.kernel = KernelEditor(calm)
        self.kernel.show_cells(kernel_cells(self._shown.chosen_filter()))
        self.note = plain_label("dim")
        self.note.setWordWrap(True)
        self.threshold = ThresholdField(calm, "Threshold", MASK_TIP, "off")
        self.rule = QComboBox()
        self.rule.addItems([*THRESHOLD_RULES, BY_HAND])
        self.low, self.high = ThresholdField(calm, "Low", LOW_TIP, "0"), ThresholdField(calm, "High", HIGH_TIP, "0")
        own = {"filter", "kernel", "kernel_file", "chain", "threshold", "thresholds"}
        self.fields = {
            name: field_of(entry, partial(self._turn, name)) for name, entry in KNOWN.items() if name not in own
        }
        calm.watch(self.filter, self.rule, *self.fields.values())
        self._rules = _form({name: self.fields.get(name, self.threshold) for name in OF_FILTERS})
        for name in ("gradient", "blur"):
            _add_row(self._rules, name, self.fields[name])
        for label, widget in (("thresholds", self.rule), ("low", self.low), ("high", self.high)):
            _add_row(self._rules, label, widget)
        self._of_chains = (self.fields["gradient"], self.fields["blur"], self.rule, self.low, self.high)
        self.advanced = QToolButton()
        self._lay_out()
        self._listen()

    def show_parameters(self, parameters: Parameters) -> None:
        """Turn the controls to what holds; what they say meanwhile is what is `_shown` already, and so no change."""
        self._shown = parameters
        show_value(self.filter, parameters.filter_label)
        self._show_filter(parameters)
        for name, field in self.fields.items():
            show_value(field, getattr(parameters, name))
            if name in (*OF_FILTERS, *OF_CHAINS):
                self._rules.setRowVisible(field, name not in parameters.needless_rules)
        self._rules.setRowVisible(self.fields["luma"], parameters.channels == "luma" and not parameters.has_chain)
        self._rules.setRowVisible(self.threshold, not parameters.has_chain)
        self.threshold.show_threshold(parameters.threshold)
        for widget in (self.rule, self.low, self.high):
            self._rules.setRowVisible(widget, parameters.has_chain)
        given = parse_thresholds(parameters.thresholds)
        self.rule.setCurrentText(given.get("rule", BY_HAND if given else DEFAULT_RULE))
        if "low" in given:
            self._show_thresholds(**given)

    def show_hysteresis(self, scale: ThresholdScale, low: float, high: float) -> None:
        """The thresholds of the edges that are displayed, given or as the rule chose them in this picture."""
        self.low.show_scale(scale)
        self.high.show_scale(scale)
        self._show_thresholds(low, high)

    def _show_thresholds(self, low: float, high: float) -> None:
        self.low.show_threshold(low or None)
        self.high.show_threshold(high or None)

    def _show_filter(self, parameters: Parameters) -> None:
        self.kernel.setVisible(not parameters.has_chain)
        if parameters.has_chain:
            self.note.setText(f"a chain of stages: {parameters.chain or ', '.join(CHAINS[parameters.filter])}")
            return
        try:
            chosen = parameters.chosen_filter()
        except EdgeconvError as error:  # a kernel file that has gone since
            self.note.setText(str(error))
            return
        self.kernel.show_cells(kernel_cells(chosen))
        self.kernel.setEnabled(not chosen.is_full_set)
        self.note.setText(_filter_note(parameters, chosen))

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(SIDE_MARGIN, 10, SIDE_MARGIN, 10)
        column.setSpacing(6)
        of_methods = [entry.name for entry in options_of(MethodOptions)]
        more = QWidget()
        more.setLayout(_form({name: self.fields[name] for name in of_methods}))
        for name in of_methods:
            self.fields[name].setToolTip(KNOWN[name].help)
        more.setVisible(False)
        self.advanced.setText("More")
        self.advanced.setCheckable(True)
        self.advanced.setArrowType(Qt.ArrowType.DownArrow)
        self.advanced.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.advanced.setAutoRaise(True)
        self.advanced.toggled.connect(more.setVisible)
        column.addWidget(plain_label("heading", "Filter"))
        for widget in (self.filter, self.kernel, self.note, plain_label("heading", "Convolution")):
            column.addWidget(widget)
        column.addLayout(self._rules)
        column.addWidget(plain_label("heading", "Method"))
        column.addLayout(_form({name: self.fields[name] for name in ("method", "device")}))
        column.addWidget(self.advanced)
        column.addWidget(more)
        column.addStretch(1)

    def _listen(self) -> None:
        self.filter.textActivated.connect(self._choose_filter)
        self.kernel.edited.connect(lambda cells: self.replaced.emit(self._shown.with_filter(kernel=kernel_text(cells))))
        self.threshold.turned.connect(partial(self._turn, "threshold"))
        self.rule.textActivated.connect(self._choose_rule)
        for field in (self.low, self.high):
            field.turned.connect(partial(self._turn_one, field))
        for field in (self.threshold, self.low, self.high):
            field.complained.connect(self.complained)

    def _choose_filter(self, name: str) -> None:
        if name == CUSTOM:  # the numbers that the cells hold
            self.replaced.emit(self._shown.with_filter(kernel=kernel_text([cell.text() for cell in self.kernel.cells])))
        elif name in CHOICES["filter"]:
            self.replaced.emit(self._shown.with_filter(name))

    def _choose_rule(self, rule: str) -> None:
        if rule == BY_HAND:
            self._turn_one(self.high, self.high.value)
        else:
            self._turn("thresholds", None if rule == DEFAULT_RULE else rule)

    def _turn_one(self, field: ThresholdField, value: float | None) -> None:
        """Move one of the two thresholds, and the other as far as it is in the way."""
        turned = value or 0.0
        low, high = (
            (turned, max(turned, self.high.value)) if field is self.low else (min(self.low.value, turned), turned)
        )
        self._turn("thresholds", f"{threshold_text(low)},{threshold_text(high)}")

    def _turn(self, name: str, value: Any) -> None:
        if getattr(self._shown, name) != value:
            self.changed.emit({name: value})


def _form(rows: dict[str, QWidget]) -> QFormLayout:
    form = QFormLayout()
    form.setContentsMargins(0, 0, 0, 0)
    form.setVerticalSpacing(5)
    form.setHorizontalSpacing(12)
    form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft)
    form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
    for name, widget in rows.items():
        _add_row(form, name, widget)
    return form


def _add_row(form: QFormLayout, name: str, widget: QWidget) -> None:
    text = name.replace("_mode", "").replace("_", " ").capitalize()
    label = QLabel(text)
    label.setMinimumWidth(LABEL_WIDTH)
    widget.setAccessibleName(text)
    form.addRow(label, widget)


def _filter_note(parameters: Parameters, chosen: Filter) -> str:
    """A line under the editor."""
    if chosen.is_full_set:
        return f"{chosen.name}: 3×3×3×3, a kernel for each pair of channels"
    if parameters.kernel is not None or parameters.kernel_file is not None:
        return "your own kernel" if parameters.kernel_file is None else f"from {parameters.kernel_file}"
    first = "" if len(chosen.kernels) == 1 else f" (the first of {len(chosen.kernels)} is shown)"
    return chosen.summary + first
