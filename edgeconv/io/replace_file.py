"""Replacing a file that another program may have open for a moment, which Windows refuses.

There a virus scanner, an indexer or a viewer that reads the old file makes `os.replace` fail, usually for some
milliseconds. So the move is retried for two seconds, and then refused with a message that names the cause. Elsewhere
an open file can be replaced, and errors are raised at once.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable

Name = str | os.PathLike[str]

WAITS_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.6, 0.7)
"""Between tries; two seconds in all."""

HELD = "another program has it open: close it there and try again"


def move_with_retries(move: Callable[[Name, Name], None], source: Name, target: Name) -> None:
    """`move(source, target)`, which is os.replace or os.rename.

    Raises OSError, and PermissionError with `HELD` where the target stays in use.
    """
    for wait in (*WAITS_SECONDS, None):
        try:
            return move(source, target)
        except PermissionError:
            if sys.platform != "win32" or not _may_be_held(target):
                raise
            if wait is None:
                raise PermissionError(errno.EACCES, HELD, os.fspath(target)) from None
        time.sleep(wait)


def _may_be_held(target: Name) -> bool:
    """Whether waiting may help: Windows reports the same error for a read-only file or folder."""
    return os.access(target, os.W_OK) or not os.path.lexists(target)
