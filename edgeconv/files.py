"""Bytes in and out, all or nothing: `-` is standard input or output, and no output file is ever half-written.

An output is written to a temporary file in its own folder and then moved over its name in one step
(`os.replace`), so that a crash, a full disk or Ctrl-C leaves what was there before.

Text may hold what a file cannot: a name that is no text has a lone surrogate for each odd byte, and XML has no control
characters. They are written as Python's escapes: a person sees them, and that of a surrogate JSON reads back.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from edgeconv import temporaries
from edgeconv.errors import ImageReadError, ImageWriteError

STANDARD_STREAM = "-"
PIPE_INTO_IT = "pipe a picture into it, or name a file"

SMALL_BYTES = 2**20
"""Of a kernel or a grid, which a person writes by hand."""
RECORD_BYTES = 2**28
"""Of a report or a record, which edgeconv writes."""
NO_WAITING = getattr(os, "O_NONBLOCK", 0)

_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Source: XML 1.0, fifth edition, production 2 (Char)."""


def is_standard_stream(path: Path | str) -> bool:
    """Whether `path` is `-`."""
    return str(path) == STANDARD_STREAM


@contextmanager
def opened(source: Path | str) -> Iterator[tuple[IO[bytes], int | None]]:
    """A file, or standard input for `-`, open for reading, and how many bytes are left in it; None where only reading
    tells: a pipe or a device, which may have no end, or a file that the system makes up as it is read.

    What goes wrong in the block while it is read is ImageReadError too.
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
        raise ImageReadError(f"{source}: is a folder: name a picture in it.") from None
    except (OSError, ValueError) as error:
        if is_standard_stream(source):
            raise ImageReadError(f"Standard input cannot be read ({reason_of(error)}): {PIPE_INTO_IT}.") from None
        if os.path.isdir(source):  # Windows answers PermissionError for a folder
            raise ImageReadError(f"{source}: is a folder: name a picture in it.") from None
        raise ImageReadError(
            f"{source}: cannot be read ({reason_of(error)}): check its name and permissions."
        ) from None


def empty(source: Path | str) -> ImageReadError:
    """The error for a file or stream of 0 bytes."""
    if is_standard_stream(source):
        return ImageReadError(f"Standard input is empty: {PIPE_INTO_IT}.")
    return ImageReadError(f"{source}: the file is empty (0 bytes): export or download it again.")


def read_bytes(source: Path | str, limit: int) -> bytes:
    """All of a file, or of standard input for `-`, that is no picture. Raises ImageReadError, also above `limit`."""
    with opened(source) as (stream, size):
        most = limit + 1 if size is None else size
        data = b"" if most > limit + 1 else stream.read(most)
    if max(most if size is not None else 0, len(data)) > limit:
        name = "Standard input" if is_standard_stream(source) else source
        raise ImageReadError(f"{name}: has more than {limit:,} bytes: use a smaller file.")
    if not data:
        raise empty(source)
    return data


def read_text(path: Path, limit: int, *, plain: bool = True) -> str:
    """The text of a file in UTF-8 with `limit` bytes at most; `plain` refuses a pipe or a device.

    Either may have no end, and a pipe nobody who writes to it. Raises OSError and ValueError with words for a person.
    """
    # without waiting, or opening a pipe that nobody writes to would never return
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | (NO_WAITING if plain else 0))) as stream:
        if plain and not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise ValueError("it is a pipe or a device, and must be a plain file")
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise ValueError(f"it has more than {limit:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("not UTF-8 text") from None


def parse_json(text: str) -> Any:
    """What a JSON text holds. Raises ValueError, also where it is nested deeper than Python follows."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_own_json(path: Path) -> Any:
    """What a JSON file holds that edgeconv itself writes. Raises OSError, ValueError."""
    return parse_json(read_text(path, RECORD_BYTES))


def special_file_problem(path: Path | str) -> str | None:
    """Why a file that a search came upon must not be read: a pipe, a socket or a device may never end."""
    try:
        kind = os.stat(path).st_mode
    except (OSError, ValueError):  # whoever reads it says why it cannot be read
        return None
    if stat.S_ISREG(kind):
        return None
    what = "a pipe" if stat.S_ISFIFO(kind) else "a socket" if stat.S_ISSOCK(kind) else "no plain file"
    return f"{path}: is {what} with a picture's name: remove it, or name it by itself if it is meant."


def write_bytes_atomically(path: Path | str, data: bytes | memoryview) -> None:
    """Write `data` to `path`, or to standard output for `-`, completely or not at all.

    A link is followed and its target replaced; a device or pipe is written to as it is. The parent folder
    must exist. Raises ImageWriteError.
    """
    if is_standard_stream(path):
        _write_to_standard_output(data)
        return
    try:
        place = Path(path)
        if place.exists() and not stat.S_ISREG(place.stat().st_mode):
            if place.is_dir():
                raise ImageWriteError(f"{path}: is a folder: name a file in it.")
            place.write_bytes(data)  # replacing /dev/null or a pipe by a file would be a surprise
            return
        _replace(Path(os.path.realpath(path)), data)  # not before: /dev/stdout is a link that leads to no name
    except FileNotFoundError:
        raise ImageWriteError(f"{path}: the folder {Path(path).parent} does not exist: create it first.") from None
    except NotADirectoryError:
        raise ImageWriteError(f"{path}: {Path(path).parent} is not a folder: choose another place.") from None
    except (OSError, ValueError) as error:
        raise ImageWriteError(f"{path}: cannot be written ({reason_of(error)}): choose another place.") from None


def refuse_overwrite(source: Path | str, destination: Path | str) -> None:
    """Raise ImageWriteError where writing `destination` would replace the input `source`, or nobody can tell."""
    if is_same_file(source, destination):
        raise ImageWriteError(f"{destination}: is the input itself: choose another name or folder for the output.")


def is_same_file(source: Path | str, destination: Path | str) -> bool:
    """Whether both are one file, by whatever name; a standard stream or a missing file is none.

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
    """Text as it is written to a file; a lone surrogate as `\\udcff`."""
    return text.encode(errors="backslashreplace")


def xml_text(text: str) -> str:
    """Text of characters that XML 1.0 allows; any other as `\\x01` or `\\udcff`."""
    return _NOT_IN_XML.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def _standard_input() -> IO[bytes]:
    if sys.stdin is None:  # as Python has it where the descriptor was closed
        raise ImageReadError(f"Standard input is closed: {PIPE_INTO_IT}.")
    if sys.stdin.isatty():
        raise ImageReadError(f"Standard input is a terminal: {PIPE_INTO_IT}.")
    return sys.stdin.buffer


def _size_of(stream: IO[bytes]) -> int | None:
    """The bytes from here to the end of a plain file; None where it is none, or the system states no size."""
    try:
        found = os.fstat(stream.fileno())
        return max(0, found.st_size - stream.tell()) or None if stat.S_ISREG(found.st_mode) else None
    except OSError:  # no descriptor behind it
        return None


def _replace(target: Path, data: bytes | memoryview) -> None:
    """Write a temporary file beside `target`, flush it to the disk, and move it over `target`."""
    temporary = temporaries.begin(target)
    try:
        with temporary.open("xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:  # Ctrl-C too
        with suppress(OSError):
            temporary.unlink()
        raise
    finally:
        temporaries.end(temporary)


def _write_to_standard_output(data: bytes | memoryview) -> None:
    if sys.stdout is None:
        raise ImageWriteError("Standard output is closed: name a file with -o.")
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        raise ImageWriteError(f"Standard output cannot be written ({reason_of(error)}).") from None


def reason_of(error: OSError | ValueError) -> str:
    """The system's words without its number and path."""
    text = error.strerror if isinstance(error, OSError) else str(error)
    return text or type(error).__name__
