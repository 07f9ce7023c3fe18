"""One picture of a batch, before it is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath, PurePosixPath


@dataclass(frozen=True)
class Task:
    """Where a picture is and where its output goes."""

    source: str
    """As given: a path or a URL."""
    folder: PurePosixPath
    """Where the output goes, relative to the output folder."""
    identity: str
    """The absolute source with links resolved: two names of one picture have one identity."""
    problem: str | None = None
    """Why it cannot be filtered, where that is known before it is read: the task fails with this message."""

    @property
    def stem(self) -> str:
        """The name without folders and suffix."""
        return PurePath(self.source).stem

    @property
    def source_ext(self) -> str:
        """The suffix with its dot, in its original case; empty where there is none."""
        return PurePath(self.source).suffix
