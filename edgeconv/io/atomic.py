"""Atomic writing: no output file is ever half-written, and `-` is standard output.

An output is written to a temporary file in the same folder and then moved over its name in one step, so that a crash, a
full disk or Ctrl-C leaves what was there before. The new file gets the permissions of the one that it replaces. Where
nothing may be replaced, the name is taken in a step that fails if it exists by then.

    .edgeconv-<place>-<process id>-<random>.tmp     beside the file that it will replace

The name of a temporary file tells whether a killed process left it behind. `place` is a hash of the host name and, on
Linux, of the process namespace: only there is the process id meaningful. Two containers that share a folder have
different places even where their host names are equal.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from edgeconv.errors import ImageWriteError, ReaderGoneError
from edgeconv.hardware.system_files import read_system_link
from edgeconv.io.files import is_device, is_standard_stream, reason_of

TEMPORARY_NAME = re.compile(r"\.edgeconv-(?P<place>[0-9a-f]{8})-(?P<process>\d+)-[0-9a-f]{12}\.tmp")

STALE_SECONDS = 24 * 3600
"""No write takes this long: a temporary file of this age is left over, wherever its process ran."""

_being_written: set[Path] = set()
"""The temporary files of this process."""


class NameTakenError(ImageWriteError):
    """A file that must not be replaced exists, although it did not a moment ago."""


def make_folder(folder: Path | str) -> None:
    """Make sure that there is such a folder for outputs. Raises ImageWriteError."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = reason_of(error)
        raise ImageWriteError(f"Output folder '{folder}' cannot be made: {reason}: choose another place.") from None


def write_bytes_atomically(
    path: Path | str, data: bytes | memoryview, *, replace: bool = True, mode_of: Path | None = None
) -> None:
    """Write `data` to `path`, or to standard output for `-`, completely or not at all.

    A link is followed and its target replaced; a device or pipe is written to directly. The parent folder must exist.
    The file gets the permissions of the one that it replaces, or of `mode_of`. Raises ImageWriteError, and
    NameTakenError where the file exists and `replace` is not set.
    """
    if is_standard_stream(path) or is_device(path):
        write_directly(path, data)
        return
    with reporting_errors(path):
        if os.path.isdir(path):
            raise ImageWriteError(f"{path}: is a folder: name a file in it.")
    write_beside(path, data, replace=replace, mode_of=mode_of)


def write_beside(
    path: Path | str, data: bytes | memoryview, *, replace: bool = True, mode_of: Path | None = None
) -> None:
    """The same for what is known to be neither a stream, nor a device, nor a folder."""
    with reporting_errors(path):
        file = NewFile(path)
        try:
            file.fill(data, mode_of)
            file.put(replace)
        finally:
            file.discard()


def write_directly(path: Path | str, data: bytes | memoryview) -> None:
    """Write to standard output (`-`), or to a device or pipe, which no file may replace. Raises ImageWriteError."""
    with reporting_errors(path):
        if not is_standard_stream(path):
            Path(path).write_bytes(data)
        elif sys.stdout is None:  # the descriptor was closed before Python started
            raise ImageWriteError("Standard output is closed: name a file with -o.")
        else:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()


@contextmanager
def reporting_errors(path: Path | str) -> Iterator[None]:
    """Errors of the system in the block become one line about `path`."""
    try:
        yield
    except (OSError, ValueError) as error:
        folder = Path(path).parent
        if isinstance(error, FileNotFoundError) and not folder.exists():
            raise ImageWriteError(f"{path}: the folder {folder} does not exist: create it first.") from None
        name = "Standard output" if is_standard_stream(path) else f"{path}:"
        said = f"{name} cannot be written ({reason_of(error)}): choose another place."
        if isinstance(error, BrokenPipeError):
            raise ReaderGoneError(said) from None
        if isinstance(error, FileExistsError):
            raise NameTakenError(said) from None
        raise ImageWriteError(said) from None


def pass_permissions_on(replaced: Path | str, path: Path | str) -> None:
    """Give `path`, which will replace `replaced`, the permissions of that, if it exists. Raises OSError."""
    with suppress(FileNotFoundError, PermissionError):  # the second of a file system without permissions
        os.chmod(path, stat.S_IMODE(os.stat(replaced).st_mode) & 0o777)


class NewFile:
    """A file or folder under a temporary name beside its place, until `put` moves it there or `discard` removes it.

    Errors are the system's own; `reporting_errors` makes lines of them.
    """

    def __init__(self, path: Path | str) -> None:
        """Writes nothing yet; `self.path` is the temporary name, which the caller may write to instead of `fill`."""
        # Where a link leads may be another disk.
        self._target = Path(os.path.realpath(path) if os.path.islink(path) else path)
        self.path = self._target.with_name(temporary_name())
        _being_written.add(self.path)

    def fill(self, data: bytes | memoryview, mode_of: Path | None = None) -> None:
        """Write its content to the disk, with the permissions of the file that it replaces, or of `mode_of`."""
        mode: int | None = None
        with suppress(FileNotFoundError):
            mode = stat.S_IMODE(os.stat(mode_of or self._target).st_mode) & 0o777
        # Nobody looks into it before it has its permissions.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        descriptor = os.open(self.path, flags, 0o666 if mode is None else 0o600)
        try:
            if mode is not None:
                with suppress(PermissionError):  # of a file system without permissions
                    os.chmod(self.path, mode)
            rest = memoryview(data).cast("B")
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def put(self, replace: bool) -> int:
        """Move it into place; its bytes (0 of a folder). Raises FileExistsError where something is there to be kept."""
        found = os.stat(self.path)
        if stat.S_ISDIR(found.st_mode):
            self._put_folder(replace)
            return 0
        size = found.st_size
        if not replace:
            with suppress(OSError):  # the name is taken, or the file system has no links
                os.link(self.path, self._target)
                return size
            _refuse_existing(self._target)
        os.replace(self.path, self._target)
        return size

    def _put_folder(self, replace: bool) -> None:
        """A folder replaces another in two steps: that is moved aside, and removed once the new one is in place.

        Its name aside is that of no left-over, so that it is not lost where the process is killed between the two.
        """
        aside = self._target.with_name(f"{self._target.name}.replaced-{_letters()}")
        if not replace:
            _refuse_existing(self._target)
        elif self._target.exists():
            os.rename(self._target, aside)
        try:
            os.rename(self.path, self._target)
        except OSError:
            if aside.exists():
                os.rename(aside, self._target)
            raise
        if aside.exists():
            with suppress(OSError):
                os.rename(aside, self.path)  # what remains of it is a left-over, which `discard` removes

    def take_back(self) -> None:
        """Remove what `put` moved to a name that was free."""
        with suppress(OSError):
            _remove(self._target)

    def discard(self) -> None:
        """Remove it, or after `put` its second link or what it replaced; harmless where there is nothing."""
        with suppress(OSError):
            _remove(self.path)
        _being_written.discard(self.path)


def _refuse_existing(target: Path) -> None:
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))


# --- temporary names ------------------------------------------------------------------------------------------------


def temporary_name() -> str:
    """A name that tells which process it belongs to."""
    return f".edgeconv-{_place()}-{os.getpid()}-{_letters()}.tmp"


def remove_being_written() -> None:
    """Remove what this process is writing, just before the process is terminated."""
    for temporary in tuple(_being_written):
        with suppress(OSError):
            _remove(temporary)


def remove_left_over_in(folder: Path) -> list[Path]:
    """Remove the temporary files in `folder` that no running process is writing; returns what was removed."""
    removed = []
    for path in sorted(folder.glob(".edgeconv-*.tmp")):
        with suppress(OSError):  # gone in the meantime, or without permission: it does no harm
            if _is_left_over(path):
                _remove(path)
                removed.append(path)
    return removed


def _is_left_over(path: Path) -> bool:
    """Whether its process has ended, or it is old. Raises OSError where it is gone."""
    parts = TEMPORARY_NAME.fullmatch(path.name)
    if parts is None:
        return False
    has_ended = parts["place"] == _place() and not _lives(int(parts["process"]))
    return has_ended or time.time() - path.stat().st_mtime > STALE_SECONDS


def _lives(process: int) -> bool:
    """Whether the process exists."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it belongs to another user
        return True
    return True


def _letters() -> str:
    """Of a name that nobody else has or can guess."""
    return os.urandom(6).hex()


@cache
def _place() -> str:
    place = os.uname().nodename + (read_system_link("/proc/self/ns/pid") or "")
    return f"{zlib.crc32(os.fsencode(place)):08x}"


def _remove(temporary: Path) -> None:
    """Remove a temporary file, or the folder of a Zarr. Raises OSError."""
    try:
        os.unlink(temporary)
    except (IsADirectoryError, PermissionError):  # systems differ in what they say of a folder
        shutil.rmtree(temporary)
