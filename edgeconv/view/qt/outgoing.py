"""What leaves the window: saved pictures and reports, pages, records, and what goes to the clipboard.

Files are written by the code of the commands (`run`, `diff`, `compare`, `bench`), so they are the commands' files. The
system's dialog has asked before something is replaced; an input never is. What only some of this needs is imported when
it is needed: the window opens sooner.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QFileDialog

from edgeconv import job
from edgeconv.diff import maps
from edgeconv.files import write_bytes_atomically
from edgeconv.formats import SUFFIXES
from edgeconv.view.qt.frame import Frame
from edgeconv.view.qt.tasks import After, Tasks
from edgeconv.view.state import Model, Request
from edgeconv.view.work import Layer, Workshop

if TYPE_CHECKING:
    from edgeconv.bench.record import Record

PICTURE_FILTER = f"Pictures ({' '.join('*' + suffix for suffix in SUFFIXES)});;All files (*)"
PAGE_FILTER = "Pages (*.html)"
RECORD_FILTER = "Records (*.json)"


class Outgoing:
    """`ask_...` opens a dialog; the others write to a path, on a thread of their own."""

    def __init__(self, frame: Frame, model: Model, workshop: Workshop, tasks: Tasks) -> None:
        self._frame, self._model, self._workshop, self._tasks = frame, model, workshop, tasks

    def ask_save(self) -> None:
        """Where the picture is to go; the name that is offered is the command's."""
        source = self._model.picture
        if source is not None:
            parameters = self._model.parameters
            name = f"{_stem(source)}_{parameters.filter_label}_s{parameters.stride}.png"
            self._ask("Save picture and report", name, PICTURE_FILTER, self.save)

    def save(self, path: str) -> None:
        """What `edgeconv run -o PATH` writes: the picture, and its report beside it."""
        source, parameters = self._model.picture, self._model.parameters
        if source is None:
            return

        def work() -> After:
            record = job.run(
                job.Job(
                    source=source,
                    request=parameters.request(),
                    method=parameters.method,
                    device=parameters.device,
                    output=path,
                    overwrite=True,
                    options=parameters.options(),
                    max_pixels=self._workshop.max_pixels,
                )
            )
            picture = record["output"]["file"]
            return lambda: self._frame.notice(f"wrote {picture} and {_stem(picture)}.json beside it")

        self._tasks.start(work)

    def ask_page_of_sides(self) -> None:
        """Where the page of the two sides is to go."""
        if self._model.picture is not None:
            self._ask(
                "Export page of the two sides",
                f"{_stem(self._model.picture)}_diff.html",
                PAGE_FILTER,
                self.page_of_sides,
            )

    def page_of_sides(self, path: str) -> None:
        """The page of `edgeconv diff LEFT RIGHT --html PATH`."""
        request = self._model.request()
        if request is None:
            return

        def work(request: Request = request) -> After:
            from edgeconv.diff import job as diff_job

            left, right = self._workshop.comparison_inputs(request)
            wanted = diff_job.Wanted(html=path, overwrite=True)
            done = diff_job.run(left, [right], wanted, protect=[request.picture])
            return lambda: self._frame.notice(diff_job.ending(done))

        self._tasks.start(work)

    def ask_page_of_methods(self) -> None:
        """Where the page of every method is to go."""
        if self._model.picture is not None:
            self._ask(
                "Export page of every method",
                f"{_stem(self._model.picture)}_methods.html",
                PAGE_FILTER,
                self.page_of_methods,
            )

    def page_of_methods(self, path: str) -> None:
        """The page of `edgeconv compare PICTURE --html PATH`."""
        source, parameters = self._model.picture, self._model.parameters
        if source is None:
            return

        def work() -> After:
            from edgeconv.diff import job as diff_job
            from edgeconv.diff import methods

            wanted = diff_job.Wanted(html=path, overwrite=True)
            limit = self._workshop.max_pixels
            done = methods.run(source, parameters.request(), parameters.options(), wanted, max_pixels=limit)
            return lambda: self._frame.notice(diff_job.ending(done))

        self._tasks.start(work)

    def ask_record(self, record: Record) -> None:
        """Where the record of a bench is to go."""
        self._ask("Save record", "bench.json", RECORD_FILTER, lambda path: self.record(record, path))

    def record(self, record: Record, path: str) -> None:
        """As `edgeconv report` and `edgeconv bench compare` read it."""

        def work() -> After:
            from edgeconv.bench.record import to_json

            write_bytes_atomically(path, to_json(record))
            return lambda: self._frame.notice(f"wrote {path}")

        self._tasks.start(work)

    def copy_picture(self, layer: Layer | None) -> None:
        """A side, as it is shown, to the clipboard."""
        if layer is None:
            return

        def work() -> After:
            shown = np.ascontiguousarray(maps.view(layer.pixels, *maps.display_range(layer.pixels)))
            height, width = shown.shape[:2]
            image = QImage(shown.data, width, height, 3 * width, QImage.Format.Format_RGB888).copy()
            return lambda: self._to_clipboard(image)

        self._tasks.start(work)

    def copy_command(self, is_pasted: bool) -> None:
        """The command line that computes what `output` shows."""
        command = self._model.command()
        if command is not None:
            QGuiApplication.clipboard().setText(command)
            hint = " (a pasted picture lasts as long as this window: give it a file of its own)" if is_pasted else ""
            self._frame.notice(f"copied: {command}{hint}")

    def _to_clipboard(self, image: QImage) -> None:
        QGuiApplication.clipboard().setImage(image)
        self._frame.notice("copied the picture")

    def _ask(self, title: str, name: str, filters: str, write: Callable[[str], None]) -> None:
        folder = os.path.dirname(self._model.picture or "")
        path, _ = QFileDialog.getSaveFileName(self._frame, title, os.path.join(folder, name), filters)
        if path:
            write(path)


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]
