"""What Linux says about a machine and a process in its files under /proc and /sys: always optional.

A sandbox or a chroot has neither, an older kernel lacks some, and other systems have none. Whoever asks gets None then
and goes on with less to report: a picture never depends on them.
"""

from __future__ import annotations

import os
from pathlib import Path


def read_system_file(path: str) -> str | None:
    """The text of a file such as `/proc/cpuinfo`; None where there is none, or none that may be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def system_field(path: str, name: str) -> str | None:
    """What follows the first `name:` at the start of a line of such a file; None where there is none."""
    for line in (read_system_file(path) or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


def read_system_link(path: str) -> str | None:
    """Where a link such as `/proc/self/ns/pid` leads, as it stands there; None as for a file."""
    try:
        return os.readlink(path)
    except OSError:
        return None
