"""Stop a long job politely on the first SIGINT or SIGTERM, and at once on the second."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from edgeconv.errors import EXIT_SIGNAL_BASE

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass
class Received:
    """The exit code that a signal asks for; None where none came."""

    exit_code: int | None = None


@contextmanager
def stopping(stop: Callable[[str], None]) -> Iterator[Received]:
    """Within the block, the first signal calls `stop` with its name; the second acts as it did before."""
    received = Received()
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def on_signal(number: int, frame: FrameType | None) -> None:
        received.exit_code = EXIT_SIGNAL_BASE + number
        stop(signal.Signals(number).name)
        restore()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    for number in SIGNALS:
        signal.signal(number, on_signal)
    try:
        yield received
    finally:
        restore()
