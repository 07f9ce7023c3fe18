"""One batch at a time in an output folder: two would refuse each other's results as foreign, or replace them.

`diff --update` counts as a batch for the folder that it changes.

    edgeconv-ledger.lock                  held as long as a batch runs
    edgeconv-ledger-<array>-<n>.lock      held as long as the n-th share (`--shard`) of a job array runs: different
                                          shares of one array work together, and all else is refused

The locks are those of the system (package filelock), which releases the ones of a process that is killed. Where a file
system has no locks, or the output is a remote store, there is no exclusion; an output that appears meanwhile is not
replaced there either (batch/process.py).
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from edgeconv.errors import ImageWriteError

LOCK_NAME = "edgeconv-ledger.lock"
SHARE_NAMES = "edgeconv-ledger-*.lock"

PATIENCE_SECONDS = 1.0
"""`verify` holds a lock for a moment to test whether a batch does, and so does a share that begins."""
PAUSE_SECONDS = 0.02
"""Between tries."""


@contextmanager
def one_batch_in(folder: str, array: str | None = None, share: int = 1) -> Iterator[None]:
    """Lock `folder` against other batches during the block, except for other shares of the same `array`.

    Raises ImageWriteError where another batch is running there.
    """
    with ExitStack() as gate, ExitStack() as own:
        gate.enter_context(_held(os.path.join(folder, LOCK_NAME), folder))
        mark = "" if array is None else f"edgeconv-ledger-{hashlib.sha256(array.encode()).hexdigest()[:16]}-"
        for other in Path(folder).glob(SHARE_NAMES):
            if not mark or not other.name.startswith(mark):
                with _held(str(other), folder):  # one that a killed share left is removed
                    pass
        if mark:
            own.enter_context(_held(os.path.join(folder, f"{mark}{share}.lock"), folder))
            gate.close()
        yield


def is_held(folder: str) -> bool:
    """Whether a batch is running in a local folder, as far as its file system can tell."""
    for place in filter(Path.is_file, (Path(folder, LOCK_NAME), *Path(folder).glob(SHARE_NAMES))):
        try:
            with _held(str(place), folder, patience=0):
                pass
        except ImageWriteError:
            return True
    return False


@contextmanager
def _held(path: str, folder: str, patience: float = PATIENCE_SECONDS) -> Iterator[None]:
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
