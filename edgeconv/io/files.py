"""Reading and atomic writing of files: `-` is standard input or output, and no output file is ever half-written.

An output is written to a temporary file in the same folder and then moved over its name in one step (`os.replace`), so
that a crash, a full disk or Ctrl-C leaves what was there before. The new file gets the permissions of the one that it
replaces. Where nothing may be replaced, the name is taken in a step that fails if it exists by then.

Text may contain what a file cannot: a name that is not valid text has a lone surrogate for each invalid byte, and XML
has no control characters. They are written as Python's escapes, which are visible; JSON reads a surrogate back.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import stat
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from edgeconv.errors import ImageReadError, ImageWriteError, ReaderGoneError
from edgeconv.io import temporary_files

STANDARD_STREAM = "-"
PIPE_INTO_IT = "pipe a picture into it, or name a file"
IS_A_FOLDER = "is a folder: name a picture in it, or use 'edgeconv batch' for all of its pictures"

PIECE_BYTES = 2**20
"""Of a file that is not read whole, held at once."""
SMALL_BYTES = 2**20
"""Most bytes of a kernel or grid file, which people write by hand."""
RECORD_BYTES = 2**28
"""Most bytes of a report or a record, which edgeconv writes."""
XZ_MAGIC = b"\xfd7zXZ\x00"
XZ_MEMORY_BYTES = 2**27
"""Of the decompressor: twice what `xz -9` asks for."""
PERMISSIONS = 0o777
"""The permission bits that a new file takes over from the one that it replaces."""

MOST_BYTES_A_WRITE = 2**30
"""Linux takes 2 GiB at once, and other systems less."""

WITHOUT_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
"""Errors of file systems without hard links (FAT, some network shares)."""

_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Source: XML 1.0, fifth edition, production 2 (Char)."""


def is_standard_stream(path: Path | str) -> bool:
    """Whether `path` is `-`."""
    return str(path) == STANDARD_STREAM


@contextmanager
def opened(source: Path | str) -> Iterator[tuple[IO[bytes], int | None]]:
    """A file, or standard input for `-`, open for reading, and how many bytes are left in it.

    The size is None where it is unknown before reading: of a pipe or a device, which may have no end, and of a file
    that the system generates on the fly. Read errors inside the block become ImageReadError too.
    """
    try:
        if is_standard_stream(source):
            stream = _standard_input()
            yield stream, _size_of(stream)
            return
        with Path(source).open("rb") as stream:
            yield stream, _size_of(stream)
    except FileNotFoundError:
        raise ImageReadError(f"{source}: there is no such file: check the name.") from None
    except IsADirectoryError:
        raise ImageReadError(f"{source}: {IS_A_FOLDER}.") from None
    except (OSError, ValueError) as error:
        if is_standard_stream(source):
            raise ImageReadError(f"Standard input cannot be read ({reason_of(error)}): {PIPE_INTO_IT}.") from None
        raise ImageReadError(
            f"{source}: cannot be read ({reason_of(error)}): check its name and permissions."
        ) from None


def empty(source: Path | str) -> ImageReadError:
    """The error for a file or stream of 0 bytes."""
    if is_standard_stream(source):
        return ImageReadError(f"Standard input is empty: {PIPE_INTO_IT}.")
    return ImageReadError(f"{source}: the file is empty (0 bytes): export or download it again.")


def read_bytes(source: Path | str, limit: int) -> bytes:
    """All of a file other than a picture, or of standard input for `-`. Raises ImageReadError, also above `limit`."""
    with opened(source) as (stream, size):
        most = limit + 1 if size is None else size
        data = b"" if most > limit + 1 else stream.read(most)
    if max(most if size is not None else 0, len(data)) > limit:
        name = "Standard input" if is_standard_stream(source) else source
        raise ImageReadError(f"{name}: has more than {limit:,} bytes: use a smaller file.")
    if not data:
        raise empty(source)
    return data


def are_same(one: Path | str, other: Path | str) -> bool:
    """Whether two files hold the same bytes, and some: they are compared in pieces. Raises ImageReadError."""
    with opened(one) as (left, size), opened(other) as (right, other_size):
        if size is None or size != other_size:
            return False
        return all(left.read(PIECE_BYTES) == right.read(PIECE_BYTES) for _ in range(0, size, PIECE_BYTES))


def read_small_bytes(path: Path, limit: int, *, plain: bool = True) -> bytes:
    """All of a file of `limit` bytes at most, unpacked where xz packed it; `plain` refuses a pipe or a device.

    Either may have no end, and a pipe may have no writer. Raises OSError, and ValueError with a message for a person.
    """
    # non-blocking, as opening a pipe without a writer would never return
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | (os.O_NONBLOCK if plain else 0))) as stream:
        if plain and not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise ValueError("it is a pipe or a device, and must be a plain file")
        data = stream.read(limit + 1)
    if data.startswith(XZ_MAGIC):
        data = _unpacked(data, limit + 1)
    if len(data) > limit:
        raise ValueError(f"it has more than {limit:,} bytes")
    return data


def read_text(path: Path, limit: int, *, plain: bool = True) -> str:
    """The text of a file in UTF-8; otherwise as `read_small_bytes`."""
    data = read_small_bytes(path, limit, plain=plain)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("not UTF-8 text") from None


def _unpacked(data: bytes, most: int) -> bytes:
    """The first `most` bytes of what xz packed. Raises ValueError where it is damaged or cut short."""
    import lzma  # a Python built from source may lack it

    unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY_BYTES)
    try:
        text = unpacker.decompress(data, most)
    except lzma.LZMAError as error:
        raise ValueError(f"xz cannot unpack it: {error}") from None
    if not unpacker.eof and len(text) < most:
        raise ValueError("xz cannot unpack it: it is cut short")
    return text


def parse_json(text: str) -> Any:
    """The value of a JSON text. Raises ValueError, also for nesting deeper than Python's recursion limit."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def special_file_problem(path: Path | str) -> str | None:
    """Why a file found by a search must not be read: a pipe, a socket or a device may never end."""
    try:
        kind = os.stat(path).st_mode
    except (OSError, ValueError):  # reported when it is read
        return None
    if stat.S_ISREG(kind):
        return None
    what = "a pipe" if stat.S_ISFIFO(kind) else "a socket" if stat.S_ISSOCK(kind) else "not a plain file"
    return f"{path}: is {what} although its name is that of a picture: remove it, or name it explicitly to read it."


class NameTakenError(ImageWriteError):
    """A file that must not be replaced exists, although it did not a moment ago."""


def is_device(path: Path | str) -> bool:
    """Whether `path` is a device, a pipe or a socket, which is written to directly, with no file beside it."""
    try:
        kind = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(kind) and not stat.S_ISDIR(kind)


def make_folder(folder: Path | str) -> None:
    """Make sure that there is such a folder for outputs. Raises ImageWriteError."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        return
    except FileExistsError:
        reason = "there is a file of that name"
    except (FileNotFoundError, NotADirectoryError):  # as in /proc, where no folder can be made
        there = next(above for above in Path(folder).absolute().parents if os.path.lexists(above))
        reason = f"nothing can be made in {there}" if there.is_dir() else f"{there} is not a folder"
    except (OSError, ValueError) as error:
        reason = reason_of(error)
    raise ImageWriteError(f"Output folder '{folder}' cannot be made: {reason}: choose another place.")


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
        file = NewFile(path)
        try:
            file.fill(data, mode_of)
            file.put(replace)
        finally:
            file.discard()


def write_directly(path: Path | str, data: bytes | memoryview) -> None:
    """Write to standard output (`-`), or to a device or pipe, which no file may replace. Raises ImageWriteError."""
    if is_standard_stream(path):
        _write_to_standard_output(data)
        return
    with reporting_errors(path):
        Path(path).write_bytes(data)


@contextmanager
def reporting_errors(path: Path | str) -> Iterator[None]:
    """Errors of the system in the block become one line about `path`."""
    place = Path(path)
    try:
        yield
    except BrokenPipeError as error:
        raise ReaderGoneError(f"{path}: cannot be written ({reason_of(error)}).") from None
    except FileExistsError:
        raise NameTakenError(f"{path}: was created by another process in the meantime.") from None
    except FileNotFoundError:
        if place.parent.is_dir():  # as in /proc, where nothing can be made
            raise ImageWriteError(f"{path}: no file can be made in {place.parent}: choose another place.") from None
        raise ImageWriteError(f"{path}: the folder {place.parent} does not exist: create it first.") from None
    except NotADirectoryError:
        raise ImageWriteError(f"{path}: {Path(path).parent} is not a folder: choose another place.") from None
    except (OSError, ValueError) as error:
        raise ImageWriteError(f"{path}: cannot be written ({reason_of(error)}): choose another place.") from None


def permissions(path: Path | str) -> int | None:
    """The permission bits of a file; None where it does not exist."""
    try:
        return stat.S_IMODE(os.stat(path).st_mode) & PERMISSIONS
    except OSError:
        return None


def pass_permissions_on(replaced: Path | str, path: Path | str) -> None:
    """Give `path`, which will replace `replaced`, the permissions of that, if it exists. Raises OSError."""
    mode = permissions(replaced)
    if mode is not None:
        with suppress(PermissionError):
            os.chmod(path, mode)


def refuse_overwrite(source: Path | str, destination: Path | str) -> None:
    """Raise ImageWriteError where writing `destination` would replace the input `source`, or that is unknown."""
    if is_same_file(source, destination):
        raise ImageWriteError(f"{destination}: is the input itself: choose another name or folder for the output.")


def names_a_folder(output: str) -> bool:
    """Whether an output is a folder, there or to be made."""
    return output.endswith(("/", "\\")) or os.path.isdir(output) or not Path(output).suffix


def as_compared(name: str) -> str:
    """A name as file systems may compare it: ignoring case and the encoding of accents."""
    return unicodedata.normalize("NFC", name).casefold()


def is_same_file(source: Path | str, destination: Path | str) -> bool:
    """Whether both names lead to one file; False for a standard stream or a missing file.

    Raises ImageWriteError for names that the system refuses.
    """
    if is_standard_stream(source) or is_standard_stream(destination):
        return False
    try:
        return os.path.samefile(source, destination)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        raise ImageWriteError(f"{destination}: cannot be written ({reason_of(error)}): choose another place.") from None


def utf8(text: str) -> bytes:
    """Text encoded for a file; a lone surrogate as `\\udcff`."""
    return text.encode(errors="backslashreplace")


def xml_text(text: str) -> str:
    """Text with characters that XML 1.0 does not allow written as `\\x01` or `\\udcff`."""
    return _NOT_IN_XML.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def _standard_input() -> IO[bytes]:
    if sys.stdin is None:  # the descriptor was closed before Python started
        raise ImageReadError(f"Standard input is closed: {PIPE_INTO_IT}.")
    if sys.stdin.isatty():
        raise ImageReadError(f"Standard input is a terminal: {PIPE_INTO_IT}.")
    return sys.stdin.buffer


def _size_of(stream: IO[bytes]) -> int | None:
    """The bytes from here to the end of a plain file; None for other kinds and where the system states no size."""
    try:
        found = os.fstat(stream.fileno())
        return max(0, found.st_size - stream.tell()) or None if stat.S_ISREG(found.st_mode) else None
    except OSError:  # no descriptor behind it
        return None


class NewFile:
    """A file or folder under a temporary name beside its place, until `put` moves it there or `discard` removes it.

    Errors are the system's own; `reporting_errors` makes lines of them.
    """

    def __init__(self, path: Path | str) -> None:
        """Writes nothing yet; `self.path` is the temporary name, which the caller may write to instead of `fill`."""
        self._target = Path(os.path.realpath(path))  # where a link leads may be another disk
        self.path = temporary_files.begin(self._target)

    def fill(self, data: bytes | memoryview, mode_of: Path | None = None) -> None:
        """Write its content to the disk, with the permissions of the file that it replaces, or of `mode_of`."""
        _write_new(self.path, data, permissions(mode_of or self._target))

    def put(self, replace: bool) -> int:
        """Move it into place; its bytes (0 of a folder). Raises FileExistsError where something is there to be kept."""
        if self.path.is_dir():
            self._put_folder(replace)
            return 0
        size = os.stat(self.path).st_size
        if replace:
            os.replace(self.path, self._target)
        else:
            take_name(self.path, self._target)
        return size

    def _put_folder(self, replace: bool) -> None:
        """A folder replaces another in two steps: that is moved aside, and removed once the new one is in place.

        Its name aside is that of no left-over, so that it is not lost where the process is killed between the two.
        """
        aside = self._target.with_name(f"{self._target.name}.replaced-{secrets.token_hex(6)}")
        try:
            if replace and self._target.exists():
                os.rename(self._target, aside)
            os.rename(self.path, self._target)
        except OSError as error:
            if aside.exists() and not self._target.exists():
                os.rename(aside, self._target)
            if error.errno == errno.ENOTEMPTY:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(self._target)) from None
            raise
        if os.path.lexists(aside):
            with suppress(OSError):
                os.rename(aside, self.path)  # what remains of it is a left-over, which `discard` removes

    def take_back(self) -> None:
        """Remove what `put` moved to a name that was free."""
        with suppress(OSError):
            temporary_files.remove(self._target)

    def discard(self) -> None:
        """Remove it unless it was put; harmless after `put`."""
        with suppress(OSError):
            temporary_files.remove(self.path)
        temporary_files.end(self.path)


def _write_new(path: Path, data: bytes | memoryview, mode: int | None) -> None:
    """Create a file with `data`, flushed to the disk; with `mode` it is private until it has those permissions."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o666 if mode is None else 0o600)
    try:
        rest = memoryview(data).cast("B")
        while rest:
            rest = rest[os.write(descriptor, rest[:MOST_BYTES_A_WRITE]) :]
        if mode is not None:
            with suppress(PermissionError):  # of a file system without permissions
                os.chmod(path, mode)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def take_name(temporary: Path, target: Path) -> None:
    """Rename a file to a name that must be free. Raises FileExistsError."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in WITHOUT_LINKS:
            raise
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        os.replace(temporary, target)  # another process may still take the name between the two
        return
    with suppress(OSError):  # a second link to the output, which the next run removes
        temporary.unlink()


def _write_to_standard_output(data: bytes | memoryview) -> None:
    if sys.stdout is None:
        raise ImageWriteError("Standard output is closed: name a file with -o.")
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        kind = ReaderGoneError if isinstance(error, BrokenPipeError) else ImageWriteError
        raise kind(f"Standard output cannot be written ({reason_of(error)}).") from None


def reason_of(error: OSError | ValueError) -> str:
    """The system's message without its number and path."""
    text = error.strerror if isinstance(error, OSError) else str(error)
    return text or type(error).__name__
