"""File names that Linux or an object store allows and Windows does not: refused there, before a device is written to.

`CON.png` is the console and `NUL.png` the null device in any folder; `a:b.png` is an alternate data stream of `a`.
Source: Microsoft, Naming Files, Paths, and Namespaces.
"""

from __future__ import annotations

import re
import sys

from edgeconv.errors import ImageWriteError

DEVICES = ("CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$")
NUMBERED_DEVICES = ("COM", "LPT")
DIGITS = "0123456789¹²³"
"""Superscripts too: on Windows `COM¹` is a port."""
RESERVED = frozenset(DEVICES) | {f"{port}{digit}" for port in NUMBERED_DEVICES for digit in DIGITS}

_NOT_IN_NAMES = re.compile(r'[<>:"/\\|?*\x00-\x1f]')


def refuse_on_windows(name: str) -> str:
    """`name`, an output's name without folder. Raises ImageWriteError on Windows where no file can have it."""
    problem = windows_problem(name) if sys.platform == "win32" else None
    if problem is not None:
        shown = name.encode("unicode_escape").decode("ascii")
        raise ImageWriteError(
            f"Output '{shown}' cannot be made: {problem}. Rename the input, or put more than {{stem}} into --name."
        )
    return name


def windows_problem(name: str) -> str | None:
    """Why no file can have this name on Windows, as a sentence without a full stop, or None."""
    device = name.partition(".")[0].rstrip(" ").upper()
    if device in RESERVED:
        return f"Windows reserves the name {device} for a device, with any suffix"
    found = _NOT_IN_NAMES.search(name)
    if found is not None:
        return f"Windows does not allow {found[0]!a} in a name"
    if name.endswith((".", " ")):
        return "Windows drops a dot or a space at the end of a name"
    return None
