"""Waiting for the threads of this process to rest before the next candidate is timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import current_thread, main_thread
from time import perf_counter, process_time, sleep

_clock_gettime = getattr(time, "clock_gettime", None)
_clock_of_thread = getattr(time, "pthread_getcpuclockid", None)
"""Both Unix alone, the second not macOS."""

MAX_QUIET_SECONDS = 0.25
QUIET_LOOK_SECONDS = 0.002
QUIET_SHARE = 0.2
"""Of one core, in all threads together."""


def _clock_of_others() -> Callable[[], float]:
    """Processor time of the threads beside this one.

    The main thread is left out where it is another (and the system tells): it draws a window, or waits for a user.
    """
    ident = main_thread().ident
    if current_thread() is main_thread() or ident is None or _clock_gettime is None or _clock_of_thread is None:
        return process_time
    gettime, of_main = _clock_gettime, _clock_of_thread(ident)
    return lambda: process_time() - gettime(of_main)


def wait_until_quiet() -> None:
    """Wait until the threads of this process rest, `MAX_QUIET_SECONDS` at most.

    Threads of many libraries spin for milliseconds after their last work (OpenMP's, ONNX Runtime's), on the very cores
    that the next to be timed would work on.
    """
    deadline, clock = perf_counter() + MAX_QUIET_SECONDS, _clock_of_others()
    while (started := perf_counter()) < deadline:
        before = clock()
        sleep(QUIET_LOOK_SECONDS)
        if clock() - before < QUIET_SHARE * (perf_counter() - started):
            return
