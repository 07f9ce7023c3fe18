"""Bytes in and out, all or nothing: `-` is standard input or output, and no output file is ever half-written.

An output is written to a temporary file in its own folder and then moved over its name in one step
(`os.replace`), so that a crash, a full disk or Ctrl-C leaves what was there before.

Text may hold what a file cannot: a name that is no text has a lone surrogate for each odd byte, and XML has no control
characters. They are written as Python's escapes: a person sees them, and that of a surrogate JSON reads back.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from contextlib import suppress
from pathlib import Path

from edgeconv import temporaries
from edgeconv.errors import ImageReadError, ImageWriteError
from edgeconv.held_open import patiently

STANDARD_STREAM = "-"

_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Source: XML 1.0, fifth edition, production 2 (Char)."""


def is_standard_stream(path: Path | str) -> bool:
    """Whether `path` is `-`."""
    return str(path) == STANDARD_STREAM


def read_bytes(source: Path | str) -> bytes:
    """All of a file, or of standard input for `-`. Raises ImageReadError."""
    if is_standard_stream(source):
        return _read_standard_input()
    try:
        data = Path(source).read_bytes()
    except FileNotFoundError:
        raise ImageReadError(f"{source}: there is no such file: check the name.") from None
    except IsADirectoryError:
        raise ImageReadError(f"{source}: is a folder: name a picture in it.") from None
    except (OSError, ValueError) as error:
        if os.path.isdir(source):  # Windows answers PermissionError for a folder
            raise ImageReadError(f"{source}: is a folder: name a picture in it.") from None
        raise ImageReadError(f"{source}: cannot be read ({_reason(error)}): check its name and permissions.") from None
    if not data:
        raise ImageReadError(f"{source}: the file is empty (0 bytes): export or download it again.")
    return data


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
        raise ImageWriteError(f"{path}: cannot be written ({_reason(error)}): choose another place.") from None


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
        raise ImageWriteError(f"{destination}: cannot be written ({_reason(error)}): choose another place.") from None


def utf8(text: str) -> bytes:
    """Text as it is written to a file; a lone surrogate as `\\udcff`."""
    return text.encode(errors="backslashreplace")


def xml_text(text: str) -> str:
    """Text of characters that XML 1.0 allows; any other as `\\x01` or `\\udcff`."""
    return _NOT_IN_XML.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def _read_standard_input() -> bytes:
    way_out = "pipe a picture into it, or name a file"
    if sys.stdin is None:  # as Python has it where the descriptor was closed
        raise ImageReadError(f"Standard input is closed: {way_out}.")
    if sys.stdin.isatty():
        raise ImageReadError(f"Standard input is a terminal: {way_out}.")
    try:
        data = sys.stdin.buffer.read()
    except OSError as error:
        raise ImageReadError(f"Standard input cannot be read ({_reason(error)}): {way_out}.") from None
    if not data:
        raise ImageReadError(f"Standard input is empty: {way_out}.")
    return data


def _replace(target: Path, data: bytes | memoryview) -> None:
    """Write a temporary file beside `target`, flush it to the disk, and move it over `target`."""
    temporary = temporaries.begin(target)
    try:
        with temporary.open("xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        patiently(os.replace, temporary, target)
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
        raise ImageWriteError(f"Standard output cannot be written ({_reason(error)}).") from None


def _reason(error: OSError | ValueError) -> str:
    """The system's words without its number and path."""
    text = error.strerror if isinstance(error, OSError) else str(error)
    return text or type(error).__name__
