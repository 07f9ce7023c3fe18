"""Opening pictures: files by name, and pictures that are pasted or dropped, which become temporary files."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QMimeData
from PySide6.QtGui import QImage

from edgeconv.errors import EdgeconvError
from edgeconv.view.render import After, Tasks
from edgeconv.view.state import Model


class Opening:
    """Adds pictures to the model; `went` is called with whether another picture is displayed now, `listed` where a
    picture was only added to the list."""

    def __init__(self, model: Model, tasks: Tasks, went: Callable[[bool], None], listed: Callable[[], None]) -> None:
        self._model, self._tasks, self._went, self._listed = model, tasks, went, listed
        self._pasted: Path | None = None
        """The folder of pasted pictures, once there is one."""
        self._count = 0
        """How often something was opened: numbers pasted pictures, and tells whether another was opened after one."""

    def open(self, paths: Sequence[str]) -> None:
        """Add pictures and go to the first."""
        self._count += 1
        self._went(self._model.open(paths))

    def take(self, data: QMimeData) -> bool:
        """Open files or a picture from the clipboard or a drop; False where there is neither."""
        paths = [url.toLocalFile() for url in data.urls() if url.isLocalFile()]
        if not paths and not data.hasImage() and os.path.isfile(data.text().strip()):
            paths = [data.text().strip()]
        if paths:
            self.open(paths)
            return True
        image = data.imageData() if data.hasImage() else None
        if not isinstance(image, QImage) or image.isNull():
            return False
        self._pasted = self._pasted or Path(tempfile.mkdtemp(prefix="edgeconv-pasted-"))
        self._count += 1
        number = self._count
        path = str(self._pasted / f"pasted-{number}.png")

        def write() -> After:
            if not image.save(path):
                raise EdgeconvError("The pasted picture cannot be stored: is the disk full?")
            return lambda: self._open_pasted(path, number)

        self._tasks.start(write)
        return True

    def _open_pasted(self, path: str, number: int) -> None:
        """Go to a pasted picture, unless something was opened after it: then it is only listed."""
        if number == self._count:
            self.open([path])
        else:
            self._model.add([path])
            self._listed()

    def is_pasted(self, path: str | None) -> bool:
        """Whether a picture is a temporary file of this window."""
        return path is not None and self._pasted is not None and Path(path).parent == self._pasted

    def remove_pasted(self) -> None:
        """Remove the temporary files of pasted pictures."""
        if self._pasted is not None:
            shutil.rmtree(self._pasted, ignore_errors=True)
