"""Process-wide settings of a library, changed while any of several threads needs them.

If each thread saved and restored the setting by itself, one could restore the changed value of another for good.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType

PutBack = Callable[[], None]


class SharedSetting:
    """In force while any thread is in the `with` block: set by the first, restored when the last one leaves."""

    def __init__(self, make: Callable[[], PutBack]) -> None:
        """`make` changes the setting and returns a function that restores it."""
        self._make = make
        self._lock = threading.Lock()
        self._inside = 0
        self._put_back: PutBack = lambda: None

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._put_back = self._make()
            self._inside += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._put_back()
