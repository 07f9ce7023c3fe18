"""What Ctrl-C and the request to terminate do, for every command, the batch and the window.

    end_at_once       the process ends with one line: before the command line is loaded, and after the command's end
    raise_on_signals  the first signal is an exception, so that half-written files are removed; the second ends at once
    stopping          the first signal asks a batch to stop; the second ends at once
    note              the first signal is noted: Qt would lose an exception, or take it for an error of its own

This file loads next to nothing, so that the command can listen from its first moment on.
"""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager, suppress

from edgeconv.errors import EXIT_SIGNAL_BASE

TYPE_CHECKING = False  # as type checkers know it
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class SignalReceived(SystemExit):
    """A signal came; the code is the process's exit code, and the line has been written."""


class Received:
    """The exit code that the first signal asks for; None where none came."""

    exit_code: int | None = None


def end_at_once() -> None:
    """From now on each of SIGNALS ends the process with one line and the exit code of the shell's custom."""
    _listen(lambda number, frame: _end(number, f"error: stopped by {signal.Signals(number).name}."))


def raise_on_signals(abandon: Callable[[], None]) -> Received:
    """From now on the first signal raises SignalReceived; a second calls `abandon` and ends the process."""
    received = Received()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if received.exit_code is not None:
            abandon()
            os._exit(received.exit_code)
        received.exit_code = EXIT_SIGNAL_BASE + number
        _say(f"error: stopped by {signal.Signals(number).name}.")
        raise SignalReceived(received.exit_code)

    _listen(on_signal)
    return received


@contextmanager
def stopping(stop: Callable[[str], None], abandon: Callable[[], None]) -> Iterator[Received]:
    """Within the block, the first signal calls `stop` with its name; the second `abandon`, and ends the process.

    It is ended by `os._exit`: anything politer would wait for threads that may be busy for minutes.
    """
    received = Received()
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def on_signal(number: int, frame: FrameType | None) -> None:
        if received.exit_code is not None:
            abandon()
            _end(number, f"{signal.Signals(number).name} again: stopped at once; continue with --resume.")
        received.exit_code = EXIT_SIGNAL_BASE + number
        stop(signal.Signals(number).name)
        _say(f"{signal.Signals(number).name}: finishing the pictures in hand; once more to stop at once.")

    _listen(on_signal)
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def note() -> Received:
    """From now on, and for good, the first signal is noted in what is returned, and no more is done."""
    received = Received()

    def on_signal(number: int, frame: FrameType | None) -> None:
        received.exit_code = received.exit_code or EXIT_SIGNAL_BASE + number

    _listen(on_signal)
    return received


def _listen(handler: Callable[[int, FrameType | None], None]) -> None:
    for number in SIGNALS:
        signal.signal(number, handler)


def _say(text: str) -> None:
    """One line on standard error past its buffer, which the interrupted code may be writing to just now."""
    with suppress(OSError):
        os.write(2, f"{chr(10) if os.isatty(2) else ''}edgeconv: {text}\n".encode())


def _end(number: int, text: str) -> NoReturn:
    try:
        _say(text)
    finally:
        os._exit(EXIT_SIGNAL_BASE + number)
