"""cuDNN's convolution, NHWC, chosen by cudnnGetConvolutionForwardAlgorithm_v7.

cuDNN takes one type of tensor at a time, a zero border and float or half samples. So there are two ways through:

    direct    a float picture (or float16 with --math half) with a zero border and a plain response: cuDNN reads the
              picture and writes the output
    staged    everything else, band by band: the band is padded and converted (epilogue.cu, `stage`), convolved with
              no padding, and its responses are joined and stored (`epilogue`). The time of all three counts.

Filters of several directions are several times the output channels; a filter that keeps channels apart is a dense
one with zeros. `plan.choice` shows the ranked list with each entry's status and what was done with it, the list
that --cudnn-find measured, and what was taken and why. The heuristic's first entry is not always the fastest.

`--math fma` is CUDNN_FMA_MATH, true float32; `tf32` lets float32 run on the tensor cores; `half` converts to float16
with float32 sums, and rounds each response to float16.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from edgeconv.core.exactness import ARITHMETIC_OF_MATH, FLOAT16_UNIT, Arithmetic
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem
from edgeconv.errors import MemoryLimitError, UnavailableError
from edgeconv.hardware.cuda.kernels import KernelVariant, load
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason
from edgeconv.methods.base import Method, Plan, check_workspace, refuse
from edgeconv.methods.cuda import libcudnn
from edgeconv.methods.cuda.kernel_args import (
    problem_defines,
    response_count,
    round_up,
    sample_problems,
    strided_geometry,
    unique,
)
from edgeconv.methods.cuda.libcudnn import (
    STATUS_SUCCESS,
    Algorithm,
    Convolution,
    CudnnError,
    DataType,
    FilterShape,
    ForwardConvolution,
    Handle,
    MathType,
    Performance,
    TensorShape,
)
from edgeconv.methods.options import Math, Options

THREADS = 256
MAX_ELEMENTS = 2**31 - 1
"""cuDNN's legacy calls count the elements of a tensor in 32 bits; larger pictures go in bands."""
ADDRESS_ALIGNMENT = 16
"""cuDNN may read 16 bytes at once; a picture that starts elsewhere is copied first."""
BUFFER_SHARE = 0.5
"""Share of the workspace limit for staged bands; the rest is for the algorithm."""
FILLED_CHANNELS = (4, 8)
"""Input channels that --cudnn-find tries beside the picture's own number; tensor cores like multiples of 4 and 8."""
FIND_REPEATS = 7
NOISE_SAMPLES = 1 << 16

_SAMPLE_TYPES: dict[DataType, np.dtype[Any]] = {
    DataType.FLOAT: np.dtype(np.float32),
    DataType.HALF: np.dtype(np.float16),
}


@cache
def _handle(device_id: int, thread_id: int) -> Handle:
    """One handle per GPU and thread: a handle has one stream, and is not for two threads at once.

    A thread that has ended leaves its number, and with it the handle, to a later one.
    """
    return Handle()


def _stage_variant(problem: Problem, staged: np.dtype[Any], channels: int, responses: int, entry: str) -> KernelVariant:
    shape = (
        ("THREADS", THREADS),
        ("STAGED", staged.name),
        ("STAGED_CHANNELS", channels),
        ("RESPONSE_CHANNELS", responses),
    )
    return KernelVariant("methods/cuda/epilogue.cu", entry, (*problem_defines(problem, staged), *shape))


def variants() -> tuple[KernelVariant, ...]:
    """Representative kernels, for a machine without a GPU to compile."""
    listed = []
    for problem in sample_problems():
        if problem.dtype == np.float64:
            continue
        for staged, channels in (("float32", problem.in_channels), ("float32", 4), ("float16", 8)):
            responses = _padded_responses(problem, channels)
            for entry in ("stage", "epilogue"):
                listed.append(_stage_variant(problem, np.dtype(staged), channels, responses, entry))
    return unique(listed)


def _padded_responses(problem: Problem, channels: int) -> int:
    """Responses per pixel as cuDNN computes them: filled up like the input channels where those are."""
    responses = response_count(problem)
    return responses if channels == problem.in_channels else round_up(responses, channels)


# --- which algorithm --------------------------------------------------------------------------------------------


@dataclass
class Candidate:
    """An algorithm that may be taken, as one of the two lists named it."""

    line: Performance
    math: MathType
    workspace_bytes: int


@dataclass
class Lists:
    """Both rankings ready for the report, and what may be taken, best first."""

    ranked: list[dict[str, Any]] = field(default_factory=list)
    measured: list[dict[str, Any]] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)


def _math_of(line: Performance, math: Math) -> MathType:
    """The descriptor's arithmetic: true float32 where it was asked for, else what the list says of the entry."""
    return MathType.FMA if math == "fma" else line.math


def _screen(
    handle: Handle, work: ForwardConvolution, lines: tuple[Performance, ...], math: Math, limit_bytes: int
) -> tuple[list[dict[str, Any]], list[Candidate]]:
    """Ask each entry of a list for its workspace; say why those that are skipped are."""
    report, candidates = [], []
    for line in lines:
        entry = line.as_json()
        report.append(entry)
        if line.status != STATUS_SUCCESS:
            entry["skipped"] = f"status {line.status}"
            continue
        math_type = _math_of(line, math)
        work.convolution.set_math(math_type)
        try:
            needed = handle.workspace_bytes(work, line.algorithm)
        except CudnnError as error:
            entry["skipped"] = str(error)
            continue
        entry["workspace_bytes"] = needed
        if needed > limit_bytes:
            entry["skipped"] = f"workspace of {needed:,} bytes is above the {limit_bytes:,} that are left"
            continue
        candidates.append(Candidate(line, math_type, needed))
    return report, candidates


TRANSFORMING = (Algorithm.FFT, Algorithm.FFT_TILING, Algorithm.WINOGRAD, Algorithm.WINOGRAD_NONFUSED)


def arithmetic_of(math: Math, algorithm: Algorithm) -> Arithmetic:
    """What cuDNN's sums lose: a filter that keeps channels apart is a dense one with zeros, and half stays half."""
    return replace(
        ARITHMETIC_OF_MATH[math],
        multiplies_zeros=True,
        transforms=algorithm in TRANSFORMING,
        response_unit=FLOAT16_UNIT if math == "half" else 0.0,
    )


# --- the plan ---------------------------------------------------------------------------------------------------


class CudnnPlan(Plan):
    """A convolution, with or without a band's staging around it."""

    def __init__(self, problem: Problem, options: Options, direct: bool, channels: int | None = None) -> None:
        import cupy

        super().__init__(problem=problem)
        self._device = int(cupy.cuda.Device().id)
        self._direct = direct
        self._kind = DataType.HALF if options.math == "half" else DataType.FLOAT
        self._sample = _SAMPLE_TYPES[self._kind]
        self._channels = problem.in_channels if channels is None else channels
        self._responses = _padded_responses(problem, self._channels)
        self._aligned_image: Any = None
        self._aligned_out: Any = None
        self._weights = cupy.asarray(self._filter_memory())
        self._band_rows = problem.output_height if direct else self._rows_within(options)
        self._source_rows = (self._band_rows - 1) * problem.stride + KERNEL_SIZE
        self._make_work(options.math)
        self._make_stages()
        self._choose(options)
        self._describe(options.math)

    def _handle(self) -> Handle:
        """The handle of the thread that asks, which need not be the one that made the plan."""
        return _handle(self._device, threading.get_ident())

    # What is computed, in cuDNN's terms.

    def _filter_memory(self) -> Any:
        """Weights as (responses, 3, 3, channels), zeros in channels that only fill up."""
        problem = self.problem
        filled = np.zeros((self._responses, KERNEL_SIZE, KERNEL_SIZE, self._channels), self._sample)
        dense = problem.dense_weights().reshape(-1, problem.in_channels, KERNEL_SIZE, KERNEL_SIZE)
        filled[: len(dense), :, :, : problem.in_channels] = dense.transpose(0, 2, 3, 1)
        return filled

    def _padded_width(self) -> int:
        return self.problem.width + 2 * self.problem.padding

    def _row_bytes(self) -> tuple[int, int]:
        """Bytes of a staged row and of a row of responses."""
        size = self._sample.itemsize
        return self._padded_width() * self._channels * size, self.problem.output_width * self._responses * size

    def _rows_within(self, options: Options) -> int:
        """Output rows of a band: as many as the limit and cuDNN's 32-bit counts allow."""
        problem = self.problem
        source_row, response_row = self._row_bytes()
        first = KERNEL_SIZE * source_row + response_row
        check_workspace("cudnn", first, options)
        spare = max(0, int(BUFFER_SHARE * options.workspace_limit_bytes) - first)
        by_memory = 1 + spare // (problem.stride * source_row + response_row)
        longest = max(problem.stride * source_row, response_row) // self._sample.itemsize
        by_count = (MAX_ELEMENTS - KERNEL_SIZE * source_row // self._sample.itemsize) // longest
        return int(max(1, min(problem.output_height, by_memory, by_count)))

    def _make_work(self, math: Math) -> None:
        problem = self.problem
        padding = problem.padding if self._direct else 0
        height = problem.height if self._direct else self._source_rows
        width = problem.width if self._direct else self._padded_width()
        self._work = ForwardConvolution(
            source=TensorShape(self._kind, 1, self._channels, height, width),
            weights=FilterShape(self._kind, self._responses, self._channels, KERNEL_SIZE, KERNEL_SIZE),
            convolution=Convolution(padding, problem.stride, MathType.FMA if math == "fma" else MathType.TENSOR_OP),
            result=TensorShape(self._kind, 1, self._responses, self._band_rows, problem.output_width),
        )

    def _make_stages(self) -> None:
        """Buffers and launches around the convolution of each band."""
        import cupy

        from edgeconv.hardware.cuda.launch import PackedLaunch

        problem = self.problem
        self._bands: list[tuple[int, Any]] = []
        if self._direct:
            return
        self._source = cupy.empty((self._source_rows, self._padded_width(), self._channels), self._sample)
        self._result = cupy.empty((self._band_rows, problem.output_width, self._responses), self._sample)
        shape = (problem, self._sample, self._channels, self._responses)
        stage, epilogue = (load(_stage_variant(*shape, entry)) for entry in ("stage", "epilogue"))
        geometry, threads = strided_geometry(problem), (THREADS, 1)
        staged_pixels = self._source_rows * self._padded_width()
        for first in range(0, problem.output_height, self._band_rows):
            # The last band is as tall as the others and ends with the picture: it repeats some rows of the one before.
            row = min(first, problem.output_height - self._band_rows)
            place = (np.int32(row * problem.stride), np.int32(self._source_rows))
            self._bands.append((row, PackedLaunch(stage, -(-staged_pixels // THREADS), threads, geometry, *place)))
        pixels = self._band_rows * problem.output_width
        self._epilogue = PackedLaunch(
            epilogue, -(-pixels * problem.output_channels // THREADS), threads, np.int32(pixels)
        )

    # How it is computed.

    def _choose(self, options: Options) -> None:
        """Rank, perhaps measure, then take the first candidate that runs."""
        import cupy

        held = 0 if self._direct else self._source.nbytes + self._result.nbytes
        limit_bytes = max(0, options.workspace_limit_bytes - held)
        handle = self._handle()
        handle.set_stream(cupy.cuda.get_current_stream().ptr)
        source, result = self._trial_buffers()
        self._lists = Lists()
        ranking = handle.rank(self._work)
        self._lists.ranked, self._lists.candidates = _screen(handle, self._work, ranking, options.math, limit_bytes)
        self._why = "first of the heuristic's ranking that is supported and fits the workspace limit"
        if options.cudnn_find:
            room_bytes = max([0, *[candidate.workspace_bytes for candidate in self._lists.candidates]])
            room = cupy.cuda.alloc(room_bytes)
            self._restore_math(options.math)
            lines = handle.measure(
                self._work, source.data.ptr, self._weights.data.ptr, result.data.ptr, room.ptr, room_bytes
            )
            del room
            self._lists.measured, measured = _screen(handle, self._work, lines, options.math, limit_bytes)
            if measured:
                self._lists.candidates = measured
                self._why = "fastest of the measured ranking that fits the workspace limit"
        for candidate in self._lists.candidates:
            self._take(candidate)
            try:
                self._convolve(handle, source.data.ptr, result.data.ptr)
            except CudnnError as error:
                self._why = f"{candidate.line.algorithm.name} failed ({error}); the next that runs"
                continue
            return
        tried = ", ".join(f"{line['algorithm']}: {line.get('skipped', 'failed')}" for line in self._lists.ranked)
        raise refuse("cudnn", f"no algorithm fits ({tried})", "Raise --workspace-limit, or use --method sliding.")

    def _restore_math(self, math: Math) -> None:
        self._work.convolution.set_math(MathType.FMA if math == "fma" else MathType.TENSOR_OP)

    def _trial_buffers(self) -> tuple[Any, Any]:
        """A source with samples like a picture's and a result, for trials; those of the plan where it has some."""
        import cupy

        problem = self.problem
        if not self._direct:
            source, result = self._source, self._result
        else:
            source = cupy.empty(problem.input_shape, self._sample)
            result = cupy.empty((problem.output_height, problem.output_width, self._responses), self._sample)
        _fill_with_noise(source)
        return source, result

    def _take(self, candidate: Candidate) -> None:
        import cupy

        self._taken = candidate
        self._work.convolution.set_math(candidate.math)
        self._workspace = cupy.cuda.alloc(candidate.workspace_bytes)

    def _convolve(self, handle: Handle, source: int, result: int) -> None:
        taken = self._taken
        handle.forward(
            self._work,
            taken.line.algorithm,
            source,
            self._weights.data.ptr,
            result,
            self._workspace.ptr,
            taken.workspace_bytes,
        )

    def _describe(self, math: Math) -> None:
        problem, taken = self.problem, self._taken
        held = 0 if self._direct else int(self._source.nbytes + self._result.nbytes)
        self.arithmetic = arithmetic_of(math, taken.line.algorithm)
        self.workspace_bytes = held + taken.workspace_bytes + int(self._weights.nbytes)
        self.choice = {
            "cudnn_version": libcudnn.version(),
            "path": "direct" if self._direct else "staged",
            "bands": max(1, len(self._bands)),
            "band_rows": self._band_rows,
            "math": math,
            "channels": self._channels,
            "response_channels": self._responses,
            "ranked": self._lists.ranked,
            "measured": self._lists.measured,
            "taken": {
                "algorithm": taken.line.algorithm.name,
                "math": taken.math.name,
                "workspace_bytes": taken.workspace_bytes,
                "why": self._why,
            },
        }
        self.launches = None
        if self._direct:
            self.moved_bytes = problem.input_bytes + problem.output_bytes
        else:
            self.moved_bytes = problem.input_bytes + problem.output_bytes + 2 * held * len(self._bands)

    def run(self, image: Any, out: Any) -> None:
        """See Plan.run. A float picture that does not start on 16 bytes is copied: the first such call allocates."""
        import cupy

        handle = self._handle()
        handle.set_stream(cupy.cuda.get_current_stream().ptr)
        self._work.convolution.set_math(self._taken.math)
        if self._direct:
            self._run_direct(handle, image, out)
            return
        for row, stage in self._bands:
            stage(image, self._source)
            self._convolve(handle, self._source.data.ptr, self._result.data.ptr)
            self._epilogue(self._result, out[row : row + self._band_rows])

    def _run_direct(self, handle: Handle, image: Any, out: Any) -> None:
        import cupy

        source, result = image, out
        if image.data.ptr % ADDRESS_ALIGNMENT:
            if self._aligned_image is None:
                self._aligned_image = cupy.empty_like(image)
            source = self._aligned_image
            source[...] = image
        if out.data.ptr % ADDRESS_ALIGNMENT:
            if self._aligned_out is None:
                self._aligned_out = cupy.empty_like(out)
            result = self._aligned_out
        self._convolve(handle, source.data.ptr, result.data.ptr)
        if result is not out:
            out[...] = result


def _fill_with_noise(array: Any) -> None:
    """Random samples over the type's range (floats 0 to 1), a block of them repeated: constant ones may run faster."""
    import cupy

    block = np.random.default_rng(0).random(min(array.size, NOISE_SAMPLES), np.float32)
    scale = np.iinfo(array.dtype).max if array.dtype.kind == "u" else 1
    noise = cupy.asarray((block * scale).astype(array.dtype))
    flat = array.reshape(-1)
    whole = flat.size // noise.size * noise.size
    flat[:whole].reshape(-1, noise.size)[:] = noise
    flat[whole:] = noise[: flat.size - whole]


def _can_be_direct(problem: Problem, math: Math) -> bool:
    """May cuDNN read the picture and write the output with nothing before or after?"""
    sample = np.dtype(np.float16 if math == "half" else np.float32)
    plain = problem.directions == 1 and problem.output_mode == "raw" and problem.border == "zero"
    small = max(problem.input_bytes, problem.output_bytes) // sample.itemsize <= MAX_ELEMENTS
    return plain and small and problem.dtype == problem.output_dtype == sample


class CuDNN(Method):
    """cuDNN's legacy convolution API."""

    def unavailable_reason(self) -> str | None:
        return cuda_unavailable_reason() or libcudnn.unavailable_reason()

    def prepare(self, problem: Problem, options: Options) -> Plan:
        if problem.dtype == np.float64:
            raise refuse("cudnn", "it computes float64 in NCHW alone", "Use --method sliding.")
        if options.math != "fma" and problem.dtype == np.uint16:  # TF32 and half keep 11 bits, and half ends at 65,504
            reason = f"--math {options.math} keeps 11 bits of a sample, and this picture has 16"
            raise refuse("cudnn", reason, "Use --math fma.")
        plan = _natural_plan(problem, options)
        return _fastest_channels(plan, problem, options) if options.cudnn_find else plan


def _natural_plan(problem: Problem, options: Options) -> CudnnPlan:
    """The picture's channels; direct where that can be and an algorithm takes it, else staged."""
    if _can_be_direct(problem, options.math):
        try:
            return CudnnPlan(problem, options, direct=True)
        except UnavailableError:
            pass  # such a padding or size is not one that cuDNN supports: staged bands have neither
    return CudnnPlan(problem, options, direct=False)


def _fastest_channels(plan: CudnnPlan, problem: Problem, options: Options) -> CudnnPlan:
    """Time whole runs with three channels and with filled-up ones; keep the fastest and say what each took."""
    import cupy

    image = cupy.empty(problem.input_shape, problem.dtype)
    _fill_with_noise(image)
    out = cupy.empty(problem.output_shape, problem.output_dtype)
    report = [{"channels": plan.choice["channels"], "run_seconds": _seconds(plan, image, out)}]
    best, best_seconds = plan, report[0]["run_seconds"]
    for channels in FILLED_CHANNELS:
        try:
            other = CudnnPlan(problem, options, direct=False, channels=channels)
        except (UnavailableError, MemoryLimitError) as error:
            report.append({"channels": channels, "refused": str(error)})
            continue
        seconds = _seconds(other, image, out)
        report.append({"channels": channels, "run_seconds": seconds})
        if seconds < best_seconds:
            best, best_seconds = other, seconds
    best.choice["channels_measured"] = report
    return best


def _seconds(plan: Plan, image: Any, out: Any) -> float:
    """The median time of a few whole runs, staging included, in seconds."""
    import cupy

    times = []
    for _ in range(FIND_REPEATS + 1):
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        plan.run(image, out)
        stop.record()
        stop.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, stop) / 1e3)
    return float(np.median(times[1:]))
