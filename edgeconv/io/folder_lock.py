"""One batch at a time in an output folder: two would refuse each other's results as foreign, or replace them.

`diff --update` counts as a batch for the folder that it changes.

    edgeconv-ledger.lock        locked by the system as long as a batch runs, and removed by the last one that ends

A whole batch locks it exclusively. The shares of one job array (`--shard`) lock it together: the first records which
array that is, and the shares of another array are refused. The system releases the lock of a process that is killed,
so no clean-up is needed. Where a file system has no locks, or the output is a remote store, there is no exclusion; an
output that appears meanwhile is not replaced there either (batch/process.py).
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from edgeconv.errors import ImageWriteError
from edgeconv.io.contained_paths import ForeignFileError, regular_descriptor

LOCK_NAME = "edgeconv-ledger.lock"

MOST_BYTES = 4096
"""Largest content of the file."""

LOCKED_BYTE = 2**40
"""Beyond the end of any ledger."""

PATIENCE_SECONDS = 1.0
"""`verify` holds the lock for a moment to test whether a batch does, and a share to record its array."""
PAUSE_SECONDS = 0.02


@contextmanager
def one_batch_in(folder: str, array: str | None) -> Iterator[None]:
    """Lock `folder` against other batches during the block, except for shares of the same `array`.

    Raises ImageWriteError where another batch is running there.
    """
    path = os.path.join(folder, LOCK_NAME)
    descriptor = _acquire(path, folder, array)
    try:
        yield
    finally:
        _release(path, descriptor)


def is_held(folder: str) -> bool:
    """Whether a batch is running in a local folder, as far as its file system can tell."""
    try:
        descriptor = regular_descriptor(os.path.join(folder, LOCK_NAME), os.O_RDONLY)
    except (OSError, ForeignFileError):
        return False
    try:
        return not take(descriptor)
    finally:
        os.close(descriptor)


def take(descriptor: int, shared: bool = False) -> bool:
    """Lock an open file without waiting, exclusively or shared; False where another process has locked it.

    True as well where the file system has no locks. Closing the file releases the lock.
    """
    if sys.platform == "win32":
        import msvcrt

        if shared:  # there is no such lock
            return True
        os.lseek(descriptor, LOCKED_BYTE, os.SEEK_SET)  # a locked range cannot be read by others there
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    import fcntl

    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # of a file system without locks
        return True
    return True


def _acquire(path: str, folder: str, array: str | None) -> int:
    """A locked descriptor of the file that has this name now."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        descriptor = _opened(path, folder)
        if _take_for(descriptor, array):
            if _has_name(descriptor, path):
                return descriptor
        elif time.monotonic() > until:
            holder = _holder(descriptor)
            os.close(descriptor)
            raise ImageWriteError(
                f"{folder}: another batch is writing there{holder}: wait until it has ended, or choose another folder."
            )
        os.close(descriptor)  # the last batch removed it between opening and locking, or still holds it
        time.sleep(PAUSE_SECONDS)


def _take_for(descriptor: int, array: str | None) -> bool:
    """Lock the file for a whole batch, or for a share together with the other shares of its array."""
    if take(descriptor):
        _write_down(descriptor, array)
        if array is None:
            return True
    # Changing from one kind of lock to the other releases it for a moment, in which another share may record its array.
    return array is not None and take(descriptor, shared=True) and _array_in(descriptor) in (None, array)


def _opened(path: str, folder: str) -> int:
    try:
        try:
            return regular_descriptor(path, os.O_RDWR | os.O_CREAT)
        except PermissionError:  # created by another user of a shared folder
            return regular_descriptor(path, os.O_RDONLY)
    except ForeignFileError as error:
        raise ImageWriteError(f"{path}: {error}: remove it, or choose another folder with -o.") from None
    except OSError as error:
        raise ImageWriteError(f"Output folder '{folder}' cannot be written to: {error.strerror}.") from None


def _has_name(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except OSError:
        return False


def _release(path: str, descriptor: int) -> None:
    """Release the lock, and remove the file unless other shares still need it."""
    if take(descriptor) and _has_name(descriptor, path):
        with suppress(OSError):  # Windows removes no file that is open
            Path(path).unlink()
    os.close(descriptor)


def _write_down(descriptor: int, array: str | None) -> None:
    """Record which array and process this is; used for messages, and to match shares."""
    content = json.dumps({"array": array, "process": os.getpid(), "machine": platform.node()})
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, content.encode("ascii"))


def _read(descriptor: int) -> dict[str, object]:
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        content = json.loads(os.read(descriptor, MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _array_in(descriptor: int) -> str | None:
    array = _read(descriptor).get("array")
    return array if isinstance(array, str) else None


def _holder(descriptor: int) -> str:
    """The recorded process as a phrase; the content is not trusted."""
    content = _read(descriptor)
    process, machine = content.get("process"), content.get("machine")
    if not isinstance(process, int) or not 0 < process < 2**32 or not isinstance(machine, str):
        return ""
    return f" (process {process} on {re.sub(r'[^0-9A-Za-z.-]', '?', machine)[:64]})"
