"""What processes the pictures of a batch: threads of this process here, workers of a Dask cluster in cluster.py."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from queue import Empty, SimpleQueue
from threading import Lock

from edgeconv.api.auto import Choice, choose
from edgeconv.batch.process import LIST_BYTES, MAX_LIST, PictureProcessor, PictureWork, held_bytes, share_machine
from edgeconv.batch.stores import Task
from edgeconv.batch.summary import PictureResult
from edgeconv.core.chains import ChainProblem
from edgeconv.core.choices import DeviceName
from edgeconv.core.problem import Problem
from edgeconv.hardware.threads import usable_threads

MOST_AT_FILES = 3
"""Threads that read, and as many that write: more of them wait for the interpreter rather than for files."""
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
    """Threads of this process: for each usable core one that computes, unless told otherwise, and some at its files.

    A picture goes from one that reads to one that computes and to one that writes, so that no core waits for a file.
    What the GPU decodes goes to one more thread, as a list of what has come together meanwhile. OpenCV, the CPU engine,
    the codecs and CuPy release the interpreter lock, so while one picture is filtered others are decoded and encoded.
    """

    def __init__(self, jobs: int | None, pictures: int) -> None:
        self.workers = max(1, min(jobs or usable_threads(), pictures))
        self.threads_each = max(1, usable_threads() // self.workers)

    def run(
        self, processor: PictureProcessor, tasks: Iterable[Task], stopped: Callable[[], bool], record: Record
    ) -> Generator[PictureResult]:
        """See Engine.run; a worker records its own results, so that not one more is begun after the last that may."""
        share_machine(self.threads_each)
        line = _Line(processor, self.workers, stopped, record)
        waiting, begun = iter(tasks), 0
        try:
            while True:
                if not stopped():
                    for task in islice(waiting, line.places - begun):
                        line.begin(task)
                        begun += 1
                if not begun:
                    return
                with suppress(Empty):
                    result = line.ended.get(timeout=LOOK_SECONDS)
                    begun -= 1
                    if isinstance(result, BaseException):
                        raise result
                    if result is not None:
                        yield result
        finally:
            line.close()

    def peak_bytes(self, device: DeviceName) -> dict[str, int | None]:
        return held_bytes(device)


class _Line:
    """Threads that hand pictures on to each other; what comes of each is in `ended`.

    That is its result, None where the batch was stopped before it was computed, or an error that ends the batch.
    """

    def __init__(self, processor: PictureProcessor, workers: int, stopped: Callable[[], bool], record: Record) -> None:
        self.ended: SimpleQueue[PictureResult | BaseException | None] = SimpleQueue()
        self._processor, self._stopped, self._record = processor, stopped, record
        by_lists = processor.settings.jpeg_codec == "gpu"
        at_files = MOST_AT_FILES if by_lists else min(MOST_AT_FILES, workers)
        self._reading, self._writing = ThreadPoolExecutor(at_files), ThreadPoolExecutor(at_files)
        self._computing, self._by_lists = ThreadPoolExecutor(workers), ThreadPoolExecutor(1)
        self._for_lists: deque[PictureWork] = deque()
        self._unread, self._counting = 0, Lock()
        self.places = 2 * workers + 2 * at_files + (3 * MAX_LIST if by_lists else 0)
        """Pictures that may be under way: each has its file in memory, and those that are computed have pixels."""

    def begin(self, task: Task) -> None:
        """Take a picture."""
        with self._counting:
            self._unread += 1
        self._reading.submit(self._ending_alone, self._read, [self._processor.begin(task)])

    def close(self) -> None:
        """Let those that are worked on pass through; the others are not begun."""
        for pool in (self._reading, self._computing, self._by_lists, self._writing):
            pool.shutdown(cancel_futures=pool is self._reading)

    def _ending_alone(self, stage: Callable[[list[PictureWork]], None], works: list[PictureWork]) -> None:
        """A stage of pictures; an error of it ends the batch."""
        try:
            stage(works)
        except BaseException as error:
            self.ended.put(error)

    def _read(self, works: list[PictureWork]) -> None:
        (work,) = works
        if self._stopped():
            self.ended.put(None)
        else:
            self._processor.read(works)
            if not work.is_open:
                self._end(work)
            elif self._processor.goes_by_lists(work):
                self._for_lists.append(work)
            else:
                self._computing.submit(self._ending_alone, self._compute, works)
        with self._counting:
            self._unread -= 1
        if self._is_list_ready():
            self._by_lists.submit(self._ending_alone, self._compute_lists, [])

    def _is_list_ready(self) -> bool:
        """Whether there is a whole list, or what there is will not become more: short lists are slow."""
        return len(self._for_lists) >= MAX_LIST or (len(self._for_lists) > 0 and not self._unread)

    def _compute_lists(self, works: list[PictureWork]) -> None:
        while self._is_list_ready():
            works, pixels = [], 0
            while self._for_lists and len(works) < MAX_LIST and pixels < LIST_BYTES:
                works.append(self._for_lists.popleft())
                pixels += works[-1].pixel_bytes
            self._compute(works)

    def _compute(self, works: list[PictureWork]) -> None:
        if self._stopped():
            for _ in works:
                self.ended.put(None)
            return
        self._processor.compute(works)
        for work in works:
            if work.is_open:
                self._writing.submit(self._ending_alone, self._write, [work])
            else:
                self._end(work)

    def _write(self, works: list[PictureWork]) -> None:
        self._processor.put(works)
        self._end(*works)

    def _end(self, work: PictureWork) -> None:
        result = work.result()
        self._record(result)
        self.ended.put(result)
