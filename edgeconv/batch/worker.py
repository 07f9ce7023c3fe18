"""What becomes of one picture, wherever that is done.

    read → decode → (host to device → convolve → device to host) → encode → write → row of the ledger

What a GPU decodes or encodes (codecs.py) does not cross the bus.

A thread has a session (plan, buffers, CUDA stream) of its own and one picture in hand, so memory is bounded by the
number of threads and does not grow with the number of pictures. The row is only made here; one process, the one that
owns the ledger, writes it.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.batch.codecs import Codecs
from edgeconv.batch.ledger import sha256_of
from edgeconv.batch.names import as_compared
from edgeconv.batch.previous_results import PreviousResults
from edgeconv.batch.row import LedgerRow
from edgeconv.batch.settings import Settings
from edgeconv.batch.stores import is_remote, store_of
from edgeconv.batch.summary import PictureResult
from edgeconv.batch.task import Task
from edgeconv.core.problem import Problem
from edgeconv.core.timing import Stopwatch
from edgeconv.errors import EdgeconvError, ImageReadError, ImageWriteError, MemoryLimitError
from edgeconv.io.contained_paths import ForeignFileError
from edgeconv.io.files import NameTakenError, refuse_overwrite
from edgeconv.io.formats import FORMAT_OF_DTYPE
from edgeconv.methods.base import DeviceName, Options
from edgeconv.runtime.devices import get_device
from edgeconv.runtime.session import Session

MOST_LOOKS = 8
"""At an output's place, which somebody else may take and leave again."""

OF_AN_EARLIER_RUN = "(in an earlier run; --retry-failed tries again)"


class PictureWorker:
    """Does a batch's work, by any number of threads at once. Another process gets a copy by pickling."""

    def __init__(self, settings: Settings, options: Options, inputs: frozenset[str], previous: PreviousResults) -> None:
        """`inputs` are the identities of all pictures of all shares, which no output may ever replace."""
        self._settings, self._options, self._inputs, self._previous = settings, options, inputs, previous
        self._parameters = settings.parameters_sha256()
        self.output, self.device_name = settings.output, settings.choice.device
        self.jpeg_codec = settings.jpeg_codec
        self._device = get_device(self.device_name)
        self._codecs = Codecs(settings, options.threads)
        self._store = store_of(settings.output)
        self._names_taken: dict[str, Task] = {}
        self._thread = threading.local()
        self._set_up = threading.Lock()
        """One plan at a time: threads that begin together would all compile what the first one leaves for them."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._settings, self._options, self._inputs, self._previous)

    def one(self, task: Task) -> PictureResult:
        """One picture from file to row. Whatever befalls it ends up in the row; nothing is raised."""
        watch = Stopwatch()
        started = time.perf_counter()
        facts: dict[str, Any] = {"input_bytes": None, "input_sha256": None}
        facts |= {"output": None, "output_bytes": None, "output_sha256": None}
        error: str | None = None
        try:
            if task.problem is not None:
                raise ImageReadError(task.problem)
            with watch.phase("read"):
                data = store_of(task.source).read(task.source, self._settings.rules)
                facts |= {"input_bytes": len(data), "input_sha256": sha256_of(data)}
                previous = self._previous_outcome(task, facts["input_sha256"], watch)
            if previous is not None:
                return previous
            self._filter(task, data, facts, watch)
        except EdgeconvError as failure:
            error = str(failure)
        except MemoryError:
            error = str(MemoryLimitError(f"{task.source}: out of memory: lower --jobs."))
        except Exception as failure:  # no one picture may end the work on ten thousand others
            error = f"{task.source}: {type(failure).__name__}: {' '.join(str(failure).split())}"
        return self._outcome(task, facts, error, time.perf_counter() - started, watch.phases_seconds)

    def lost(self, task: Task, error: str) -> PictureResult:
        """The outcome of a picture that ended the process that worked on it."""
        facts = dict.fromkeys(("input_bytes", "input_sha256", "output", "output_bytes", "output_sha256"))
        return self._outcome(task, facts, error, 0.0, {})

    def _outcome(
        self, task: Task, facts: dict[str, Any], error: str | None, seconds: float, stage_seconds: dict[str, float]
    ) -> PictureResult:
        row = LedgerRow(
            input=task.source,
            input_realpath=task.identity,
            parameters_sha256=self._parameters,
            status="done" if error is None else "failed",
            seconds=seconds,
            error=error,
            **facts,
        )
        return PictureResult(row.input, row.status, error, stage_seconds, row.notes, row)

    def _previous_outcome(self, task: Task, input_sha256: str, watch: Stopwatch) -> PictureResult | None:
        """What an earlier run made of the same input for the same place and parameters, if that still stands."""
        if not self._settings.resume:
            return None
        row = self._previous.row_of(task, input_sha256)
        if row is None:
            return None
        if row.status == "failed":
            if self._settings.retry_failed or self._settings.overwrite:
                return None
            error = f"{row.error} {OF_AN_EARLIER_RUN}"
            return PictureResult(task.source, "failed", error, watch.phases_seconds, row.notes)
        if not self._previous.still_stands(row):
            return None
        return PictureResult(task.source, "skipped", None, watch.phases_seconds, row.notes)

    def _filter(self, task: Task, data: bytes, facts: dict[str, Any], watch: Stopwatch) -> None:
        """Decode, convolve, encode and write; what is known goes into `facts` as soon as it is."""
        settings = self._settings
        with self._device.own_stream(self._options.threads):
            with watch.phase("decode"):
                picture = self._codecs.decode(data, task.source)
            facts["notes"] = picture.notes
            finished = self._convolve(picture.pixels, watch, may_stay=True)
            height, width = finished.shape[:2]
            suffix = "." + (settings.format or FORMAT_OF_DTYPE[finished.dtype.name])
            name = (task.folder / settings.names.name(task.stem, task.source_ext, suffix, width, height)).as_posix()
            target = self._store.join(settings.output, name)
            with watch.phase("encode"):
                encoded = self._codecs.encode(finished, target)
        with watch.phase("write"):
            digest = sha256_of(encoded)
            self._write(task, target, name, encoded, digest)
        facts |= {"output": name, "output_bytes": len(encoded), "output_sha256": digest}

    def convolve(self, pixels: NDArray[Any], watch: Stopwatch) -> NDArray[Any]:
        """The finished output of a picture (HWC), by this thread's session and stream; good until its next picture."""
        with self._device.own_stream(self._options.threads):
            return np.asarray(self._convolve(pixels, watch, may_stay=False))

    def _convolve(self, pixels: Any, watch: Stopwatch, may_stay: bool) -> Any:
        """As `convolve`, of a picture that may lie on the GPU; it may stay there where it is encoded there."""
        request = self._settings.request
        with watch.phase("set_up"):
            problem = request.problem(pixels.shape, pixels.dtype)
            session = self._session(problem)
        arrays: Any = np
        if may_stay and self._codecs.encodes_on_gpu(problem.output_shape, request.output_dtype(pixels.dtype)):
            arrays = import_module("cupy")
            out = session.convolve_and_leave(pixels, watch)
        else:
            out = session.convolve(pixels, watch, self._thread.result)
        with watch.phase("convolve"):
            return request.finish(out, pixels.dtype, arrays, image=pixels)

    def _write(self, task: Task, target: str, name: str, encoded: bytes | memoryview, digest: str) -> None:
        """Put the output in place unless it is there already; never over an input or what is not ours.

        What appears between the look and the writing is looked at again.
        """
        if not is_remote(task.source) and not is_remote(target):
            refuse_overwrite(task.source, target)
        first = self._names_taken.setdefault(as_compared(name), task)
        if first != task:
            raise ImageWriteError(f"{target}: is where {first.source} goes: give --name what tells the two apart.")
        folder = self._settings.output
        try:
            for _ in range(MOST_LOOKS):
                present = self._store.output_digest(folder, name)
                if present == digest:
                    return
                if present is not None:
                    if self._store.identity(target) in self._inputs:
                        raise ImageWriteError(f"{target}: is one of the inputs: choose another folder with -o.")
                    if not self._settings.overwrite:
                        self._previous.refuse_to_replace(name, present, task)
                with suppress(NameTakenError):
                    self._store.write_output(folder, name, encoded, replace=present is not None)
                    return
        except ForeignFileError as error:
            raise ImageWriteError(f"{target}: {error}: remove it, or choose another folder with -o.") from None
        raise ImageWriteError(f"{target}: comes and goes: somebody else writes there too: choose another folder.")

    def _session(self, problem: Problem) -> Session:
        """This thread's session and the array for its results; made anew only when shape or type change."""
        key = (problem.input_shape, problem.dtype)
        if getattr(self._thread, "key", None) != key:
            self._thread.session = self._thread.result = None  # let go of the old buffers before new ones are taken
            self._thread.key = None
            choice = self._settings.choice
            with self._set_up:
                self._thread.session = Session(problem, choice.method, choice.device, self._options)
            self._thread.result = self._thread.session.new_result()
            self._thread.key = key
        session: Session = self._thread.session
        return session


def held_bytes(device: DeviceName) -> dict[str, int | None]:
    """The most memory that this process, and its pool on a GPU, have held at once so far."""
    return {each.name: each.peak_bytes() for each in dict.fromkeys((get_device("cpu"), get_device(device)))}


def leave_cores_to(threads: int) -> None:
    """Keep OpenCV from starting more threads for one picture than its share of the cores."""
    import cv2

    cv2.setNumThreads(threads)
