"""Remote object stores (S3, Google Cloud Storage, Azure Blob and similar) through fsspec.

An object is written in one request, which these stores apply completely or not at all, and its size is then checked.
Listings are not cached, so that recent writes of other machines are visible. Only the given places are accessed; the
package for the store (s3fs, gcsfs, adlfs) finds the user's credentials by itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

from edgeconv.batch.stores.base import EmptyFileError, Store, refuse_foreign
from edgeconv.batch.task import Task
from edgeconv.core.optional import install
from edgeconv.errors import ImageReadError, ImageWriteError, UnavailableError, UsageError, one_line_with_class
from edgeconv.io.files import NameTakenError
from edgeconv.io.formats import SUFFIXES
from edgeconv.io.read_limits import DEFAULT_RULES, ReadRules

CHECK = "check the address and your rights"

WITH_FOLDERS = {"file", "local", "sftp", "ssh", "smb"}
"""Protocols of stores where a folder must exist before a file is written to it."""


class RemoteStore(Store):
    """URLs."""

    def identity(self, place: str) -> str:
        files, path = _open(place)
        return str(files.unstrip_protocol(path))

    def join(self, folder: str, relative: PurePosixPath | str) -> str:
        below = PurePosixPath(relative).as_posix()
        return folder if below == "." else f"{folder.rstrip('/')}/{below}"

    def is_folder(self, place: str) -> bool:
        """See Store.is_folder; what is named as a picture is taken for one, as ten thousand questions take minutes."""
        files, path = _open(place)
        if not place.endswith("/") and PurePosixPath(path).suffix.lower() in SUFFIXES:
            return False
        try:
            if files.isdir(path):
                return True
            there = files.exists(path)
        except Exception as error:  # of whichever library speaks with the store
            raise ImageReadError(f"{place}: cannot be looked at ({one_line_with_class(error)}): {CHECK}.") from None
        if not there:
            raise ImageReadError(f"{place}: there is no such object or folder: {CHECK}.")
        return False

    def pictures(
        self,
        folder: str,
        recursive: bool,
        leave_out: str | None,
        pass_link: Callable[[str], None],
        pass_file: Callable[[PurePosixPath], None],
    ) -> Iterator[Task]:
        files, top = _open(folder)
        beside = None if leave_out is None else self.identity(leave_out)
        hidden = None if beside in (None, self.identity(folder)) else f"{beside}/"
        try:
            found = files.find(top, maxdepth=None if recursive else 1)
        except Exception as error:
            words = f"{folder}: cannot be listed ({one_line_with_class(error)}): {CHECK}."
            yield Task(folder, PurePosixPath(), self.identity(folder), words)
            return
        for path in sorted(found):
            relative = PurePosixPath(path).relative_to(top)
            identity = str(files.unstrip_protocol(path))
            if any(part.startswith(".") for part in relative.parts) or (hidden and identity.startswith(hidden)):
                continue
            if relative.suffix.lower() not in SUFFIXES:
                pass_file(relative)
            else:
                yield Task(self.join(folder, relative), relative.parent, identity)

    def names(self, folder: str) -> list[str]:
        files, path = _open(folder)
        try:
            return sorted(PurePosixPath(name).name for name in files.find(path, maxdepth=1))
        except FileNotFoundError:
            return []
        except Exception as error:
            raise ImageReadError(f"{folder}: cannot be listed ({one_line_with_class(error)}): {CHECK}.") from None

    def read(self, place: str, rules: ReadRules = DEFAULT_RULES) -> bytes:
        """See Store.read. One request, whose range ends where the limit is passed."""
        files, path = _open(place)
        try:
            data: bytes = files.cat_file(path, start=0, end=rules.max_bytes + 1)
        except FileNotFoundError:
            raise ImageReadError(f"{place}: there is no such object: {CHECK}.") from None
        except Exception as error:
            if _is_empty(files, path):  # which has no range that a store could give
                raise EmptyFileError(f"{place}: the object is empty (0 bytes): upload it again.") from None
            raise ImageReadError(f"{place}: cannot be read ({one_line_with_class(error)}): {CHECK}.") from None
        if not data:
            raise EmptyFileError(f"{place}: the object is empty (0 bytes): upload it again.")
        if len(data) > rules.max_bytes:
            raise ImageReadError(
                f"{place}: it has more than {rules.max_bytes:,} bytes: raise --max-bytes if it really is that large."
            )
        return data

    def digest(self, place: str) -> str | None:
        files, path = _open(place)
        try:
            return hashlib.sha256(files.cat_file(path)).hexdigest()
        except FileNotFoundError:
            return None
        except Exception as error:
            raise ImageReadError(f"{place}: exists and cannot be read ({one_line_with_class(error)}).") from None

    def write(self, place: str, data: bytes | memoryview) -> None:
        """See Store.write; whatever arrived in part is removed."""
        self._put(place, data)

    def write_output(self, folder: str, name: str, data: bytes | memoryview, *, replace: bool) -> None:
        """See Store.write_output. S3 itself refuses an object that is there; not every store like it does."""
        refuse_foreign(name)
        place = self.join(folder, name)
        if not replace:
            try:
                self._put(place, data, mode="create")
                return
            except ImageWriteError as error:
                # Either the object is there, or the store or its package cannot be asked so.
                if self.digest(place) is not None:
                    raise NameTakenError(str(error)) from None
        self._put(place, data)

    def _put(self, place: str, data: bytes | memoryview, **words: str) -> None:
        files, path = _open(place)
        try:
            if _has_folders(files):
                files.makedirs(str(PurePosixPath(path).parent), exist_ok=True)
            files.pipe_file(path, bytes(data), **words)
            arrived = files.info(path)["size"]
        except Exception as error:
            raise ImageWriteError(f"{place}: cannot be written ({one_line_with_class(error)}): {CHECK}.") from None
        if arrived != len(data):
            self.remove(place)
            raise ImageWriteError(f"{place}: {arrived:,} of {len(data):,} bytes arrived: try again.")

    def remove(self, place: str) -> None:
        files, path = _open(place)
        with suppress(Exception):
            files.rm_file(path)

    def make_folder(self, folder: str) -> None:
        """See Store.make_folder: `write` makes what it needs, and no bucket is ever made for a slip of the pen."""

    def remove_left_overs(self, folders: Iterable[str]) -> list[str]:
        """Nothing is ever half-written."""
        return []


def _open(place: str) -> tuple[Any, str]:
    """fsspec's file system for a URL, and the path in it. Raises UnavailableError, UsageError."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise UnavailableError(f"{place}: needs fsspec: {install('remote')}.") from None
    try:
        files, path = url_to_fs(place, use_listings_cache=False)
    except ImportError as error:
        raise UnavailableError(f"{place}: needs a package that is not here ({one_line_with_class(error)}).") from None
    except Exception as error:
        raise UsageError(f"{place}: cannot be opened ({one_line_with_class(error)}): {CHECK}.") from None
    return files, path


def _is_empty(files: Any, path: str) -> bool:
    try:
        return bool(files.info(path)["size"] == 0)
    except Exception:  # of whichever library speaks with the store, which has failed before
        return False


def _has_folders(files: Any) -> bool:
    """Whether a file system of fsspec has folders that are there or not, and not names with slashes alone."""
    protocols = (files.protocol,) if isinstance(files.protocol, str) else files.protocol
    return not WITH_FOLDERS.isdisjoint(protocols)
