"""Opening files inside a folder whose contents, links and names are not trusted.

A name is plain if it leads down from the folder and nowhere else: no root, no `..`, no zero byte. Links are followed
as long as they stay inside. Only regular files are opened: opening a pipe may block, and a device may never end.
The path is opened component by component without following links, and the kind of file is checked after opening, so
that a link put there between check and opening has no effect.
"""

from __future__ import annotations

import hashlib
import os
import stat
from io import BufferedReader
from pathlib import Path

_NO_WAITING = os.O_NONBLOCK | os.O_CLOEXEC
_NO_LINKS = os.O_NOFOLLOW
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | _NO_LINKS | os.O_CLOEXEC


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
    place = Path(os.path.realpath(os.path.join(root, name)))
    if not place.is_relative_to(root) or place == Path(root):
        raise ForeignFileError("is a link that leads out of the folder, or lies behind one")
    return place


def open_inside(folder: Path | str, name: str) -> BufferedReader:
    """A regular file below `folder`, for reading. Raises ForeignFileError, OSError."""
    place = place_inside(folder, name)
    root = os.path.realpath(folder)
    *folders, last = place.relative_to(root).parts
    below = os.open(root, _FOLDER)
    try:
        for part in folders:
            before, below = below, os.open(part, _FOLDER, dir_fd=below)
            os.close(before)
        return os.fdopen(regular_descriptor(last, os.O_RDONLY, below), "rb")
    finally:
        os.close(below)


def open_regular(path: Path | str) -> BufferedReader:
    """A regular file that is not a link, for reading. Raises ForeignFileError, OSError."""
    return os.fdopen(regular_descriptor(str(path), os.O_RDONLY), "rb")


def sha256_inside(folder: Path | str, name: str) -> str:
    """The hash of a regular file below `folder`, read in blocks. Raises ForeignFileError, OSError."""
    with open_inside(folder, name) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def regular_descriptor(name: str, flags: int, below: int | None = None) -> int:
    """A descriptor of a regular file that is not a link, opened with `flags`. Raises ForeignFileError, OSError."""
    try:
        _refuse_other_kinds(os.stat(name, dir_fd=below, follow_symlinks=False))  # opening a device may start it
    except FileNotFoundError:
        if not flags & os.O_CREAT:
            raise
    descriptor = os.open(name, flags | _NO_LINKS | _NO_WAITING, 0o666, dir_fd=below)
    try:
        _refuse_other_kinds(os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _refuse_other_kinds(found: os.stat_result) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise ForeignFileError("is a link, where only a plain file is expected")
    if not stat.S_ISREG(found.st_mode):
        raise ForeignFileError("is not a plain file")
