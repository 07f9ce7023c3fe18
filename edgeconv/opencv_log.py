"""OpenCV's log, which is one for the whole process: silent as long as any thread wants it so, then as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

_lock = Lock()
_silent_threads = 0
_level_before: Any = None


@contextmanager
def silent() -> Iterator[None]:
    """Nothing is logged within the block. The first thread that comes in keeps the level, the last one puts it back.

    If each put back what it found, one that came while another was inside would leave the log silent for good.
    """
    global _silent_threads, _level_before
    import cv2

    log = cv2.utils.logging
    with _lock:
        if _silent_threads == 0:
            _level_before = log.getLogLevel()
            log.setLogLevel(log.LOG_LEVEL_SILENT)
        _silent_threads += 1
    try:
        yield
    finally:
        with _lock:
            _silent_threads -= 1
            if _silent_threads == 0:
                log.setLogLevel(_level_before)
