"""The interface of the engines that process the pictures of a batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass

from edgeconv.batch.summary import PictureResult
from edgeconv.batch.task import Task
from edgeconv.batch.worker import PictureWorker

Settle = Callable[[PictureResult], None]
"""Records a result in the ledger and counts it; may raise ImageWriteError, which ends the batch."""


@dataclass(frozen=True)
class Connection:
    """What is said of a cluster besides its address."""

    worker_timeout_seconds: float = 60.0
    """How long it may be without a worker."""
    tell: Callable[[str], None] = lambda text: None
    """Shows a line to the user."""


NOTHING_SAID = Connection()


class Engine(ABC):
    """Processes tasks, several at once."""

    workers: int
    """Pictures that are processed at once."""
    threads_each: int
    """Threads that one picture may use."""

    @abstractmethod
    def run(
        self, work: PictureWorker, tasks: Iterable[Task], stopped: Callable[[], bool], settle: Settle
    ) -> Generator[PictureResult]:
        """The results in the order in which they finish, each settled once; no task is started once `stopped()`."""

    @abstractmethod
    def peak_bytes(self) -> dict[str, int | None]:
        """Most memory held at once, by device: of all processes that worked, and of the pools on their GPUs."""
