"""The window's behaviour: passes user actions to the model, its requests to the workers, and results to the widgets.

Nothing is computed here and nothing blocks. Requests go to the render service, which serves only the newest
(render.py); saving and exporting (export_actions.py) are tasks that no newer request cancels.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

from PySide6.QtCore import QByteArray, QMimeData, QSettings, Qt, SignalInstance
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QGuiApplication, QImage
from PySide6.QtWidgets import QApplication, QComboBox, QFileDialog

from edgeconv.api.figures import RunFigures
from edgeconv.core.option import AUTO
from edgeconv.difference.compare import DiffRecord
from edgeconv.difference.inputs import layout_text
from edgeconv.difference.text import number, rows
from edgeconv.errors import EdgeconvError
from edgeconv.view.layers import Layer
from edgeconv.view.parameters import Parameters
from edgeconv.view.qt.canvas import BAR_STEP, ZOOM_STEP
from edgeconv.view.qt.export_actions import OPEN_FILTER, ExportActions
from edgeconv.view.qt.frame import Frame
from edgeconv.view.qt.plain_text import tip
from edgeconv.view.qt.runs import speed_head, speed_rows
from edgeconv.view.render import After, RenderService, Tasks, ThresholdScale
from edgeconv.view.state import MODES, Model, ViewSource, labels

MEASURING = "measuring …"
STOPPED = "Stopped. F5 computes it again."
KERNEL_FILTER = "Kernels (*.json *.csv *.npy)"
PLACE_VARIABLE = "EDGECONV_VIEW_SETTINGS"
"""The environment variable that names another file (INI) for the settings; tests never touch the user's."""
STATE, GEOMETRY, SPLITTERS = "state", "geometry", ("splitter", "side")
"""What is stored between sessions: a record in JSON, and what Qt says of its own."""


class ViewWindow(Frame):
    """One window. Tests and scripts may look at `model`, `service` and `tasks`."""

    def __init__(self, model: Model, service: RenderService, settings: QSettings) -> None:
        super().__init__(service.clock)
        self.model, self.service, self.settings = model, service, settings
        self.tasks = Tasks(self)
        self.pasted, self._pasted_count = TemporaryDirectory(prefix="edgeconv-pasted-"), 0
        self.export = ExportActions(self, model, service, self.tasks)
        self._notes: tuple[str, ...] = ()
        self._shown_picture: str | None = None
        self._settled_generation = 0
        self._pointed_at: tuple[int, int] | None = None
        self.build(self._does())
        self._listen()
        self._restore()

    @property
    def settled(self) -> bool:
        """Everything that the newest request asked for has arrived."""
        return self._settled_generation == self.model.generation

    def _does(self) -> dict[str, Callable[[], Any]]:
        """What each command does."""
        model, canvas, export = self.model, self.canvas, self.export
        return {
            "open": self.ask_open,
            "paste": self.paste,
            "next": lambda: self._follow(model.step(1)),
            "previous": lambda: self._follow(model.step(-1)),
            "reload": self.reload,
            "save": self.save,
            "export": export.ask_page,
            "quit": self.close,
            "undo": lambda: self._follow(model.timeline.undo()),
            "redo": lambda: self._follow(model.timeline.redo()),
            "reset": lambda: self.set_parameters(Parameters()),
            "load-kernel": self._ask_kernel,
            "copy-picture": export.copy_picture,
            "copy-command": lambda: export.copy_command(str(model.picture).startswith(self.pasted.name)),
            "swap": self.swap,
            "bar-left": lambda: canvas.move_bar(canvas.bar - BAR_STEP),
            "bar-right": lambda: canvas.move_bar(canvas.bar + BAR_STEP),
            "zoom-in": lambda: canvas.zoom_by(ZOOM_STEP),
            "zoom-out": lambda: canvas.zoom_by(1 / ZOOM_STEP),
            "fit": canvas.fit,
            "actual": lambda: canvas.zoom_to(1.0),
            "focus-picture": canvas.setFocus,
            "focus-controls": self.controls.filter.setFocus,
            "focus-figures": lambda: self.tabs.tabBar().setFocus(),
            "panel": lambda: self.show_panel(self.actions_by_name["panel"].isChecked()),
            "stop": self.stop,
            **{mode: partial(self.show_mode, mode) for mode in MODES},
        }

    def _listen(self) -> None:
        self.canvas.hovered.connect(self._show_values)
        self.canvas.moved.connect(self._show_zoom)
        self.controls.changed.connect(lambda changes: self._change(partial(self.model.edit, **changes)))
        self.controls.replaced.connect(self.set_parameters)
        self.controls.complained.connect(self.complain)
        self.history.chosen.connect(lambda run: self._follow(self.model.restore(run)))
        self.busy.stop.clicked.connect(self.stop)
        for side, box in (("left", self.left_box), ("right", self.right_box)):
            box.activated.connect(
                lambda index, side=side, box=box: self._follow(self.model.show(**{side: box.itemData(index)}))
            )
        self.tasks.complained.connect(self.complain)
        self.tasks.changed.connect(lambda: self.task_label.setText("working …" if self.tasks.busy else ""))
        service = self.service
        self._hear(service.picture_read, self._show_read)
        self._hear(service.layer_ready, self._show_layer)
        self._hear(service.measuring, lambda: self.busy.begin(MEASURING))
        self._hear(service.scale_known, self._show_scale)
        self._hear(service.difference_ready, self._show_difference)
        self._hear(service.measured, self._show_measured)
        self._hear(service.failed, self._show_failure)
        self._hear(service.done, self._show_done)

    def _hear(self, signal: SignalInstance, show: Callable[..., None]) -> None:
        """Show an answer of the service, unless a newer request has been made meanwhile."""

        def hear(generation: int, *answer: Any) -> None:
            if generation == self.model.generation:
                show(*answer)

        signal.connect(hear)

    # --- from the user to the model -----------------------------------------------------------------------------

    def open_pictures(self, paths: Sequence[str]) -> None:
        """Add pictures and go to the first."""
        self._follow(self.model.open(paths))

    def ask_open(self) -> None:
        """By the system's dialog."""
        folder = os.path.dirname(self.model.picture or "")
        paths, _ = QFileDialog.getOpenFileNames(self, "Open pictures", folder, OPEN_FILTER)
        if paths:
            self.open_pictures(paths)

    def paste(self) -> None:
        """Open what the clipboard holds: files, a path, or a picture."""
        if not self._take(QGuiApplication.clipboard().mimeData()):
            self.complain("The clipboard has no picture: copy a picture or its file first.")

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Files and pictures may be dropped."""
        if event.mimeData().hasUrls() or event.mimeData().hasImage():
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Open what is dropped."""
        if self._take(event.mimeData()):
            event.acceptProposedAction()
        else:
            self.complain("What was dropped is neither a picture nor a local file: save it first, and drop the file.")

    def _take(self, data: QMimeData) -> bool:
        """Open files or a picture from the clipboard or a drop; False where there is neither."""
        paths = [url.toLocalFile() for url in data.urls() if url.isLocalFile()]
        text, image = data.text().strip(), data.imageData()
        if paths or os.path.isfile(text):
            self.open_pictures(paths or [text])
        elif isinstance(image, QImage) and not image.isNull():
            self._pasted_count += 1
            path = os.path.join(self.pasted.name, f"pasted-{self._pasted_count}.png")

            def store() -> After:
                if not image.save(path):
                    raise EdgeconvError("The pasted picture cannot be stored: is the disk full?")
                return lambda: self.open_pictures([path])

            self.tasks.start(store)
        else:
            return False
        return True

    def reload(self) -> None:
        """Read every picture anew."""
        for path in self.model.pictures:
            self.service.forget(path)
        self.refresh()

    def stop(self) -> None:
        """Give up what is loaded, computed or measured; what is displayed stays, but for a message."""
        doing = self.busy.what
        self.message.hide()
        if not doing:
            return
        self.model.generation += 1  # no answer to the newest request is accepted
        self.service.cancel(self.model.generation)
        self._show_done()
        self.canvas.show_parts(note=STOPPED)
        if doing != MEASURING and self.canvas.frame is not None:
            self.complain(STOPPED)

    def swap(self) -> None:
        """Exchange the sides."""
        self._follow(self.model.show(left=self.model.right, right=self.model.left))

    def show_mode(self, name: str) -> None:
        """Switch to another view."""
        self.model.show(mode=name)
        if name == "difference":
            self.tabs.setCurrentWidget(self.difference)
        self.canvas.show_parts(mode=self.model.mode)
        self.refresh()

    def set_parameters(self, parameters: Parameters) -> None:
        """Apply other parameters, or report why not."""
        key = "kernel" if parameters.kernel is not None else None
        self._change(partial(self.model.set_parameters, parameters, key))

    def _change(self, change: Callable[[], bool]) -> None:
        try:
            self._follow(change())
        except EdgeconvError as error:
            self.complain(str(error))

    def _ask_kernel(self) -> None:
        path, _ = QFileDialog.getOpenFileName(self, "Load kernel", "", KERNEL_FILTER)
        if path:
            self.load_kernel(path)

    def load_kernel(self, path: str) -> None:
        """Apply the kernel of a file; a file that is loaded already may have changed."""
        parameters = self.model.parameters.with_filter(kernel_file=path)
        self._change(lambda: self.model.set_parameters(parameters) or True)

    def save(self) -> None:
        """Ask for a name, and write what is displayed: a kernel file is read again for both."""
        if self.model.parameters.kernel_file is not None:
            self.refresh()
        self.export.ask_save()

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
            self.canvas.start_afresh()
        if request is None:
            self.picture_label.setText("")
            self._show_figures(None)
            self._show_done()
            self.service.cancel(self.model.generation)
            return
        self._show_doing(f"loading {os.path.basename(request.picture)} …", self.busy.begin)  # another second
        self.service.submit(request)

    def _show_doing(self, what: str, show: Callable[[str], None]) -> None:
        """In the status bar, and in the middle of an area that shows no picture yet."""
        show(what)
        self.canvas.show_parts(note=what[0].upper() + what[1:])

    def _show_state(self) -> None:
        model, timeline = self.model, self.model.timeline
        self.controls.show_parameters(model.parameters)
        self.actions_by_name[model.mode].setChecked(True)
        self.allow(
            has_picture=model.picture is not None,
            undo=bool(timeline.past),
            redo=bool(timeline.future),
            **{name: len(model.pictures) > 1 for name in ("next", "previous")},
            **{name: model.mode == "split" for name in ("bar-left", "bar-right")},
        )
        self.left_part.setVisible(model.mode != MODES[0])
        names = labels(model.sources())
        for box, chosen in ((self.left_box, model.left), (self.right_box, model.right)):
            _fill(box, names, chosen)
        current = ViewSource("file", model.picture or "")
        name = labels((current, *model.sources()))[current].replace("[*]", "[*][*]")  # once, it is Qt's mark of changes
        self.setWindowTitle(f"{name} – edgeconv" if model.picture else "edgeconv")

    def _show_read(self, notes: tuple[str, ...]) -> None:
        self._notes = notes
        request, method = self.model.request(), self.model.parameters.method
        assert request is not None
        by = "" if method == AUTO else f" by {method}"
        named = [side.label + by * (side.kind == "output") for side in request.shown if side.needs_filter]
        self._show_doing(f"computing {' and '.join(dict.fromkeys(named)) or 'the view'} …", self.busy.go_on)

    def _show_layer(self, side: str, layer: Layer) -> None:
        self.canvas.show_parts(**{side: layer})
        self._show_values(self._pointed_at)
        if side == "right":
            if self.model.mode != "difference":
                self.busy.go_on("")
                self._show_figures(None)
            notes = "".join(f" · {note}" for note in self._notes)
            self.picture_label.setToolTip(tip(self.model.picture or ""))
            self.picture_label.setText(f"{layer.label} · {layout_text(layer.pixels)}{notes}")

    def _show_scale(self, scale: ThresholdScale, hysteresis: tuple[float, float] | None) -> None:
        if hysteresis is None:
            self.controls.threshold.show_scale(scale)
        else:
            self.controls.show_hysteresis(scale, *hysteresis)

    def _show_difference(self, heat: Layer, found: DiffRecord) -> None:
        self.canvas.show_parts(heat=heat)
        self._show_figures(found)

    def _show_figures(self, found: DiffRecord | None) -> None:
        """The figures of `edgeconv diff`; for None, how to get them."""
        if found is None:
            self.difference.show_rows([], line="Press 4 to compare the two sides.")
        else:
            names = zip(("reference", "other"), found.labels, strict=True)
            self.difference.show_rows([*names, *rows(found, 0)])

    def _show_measured(self, picture: str, parameters: Parameters, record: RunFigures) -> None:
        run = self.model.add_run(picture, parameters, record)
        self.speed.show_rows(speed_rows(record), speed_head(record), f"{run.method_label} · {record.method.why}")
        self.history.show_runs(self.model.runs)

    def _show_failure(self, message: str, unreadable: str | None) -> None:
        if unreadable is not None:
            self.model.forget(unreadable)
            self.service.forget(unreadable)
            self.refresh()  # back to what can be shown; the message comes after, so that it stays
        elif self.model.mode == "difference":
            self.canvas.show_parts(heat=None)
            self._show_figures(None)
        self.complain(message)

    def _show_done(self) -> None:
        self.busy.go_on("")
        self.canvas.show_parts(note="")
        self._settled_generation = self.model.generation

    def _show_zoom(self) -> None:
        zoom = self.canvas.zoom
        self.zoom_label.setText("" if self.canvas.frame is None else f"{zoom:.0%}" if zoom < 10 else f"{zoom:.4g}×")

    def _show_values(self, place: tuple[int, int] | None) -> None:
        self._pointed_at = place
        canvas, frame = self.canvas, self.canvas.frame
        words = []
        if place is not None and frame is not None and place[0] < frame.width and place[1] < frame.height:
            x, y = place
            words.append(f"x {x}  y {y}")
            for layer in (None if canvas.mode == MODES[0] else canvas.left, canvas.right):
                if layer is not None:
                    height, width = layer.pixels.shape[:2]
                    values = layer.pixels[y * height // frame.height, x * width // frame.width].tolist()
                    words.append(f"{layer.label} {' '.join(number(value) for value in values)}")
        self.values_label.setText("    ".join(words))

    # --- the beginning and the end ------------------------------------------------------------------------------

    def _restore(self) -> None:
        """What the last session stored; defaults where it is not there or makes no sense."""
        state = stored_state(self.settings)
        for name, restore in (
            (GEOMETRY, self.restoreGeometry),
            *((name, getattr(self, name).restoreState) for name in SPLITTERS),
        ):
            value = self.settings.value(name)
            if isinstance(value, QByteArray):
                restore(value)
        self.show_panel(state.get("panel") is not False)
        self._show_figures(None)
        self.speed.show_rows([], line="Open a picture to measure.")
        self.canvas.setFocus()
        self.show_mode(state["mode"] if state.get("mode") in MODES else MODES[0])

    def closeEvent(self, event: QCloseEvent) -> None:
        """Store the settings and cancel all computations, but finish what is being written."""
        state = {
            "mode": self.model.mode,
            "parameters": vars(self.model.parameters),
            "panel": self.side.isVisibleTo(self),
        }
        self.settings.setValue(STATE, json.dumps(state))
        self.settings.setValue(GEOMETRY, self.saveGeometry())
        for name in SPLITTERS:
            self.settings.setValue(name, getattr(self, name).saveState())
        self.settings.sync()
        self.model.generation += 1
        self.service.cancel(self.model.generation)
        self.hide()
        self.tasks.join()
        self.pasted.cleanup()
        event.accept()
        QApplication.quit()


def stored_settings() -> QSettings:
    """The system's usual place for settings, or the file that `PLACE_VARIABLE` names."""
    place = os.environ.get(PLACE_VARIABLE)
    return QSettings(place, QSettings.Format.IniFormat) if place else QSettings("edgeconv", "edgeconv view")


def stored_state(settings: QSettings) -> dict[str, Any]:
    """The record of the last session; empty where there is none that can be read."""
    try:
        state = json.loads(str(settings.value(STATE)))
    except ValueError:
        return {}
    return state if isinstance(state, dict) else {}


def _fill(box: QComboBox, names: dict[ViewSource, str], chosen: ViewSource) -> None:
    """Show what a side may be, and what it is."""
    sources = list(names)
    if [box.itemData(index) for index in range(box.count())] != sources:
        box.clear()
        for source, label in names.items():
            box.addItem(label, source)
            if source.kind == "file":
                box.setItemData(box.count() - 1, tip(source.name), Qt.ItemDataRole.ToolTipRole)
    box.setCurrentIndex(sources.index(chosen) if chosen in sources else 0)
