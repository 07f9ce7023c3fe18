"""`pytest --jitter SEED`: the delays of a busy machine, drawn from a seed, wherever a test may rely on its quiet.

    a thread            begins its work later than it was started
    a child process     begins its work later than it was started
    a barrier           is reached late
    a wait              ends late: for an event, a future, a child, a socket
    a signal            is sent to a child late
    a clock             is read late, where a test reads it

One call in four is delayed, half of them by up to 20 ms and half by up to 2 s; beyond the first `OFTEN` calls of a test
ever fewer, so that its last calls meet a delay as well as its first. A test is delayed by `MAX_SECONDS_A_TEST` at most,
or by what is said behind the seed (`1:0.5`). What is drawn depends on the seed and the test's name alone.
"""

from __future__ import annotations

import os
import random
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

SHARES = (0.125, 0.25)
"""Of calls that are delayed for long, and that are delayed at all."""
MAX_SECONDS, SHORT_SECONDS = 2.0, 0.02
MAX_SECONDS_A_TEST = 8.0
OFTEN = 12

_sleep = time.sleep


class Jitter:
    """The plugin; patches are for the whole process, draws for one test."""

    def __init__(self, seed: int, seconds: float) -> None:
        self._seed, self._seconds = seed, seconds
        self._lock = threading.Lock()
        self._begin("")
        starts, late, waits = self._thread_start, self._before, self._after
        for owner, name, delayed in (
            (threading.Thread, "start", starts),
            (subprocess.Popen, "__init__", self._child_start),
            (threading.Barrier, "wait", late),
            (threading.Event, "wait", waits),
            (Future, "result", waits),
            (subprocess.Popen, "wait", waits),
            (selectors.DefaultSelector, "select", waits),
            (subprocess.Popen, "send_signal", late),
            (os, "kill", late),
            (time, "perf_counter", late),
            (time, "monotonic", late),
        ):
            setattr(owner, name, delayed(getattr(owner, name)))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Draw anew for each test."""
        self._begin(item.nodeid)
        yield

    def _begin(self, test: str) -> None:
        self._draws = random.Random(f"{self._seed} {test}")
        self._left = self._seconds
        self._calls = 0

    def draw(self) -> float:
        """Seconds of the next delay, mostly none."""
        with self._lock:
            self._calls += 1
            chance, share = self._draws.random() * max(1.0, self._calls / OFTEN), self._draws.random()
            longest = MAX_SECONDS if chance < SHARES[0] else SHORT_SECONDS if chance < SHARES[1] else 0.0
            seconds = min(self._left, longest * share)
            self._left -= seconds
            return seconds

    def _wait(self) -> None:
        """For the next delay; a sleep of no seconds would take some 60 µs."""
        if seconds := self.draw():
            _sleep(seconds)

    def _before(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def late(*words: Any, **named: Any) -> Any:
            self._wait()
            return call(*words, **named)

        return late

    def _after(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def late(*words: Any, **named: Any) -> Any:
            found = call(*words, **named)
            if sys._getframe(1).f_globals.get("__name__") not in ("threading", "subprocess"):  # their own waits
                self._wait()
            return found

        return late

    def _thread_start(self, start: Callable[..., Any]) -> Callable[..., Any]:
        def late(thread: threading.Thread) -> None:
            thread.run = self._before(thread.run)  # type: ignore[method-assign]
            start(thread)

        return late

    def _child_start(self, init: Callable[..., Any]) -> Callable[..., Any]:
        def late(process: Any, args: Any, *words: Any, **named: Any) -> None:
            seconds = self.draw()
            plain = isinstance(args, list | tuple) and not words and not {"shell", "executable"} & named.keys()
            if seconds and plain:
                args = ["/bin/sh", "-c", 'sleep "$0"; exec "$@"', f"{seconds:.4f}", *args]
            init(process, args, *words, **named)

        return late
