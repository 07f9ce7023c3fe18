"""Threads that compute for the window, and the end of a process in which one of them is still at work.

Python would either wait for such a thread, which may compute for minutes what nobody wants any more, or (a daemon) cut
it off where it comes back from a library's call: in the middle of C++, and the process ends with an abort. So the
threads are no daemons, and `leave` ends the process without waiting for them.
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
"""What a thread that sees that nothing is wanted any more may take to come to its end."""

_threads: WeakSet[threading.Thread] = WeakSet()


def start(work: Callable[[], None], name: str) -> None:
    """Do `work` on a thread of its own."""
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
