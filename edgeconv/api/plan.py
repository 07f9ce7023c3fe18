"""A prepared filter for pictures of one shape and type: all set-up is done when it is made, a call only computes.

    plan = edgeconv.plan((2048, 2048, 3), "uint8", filter="sobel", channels="each")
    edges = plan(image)             # an array of the same library and device as the picture
    plan(image, out=edges)          # no allocation; on a GPU no waiting, on the caller's stream

A call takes the short way where it can: the picture and the output are exactly what the plan was made for, and the
method computes from addresses. Everything else (strided arrays, other byte orders, JAX, `normalize`, masks by a
threshold, pictures of the host for a GPU) takes the long way, which copies once what must be copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.api.arrays import ArrayLibrary, aligned_empty, library_of
from edgeconv.api.auto import Choice
from edgeconv.api.parameters import as_parameters, with_parameters
from edgeconv.api.session import Session, plain
from edgeconv.core import exactness
from edgeconv.core.chains import ChainProblem
from edgeconv.core.choices import CHECKS
from edgeconv.core.exactness import LEVEL_OFF, LEVEL_OFF_BELOW
from edgeconv.core.filters import CHANNEL_COUNTS, GREY_CHANNELS
from edgeconv.core.forms import FORMS
from edgeconv.core.noise import noise_pixels
from edgeconv.core.option import AUTO
from edgeconv.core.output import threshold_text
from edgeconv.core.problem import Problem
from edgeconv.core.request import Request
from edgeconv.core.timing import Budget, Stopwatch
from edgeconv.errors import EdgeconvError, UsageError
from edgeconv.hardware.devices import get_device
from edgeconv.hardware.pool import PARALLEL_BYTES, run_pieces, threads_for
from edgeconv.methods.base import AddressPlan
from edgeconv.methods.options import Options

if TYPE_CHECKING:
    from edgeconv.api.figures import RunFigures

MOST_STREAMS = 16
"""Streams whose sessions a plan keeps; those of streams beyond that are made anew."""

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
        raise UsageError(f"An array of {_text(shape)} is not a picture: give {SHAPES}.{hint}")
    return shape[-3:]


class ConvolutionPlan:
    """Filters arrays of one shape and type; made by `edgeconv.plan`. May be called from any thread.

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
        self.method, self.device, self.why = choice.method, choice.device, choice.why
        self._request, self._options, self._choice, self._asked_for = request, options, choice, asked_for
        self._second_pass = request.last_passes(self.dtype)
        self.output_shape: Shape = request.output_shape(shape, self.problem.output_shape)
        """Of the result, as `Request.output_shape` says."""
        self._computed_shape: Shape = (*shape[:-3], *self.problem.output_shape)
        """The result as the method gives it, always with an axis for channels."""
        without_axis = [self._computed_shape[:-1]] if self.problem.output_channels == 1 else []
        self._out_shapes = tuple(dict.fromkeys((self.output_shape, self._computed_shape, *without_axis)))
        """Of what `out` may be: one channel with or without its axis."""
        self.output_dtype = request.output_dtype(self.dtype)
        self._pictures = shape[0] if len(shape) == 4 else 1
        self._in_bytes, self._out_bytes = self.problem.input_bytes, self.problem.output_bytes
        self._on_gpu = get_device(self.device).moves_data
        self.gpu: int | None = None
        """The number of the GPU that the plan was made on; None on the CPU."""
        if self._on_gpu:
            import cupy

            self._get_device, self._current_stream = cupy.cuda.runtime.getDevice, cupy.cuda.get_current_stream
            self.gpu = int(self._get_device())
        self._idle: dict[int, list[Session]] = {}
        self._threads = self._batch_threads()
        first = self._prepare()
        self._by_address: bool = isinstance(first.plan, AddressPlan) and self._second_pass is None
        self._in_one_run = first.pictures == self._pictures
        self._call_bytes = first.needed_bytes
        self.method_plan = first.plan
        """What the method prepared: its choices, arithmetic, workspace; shared by no two threads at once."""
        self._idle[self._stream()] = [first]

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
        return sum(session.held_bytes for idle in list(self._idle.values()) for session in list(idle))

    def explain(self) -> str:
        """What was chosen and why, a line for each: method, arithmetic, error bound, workspace, choices."""
        plan, limit = self.method_plan, self._request.threshold
        largest = float(self.bound.max())
        exact = "exact" if largest == 0 else f"at most {largest:.3g} before a value is stored"
        if 0 < largest < LEVEL_OFF_BELOW and self.problem.output_dtype.kind == "u":
            exact += f"; {LEVEL_OFF}"
        lines = [
            ("method", f"{self.method} on {self.device}"),
            ("why", as_parameters(self.why)),
            ("picture", f"{'×'.join(map(str, self.shape))} {self.dtype}"),
            ("output", f"{'×'.join(map(str, self.output_shape))} {self.output_dtype}"),
            *([] if self._request.chain is None else [("chain", self._request.chain.text)]),
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

        It is measured in a workspace of its own: set up, run once (the cold run), then sampled. The roof of the machine
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
        from edgeconv.io.image import Picture

        if len(self.shape) == 4:
            raise UsageError(
                "A batch is not measured: measure a plan for one of its pictures, (height, width, channels)."
            )
        if check not in CHECKS:
            raise UsageError(f"The check '{check}' is not one of {', '.join(CHECKS)}.")
        if samples < 0 or not time_limit_seconds > 0:
            raise UsageError("Samples must be a whole number from 0, and the time limit above 0.")
        budget = Budget(max_samples=samples, time_limit_seconds=time_limit_seconds)
        picture = Picture(self._pixels_to_measure(image), source="array", format="array")
        with self._at_home() if self._on_gpu else nullcontext():
            filtered = measure.filter_picture(
                picture, self._request, self.problem, self._choice, self._options, Stopwatch()
            )
            peak_bytes = filtered.session.device.peak_bytes()
            filtered = measure.measure(filtered, budget, check)
            return measure.describe(filtered, asked_for=self._asked_for, peak_bytes=peak_bytes)

    def _pixels_to_measure(self, image: Any) -> NDArray[Any]:
        """A picture of the host, of the plan's shape and type."""
        if image is None:
            return noise_pixels(self.problem.height, self.problem.width, self.dtype, self.problem.in_channels)
        library = library_of(image)
        gpu = library.gpu_of(image)
        native = library.native(image)
        self._check_picture(native)
        with stream_as_given(library, gpu):
            host = native if gpu is None else native.get()
        return plain(host.astype(self.dtype, copy=False)).reshape(self.problem.input_shape)

    def __repr__(self) -> str:
        shape = "×".join(map(str, self.shape))
        return f"<edgeconv plan: {self._request.filter.name}, {shape} {self.dtype}, {self.method} on {self.device}>"

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
                with self._at_home():  # what is allocated and launched here belongs to the plan's own GPU
                    return self(image, out)
            library = library_of(image)
            if not self._by_address:
                return self._call_natively(library, image, out)
            gpu = self.gpu
            address = library.address(image, self.shape, self.dtype, gpu)
            if address is None:
                return self._call_natively(library, image, out)
            if out is None:
                made = library.new(self.output_shape, self.output_dtype, image)
                if made is None:
                    return self._call_natively(library, image, out)
                out, out_address = made
            else:
                of_out = library if type(out) is type(image) else library_of(out)
                out_address = self._address_of_output(of_out, out, gpu)
                self._refuse_overlap(address, out_address)
            if gpu is None:
                self._run_on_cpu(address, out_address)
            else:
                self._run_on_gpu(library.stream(gpu), address, out_address)
            return out
        except (EdgeconvError, MemoryError, RuntimeError) as error:  # CuPy's and PyTorch's are of these
            raise with_parameters(get_device(self.device).failure(error, self._call_bytes)) from error.__cause__

    def _run_on_cpu(self, address: int, out_address: int) -> None:
        if self._pictures > 1:
            self._run_pictures(address, out_address)
            return
        session = self._take(0)
        try:
            plan: Any = session.plan  # an AddressPlan, as in all of the short way
            plan.run_at(address, out_address)
        finally:
            self._idle[0].append(session)

    def _run_pictures(self, address: int, out_address: int) -> None:
        """A batch on the CPU: every thread takes whole pictures, and all threads are woken once."""
        step, out_step = self._in_bytes, self._out_bytes
        sessions = [self._take(0) for _ in range(self._threads)]
        plans: list[Any] = [session.plan for session in sessions]

        def one(picture: int, worker: int) -> None:
            plans[worker].run_at(address + picture * step, out_address + picture * out_step)

        try:
            run_pieces(one, self._pictures, self._threads)
        finally:
            self._idle[0].extend(sessions)

    def _run_on_gpu(self, stream: int | None, address: int, out_address: int) -> None:
        number = self._current_stream().ptr if stream is None else stream
        session = self._take(number)
        plan: Any = session.plan
        run_at = plan.run_at
        try:
            if self._in_one_run:
                run_at(address, out_address, number)
            else:
                step, out_step = self._in_bytes, self._out_bytes
                for picture in range(self._pictures):
                    run_at(address + picture * step, out_address + picture * out_step, number)
        finally:
            self._give_back(number, session)

    # --- the long way -----------------------------------------------------------------------------------------------

    def _call_natively(self, library: ArrayLibrary, image: Any, out: Any) -> Any:
        """By NumPy and CuPy arrays: copies once what does not lie as the method needs it."""
        gpu = library.gpu_of(image)
        self._refuse_other_gpu(gpu)
        native = library.native(image)
        self._check_picture(native)
        if out is not None:
            self._check_output(out, gpu)
        with self._at_home() if gpu is not None else nullcontext(), stream_as_given(library, gpu):
            target, give = self._native_target(library, image, gpu, out)
            native = native.astype(self.dtype, copy=False)
            if out is not None and _overlap(native, target):
                raise UsageError("The output shares memory with the picture: pass another array.")
            pixels = native if len(self.shape) > 2 else native[..., np.newaxis]
            results = target.reshape(self._computed_shape)  # a view, as it is C-contiguous
            if self._in_one_run and (self._pictures > 1 or pixels.ndim == 3):
                self._run(pixels, results)
            else:
                for one, its_target in zip(pixels, results, strict=True):
                    self._run(one, its_target)
            return give(target)

    def _native_target(
        self, library: ArrayLibrary, image: Any, gpu: int | None, out: Any
    ) -> tuple[Any, Callable[[Any], Any]]:
        """A NumPy or CuPy array that takes the result, and what makes of it what the caller gets."""
        if out is not None:
            return library_of(out).native(out), lambda _: out
        made = library.new(self.output_shape, self.output_dtype, image)
        if made is not None:
            result = made[0]
            return library.native(result), lambda _: result
        if gpu is None:
            return aligned_empty(self.output_shape, self.output_dtype), lambda target: library.wrap(target, image)
        empty = get_device(self.device).empty(self.output_shape, self.output_dtype)
        return empty, lambda target: library.wrap(target, image)

    def _run(self, image: Any, target: Any) -> None:
        """One run of arrays of the host or the plan's GPU; what is the host's crosses the bus and comes back."""
        stream = self._stream()
        with self._at_home() if self._on_gpu else nullcontext():
            session = self._take(stream)
            try:
                if not isinstance(image, np.ndarray):
                    session.convolve_into(image, target)
                elif (result := session.convolve(image, result=target)) is not target:
                    np.copyto(target, result)
            finally:
                self._give_back(stream, session)

    # --- what is refused --------------------------------------------------------------------------------------------

    def _check_picture(self, native: Any) -> None:
        if tuple(native.shape) != self.shape:
            raise UsageError(f"The picture is {_text(native.shape)}: the plan was made for {_text(self.shape)}.")
        if native.dtype.newbyteorder("=") != self.dtype:
            raise UsageError(f"The picture is of type {native.dtype.name}: the plan was made for {self.dtype.name}.")

    def _check_output(self, out: Any, gpu: int | None) -> None:
        library = library_of(out)
        if library.gpu_of(out) != gpu:
            raise UsageError("The output lies on another device than the picture.")
        self._address_of_output(library, out, gpu)

    def _address_of_output(self, library: ArrayLibrary, out: Any, gpu: int | None) -> int:
        """Where `out` begins; raises UsageError for an array that cannot take the result."""
        for shape in self._out_shapes:
            address = library.address(out, shape, self.output_dtype, gpu)
            if address is not None and not (isinstance(out, np.ndarray) and not out.flags.writeable):
                return address
        shapes = " or ".join(map(_text, self._out_shapes))
        raise UsageError(
            f"The output must be a writable, C-contiguous array of {shapes} {self.output_dtype.name} "
            f"where the plan computes ({f'GPU {self.gpu}' if self._on_gpu else 'the CPU'})."
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

    # --- sessions ---------------------------------------------------------------------------------------------------

    def _prepare(self) -> Session:
        options = self._options
        if self._threads > 1:  # each thread takes whole pictures: none of them shares one with others
            options = replace(options, threads=1)
        return Session(self.problem, self.method, self.device, options, self._second_pass, self._pictures)

    def _take(self, stream: int) -> Session:
        """A session that nobody works with; taking and giving back are single steps under the interpreter lock."""
        try:
            return self._idle[stream].pop()
        except (KeyError, IndexError):
            with self._at_home() if self._on_gpu else nullcontext():
                return self._prepare()

    def _give_back(self, stream: int, session: Session) -> None:
        idle = self._idle.get(stream)
        if idle is None:
            if len(self._idle) >= MOST_STREAMS:
                self._idle.pop(next(iter(self._idle)), None)
            idle = self._idle.setdefault(stream, [])
        idle.append(session)

    def _stream(self) -> int:
        """The number under which sessions wait: CuPy's current stream, 0 on the CPU."""
        return int(self._current_stream().ptr) if self._on_gpu else 0

    @contextmanager
    def _at_home(self) -> Iterator[None]:
        """Work on the plan's GPU inside the block."""
        from edgeconv.hardware.cuda.device import on_device

        assert self.gpu is not None
        with on_device(self.gpu):
            yield

    def _batch_threads(self) -> int:
        """Threads that share the pictures of a batch: one where a picture is worth several, or all are worth one."""
        moved_bytes = self._in_bytes + self._out_bytes
        if self._pictures == 1 or self._on_gpu or moved_bytes >= PARALLEL_BYTES:
            return 1
        return threads_for(self._options.threads, moved_bytes * self._pictures, self._pictures)

    def _batch_text(self) -> str:
        if self._in_one_run:
            return f"in one run, {self.method_plan.launches} launches"
        if self._on_gpu or not self._by_address:
            return "one picture after another"
        return f"whole pictures by {self._threads} threads" if self._threads > 1 else "one picture after another"


def _overlap(image: Any, out: Any) -> bool:
    """Whether two arrays of one kind may share memory, by their bounds."""
    if isinstance(image, np.ndarray):
        return bool(np.may_share_memory(plain(image) if image.dtype.isnative else image, out))
    import cupy

    return bool(cupy.may_share_memory(image, out))


@contextmanager
def stream_as_given(library: ArrayLibrary, gpu: int | None) -> Iterator[None]:
    """Make the caller's stream CuPy's current one inside the block, where another library has one of its own."""
    number = None if gpu is None else library.stream(gpu)
    if number is None:
        yield
        return
    import cupy

    with cupy.cuda.ExternalStream(number, gpu):
        yield


def _text(shape: Any) -> str:
    return "×".join(map(str, shape)) or "a number"
