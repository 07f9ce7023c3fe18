"""What takes longer than a second: progress, and a button and a key that stop it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from problems import random_image
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot
from windows import PATIENCE_MILLISECONDS, drawn, opened, settle

from edgeconv import convolve
from edgeconv.core import progress
from edgeconv.io.image import Picture, write_image
from edgeconv.methods import reference
from edgeconv.view.compute import Workshop
from edgeconv.view.qt import busy
from edgeconv.view.qt.window import STOPPED, ViewWindow

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
        for _ in range(bands):
            self._may.release()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """The reference computes a band when it may; nothing is too young to be shown."""
    made, values = Gate(), reference.values

    def slowly(*words: Any) -> Any:
        if threading.current_thread().name == "edgeconv-view":
            made.wait()
        return values(*words)

    monkeypatch.setattr(reference, "values", slowly)
    monkeypatch.setattr(busy, "SHOWN_AFTER_MILLISECONDS", 20)
    monkeypatch.setattr(busy, "LOOK_MILLISECONDS", 5)
    monkeypatch.setattr("edgeconv.view.computations.TELL_SECONDS", 0.0)
    monkeypatch.setattr("edgeconv.view.computations.GRACE_SECONDS", 0.1)
    yield made
    made.open.set()


def begin_slowly(qtbot: QtBot, window: ViewWindow, gate: Gate) -> None:
    """Ask for the reference's output, and wait for its first band."""
    gate.begun = 0
    gate.open.clear()
    window._on_controls({"method": "reference"})
    qtbot.waitUntil(lambda: gate.begun == 1, timeout=PATIENCE_MILLISECONDS)


def test_a_slow_method_shows_how_far_it_is(qtbot: QtBot, picture: Path, gate: Gate) -> None:
    window = opened(qtbot, picture, method="opencv")
    assert not window.busy.isVisible()
    assert not window.actions_by_name["stop"].isEnabled()
    begin_slowly(qtbot, window, gate)
    for done in (3, 7):
        gate.let(done - gate.begun + 1)
        qtbot.waitUntil(lambda done=done: gate.begun == done + 1, timeout=PATIENCE_MILLISECONDS)
        qtbot.waitUntil(lambda done=done: window.busy.bar.value() == 100 * done // BANDS, timeout=PATIENCE_MILLISECONDS)
        assert window.busy.isVisible()
        assert window.busy.bar.maximum() == 100
        assert window.busy.seconds.text() == f"0 s, {100 * done // BANDS} %"
    text = "computing output by reference …"
    qtbot.waitUntil(lambda: window.busy_label.text() == text, timeout=PATIENCE_MILLISECONDS)
    gate.open.set()
    settle(qtbot, window)
    assert not window.busy.isVisible()
    assert not window.actions_by_name["stop"].isEnabled()


@pytest.mark.parametrize("way", ["button", "key"])
def test_a_slow_method_is_stopped(qtbot: QtBot, picture: Path, gate: Gate, way: str) -> None:
    window = opened(qtbot, picture, method="opencv")
    before = drawn(window.canvas)
    begin_slowly(qtbot, window, gate)
    qtbot.waitUntil(window.busy.isVisible, timeout=PATIENCE_MILLISECONDS)
    if way == "button":
        qtbot.mouseClick(window.busy.stop, Qt.MouseButton.LeftButton)
    else:
        window.canvas.setFocus()
        qtbot.keyClick(window.canvas, Qt.Key.Key_Escape)
    assert not window.busy.isVisible()
    assert window.message_text.text() == STOPPED
    assert window.settled
    stop = threading.Event()

    def let_go_on() -> None:  # together longer than the grace
        while not stop.wait(0.03):
            gate.let(1)

    letting = threading.Thread(target=let_go_on)
    letting.start()
    try:
        at_work = [thread for thread in threading.enumerate() if thread.name == "edgeconv-view"]
        qtbot.waitUntil(lambda: not any(thread.is_alive() for thread in at_work), timeout=PATIENCE_MILLISECONDS)
    finally:
        stop.set()
        letting.join()
    assert gate.begun < BANDS
    window.message.hide()  # which lies over the picture
    assert np.array_equal(drawn(window.canvas), before), "what was there stays"
    gate.open.set()
    window.actions_by_name["reload"].trigger()
    settle(qtbot, window)
    assert window.canvas.right is not None
    assert np.array_equal(window.canvas.right.pixels, convolve(PIXELS, method="reference"))
    assert not window.message.isVisible()


def test_another_view_of_the_same_output_waits_for_it(qtbot: QtBot, picture: Path, gate: Gate) -> None:
    window = opened(qtbot, picture, method="opencv")
    begin_slowly(qtbot, window, gate)
    gate.let(4)
    qtbot.waitUntil(lambda: gate.begun == 5, timeout=PATIENCE_MILLISECONDS)
    window.show_mode("split")
    qtbot.wait(250)  # longer than the grace
    gate.let(2)
    qtbot.waitUntil(lambda: window.busy.bar.value() == 60, timeout=PATIENCE_MILLISECONDS)
    gate.open.set()
    settle(qtbot, window)
    assert gate.begun <= 3 * BANDS, "the output, its timed run, the check, once each"


def test_the_timed_run_of_a_slow_method_says_so_and_can_be_stopped(
    qtbot: QtBot, picture: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgeconv.view.compute.SLOW_SECONDS", 0.0)
    window = opened(qtbot, picture, method="opencv")
    runs = len(window.model.runs)
    begin_slowly(qtbot, window, gate)
    gate.let(BANDS)
    qtbot.waitUntil(lambda: window.busy_label.text() == "measuring …", timeout=PATIENCE_MILLISECONDS)
    assert window.canvas.right is not None
    assert np.array_equal(window.canvas.right.pixels, convolve(PIXELS, method="reference"))
    qtbot.waitUntil(window.busy.isVisible, timeout=PATIENCE_MILLISECONDS)
    qtbot.mouseClick(window.busy.stop, Qt.MouseButton.LeftButton)
    assert window.settled
    assert not window.message.isVisible()
    gate.open.set()
    qtbot.wait(100)
    assert len(window.model.runs) == runs


def test_a_method_that_does_not_tell_has_a_bar_without_a_share(
    qtbot: QtBot, picture: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "report", lambda share: None)
    window = opened(qtbot, picture, method="opencv")
    begin_slowly(qtbot, window, gate)
    qtbot.waitUntil(window.busy.isVisible, timeout=PATIENCE_MILLISECONDS)
    assert (window.busy.bar.minimum(), window.busy.bar.maximum()) == (0, 0)
    assert window.busy.seconds.text() == "0 s"
    window.stop()
    gate.open.set()
    qtbot.wait(100)
    assert window.canvas.right is not None
    assert window.canvas.right.label.startswith("laplacian8 by opencv"), "it is too late"


def test_the_area_says_what_becomes_of_the_first_picture(
    qtbot: QtBot, picture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = opened(qtbot)
    assert window.canvas.note == ""
    gate, decode = threading.Event(), Workshop.decode

    def slowly(workshop: Workshop, path: str) -> Picture:
        gate.wait(PATIENCE_MILLISECONDS / 1000)
        return decode(workshop, path)

    monkeypatch.setattr(Workshop, "decode", slowly)
    empty = drawn(window.canvas)
    window.open_pictures([str(picture)])
    assert window.canvas.note == "Loading picture.png …"
    loading = drawn(window.canvas)
    assert not np.array_equal(loading, empty)
    window.stop()
    assert window.canvas.note == STOPPED
    assert not np.array_equal(drawn(window.canvas), loading)
    gate.set()
    window.reload()
    settle(qtbot, window)
    assert window.canvas.note == ""
    assert window.canvas.right is not None
