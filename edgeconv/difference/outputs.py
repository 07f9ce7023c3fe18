"""Files that `diff`, `compare` and `report` write: checked before any computation, written only after all of it.

An existing file is replaced only with --overwrite, an input never; no two outputs have the same name; and where one
file cannot be written, none is. Files that state what they follow from (HTML, XML and PNG, each with a mark that its
readers pass over) are replaced unasked where they follow from the same and nobody has changed them since.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterable
from pathlib import Path

from edgeconv.errors import ImageWriteError
from edgeconv.io.files import is_standard_stream, make_folder, refuse_overwrite, write_bytes_atomically

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
PNG_END_BYTES = 12
"""Of the last chunk of a PNG, before which the mark stands."""


def marked(data: bytes, follows_from: str) -> bytes:
    """`data` of an HTML, XML or PNG file with a hash of it and of the inputs and settings that it follows from."""
    digest = hashlib.sha256(follows_from.encode() + b"\0" + data).hexdigest().encode()
    if not data.startswith(PNG_SIGNATURE):
        return data + b"\n<!-- edgeconv " + digest + b" -->\n"
    text = b"tEXtedgeconv\0" + digest
    chunk = (len(text) - 4).to_bytes(4, "big") + text + zlib.crc32(text).to_bytes(4, "big")
    return data[:-PNG_END_BYTES] + chunk + data[-PNG_END_BYTES:]


def carries_mark(data: bytes, follows_from: str) -> bool:
    """Whether `marked` gave all of these bytes for the same inputs and settings."""
    mark_bytes = len(marked(data, "")) - len(data)
    end = PNG_END_BYTES if data.startswith(PNG_SIGNATURE) else 0
    place = len(data) - end
    return data == marked(data[: place - mark_bytes] + data[place:], follows_from)


class MarkedOutputs:
    """Collects files by name; `write` puts them all in place."""

    def __init__(self, inputs: Iterable[str], overwrite: bool, follows_from: str | None = None) -> None:
        """`follows_from` are inputs and settings as text, where the files are to carry them."""
        self._inputs = [name for name in inputs if not is_standard_stream(name)]
        self._overwrite = overwrite
        self._follows_from = follows_from
        self._data: dict[Path, bytes | memoryview] = {}
        self._reserved: set[str] = set()

    def reserve(self, path: Path | str) -> Path:
        """Check that `path` may be written, and reserve it. Raises ImageWriteError."""
        path = Path(path)
        for source in self._inputs:
            refuse_overwrite(source, path)
        if path.is_dir():
            raise ImageWriteError(f"Output '{path}' is a folder: name a file in it.")
        is_dangling = os.path.lexists(path) and not path.exists()  # a link: the file would be created elsewhere
        if (path.is_file() or is_dangling) and not self._overwrite and not self._is_own(path):  # no device or pipe
            raise ImageWriteError(f"Output '{path}' exists: pass --overwrite to replace it, or choose another name.")
        place = os.path.normcase(os.path.realpath(path))
        if place in self._reserved and (path.is_file() or not path.exists()):
            raise ImageWriteError(f"Output '{path}' is named twice: give each output a different name.")
        self._reserved.add(place)
        return path

    def _is_own(self, path: Path) -> bool:
        """Whether the file follows from the same inputs and settings and is as it was written."""
        if self._follows_from is None or not path.is_file():
            return False
        try:
            return carries_mark(path.read_bytes(), self._follows_from)
        except OSError:
            return False

    def reserve_file(self, path: Path | str) -> Path:
        """The same for a file whose folder must exist already."""
        if not Path(path).parent.is_dir():
            raise ImageWriteError(f"{path}: the folder {Path(path).parent} does not exist: create it first.")
        return self.reserve(path)

    def add(self, path: Path, data: bytes | memoryview) -> None:
        """Set the content of a reserved file."""
        self._data[path] = data if self._follows_from is None else marked(bytes(data), self._follows_from)

    def write(self) -> list[tuple[Path, int]]:
        """Write everything; returns (path, bytes) of each. Missing folders are created."""
        for path, data in self._data.items():
            make_folder(path.parent)
            write_bytes_atomically(path, data)
        return [(path, len(data)) for path, data in self._data.items()]
