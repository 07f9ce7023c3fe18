"""What processes the pictures of a batch: threads of this process here, workers of a Dask cluster in cluster.py."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice

from edgeconv.api.auto import Choice, choose
from edgeconv.batch.process import PictureProcessor, held_bytes, leave_cores_to
from edgeconv.batch.stores import Task
from edgeconv.batch.summary import PictureResult
from edgeconv.core.chains import ChainProblem
from edgeconv.core.choices import DeviceName
from edgeconv.core.problem import Problem
from edgeconv.hardware.threads import usable_threads

LOOK_SECONDS = 0.2
"""How often waiting is interrupted: Python sees a signal that came just before it began only once it is over."""

Record = Callable[[PictureResult], None]
"""Writes a result into the ledger and counts it; may raise ImageWriteError, which ends the batch."""


class Engine(ABC):
    """Processes tasks, several at once."""

    workers: int
    """Pictures that are processed at once."""
    threads_each: int
    """Threads that one picture may use."""

    def choose(self, method: str, device: str, problem: Problem | ChainProblem | None) -> Choice:
        """The method and device for all pictures, where they are processed. Raises UsageError, UnavailableError."""
        return choose(method, device, problem)

    @abstractmethod
    def run(
        self, processor: PictureProcessor, tasks: Iterable[Task], stopped: Callable[[], bool], record: Record
    ) -> Generator[PictureResult]:
        """The results as they arrive, each recorded once; no task is started once `stopped()`."""

    @abstractmethod
    def peak_bytes(self, device: DeviceName) -> dict[str, int | None]:
        """Most memory held at once, by device: of all processes that worked, and of the pools on their GPUs."""


class Threads(Engine):
    """As many threads as there are usable cores, unless told otherwise.

    OpenCV, the CPU engine and CuPy release the interpreter lock, so while one worker's picture is copied or filtered
    the others decode and encode.
    """

    def __init__(self, jobs: int | None, pictures: int) -> None:
        self.workers = max(1, min(jobs or usable_threads(), pictures))
        self.threads_each = max(1, usable_threads() // self.workers)

    def run(
        self, processor: PictureProcessor, tasks: Iterable[Task], stopped: Callable[[], bool], record: Record
    ) -> Generator[PictureResult]:
        """See Engine.run; a worker records its own results, so that not one more is begun after the last that may."""
        leave_cores_to(self.threads_each)

        def one(task: Task) -> PictureResult | None:
            if stopped():
                return None
            (result,) = processor.process([task])
            record(result)
            return result

        waiting = iter(tasks)
        running: set[Future[PictureResult | None]] = set()
        pool = ThreadPoolExecutor(self.workers)
        try:
            while True:
                if not stopped():
                    running |= {pool.submit(one, task) for task in islice(waiting, 2 * self.workers - len(running))}
                if not running:
                    return
                finished, running = wait(running, LOOK_SECONDS, FIRST_COMPLETED)
                yield from filter(None, (future.result() for future in finished))
        finally:
            pool.shutdown(cancel_futures=True)

    def peak_bytes(self, device: DeviceName) -> dict[str, int | None]:
        return held_bytes(device)
