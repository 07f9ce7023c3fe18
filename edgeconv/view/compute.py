"""What a request computes, step by step, on whatever thread calls it. No Qt; answers go to `deliver`.

    right side (and left)  ── LayerReady ──>  difference  ── DifferenceReady ──>  rest  ── RunMeasured ──>  Done

Pixels, figures and maps come from the code of `edgeconv run` (run/whole.py) and `edgeconv diff` (difference/). The
measurement waits until no control was changed for `REST_SECONDS`, so that it never delays what is displayed. Between
steps the token is checked; an error becomes one `Failed` with its message.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from numpy.typing import NDArray

from edgeconv.core.output import threshold_text
from edgeconv.core.progress import Stopped, listening
from edgeconv.core.request import Request
from edgeconv.core.timing import Budget, Clock, Stopwatch
from edgeconv.difference import maps
from edgeconv.difference.compare import DiffRecord, compare
from edgeconv.difference.inputs import ArrayInput, FileInput, Input, require_same_layout
from edgeconv.errors import EdgeconvError, ImageReadError, MemoryLimitError, one_line_with_class
from edgeconv.io.formats import FORMAT_OF_DTYPE
from edgeconv.io.image import Picture, read_image
from edgeconv.io.read_limits import DEFAULT_RULES, ReadRules
from edgeconv.run import whole
from edgeconv.run.job import Job
from edgeconv.run.outputs import default_name
from edgeconv.run.report import RunFigures
from edgeconv.runtime.auto import choose
from edgeconv.view import background
from edgeconv.view.computations import Computations, Waiting
from edgeconv.view.latest_request import Token
from edgeconv.view.lru_cache import LruCache
from edgeconv.view.parameters import Parameters
from edgeconv.view.pyramid import HeatPyramid, PicturePyramid, Pyramid
from edgeconv.view.sources import ViewSource, labels
from edgeconv.view.state import ViewRequest
from edgeconv.view.threshold_scale import ThresholdScale, scale_of

Side = Literal["left", "right"]

REST_SECONDS = 0.25
"""Without a newer request, before the speed is measured."""
BUDGET = Budget(max_samples=50, time_limit_seconds=0.1)
SLOW_SECONDS = 0.5
"""A method that takes longer is timed only once more."""
KEPT_BYTES = 2**30
"""Cache limits of pictures, outputs and pyramids, each."""


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
class Computed:
    """A result of the request of this generation."""

    generation: int


@dataclass(frozen=True)
class PictureRead(Computed):
    """The current picture was decoded."""

    path: str
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class LayerReady(Computed):
    """A side may be drawn."""

    side: Side
    layer: Layer


@dataclass(frozen=True)
class UnderWay(Computed):
    """How much of what is computed now is done: the output, or with `measuring` its timed run."""

    share: float | None
    """None where the method does not tell."""
    measuring: bool = False


@dataclass(frozen=True)
class ScaleKnown(Computed):
    """The thresholds that mean something for the output that is displayed."""

    scale: ThresholdScale


@dataclass(frozen=True, eq=False)
class DifferenceReady(Computed):
    """Map and figures of right − left."""

    pyramid: Pyramid
    comparisons: DiffRecord


@dataclass(frozen=True)
class RunMeasured(Computed):
    """Speed and error of the displayed output. `again` where it was measured before."""

    picture: str
    parameters: Parameters
    record: RunFigures
    again: bool


@dataclass(frozen=True)
class Failed(Computed):
    """A one-line error message; `unreadable` names a picture that cannot be read."""

    message: str
    unreadable: str | None = None


@dataclass(frozen=True)
class RequestDone(Computed):
    """Nothing more will come."""


Deliver = Callable[[Computed], None]


@dataclass(eq=False)
class _Computed:
    """An output and, once measured, its record."""

    filtered: whole.Filtered
    label: str
    record: RunFigures | None = None

    @cached_property
    def scale(self) -> ThresholdScale:
        """Of the output that a threshold is compared with: that of `normalize` is known without a look at it."""
        filtered = self.filtered
        normalized = filtered.request.mode_for(filtered.problem.dtype) == "normalize"
        return scale_of(filtered.finished.dtype, None if normalized else filtered.raw)

    @property
    def held_bytes(self) -> int:
        filtered = self.filtered
        second = 0 if filtered.raw is filtered.finished else filtered.raw.nbytes
        return filtered.finished.nbytes + second + filtered.session.plan.workspace_bytes


class Workshop:
    """Serves requests, and caches what the next one may need again."""

    def __init__(self, rules: ReadRules = DEFAULT_RULES, clock: Clock = time.monotonic) -> None:
        self.rules, self.clock = rules, clock
        self.measuring = threading.Lock()
        """Held during timing: two measurements at once would distort both."""
        self._pictures: LruCache[tuple[Picture, float]] = LruCache(KEPT_BYTES, lambda kept: kept[0].pixels.nbytes)
        self._outputs: LruCache[_Computed] = LruCache(KEPT_BYTES, lambda kept: kept.held_bytes)
        self._layers: LruCache[Layer] = LruCache(KEPT_BYTES, lambda kept: kept.pixels.nbytes)
        self._computations = Computations(clock)
        self._readings: dict[str, int] = {}
        """How often each path was reloaded: results of an earlier version of the file are not used again."""

    def serve(self, request: ViewRequest, token: Token, deliver: Deliver) -> None:
        """Answer a request; never raises."""
        try:
            self._serve(request, token, deliver)
        except Stopped:
            pass
        except EdgeconvError as error:
            deliver(Failed(request.generation, str(error), _unreadable(error, request)))
        except MemoryError:
            deliver(Failed(request.generation, str(_out_of_memory())))
        except Exception as error:  # an unexpected one of any library must not close the window
            what = one_line_with_class(error)
            deliver(Failed(request.generation, f"Unexpected error ({what})."))
        deliver(RequestDone(request.generation))

    def begin(self, path: str) -> None:
        """Decode a picture in advance, in parallel with other work."""

        def decode() -> None:
            with suppress(EdgeconvError, MemoryError):  # reported when it is requested
                self.decode(os.path.abspath(path))

        background.start(decode, "edgeconv-decode")

    def decode(self, path: str) -> Picture:
        """A picture, from memory where it was decoded before. Raises ImageReadError, MemoryLimitError."""
        return self._decoded(path)[0]

    def forget(self, path: str) -> None:
        """Read a picture again next time, and compute again what depends on it."""
        self._readings[path] = self._readings.get(path, 0) + 1

    def _serve(self, request: ViewRequest, token: Token, deliver: Deliver) -> None:
        picture = self.decode(request.picture)
        deliver(PictureRead(request.generation, request.picture, picture.notes))
        sides: list[tuple[Side, ViewSource]] = [("right", request.right)]
        if request.mode.needs_both:
            sides.insert(0, ("left", request.left))
        layers: dict[Side, Layer] = {}
        waiting = Waiting(token, lambda share: deliver(UnderWay(request.generation, share)))
        for side, source in sides:
            if token.cancelled:
                return
            layers[side] = self._layer(request, source, layers.get("left"), waiting)
            deliver(LayerReady(request.generation, side, layers[side]))
        if request.mode.name == "difference" and not token.cancelled:
            deliver(self._difference(request.generation, layers["left"], layers["right"]))
        shown = [source for _, source in reversed(sides) if source.needs_filter]
        if shown:
            scale = self._computed(request.picture, request.parameters, shown[0], waiting).scale
            deliver(ScaleKnown(request.generation, scale))
            self._measure(request, shown[0], token, deliver)

    def _decoded(self, path: str) -> tuple[Picture, float]:
        """(picture, seconds that decoding took)."""

        def decode() -> tuple[Picture, float]:
            watch = Stopwatch()
            with watch.phase("decode"):
                picture = read_image(path, self.rules)
            return picture, watch.phases_seconds["decode"]

        return self._pictures.get(self._reading(path), decode)

    def _reading(self, path: str) -> tuple[str, int]:
        return path, self._readings.get(path, 0)

    def _computed(
        self, path: str, parameters: Parameters, source: ViewSource, waiting: Waiting | None = None
    ) -> _Computed:
        """An output; a mask from the output that it is made of, so that moving a threshold filters nothing again."""
        asked = source.parameters_of(parameters)
        request, options = asked.request(), asked.options()
        weights = _weights_key(request)

        def mask() -> _Computed:
            base = self._computed(path, replace(parameters, threshold=None), source, waiting)
            watch = Stopwatch()
            watch.phases_seconds |= base.filtered.watch.phases_seconds
            label = f"{base.label}, threshold {threshold_text(request.threshold or 0.0)}"
            return _Computed(whole.masked(base.filtered, request, watch), label)

        def compute() -> _Computed:
            picture, decode_seconds = self._decoded(path)
            watch = Stopwatch()
            watch.phases_seconds["decode"] = decode_seconds
            settled = request.settled(picture.pixels)
            problem = settled.picture_problem(picture.pixels.shape, picture.pixels.dtype)
            choice = choose(asked.method, asked.device, problem)
            with listening(self._computations.listener(key)):
                filtered = whole.filter_picture(picture, settled, problem, choice, options, watch)
            filtered.session.release_arrays()  # as large as the output; allocated again for the measurement
            label = f"{parameters.filter_label} by {choice.method} on {choice.device.upper()}"
            return _Computed(filtered, label)

        key = (self._reading(path), asked, weights)
        make = compute if request.threshold is None else mask
        with self._computations.by(key, waiting or Waiting(Token(), lambda share: None)):
            return self._outputs.get(key, make)

    def _pixels(
        self, request: ViewRequest, source: ViewSource, waiting: Waiting | None = None
    ) -> tuple[NDArray[Any], str]:
        """The pixels of a source, and its label."""
        if source.kind == "file":
            names = labels((source, request.left, request.right, ViewSource("file", request.picture)))
            return self.decode(source.name).pixels, names[source]
        if source.kind == "input":
            return self.decode(request.picture).pixels, source.label
        computed = self._computed(request.picture, request.parameters, source, waiting)
        return computed.filtered.finished, computed.label

    def _layer(self, request: ViewRequest, source: ViewSource, beside: Layer | None, waiting: Waiting) -> Layer:
        """A side; floats are displayed in the range of the other side, `beside`, where that has floats too."""
        pixels, label = self._pixels(request, source, waiting)
        ranged = beside.pixels if beside is not None and beside.pixels.dtype == pixels.dtype else pixels
        low, high = maps.display_range(ranged)

        def make() -> Layer:
            return Layer(source, label, pixels, PicturePyramid(pixels, low, high))

        return self._layers.get((id(pixels), source, label, low, high), make)

    def _difference(self, generation: int, left: Layer, right: Layer) -> DifferenceReady:
        require_same_layout(left.label, left.pixels, right.label, right.pixels)
        comparisons = compare(ArrayInput(left.label, left.pixels), [ArrayInput(right.label, right.pixels)])
        classes = maps.class_map(left.pixels, right.pixels)
        return DifferenceReady(generation, HeatPyramid(classes, comparisons.scale), comparisons)

    def _measure(self, request: ViewRequest, source: ViewSource, token: Token, deliver: Deliver) -> None:
        computed = self._computed(request.picture, request.parameters, source)
        asked = source.parameters_of(request.parameters)
        again = computed.record is not None
        if computed.record is None:
            if not token.wait(REST_SECONDS):
                return
            while not self.measuring.acquire(timeout=REST_SECONDS):
                if token.cancelled:
                    return
            try:
                filtered = computed.filtered
                slow = filtered.cold_seconds > SLOW_SECONDS
                budget = replace(BUDGET, min_samples=1, max_samples=1) if slow else BUDGET
                with self._measuring_shown(request.generation, token, deliver) if slow else nullcontext():
                    measured = whole.measure(filtered, budget, "sample")
                peak_bytes = filtered.session.device.peak_bytes()
                computed.record = whole.describe(filtered, measured, asked_for=asked.method, peak_bytes=peak_bytes)
            finally:
                self.measuring.release()
        deliver(RunMeasured(request.generation, request.picture, asked, computed.record, again))

    @contextmanager
    def _measuring_shown(self, generation: int, token: Token, deliver: Deliver) -> Iterator[None]:
        """Tell how far the timed run of a slow method is; it stops where nobody waits for it."""
        deliver(UnderWay(generation, None, measuring=True))
        key = object()
        waiting = Waiting(token, lambda share: deliver(UnderWay(generation, share, measuring=True)))
        with self._computations.by(key, waiting), listening(self._computations.listener(key)):
            yield

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
        if source.kind == "file":
            return FileInput(source.name, rules=self.rules)
        if source.kind == "input":
            return FileInput(request.picture, rules=self.rules)
        pixels, label = self._pixels(request, source)
        return ArrayInput(label, pixels)


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


def _out_of_memory() -> MemoryLimitError:
    return MemoryLimitError("Out of memory: use a smaller picture, or lower the workspace limit.")
