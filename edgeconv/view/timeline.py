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
MAX_STEPS = 500


class Timeline(Generic[Value]):
    """A present, a past and a future."""

    def __init__(self, present: Value, clock: Clock = time.monotonic) -> None:
        self.present = present
        self.past: list[Value] = []
        self.future: list[Value] = []
        self._clock = clock
        self._last: tuple[str | None, float] = None, 0.0
        """Key and time of the last change."""

    def change(self, value: Value, key: str | None = None) -> bool:
        """Make `value` the present; False where it is already. A new change forgets what was undone."""
        if value == self.present:
            return False
        (last_key, changed_at), self._last = self._last, (key, self._clock())
        if not self.past or key is None or key != last_key or self._last[1] - changed_at > MERGE_SECONDS:
            self.past = [*self.past, self.present][-MAX_STEPS:]
        self.present, self.future = value, []
        return True

    def undo(self) -> bool:
        """Go one step back; False at the beginning."""
        return self._step(self.past, self.future)

    def redo(self) -> bool:
        """Go one step forward; False at the end."""
        return self._step(self.future, self.past)

    def _step(self, source: list[Value], target: list[Value]) -> bool:
        if not source:
            return False
        target.append(self.present)
        self.present = source.pop()
        self._last = None, 0.0
        return True
