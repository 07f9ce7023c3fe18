"""A progress line on standard error for long jobs; silent where standard error is not a terminal."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from edgeconv.core.safe_text import visible
from edgeconv.core.timing import Clock
from edgeconv.core.units import digits_text

REFRESH_SECONDS = 0.1
BAR_WIDTH = 24


def duration_text(seconds: float) -> str:
    """`42 s`, `3 min 05 s` or `2 h 07 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


class Progress:
    """`done` of `total` units, the rate, the time left, and a note of the caller's."""

    def __init__(
        self,
        total: int,
        unit: str,
        stream: TextIO | None = None,
        clock: Clock = time.monotonic,
        shown: bool | None = None,
    ) -> None:
        self._total, self._unit, self._clock = total, unit, clock
        self._stream = stream or sys.stderr  # None where it was closed before Python started
        self._shown = self._stream is not None and (self._stream.isatty() if shown is None else shown)
        self._started = clock()
        self._drawn_at = float("-inf")
        self._width = 0

    def update(self, done: int, note: str = "") -> None:
        """Redraw if it is due, and always at the end."""
        now = self._clock()
        if not self._shown or (now - self._drawn_at < REFRESH_SECONDS and done < self._total):
            return
        self._drawn_at = now
        line = visible(self.line(done, now - self._started, note))
        self._stream.write("\r" + line.ljust(self._width))
        self._stream.flush()
        self._width = len(line)

    def line(self, done: int, seconds: float, note: str) -> str:
        """What `update` draws."""
        share = done / self._total if self._total else 1.0
        bar = "#" * int(share * BAR_WIDTH)
        parts = [f"[{bar:<{BAR_WIDTH}}] {done}/{self._total} {self._unit}"]
        if done and seconds > 0:
            parts.append(f"{digits_text(done / seconds, 3)}/s")
            parts.append(f"{duration_text(seconds / done * (self._total - done))} left")
        return ", ".join([*parts, note] if note else parts)

    def clear(self) -> None:
        """Take the line away, so that another can be printed in its place; the next `update` draws it again."""
        if self._shown and self._width:
            self._stream.write("\r" + " " * self._width + "\r")
            self._stream.flush()
            self._width, self._drawn_at = 0, float("-inf")

    def close(self) -> None:
        """End the line, so that further output starts on a new one."""
        if self._shown and self._width:
            self._stream.write("\n")
            self._stream.flush()
