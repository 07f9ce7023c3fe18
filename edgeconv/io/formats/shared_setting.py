"""Settings that a library has once for the whole process, needed by threads that come and go in any order.

Each thread for itself would put back what another one had just set, and so leave it for good.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType

PutBack = Callable[[], None]


class SharedSetting:
    """In force while any thread is in the `with` block: made by the first, put back when the last one leaves."""

    def __init__(self, make: Callable[[], PutBack]) -> None:
        """`make` changes the setting and returns what puts it back."""
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
