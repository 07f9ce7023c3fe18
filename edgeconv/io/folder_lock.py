"""One batch at a time in an output folder: two would refuse each other's results as foreign, or replace them.

`diff --update` counts as a batch for the folder that it changes.

    edgeconv-ledger.lock                  held as long as a batch runs
    edgeconv-ledger-<array>-<n>.lock      held as long as the n-th share (`--shard`) of a job array runs: different
                                          shares of one array work together, and all else is refused

Each takes its own lock first and then looks whether any that it may not work beside is held: of two that begin at once
at least one sees the other. The locks are those of the system (package filelock), which releases the ones of a process
that is killed. Where a file system has no locks, or the output is a remote store, there is no exclusion; an output that
appears meanwhile is not replaced there either (batch/process.py).
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from edgeconv.errors import ImageWriteError

LOCK_NAME = "edgeconv-ledger.lock"
ALL_NAMES = "edgeconv-ledger*.lock"

PATIENCE_SECONDS = 1.0
"""`verify` holds a lock for a moment to test whether a batch does, and so does another batch that begins."""
PAUSE_SECONDS = 0.02
"""Between tries."""


@contextmanager
def one_batch_in(folder: str, array: str | None = None, share: int = 1) -> Iterator[None]:
    """Lock `folder` against other batches during the block, except for other shares of the same `array`.

    Raises ImageWriteError where another batch is running there.
    """
    own, beside = LOCK_NAME, LOCK_NAME
    if array is not None:
        beside = f"edgeconv-ledger-{hashlib.sha256(array.encode()).hexdigest()[:16]}-"
        own = f"{beside}{share}.lock"
    with _held(os.path.join(folder, own), folder, PATIENCE_SECONDS):
        for other in Path(folder).glob(ALL_NAMES):
            if not other.name.startswith(beside):
                with _held(str(other), folder, PATIENCE_SECONDS):  # one that a killed batch left is removed
                    pass
        yield


def is_held(folder: str) -> bool:
    """Whether a batch is running in a local folder, as far as its file system can tell."""
    for place in filter(Path.is_file, Path(folder).glob(ALL_NAMES)):
        try:
            with _held(str(place), folder, 0):
                pass
        except ImageWriteError:
            return True
    return False


@contextmanager
def _held(path: str, folder: str, patience: float) -> Iterator[None]:
    """Hold the lock of one file, which is removed while it is held. Raises ImageWriteError."""
    from filelock import FileLock, Timeout

    with suppress(OSError):
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise ImageWriteError(f"{path}: is not a plain file: remove it, or choose another folder with -o.")
    lock = FileLock(path, timeout=patience)
    try:
        lock.acquire(poll_interval=PAUSE_SECONDS)
    except Timeout:
        raise ImageWriteError(
            f"{folder}: another batch is writing there: wait until it has ended, or choose another folder."
        ) from None
    except OSError as error:
        if not os.access(folder, os.W_OK):
            raise ImageWriteError(f"Output folder '{folder}' cannot be written to: {error.strerror}.") from None
        yield  # a file system without locks
        return
    try:
        yield
    finally:
        with suppress(OSError):
            os.unlink(path)
        lock.release()
