"""Threads that compute for the window, and leaving the process while one of them is still running.

Python would either wait for such a thread, which may compute an unwanted result for minutes, or (for a daemon) stop it
when it returns from a library call: in the middle of C++ code, and the process aborts. So the threads are not daemons,
and `leave` ends the process without waiting for them.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn
from weakref import WeakSet

PATIENCE_SECONDS = 0.1
"""How long a thread may take to finish once it sees that its result is not wanted."""

_threads: WeakSet[threading.Thread] = WeakSet()


def start(work: Callable[[], None], name: str) -> None:
    """Run `work` on a new thread."""
    thread = threading.Thread(target=work, name=name)
    _threads.add(thread)
    thread.start()


def leave(code: int) -> NoReturn:
    """End the process with `code`: by Python's own way where no thread is at work, else at once.

    At once is not without what Python calls at its end (Qt hands the clipboard over there), and not before output is
    written.
    """
    if not _over_within(PATIENCE_SECONDS):
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, OSError, ValueError):  # closed, or none at all
                stream.flush()
        os._exit(code)
    sys.exit(code)


def _over_within(seconds: float) -> bool:
    """Whether every thread comes to its end in that time."""
    until = time.monotonic() + seconds
    threads = list(_threads)
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return not any(thread.is_alive() for thread in threads)
