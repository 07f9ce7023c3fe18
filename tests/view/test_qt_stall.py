"""The window never freezes: its event loop goes round while a picture of 4096×4096 is computed on the CPU."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from problems import random_image
from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from selection import few_then_slow
from windows import opened, settle

from edgeconv.io.image import write_image
from edgeconv.runtime.session import Session

SIDE = 4096
LONGEST_STALL_SECONDS = 0.05
MOST_TRIES = 8
"""Another process may hold the window up; one undisturbed try shows that the window's own work does not."""


class Heartbeat:
    """Ticks every millisecond on the interface thread; `longest_seconds` is the longest time between two ticks."""

    def __init__(self) -> None:
        self._timer = QTimer(timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._tick)
        self._timer.start(1)
        self.begin()

    def begin(self) -> None:
        self.longest_seconds, self.ticks, self._last = 0.0, 0, time.perf_counter()

    def _tick(self) -> None:
        now = time.perf_counter()
        self.longest_seconds, self.ticks, self._last = max(self.longest_seconds, now - self._last), self.ticks + 1, now


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "large.npy"
    write_image(random_image(SIDE, SIDE, np.uint8), path)
    return path


@pytest.mark.parametrize("method", few_then_slow(["opencv", "sliding"]))
def test_the_longest_stall_of_a_large_run(qtbot: QtBot, large: Path, method: str) -> None:
    window = opened(qtbot, large, method=method)
    heartbeat = Heartbeat()
    stalls = []
    for centre in range(MOST_TRIES):
        heartbeat.begin()
        window.set_parameters(window.model.parameters.with_kernel(f"1,1,1;1,{centre},1;1,1,1"))
        settle(qtbot, window)
        assert window.model.runs[-1].parameters.kernel == f"1,1,1;1,{centre},1;1,1,1"
        stalls.append(heartbeat.longest_seconds)
        if stalls[-1] <= LONGEST_STALL_SECONDS:
            return
    raise AssertionError(f"the event loop stood still for {min(stalls) * 1e3:.0f} ms at the least")


def test_the_loop_goes_round_while_the_work_is_on_another_thread(
    qtbot: QtBot, tmp_path: Path, monkeypatch: Any
) -> None:
    path = tmp_path / "small.png"
    write_image(random_image(64, 64, np.uint8), path)
    window = opened(qtbot, path)
    heartbeat, threads = Heartbeat(), []
    convolve = Session.convolve

    def until_it_has_ticked(self: Session, *arguments: Any) -> Any:
        threads.append(threading.current_thread())
        until = time.monotonic() + 30
        while heartbeat.ticks < 20 and time.monotonic() < until:
            time.sleep(0.001)
        return convolve(self, *arguments)

    monkeypatch.setattr(Session, "convolve", until_it_has_ticked)
    heartbeat.begin()
    window.set_parameters(window.model.parameters.with_filter("sobel"))
    settle(qtbot, window)
    assert heartbeat.ticks >= 20, "the window did not come to life before the work was over"
    (thread,) = threads
    assert thread is not threading.main_thread()
    assert QApplication.instance().thread().isMainThread()
