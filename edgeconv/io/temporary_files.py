"""Names of temporary files and folders, so that what a killed process leaves behind can be identified and removed.

    .edgeconv-<place>-<process id>-<random>.tmp     beside the file that it will replace

`place` is a hash of the host name and, on Linux, of the process namespace: only there is the process id meaningful.
Two containers that share a folder have different places even where their host names are equal.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
import zlib
from contextlib import suppress
from functools import cache
from pathlib import Path

from edgeconv.hardware.system_files import read_system_link

NAME = re.compile(r"\.edgeconv-(?P<place>[0-9a-f]{8})-(?P<process>\d+)-[0-9a-f]{12}\.tmp")

STALE_SECONDS = 24 * 3600
"""No write takes this long: a file of this age is left over, wherever its process ran."""

_being_written: set[Path] = set()


def begin(target: Path) -> Path:
    """A new name beside `target`, registered until `end`."""
    temporary = target.with_name(new_name())
    _being_written.add(temporary)
    return temporary


def new_name() -> str:
    """A name that tells which process it belongs to."""
    return f".edgeconv-{_place()}-{os.getpid()}-{secrets.token_hex(6)}.tmp"


def end(temporary: Path) -> None:
    """The file was moved into place or removed."""
    _being_written.discard(temporary)


def remove_being_written() -> None:
    """Remove what this process is writing, just before the process is terminated."""
    for temporary in tuple(_being_written):
        with suppress(OSError):
            remove(temporary)


def remove(temporary: Path) -> None:
    """Remove a temporary file, or the folder of a Zarr. Raises OSError."""
    if temporary.is_dir() and not temporary.is_symlink():
        shutil.rmtree(temporary)
    else:
        temporary.unlink()


def remove_left_over_in(folder: Path) -> list[Path]:
    """Remove what killed processes left in `folder`; returns what was removed."""
    removed = []
    for path in left_over_in(folder):
        try:
            remove(path)
        except OSError:  # gone in the meantime, or without permission: it does no harm
            continue
        removed.append(path)
    return removed


def left_over_in(folder: Path) -> list[Path]:
    """Temporary files in `folder` that no running process is writing, sorted; none where it cannot be listed."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [folder / name for name in names if _is_left_over(folder, name)]


def _is_left_over(folder: Path, name: str) -> bool:
    parts = NAME.fullmatch(name)
    if parts is None:
        return False
    if parts["place"] == _place() and not _lives(int(parts["process"])):
        return True
    try:
        return time.time() - (folder / name).stat().st_mtime > STALE_SECONDS
    except OSError:  # gone in the meantime
        return False


def _lives(process: int) -> bool:
    """Whether the process exists."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it belongs to another user
        return True
    return True


@cache
def _place() -> str:
    import platform

    place = platform.node() + (read_system_link("/proc/self/ns/pid") or "")
    return f"{zlib.crc32(os.fsencode(place)):08x}"
