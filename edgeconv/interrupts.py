"""Ctrl-C and the request to terminate while nothing is in hand: before the command line is loaded and after its end.

This file loads next to nothing, so that the command can listen from its first moment on.
"""

from __future__ import annotations

import os
import signal

from edgeconv.errors import EXIT_SIGNAL_BASE

TYPE_CHECKING = False  # as type checkers know it
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def end_at_once_on_signals() -> None:
    """From now on each of SIGNALS ends the process with one line and the exit code of the shell's custom."""
    for number in SIGNALS:
        signal.signal(number, _end_at_once)


def _end_at_once(number: int, frame: FrameType | None) -> NoReturn:
    try:
        os.write(2, f"edgeconv: error: stopped by {signal.Signals(number).name}.\n".encode())
    finally:
        os._exit(EXIT_SIGNAL_BASE + number)
