"""Names of files and folders being written, so that what a killed process leaves behind can be told and removed.

    .edgeconv-<place>-<process id>-<random>.tmp     beside the file whose place it will take

`place` stands for the host and, on Linux, its process namespace: only there does the process id mean anything. Two
containers that share a folder have different places even where their host names are alike.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import sys
import time
import zlib
from contextlib import suppress
from functools import cache
from pathlib import Path

from edgeconv.hardware.system_files import read_system_link

NAME = re.compile(r"\.edgeconv-(?:(?P<place>[0-9a-f]{8})-(?P<process>\d+)-)?[0-9a-f]{12}\.tmp")
"""Of the first versions too, which had the random part alone."""

STALE_SECONDS = 24 * 3600
"""Nothing is written for so long: a file of this age is left over, wherever its process ran."""

_in_hand: set[Path] = set()


def begin(target: Path) -> Path:
    """A new name beside `target`, remembered until `end`."""
    temporary = target.with_name(new_name())
    _in_hand.add(temporary)
    return temporary


def new_name() -> str:
    """A name that says which process it belongs to."""
    return f".edgeconv-{_place()}-{os.getpid()}-{secrets.token_hex(6)}.tmp"


def is_of_a_dead_process(name: str) -> bool:
    """Whether a process of this place has left it, which lives no more."""
    parts = NAME.fullmatch(name)
    return parts is not None and parts["place"] == _place() and not _lives(int(parts["process"]))


def end(temporary: Path) -> None:
    """The file has taken its place, or is gone."""
    _in_hand.discard(temporary)


def remove_in_hand() -> None:
    """Remove what this process is writing, just before it is ended without ceremony."""
    for temporary in tuple(_in_hand):
        with suppress(OSError):
            remove(temporary)


def remove(temporary: Path) -> None:
    """Remove a temporary file, or the folder of a Zarr. Raises OSError."""
    if temporary.is_dir() and not temporary.is_symlink():
        shutil.rmtree(temporary)
    else:
        temporary.unlink()


def remove_left_over_in(folder: Path) -> list[Path]:
    """Remove what killed processes left in `folder`; what was removed."""
    removed = []
    for path in left_over_in(folder):
        try:
            remove(path)
        except OSError:  # gone meanwhile, or not ours to remove: it is in nobody's way
            continue
        removed.append(path)
    return removed


def left_over_in(folder: Path) -> list[Path]:
    """Temporary files in `folder` that no living process is writing, sorted; none where it cannot be listed."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [folder / name for name in names if _is_left_over(folder, name)]


def _is_left_over(folder: Path, name: str) -> bool:
    parts = NAME.fullmatch(name)
    if parts is None:
        return False
    if is_of_a_dead_process(name):
        return True
    try:
        return time.time() - (folder / name).stat().st_mtime > STALE_SECONDS
    except OSError:  # gone meanwhile
        return False


def _lives(process: int) -> bool:
    """Whether there is such a process; True where the system gives no harmless way to ask."""
    if sys.platform == "win32":
        return True  # os.kill(…, 0) would end it
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # somebody else's
        return True
    return True


@cache
def _place() -> str:
    import platform

    words = platform.node()
    words += read_system_link("/proc/self/ns/pid") or ""
    return f"{zlib.crc32(os.fsencode(words)):08x}"
