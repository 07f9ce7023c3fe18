"""Local folders. Files appear complete or not at all (see io/files.py)."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from edgeconv.batch.stores.base import Store
from edgeconv.batch.task import Task
from edgeconv.errors import ImageReadError, ImageWriteError
from edgeconv.io import temporary_files
from edgeconv.io.contained_paths import place_inside, sha256_inside
from edgeconv.io.files import make_folder, special_file_problem, write_bytes_atomically
from edgeconv.io.formats import SUFFIXES
from edgeconv.io.image import read_picture_bytes
from edgeconv.io.read_limits import DEFAULT_RULES, ReadRules


class LocalStore(Store):
    """Paths."""

    def identity(self, place: str) -> str:
        return os.path.realpath(place)

    def join(self, folder: str, relative: PurePosixPath | str) -> str:
        return str(Path(folder, relative))

    def is_folder(self, place: str) -> bool:
        """See Store.is_folder; a file that cannot be looked at fails when it is read."""
        try:
            return stat.S_ISDIR(os.stat(place).st_mode)
        except (FileNotFoundError, ValueError):  # ValueError: a NUL byte, which no name has
            raise ImageReadError(f"{place}: there is no such file or folder: check the name.") from None
        except OSError:
            return False

    def pictures(
        self,
        folder: str,
        recursive: bool,
        leave_out: str | None,
        pass_link: Callable[[str], None],
        pass_file: Callable[[PurePosixPath], None],
    ) -> Iterator[Task]:
        top = Path(folder)
        hidden = None if leave_out is None else self.identity(leave_out)
        unlistable: list[Task] = []

        def note(error: OSError) -> None:
            place = Path(error.filename)
            words = f"{place}: the folder cannot be listed ({error.strerror}): check its permissions."
            relative = PurePosixPath(place.relative_to(top).as_posix())
            unlistable.append(Task(str(place), relative, self.identity(str(place)), words))

        for below, folders, names in os.walk(top, onerror=note):
            folders[:] = sorted(
                name
                for name in folders
                if recursive and not name.startswith(".") and self.identity(os.path.join(below, name)) != hidden
            )
            for link in filter(os.path.islink, (os.path.join(below, name) for name in folders)):
                pass_link(link)
            relative = PurePosixPath(Path(below).relative_to(top).as_posix())
            for name in sorted(names):
                if name.startswith("."):
                    continue
                if Path(name).suffix.lower() not in SUFFIXES:
                    pass_file(relative / name)
                    continue
                place = str(Path(below, name))
                yield Task(place, relative, self.identity(place), special_file_problem(place))
        yield from unlistable

    def names(self, folder: str) -> list[str]:
        try:
            return sorted(entry.name for entry in os.scandir(folder) if entry.is_file())
        except OSError:
            return []

    def read(self, place: str, rules: ReadRules = DEFAULT_RULES) -> bytes:
        return read_picture_bytes(place, rules)

    def digest(self, place: str) -> str | None:
        return self.output_digest(os.path.dirname(place) or ".", os.path.basename(place))

    def output_digest(self, folder: str, name: str) -> str | None:
        try:
            return sha256_inside(folder, name)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            place = self.join(folder, name)
            raise ImageReadError(f"{place}: exists and cannot be read ({error}).") from None

    def write(self, place: str, data: bytes | memoryview) -> None:
        self.make_folder(os.path.dirname(place))
        write_bytes_atomically(place, data)

    def write_output(self, folder: str, name: str, data: bytes | memoryview, *, replace: bool) -> None:
        place = place_inside(folder, name)
        if not os.path.isdir(folder):  # created when the batch started: a new one would lack the ledger
            raise ImageWriteError(f"Output folder '{folder}' was moved or removed: put it back.")
        self.make_folder(os.path.dirname(place))
        write_bytes_atomically(place, data, replace=replace)

    def remove(self, place: str) -> None:
        with suppress(OSError):
            os.unlink(place)

    def make_folder(self, folder: str) -> None:
        make_folder(folder)

    def remove_left_overs(self, folders: Iterable[str]) -> list[str]:
        return [
            str(path) for folder in sorted(set(folders)) for path in temporary_files.remove_left_over_in(Path(folder))
        ]
