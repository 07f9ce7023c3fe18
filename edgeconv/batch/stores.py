"""Where pictures are stored: folders of this machine, and stores of objects (S3 and others) through fsspec.

A place is a string: a path, or a URL. Files appear complete or not at all. An object is written in one request, which
such stores apply completely or not at all, and its size is then checked. Listings are not cached, so that recent writes
of other machines are seen. Only the given places are accessed; the package for a store (s3fs, gcsfs, adlfs) finds the
user's credentials by itself.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import Any
from urllib.parse import unquote

from edgeconv.core.optional import install
from edgeconv.errors import (
    EdgeconvError,
    ImageReadError,
    ImageWriteError,
    UnavailableError,
    UsageError,
    one_line_with_class,
)
from edgeconv.io.atomic import NameTakenError, make_folder, write_beside
from edgeconv.io.contained_paths import ForeignFileError, foreign_reason, open_regular, place_inside
from edgeconv.io.files import special_file_problem
from edgeconv.io.formats import SUFFIXES
from edgeconv.io.read_limits import DEFAULT_RULES, ReadRules
from edgeconv.io.reading import read_picture_bytes

LOCAL_SCHEME = "file://"
URL = re.compile(r"[A-Za-z][A-Za-z0-9+.:-]+://")
WITH_FOLDERS = {"file", "local", "sftp", "ssh", "smb"}
"""Protocols of fsspec whose folders must exist before a file is written to them."""
CHECK = "check the address and your rights"


@dataclass(frozen=True)
class Task:
    """One picture of a batch before it is read: where it is, and where its output goes."""

    source: str
    """As given: a path or a URL."""
    folder: PurePosixPath
    """Where the output goes, relative to the output folder."""
    identity: str
    """The absolute source with links resolved: two names of one picture have one identity."""
    problem: str | None = None
    """Why it cannot be filtered, where that is known before it is read: the task fails with this message."""

    @property
    def path(self) -> PurePath:
        """The source, for its name, stem and suffix."""
        return PurePath(self.source)


def is_remote(place: str) -> bool:
    """Whether `place` is a URL; one of a file here becomes a path by `plain` before it is asked."""
    return URL.match(place) is not None


def plain(place: str) -> str:
    """`file:///a%20b` as the path `/a b`; every other place unchanged."""
    return unquote(place.removeprefix(LOCAL_SCHEME)) if place.startswith(LOCAL_SCHEME) else place


def from_the_root(place: str) -> str:
    """The absolute place, for a process with another working directory."""
    return place if is_remote(place) else os.path.abspath(place)


def join(folder: str, relative: PurePosixPath | str) -> str:
    """A place below `folder`."""
    if not is_remote(folder):
        return str(Path(folder, relative))
    below = PurePosixPath(relative).as_posix()
    return folder if below == "." else f"{folder.rstrip('/')}/{below}"


def store_of(place: str) -> LocalStore | RemoteStore:
    """The store that holds `place`."""
    return RemoteStore() if is_remote(place) else LocalStore()


class LocalStore:
    """Folders of this machine. A store has no state: every call names its place."""

    def identity(self, place: str) -> str:
        """The place from the root, links followed."""
        return os.path.realpath(place)

    def is_folder(self, place: str) -> bool:
        """Raises ImageReadError for what is not there, as far as it is cheap to know."""
        try:
            return stat.S_ISDIR(os.stat(place).st_mode)
        except (FileNotFoundError, ValueError):  # ValueError: a NUL byte, which no name has
            raise ImageReadError(f"{place}: there is no such file or folder: check the name.") from None
        except OSError:  # the file fails when it is read
            return False

    def files(self, folder: str, recursive: bool, leave_out: str, links: list[str]) -> list[Task]:
        """Every file in `folder`, sorted, without hidden names and the folder whose identity is `leave_out`.

        A folder that cannot be listed is a task with a problem. Links to folders are not followed but added to `links`.
        """
        top = Path(folder)
        found: list[Task] = []

        def add(place: Path, below: Path, problem: str | None) -> None:
            relative = PurePosixPath(below.relative_to(top).as_posix())
            found.append(Task(str(place), relative, self.identity(str(place)), problem))

        def add_unlistable(error: OSError) -> None:
            place = Path(error.filename)
            add(place, place, f"{place}: the folder cannot be listed ({error.strerror}): check its permissions.")

        for below, folders, names in os.walk(top, onerror=add_unlistable):
            searched = sorted(name for name in folders if recursive and not name.startswith("."))
            folders[:] = [name for name in searched if self.identity(os.path.join(below, name)) != leave_out]
            links += filter(os.path.islink, (os.path.join(below, name) for name in folders))
            for place in sorted(Path(below, name) for name in names if not name.startswith(".")):
                add(place, Path(below), special_file_problem(place) if place.suffix.lower() in SUFFIXES else None)
        return found

    def read(self, place: str, rules: ReadRules = DEFAULT_RULES) -> bytes:
        """All of a file or object that the rules allow. Raises ImageReadError, also for one of 0 bytes."""
        return read_picture_bytes(place, rules)

    def output_digest(self, folder: str, name: str) -> str | None:
        """SHA-256 of the file `name` below `folder`, None where there is none.

        Raises ForeignFileError where that is not a plain file inside the folder, ImageReadError.
        """
        try:
            with open_regular(place_inside(folder, name)) as stream:
                return hashlib.file_digest(stream, "sha256").hexdigest()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            raise ImageReadError(f"{join(folder, name)}: exists and cannot be read ({error}).") from None

    def write_output(self, folder: str, name: str, data: bytes | memoryview, *, replace: bool) -> None:
        """Put a complete file `name` below `folder`, or raise ImageWriteError and leave what was there before.

        Raises ForeignFileError too. Without `replace` it raises NameTakenError where such a file is there.
        """
        place = place_inside(folder, name)
        if not os.path.isdir(folder):  # created when the batch started: a new one would lack the ledger
            raise ImageWriteError(f"Output folder '{folder}' was moved or removed: put it back.")
        if "/" in name:
            make_folder(place.parent)
        write_beside(place, data, replace=replace)

    def remove(self, place: str) -> None:
        """Remove a file; do nothing where that fails."""
        with suppress(OSError):
            os.unlink(place)


class RemoteStore:
    """URLs. What each method gives and raises is said in LocalStore."""

    def identity(self, place: str) -> str:
        """The URL as fsspec writes it."""
        files, path = _open(place)
        return str(files.unstrip_protocol(path))

    def is_folder(self, place: str) -> bool:
        """What is named as a picture is taken for one, as ten thousand questions take minutes."""
        with _asking(place, "looked at") as (files, path):
            if not place.endswith("/") and PurePosixPath(path).suffix.lower() in SUFFIXES:
                return False
            return bool(files.isdir(path) or files.info(path)["type"] == "directory")

    def files(self, folder: str, recursive: bool, leave_out: str, links: list[str]) -> list[Task]:
        """There are no links, and a folder that cannot be listed is one task."""
        hidden = None if leave_out == self.identity(folder) else f"{leave_out}/"
        found: list[Task] = []
        try:
            with _asking(folder, "listed") as (files, top):
                listed = sorted(files.find(top, maxdepth=None if recursive else 1))
        except ImageReadError as error:
            return [Task(folder, PurePosixPath(), self.identity(folder), str(error))]
        for path in listed:
            relative = PurePosixPath(path).relative_to(top)
            identity = str(files.unstrip_protocol(path))
            if not (any(part.startswith(".") for part in relative.parts) or (hidden and identity.startswith(hidden))):
                found.append(Task(join(folder, relative), relative.parent, identity))
        return found

    def read(self, place: str, rules: ReadRules = DEFAULT_RULES) -> bytes:
        """One request, whose range ends where the limit is passed."""
        with _asking(place, "read") as (files, path):
            try:
                data: bytes = files.cat_file(path, start=0, end=rules.max_bytes + 1)
            except Exception:  # an empty object has no range that a store could give
                if files.info(path)["size"] > 0:
                    raise
                data = b""
        if not data:
            raise ImageReadError(f"{place}: the object is empty (0 bytes): upload it again.")
        if len(data) > rules.max_bytes:
            raise ImageReadError(
                f"{place}: it has more than {rules.max_bytes:,} bytes: raise --max-bytes if it really is that large."
            )
        return data

    def output_digest(self, folder: str, name: str) -> str | None:
        """The object is read to its end."""
        with _asking(_plain_below(folder, name), "read") as (files, path):
            try:
                return hashlib.sha256(files.cat_file(path)).hexdigest()
            except FileNotFoundError:
                return None

    def write_output(self, folder: str, name: str, data: bytes | memoryview, *, replace: bool) -> None:
        """S3 itself refuses an object that is there; not every store like it does."""
        place = _plain_below(folder, name)
        if not replace:
            try:
                self._put(place, data, mode="create")
                return
            except ImageWriteError as error:
                # Either the object is there, or the store or its package cannot be asked so.
                if self.output_digest(folder, name) is not None:
                    raise NameTakenError(str(error)) from None
        self._put(place, data)

    def _put(self, place: str, data: bytes | memoryview, **options: str) -> None:
        with _asking(place, "written", ImageWriteError) as (files, path):
            protocols = (files.protocol,) if isinstance(files.protocol, str) else files.protocol
            if not WITH_FOLDERS.isdisjoint(protocols):
                files.makedirs(str(PurePosixPath(path).parent), exist_ok=True)
            files.pipe_file(path, bytes(data), **options)
            arrived = files.info(path)["size"]
        if arrived != len(data):
            self.remove(place)
            raise ImageWriteError(f"{place}: {arrived:,} of {len(data):,} bytes arrived: try again.")

    def remove(self, place: str) -> None:
        """The same."""
        files, path = _open(place)
        with suppress(Exception):
            files.rm_file(path)


def _plain_below(folder: str, name: str) -> str:
    """The place of `name` below `folder`. Raises ForeignFileError where it leads out."""
    if (reason := foreign_reason(name)) is not None:
        raise ForeignFileError(reason)
    return join(folder, name)


@contextmanager
def _asking(place: str, what: str, fails: type[EdgeconvError] = ImageReadError) -> Iterator[tuple[Any, str]]:
    """A file system and the path in it; what is raised in the block, by whichever library, becomes a line of ours."""
    opened = _open(place)
    try:
        yield opened
    except FileNotFoundError:
        raise fails(f"{place}: there is no such object or folder: {CHECK}.") from None
    except Exception as error:
        raise fails(f"{place}: cannot be {what} ({one_line_with_class(error)}): {CHECK}.") from None


def _open(place: str) -> tuple[Any, str]:
    """fsspec's file system for a URL, and the path in it. Raises UnavailableError, UsageError."""
    try:
        from fsspec.core import url_to_fs

        files, path = url_to_fs(place, use_listings_cache=False)
    except ImportError as error:
        needs = f"a package that is not here ({one_line_with_class(error)})"
        raise UnavailableError(f"{place}: needs {needs}; for S3: {install('remote')}.") from None
    except Exception as error:
        raise UsageError(f"{place}: cannot be opened ({one_line_with_class(error)}): {CHECK}.") from None
    return files, path
