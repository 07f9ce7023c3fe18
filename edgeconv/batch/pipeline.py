"""The work of a batch: every worker takes one picture through all stages, several workers at once.

    read → decode → (host to device → convolve → device to host) → encode → write → ledger row

OpenCV, the CPU engine and CuPy let go of the interpreter lock, so while one worker's picture is on the bus or in a
kernel the others decode and encode. A worker has a session (plan, buffers, CUDA stream) of its own and one picture in
hand, so memory is bounded by the number of workers and does not grow with the number of pictures.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from edgeconv.batch.ledger import Ledger, Row, read_rows, sha256_of
from edgeconv.batch.plan import Names, Task
from edgeconv.choose import Choice
from edgeconv.devices import get_device
from edgeconv.errors import EdgeconvError, ImageWriteError, MemoryLimitError
from edgeconv.files import read_bytes, refuse_overwrite, write_bytes_atomically
from edgeconv.image import decode_image, encode_image
from edgeconv.job import FORMAT_OF_DTYPE
from edgeconv.methods.base import Options
from edgeconv.problem import Problem
from edgeconv.report import describe_filter
from edgeconv.request import Request
from edgeconv.session import Session
from edgeconv.threads import usable_threads
from edgeconv.timing import Stopwatch

STAGES = ("read", "decode", "set_up", "host_to_device", "convolve", "device_to_host", "encode", "write")
"""In the order of one picture; on the CPU nothing crosses a bus."""


@dataclass(frozen=True)
class Settings:
    """What is done to every picture, and what happens when one fails."""

    request: Request
    choice: Choice
    output: Path
    names: Names
    options: Options = field(default_factory=Options)
    format: str | None = None
    """A suffix without its dot; None keeps every bit in the commonest format."""
    overwrite: bool = False
    resume: bool = False
    retry_failed: bool = False
    jobs: int | None = None
    max_failures: int | None = None
    max_pixels: int = 2**28

    def parameters_sha256(self) -> str:
        """Hash of everything that decides what an output holds."""
        request = self.request
        words = {
            "filter": describe_filter(request.filter),
            "channels": request.channels,
            "luma": request.luma,
            "stride": request.stride,
            "padding": request.padding,
            "border": request.border,
            "output_mode": request.output_mode,
            "method": self.choice.method,
            "device": self.choice.device,
            "math": self.options.math,
            "name": self.names.template,
            "format": self.format,
        }
        return hashlib.sha256(json.dumps(words, sort_keys=True).encode()).hexdigest()


@dataclass
class Summary:
    """How a batch went. Stage seconds are summed over all workers."""

    pictures: int
    done: int = 0
    skipped: int = 0
    """Done before and unchanged since."""
    failed: int = 0
    seconds: float = 0.0
    workers: int = 1
    stopped_because: str | None = None
    stage_seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))
    failures: list[tuple[str, str]] = field(default_factory=list)

    @property
    def finished(self) -> int:
        """Pictures that need no more work in this run."""
        return self.done + self.skipped + self.failed

    @property
    def pictures_per_second(self) -> float:
        """Of those that were done."""
        return self.done / self.seconds if self.seconds > 0 else 0.0

    @property
    def slowest_stage(self) -> str:
        """The stage that most worker time went into."""
        return max(self.stage_seconds, key=lambda stage: self.stage_seconds[stage])

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        record = asdict(self)
        record["failures"] = [{"input": source, "error": error} for source, error in self.failures]
        return record | {"pictures_per_second": self.pictures_per_second, "slowest_stage": self.slowest_stage}


@dataclass(frozen=True)
class _Outcome:
    source: str
    state: Literal["done", "skipped", "failed", "dropped"]
    """`skipped`: done before and unchanged. `dropped`: not begun, because the batch was stopped."""
    error: str | None
    stage_seconds: dict[str, float]


class Batch:
    """Runs tasks. `stop` may be called from a signal handler: pictures in hand are finished, no more are begun."""

    def __init__(self, tasks: list[Task], settings: Settings) -> None:
        self._tasks, self._settings = tasks, settings
        self._parameters = settings.parameters_sha256()
        self._sources = {os.path.realpath(task.source) for task in tasks}
        self._local = threading.local()
        self._stop_reason: str | None = None
        self._failures = 0
        self._failures_lock = threading.Lock()
        workers = settings.jobs or usable_threads()
        self.workers = max(1, min(workers, len(tasks)))
        threads = settings.options.threads or max(1, usable_threads() // self.workers)
        self._options = replace(settings.options, threads=threads)
        known = list(read_rows(settings.output))
        self._earlier = {row.input: row for row in known if row.parameters_sha256 == self._parameters}
        self._own = {row.output: row for row in known if row.status == "done" and row.output is not None}

    def stop(self, reason: str) -> None:
        """Begin no more pictures."""
        self._stop_reason = reason

    def run(self, on_progress: Callable[[Summary], None] = lambda summary: None) -> Summary:
        """Filter everything; raises only what makes going on pointless (no ledger, no device)."""
        summary = Summary(pictures=len(self._tasks), workers=self.workers)
        started = time.perf_counter()
        self._make_folder(self._settings.output)
        _one_thread_each(self.workers)
        with Ledger(self._settings.output) as ledger, ThreadPoolExecutor(self.workers) as pool:
            running: set[Future[_Outcome]] = set()
            waiting = iter(self._tasks)
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
                    self._count(future.result(), summary)
                summary.seconds = time.perf_counter() - started
                on_progress(summary)
        summary.stopped_because = self._stop_reason
        return summary

    def _count(self, outcome: _Outcome, summary: Summary) -> None:
        for stage, seconds in outcome.stage_seconds.items():
            summary.stage_seconds[stage] += seconds
        if outcome.state == "done":
            summary.done += 1
        elif outcome.state == "skipped":
            summary.skipped += 1
        elif outcome.state == "failed":
            summary.failed += 1
            summary.failures.append((outcome.source, outcome.error or "failed"))

    def _count_failure(self) -> None:
        """In the worker, so that not even the next picture is begun once the limit is reached."""
        limit = self._settings.max_failures
        with self._failures_lock:
            self._failures += 1
            if limit is not None and self._failures >= limit and self._stop_reason is None:
                self._stop_reason = f"{self._failures} failed"

    def _one(self, task: Task, ledger: Ledger) -> _Outcome:
        """One picture from file to ledger row; its own errors end up in the row."""
        watch = Stopwatch()
        if self._stop_reason is not None:
            return _Outcome(str(task.source), "dropped", None, {})
        started = time.perf_counter()
        facts: dict[str, Any] = {"input_bytes": None, "input_sha256": None}
        facts |= {"output": None, "output_bytes": None, "output_sha256": None}
        error: str | None = None
        try:
            with watch.phase("read"):
                data = read_bytes(task.source)
                facts |= {"input_bytes": len(data), "input_sha256": sha256_of(data)}
            earlier = self._earlier_outcome(task, facts["input_sha256"], watch)
            if earlier is not None:
                return earlier
            facts |= self._filter(task, data, watch)
        except EdgeconvError as failure:
            error = str(failure)
        except MemoryError:
            error = str(MemoryLimitError(f"{task.source}: out of memory: lower --jobs."))
        row = Row(
            input=str(task.source),
            parameters_sha256=self._parameters,
            status="done" if error is None else "failed",
            seconds=time.perf_counter() - started,
            error=error,
            **facts,
        )
        if error is not None:
            self._count_failure()
        ledger.append(row)
        return _Outcome(row.input, row.status, error, watch.phases_seconds)

    def _earlier_outcome(self, task: Task, input_sha256: str, watch: Stopwatch) -> _Outcome | None:
        """What an earlier run made of the same input with the same parameters, if that still stands."""
        row = self._earlier.get(str(task.source))
        if not self._settings.resume or row is None or row.input_sha256 != input_sha256:
            return None
        if row.status == "failed":
            retry = self._settings.retry_failed
            return None if retry else _Outcome(row.input, "failed", row.error, watch.phases_seconds)
        path = self._settings.output / (row.output or "")
        still_there = path.is_file() and path.stat().st_size == row.output_bytes
        return _Outcome(row.input, "skipped", None, watch.phases_seconds) if still_there else None

    def _filter(self, task: Task, data: bytes, watch: Stopwatch) -> dict[str, Any]:
        settings = self._settings
        with watch.phase("decode"):
            picture = decode_image(data, str(task.source), max_pixels=settings.max_pixels)
        pixels = picture.pixels
        with get_device(settings.choice.device).own_stream():
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
            encoded = encode_image(finished, target, threads=self._options.threads)
        with watch.phase("write"):
            digest = sha256_of(encoded)
            self._write(task, target, relative.as_posix(), encoded, digest)
        return {"output": relative.as_posix(), "output_bytes": len(encoded), "output_sha256": digest}

    def _write(self, task: Task, target: Path, name: str, encoded: bytes | memoryview, digest: str) -> None:
        """Put the output in place unless it is there already; never over an input or what is not ours."""
        refuse_overwrite(task.source, target)
        if target.exists():
            present = sha256_of(read_bytes(target))
            if present == digest:
                return
            if os.path.realpath(target) in self._sources:
                raise ImageWriteError(f"{target}: is one of the inputs: choose another folder with -o.")
            own = self._own.get(name)
            if not self._settings.overwrite and (own is None or own.output_sha256 != present):
                raise ImageWriteError(f"{target}: exists and is not ours: pass --overwrite, or -o for another folder.")
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


def _one_thread_each(workers: int) -> None:
    """Keep OpenCV from starting threads of its own beside those that already keep every core busy."""
    import cv2

    cv2.setNumThreads(max(1, usable_threads() // workers))
