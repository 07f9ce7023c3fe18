"""How a picture is divided among threads: how many of them it is worth, and how many rows they take at a time.

All follows from a rough estimate of the time that one thread would take, good to a factor of two. That is enough: with
a thread too many or too few a picture takes a few per cent longer (docs/cpu-engine.md has what was measured).
"""

from __future__ import annotations

from dataclasses import dataclass

from edgeconv.core.problem import Problem
from edgeconv.hardware.cpu.processor import SCALAR_BYTES
from edgeconv.hardware.threads import usable_threads
from edgeconv.methods.cpu.layout import RowLayout

VECTOR_MULTIPLY_ADDS_PER_SECOND = 3e9
SAMPLES_PER_SECOND = 10e9
"""Loaded or stored, beside the multiply-adds. Both are of one core, from pictures that its caches hold."""

WORK_SECONDS = 4e-6
"""Work that a further thread must have, and that a thread claims at a time: both cost some tenths of a microsecond."""

STRIP_ROWS = 64
"""Rows that a thread takes at a time at most: neighbouring strips both stage two rows, which costs 3 % of 64."""

STRIPS_PER_THREAD = 4
"""Strips per thread where they are worth it, so that a thread that was interrupted keeps no other waiting."""

WAKING_SECONDS = 100e-6
"""What sleeping threads must save together to be woken: waking one takes the waker 5 to 30 microseconds, and the
sleeper is at work 50 to 300 microseconds later (docs/cpu-engine.md). Smaller work wakes one thread at a time, and only
in a series of pictures that follow so closely that it is awake for the next."""
SLEEPER_SECONDS = 50e-6
"""Work for which one more is woken at once, where any is."""


@dataclass(frozen=True)
class Division:
    """A picture divided."""

    threads: int
    strip_rows: int
    sleepers: int
    """Threads that are woken at once where the crew sleeps; 0: one at a time, in a series of pictures."""


def seconds_alone(problem: Problem, layout: RowLayout) -> float:
    """About what one thread takes."""
    pixels = problem.output_height * problem.output_width
    lanes = layout.vector_bytes // SCALAR_BYTES[layout.lowering.sums]
    samples = problem.input_bytes / problem.dtype.itemsize + problem.output_bytes / problem.output_dtype.itemsize
    arithmetic = pixels * layout.lowering.multiply_adds / lanes / VECTOR_MULTIPLY_ADDS_PER_SECOND
    return arithmetic + samples / SAMPLES_PER_SECOND


def divide(rows: int, seconds: float, asked: int | None, rows_together: int = 1) -> Division:
    """Divide `rows` output rows that take one thread `seconds`, among `asked` threads or as many as are worth it.

    Strips have multiples of `rows_together`, which are computed at once.
    """
    worth = max(1, int(seconds / WORK_SECONDS))
    threads = max(1, min(asked or min(worth, usable_threads()), rows))
    if threads == 1:
        return Division(1, rows, 0)
    each = -(-rows // threads)
    fewest = -(-rows * WORK_SECONDS // seconds)
    strips = max(1, min(STRIPS_PER_THREAD, int(each // fewest)), -(-each // STRIP_ROWS))  # of each thread: as many
    strip_rows = -(-rows // (threads * strips * rows_together)) * rows_together
    saved = seconds * (1 - 1 / threads)
    return Division(threads, strip_rows, int(seconds / SLEEPER_SECONDS) if saved >= WAKING_SECONDS else 0)
