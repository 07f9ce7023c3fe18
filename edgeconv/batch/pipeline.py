"""The work of a batch: every worker takes one picture through all stages, several workers at once.

    read → decode → (host to device → convolve → device to host) → encode → write → ledger row

OpenCV, the CPU engine and CuPy let go of the interpreter lock, so while one worker's picture is on the bus or in a
kernel the others decode and encode. A worker has a session (plan, buffers, CUDA stream) of its own and one picture in
hand, so memory is bounded by the number of workers and does not grow with the number of pictures.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import Any

from edgeconv import temporaries
from edgeconv.batch.earlier import Earlier
from edgeconv.batch.ledger import Ledger, Row, sha256_of
from edgeconv.batch.plan import Task, real_paths, shard
from edgeconv.batch.settings import Settings
from edgeconv.batch.summary import Outcome, Summary
from edgeconv.devices import get_device
from edgeconv.errors import EdgeconvError, ImageReadError, ImageWriteError, MemoryLimitError
from edgeconv.files import read_bytes, refuse_overwrite, write_bytes_atomically
from edgeconv.image import decode_image, encode_image
from edgeconv.job import FORMAT_OF_DTYPE
from edgeconv.problem import Problem
from edgeconv.session import Session
from edgeconv.threads import usable_threads
from edgeconv.timing import Stopwatch


class Batch:
    """Runs tasks. `stop` may be called from a signal handler: pictures in hand are finished, no more are begun."""

    def __init__(self, tasks: list[Task], settings: Settings) -> None:
        """`tasks` are those of all shares, so that no share writes over another's input."""
        self.tasks = shard(tasks, *settings.share)
        self._settings = settings
        self._parameters = settings.parameters_sha256()
        self._inputs = real_paths(tasks)
        self._device = get_device(settings.choice.device)
        self._local = threading.local()
        self._stop_reason: str | None = None
        self._failures = 0
        self._failures_lock = threading.Lock()
        self._names_taken: dict[str, Task] = {}
        self.workers = max(1, min(settings.jobs or usable_threads(), len(self.tasks)))
        threads = settings.options.threads or threads_each(self.workers)
        self._options = replace(settings.options, threads=threads)
        self._earlier = Earlier(settings.output, self._parameters)

    def stop(self, reason: str) -> None:
        """Begin no more pictures."""
        self._stop_reason = reason

    def run(self, on_progress: Callable[[Summary], None] = lambda summary: None) -> Summary:
        """Filter everything; raises only what makes going on pointless (no folder or ledger to write to)."""
        started = time.perf_counter()
        self._make_folder(self._settings.output)
        summary = Summary(pictures=len(self.tasks), workers=self.workers, left_overs=self._remove_left_overs())
        leave_cores_to(self.workers)
        with Ledger(self._settings.output) as ledger, ThreadPoolExecutor(self.workers) as pool:
            running: set[Future[Outcome]] = set()
            waiting = iter(self.tasks)
            try:
                while True:
                    while len(running) < 2 * self.workers and self._stop_reason is None:
                        task = next(waiting, None)
                        if task is None:
                            break
                        running.add(pool.submit(self._one, task, ledger))
                    if not running:
                        break
                    finished, running = wait(running, return_when=FIRST_COMPLETED)
                    for future in finished:
                        summary.count(future.result())
                    summary.seconds = time.perf_counter() - started
                    on_progress(summary)
            except BaseException:
                self.stop("an error")  # so that the pool, on the way out, waits only for what is in hand
                raise
        summary.stopped_because = self._stop_reason
        for device in {get_device("cpu"), self._device}:
            summary.peak_bytes[device.name] = device.peak_bytes()
        return summary

    def _remove_left_overs(self) -> list[str]:
        """Remove what killed runs left half-written where this one writes; their names."""
        removed = []
        for folder in sorted({self._settings.output / task.folder for task in self.tasks}):
            for path in temporaries.left_over_in(folder):
                try:
                    path.unlink()
                except OSError:  # gone meanwhile, or not ours to remove: it is in nobody's way
                    continue
                removed.append(str(path))
        return removed

    def _count_failure(self) -> None:
        """In the worker, so that not even the next picture is begun once the limit is reached."""
        limit = self._settings.max_failures
        with self._failures_lock:
            self._failures += 1
            if limit is not None and self._failures >= limit and self._stop_reason is None:
                self._stop_reason = f"{self._failures} failed"

    def _one(self, task: Task, ledger: Ledger) -> Outcome:
        """One picture from file to ledger row. Whatever befalls it ends up in the row; only a lost row is raised."""
        watch = Stopwatch()
        if self._stop_reason is not None:
            return Outcome(str(task.source), "dropped", None, {})
        started = time.perf_counter()
        facts: dict[str, Any] = {"input_bytes": None, "input_sha256": None}
        facts |= {"output": None, "output_bytes": None, "output_sha256": None}
        error: str | None = None
        try:
            if task.problem is not None:
                raise ImageReadError(task.problem)
            with watch.phase("read"):
                data = read_bytes(task.source)
                facts |= {"input_bytes": len(data), "input_sha256": sha256_of(data)}
                earlier = self._earlier_outcome(task, facts["input_sha256"], watch)
            if earlier is not None:
                return earlier
            self._filter(task, data, facts, watch)
        except EdgeconvError as failure:
            error = str(failure)
        except MemoryError:
            error = str(MemoryLimitError(f"{task.source}: out of memory: lower --jobs."))
        except Exception as failure:  # no one picture may end the work on ten thousand others
            error = f"{task.source}: {type(failure).__name__}: {' '.join(str(failure).split())}"
        row = Row(
            input=str(task.source),
            input_realpath=os.path.realpath(task.source),
            parameters_sha256=self._parameters,
            status="done" if error is None else "failed",
            seconds=time.perf_counter() - started,
            error=error,
            **facts,
        )
        if error is not None:
            self._count_failure()
        try:
            ledger.append(row)
        except ImageWriteError:
            self.stop("the ledger cannot be written")
            raise
        return Outcome(row.input, row.status, error, watch.phases_seconds, row.notes)

    def _earlier_outcome(self, task: Task, input_sha256: str, watch: Stopwatch) -> Outcome | None:
        """What an earlier run made of the same input for the same place and parameters, if that still stands."""
        if not self._settings.resume:
            return None
        row = self._earlier.row_of(os.path.realpath(task.source), input_sha256)
        if row is None:
            return None
        if row.status == "failed":
            retry = self._settings.retry_failed
            return None if retry else Outcome(str(task.source), "failed", row.error, watch.phases_seconds, row.notes)
        if Path(row.output or "").parent != task.folder or not self._earlier.still_stands(row):
            return None
        return Outcome(str(task.source), "skipped", None, watch.phases_seconds, row.notes)

    def _filter(self, task: Task, data: bytes, facts: dict[str, Any], watch: Stopwatch) -> None:
        """Decode, convolve, encode and write; what is known goes into `facts` as soon as it is."""
        settings = self._settings
        with watch.phase("decode"):
            picture = decode_image(data, str(task.source), max_pixels=settings.max_pixels)
        facts["notes"] = picture.notes
        pixels = picture.pixels
        with self._device.own_stream(self._options.threads):
            with watch.phase("set_up"):
                session = self._session(settings.request.problem(pixels.shape, pixels.dtype))
            raw = session.convolve(pixels, watch)
        with watch.phase("convolve"):
            finished = settings.request.finish(raw, pixels.dtype)
        height, width = finished.shape[:2]
        suffix = "." + (settings.format or FORMAT_OF_DTYPE[finished.dtype.name])
        relative = task.folder / settings.names.name(task.source.stem, suffix, width, height)
        target = settings.output / relative
        with watch.phase("encode"):
            encoded = encode_image(finished, target, threads=self._options.threads, quality=settings.quality)
        with watch.phase("write"):
            digest = sha256_of(encoded)
            self._write(task, target, relative.as_posix(), encoded, digest)
        facts |= {"output": relative.as_posix(), "output_bytes": len(encoded), "output_sha256": digest}

    def _write(self, task: Task, target: Path, name: str, encoded: bytes | memoryview, digest: str) -> None:
        """Put the output in place unless it is there already; never over an input or what is not ours."""
        refuse_overwrite(task.source, target)
        first = self._names_taken.setdefault(name.lower(), task)
        if first is not task:
            raise ImageWriteError(f"{target}: is where {first.source} goes: give --name what tells the two apart.")
        if target.exists():
            if os.path.realpath(target) in self._inputs:
                raise ImageWriteError(f"{target}: is one of the inputs: choose another folder with -o.")
            present = sha256_of(target.read_bytes())
            if present == digest:
                return
            if not self._settings.overwrite:
                self._earlier.refuse_unless_ours(name, present, os.path.realpath(task.source))
        self._make_folder(target.parent)
        write_bytes_atomically(target, encoded)

    def _session(self, problem: Problem) -> Session:
        """This worker's session; made anew only when shape or type change."""
        key = (problem.input_shape, problem.dtype)
        if getattr(self._local, "key", None) != key:
            self._local.session = None  # let go of the old buffers before new ones are taken
            self._local.key = None
            choice = self._settings.choice
            self._local.session = Session(problem, choice.method, choice.device, self._options)
            self._local.key = key
        session: Session = self._local.session
        return session

    @staticmethod
    def _make_folder(folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ImageWriteError(f"Output folder '{folder}' cannot be made: {error.strerror}.") from None


def threads_each(workers: int) -> int:
    """Threads for every worker, so that all together keep every usable core busy and no more."""
    return max(1, usable_threads() // workers)


def leave_cores_to(workers: int) -> None:
    """Keep OpenCV from starting threads of its own beside those that already keep every core busy."""
    import cv2

    cv2.setNumThreads(threads_each(workers))
