"""The files that a command writes: names are reserved before any work, and all files appear together or none does.

    reserve   refuses what must not be written: an input, a folder, a name for the second time, and what exists, unless
              `overwrite` is set or `reason_to_keep` gives no reason
    add       writes a file beside its place, complete and on the disk; `begin` gives the path there for a file or
              folder that is written in pieces
    put       asks again, then names the files, in the order in which they were reserved; a name that is free is taken
              atomically

Where `put` fails, the names that were free are free again; what was replaced is gone. What was not put is removed at
the end of the `with` block, and what killed processes left behind in a folder before the first file is written there.
A device, a pipe and `-` (standard output) are written to by `put`, directly.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from itertools import filterfalse
from pathlib import Path

from edgeconv.errors import ImageWriteError
from edgeconv.io.atomic import NewFile, make_folder, remove_left_over_in, reporting_errors, write_directly
from edgeconv.io.files import as_compared, is_device, is_standard_stream

WAY_OUT = "pass --overwrite to replace it, or choose another place"


class Outputs(ExitStack):
    """The output files of one command, or of one picture after the other; see the module."""

    def __init__(
        self,
        inputs: Iterable[Path | str] = (),
        overwrite: bool = False,
        reason_to_keep: Callable[[Path], str | None] = lambda path: "exists",
        is_own_folder: Callable[[Path], bool] = lambda path: False,
    ) -> None:
        """`inputs` are never replaced.

        `reason_to_keep` says why an existing file is not replaced unasked, as a phrase after its name; None where it
        may be. `is_own_folder` tells whether a folder is an output (a Zarr) that may be replaced like a file.
        """
        super().__init__()
        self._inputs: dict[tuple[int, int], str] = {}
        for name in filterfalse(is_standard_stream, inputs):
            with suppress(OSError, ValueError):  # it is reported when it is read
                found = os.stat(name)
                self._inputs[found.st_dev, found.st_ino] = os.path.realpath(name)
        self._input_folders = [source for source in self._inputs.values() if os.path.isdir(source)]
        self._overwrite, self._reason_to_keep, self._is_own_folder = overwrite, reason_to_keep, is_own_folder
        self._reserved: dict[Path, str] = {}
        """Each path, and where it leads, as file systems compare names."""
        self._new: dict[Path, NewFile] = {}
        self._direct: dict[Path, bytes | memoryview] = {}
        self._cleaned: set[Path] = set()

    def reserve(self, path: Path | str, folder: Path | str | None = None) -> Path:
        """Check that `path`, which the user named, may be written, and reserve it; its folder must exist.

        With `folder` it is a name that the command made up, in a folder that `add` makes where it is missing. Raises
        ImageWriteError.
        """
        path = Path(folder or "", path)
        if folder is None and not path.parent.is_dir():
            raise ImageWriteError(f"{path}: the folder {path.parent} does not exist: create it first.")
        if is_device(path):
            if folder is not None:
                raise ImageWriteError(f"Output '{path}' is not a plain file: remove it, or choose another place.")
            self._reserved[path] = ""
            return path
        with reporting_errors(path):
            place = as_compared(os.path.realpath(path))
        if place in self._reserved.values():
            raise ImageWriteError(f"Output '{path}' is named twice: give each output a different name.")
        self._is_there(path)
        self._reserved[path] = place
        return path

    def begin(self, path: Path) -> Path:
        """A temporary name beside the reserved `path`, for a file or folder that the caller writes."""
        make_folder(path.parent)
        with reporting_errors(path):
            new = self._new[path] = NewFile(path)
            self.callback(new.discard)
            if new.path.parent not in self._cleaned:
                self._cleaned.add(new.path.parent)
                remove_left_over_in(new.path.parent)
        return new.path

    def add(self, path: Path, data: bytes | memoryview) -> None:
        """Write the content of the reserved `path` beside its place, or remember that of a device."""
        if is_standard_stream(path) or is_device(path):
            self._direct[path] = data
            return
        self.begin(path)
        with reporting_errors(path):
            self._new[path].fill(data)

    def put(self) -> list[tuple[Path, int]]:
        """Give all files that were added their names; returns (path, bytes) of each. Raises ImageWriteError."""
        written: list[tuple[Path, int]] = []
        taken: list[NewFile] = []
        are_there = {path: self._is_there(path) for path in self._new}
        try:
            for path in self._reserved:
                if (data := self._direct.get(path)) is not None:
                    write_directly(path, data)
                    written.append((path, len(data)))
                elif (new := self._new.get(path)) is not None:
                    with reporting_errors(path):
                        written.append((path, new.put(replace=are_there[path] or self._overwrite)))
                    if not are_there[path]:
                        taken.append(new)
        except BaseException:  # Ctrl-C too
            for new in taken:
                new.take_back()
            raise
        self.discard()
        return written

    def discard(self) -> None:
        """Remove what was added and not put; names remain reserved."""
        self.close()
        self._new.clear()
        self._direct.clear()

    def _is_there(self, path: Path) -> bool:
        """Whether `path` exists; raises ImageWriteError where it must not be written or replaced."""
        if is_standard_stream(path):
            return True
        with reporting_errors(path), suppress(FileNotFoundError, NotADirectoryError):
            target, found = os.path.realpath(path), None
            found = os.stat(path)
        if found is not None and (found.st_dev, found.st_ino) in self._inputs:
            raise ImageWriteError(f"{path}: is the input itself: choose another name or folder for the output.")
        if any(target.startswith(folder + os.sep) for folder in self._input_folders):
            raise ImageWriteError(f"{path}: lies inside the input: choose another place.")
        if os.path.isdir(path):
            if not self._is_own_folder(path):
                raise ImageWriteError(f"Output '{path}' is a folder: name a file in it, or choose another name.")
            if any(source.startswith(target + os.sep) for source in self._inputs.values()):
                raise ImageWriteError(f"{path}: the input lies inside it: choose another place.")
        if found is None and os.path.islink(path):
            raise ImageWriteError(f"Output '{path}' is a link that leads nowhere: remove it, or choose another place.")
        if found is not None and not self._overwrite and (reason := self._reason_to_keep(path)) is not None:
            raise ImageWriteError(f"Output '{path}' {reason}: {WAY_OUT}.")
        return found is not None
