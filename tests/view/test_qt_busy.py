"""What lasts: for how long, a button and a key that stop it, and a window that goes on meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from meet import TurnedClock
from problems import random_image
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot
from windows import PATIENCE_MILLISECONDS, drawn, finish, opened, settle, trigger

from edgeconv import convolve
from edgeconv.core import progress
from edgeconv.io.encoding import write_image
from edgeconv.methods import reference
from edgeconv.view.qt import busy
from edgeconv.view.qt.window import STOPPED, ViewWindow
from edgeconv.view.render import RenderService

PIXELS = random_image(640, 40, np.uint8)
BANDS = 10
"""Of the reference in that picture."""


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    write_image(PIXELS, tmp_path / "picture.png")
    return tmp_path / "picture.png"


class Gate:
    """Lets the reference go on by a band at a time, and counts them."""

    def __init__(self) -> None:
        self.begun = 0
        self._may = threading.Semaphore(0)
        self.open = threading.Event()
        self.open.set()

    def wait(self) -> None:
        self.begun += 1
        while not self.open.is_set() and not self._may.acquire(timeout=0.01):
            pass

    def let(self, bands: int) -> None:
        self._may.release(bands)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """The reference computes a band when it may, and tells of each."""
    made, values = Gate(), reference.values

    def slowly(*words: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            made.wait()
        return values(*words)

    monkeypatch.setattr(reference, "values", slowly)
    monkeypatch.setattr(busy, "LOOK_MILLISECONDS", 5)
    yield made
    made.open.set()


@pytest.fixture
def clock() -> TurnedClock:
    return TurnedClock()


@pytest.fixture
def window(qtbot: QtBot, picture: Path, gate: Gate, clock: TurnedClock) -> ViewWindow:
    return opened(qtbot, picture, clock=clock, method="opencv")


def begin_slowly(qtbot: QtBot, window: ViewWindow, gate: Gate) -> None:
    """Ask for the reference's output, and wait for its first band."""
    gate.begun = 0
    gate.open.clear()
    window.controls.changed.emit({"method": "reference"})
    qtbot.waitUntil(lambda: gate.begun == 1, timeout=PATIENCE_MILLISECONDS)


def wait_for_text(qtbot: QtBot, window: ViewWindow, text: str) -> None:
    qtbot.waitUntil(lambda: window.busy.isVisible() and window.busy.text.text() == text, timeout=PATIENCE_MILLISECONDS)


def test_a_slow_method_shows_for_how_long(qtbot: QtBot, window: ViewWindow, gate: Gate, clock: TurnedClock) -> None:
    assert not window.busy.isVisible()
    begin_slowly(qtbot, window, gate)
    begun = clock.now
    clock.now += 0.5
    wait_for_text(qtbot, window, "computing output by reference …")
    assert not window.busy.stop.isVisible()
    for seconds in (1, 61):
        clock.now += seconds
        wait_for_text(qtbot, window, f"computing output by reference … {int(clock.now - begun)} s")
    gate.open.set()
    settle(qtbot, window)
    assert not window.busy.isVisible()


@pytest.mark.parametrize("way", ["button", "key"])
def test_a_slow_method_is_stopped(qtbot: QtBot, window: ViewWindow, gate: Gate, clock: TurnedClock, way: str) -> None:
    before = drawn(window.canvas)
    begin_slowly(qtbot, window, gate)
    clock.now += 1
    qtbot.waitUntil(window.busy.stop.isVisible, timeout=PATIENCE_MILLISECONDS)
    if way == "button":
        qtbot.mouseClick(window.busy.stop, Qt.MouseButton.LeftButton)
    else:
        window.canvas.setFocus()
        qtbot.keyClick(window.canvas, Qt.Key.Key_Escape)
    assert not window.busy.isVisible()
    assert window.message.text() == STOPPED
    assert window.settled
    gate.let(BANDS)
    finish(window)
    assert gate.begun < BANDS, "nobody wants it any more"
    window.message.hide()  # which lies over the picture
    assert np.array_equal(drawn(window.canvas), before), "what was there stays"
    gate.open.set()
    trigger(qtbot, window, "reload")
    assert window.canvas.right is not None
    assert np.array_equal(window.canvas.right.pixels, convolve(PIXELS, method="reference"))
    assert not window.message.isVisible()


def test_the_timed_run_of_a_slow_method_says_so_and_can_be_stopped(
    qtbot: QtBot, window: ViewWindow, gate: Gate, clock: TurnedClock
) -> None:
    runs = len(window.model.runs)
    begin_slowly(qtbot, window, gate)
    gate.let(BANDS)
    qtbot.waitUntil(lambda: window.busy.what == "measuring …", timeout=PATIENCE_MILLISECONDS)
    assert window.canvas.right is not None
    assert np.array_equal(window.canvas.right.pixels, convolve(PIXELS, method="reference"))
    clock.now += 1
    qtbot.waitUntil(window.busy.isVisible, timeout=PATIENCE_MILLISECONDS)
    qtbot.mouseClick(window.busy.stop, Qt.MouseButton.LeftButton)
    assert window.settled
    assert not window.message.isVisible()
    gate.open.set()
    finish(window)
    assert len(window.model.runs) == runs


def test_what_comes_after_a_stop_is_not_shown(
    qtbot: QtBot, window: ViewWindow, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "report", lambda: None)  # a method that cannot be stopped within
    begin_slowly(qtbot, window, gate)
    window.stop()
    gate.open.set()
    finish(window)
    assert window.canvas.right is not None
    assert window.canvas.right.label.endswith("by opencv on CPU"), "it is too late"


def test_the_area_says_what_becomes_of_the_first_picture(
    qtbot: QtBot, picture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = opened(qtbot)
    gate, decode = threading.Event(), RenderService.decode

    def slowly(service: RenderService, path: str) -> Any:
        gate.wait(PATIENCE_MILLISECONDS / 1000)
        return decode(service, path)

    monkeypatch.setattr(RenderService, "decode", slowly)
    seen = [drawn(window.canvas)]
    window.open_pictures([str(picture)])
    assert window.canvas.note == "Loading picture.png …"
    seen.append(drawn(window.canvas))
    window.stop()
    assert window.canvas.note == STOPPED
    seen.append(drawn(window.canvas))
    assert len({each.tobytes() for each in seen}) == 3
    gate.set()
    trigger(qtbot, window, "reload")
    assert window.canvas.note == ""
    assert window.canvas.right is not None


def test_a_task_is_told(qtbot: QtBot, window: ViewWindow) -> None:
    gate = threading.Event()
    for _ in range(2):
        window.tasks.start(lambda: (gate.wait(PATIENCE_MILLISECONDS / 1000), lambda: None)[1])
    assert window.task_label.text() == "working …"
    gate.set()
    settle(qtbot, window)
    assert window.task_label.text() == ""
