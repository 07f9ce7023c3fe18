"""Saving, exporting and copying: pictures with their reports, pages, and the clipboard.

Files are written by the code of the commands (`run`, `diff`), so they are the commands' files. Where the
command refuses to replace a file, the user is asked; an input never is replaced. What only some of this needs is
imported when it is needed: the window opens sooner.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

from edgeconv.errors import ImageWriteError
from edgeconv.io.files import is_same_file
from edgeconv.io.formats import SUFFIXES, WRITTEN
from edgeconv.run.job import Job
from edgeconv.run.picture import run_picture
from edgeconv.view.qt.frame import Frame
from edgeconv.view.qt.plain_text import tip
from edgeconv.view.render import After, RenderService, Tasks
from edgeconv.view.state import Model

OPEN_FILTER, PICTURE_FILTER = (
    f"Pictures ({' '.join('*' + suffix for suffix in suffixes)});;All files (*)" for suffixes in (SUFFIXES, WRITTEN)
)
PAGE_FILTER = "Pages (*.html)"


class ExportActions:
    """`ask_...` opens a dialog; the others write to a path on a separate thread."""

    def __init__(self, frame: Frame, model: Model, service: RenderService, tasks: Tasks) -> None:
        self._frame, self._model, self._service, self._tasks = frame, model, service, tasks

    def ask_save(self) -> None:
        """Where the picture is to go; the name that is offered is the command's."""
        source, parameters = self._model.picture or "", self._model.parameters

        def work() -> After:
            name = self._service.output_name(source, parameters)
            return lambda: self._ask("Save picture and report", name, PICTURE_FILTER, self.save)

        self._tasks.start(work)

    def save(self, path: str) -> None:
        """What `edgeconv run -o PATH` writes: the picture, and its report beside it."""
        source, parameters = self._model.picture or "", self._model.parameters
        stem = os.path.splitext(path)[0]

        def write(overwrite: bool) -> str:
            job = Job(
                source=source,
                request=parameters.request(),
                method=parameters.method,
                device=parameters.device,
                output=path,
                overwrite=overwrite,
                options=parameters.options(),
                rules=self._service.rules,
            )
            return f"wrote {run_picture(job).output.file} and {os.path.basename(stem)}.json beside it"

        self._write(write, path, f"{stem}.json")

    def ask_page(self) -> None:
        """Where the page of the two sides is to go."""
        stem = os.path.splitext(os.path.basename(self._model.picture or ""))[0]
        self._ask("Export page of the two sides", f"{stem}_diff.html", PAGE_FILTER, self.page_of_sides)

    def page_of_sides(self, path: str) -> None:
        """The page of `edgeconv diff LEFT RIGHT --html PATH`."""
        request = self._model.request()
        assert request is not None

        def write(overwrite: bool) -> str:
            from edgeconv.difference import results

            left, right = (self._service.comparison_input(request, side) for side in (request.left, request.right))
            return results.run(left, [right], results.Wanted(html=path, overwrite=overwrite)).ending

        self._write(write, path)

    def _write(self, write: Callable[[bool], str], *outputs: str, overwrite: bool = False) -> None:
        """Let a command write; `write` takes whether it may replace files, and returns what to say of it."""
        inputs = [*self._model.pictures, *filter(None, [self._model.parameters.kernel_file])]

        def work() -> After:
            for path in inputs:
                for output in outputs:
                    if is_same_file(path, output):
                        raise ImageWriteError(f"{output}: is an input that is open here: choose another name.")
            there = " and ".join(f"'{output}'" for output in outputs if os.path.lexists(output))
            try:
                said = write(overwrite)
            except ImageWriteError:
                if overwrite or not there:
                    raise
                return lambda: ask(there)
            return lambda: self._frame.notice(said)

        def ask(there: str) -> None:
            if may_replace(self._frame, f"Replace {there}?"):
                self._write(write, *outputs, overwrite=True)

        self._tasks.start(work)

    def copy_picture(self) -> None:
        """A side, or the map of differences, as it is shown, to the clipboard."""
        layer = self._frame.canvas.answer
        if layer is None:
            return

        def work() -> After:
            pixels = np.ascontiguousarray(layer.levels[0])
            height, width = pixels.shape[:2]
            image = QImage(pixels.data, width, height, 3 * width, QImage.Format.Format_RGB888).copy()
            return lambda: put(image)

        def put(image: QImage) -> None:
            QGuiApplication.clipboard().setImage(image)
            self._frame.notice("copied the picture")

        self._tasks.start(work)

    def copy_command(self, is_pasted: bool) -> None:
        """The command line that computes what `output` shows."""
        command = self._model.parameters.command(self._model.picture or "", self._service.rules)
        if not command.isprintable():
            self._frame.complain("A file name in this command cannot be written as text: rename the file.")
            return
        QGuiApplication.clipboard().setText(command)
        hint = " (a pasted picture is deleted when this window closes: save it as a file)" if is_pasted else ""
        self._frame.notice(f"copied: {command}{hint}")

    def _ask(self, title: str, name: str, filters: str, write: Callable[[str], None]) -> None:
        folder = os.path.dirname(self._model.picture or "")
        path = ask_name(self._frame, title, os.path.join(folder, name), filters)
        if path:
            write(path)


def ask_name(parent: QWidget, title: str, offered: str, filters: str) -> str:
    """A name for a file by the system's dialog; empty where there is none.

    A name without a suffix gets that of the one that is `offered`. Whoever writes asks before a file is replaced.
    """
    unasked = QFileDialog.Option.DontConfirmOverwrite
    name, _ = QFileDialog.getSaveFileName(parent, title, offered, filters, options=unasked)
    return name + os.path.splitext(offered)[1] if name and not os.path.splitext(name)[1] else name


def may_replace(parent: QWidget, question: str) -> bool:
    """Whether the user confirms."""
    no = QMessageBox.StandardButton.No
    return QMessageBox.question(parent, "edgeconv", tip(question), defaultButton=no) != no
