"""Opening files inside a folder whose contents, links and names are not trusted, and what identifies them.

A name is plain if it leads down from the folder and nowhere else: no root, no `..`, no zero byte. Links are followed
as long as they stay inside. Only regular files are opened: opening a pipe may block, and a device may never end.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import threading
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import Any

BLOCK_BYTES = 2**20


class ForeignFileError(Exception):
    """A name that leads out of its folder, or to something other than a regular file; the reason follows the name."""


def foreign_reason(name: str) -> str | None:
    """Why `name` is not the plain name of something inside a folder; None where it is."""
    if "\0" in name:
        return "contains a zero byte, which no file name may"
    try:
        os.fsencode(name)
    except UnicodeError:
        return "is not a valid name on this system"
    parts = name.split("/")
    if not name:
        return "is empty"
    if not parts[0] or ".." in parts:
        return "leads out of the folder"
    return None if parts[-1] not in ("", ".") else "names a folder"


def place_inside(folder: Path | str, name: str) -> Path:
    """The path of `name` below `folder`, links followed, whether it exists or not. Raises ForeignFileError."""
    if (reason := foreign_reason(name)) is not None:
        raise ForeignFileError(reason)
    root = os.path.realpath(folder)
    below = os.path.join(root, name)
    if "/" not in name and not os.path.islink(below):
        return Path(below)
    place = Path(os.path.realpath(below))
    if not place.is_relative_to(root) or place == Path(root):
        raise ForeignFileError("is a link that leads out of the folder, or lies behind one")
    return place


def open_regular(path: Path | str) -> BufferedReader:
    """A regular file that is not a link, for reading. Raises ForeignFileError, OSError."""
    return os.fdopen(regular_descriptor(path, os.O_RDONLY), "rb")


def regular_descriptor(path: Path | str, flags: int) -> int:
    """A descriptor of a regular file that is not a link, opened with `flags`. Raises ForeignFileError, OSError."""
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ForeignFileError("is a link, where only a plain file is expected") from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ForeignFileError("is not a plain file")
    return descriptor


def file_identity(path: Path, stop: threading.Event | None = None) -> dict[str, Any]:
    """`file_bytes` and `file_sha256`; of a folder over names and contents of its files, in the order of their names.

    Links to files are followed; pipes and devices, which may have no end, are not opened. Raises OSError, also once
    `stop` is set.
    """
    digest, length = hashlib.sha256(), 0
    for file in _files(path):
        if file != path:
            digest.update(os.fsencode(file.relative_to(path)))
        try:
            with open_regular(os.path.realpath(file)) as stream:
                while block := stream.read(BLOCK_BYTES):
                    if stop is not None and stop.is_set():
                        raise InterruptedError(errno.EINTR, "stopped", str(file))
                    digest.update(block)
                    length += len(block)
        except ForeignFileError as error:
            raise OSError(errno.EINVAL, f"{file.name} {error}", str(file)) from None
    return {"file_bytes": length, "file_sha256": digest.hexdigest()}


def file_state(path: Path) -> list[tuple[int, ...]] | None:
    """What changes when a file, or any file of a folder, is replaced, resized or written to.

    None where it cannot be read.
    """
    with suppress(OSError):
        found = [file.stat() for file in _files(path)]
        return [(each.st_dev, each.st_ino, each.st_size, each.st_mtime_ns) for each in found]
    return None


def _files(path: Path) -> list[Path]:
    """A file alone; the files of a folder by their names."""
    return sorted(file for file in path.rglob("*") if not file.is_dir()) if path.is_dir() else [path]
