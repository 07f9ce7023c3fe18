"""Processing of one picture of a batch, in a thread or in the process of a cluster.

    read → decode → (host to device → convolve → device to host) → encode → write → row of the ledger

Pixels that the GPU decodes or encodes (codecs.py) are not copied between host and device.

Each thread has its own session (plan, buffers, CUDA stream) and processes one picture at a time, so memory is bounded
by the number of threads, whatever the number of pictures. The row is created here and written by the one process that
owns the ledger.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.api.session import Session
from edgeconv.batch.codecs import Codecs
from edgeconv.batch.ledger import sha256_of
from edgeconv.batch.previous_results import PreviousResults
from edgeconv.batch.row import LedgerRow
from edgeconv.batch.settings import Settings
from edgeconv.batch.stores import is_remote, store_of
from edgeconv.batch.summary import PictureResult
from edgeconv.batch.task import Task
from edgeconv.core.chains import ChainProblem
from edgeconv.core.choices import DeviceName
from edgeconv.core.problem import Problem
from edgeconv.core.timing import Stopwatch
from edgeconv.errors import EdgeconvError, ImageReadError, ImageWriteError, MemoryLimitError, one_line_with_class
from edgeconv.hardware.devices import get_device
from edgeconv.io.contained_paths import ForeignFileError
from edgeconv.io.files import NameTakenError, as_compared, refuse_overwrite
from edgeconv.io.formats import FORMAT_OF_DTYPE
from edgeconv.methods.options import Options

MOST_TRIES = 8
"""To write an output whose file another process creates and removes again in between."""

OF_AN_EARLIER_RUN = "(in an earlier run; --retry-failed tries again)"


class PictureWorker:
    """Processes pictures, in any number of threads at once. Another process gets a copy by pickling."""

    def __init__(self, settings: Settings, options: Options, inputs: frozenset[str], previous: PreviousResults) -> None:
        """`inputs` are the identities of all input files of all shares, which no output may ever replace."""
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
        """One plan at a time: threads that start together would each compile what the first one puts in the cache."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._settings, self._options, self._inputs, self._previous)

    def one(self, task: Task) -> PictureResult:
        """Process one picture, from file to row. Any error ends up in the row; nothing is raised."""
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
        except Exception as failure:  # one picture must not stop the processing of ten thousand others
            error = f"{task.source}: {one_line_with_class(failure)}"
        return self._outcome(task, facts, error, time.perf_counter() - started, watch.phases_seconds)

    def lost(self, task: Task, error: str) -> PictureResult:
        """The result for a picture whose worker process terminated."""
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
        """The result of an earlier run for the same input, place and parameters, if its output is still unchanged."""
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
        """Decode, convolve, encode and write; `facts` is filled in step by step, for the row."""
        settings = self._settings
        with self._device.own_stream(self._options.threads):
            with watch.phase("decode"):
                picture = self._codecs.decode(data, task.source)
            facts["notes"] = picture.notes
            finished = self._convolve(picture.pixels, watch, may_stay=True)
            finished = finished.reshape(settings.request.output_shape(picture.shape, finished.shape))
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
        """The finished output of a picture (HWC), by this thread's session and stream; valid until its next picture."""
        with self._device.own_stream(self._options.threads):
            return np.asarray(self._convolve(pixels, watch, may_stay=False))

    def _convolve(self, pixels: Any, watch: Stopwatch, may_stay: bool) -> Any:
        """As `convolve`, for a picture that may be on the GPU; the output stays there if it is encoded there."""
        with watch.phase("set_up"):
            request = self._settings.request.settled(pixels, self._module_of(pixels))
            problem = request.picture_problem(pixels.shape, pixels.dtype)
            session = self._session(problem)
        arrays: Any = np
        if may_stay and self._codecs.encodes_on_gpu(problem.output_shape, request.output_dtype(pixels.dtype)):
            arrays = import_module("cupy")
            out = session.convolve_and_leave(pixels, watch)
        else:
            out = session.convolve(pixels, watch, self._thread.result)
        with watch.phase("convolve"):
            finished = request.finish(out, pixels.dtype, arrays, image=pixels)
        if request.threshold is None:
            return finished
        with watch.phase("threshold"):
            return request.mask(finished, arrays)

    def _write(self, task: Task, target: str, name: str, encoded: bytes | memoryview, digest: str) -> None:
        """Write the output unless the same bytes are in place already; never over an input or a file to be kept.

        A file that appears between this check and the writing is checked again.
        """
        if not is_remote(task.source) and not is_remote(target):
            refuse_overwrite(task.source, target)
        first = self._names_taken.setdefault(as_compared(name), task)
        if first != task:
            raise ImageWriteError(
                f"{target}: is the output of {first.source} too: choose a --name that gives them different names."
            )
        folder = self._settings.output
        try:
            for _ in range(MOST_TRIES):
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
        raise ImageWriteError(f"{target}: another process keeps creating and removing it: choose another folder.")

    @staticmethod
    def _module_of(pixels: Any) -> Any:
        """NumPy, or CuPy of a picture that was decoded on the GPU."""
        return np if isinstance(pixels, np.ndarray) else import_module("cupy")

    def _session(self, problem: Problem | ChainProblem) -> Session:
        """This thread's session and the array for its results; created anew only when its problem is another one.

        That is another shape or type, and of a chain other thresholds.
        """
        key = (problem.input_shape, problem.dtype, problem.chain if isinstance(problem, ChainProblem) else None)
        if getattr(self._thread, "key", None) != key:
            self._thread.session = self._thread.result = None  # free the old buffers before allocating new ones
            self._thread.key = None
            choice = self._settings.choice
            with self._set_up:
                self._thread.session = Session(problem, choice.method, choice.device, self._options)
            self._thread.result = self._thread.session.new_result()
            self._thread.key = key
        session: Session = self._thread.session
        return session


def held_bytes(device: DeviceName) -> dict[str, int | None]:
    """Peak memory of this process, and of its pool on a GPU, so far."""
    return {each.name: each.peak_bytes() for each in dict.fromkeys((get_device("cpu"), get_device(device)))}


def leave_cores_to(threads: int) -> None:
    """Limit OpenCV to `threads` threads per picture, its share of the cores."""
    import cv2

    cv2.setNumThreads(threads)
