"""Length and hash of a file, or of all files of a folder, which identify an input or an earlier output.

`file_state` compares only what the file system states (inode, size, time), to detect a change while a file is read.
"""

from __future__ import annotations

import errno
import hashlib
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from edgeconv.io.contained_paths import ForeignFileError, open_regular

BLOCK_BYTES = 2**20


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
