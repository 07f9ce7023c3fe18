"""The plans that `convolve` remembers: the least recently used go first, by number and by memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from edgeconv.api.plan import ConvolutionPlan

MOST_PLANS = 64
MOST_BYTES = 2**30
"""Workspaces, and arrays on GPUs for pictures of the host, of all plans together; the newest always stays."""


class PlanCache:
    """Plans by key. Threads wait for each other only where they want the same plan and it is being made."""

    def __init__(self) -> None:
        self._plans: OrderedDict[Hashable, ConvolutionPlan] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._plans)

    def plans(self) -> list[ConvolutionPlan]:
        """All plans, the one that was used last at the end."""
        with self._lock:
            return list(self._plans.values())

    def clear(self) -> None:
        """Let go of all plans."""
        with self._lock:
            self._plans.clear()

    def get(self, key: Hashable, make: Callable[[], ConvolutionPlan]) -> ConvolutionPlan:
        """The plan of `key`, made by `make` where there is none. What cannot be a key is made each time."""
        try:
            with self._lock:
                found = self._plans.get(key)
                if found is not None:
                    self._plans.move_to_end(key)
                    return found
                turn = self._making.setdefault(key, threading.Lock())
        except TypeError:  # a list where a word belongs: `make` says what is wrong with it
            return make()
        with turn:
            found = self._plans.get(key)
            if found is not None:
                return found
            self._make_room()
            try:
                found = make()
                with self._lock:
                    self._plans[key] = found
            finally:
                self._making.pop(key, None)
        return found

    def _make_room(self) -> None:
        """Let the least recently used go, before the memory of the next one is taken."""
        with self._lock:
            held = {key: plan.memory_bytes for key, plan in self._plans.items()}
            total = sum(held.values())
            while self._plans and (len(self._plans) >= MOST_PLANS or total > MOST_BYTES):
                key, _ = self._plans.popitem(last=False)
                total -= held[key]
