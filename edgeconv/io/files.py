"""Reading of files: `-` is standard input, and no file is read beyond a limit.

Pictures have a door of their own (reading.py); what is written goes through atomic.py.

Text may contain what a file cannot: a name that is not valid text has a lone surrogate for each invalid byte, and XML
has no control characters. They are written as Python's escapes, which are visible; JSON reads a surrogate back.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any

from edgeconv.core.text import visible
from edgeconv.errors import ImageReadError, ImageWriteError

STANDARD_STREAM, STREAM_NAME = "-", "standard input"
PIPE_INTO_IT = "pipe a picture into it, or name a file"
IS_A_FOLDER = "is a folder: name a picture in it, or use 'edgeconv batch' for all of its pictures"

PIECE_BYTES = 2**20
"""Of a file that is not read whole, held at once."""
SMALL_BYTES = 2**20
"""Most bytes of a kernel or grid file, which people write by hand."""
RECORD_BYTES = 2**28
"""Most bytes of a report or a record, which edgeconv writes."""
ZARR_MARKS = (".zarray", ".zgroup", "zarr.json")
"""Any of these in a folder makes it a Zarr of version 2 or 3."""
XZ_MAGIC = b"\xfd7zXZ\x00"
XZ_MEMORY_BYTES = 2**27
"""Of the decompressor: twice what `xz -9` asks for."""

_NOT_IN_XML = r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
"""Source: XML 1.0, fifth edition, production 2 (Char)."""


def is_standard_stream(path: object) -> bool:
    """Whether `path` is `-`."""
    return str(path) == STANDARD_STREAM


def label_of(source: Path | str | IO[bytes]) -> str:
    """How messages name a source: by its path, or an open file by the name or the type that it has."""
    if isinstance(source, str | os.PathLike):
        return STREAM_NAME if is_standard_stream(source) else str(source)
    return str(getattr(source, "name", type(source).__name__))


@contextmanager
def opened(source: Path | str | IO[bytes]) -> Iterator[tuple[IO[bytes], int | None]]:
    """A file, or standard input for `-`, open for reading, and how many bytes are left in it.

    The size is None where it is unknown before reading: of a pipe or a device, which may have no end, of a file that
    the system generates on the fly, and of one that the caller opened, which may unpack what it reads. Read errors
    inside the block become ImageReadError too.
    """
    try:
        if not isinstance(source, str | os.PathLike):
            if not hasattr(source, "read"):
                raise ImageReadError(f"A {type(source).__name__} is not a file: give a path, or a file that is open.")
            yield source, None
            return
        with nullcontext(_standard_input()) if is_standard_stream(source) else Path(source).open("rb") as stream:
            size = None
            with suppress(OSError):  # no descriptor behind it
                found = os.fstat(stream.fileno())
                if stat.S_ISREG(found.st_mode):
                    size = max(0, found.st_size - stream.tell()) or None
            yield stream, size
    except FileNotFoundError:
        raise ImageReadError(f"{source}: there is no such file: check the name.") from None
    except IsADirectoryError:
        raise ImageReadError(f"{source}: {IS_A_FOLDER}.") from None
    except (OSError, ValueError) as error:
        if is_standard_stream(source):
            raise ImageReadError(f"Standard input cannot be read ({reason_of(error)}): {PIPE_INTO_IT}.") from None
        raise ImageReadError(
            f"{label_of(source)}: cannot be read ({reason_of(error)}): check its name and permissions."
        ) from None


def empty(source: Path | str | IO[bytes]) -> ImageReadError:
    """The error for a file or stream of 0 bytes."""
    if is_standard_stream(source):
        return ImageReadError(f"Standard input is empty: {PIPE_INTO_IT}.")
    return ImageReadError(f"{label_of(source)}: the file is empty (0 bytes): export or download it again.")


def read_bytes(source: Path | str, limit: int) -> bytes:
    """All of a file other than a picture, or of standard input for `-`. Raises ImageReadError, also above `limit`."""
    with opened(source) as (stream, size):
        data = b"" if (size or 0) > limit else stream.read(limit + 1)
    if max(size or 0, len(data)) > limit:
        raise _too_large(source, limit)
    if not data:
        raise empty(source)
    return data


def read_text(path: Path, limit: int) -> str:
    """The text of a file in UTF-8, unpacked where xz packed it. Raises ImageReadError, also above `limit`."""
    data = read_bytes(path, limit)
    if data.startswith(XZ_MAGIC):
        import lzma  # a Python built from source may lack it

        unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY_BYTES)
        try:
            data = unpacker.decompress(data, limit + 1)
        except lzma.LZMAError as error:
            raise ImageReadError(f"{path}: xz cannot unpack it ({error}): copy it once more.") from None
        if len(data) > limit:
            raise _too_large(path, limit)
        if not unpacker.eof:
            raise ImageReadError(f"{path}: xz cannot unpack it (it is cut short): copy it once more.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ImageReadError(f"{path}: is not UTF-8 text: save it as UTF-8.") from None


def refuse_special(path: Path) -> None:
    """Raise ImageReadError for a pipe, which may have no writer, and for a device."""
    if is_device(path):
        raise ImageReadError(f"{path}: is a pipe or a device, and must be a plain file.")


def parse_json(text: str) -> Any:
    """The value of a JSON text. Raises ValueError, also for nesting deeper than Python's recursion limit."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def are_same(one: Path | str, other: Path | str) -> bool:
    """Whether two files hold the same bytes, and some: they are compared in pieces. Raises ImageReadError."""
    with opened(one) as (left, size), opened(other) as (right, other_size):
        if size is None or size != other_size:
            return False
        return all(left.read(PIECE_BYTES) == right.read(PIECE_BYTES) for _ in range(0, size, PIECE_BYTES))


def special_file_problem(path: Path | str) -> str | None:
    """Why a file found by a search must not be read: a pipe, a socket or a device may never end."""
    if not is_device(path):
        return None
    what = "a pipe" if stat.S_ISFIFO(os.stat(path).st_mode) else "a socket or a device"
    return f"{path}: is {what} although its name is that of a picture: remove it, or name it explicitly to read it."


def is_device(path: Path | str) -> bool:
    """Whether `path` is a device, a pipe or a socket, which is written to directly, with no file beside it."""
    try:
        kind = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(kind) and not stat.S_ISDIR(kind)


def names_a_folder(output: str) -> bool:
    """Whether an output is a folder, there or to be made."""
    return output.endswith("/") or os.path.isdir(output) or not Path(output).suffix


def is_zarr(path: Path) -> bool:
    """Whether `path` is a folder with a Zarr in it, as far as the system lets one look."""
    try:
        return any((path / mark).is_file() for mark in ZARR_MARKS)
    except (OSError, ValueError):  # a name too long, a folder that is closed: whoever reads it says so
        return False


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


def suffix_counts_text(kinds: Mapping[str, int]) -> str:
    """`3 .gif, 1 .avif, 2 without a suffix`: numbers of files by suffix, the most frequent first."""
    by_number = sorted(kinds.items(), key=lambda kind: (-kind[1], not kind[0], kind[0]))
    return ", ".join(f"{number:,} {visible(suffix) or 'without a suffix'}" for suffix, number in by_number)


def utf8(text: str) -> bytes:
    """Text encoded for a file; a lone surrogate as `\\udcff`."""
    return text.encode(errors="backslashreplace")


def xml_text(text: str) -> str:
    """Text with characters that XML 1.0 does not allow written as `\\x01` or `\\udcff`."""
    return re.sub(_NOT_IN_XML, lambda found: found[0].encode("unicode_escape").decode(), text)


def reason_of(error: OSError | ValueError) -> str:
    """The system's message without its number and path."""
    text = error.strerror if isinstance(error, OSError) else str(error)
    return text or type(error).__name__


def _standard_input() -> IO[bytes]:
    if sys.stdin is None:  # the descriptor was closed before Python started
        raise ImageReadError(f"Standard input is closed: {PIPE_INTO_IT}.")
    if sys.stdin.isatty():
        raise ImageReadError(f"Standard input is a terminal: {PIPE_INTO_IT}.")
    return sys.stdin.buffer


def _too_large(source: Path | str, limit: int) -> ImageReadError:
    name = "Standard input" if is_standard_stream(source) else source
    return ImageReadError(f"{name}: has more than {limit:,} bytes: use a smaller file.")
