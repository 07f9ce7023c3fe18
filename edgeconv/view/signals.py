"""Ctrl-C and the request to terminate, noted and no more.

They may come in the middle of anything: Qt's start and its calls of Python are among it, where an exception would be
lost or taken for an error of its own. Whoever is in a state to stop asks `Noted.exit_code`.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from types import FrameType

from edgeconv.errors import EXIT_SIGNAL_BASE


@dataclass
class Noted:
    """The exit code that the first signal asks for; None where none came."""

    exit_code: int | None = None


def note() -> Noted:
    """From now on, and for good, signals do no more than to be noted in what is returned."""
    noted = Noted()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if noted.exit_code is None:
            noted.exit_code = EXIT_SIGNAL_BASE + number

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    return noted
