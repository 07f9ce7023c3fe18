"""The application around the window: starting it, and ending it by the window, by Ctrl-C or by a signal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from edgeconv.errors import EXIT_OK
from edgeconv.signals import Received
from edgeconv.view.parameters import from_record
from edgeconv.view.qt.window import ViewWindow, stored_settings, stored_state
from edgeconv.view.render import RenderService
from edgeconv.view.state import Model

SIGNAL_MILLISECONDS = 200
"""How often Python runs while nothing happens in the window, so that it handles signals."""
SWITCH_SECONDS = 0.0002
"""How long a worker's Python code may hold the interpreter while the window waits for it; usually 5 ms. Qt's calls let
go of the interpreter, so one change of a control may have to wait for it a hundred times."""


def application() -> QApplication:
    """The application, created if there is none yet."""
    existing = QApplication.instance()
    app = existing if isinstance(existing, QApplication) else QApplication(["edgeconv"])
    app.setApplicationDisplayName("")
    if app.style().objectName() != "fusion":
        app.setStyle("Fusion")  # the same on every desktop, in the system's palette
    app.setDesktopFileName("edgeconv")
    sys.setswitchinterval(SWITCH_SECONDS)
    return app


def open_window(images: Sequence[str], changes: dict[str, Any], service: RenderService) -> ViewWindow:
    """A window with pictures; `changes` are the given parameters, which override those of the last session.

    Raises UsageError for parameters without meaning.
    """
    application()
    settings = stored_settings()
    model = Model(from_record(stored_state(settings).get("parameters")).changed(changes), service.clock)
    model.open(images)
    window = ViewWindow(model, service, settings)
    window.show()
    return window


def run(images: Sequence[str], changes: dict[str, Any], service: RenderService, signals: Received) -> int:
    """Open a window and stay until it is closed, or a signal came; returns the exit code."""
    app = application()
    window = open_window(images, changes, service)
    wake = QTimer()
    wake.timeout.connect(lambda: None if signals.exit_code is None else window.close())
    wake.start(SIGNAL_MILLISECONDS)
    app.exec()
    return EXIT_OK if signals.exit_code is None else signals.exit_code
