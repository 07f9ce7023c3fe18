"""One picture of a batch, before anything is known of its pixels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath, PurePosixPath


@dataclass(frozen=True)
class Task:
    """Where a picture is and where its output goes."""

    source: str
    """As it was given: a path, or a URL."""
    folder: PurePosixPath
    """Where the output goes, relative to the output folder."""
    identity: str
    """The source from the root, links followed: two names of one picture have one identity."""
    problem: str | None = None
    """Why there is nothing to filter, where that is known before it is read: then the task fails with these words."""

    @property
    def stem(self) -> str:
        """The name without folders and suffix."""
        return PurePath(self.source).stem

    @property
    def source_ext(self) -> str:
        """The suffix with its dot, as it is written; empty where there is none."""
        return PurePath(self.source).suffix
