"""What a batch asks of those who do its work."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable

from edgeconv.batch.summary import PictureResult
from edgeconv.batch.task import Task
from edgeconv.batch.worker import PictureWorker

Settle = Callable[[PictureResult], None]
"""Puts an outcome into the ledger and counts it; may raise ImageWriteError, which ends the batch."""


class Engine(ABC):
    """Takes tasks to their outcomes, several at once."""

    workers: int
    """Pictures in hand at once."""
    threads_each: int
    """Threads that one picture may keep busy."""

    @abstractmethod
    def run(
        self, work: PictureWorker, tasks: Iterable[Task], stopped: Callable[[], bool], settle: Settle
    ) -> Generator[PictureResult]:
        """The outcomes in the order in which they come, each settled once; no task is begun once `stopped()`."""

    @abstractmethod
    def peak_bytes(self) -> dict[str, int | None]:
        """Most memory held at once, by device: of all processes that worked, and of the pools on their GPUs."""
