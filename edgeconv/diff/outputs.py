"""Files that `diff`, `compare` and `report` write: checked before any computation, written only after all of it.

An existing file is replaced only with --overwrite, an input never; no two outputs have the same name; and where one
file cannot be written, none is.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from edgeconv.errors import ImageWriteError
from edgeconv.io.files import is_standard_stream, make_folder, refuse_overwrite, write_bytes_atomically


class Outputs:
    """Collects files by name; `write` puts them all in place."""

    def __init__(self, inputs: Iterable[str], overwrite: bool) -> None:
        self._inputs = [name for name in inputs if not is_standard_stream(name)]
        self._overwrite = overwrite
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
        if (path.is_file() or is_dangling) and not self._overwrite:  # a device or pipe is not replaced
            raise ImageWriteError(f"Output '{path}' exists: pass --overwrite to replace it, or choose another name.")
        place = os.path.normcase(os.path.realpath(path))
        if place in self._reserved and (path.is_file() or not path.exists()):
            raise ImageWriteError(f"Output '{path}' is named twice: give each output a different name.")
        self._reserved.add(place)
        return path

    def reserve_file(self, path: Path | str) -> Path:
        """The same for a file whose folder must exist already."""
        if not Path(path).parent.is_dir():
            raise ImageWriteError(f"{path}: the folder {Path(path).parent} does not exist: create it first.")
        return self.reserve(path)

    def add(self, path: Path, data: bytes | memoryview) -> None:
        """Set the content of a reserved file."""
        self._data[path] = data

    def write(self) -> list[tuple[Path, int]]:
        """Write everything; returns (path, bytes) of each. Missing folders are created."""
        for path, data in self._data.items():
            make_folder(path.parent)
            write_bytes_atomically(path, data)
        return [(path, len(data)) for path, data in self._data.items()]
