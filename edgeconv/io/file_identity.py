"""Length and hash of a file, or of all files of a folder, which identify an input or an earlier output.

`file_state` compares only what the file system states (inode, size, time), to detect a change while a file is read.
"""

from __future__ import annotations

import errno
import hashlib
import os
import threading
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any

from edgeconv.io.contained_paths import ForeignFileError, open_regular

BLOCK_BYTES = 2**20


class HashStopped(Exception):
    """Hashing was asked to stop."""


def file_identity(path: Path, stop: threading.Event | None = None) -> dict[str, Any]:
    """`file_bytes` and `file_sha256`; of a folder over names and contents of its files, in the order of their names.

    Links to files are followed; pipes and devices, which may have no end, are not opened. Raises OSError, and
    HashStopped once `stop` is set.
    """
    digest, length = hashlib.sha256(), 0
    for name, file in _files(path):
        digest.update(os.fsencode(name))
        with _plain(file) as stream:
            while block := stream.read(BLOCK_BYTES):
                if stop is not None and stop.is_set():
                    raise HashStopped
                digest.update(block)
                length += len(block)
    return {"file_bytes": length, "file_sha256": digest.hexdigest()}


def file_state(path: Path) -> str | None:
    """A text that changes when a file, or any file of a folder, is replaced, resized or written to.

    None where it cannot be read.
    """
    digest = hashlib.sha256()
    try:
        for name, file in _files(path):
            found = file.stat()
            digest.update(repr((name, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)).encode())
    except OSError:
        return None
    return digest.hexdigest()


def _plain(file: Path) -> BufferedReader:
    """A plain file, for reading. Raises OSError."""
    try:
        return open_regular(os.path.realpath(file))
    except ForeignFileError as error:
        raise OSError(errno.EINVAL, f"{file.name} {error}", str(file)) from None


def _files(path: Path) -> Iterator[tuple[str, Path]]:
    """A file alone, under no name; the files of a folder with their names in it."""
    if not path.is_dir():
        yield "", path
        return
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            file = Path(folder) / name
            yield file.relative_to(path).as_posix(), file
