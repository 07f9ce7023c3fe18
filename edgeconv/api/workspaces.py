"""A request made ready for pictures of one shape and type: a method's plan for each thread and stream that runs it.

    host array ── copy_in ──> device array ── method's plan ──> device array ── copy_out ──> host array

Commands filter pictures of files by it; `ConvolutionPlan` (plan.py) takes arrays of any library.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.api.auto import Choice
from edgeconv.core.chains import ChainProblem
from edgeconv.core.filters import CHANNEL_COUNTS, GREY_CHANNELS
from edgeconv.core.option import AUTO
from edgeconv.core.problem import Problem
from edgeconv.core.request import Request
from edgeconv.core.timing import Stopwatch
from edgeconv.errors import UsageError
from edgeconv.hardware.devices import get_device
from edgeconv.hardware.pool import PARALLEL_BYTES, threads_for
from edgeconv.methods import find, prepare
from edgeconv.methods.base import Plan
from edgeconv.methods.options import Options

MAX_STREAMS = 16
"""Streams whose workspaces are kept; those of streams beyond that are made anew."""

Shape = tuple[int, ...]

SHAPES = (
    "(height, width, 3) for RGB, (height, width) or (height, width, 1) for grey, or (pictures, height, width, 3 or 1)"
)


def picture_shape(shape: Shape) -> Shape:
    """HWC of a picture of an array of `shape`: the array itself, a picture of a batch, or (H, W) as one channel.

    An array of three axes is always height × width × channels. Raises UsageError for any other shape.
    """
    if len(shape) == 2:
        return (*shape, GREY_CHANNELS)
    if len(shape) not in (3, 4) or shape[-1] not in CHANNEL_COUNTS or min(shape) < 1:
        hint = " A stack of grey pictures needs an axis for its channel: image[..., None]." if len(shape) == 3 else ""
        raise UsageError(f"An array of {size_text(shape)} is not a picture: give {SHAPES}.{hint}")
    return shape[-3:]


def plain(image_hwc: NDArray[Any]) -> NDArray[Any]:
    """The picture as native code needs it, C-contiguous and aligned; copied only where it is not."""
    return np.require(image_hwc, requirements=("C", "A"))


@dataclass
class Workspace:
    """What one thread works in: a plan of the method, and arrays of the device where a call brings none."""

    plan: Plan
    image: Any = None
    """On a GPU, for pictures of the host."""
    out: Any = None
    """For outputs that cross the bus, stay on the device, or are finished by a second pass."""

    @property
    def held_bytes(self) -> int:
        """Memory that it holds now."""
        return self.plan.workspace_bytes + sum(int(own.nbytes) for own in (self.image, self.out) if own is not None)


class PreparedFilter:
    """Filters pictures of NumPy or of its device. May be called from any thread.

    Two threads at once, or two streams, each work in a workspace of their own, which is made when it is first needed.
    """

    def __init__(
        self,
        request: Request,
        shape: Shape,
        dtype: np.dtype[Any],
        choice: Choice,
        options: Options,
        asked_for: str = AUTO,
    ) -> None:
        self.shape = shape
        """(height, width, channels), (height, width), or (pictures, height, width, channels)."""
        self.problem: Problem | ChainProblem = request.picture_problem(picture_shape(shape), dtype)
        self.dtype = self.problem.dtype
        self.output_dtype = request.output_dtype(self.dtype)
        self.method, self.device, self.why = choice.method, choice.device, choice.why
        self.request, self.options, self.choice, self.asked_for = request, options, choice, asked_for
        self.second_pass = request.last_passes(self.dtype)
        self._pictures = shape[0] if len(shape) == 4 else 1
        self._in_bytes, self._out_bytes = self.problem.input_bytes, self.problem.output_bytes
        self.processor = get_device(self.device)
        """The device that computes."""
        self._on_gpu = self.processor.moves_data
        self.gpu: int | None = None
        """The number of the GPU that the plan was made on; None on the CPU."""
        if self._on_gpu:
            import cupy

            self._get_device, self._current_stream = cupy.cuda.runtime.getDevice, cupy.cuda.get_current_stream
            self.gpu = int(self._get_device())
        self._idle: dict[int, list[Workspace]] = {}
        self._threads = self._batch_threads()
        self._call_bytes = self._pictures * (self._in_bytes + self._out_bytes) + options.workspace_limit_bytes
        first = self._prepare()
        self._call_bytes += first.plan.workspace_bytes - options.workspace_limit_bytes
        self.method_plan = first.plan
        """What the method prepared: its choices, arithmetic, workspace; shared by no two threads at once."""
        self._idle[self._stream()] = [first]

    @property
    def memory_bytes(self) -> int:
        """What the plan holds beside the caller's arrays: workspaces, and arrays on a GPU for pictures of the host."""
        return sum(work.held_bytes for idle in list(self._idle.values()) for work in list(idle))

    def run(self, image: Any, out: Any = None, watch: Stopwatch | None = None, stay: bool = False) -> Any:
        """Filter one picture (HWC; NHWC where a run takes a batch) into `out`, or into a new host array; return it.

        Both are arrays of NumPy or of the device, of the problem's shapes and types. What crosses the bus is waited
        for, what is on the device from the start is not. Phases are added to `watch`. With `stay` the result is left
        on the device, in the workspace, and waited for; the next run overwrites it.
        """
        watch, device = watch or Stopwatch(), self.processor
        arrays = device.array_module
        with self.workspace() as work:
            to_host = self._on_gpu and not stay and (out is None or isinstance(out, np.ndarray))
            if self._on_gpu and isinstance(image, np.ndarray):
                held, _ = self.take_arrays(work)
                with watch.phase("host_to_device"):
                    device.copy_in(plain(image), held)
                image = held
            else:
                image = arrays.ascontiguousarray(image) if self._on_gpu else plain(image)
            if self.second_pass is not None or stay or to_host:
                raw = self._take_out(work)
            else:
                raw = np.empty(self._run_shape(self.problem.output_shape), self.output_dtype) if out is None else out
            with watch.phase("convolve"):
                work.plan.run(image, raw)
                if stay or to_host:
                    device.synchronize()
                finished = self.finish(raw, image)
            if to_host:
                out = np.empty(finished.shape, finished.dtype) if out is None else out
                with watch.phase("device_to_host"):
                    device.copy_out(finished, out)
                return out
            if out is None or finished is out:
                return finished
            out[...] = finished
            return out

    def finish(self, raw: Any, image: Any) -> Any:
        """The second pass where there is one (`normalize`, a threshold), on arrays of the device."""
        return raw if self.second_pass is None else self.second_pass(raw, image, self.processor.array_module)

    def raw(self) -> NDArray[Any]:
        """The method's own result in the last run of a plan with a second pass, as a host array."""
        with self.workspace() as work:
            result = np.empty(self._run_shape(self.problem.output_shape), self.problem.output_dtype)
            self.processor.copy_out(self._take_out(work), result)
            return result

    # --- workspaces -------------------------------------------------------------------------------------------------

    def _prepare(self) -> Workspace:
        options = self.options
        if self._threads > 1:  # each thread takes whole pictures: none of them shares one with others
            options = replace(options, threads=1)
        pictures = 1 if self.second_pass is not None else self._pictures
        with self._guard():
            return Workspace(prepare(self.method, self.device, self.problem, options, pictures))

    @contextmanager
    def workspace(self) -> Iterator[Workspace]:
        """A workspace that nobody else works with, on the plan's GPU; memory that runs out is said to be out."""
        with self.at_home(), self._guard():
            stream = self._stream()
            work = self._take(stream)
            try:
                yield work
            finally:
                self._give_back(stream, work)

    def take_arrays(self, work: Workspace) -> tuple[Any, Any]:
        """A workspace's own image (None on the CPU) and out on the device; allocated when first asked for."""
        if work.image is None and self._on_gpu:
            work.image = self.processor.empty(self._run_shape(self.problem.input_shape), self.problem.dtype)
        return work.image, self._take_out(work)

    def _take_out(self, work: Workspace) -> Any:
        if work.out is None:
            work.out = self.processor.empty(self._run_shape(self.problem.output_shape), self.problem.output_dtype)
        return work.out

    def _run_shape(self, shape: Shape) -> Shape:
        """That of the pictures of one run."""
        pictures = self.method_plan.pictures
        return (pictures, *shape) if pictures > 1 else shape

    def release_arrays(self) -> None:
        """Release the workspaces' own arrays; they are allocated again when needed."""
        for work in [work for idle in list(self._idle.values()) for work in idle]:
            work.image = work.out = None

    def _take(self, stream: int) -> Workspace:
        """A workspace that nobody works with; taking and giving back are single steps under the interpreter lock."""
        try:
            return self._idle[stream].pop()
        except (KeyError, IndexError):
            with self.at_home():
                return self._prepare()

    def _give_back(self, stream: int, work: Workspace) -> None:
        idle = self._idle.get(stream)
        if idle is None:
            if len(self._idle) >= MAX_STREAMS:
                self._idle.pop(next(iter(self._idle)), None)
            idle = self._idle.setdefault(stream, [])
        idle.append(work)

    def _stream(self) -> int:
        """The number under which workspaces wait: CuPy's current stream, 0 on the CPU."""
        return int(self._current_stream().ptr) if self._on_gpu else 0

    @contextmanager
    def at_home(self) -> Iterator[None]:
        """Work on the plan's GPU inside the block, where it has one."""
        if self.gpu is None:
            yield
            return
        from edgeconv.hardware.cuda.device import on_device

        with on_device(self.gpu):
            yield

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """Say what memory ran out, and which package a fault comes from."""
        with find(self.method, self.device).named(), self.processor.guard(self._call_bytes):
            yield

    def _batch_threads(self) -> int:
        """Threads that share the pictures of a batch: one where a picture is worth several, or all are worth one."""
        moved_bytes = self._in_bytes + self._out_bytes
        if self._pictures == 1 or self._on_gpu or moved_bytes >= PARALLEL_BYTES:
            return 1
        return threads_for(self.options.threads, moved_bytes * self._pictures, self._pictures)


def size_text(shape: Any) -> str:
    """A shape as people write it: 9×8×3."""
    return "×".join(map(str, shape)) or "a number"
