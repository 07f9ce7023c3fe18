"""The one progress line of a long job, on standard error: as wide as the terminal, gone when the job is done."""

from __future__ import annotations

import sys
import time
from typing import Any

from edgeconv.cli.printing import columns, draw
from edgeconv.core.text import digits_text, duration_text, visible
from edgeconv.core.timing import Clock

REFRESH_SECONDS = 0.1
BAR_WIDTH = 24


class Progress:
    """How much is done, the rate, the time left, and a note; a context, silent where nobody watches."""

    def __init__(self, unit: str, stream: Any = None, clock: Clock = time.monotonic) -> None:
        self._unit, self._clock, self._stream = unit, clock, stream or sys.stderr
        self._columns = columns(self._stream)
        self._started = clock()
        self._drawn_at: float | None = None

    def update(self, done: int, total: int, note: str = "") -> None:
        """Redraw if it is due, and always at the end."""
        now = self._clock()
        is_due = self._drawn_at is None or now - self._drawn_at >= REFRESH_SECONDS or done >= total
        if self._columns is not None and is_due:
            line = visible(self.line(done, total, now - self._started, note))[: self._columns - 1]
            draw(f"\r{line.ljust(self._columns - 1)}", self._stream)
            self._drawn_at = now

    def line(self, done: int, total: int, seconds: float, note: str) -> str:
        """What `update` draws."""
        share = done / total if total else 1.0
        parts = [f"[{'#' * int(share * BAR_WIDTH):<{BAR_WIDTH}}] {done:,}/{total:,} {self._unit}"]
        if done and seconds > 0:
            parts.append(f"{digits_text(done / seconds, 3)}/s")
            parts.append(f"{duration_text(seconds / done * (total - done))} left")
        return ", ".join([*parts, note] if note else parts)

    def clear(self) -> None:
        """Take the line away, so that another can be printed in its place; the next `update` draws it again."""
        if self._columns is not None and self._drawn_at is not None:
            draw(f"\r{' ' * (self._columns - 1)}\r", self._stream)
            self._drawn_at = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()
