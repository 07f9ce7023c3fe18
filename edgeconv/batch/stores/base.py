"""The interface of a store of pictures or results. Places are strings: paths or URLs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePosixPath

from edgeconv.batch.task import Task
from edgeconv.errors import ImageReadError
from edgeconv.io.contained_paths import ForeignFileError, foreign_reason
from edgeconv.io.read_limits import DEFAULT_RULES, ReadRules


class EmptyFileError(ImageReadError):
    """A file or object of 0 bytes."""


class Store(ABC):
    """Stateless: every call names its place."""

    @abstractmethod
    def identity(self, place: str) -> str:
        """The place from the root, links followed."""

    @abstractmethod
    def join(self, folder: str, relative: PurePosixPath | str) -> str:
        """A place below `folder`."""

    @abstractmethod
    def is_folder(self, place: str) -> bool:
        """Raises ImageReadError for what is not there, as far as it is cheap to know."""

    @abstractmethod
    def pictures(
        self,
        folder: str,
        recursive: bool,
        leave_out: str | None,
        pass_link: Callable[[str], None],
        pass_file: Callable[[PurePosixPath], None],
    ) -> Iterator[Task]:
        """Everything with a picture's suffix in `folder`, sorted; hidden names and the folder `leave_out` passed over.

        A folder that cannot be listed is a task with a problem; `pass_link` is told of links to folders, `pass_file`
        of files with other suffixes, by their names relative to `folder`.
        """

    @abstractmethod
    def names(self, folder: str) -> list[str]:
        """Names of the files right in `folder`, sorted; none where there is no such folder."""

    @abstractmethod
    def read(self, place: str, rules: ReadRules = DEFAULT_RULES) -> bytes:
        """All of a file or object that the rules allow. Raises ImageReadError, if it is empty EmptyFileError."""

    @abstractmethod
    def digest(self, place: str) -> str | None:
        """SHA-256 of the file that is there, None where there is none. Raises ImageReadError."""

    def output_digest(self, folder: str, name: str) -> str | None:
        """`digest` of what lies below `folder` by a plain name (contained_paths.py). Raises ForeignFileError too."""
        refuse_foreign(name)
        return self.digest(self.join(folder, name))

    @abstractmethod
    def write(self, place: str, data: bytes | memoryview) -> None:
        """Put a whole file in place, or raise ImageWriteError and leave what was there before."""

    @abstractmethod
    def write_output(self, folder: str, name: str, data: bytes | memoryview, *, replace: bool) -> None:
        """`write` below `folder`, which must be there. Raises ForeignFileError too.

        Without `replace` NameTakenError where such a file is there; a store that cannot tell replaces it.
        """

    @abstractmethod
    def remove(self, place: str) -> None:
        """Remove a file; nothing where that fails."""

    @abstractmethod
    def make_folder(self, folder: str) -> None:
        """Make sure that files can be put in `folder`. Raises ImageWriteError."""

    @abstractmethod
    def remove_left_overs(self, folders: Iterable[str]) -> list[str]:
        """Remove what killed runs left half-written in `folders`; the names."""


def refuse_foreign(name: str) -> None:
    """Raise ForeignFileError for what is not a plain name."""
    if (reason := foreign_reason(name)) is not None:
        raise ForeignFileError(reason)
