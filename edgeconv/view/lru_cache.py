"""A store of things that are dear to make, bounded by bytes: the least recently used go first.

Two threads that ask for the same thing make it once: the second waits for the first.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Thing = TypeVar("Thing")


class Keep(Generic[Thing]):
    """Things by key. The newest is kept whatever its size."""

    def __init__(self, limit_bytes: int, size_of: Callable[[Thing], int]) -> None:
        self._limit_bytes, self._size_of = limit_bytes, size_of
        self._things: OrderedDict[Hashable, Thing] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Thing]) -> Thing:
        """The thing of `key`, made by `make` where it is not kept; what `make` raises goes to the caller."""
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                if key in self._things:
                    self._things.move_to_end(key)
                    return self._things[key]
            thing = make()
            with self._lock:
                self._things[key] = thing
                self._making.pop(key, None)
                while len(self._things) > 1 and self.held_bytes > self._limit_bytes:
                    self._things.popitem(last=False)
            return thing

    def forget(self, key: Hashable) -> None:
        """Make it anew next time."""
        with self._lock:
            self._things.pop(key, None)

    @property
    def held_bytes(self) -> int:
        """What all of it takes."""
        return sum(map(self._size_of, self._things.values()))
