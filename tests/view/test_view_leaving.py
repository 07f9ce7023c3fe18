"""The end of the process: with the right code, at once, and with what is left to do done, whatever is still at work."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from meet import run_program
from qt_here import qt_reason

LEAVE = """
import atexit, sys, threading
from edgeconv.view.render import RenderService, leave
began = threading.Event()
def work():
    began.set()
    if sys.argv[1] == "at work":
        threading.Event().wait()
pool = RenderService().pool
pool.start(work)
began.wait()
atexit.register(lambda: sys.stdout.write("cleaned up"))
leave(7)
"""

CLOSED_AT_WORK = """
import threading
from PySide6.QtCore import QTimer
from edgeconv.view.qt import app
from edgeconv.view.render import RenderService
from edgeconv.cli import main
at_work = threading.Event()
def serve(*arguments):
    at_work.set()
    threading.Event().wait()  # a step that cannot be interrupted
def opened(*arguments):
    window = open_window(*arguments)
    at_work.wait()
    QTimer.singleShot(0, window, window.close)
    return window
open_window, app.open_window, RenderService.serve = app.open_window, opened, serve
main()
"""

SIGNAL_WHILE_OPENING = """
import os, signal
from edgeconv.view.qt.canvas import Canvas
from edgeconv.cli import main
def sizeHint(self):  # called by Qt, which loses what is raised here
    os.kill(os.getpid(), signal.Signals[os.environ["SIGNAL"]])
    return size(self)
size, Canvas.sizeHint = Canvas.sizeHint, sizeHint
main()
"""


needs_qt = pytest.mark.skipif(qt_reason() is not None, reason=str(qt_reason()))
OFF_SCREEN = {"QT_QPA_PLATFORM": "offscreen", "QT_LOGGING_RULES": "default.warning=false"}


@needs_qt
@pytest.mark.parametrize("thread", ["over", "at work"])
def test_leaving_cleans_up_and_waits_for_nobody(thread: str) -> None:
    done = run_program(LEAVE, thread)
    assert (done.returncode, done.stdout, done.stderr) == (7, "cleaned up", "")


@needs_qt
def test_a_window_that_is_closed_at_work_ends_the_process(picture: Path) -> None:
    done = run_program(CLOSED_AT_WORK, "view", str(picture), **OFF_SCREEN)
    assert (done.returncode, done.stderr) == (0, "")


@needs_qt
@pytest.mark.parametrize("name", ["SIGINT", pytest.param("SIGTERM", marks=pytest.mark.slow)])
def test_a_signal_while_the_window_opens_is_heard(picture: Path, name: str) -> None:
    done = run_program(SIGNAL_WHILE_OPENING, "view", str(picture), SIGNAL=name, **OFF_SCREEN)
    assert (done.returncode, done.stderr) == (128 + signal.Signals[name], "")
