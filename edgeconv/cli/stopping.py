"""Stop a long job politely on the first SIGINT or SIGTERM, and at once on the second."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

from edgeconv.errors import EXIT_SIGNAL_BASE
from edgeconv.interrupts import SIGNALS


@dataclass
class Received:
    """The exit code that a signal asks for; None where none came."""

    exit_code: int | None = None


@contextmanager
def stopping(stop: Callable[[str], None], abandon: Callable[[], None]) -> Iterator[Received]:
    """Within the block, the first signal calls `stop` with its name; the second `abandon`, and ends the process.

    It is ended by `os._exit`: anything politer would wait for threads that may be busy for minutes.
    """
    received = Received()
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def on_signal(number: int, frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        if received.exit_code is None:
            received.exit_code = EXIT_SIGNAL_BASE + number
            stop(name)
            _say(f"{name}: finishing the pictures in hand; once more to stop at once.")
        else:
            abandon()
            _say(f"{name} again: stopped at once; continue with --resume.")
            os._exit(EXIT_SIGNAL_BASE + number)

    for number in SIGNALS:
        signal.signal(number, on_signal)
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _say(text: str) -> None:
    """One line on standard error past its buffer, which the interrupted code may be writing to just now."""
    with suppress(OSError, AttributeError, ValueError):
        stream = sys.stderr
        os.write(stream.fileno(), f"{chr(10) if stream.isatty() else ''}edgeconv: {text}\n".encode())
