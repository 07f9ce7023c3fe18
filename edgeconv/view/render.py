"""What the window shows is computed here, on Qt's threads: the newest request wins, and results are cached by bytes.

    left side, right side  ── layer_ready ──>  difference  ── difference_ready ──>  rest  ── measured ──>  done

A request has a generation. A newer one makes it stale: it ends at the next step, or, where its method says how far it
is, within it, unless the newer one wants the same output. Pixels, figures and maps come from the code of `edgeconv run`
(api/measure.py) and `edgeconv diff`. The measurement waits until no control was changed for `REST_SECONDS`, so that it
never delays what is displayed.
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
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, QThread, QThreadPool, Signal, SignalInstance

from edgeconv.api import measure
from edgeconv.api.auto import choose
from edgeconv.api.figures import RunFigures
from edgeconv.core.output import finite_range, full_range, magnitude, threshold_text
from edgeconv.core.progress import Listener, Stopped, listening
from edgeconv.core.request import Request
from edgeconv.core.timing import Budget, Clock, Stopwatch
from edgeconv.difference import maps
from edgeconv.difference.compare import compare
from edgeconv.difference.inputs import ArrayInput, FileInput, Input, require_same_layout
from edgeconv.errors import EdgeconvError, ImageReadError, one_line_with_class
from edgeconv.io.formats import FORMAT_OF_DTYPE
from edgeconv.io.read_limits import DEFAULT_RULES, ReadRules
from edgeconv.io.reading import Picture, read_image
from edgeconv.run.job import Job
from edgeconv.run.naming import default_name
from edgeconv.view.layers import Layer, of_classes, of_picture
from edgeconv.view.parameters import Parameters
from edgeconv.view.state import ViewRequest, ViewSource, labels

MAX_THREADS = 3
"""For the newest request, and older ones whose methods do not say how far they are: each holds an output in memory."""
REST_SECONDS = 0.25
"""Without a newer request, before the speed is measured."""
BUDGET = Budget(max_samples=50, time_limit_seconds=0.1)
CACHE_BYTES = 2**31
"""Of pictures, outputs and layers together."""
FLOAT_POSITIONS = 1000
"""Of outputs that are floats: as fine as a hand moves a slider."""
FULL_STEP = 4
"""Sobel's response to a step, in units of the step: 1 + 2 + 1."""
FLOAT_DIGITS = 4
"""Significant digits of thresholds between levels, so that what is saved can be read."""


@dataclass(frozen=True)
class ThresholdScale:
    """Position 0 is no threshold; 1 to `positions` are those up to `most`, in equal steps."""

    positions: int = 255
    most: float = 255.0

    def threshold_at(self, position: int) -> float | None:
        """The threshold of a position."""
        exact = self.most * position / self.positions
        return None if position < 1 else exact if exact.is_integer() else float(f"{exact:.{FLOAT_DIGITS}g}")

    def position_of(self, threshold: float | None) -> int:
        """The nearest position of a threshold, which is never that of none."""
        if threshold is None:
            return 0
        return max(1, min(self.positions, round(min(threshold / self.most, 1.0) * self.positions)))


def scale_of(output: _Output) -> ThresholdScale:
    """Every level of an integer type, or floats up to the largest |value|; of edges up to their largest response.

    That is of the output that a threshold is compared with: of `normalize` it is known without a look at it.
    """
    filtered, dtype = output.filtered, output.filtered.finished.dtype
    if output.hysteresis is not None:
        return ThresholdScale(FULL_STEP * 255, FULL_STEP * full_range(filtered.plan.problem.dtype))
    normalized = filtered.request.mode_for(filtered.plan.problem.dtype) == "normalize"
    most = full_range(dtype) if dtype.kind == "u" or normalized else magnitude(finite_range(filtered.raw))
    return ThresholdScale(int(most) if dtype.kind == "u" else FLOAT_POSITIONS, most if 0 < most < np.inf else 1.0)


class Cache:
    """Values by key, at most `limit_bytes` by `size_of`: the least recently used go first, the newest stays.

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
            for oldest in [each for each, held in self._values.items() if held.done() and each != key]:
                if self.held_bytes <= self._limit_bytes:
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

    @property
    def hysteresis(self) -> tuple[float, float] | None:
        """Both thresholds of edges, given or found in the picture."""
        chain = self.filtered.request.chain
        return None if chain is None or chain.low is None or chain.high is None else (chain.low, chain.high)


def _size_of(value: Picture | _Output | Layer) -> int:
    """Bytes that a value holds beside others in the cache."""
    if isinstance(value, _Output):
        arrays = {id(array): array.nbytes for array in (value.filtered.raw, value.filtered.finished)}
        return sum(arrays.values()) + value.filtered.plan.memory_bytes
    return value.pixels.nbytes if isinstance(value, Picture) else sum(level.nbytes for level in value.levels)


class RenderService(QObject):
    """Answers the newest request by signals, which begin with its generation and arrive on the interface thread."""

    picture_read = Signal(int, tuple)
    """The current picture was decoded, with these notes of its reader."""
    layer_ready = Signal(int, str, object)
    """`left` or `right`, and its Layer."""
    measuring = Signal(int)
    """The displayed output is being timed."""
    scale_known = Signal(int, object, object)
    """The ThresholdScale of the output that is displayed; both thresholds of edges, or None."""
    difference_ready = Signal(int, object, object)
    """The map of right − left as a Layer, and the figures."""
    measured = Signal(int, str, object, object)
    """Picture, parameters, and RunFigures of the displayed output."""
    failed = Signal(int, str, object)
    """A one-line error message, and the path of a picture that cannot be read, or None."""
    done = Signal(int)
    """Nothing more will come."""

    def __init__(self, rules: ReadRules = DEFAULT_RULES, clock: Clock = time.monotonic) -> None:
        super().__init__()
        self.rules, self.clock = rules, clock
        # It ends with this thread, not with the application, which would wait for threads that are still at work.
        self.pool = QThreadPool(QThread.currentThread())
        self.pool.setMaxThreadCount(MAX_THREADS)
        self._cache = Cache(CACHE_BYTES, _size_of)
        self._readings: dict[str, int] = {}
        """How often each picture was forgotten."""
        self._measuring = threading.Lock()
        """One measurement at a time: two would slow each other down."""
        self._changed = threading.Condition()
        self._newest: tuple[int, ViewRequest | None] = 0, None

    def submit(self, request: ViewRequest) -> None:
        """Serve this request, and nothing older."""
        self.cancel(request.generation, request)
        self.pool.start(partial(self.serve, request))

    def cancel(self, newest: int, request: ViewRequest | None = None) -> None:
        """Whatever is older than this generation is not wanted any more."""
        self.pool.clear()
        with self._changed:
            self._newest = newest, request
            self._changed.notify_all()

    def wants(self, generation: int) -> bool:
        """Whether no newer request has come, and the window is open."""
        return generation == self._newest[0]

    def serve(self, request: ViewRequest) -> None:
        """Answer a request on the calling thread; never raises."""
        generation = request.generation
        try:
            self._serve(request)
        except Stopped:
            pass
        except EdgeconvError as error:
            self._tell(self.failed, generation, str(error), _unreadable(error, request))
        except MemoryError:
            line = "Out of memory: use a smaller picture, or lower the workspace limit."
            self._tell(self.failed, generation, line, None)
        except Exception as error:  # an unexpected one of any library must not close the window
            self._tell(self.failed, generation, f"Unexpected error ({one_line_with_class(error)}).", None)
        self._tell(self.done, generation)

    def _tell(self, signal: SignalInstance, generation: int, *values: Any) -> None:
        if self.wants(generation):
            signal.emit(generation, *values)

    def _rested(self, generation: int) -> bool:
        """Sleep for `REST_SECONDS`; False as soon as a newer request has come."""
        with self._changed:
            return not self._changed.wait_for(lambda: not self.wants(generation), REST_SECONDS)

    def _listener(self, request: ViewRequest, source: ViewSource, measuring: bool = False) -> Listener:
        """What a computation reports to; raises Stopped once the newest request does not want its output."""

        def listen() -> None:
            _, newest = self._newest
            if newest is None or (newest is not request and (measuring or not newest.wants_too(request, source))):
                raise Stopped

        return listen

    def _serve(self, request: ViewRequest) -> None:
        generation = request.generation
        picture = self.decode(request.picture)
        self._tell(self.picture_read, generation, picture.notes)
        layers: list[Layer] = []
        for side, source in zip(("left", "right")[-len(request.shown) :], request.shown, strict=True):
            if not self.wants(generation):
                return
            layers.append(self._layer(request, source, *layers))
            self._tell(self.layer_ready, generation, side, layers[-1])
        if request.mode == "difference" and self.wants(generation):
            self._tell(self.difference_ready, generation, *_difference(*layers))
        computed = [source for source in request.shown if source.needs_filter]
        if computed:
            output = self._output(request, computed[-1])
            self._tell(self.scale_known, generation, scale_of(output), output.hysteresis)
            self._measure(request, computed[-1], output)

    # --- pictures and outputs -----------------------------------------------------------------------------------

    def begin(self, path: str) -> None:
        """Decode a picture in advance, in parallel with other work."""

        def decode() -> None:
            with suppress(EdgeconvError, MemoryError):  # reported when it is requested
                self.decode(os.path.abspath(path))

        threading.Thread(target=decode, name="edgeconv-decode").start()

    def decode(self, path: str) -> Picture:
        """A picture, from memory where it was decoded before. Raises ImageReadError, MemoryLimitError."""
        key = (path, self._readings.get(path, 0))
        picture: Picture = self._cache.get(key, lambda: read_image(path, self.rules))
        return picture

    def forget(self, path: str) -> None:
        """Read a picture again next time, and compute again what depends on it."""
        self._readings[path] = self._readings.get(path, 0) + 1

    def _output(self, wanted: ViewRequest, source: ViewSource, stops: bool = True) -> _Output:
        """An output; a mask from the output that it is made of, so that moving a threshold filters nothing again.

        It `stops` when a newer request than the one that wants it comes and does not want it.
        """
        path, asked = wanted.picture, source.parameters_of(wanted.parameters)
        request, options = asked.request(), asked.options()
        key = (path, self._readings.get(path, 0), asked, _weights_key(request))

        def mask() -> _Output:
            unmasked = replace(wanted, parameters=replace(wanted.parameters, threshold=None))
            base = self._output(unmasked, source, stops)
            watch = Stopwatch()
            watch.phases_seconds |= base.filtered.watch.phases_seconds
            label = f"{base.label}, threshold {threshold_text(request.threshold or 0.0)}"
            return _Output(measure.masked(base.filtered, request, watch), label)

        def compute() -> _Output:
            picture = self.decode(path)
            settled = request.settled(picture.pixels)
            problem = settled.picture_problem(picture.pixels.shape, picture.pixels.dtype)
            choice = choose(asked.method, asked.device, problem)
            with listening(self._listener(wanted, source)) if stops else nullcontext():
                watch, pixels = Stopwatch(), picture.pixels
                with watch.phase("set_up"):
                    plan = measure.prepare_filter(pixels.shape, pixels.dtype, settled, choice, options)
                filtered = measure.filter_picture(pixels, settled, plan, watch)
            filtered.plan.release_arrays()  # as large as the output; allocated again for the measurement
            return _Output(filtered, f"{asked.filter_label} by {choice.method} on {choice.device.upper()}")

        output: _Output = self._cache.get(key, compute if request.threshold is None else mask)
        return output

    def _pixels(self, request: ViewRequest, source: ViewSource, stops: bool = True) -> tuple[NDArray[Any], str]:
        """The pixels of a source, and its label."""
        if source.kind == "file":
            names = labels((source, request.left, request.right, ViewSource("file", request.picture)))
            return self.decode(source.name).pixels, names[source]
        if source.kind == "input":
            return self.decode(request.picture).pixels, source.label
        output = self._output(request, source, stops)
        return output.filtered.finished, output.label

    def _layer(self, request: ViewRequest, source: ViewSource, beside: Layer | None = None) -> Layer:
        """A side; floats are displayed in the range of the other side, `beside`, where that has floats too."""
        pixels, label = self._pixels(request, source)
        other = pixels if beside is None or beside.pixels.dtype != pixels.dtype else beside.pixels
        low, high = maps.display_range(other)

        make = partial(of_picture, label, pixels, low, high)
        layer: Layer = self._cache.get((id(pixels), label, low, high), make)  # the layer holds on to the pixels
        return layer

    def _measure(self, request: ViewRequest, source: ViewSource, output: _Output) -> None:
        generation, asked = request.generation, source.parameters_of(request.parameters)
        if output.record is None:
            if not self._rested(generation):
                return
            while not self._measuring.acquire(timeout=REST_SECONDS):
                if not self.wants(generation):
                    return
            try:
                self._tell(self.measuring, generation)
                with listening(self._listener(request, source, measuring=True)):
                    output.record = measure.measure(output.filtered, BUDGET, "sample")
            finally:
                self._measuring.release()
        self._tell(self.measured, generation, request.picture, asked, output.record)

    def output_name(self, path: str, parameters: Parameters) -> str:
        """The default name of the output of `edgeconv run`."""
        pixels, request = self.decode(path).pixels, parameters.request()
        problem = request.settled(pixels).picture_problem(pixels.shape, pixels.dtype)
        method = choose(parameters.method, parameters.device, problem).method
        output_format = FORMAT_OF_DTYPE[request.output_dtype(pixels.dtype).name]
        return default_name(Job(path, request), method, output_format)

    def comparison_input(self, request: ViewRequest, source: ViewSource) -> Input:
        """A side of a request as `edgeconv diff` takes it; a file stays a file, so its page is the command's."""
        if source.kind in ("file", "input"):
            return FileInput(source.name or request.picture, rules=self.rules)
        pixels, label = self._pixels(request, source, stops=False)
        return ArrayInput(label, pixels)


def _difference(left: Layer, right: Layer) -> tuple[Layer, Any]:
    """The map of right − left, and the figures."""
    require_same_layout(left.label, left.pixels, right.label, right.pixels)
    found = compare(ArrayInput(left.label, left.pixels), [ArrayInput(right.label, right.pixels)])
    counts = found.comparisons[0].judged.histogram
    seen_colours = {colour for colour, count in zip(found.scale.colours, counts, strict=True) if count}
    legend = tuple((f"#{bytes(colour).hex()}", label) for label, colour in found.scale.legend if colour in seen_colours)
    seen = maps.class_map(left.pixels, right.pixels)
    return of_classes(f"{right.label} − {left.label}", seen, found.scale, legend), found


def _unreadable(error: EdgeconvError, request: ViewRequest) -> str | None:
    """The picture of the request that cannot be read: a reader's message begins with its name."""
    if not isinstance(error, ImageReadError):
        return None
    paths = [request.picture, *(side.name for side in request.shown if side.kind == "file")]
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
    """Work that nothing cancels, such as saving and pasting, one after another; its end is on the interface thread.

    `complained` delivers the message of a task that failed.
    """

    complained = Signal(str)
    changed = Signal()
    """`busy` did."""
    _ended = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pool = QThreadPool()
        self._pool.setMaxThreadCount(1)
        self._waiting = 0
        self._ended.connect(lambda end: end())

    @property
    def busy(self) -> bool:
        """Whether a task is running, or its end was not delivered yet."""
        return self._waiting > 0

    def start(self, work: Callable[[], After]) -> None:
        """Call `work` on another thread, then what it returns on this one."""
        self._waiting += 1
        self.changed.emit()
        self._pool.start(partial(self._do, work))

    def join(self) -> None:
        """Wait until all files are written."""
        self._pool.waitForDone()

    def _do(self, work: Callable[[], After]) -> None:
        try:
            self._ended.emit(work())
        except EdgeconvError as error:
            self.complained.emit(str(error))
        except Exception as error:  # an unexpected one of any library must not close the window
            self.complained.emit(f"Unexpected error ({one_line_with_class(error)}).")
        self._ended.emit(self._over)

    def _over(self) -> None:
        self._waiting -= 1
        self.changed.emit()


def leave(code: int) -> NoReturn:
    """End the process with `code` at once: a thread may compute an unwanted result for minutes.

    What Python calls at its end is called before (Qt hands the clipboard over there), and output is written.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # closed, or none at all
            stream.flush()
    os._exit(code)
