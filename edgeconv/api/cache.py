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
        self.plans: OrderedDict[Hashable, ConvolutionPlan] = OrderedDict()
        """The one that was used last at the end."""
        self._making: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], ConvolutionPlan]) -> ConvolutionPlan:
        """The plan of `key`, made by `make` where there is none. What cannot be a key is made each time."""
        try:
            with self._lock:
                found = self.plans.get(key)
                if found is not None:
                    self.plans.move_to_end(key)
                    return found
                turn = self._making.setdefault(key, threading.Lock())
        except TypeError:  # a list where a word belongs: `make` says what is wrong with it
            return make()
        with turn:
            found = self.plans.get(key)
            if found is not None:
                return found
            self._make_room()
            try:
                found = make()
                with self._lock:
                    self.plans[key] = found
            finally:
                self._making.pop(key, None)
        return found

    def _make_room(self) -> None:
        """Let the least recently used go, before the memory of the next one is taken."""
        with self._lock:
            held = {key: plan.memory_bytes for key, plan in self.plans.items()}
            total = sum(held.values())
            while self.plans and (len(self.plans) >= MOST_PLANS or total > MOST_BYTES):
                key, _ = self.plans.popitem(last=False)
                total -= held[key]
