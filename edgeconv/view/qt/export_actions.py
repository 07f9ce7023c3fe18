"""Saving, exporting and copying: pictures with their reports, pages, and the clipboard.

Files are written by the code of the commands (`run`, `diff`, `compare`), so they are the commands' files.
Before something is replaced the user is asked, by the system's dialog or, about the report beside a picture, here; an
input never is. What only some of this needs is imported when it is needed: the window opens sooner.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

from edgeconv.errors import ImageWriteError
from edgeconv.io.files import is_same_file, read_own_json
from edgeconv.io.formats import SUFFIXES, WRITTEN
from edgeconv.run import whole
from edgeconv.run.job import Job
from edgeconv.view.parameters import is_text
from edgeconv.view.pyramid import Pyramid
from edgeconv.view.qt.frame import Frame
from edgeconv.view.render import After, RenderService, Tasks
from edgeconv.view.state import Model, ViewRequest

OPEN_FILTER, PICTURE_FILTER = (
    f"Pictures ({' '.join('*' + suffix for suffix in suffixes)});;All files (*)" for suffixes in (SUFFIXES, WRITTEN)
)
PAGE_FILTER = "Pages (*.html)"


class ExportActions:
    """`ask_...` opens a dialog; the others write to a path on a separate thread, replacing an existing file."""

    def __init__(self, frame: Frame, model: Model, service: RenderService, tasks: Tasks) -> None:
        self._frame, self._model, self._service, self._tasks = frame, model, service, tasks

    def ask_save(self) -> None:
        """Where the picture is to go; the name that is offered is the command's."""
        source, parameters = self._model.picture, self._model.parameters
        if source is None:
            return

        def work() -> After:
            name = self._service.output_name(source, parameters)
            return lambda: self._ask("Save picture and report", name, PICTURE_FILTER, self._save_if_report_may)

        self._tasks.start(work)

    def _save_if_report_may(self, path: str) -> None:
        """The dialog has asked about the picture; a report that is not that picture's own is asked about here."""
        beside = _report_of(path)

        def ask() -> None:
            if replace_too(self._frame, f"The report goes to '{beside}', and that exists: replace it too?"):
                self.save(path)

        def work() -> After:
            own = not os.path.lexists(beside) or _tells_of(beside, path)
            return (lambda: self.save(path)) if own else ask

        self._tasks.start(work)

    def save(self, path: str) -> None:
        """What `edgeconv run -o PATH` writes: the picture, and its report beside it."""
        source, parameters = self._model.picture, self._model.parameters
        if source is None:
            return
        inputs = self._model.inputs()

        def work() -> After:
            protect(inputs, path, _report_of(path))
            record = whole.run(
                Job(
                    source=source,
                    request=parameters.request(),
                    method=parameters.method,
                    device=parameters.device,
                    output=path,
                    overwrite=True,
                    options=parameters.options(),
                    rules=self._service.rules,
                )
            )
            picture = record.output.file
            return lambda: self._frame.notice(f"wrote {picture} and {_stem(picture)}.json beside it")

        self._tasks.start(work, writes=True)

    def ask_page(self, title: str, ending: str, write: Callable[[str], None]) -> None:
        """Where a page is to go; `ending` closes the name that is offered."""
        if self._model.picture is not None:
            self._ask(title, f"{_stem(self._model.picture)}_{ending}.html", PAGE_FILTER, write)

    def page_of_sides(self, path: str) -> None:
        """The page of `edgeconv diff LEFT RIGHT --html PATH`."""
        request = self._model.request()
        if request is None:
            return
        inputs = self._model.inputs()

        def work(request: ViewRequest = request) -> After:
            from edgeconv.difference import results as diff_job

            protect(inputs, path)
            left, right = self._service.comparison_inputs(request)
            done = diff_job.run(left, [right], diff_job.Wanted(html=path, overwrite=True))
            return lambda: self._frame.notice(diff_job.ending(done))

        self._tasks.start(work, writes=True)

    def page_of_methods(self, path: str) -> None:
        """The page of `edgeconv compare PICTURE --html PATH`."""
        source, parameters = self._model.picture, self._model.parameters
        if source is None:
            return
        inputs = self._model.inputs()

        def work() -> After:
            from edgeconv.difference import methods
            from edgeconv.difference import results as diff_job

            protect(inputs, path)
            wanted = diff_job.Wanted(html=path, overwrite=True)
            rules = self._service.rules
            request = replace(parameters.request(), threshold=None)  # of what methods compute, like the command
            done = methods.run(source, request, parameters.options(), wanted, rules=rules)
            return lambda: self._frame.notice(diff_job.ending(done))

        self._tasks.start(work, writes=True)

    def copy_picture(self, shown: Pyramid | None) -> None:
        """A side, or the map of differences, as it is shown, to the clipboard."""
        if shown is None:
            return

        def work() -> After:
            height, width = shown.height, shown.width
            pixels = np.ascontiguousarray(shown.part(slice(0, height), slice(0, width)))
            image = QImage(pixels.data, width, height, 3 * width, QImage.Format.Format_RGB888).copy()
            return lambda: self._to_clipboard(image)

        self._tasks.start(work)

    def copy_command(self, is_pasted: bool) -> None:
        """The command line that computes what `output` shows."""
        command = self._model.command(self._service.rules)
        if command is None:
            return
        if not is_text(command):
            self._frame.complain(
                "A file name in this command is not valid text, so it cannot be copied: rename the file."
            )
            return
        QGuiApplication.clipboard().setText(command)
        hint = " (a pasted picture is deleted when this window closes: save it as a file)" if is_pasted else ""
        self._frame.notice(f"copied: {command}{hint}")

    def _to_clipboard(self, image: QImage) -> None:
        QGuiApplication.clipboard().setImage(image)
        self._frame.notice("copied the picture")

    def _ask(self, title: str, name: str, filters: str, write: Callable[[str], None]) -> None:
        folder = os.path.dirname(self._model.picture or "")
        path = ask_name(self._frame, title, os.path.join(folder, name), filters)
        if path:
            write(path)


def ask_name(parent: QWidget, title: str, offered: str, filters: str) -> str:
    """A name for a file by the system's dialog, which asks before it gives one that exists; empty where there is none.

    A name without a suffix gets that of the one that is `offered`.
    """
    dialog = QFileDialog(parent, title, os.path.dirname(offered), filters)
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setDefaultSuffix(os.path.splitext(offered)[1])
    dialog.selectFile(offered)
    name = dialog.selectedFiles()[0] if dialog.exec() else ""
    dialog.deleteLater()
    return name


def replace_too(parent: QWidget, question: str) -> bool:
    """Whether the user confirms."""
    box = QMessageBox(QMessageBox.Icon.Question, "edgeconv", question, parent=parent)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setStandardButtons(QMessageBox.StandardButton.Yes | QMessageBox.StandardButton.No)
    box.setDefaultButton(QMessageBox.StandardButton.No)
    answer = box.exec()
    box.deleteLater()
    return answer == QMessageBox.StandardButton.Yes


def protect(inputs: Iterable[str], *outputs: str) -> None:
    """Raise ImageWriteError where an output would replace an input of the window."""
    for output in outputs:
        if any(is_same_file(path, output) for path in inputs):
            raise ImageWriteError(f"{output}: is an input that is open here: choose another name.")


def _report_of(path: str) -> str:
    """Where `edgeconv run` puts the report of a picture."""
    return os.path.splitext(path)[0] + ".json"


def _tells_of(report_path: str, path: str) -> bool:
    """Whether a report is that of the picture beside it, so that replacing one includes the other."""
    try:
        output = read_own_json(Path(report_path))["output"]
        return bool(output["file_sha256"] == hashlib.sha256(Path(path).read_bytes()).hexdigest())
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]
