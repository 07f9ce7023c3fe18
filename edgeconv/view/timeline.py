"""Undo and redo of one immutable value.

Changes with the same key within `MERGE_SECONDS` of each other are one step, so that typing a number or turning the
mouse wheel is undone at once and not character by character.
"""

from __future__ import annotations

import time
from typing import Generic, TypeVar

from edgeconv.core.timing import Clock

Value = TypeVar("Value")

MERGE_SECONDS = 1.0
MOST_STEPS = 500


class Timeline(Generic[Value]):
    """A present, a past and a future."""

    def __init__(self, present: Value, clock: Clock = time.monotonic) -> None:
        self.present = present
        self._past: list[Value] = []
        self._future: list[Value] = []
        self._clock = clock
        self._last_key: str | None = None
        self._changed_at = float("-inf")

    def change(self, value: Value, key: str | None = None) -> bool:
        """Make `value` the present; False where it is already. A new change forgets what was undone."""
        if value == self.present:
            return False
        now = self._clock()
        merges = key is not None and key == self._last_key and now - self._changed_at <= MERGE_SECONDS
        if not (merges and self._past):
            self._past.append(self.present)
            del self._past[:-MOST_STEPS]
        self.present = value
        self._future.clear()
        self._last_key, self._changed_at = key, now
        return True

    @property
    def can_undo(self) -> bool:
        """There is a past."""
        return bool(self._past)

    @property
    def can_redo(self) -> bool:
        """There is a future."""
        return bool(self._future)

    def undo(self) -> bool:
        """Go one step back; False at the beginning."""
        return self._step(self._past, self._future)

    def redo(self) -> bool:
        """Go one step forward; False at the end."""
        return self._step(self._future, self._past)

    def _step(self, source: list[Value], target: list[Value]) -> bool:
        if not source:
            return False
        target.append(self.present)
        self.present = source.pop()
        self._last_key = None
        return True
