"""Threads of this process.

OpenCV, the CPU engine and CuPy release the interpreter lock, so while one worker's picture is copied or filtered the
others decode and encode.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice

from edgeconv.batch.engines.base import Engine, Settle
from edgeconv.batch.summary import PictureResult
from edgeconv.batch.task import Task
from edgeconv.batch.worker import PictureWorker, held_bytes, leave_cores_to
from edgeconv.core.choices import DeviceName
from edgeconv.hardware.threads import usable_threads

LOOK_SECONDS = 0.2
"""How often waiting is interrupted: Python sees a signal that came just before it began only once it is over."""


class Threads(Engine):
    """As many as there are usable cores, unless told otherwise."""

    def __init__(self, jobs: int | None, pictures: int, device: DeviceName) -> None:
        self.workers = max(1, min(jobs or usable_threads(), pictures))
        self.threads_each = max(1, usable_threads() // self.workers)
        self._device = device

    def run(
        self, work: PictureWorker, tasks: Iterable[Task], stopped: Callable[[], bool], settle: Settle
    ) -> Generator[PictureResult]:
        """See Engine.run; a worker settles its own outcomes, so that not one more is begun after the last that may."""
        leave_cores_to(self.threads_each)

        def one(task: Task) -> PictureResult:
            if stopped():
                return PictureResult(task.source, "dropped", None, {})
            outcome = work.one(task)
            settle(outcome)
            return outcome

        waiting = iter(tasks)
        with ThreadPoolExecutor(self.workers) as pool:
            running: set[Future[PictureResult]] = set()
            while True:
                if not stopped():
                    running |= {pool.submit(one, task) for task in islice(waiting, 2 * self.workers - len(running))}
                if not running:
                    return
                finished, running = wait(running, LOOK_SECONDS, FIRST_COMPLETED)
                for future in finished:
                    yield future.result()

    def peak_bytes(self) -> dict[str, int | None]:
        return held_bytes(self._device)
