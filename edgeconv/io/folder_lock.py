"""One batch at a time in an output folder: two would take each other's results for strangers', or replace them.

`diff --update` counts as one for the folder that it changes.

    edgeconv-ledger.lock        locked by the system as long as a batch runs, and removed by the last one that ends

A whole batch locks it for itself. The shares of one array of jobs (`--shard`) lock it together: the first writes down
which array that is, and the shares of another array are refused. The system lets go of the lock of a process that is
killed, so that nothing need be cleared away. Where a file system has no locks, or the output is a remote store, nobody
is kept out; an output that appears meanwhile is not replaced there either (batch/work.py).
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
"""Of what is written into the file."""

LOCKED_BYTE = 2**40
"""Behind the end of any ledger."""

PATIENCE_SECONDS = 1.0
"""A verification holds the lock for a moment to see whether a batch does, and a share to write down its array."""
PAUSE_SECONDS = 0.02


@contextmanager
def one_batch_in(folder: str, array: str | None) -> Iterator[None]:
    """Keep other batches out of `folder` as long as the block lasts, but for the shares of the same `array`.

    Raises ImageWriteError where another batch is at work there.
    """
    path = os.path.join(folder, LOCK_NAME)
    descriptor = _acquire(path, folder, array)
    try:
        yield
    finally:
        _release(path, descriptor)


def is_held(folder: str) -> bool:
    """Whether a batch is at work in a folder of this machine, as far as its file system tells."""
    try:
        descriptor = regular_descriptor(os.path.join(folder, LOCK_NAME), os.O_RDONLY)
    except (OSError, ForeignFileError):
        return False
    try:
        return not take(descriptor)
    finally:
        os.close(descriptor)


def take(descriptor: int, shared: bool = False) -> bool:
    """Lock an open file without waiting, alone or together with others; False where somebody else has it.

    True as well where the file system has no locks. Closing the file lets go of it.
    """
    if sys.platform == "win32":
        import msvcrt

        if shared:  # there is no such lock
            return True
        os.lseek(descriptor, LOCKED_BYTE, os.SEEK_SET)  # nobody else can read what is locked there
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
        os.close(descriptor)  # the last batch removed it between our opening and locking it, or still has it
        time.sleep(PAUSE_SECONDS)


def _take_for(descriptor: int, array: str | None) -> bool:
    """Lock the file for a whole batch, or for a share together with the other shares of its array."""
    if take(descriptor):
        _write_down(descriptor, array)
        if array is None:
            return True
    # Who goes from the one lock to the other lets go for a moment, in which somebody else may write down his array.
    return array is not None and take(descriptor, shared=True) and _array_in(descriptor) in (None, array)


def _opened(path: str, folder: str) -> int:
    try:
        try:
            return regular_descriptor(path, os.O_RDWR | os.O_CREAT)
        except PermissionError:  # made by somebody else, with whom the folder is shared
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
    """Let go, and remove the file unless other shares still need it."""
    if take(descriptor) and _has_name(descriptor, path):
        with suppress(OSError):  # Windows removes no file that is open
            Path(path).unlink()
    os.close(descriptor)


def _write_down(descriptor: int, array: str | None) -> None:
    """Who is at work here; only words for messages depend on it, and which shares belong together."""
    words = json.dumps({"array": array, "process": os.getpid(), "machine": platform.node()})
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, words.encode("ascii"))


def _read(descriptor: int) -> dict[str, object]:
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        words = json.loads(os.read(descriptor, MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return words if isinstance(words, dict) else {}


def _array_in(descriptor: int) -> str | None:
    array = _read(descriptor).get("array")
    return array if isinstance(array, str) else None


def _holder(descriptor: int) -> str:
    """The process that wrote itself down, as a phrase; anybody may have written anything there."""
    words = _read(descriptor)
    process, machine = words.get("process"), words.get("machine")
    if not isinstance(process, int) or not 0 < process < 2**32 or not isinstance(machine, str):
        return ""
    return f" (process {process} on {re.sub(r'[^0-9A-Za-z.-]', '?', machine)[:64]})"
