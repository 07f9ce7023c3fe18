"""Windows for tests, the wait until one has all that it asked for, and what is drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PySide6.QtGui import QImage
from pytestqt.qtbot import QtBot

from edgeconv.view.compute import Workshop
from edgeconv.view.qt.app import open_window
from edgeconv.view.qt.canvas import Canvas
from edgeconv.view.qt.window import ViewWindow

PATIENCE_MILLISECONDS = 30_000
"""Far more than anything takes, for machines that are busy."""
MOST_PAINTINGS = 1000


def opened(qtbot: QtBot, *pictures: Path, size: tuple[int, int] = (1200, 800), **parameters: object) -> ViewWindow:
    """A window that shows the pictures on the CPU, settled."""
    window = open_window([str(path) for path in pictures], {"device": "cpu"} | parameters, Workshop())
    qtbot.addWidget(window)
    window.resize(*size)
    qtbot.waitExposed(window)
    settle(qtbot, window)
    return window


def settle(qtbot: QtBot, window: ViewWindow) -> None:
    """Wait until every answer has come and every task is over."""

    def at_rest() -> bool:
        return (window.settled or window.model.picture is None) and not window.tasks.busy

    qtbot.waitUntil(at_rest, timeout=PATIENCE_MILLISECONDS)


def drawn(canvas: Canvas) -> np.ndarray:
    """The canvas as it is drawn once every tile is made, height × width × 3."""
    for _ in range(MOST_PAINTINGS):
        image = canvas.grab().toImage()
        if canvas.complete:
            return pixels_of(image)
    raise AssertionError("the picture is never complete")


def pixels_of(image: QImage) -> np.ndarray:
    """A QImage as height × width × 3, 8-bit RGB."""
    image = image.convertToFormat(QImage.Format.Format_RGB888)
    rows = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.bytesPerLine())
    return rows[:, : 3 * image.width()].reshape(image.height(), image.width(), 3).copy()
