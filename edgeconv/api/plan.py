"""A prepared filter for pictures of one shape and type: all set-up is done when it is made, a call only computes.

    plan = edgeconv.plan((2048, 2048, 3), "uint8", filter="sobel", channels="each")
    edges = plan(image)             # an array of the same library and device as the picture
    plan(image, out=edges)          # no allocation; on a GPU no waiting, on the caller's stream

A call takes the short way where it can: the picture and the output are exactly what the plan was made for, and the
method computes from addresses. Everything else (strided arrays, other byte orders, JAX, `normalize`, masks by a
threshold, pictures of the host for a GPU) takes the long way (`PreparedFilter.run`), which copies once what must be
copied.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.api.arrays import ArrayLibrary, Shape, library_of, on_gpu, stream_as_given
from edgeconv.api.auto import Choice
from edgeconv.api.parameters import as_parameters, with_parameters
from edgeconv.api.prepared import PreparedFilter, plain
from edgeconv.core import exactness
from edgeconv.core.chains import ChainProblem
from edgeconv.core.exactness import LEVEL_OFF, LEVEL_OFF_BELOW
from edgeconv.core.filters import CHANNEL_COUNTS, GREY_CHANNELS
from edgeconv.core.lowering import FORMS
from edgeconv.core.output import threshold_text
from edgeconv.core.problem import Problem
from edgeconv.core.request import Request
from edgeconv.errors import UsageError
from edgeconv.hardware.pool import PARALLEL_BYTES, run_pieces, threads_for
from edgeconv.methods import find
from edgeconv.methods.base import AddressPlan
from edgeconv.methods.options import Options

if TYPE_CHECKING:
    from edgeconv.api.figures import RunFigures

SHAPES = (
    "(height, width, 3) for RGB, (height, width) or (height, width, 1) for grey, or (pictures, height, width, 3 or 1)"
)

MAX_STREAMS = 16
"""Streams whose workspaces are kept; those of streams beyond that are made anew."""


class ConvolutionPlan:
    """Filters arrays of one shape and type; made by `edgeconv.plan`. May be called from any thread.

    Two threads at once, or two streams, each work in a workspace of their own, which is made when it is first needed.
    """

    def __init__(
        self,
        request: Request,
        shape: Shape,
        problem: Problem | ChainProblem,
        choice: Choice,
        options: Options,
    ) -> None:
        self.request, self.shape, self.problem = request, shape, problem
        """The shape is (height, width, channels), (height, width), or (pictures, height, width, channels)."""
        self.dtype, self.output_dtype = problem.dtype, request.output_dtype(problem.dtype)
        self.output_shape: Shape = request.output_shape(shape, problem.output_shape)
        """Of the result, as `Request.output_shape` says."""
        self.method, self.device, self.why = choice.method, choice.device, choice.why
        self._pictures = shape[0] if len(shape) == 4 else 1
        self._in_bytes, self._out_bytes = problem.input_bytes, problem.output_bytes
        computed: Shape = (*shape[:-3], *problem.output_shape)
        without_axis = [computed[:-1]] if problem.output_channels == 1 else []
        self._out_shapes = tuple(dict.fromkeys((self.output_shape, computed, *without_axis)))
        """Of what `out` may be: one channel with or without its axis."""
        self._threads = self._batch_threads(options)
        if self._threads > 1:  # each thread takes whole pictures: none of them shares one with others
            options = replace(options, threads=1)
        self._prepare = partial(PreparedFilter, request, problem, choice, options, self._pictures)
        self.prepared = first = self._prepare()
        """The first workspace, for what holds of all of them: no two threads work in it at once."""
        self.method_plan, self.processor = first.method_plan, first.processor
        """What the method prepared: its choices, arithmetic, workspace; and the device that computes."""
        self._on_gpu = self.processor.moves_data
        self.gpu: int | None = None
        """The number of the GPU that the plan was made on; None on the CPU."""
        if self._on_gpu:
            import cupy

            self._get_device, self._current_stream = cupy.cuda.runtime.getDevice, cupy.cuda.get_current_stream
            self.gpu = int(self._get_device())
        self._idle: dict[int, list[PreparedFilter]] = {self._stream(): [first]}
        self._by_address = isinstance(self.method_plan, AddressPlan) and first.second_pass is None
        self._starts = [
            (number * self._in_bytes, number * self._out_bytes)
            for number in range(self._pictures // self.method_plan.pictures)
        ]
        """Where the pictures of each run of a call begin, in the picture's memory and in the output's."""

    # --- what it is -------------------------------------------------------------------------------------------------

    @property
    def bound(self) -> NDArray[np.float64]:
        """The largest error of a value before it is stored, for each output channel, in output units.

        Derived from weights, type and arithmetic (docs/exactness.md); for float pictures it is that of samples of
        at most 1, and grows in proportion. 0 where every value is exact.
        """
        if isinstance(self.problem, ChainProblem):
            return np.zeros(self.problem.output_channels)
        return exactness.bound(self.problem, self.method_plan.arithmetic)

    @property
    def memory_bytes(self) -> int:
        """What the plan holds beside the caller's arrays: workspaces, and arrays on a GPU for pictures of the host."""
        return sum(work.memory_bytes for idle in list(self._idle.values()) for work in list(idle))

    def explain(self) -> str:
        """What was chosen and why, a line for each: method, arithmetic, error bound, workspace, choices."""
        plan, limit = self.method_plan, self.request.threshold
        largest = float(self.bound.max())
        exact = "exact" if largest == 0 else f"at most {largest:.3g} before a value is stored"
        if 0 < largest < LEVEL_OFF_BELOW and self.problem.output_dtype.kind == "u":
            exact += f"; {LEVEL_OFF}"
        lines = [
            ("method", f"{self.method} on {self.device}"),
            ("why", as_parameters(self.why)),
            ("picture", f"{size_text(self.shape)} {self.dtype}"),
            ("output", f"{size_text(self.output_shape)} {self.output_dtype}"),
            *([] if self.request.chain is None else [("chain", self.request.chain.text)]),
            *([] if limit is None else [("mask", f"where |output| is at least {threshold_text(limit)}")]),
            ("arithmetic", plan.arithmetic.name),
            ("error", exact),
            ("workspace", f"{plan.workspace_bytes:,} bytes"),
        ]
        lines += [(name.replace("_", " "), str(value)) for name, value in plan.choice.items()]
        taken = [form for form in FORMS if form.name in str(plan.choice.get("forms", "")).split(", ")]
        lines += [(form.name, f"{form.computes}; error: {form.error}") for form in taken]
        if self._pictures > 1:
            lines.append(("batch", self._batch_text()))
        width = max(len(name) for name, _ in lines)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in lines)

    def measure(
        self, image: Any = None, *, samples: int = 200, time_limit_seconds: float = 0.15, check: str = "sample"
    ) -> RunFigures:
        """Time the filter and compare it with the float64 oracle, as `edgeconv run` does; takes about a second.

        It is measured by a plan of its own: set up, run once (the cold run), then sampled. The roof of the machine
        is measured in the same call.

        Args:
            image: a picture of the plan's shape and type, of any library; noise where it is left out.
            samples: most timed runs; 0 for none, and then there is no speed.
            time_limit_seconds: after which no further run is begun.
            check: `sample` (whole rows, about 300,000 values), `full` or `none`.

        Returns:
            What the report of `edgeconv run` says without files: `timing` and its samples in seconds, `counts`, `speed`
            (GFLOPS, GB/s, shares of the measured roof), `check` (largest error, and where), `method`, `device`,
            `versions`. `edgeconv.core.records.to_json` writes it.

        Raises:
            UsageError: a batch, or an image that the plan would refuse.
        """
        from edgeconv.api import measure

        with on_gpu(self.gpu):
            pixels = None
            if image is not None:
                library = library_of(image)
                gpu, native = library.gpu_of(image), self._native(library, image)
                with stream_as_given(library, gpu):
                    host = native if gpu is None else native.get()
                pixels = plain(host.astype(self.dtype, copy=False)).reshape(self.problem.input_shape)
            return measure.measure_plan(self.prepared, pixels, samples, time_limit_seconds, check)

    def _batch_text(self) -> str:
        if self.method_plan.pictures > 1:
            return f"in one run, {self.method_plan.launches} launches"
        if self._threads > 1 and self._by_address:
            return f"whole pictures by {self._threads} threads"
        return "one picture after another"

    def __repr__(self) -> str:
        shape = size_text(self.shape)
        return f"<edgeconv plan: {self.request.filter.name}, {shape} {self.dtype}, {self.method} on {self.device}>"

    # --- the short way ----------------------------------------------------------------------------------------------

    def __call__(self, image: Any, out: Any = None) -> Any:
        """Filter `image` into `out`, or into a new array of the same library and device, and return it.

        Args:
            image: an array of the plan's shape (HWC, NHWC or HW) and type: NumPy, CuPy, PyTorch, JAX, or any with
                DLPack or `__cuda_array_interface__`. On a GPU the work is put on the caller's stream, and not waited
                for.
            out: an array of the plan's output shape and type, C-contiguous, on the same device; one channel may have
                its axis or none. It is what is returned; nothing is allocated.

        Raises:
            UsageError: an array of another shape, type or device (also a ValueError).
            MemoryLimitError: out of memory, of the host or the GPU.
        """
        try:
            if self._on_gpu and self._get_device() != self.gpu:
                with on_gpu(self.gpu):  # what is allocated and launched here belongs to the plan's own GPU
                    return self(image, out)
            library, gpu = library_of(image), self.gpu
            address = library.address(image, self.shape, self.dtype, gpu) if self._by_address else None
            if address is None:
                return self._call_natively(library, image, out)
            if out is None:
                out, out_address = library.new(self.output_shape, self.output_dtype, image)
            else:
                of_out = library if type(out) is type(image) else library_of(out)
                out_address = self._address_of_output(of_out, out, gpu)
                self._refuse_overlap(address, out_address)
            stream = None if gpu is None else library.stream(gpu)
            if stream is None:
                stream = self._stream()
            if self._threads > 1:
                self._run_pictures(address, out_address)
                return out
            work = self._take(stream)
            run_at = work.method_plan.run_at  # type: ignore[attr-defined]  # an AddressPlan, as `_by_address` says
            try:
                for offset, out_offset in self._starts:
                    run_at(address + offset, out_address + out_offset, stream)
            finally:
                self._give_back(stream, work)
            return out
        except Exception as error:
            with find(self.method, self.device).named():
                raise with_parameters(self.processor.failure(error, self.prepared.call_bytes)) from error.__cause__

    def _run_pictures(self, address: int, out_address: int) -> None:
        """A batch on the CPU: every thread takes whole pictures, and all threads are woken once."""
        works = [self._take(0) for _ in range(self._threads)]
        plans: list[Any] = [work.method_plan for work in works]

        def one(picture: int, worker: int) -> None:
            offset, out_offset = self._starts[picture]
            plans[worker].run_at(address + offset, out_address + out_offset)

        try:
            run_pieces(one, self._pictures, self._threads)
        finally:
            self._idle[0].extend(works)

    # --- the long way -----------------------------------------------------------------------------------------------

    def _call_natively(self, library: ArrayLibrary, image: Any, out: Any) -> Any:
        """By NumPy and CuPy arrays: copies once what does not lie as the method needs it."""
        gpu = library.gpu_of(image)
        self._refuse_other_gpu(gpu)
        native = self._native(library, image)
        if out is not None:
            self._address_of_output(library_of(out), out, gpu)
        with stream_as_given(library, gpu):
            native = native.astype(self.dtype, copy=False)
            result = library.new(self.output_shape, self.output_dtype, image)[0] if out is None else out
            target = library_of(result).native(result)
            arrays = np if gpu is None else self.processor.array_module
            if arrays.may_share_memory(native, target):
                raise UsageError("The output shares memory with the picture: pass another array.")
            pixels = native.reshape(self._pictures, *self.problem.input_shape)  # views: axes of 1 alone are added
            results = target.reshape(self._pictures, *self.problem.output_shape)
            stream = self._stream()
            work = self._take(stream)
            try:
                if self.method_plan.pictures > 1:
                    work.run(pixels, results)
                else:
                    for one, its_target in zip(pixels, results, strict=True):
                        work.run(one, its_target)
            finally:
                self._give_back(stream, work)
            return library.wrap(result, image) if out is None else out

    # --- workspaces -------------------------------------------------------------------------------------------------

    def _take(self, stream: int) -> PreparedFilter:
        """A workspace that nobody works with; taking and giving back are single steps under the interpreter lock."""
        try:
            return self._idle[stream].pop()
        except (KeyError, IndexError):
            return self._prepare()

    def _give_back(self, stream: int, work: PreparedFilter) -> None:
        idle = self._idle.get(stream)
        if idle is None:
            if len(self._idle) >= MAX_STREAMS:
                self._idle.pop(next(iter(self._idle)), None)
            idle = self._idle.setdefault(stream, [])
        idle.append(work)

    def _stream(self) -> int:
        """The number under which workspaces wait: CuPy's current stream, 0 on the CPU."""
        return int(self._current_stream().ptr) if self._on_gpu else 0

    def _batch_threads(self, options: Options) -> int:
        """Threads that share the pictures of a batch: one where a picture is worth several, or all are worth one."""
        moved_bytes = self._in_bytes + self._out_bytes
        if self._pictures == 1 or self.device != "cpu" or moved_bytes >= PARALLEL_BYTES:
            return 1
        return threads_for(options.threads, moved_bytes * self._pictures, self._pictures)

    # --- what is refused --------------------------------------------------------------------------------------------

    def _native(self, library: ArrayLibrary, image: Any) -> Any:
        """A picture of the plan's shape and type, in either byte order, as a NumPy or CuPy array."""
        native = library.native(image)
        if tuple(native.shape) != self.shape:
            raise UsageError(
                f"The picture is {size_text(native.shape)}: the plan was made for {size_text(self.shape)}."
            )
        if native.dtype.newbyteorder("=") != self.dtype:
            raise UsageError(f"The picture is of type {native.dtype.name}: the plan was made for {self.dtype.name}.")
        return native

    def _address_of_output(self, library: ArrayLibrary, out: Any, gpu: int | None) -> int:
        """Where `out` begins; raises UsageError for an array that cannot take the result."""
        for shape in self._out_shapes:
            address = library.address(out, shape, self.output_dtype, gpu)
            if address is not None and not (isinstance(out, np.ndarray) and not out.flags.writeable):
                return address
        shapes = " or ".join(map(size_text, self._out_shapes))
        raise UsageError(
            f"The output must be a writable, C-contiguous array of {shapes} {self.output_dtype.name} "
            f"where the picture is ({'the CPU' if gpu is None else f'GPU {gpu}'})."
        )

    def _refuse_overlap(self, address: int, out_address: int) -> None:
        pictures = self._pictures
        if address < out_address + self._out_bytes * pictures and out_address < address + self._in_bytes * pictures:
            raise UsageError("The output shares memory with the picture: pass another array.")

    def _refuse_other_gpu(self, gpu: int | None) -> None:
        if gpu is None or gpu == self.gpu:
            return
        if not self._on_gpu:
            raise UsageError("The picture is on a GPU and the plan on the CPU: make the plan with device='cuda'.")
        raise UsageError(f"The picture is on GPU {gpu} and the plan on GPU {self.gpu}: make one plan for each GPU.")


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


def size_text(shape: Any) -> str:
    """A shape as people write it: 9×8×3."""
    return "×".join(map(str, shape)) or "a number"
