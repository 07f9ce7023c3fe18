"""Windows for tests, the wait until one has all that it asked for, and what is drawn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from meet import TurnedClock
from problems import random_image
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from edgeconv.view.qt.app import open_window
from edgeconv.view.qt.layer import nearest
from edgeconv.view.qt.window import ViewWindow
from edgeconv.view.render import RenderService

PATIENCE_MILLISECONDS = 60_000
"""Far more than anything takes, for machines that are busy."""
PIXELS = random_image(90, 120, np.uint8)
"""The picture of most tests."""


def opened(
    qtbot: QtBot,
    *pictures: Path,
    size: tuple[int, int] = (1200, 800),
    clock: Callable[[], float] | None = None,
    **parameters: object,
) -> ViewWindow:
    """A window that shows the pictures on the CPU, settled; its clock stands still if none is given."""
    service = RenderService(clock=clock or TurnedClock())
    window = open_window([str(path) for path in pictures], {"device": "cpu"} | parameters, service)
    qtbot.addWidget(window)
    with qtbot.waitExposed(window, timeout=PATIENCE_MILLISECONDS):
        window.resize(*size)
    settle(qtbot, window)
    return window


def settle(qtbot: QtBot, window: ViewWindow) -> None:
    """Wait until every answer has come and every task is over."""
    qtbot.waitUntil(lambda: window.settled and not window.tasks.busy, timeout=PATIENCE_MILLISECONDS)


def trigger(qtbot: QtBot, window: ViewWindow, name: str) -> None:
    """Give a command, and wait until all that it asks for has come."""
    action = window.actions_by_name[name]
    assert action.isEnabled(), name
    action.trigger()
    settle(qtbot, window)


def finish(window: ViewWindow) -> None:
    """Wait until every thread that serves the window is over, and what it gave has arrived."""
    assert window.service.pool.waitForDone(PATIENCE_MILLISECONDS)
    QApplication.processEvents()


def drawn(widget: QWidget) -> np.ndarray:
    """A widget as it is drawn, height × width × 3."""
    return pixels_of(widget.grab().toImage())


def shown(window: ViewWindow) -> np.ndarray:
    """The right side's pixels as the screen has them at 1:1."""
    window.canvas.zoom_to(1.0)
    x, y = (nearest(place) for place in window.canvas.to_screen(0, 0).toTuple())
    frame = window.canvas.frame
    assert frame is not None
    return drawn(window.canvas)[y : y + frame.height, x : x + frame.width]


def pixels_of(image: QImage) -> np.ndarray:
    """A QImage as height × width × 3, 8-bit RGB."""
    image = image.convertToFormat(QImage.Format.Format_RGB888)
    rows = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.bytesPerLine())
    return rows[:, : 3 * image.width()].reshape(image.height(), image.width(), 3).copy()
