"""Windows for tests, the wait until one has all that it asked for, and what is drawn."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from edgeconv.view.compute import Workshop
from edgeconv.view.qt.app import open_window
from edgeconv.view.qt.canvas import Canvas
from edgeconv.view.qt.window import ViewWindow

PATIENCE_MILLISECONDS = 60_000
"""Far more than anything takes, for machines that are busy."""
MOST_PAINTINGS = 1000


class TurnedClock:
    """Stands still until a test turns it."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def opened(
    qtbot: QtBot,
    *pictures: Path,
    size: tuple[int, int] = (1200, 800),
    clock: Callable[[], float] | None = None,
    **parameters: object,
) -> ViewWindow:
    """A window that shows the pictures on the CPU, settled; its clock stands still if none is given."""
    workshop = Workshop(clock=clock or TurnedClock())
    window = open_window([str(path) for path in pictures], {"device": "cpu"} | parameters, workshop)
    qtbot.addWidget(window)
    with qtbot.waitExposed(window, timeout=PATIENCE_MILLISECONDS):
        window.resize(*size)
    settle(qtbot, window)
    return window


def settle(qtbot: QtBot, window: ViewWindow) -> None:
    """Wait until every answer has come and every task is over."""

    def at_rest() -> bool:
        return (window.settled or window.model.picture is None) and not window.tasks.busy

    qtbot.waitUntil(at_rest, timeout=PATIENCE_MILLISECONDS)


def finish(qtbot: QtBot) -> None:
    """Wait until every thread that serves a window is over, and what it gave has arrived."""

    def over() -> bool:
        return not any(thread.name == "edgeconv-view" for thread in threading.enumerate())

    qtbot.waitUntil(over, timeout=PATIENCE_MILLISECONDS)
    QApplication.processEvents()


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
