"""The window's behaviour: passes user actions to the model, its requests to the workers, and results to the widgets.

Nothing is computed here and nothing blocks. Requests go to the render service, which serves only the
newest (render.py); saving and exporting (export_actions.py) are tasks that no newer request cancels.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QGuiApplication, QStandardItemModel
from PySide6.QtWidgets import QApplication, QComboBox, QFileDialog, QMessageBox

from edgeconv.core.option import AUTO
from edgeconv.difference.inputs import layout_text
from edgeconv.difference.text import number
from edgeconv.errors import EdgeconvError
from edgeconv.view.parameters import Parameters, from_record
from edgeconv.view.qt import actions
from edgeconv.view.qt.canvas import BAR_STEP, ZOOM_STEP, Heat
from edgeconv.view.qt.export_actions import OPEN_FILTER, ExportActions
from edgeconv.view.qt.frame import Frame
from edgeconv.view.qt.memory import Memory
from edgeconv.view.qt.opening import Opening
from edgeconv.view.qt.plain_text import tip
from edgeconv.view.render import (
    After,
    Answer,
    DifferenceReady,
    Failed,
    Layer,
    LayerReady,
    PictureRead,
    RenderService,
    RequestDone,
    RunMeasured,
    ScaleKnown,
    ShareDone,
    Tasks,
)
from edgeconv.view.sources import ViewSource, labels
from edgeconv.view.state import MODES, Model, find_mode

MEASURING = "measuring …"
STOPPED = "Stopped. F5 computes it again."
NONE_WANTED = -1
"""A generation that no request has."""
KERNEL_FILTER = "Kernels (*.json *.csv *.npy)"


class ViewWindow(Frame):
    """One window. Tests and scripts may look at `model`, `service` and `tasks`."""

    first_view = Signal()
    """An output is on the screen for the first time."""

    def __init__(self, model: Model, service: RenderService, memory: Memory) -> None:
        super().__init__(service.clock)
        self.model, self.service, self.memory = model, service, memory
        self.tasks = Tasks(self)
        self.tasks.complained.connect(self.complain)
        self.tasks.changed.connect(self.show_writing)
        self.opening = Opening(model, self.tasks, self._follow, self._show_state)
        self.export_actions = ExportActions(self, model, service, self.tasks)
        service.answered.connect(self._on_answer)
        self._left: Layer | None = None
        self._right: Layer | None = None
        self._notes: tuple[str, ...] = ()
        self._reasons: dict[ViewSource, str] | None = None
        self._shown_picture: str | None = None
        self._seen_first = False
        self._closed = False
        self._settled_generation = 0
        self._pointed_at: tuple[int, int] | None = None
        self.build(self._does())
        self._listen()
        self._restore()

    @property
    def settled(self) -> bool:
        """Everything that the newest request asked for has arrived."""
        return self._settled_generation == self.model.generation

    def _does(self) -> dict[str, Any]:
        """What each command does."""
        model, canvas, export_actions = self.model, self.canvas, self.export_actions
        return {
            "open": self.ask_open,
            "paste": self.paste,
            "next": lambda: self._follow(model.step(1)),
            "previous": lambda: self._follow(model.step(-1)),
            "reload": self.reload,
            "save": self.save,
            "export-diff": partial(
                export_actions.ask_page, "Export page of the two sides", "diff", export_actions.page_of_sides
            ),
            "export-methods": partial(
                export_actions.ask_page, "Export page of every method", "methods", export_actions.page_of_methods
            ),
            "quit": self.close,
            "undo": lambda: self._follow(model.undo()),
            "redo": lambda: self._follow(model.redo()),
            "reset": lambda: self.set_parameters(Parameters()),
            "load-kernel": self._ask_kernel,
            "copy-picture": lambda: export_actions.copy_picture(canvas.answer),
            "copy-command": lambda: export_actions.copy_command(self.opening.is_pasted(model.picture)),
            "swap": self.swap,
            "bar-left": lambda: canvas.move_bar(-BAR_STEP),
            "bar-right": lambda: canvas.move_bar(BAR_STEP),
            "zoom-in": lambda: canvas.zoom_by(ZOOM_STEP),
            "zoom-out": lambda: canvas.zoom_by(1 / ZOOM_STEP),
            "fit": canvas.fit,
            "actual": canvas.actual_size,
            "focus-picture": canvas.setFocus,
            "focus-controls": self.controls.filter.setFocus,
            "focus-figures": lambda: self.tabs.tabBar().setFocus(),
            "panel": lambda: self.show_panel(self.actions_by_name["panel"].isChecked()),
            "stop": self.stop,
            "keys": self._show_keys,
            **{mode.name: partial(self.show_mode, mode.name) for mode in MODES},
        }

    def _listen(self) -> None:
        self.canvas.hovered.connect(self._show_values)
        self.canvas.moved.connect(self._show_zoom)
        self.canvas.painted.connect(self._on_painted)
        self.controls.changed.connect(self._on_controls)
        self.controls.replaced.connect(self.set_parameters)
        self.controls.complained.connect(self.complain)
        self.history.chosen.connect(lambda run: self._follow(self.model.restore(run)))
        self.busy.stop.clicked.connect(self.stop)
        self.left_box.activated.connect(lambda index: self._show_source("left", self.left_box.itemData(index)))
        self.right_box.activated.connect(lambda index: self._show_source("right", self.right_box.itemData(index)))

    def _restore(self) -> None:
        recent = self.memory.load("recent")
        self.model.recent = [path for path in recent if isinstance(path, str)] if isinstance(recent, list) else []
        self.restore_places(self.memory)
        self.canvas.setFocus()
        self.show_mode(find_mode(str(self.memory.load("mode"))).name)

    # --- from the user to the model -----------------------------------------------------------------------------

    def open_pictures(self, paths: Sequence[str]) -> None:
        """Add pictures and go to the first."""
        self.opening.open(paths)

    def ask_open(self) -> None:
        """By the system's dialog."""
        folder = os.path.dirname(self.model.picture or (self.model.recent or [""])[0])
        paths, _ = QFileDialog.getOpenFileNames(self, "Open pictures", folder, OPEN_FILTER)
        if paths:
            self.open_pictures(paths)

    def paste(self) -> None:
        """Open what the clipboard holds: files, a path, or a picture."""
        if not self.opening.take(QGuiApplication.clipboard().mimeData()):
            self.complain("The clipboard has no picture: copy a picture or its file first.")

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Files and pictures may be dropped."""
        if event.mimeData().hasUrls() or event.mimeData().hasImage():
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Open what is dropped."""
        if self.opening.take(event.mimeData()):
            event.acceptProposedAction()
        else:
            self.complain("What was dropped is neither a picture nor a local file: save it first, and drop the file.")

    def reload(self) -> None:
        """Read every picture anew."""
        for path in self.model.pictures:
            self.service.forget(path)
        self.refresh()

    def stop(self) -> None:
        """Give up what is loaded, computed or measured; what is displayed stays."""
        if not self._busy_text:
            return
        measuring = self._busy_text == MEASURING
        self.model.abandon()
        self.service.cancel(self.model.generation)
        self._settled_generation = self.model.generation
        self.show_busy("")
        self.canvas.set_note(STOPPED)
        if not measuring and self.canvas.frame is not None:
            self.complain(STOPPED)

    def swap(self) -> None:
        """Exchange the sides."""
        self.model.swap()
        self.refresh()

    def show_mode(self, name: str) -> None:
        """Switch to another view."""
        self.model.show(mode=find_mode(name))
        if name == "difference":
            self.tabs.setCurrentWidget(self.difference)
        self.canvas.set_mode(self.model.mode)
        self.refresh()

    def _show_source(self, side: str, source: ViewSource) -> None:
        self._follow(self.model.show(left=source) if side == "left" else self.model.show(right=source))

    def _on_controls(self, changes: dict[str, Any]) -> None:
        try:
            self._follow(self.model.edit(**changes))
        except EdgeconvError as error:
            self.complain(str(error))

    def set_parameters(self, parameters: Parameters) -> None:
        """Apply other parameters, or report why not."""
        try:
            self._follow(self.model.set_parameters(parameters, "kernel" if parameters.kernel is not None else None))
        except EdgeconvError as error:
            self.complain(str(error))

    def _ask_kernel(self) -> None:
        path, _ = QFileDialog.getOpenFileName(self, "Load kernel", "", KERNEL_FILTER)
        if path:
            self.load_kernel(path)

    def load_kernel(self, path: str) -> None:
        """Apply the kernel of a file; a file that is loaded already may have changed."""
        try:
            self.model.set_parameters(self.model.parameters.with_kernel_file(path))
        except EdgeconvError as error:
            self.complain(str(error))
        else:
            self.refresh()

    def save(self) -> None:
        """Ask for a name, and write what is displayed: a kernel file is read again for both."""
        if self.model.parameters.kernel_file is not None:
            self.refresh()
        self.export_actions.ask_save()

    def _follow(self, changed: bool) -> None:
        if changed:
            self.refresh()

    # --- from the model to widgets and workers ------------------------------------------------------------------

    def refresh(self) -> None:
        """Show the state of the model, and request what is to be displayed."""
        self.message.hide()
        self._show_state()
        request = self.model.next_request()
        if self.model.picture != self._shown_picture:
            self._shown_picture = self.model.picture
            self._left = self._right = None
            self.canvas.start_afresh()
        if request is None:
            self.picture_label.setText("")
            self.difference.show_comparisons(None)
            self._show_doing("")
            self.service.cancel(self.model.generation)
            return
        self.busy.end()  # another request, another second
        self._show_doing(f"loading {os.path.basename(request.picture)} …")
        self.service.submit(request)

    def _show_doing(self, what: str) -> None:
        """In the status bar, and in the middle of an area that shows no picture yet."""
        self.show_busy(what)
        self.canvas.set_note(what[:1].upper() + what[1:])

    def _show_state(self) -> None:
        model = self.model
        self.controls.show_parameters(model.parameters)
        self.actions_by_name[model.mode.name].setChecked(True)
        enabled = {
            "undo": model.can_undo,
            "redo": model.can_redo,
            "next": len(model.pictures) > 1,
            "previous": len(model.pictures) > 1,
            "bar-left": model.mode.name == "split",
            "bar-right": model.mode.name == "split",
        }
        needing = ("save", "copy-command", "copy-picture", "export-diff", "export-methods", "reload")
        for name, may in (enabled | dict.fromkeys(needing, model.picture is not None)).items():
            self.actions_by_name[name].setEnabled(may)
        for part in self.left_parts:
            part.setVisible(model.mode.needs_both)
        self.left_label.setText(model.mode.sides[0])
        self.right_label.setText(model.mode.sides[-1])
        self._fill(self.left_box, model.left)
        self._fill(self.right_box, model.right)
        self._show_recent()
        self._show_title()

    def _show_title(self) -> None:
        if self.model.picture is None:
            self.setWindowTitle("edgeconv")
            return
        picture = ViewSource("file", self.model.picture)
        name = labels((picture, *self.model.sources()))[picture]
        self.setWindowTitle(f"{name.replace('[*]', '[*][*]')} – edgeconv")  # once, it is Qt's mark of changes

    def _fill(self, box: QComboBox, chosen: ViewSource) -> None:
        sources = self.model.sources()
        if [box.itemData(index) for index in range(box.count())] != list(sources):
            box.clear()
            for source, label in labels(sources).items():
                box.addItem(label, source)
                if source.kind == "file":
                    box.setItemData(box.count() - 1, tip(source.name), Qt.ItemDataRole.ToolTipRole)
            self._grey_out(box)
        box.setCurrentIndex(sources.index(chosen) if chosen in sources else 0)

    def _grey_out(self, box: QComboBox) -> None:
        """Methods that cannot run here are listed with the reason, and cannot be chosen."""
        items = box.model()
        assert isinstance(items, QStandardItemModel)  # the default model of a combo box
        for index in range(box.count()):
            reason = (self._reasons or {}).get(box.itemData(index))
            if reason is not None:
                box.setItemData(index, tip(reason), Qt.ItemDataRole.ToolTipRole)
                items.item(index).setEnabled(False)

    def _show_recent(self) -> None:
        if [action.data() for action in self.recent_menu.actions()] == self.model.recent:
            return
        self.recent_menu.clear()
        for path in self.model.recent:
            action = self.recent_menu.addAction(path.replace("&", "&&"), partial(self.open_pictures, [path]))
            action.setData(path)
        self.recent_menu.setEnabled(bool(self.model.recent))

    def _on_answer(self, answer: Answer) -> None:
        if self._closed or not self.model.accepts(answer.generation):
            return
        if isinstance(answer, PictureRead):
            self.model.remember(answer.path)
            self._notes = answer.notes
            self._show_doing(f"computing {self._awaited()} …")
            self._show_recent()
        elif isinstance(answer, LayerReady):
            self._show_layer(answer)
        elif isinstance(answer, ShareDone):
            if answer.measuring and self._busy_text != MEASURING:
                self.show_busy(MEASURING)
            self.busy.show_share(answer.share)
        elif isinstance(answer, ScaleKnown):
            if answer.hysteresis is None:
                self.controls.threshold.show_scale(answer.scale)
            else:
                self.controls.show_hysteresis(answer.scale, *answer.hysteresis)
        elif isinstance(answer, DifferenceReady):
            self._show_difference(answer)
        elif isinstance(answer, RunMeasured):
            self._show_measured(answer)
        elif isinstance(answer, Failed):
            self._show_failure(answer)
        elif isinstance(answer, RequestDone):
            self._show_doing("")
            self._settled_generation = answer.generation
            self._learn_reasons()

    def _awaited(self) -> str:
        """What the newest request computes, in a few words."""
        sides = (self.model.left, self.model.right) if self.model.mode.needs_both else (self.model.right,)
        method = self.model.parameters.method
        by = "" if method == AUTO else f" by {method}"
        named = [side.label + by * (side.kind == "output") for side in sides if side.needs_filter]
        return " and ".join(dict.fromkeys(named)) or "the view"

    def _show_layer(self, answer: LayerReady) -> None:
        if answer.side == "left":
            self._left = answer.layer
        else:
            self._right = answer.layer
        self.canvas.set_layers(self._left, self._right)
        self._show_values(self._pointed_at)
        if answer.side == "right":
            if self.model.mode.name != "difference":
                self.show_busy("")
                self.difference.show_comparisons(None)
            notes = "".join(f" · {note}" for note in self._notes)
            self.picture_label.setToolTip(tip(self.model.picture or ""))
            self.picture_label.setText(f"{answer.layer.label} · {layout_text(answer.layer.pixels)}{notes}")

    def _show_difference(self, answer: DifferenceReady) -> None:
        (comparison,) = answer.comparisons.comparisons
        counts = comparison.judged.histogram
        legend = tuple(index for index, count in enumerate(counts) if count)
        names = answer.comparisons.reference.file, comparison.file
        self.canvas.set_heat(Heat(answer.pyramid, answer.comparisons.scale, legend, *names))
        self.difference.show_comparisons(answer.comparisons)

    def _show_measured(self, answer: RunMeasured) -> None:
        known = next((run for run in reversed(self.model.runs) if run.record is answer.record), None)
        run = known or self.model.add_run(answer.picture, answer.parameters, answer.record)
        self.speed.show_run(run)
        self.history.show_runs(self.model.runs)

    def _show_failure(self, answer: Failed) -> None:
        if answer.unreadable is not None:
            self.model.forget(answer.unreadable)
            self.service.forget(answer.unreadable)
            self.refresh()  # back to what can be shown; the message comes after, so that it stays
        elif self.model.mode.name == "difference":
            self.canvas.set_heat(None)
            self.difference.show_comparisons(None)
        self.complain(answer.message)

    def _learn_reasons(self) -> None:
        """Once all is quiet: which methods cannot run here, and why. Asking loads their libraries."""
        if self._reasons is not None:
            return
        self._reasons = {}

        def ask() -> After:
            from edgeconv.difference.methods import not_runnable

            found = {ViewSource("method", name, device): reason for name, device, reason in not_runnable()}
            return lambda: self._show_reasons(found)

        self.tasks.start(ask)

    def _show_reasons(self, found: dict[ViewSource, str]) -> None:
        self._reasons = found
        for box in (self.left_box, self.right_box):
            self._grey_out(box)

    def _show_zoom(self) -> None:
        zoom = self.canvas.zoom
        self.zoom_label.setText("" if self.canvas.frame is None else f"{zoom:.0%}" if zoom < 10 else f"{zoom:.4g}×")

    def _show_values(self, place: tuple[int, int] | None) -> None:
        self._pointed_at = place
        frame = self.canvas.frame
        if place is None or frame is None or place[0] >= frame.width or place[1] >= frame.height:
            self.values_label.setText("")
            return
        x, y = place
        words = [f"x {x}  y {y}"]
        for layer in (self._left, self._right) if self.model.mode.needs_both else (self._right,):
            if layer is not None:
                height, width = layer.pixels.shape[:2]
                values = layer.pixels[y * height // frame.height, x * width // frame.width].tolist()
                words.append(f"{layer.name} {' '.join(number(value) for value in values)}")
        self.values_label.setText("    ".join(words))

    def _on_painted(self) -> None:
        if not self._seen_first and self._right is not None and self._right.source.needs_filter:
            self._seen_first = True
            self.first_view.emit()

    # --- the rest -----------------------------------------------------------------------------------------------

    def _show_keys(self) -> None:
        rows = ((words, " or ".join(keys)) for words, keys in actions.listed_keys())
        lines = (f"<tr><td>{words}&nbsp;&nbsp;</td><td><b>{keys}</b></td></tr>" for words, keys in rows)
        box = QMessageBox(self)
        box.setWindowTitle("Keys")
        box.setText(f"<table cellspacing='2'>{''.join(lines)}</table>")
        box.open()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Store the settings and cancel all computations, but finish what is being written."""
        self._remember()
        self._closed = True
        self.service.cancel(NONE_WANTED)
        self.hide()
        self.tasks.join()
        self.opening.remove_pasted()
        event.accept()
        QApplication.quit()

    def _remember(self) -> None:
        self.memory.keep("recent", [path for path in self.model.recent if not self.opening.is_pasted(path)])
        self.memory.keep("mode", self.model.mode.name)
        self.memory.keep("parameters", vars(self.model.parameters))
        self.keep_places(self.memory)
        self.memory.write()


def remembered_parameters(memory: Memory) -> Parameters:
    """The parameters of the last session."""
    return from_record(memory.load("parameters"))
