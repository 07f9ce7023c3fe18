"""What a drop or the clipboard holds: files by name, or a picture, which becomes a temporary file."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from PySide6.QtCore import QMimeData
from PySide6.QtGui import QImage

from edgeconv.errors import EdgeconvError


def paths_in(data: QMimeData) -> list[str]:
    """The files that are named, by links to them or by a text."""
    paths = [url.toLocalFile() for url in data.urls() if url.isLocalFile()]
    text = data.text().strip()
    return paths or ([text] if not data.hasImage() and os.path.isfile(text) else [])


def image_in(data: QMimeData) -> QImage | None:
    """The picture itself."""
    image = data.imageData() if data.hasImage() else None
    return image if isinstance(image, QImage) and not image.isNull() else None


class Pasted:
    """The files of pasted pictures, as long as the window is open."""

    def __init__(self) -> None:
        self._folder: TemporaryDirectory[str] | None = None
        self._count = 0

    def store(self, image: QImage) -> str:
        """Write a picture without loss; returns its path. Raises EdgeconvError."""
        self._folder = self._folder or TemporaryDirectory(prefix="edgeconv-pasted-")
        self._count += 1
        path = os.path.join(self._folder.name, f"pasted-{self._count}.png")
        if not image.save(path):
            raise EdgeconvError("The pasted picture cannot be stored: is the disk full?")
        return path

    def holds(self, path: str | None) -> bool:
        """Whether a picture is one of them."""
        return path is not None and self._folder is not None and Path(path).parent == Path(self._folder.name)

    def remove(self) -> None:
        """Remove them all."""
        if self._folder is not None:
            self._folder.cleanup()
