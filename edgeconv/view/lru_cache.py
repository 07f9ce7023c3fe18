"""A cache of results that are expensive to compute, bounded by bytes: the least recently used are evicted first.

Two threads that need the same result compute it once: the second waits for the first.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class LruCache(Generic[Value]):
    """Values by key. The newest is never evicted, whatever its size."""

    def __init__(self, limit_bytes: int, size_of: Callable[[Value], int]) -> None:
        self._limit_bytes, self._size_of = limit_bytes, size_of
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of `key`, computed by `make` where it is not cached; exceptions of `make` go to the caller."""
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                if key in self._values:
                    self._values.move_to_end(key)
                    return self._values[key]
            value = make()
            with self._lock:
                self._values[key] = value
                self._making.pop(key, None)
                while len(self._values) > 1 and self.held_bytes > self._limit_bytes:
                    self._values.popitem(last=False)
            return value

    def forget(self, key: Hashable) -> None:
        """Drop the value, so that it is computed again next time."""
        with self._lock:
            self._values.pop(key, None)

    @property
    def held_bytes(self) -> int:
        """Bytes of all values."""
        return sum(map(self._size_of, self._values.values()))
