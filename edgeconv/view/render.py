"""What the window shows is computed here, on Qt's threads: the newest request wins, and results are cached by bytes.

    right side (and left)  ── LayerReady ──>  difference  ── DifferenceReady ──>  rest  ── RunMeasured ──>  Done

A request has a generation. A newer one makes it stale: it ends at the next step, or, where its method says how far it
is, within it. Pixels, figures and maps come from the code of `edgeconv run` (api/measure.py) and `edgeconv diff`. The
measurement waits until no control was changed for `REST_SECONDS`, so that it never delays what is displayed.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, NoReturn

from numpy.typing import NDArray
from PySide6.QtCore import QObject, QThread, QThreadPool, QTimer, Signal

from edgeconv.api import measure
from edgeconv.api.auto import choose
from edgeconv.api.figures import RunFigures
from edgeconv.core.output import threshold_text
from edgeconv.core.progress import Listener, Stopped, listening
from edgeconv.core.request import Request
from edgeconv.core.timing import Budget, Clock, Stopwatch
from edgeconv.difference import maps
from edgeconv.difference.compare import DiffRecord, compare
from edgeconv.difference.inputs import ArrayInput, FileInput, Input, require_same_layout
from edgeconv.errors import EdgeconvError, ImageReadError, one_line_with_class
from edgeconv.io.formats import FORMAT_OF_DTYPE
from edgeconv.io.image import Picture, read_image
from edgeconv.io.read_limits import DEFAULT_RULES, ReadRules
from edgeconv.run.job import Job
from edgeconv.run.outputs import default_name
from edgeconv.view.parameters import Parameters
from edgeconv.view.pyramid import HeatPyramid, PicturePyramid, Pyramid
from edgeconv.view.sources import ViewSource, labels
from edgeconv.view.state import ViewRequest
from edgeconv.view.threshold_scale import ThresholdScale, scale_of, scale_of_edges

Side = Literal["left", "right"]

MAX_THREADS_AT_ONCE = 2
"""More would only compete for the cores."""
MAX_THREADS = 8
"""Where methods that do not say how far they are hold up the newest request: each holds an output in memory."""
HELP_SECONDS = 0.3
"""The newest request has waited for so long: then it gets a thread of its own."""
GRACE_SECONDS = HELP_SECONDS + 0.2
"""An unwanted computation goes on for so long, as the next request may want it: another view of one output does."""
TELL_SECONDS = 0.1
"""Between two messages about the progress of one computation."""
REST_SECONDS = 0.25
"""Without a newer request, before the speed is measured."""
LEAVE_SECONDS = 0.1
"""How long a thread may take to finish when the process ends."""
BUDGET = Budget(max_samples=50, time_limit_seconds=0.1)
SLOW_SECONDS = 0.5
"""A method that takes longer is timed only once more."""
CACHE_BYTES = 2**30
"""Of pictures, outputs and layers, each."""


@dataclass(frozen=True, eq=False)
class Layer:
    """One side, ready to be drawn."""

    source: ViewSource
    label: str
    pixels: NDArray[Any]
    """HWC with 1 or 3 channels, any type."""
    pyramid: Pyramid

    @property
    def name(self) -> str:
        """A short name for it."""
        return self.label if self.source.kind == "file" else self.source.label


@dataclass(frozen=True)
class Answer:
    """A result for the request of this generation."""

    generation: int


@dataclass(frozen=True)
class PictureRead(Answer):
    """The current picture was decoded."""

    path: str
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class LayerReady(Answer):
    """A side may be drawn."""

    side: Side
    layer: Layer


@dataclass(frozen=True)
class ShareDone(Answer):
    """How much of what is computed now is done: the output, or with `measuring` its timed run."""

    share: float | None
    """None where the method does not tell."""
    measuring: bool = False


@dataclass(frozen=True)
class ScaleKnown(Answer):
    """The thresholds that mean something for the output that is displayed."""

    scale: ThresholdScale
    hysteresis: tuple[float, float] | None = None
    """Both thresholds of edges, given or found in the picture."""


@dataclass(frozen=True, eq=False)
class DifferenceReady(Answer):
    """Map and figures of right − left."""

    pyramid: Pyramid
    comparisons: DiffRecord


@dataclass(frozen=True)
class RunMeasured(Answer):
    """Speed and error of the displayed output. `again` where it was measured before."""

    picture: str
    parameters: Parameters
    record: RunFigures
    again: bool


@dataclass(frozen=True)
class Failed(Answer):
    """A one-line error message; `unreadable` names a picture that cannot be read."""

    message: str
    unreadable: str | None = None


@dataclass(frozen=True)
class RequestDone(Answer):
    """Nothing more will come."""


class Cache:
    """Values by key, at most `limit_bytes` of them: the least recently used go first, the newest stays.

    Two threads that ask for one value compute it once: the second waits for the first.
    """

    def __init__(self, limit_bytes: int, size_of: Callable[[Any], int]) -> None:
        self._limit_bytes, self._size_of = limit_bytes, size_of
        self._values: OrderedDict[Hashable, Future[Any]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The value of `key`, by `make` where there is none yet; both callers get what `make` raises."""
        while True:
            with self._lock:
                found = self._values.get(key)
                value = self._values.setdefault(key, found or Future())
                self._values.move_to_end(key)
            if found is None:
                return self._made(key, value, make)
            with suppress(Stopped):  # it was not wanted by whoever began it
                return value.result()

    def _made(self, key: Hashable, value: Future[Any], make: Callable[[], Any]) -> Any:
        try:
            value.set_result(make())
        except BaseException as error:
            with self._lock:
                del self._values[key]
            value.set_exception(error)
            raise
        with self._lock:
            while len(self._values) > 1 and self.held_bytes > self._limit_bytes:
                oldest = next((each for each, held in self._values.items() if held.done() and each != key), key)
                if oldest == key:
                    break
                del self._values[oldest]
        return value.result()

    @property
    def held_bytes(self) -> int:
        """Bytes of all values."""
        return sum(self._size_of(value.result()) for value in self._values.values() if value.done())


@dataclass(eq=False)
class _Output:
    """An output and, once measured, its record."""

    filtered: measure.Filtered
    label: str
    record: RunFigures | None = None

    @cached_property
    def scale(self) -> ThresholdScale:
        """Of the output that a threshold is compared with: that of `normalize` is known without a look at it."""
        filtered = self.filtered
        if self.hysteresis is not None:
            return scale_of_edges(filtered.problem.dtype)
        normalized = filtered.request.mode_for(filtered.problem.dtype) == "normalize"
        return scale_of(filtered.finished.dtype, None if normalized else filtered.raw)

    @property
    def hysteresis(self) -> tuple[float, float] | None:
        """Both thresholds of edges."""
        chain = self.filtered.request.chain
        return None if chain is None or chain.low is None or chain.high is None else (chain.low, chain.high)

    @property
    def held_bytes(self) -> int:
        filtered = self.filtered
        second = 0 if filtered.raw is filtered.finished else filtered.raw.nbytes
        return filtered.finished.nbytes + second + filtered.session.plan.workspace_bytes


class RenderService(QObject):
    """Serves the newest request, and caches what the next one may need again. `answered` brings each `Answer`."""

    answered = Signal(object)

    def __init__(self, rules: ReadRules = DEFAULT_RULES, clock: Clock = time.monotonic) -> None:
        super().__init__()
        self.rules, self.clock = rules, clock
        self.pool = thread_pool()
        self._newest = self._begun = 0
        self._changed = threading.Condition()
        """Of `_newest`: guards it, and wakes who rests."""
        self._awaited: tuple[int, Hashable] = (0, None)
        """The newest request that waits for a computation, and the key of that."""
        self._measuring = threading.Lock()
        """Held during timing: two measurements at once would distort both."""
        self._pictures = Cache(CACHE_BYTES, lambda decoded: decoded[0].pixels.nbytes)
        self._outputs = Cache(CACHE_BYTES, lambda output: output.held_bytes)
        self._layers = Cache(CACHE_BYTES, lambda layer: layer.pixels.nbytes)
        self._readings: dict[str, int] = {}
        """How often each path was reloaded: results of an earlier version of the file are not used again."""

    # --- requests -----------------------------------------------------------------------------------------------

    def submit(self, request: ViewRequest) -> None:
        """Serve a request as soon as possible, and nothing older any more. On the interface thread."""
        self.cancel(request.generation)
        self.pool.setMaxThreadCount(MAX_THREADS_AT_ONCE)
        self.pool.start(partial(self.serve, request))
        QTimer.singleShot(round(HELP_SECONDS * 1000), partial(self._help, request.generation))

    def cancel(self, newest: int) -> None:
        """Whatever is older than this generation is not wanted any more."""
        self.pool.clear()
        with self._changed:
            self._newest = newest
            self._changed.notify_all()

    def wants(self, generation: int) -> bool:
        """Whether no newer request has come, and the window is open."""
        return generation == self._newest

    def serve(self, request: ViewRequest) -> None:
        """Answer a request on the calling thread; never raises."""
        self._begun = max(self._begun, request.generation)
        tell = self._tell
        try:
            self._serve(request)
        except Stopped:
            pass
        except EdgeconvError as error:
            tell(Failed(request.generation, str(error), _unreadable(error, request)))
        except MemoryError:
            line = "Out of memory: use a smaller picture, or lower the workspace limit."
            tell(Failed(request.generation, line))
        except Exception as error:  # an unexpected one of any library must not close the window
            tell(Failed(request.generation, f"Unexpected error ({one_line_with_class(error)})."))
        tell(RequestDone(request.generation))

    def _tell(self, answer: Answer) -> None:
        if self.wants(answer.generation):
            self.answered.emit(answer)

    def _help(self, generation: int) -> None:
        """Another thread for the newest request, where all of them are still busy with older ones."""
        if self.wants(generation) and self._begun < generation:
            self.pool.setMaxThreadCount(min(MAX_THREADS, self.pool.activeThreadCount() + 1))

    def _rested(self, generation: int) -> bool:
        """Sleep for `REST_SECONDS`; False as soon as a newer request has come."""
        with self._changed:
            return not self._changed.wait_for(lambda: not self.wants(generation), REST_SECONDS)

    def _listener(self, key: Hashable, measuring: bool = False) -> Listener:
        """What a computation of `key` reports to; raises Stopped once nobody has waited for it for a while."""
        told_at = -float("inf")
        alone_since: float | None = None

        def listen(share: float) -> None:
            nonlocal told_at, alone_since
            now, (generation, awaited) = self.clock(), self._awaited
            if self.wants(generation) and awaited == key:
                alone_since = None
                if now - told_at >= TELL_SECONDS:
                    told_at = now
                    self._tell(ShareDone(generation, share, measuring))
            elif alone_since is None:
                alone_since = now
            elif now - alone_since >= GRACE_SECONDS:
                raise Stopped

        return listen

    def _serve(self, request: ViewRequest) -> None:
        generation = request.generation
        picture = self.decode(request.picture)
        self._tell(PictureRead(generation, request.picture, picture.notes))
        sides: list[tuple[Side, ViewSource]] = [("right", request.right)]
        if request.mode.needs_both:
            sides.insert(0, ("left", request.left))
        layers: dict[Side, Layer] = {}
        for side, source in sides:
            if not self.wants(generation):
                return
            layers[side] = self._layer(request, source, layers.get("left"))
            self._tell(LayerReady(generation, side, layers[side]))
        if request.mode.name == "difference" and self.wants(generation):
            self._tell(_difference(generation, layers["left"], layers["right"]))
        shown = [source for _, source in reversed(sides) if source.needs_filter]
        if shown:
            output = self._output(request.picture, request.parameters, shown[0], generation)
            self._tell(ScaleKnown(generation, output.scale, output.hysteresis))
            self._measure(request, shown[0], output)

    # --- pictures and outputs -----------------------------------------------------------------------------------

    def begin(self, path: str) -> None:
        """Decode a picture in advance, in parallel with other work."""

        def decode() -> None:
            with suppress(EdgeconvError, MemoryError):  # reported when it is requested
                self.decode(os.path.abspath(path))

        threading.Thread(target=decode, name="edgeconv-decode").start()

    def decode(self, path: str) -> Picture:
        """A picture, from memory where it was decoded before. Raises ImageReadError, MemoryLimitError."""
        return self._decoded(path)[0]

    def forget(self, path: str) -> None:
        """Read a picture again next time, and compute again what depends on it."""
        self._readings[path] = self._readings.get(path, 0) + 1

    def _reading(self, path: str) -> tuple[str, int]:
        return path, self._readings.get(path, 0)

    def _decoded(self, path: str) -> tuple[Picture, float]:
        """(picture, seconds that decoding took)."""

        def decode() -> tuple[Picture, float]:
            watch = Stopwatch()
            with watch.phase("decode"):
                picture = read_image(path, self.rules)
            return picture, watch.phases_seconds["decode"]

        decoded: tuple[Picture, float] = self._pictures.get(self._reading(path), decode)
        return decoded

    def _output(self, path: str, parameters: Parameters, source: ViewSource, generation: int | None) -> _Output:
        """An output; a mask from the output that it is made of, so that moving a threshold filters nothing again.

        `generation` is that of the request that waits for it; None waits whatever comes.
        """
        asked = source.parameters_of(parameters)
        request, options = asked.request(), asked.options()
        key = (self._reading(path), asked, _weights_key(request))

        def mask() -> _Output:
            base = self._output(path, replace(parameters, threshold=None), source, generation)
            watch = Stopwatch()
            watch.phases_seconds |= base.filtered.watch.phases_seconds
            label = f"{base.label}, threshold {threshold_text(request.threshold or 0.0)}"
            return _Output(measure.masked(base.filtered, request, watch), label)

        def compute() -> _Output:
            picture, decode_seconds = self._decoded(path)
            watch = Stopwatch()
            watch.phases_seconds["decode"] = decode_seconds
            settled = request.settled(picture.pixels)
            problem = settled.picture_problem(picture.pixels.shape, picture.pixels.dtype)
            choice = choose(asked.method, asked.device, problem)
            with nullcontext() if generation is None else listening(self._listener(key)):
                filtered = measure.filter_picture(picture, settled, problem, choice, options, watch)
            filtered.session.release_arrays()  # as large as the output; allocated again for the measurement
            label = f"{parameters.filter_label} by {choice.method} on {choice.device.upper()}"
            return _Output(filtered, label)

        if generation is not None and self.wants(generation):
            self._awaited = (generation, key)
        output: _Output = self._outputs.get(key, compute if request.threshold is None else mask)
        return output

    def _pixels(self, request: ViewRequest, source: ViewSource, generation: int | None) -> tuple[NDArray[Any], str]:
        """The pixels of a source, and its label."""
        if source.kind == "file":
            names = labels((source, request.left, request.right, ViewSource("file", request.picture)))
            return self.decode(source.name).pixels, names[source]
        if source.kind == "input":
            return self.decode(request.picture).pixels, source.label
        output = self._output(request.picture, request.parameters, source, generation)
        return output.filtered.finished, output.label

    def _layer(self, request: ViewRequest, source: ViewSource, beside: Layer | None) -> Layer:
        """A side; floats are displayed in the range of the other side, `beside`, where that has floats too."""
        pixels, label = self._pixels(request, source, request.generation)
        ranged = beside.pixels if beside is not None and beside.pixels.dtype == pixels.dtype else pixels
        low, high = maps.display_range(ranged)

        def make() -> Layer:
            return Layer(source, label, pixels, PicturePyramid(pixels, low, high))

        layer: Layer = self._layers.get((id(pixels), source, label, low, high), make)
        return layer

    def _measure(self, request: ViewRequest, source: ViewSource, output: _Output) -> None:
        generation, asked = request.generation, source.parameters_of(request.parameters)
        again = output.record is not None
        if output.record is None:
            if not self._rested(generation):
                return
            while not self._measuring.acquire(timeout=REST_SECONDS):
                if not self.wants(generation):
                    return
            try:
                filtered = output.filtered
                slow = filtered.cold_seconds > SLOW_SECONDS
                budget = replace(BUDGET, min_samples=1, max_samples=1) if slow else BUDGET
                if slow:
                    self._tell(ShareDone(generation, None, measuring=True))
                    key = object()
                    self._awaited = (generation, key)
                with listening(self._listener(key, measuring=True)) if slow else nullcontext():
                    filtered = measure.measure(filtered, budget, "sample")
                peak_bytes = filtered.session.device.peak_bytes()
                output.record = measure.describe(filtered, asked_for=asked.method, peak_bytes=peak_bytes)
            finally:
                self._measuring.release()
        self._tell(RunMeasured(generation, request.picture, asked, output.record, again))

    def output_name(self, path: str, parameters: Parameters) -> str:
        """The default name of the output of `edgeconv run`."""
        pixels, request = self.decode(path).pixels, parameters.request()
        problem = request.settled(pixels).picture_problem(pixels.shape, pixels.dtype)
        method = choose(parameters.method, parameters.device, problem).method
        output_format = FORMAT_OF_DTYPE[request.output_dtype(pixels.dtype).name]
        return default_name(Job(path, request), method, output_format)

    def comparison_inputs(self, request: ViewRequest) -> tuple[Input, Input]:
        """Both sides of a request as `edgeconv diff` takes them; a file stays a file, so its page is the command's."""
        left, right = (self._input(request, source) for source in (request.left, request.right))
        return left, right

    def _input(self, request: ViewRequest, source: ViewSource) -> Input:
        if source.kind in ("file", "input"):
            return FileInput(source.name if source.kind == "file" else request.picture, rules=self.rules)
        pixels, label = self._pixels(request, source, None)
        return ArrayInput(label, pixels)


def _difference(generation: int, left: Layer, right: Layer) -> DifferenceReady:
    require_same_layout(left.label, left.pixels, right.label, right.pixels)
    comparisons = compare(ArrayInput(left.label, left.pixels), [ArrayInput(right.label, right.pixels)])
    classes = maps.class_map(left.pixels, right.pixels)
    return DifferenceReady(generation, HeatPyramid(classes, comparisons.scale), comparisons)


def _unreadable(error: EdgeconvError, request: ViewRequest) -> str | None:
    """The picture of the request that cannot be read: a reader's message begins with its name."""
    if not isinstance(error, ImageReadError):
        return None
    paths = [request.picture, *(side.name for side in (request.left, request.right) if side.kind == "file")]
    return next((path for path in paths if str(error).startswith(f"{path}:")), None)


def _weights_key(request: Request) -> object:
    """What tells apart two requests of the same parameters: a kernel file may have changed."""
    if request.chain is not None:
        return request.chain
    kernels = request.single_filter.kernels
    return kernels.shape, kernels.tobytes()


After = Callable[[], None]
"""What is left to do on the interface thread."""


class Tasks(QObject):
    """Work that nothing cancels, such as saving and exporting. Its end is on the interface thread.

    `complained` delivers the message of a task that failed.
    """

    complained = Signal(str)
    changed = Signal(int)
    """How many tasks write files now, or wait to."""
    _ended = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pool = QThreadPool()
        self._running = self._writing = 0
        self._ended.connect(lambda end: end())

    def start(self, work: Callable[[], After], writes: bool = False) -> None:
        """Call `work` on another thread, then what it returns on this one; `writes` says that it ends in a file."""
        self._count(1, writes)
        self._pool.start(partial(self._do, work, writes))

    @property
    def busy(self) -> bool:
        """Whether a task is running, or its end was not delivered yet."""
        return self._running > 0

    def join(self) -> None:
        """Wait until all files are written."""
        self._pool.waitForDone()

    def _count(self, by: int, writes: bool) -> None:
        self._running += by
        if writes:
            self._writing += by
            self.changed.emit(self._writing)

    def _do(self, work: Callable[[], After], writes: bool) -> None:
        try:
            self._ended.emit(work())
        except EdgeconvError as error:
            self.complained.emit(str(error))
        except Exception as error:  # an unexpected one of any library must not close the window
            self.complained.emit(f"Unexpected error ({one_line_with_class(error)}).")
        self._ended.emit(partial(self._count, -1, writes))


def thread_pool() -> QThreadPool:
    """A pool that ends with this thread, not with the application, which would wait for the pool's threads."""
    return QThreadPool(QThread.currentThread())


def leave(code: int, pool: QThreadPool) -> NoReturn:
    """End the process with `code`: by Python's own way where no thread of the pool is at work, else at once.

    A thread may compute an unwanted result for minutes. At once is not without what Python calls at its end (Qt hands
    the clipboard over there), and not before output is written.
    """
    if not pool.waitForDone(round(LEAVE_SECONDS * 1000)):
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, OSError, ValueError):  # closed, or none at all
                stream.flush()
        os._exit(code)
    sys.exit(code)
