"""A handful of threads that wait for work from Python: one pool per process, for OpenCV, the PNG writer and copies.

The work itself runs outside the interpreter lock, so plain threads scale. Waking one costs 10 to 30 µs and may come
much later, which is why work below `PARALLEL_BYTES` stays on the caller's thread. Generated machine code has threads of
its own, which wait inside it (cpu/crew.py).
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue

from edgeconv.hardware.threads import resolve_threads

PARALLEL_BYTES = 4 * 2**20
"""Input and output bytes from which a second thread pays: 0.1 to 0.2 ms of work for one core."""

Job = Callable[[int], None]
"""Called once in every worker with the worker's number, 0 (the caller) to threads - 1."""


def threads_for(asked: int | None, work_bytes: int, pieces: int) -> int:
    """Threads worth waking for a run that moves `work_bytes` and can be cut into `pieces`."""
    if work_bytes < PARALLEL_BYTES and asked is None:
        return 1
    return max(1, min(resolve_threads(asked), pieces))


class _Ended:
    """What came of the jobs of a run, as they end."""

    def __init__(self) -> None:
        self.failures: list[BaseException | None] = []
        self._signs: SimpleQueue[None] = SimpleQueue()

    def add(self, failure: BaseException | None) -> None:
        """Called by who did a job."""
        self.failures.append(failure)
        self._signs.put(None)

    def wait_for(self, jobs: int) -> list[BaseException]:
        """Return when `jobs` of them have ended, and what signal handlers raised meanwhile.

        Nobody leaves earlier: the jobs write to the caller's arrays. An exception may come at any step, so what counts
        is how many have ended; a sign only says that there are more, and may be lost.
        """
        interruptions: list[BaseException] = []
        while True:
            try:
                while len(self.failures) < jobs:
                    self._signs.get()
                return interruptions
            except BaseException as interruption:
                interruptions.append(interruption)


class WorkerPool:
    """Threads that live as long as the process and take one job at a time each."""

    def __init__(self) -> None:
        self.forget_threads()

    def forget_threads(self) -> None:
        """Start anew; a forked child needs it, in which only the forking thread lives on."""
        self._jobs: SimpleQueue[tuple[Job, int, _Ended]] = SimpleQueue()
        self._started = 0
        self._lock = threading.Lock()

    def run(self, job: Job, threads: int) -> None:
        """Call `job(0)` here and `job(1)` to `job(threads - 1)` elsewhere, or fewer where the system gives no threads.

        Returns when all have. The first exception of any of them is raised here then, as is one of a signal handler
        (Ctrl-C).
        """
        ended = _Ended()
        given = 0
        interruptions: list[BaseException] = []
        try:
            for worker in range(1, 1 + self._helpers(threads - 1)):
                self._jobs.put((job, worker, ended))
                given = worker
            job(0)
        finally:
            interruptions = ended.wait_for(given)
        for failure in (*interruptions, *ended.failures):
            if failure is not None:
                raise failure

    def _helpers(self, wanted: int) -> int:
        """Start threads until there are `wanted`; how many of those there are."""
        with self._lock:
            while self._started < wanted:
                try:
                    threading.Thread(target=self._work, name=f"edgeconv-{self._started + 1}", daemon=True).start()
                except RuntimeError:  # the system has no more threads for this process
                    break
                self._started += 1
            return min(self._started, wanted)

    def _work(self) -> None:
        while True:
            job, worker, ended = self._jobs.get()
            failure: BaseException | None = None
            try:
                job(worker)
            except BaseException as error:  # handed to the caller, who raises it
                failure = error
            del job  # a thread that waits must not keep the last pictures alive
            ended.add(failure)
            del ended, failure


POOL = WorkerPool()
os.register_at_fork(after_in_child=POOL.forget_threads)


def run_pieces(work: Callable[[int, int], None], pieces: int, threads: int) -> None:
    """Call `work(piece, worker)` for every piece, each taken by whichever of `threads` workers is free next.

    Once one has raised, none is begun any more.
    """
    if threads == 1:
        for piece in range(pieces):
            work(piece, 0)
        return
    counter = itertools.count()  # next() on it is atomic under the interpreter lock

    failed = False

    def take(worker: int) -> None:
        nonlocal failed
        while not failed and (piece := next(counter)) < pieces:
            try:
                work(piece, worker)
            except BaseException:
                failed = True
                raise

    POOL.run(take, threads)
