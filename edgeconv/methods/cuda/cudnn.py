"""cuDNN's convolution, NHWC, chosen by cudnnGetConvolutionForwardAlgorithm_v7.

cuDNN takes one type of tensor at a time, a zero border and float or half samples. So there are three ways through:

    direct     a float picture (or float16 with --math half) with a zero border and a plain response: cuDNN reads the
               picture and writes the output
    staged     everything else, band by band: the band is padded and converted (epilogue.cu, `stage`), convolved with
               no padding, and its responses are joined and stored (`epilogue`). The time of all three counts.
    grouped    staged, for filters that keep channels apart: as planes (NCHW) in a grouped convolution, which takes
               0.4 of the time of a dense one with zeros, in either layout, and grouped NHWC 1.1 (2048² on one H200)

Filters of several directions are several times the output channels. Where cuDNN has no grouped convolution, it is a
dense one with zeros. `plan.choice` shows the ranked list, with why an entry was passed over, and what was taken. The
heuristic's first entry is not always the fastest: --cudnn-find measures each that fits the workspace limit.

`--math fma` is CUDNN_FMA_MATH, true float32; `tf32` lets float32 run on the tensor cores; `half` converts to float16
with float32 sums, and rounds each response to float16.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from ctypes import c_void_p
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from edgeconv.core.exactness import ARITHMETIC_OF_MATH, FLOAT16_UNIT, Arithmetic
from edgeconv.core.filters import Weights
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import PictureProblem, Problem
from edgeconv.errors import UnavailableError
from edgeconv.hardware.cuda.kernels import load
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason
from edgeconv.methods.base import Method, Plan, check_workspace
from edgeconv.methods.cuda import libcudnn
from edgeconv.methods.cuda.kernel_args import STAGING_THREADS, response_count, staging_variant, strided_geometry
from edgeconv.methods.cuda.libcudnn import Algorithm, CudnnError, MathType
from edgeconv.methods.options import Math, Options

MAX_ELEMENTS = 2**31 - 1
"""cuDNN's legacy calls count the elements of a tensor in 32 bits; larger pictures go in bands."""
ADDRESS_ALIGNMENT = 16
"""cuDNN may read 16 bytes at once; a picture that starts elsewhere is copied first."""
BUFFER_SHARE = 0.5
"""Share of the workspace limit for staged bands; the rest is for the algorithm."""
FIND_REPEATS = 7
TRANSFORMING = (Algorithm.FFT, Algorithm.FFT_TILING, Algorithm.WINOGRAD, Algorithm.WINOGRAD_NONFUSED)


Path = Literal["direct", "staged", "grouped"]
WINDOW = (KERNEL_SIZE, KERNEL_SIZE)


def _grouped_weights(problem: Problem) -> Weights:
    """(responses, in / groups, 3, 3): those of a group's outputs together, by directions."""
    directions, outputs, in_group = problem.weights.shape[:3]
    by_group = problem.weights.reshape(directions, problem.groups, outputs // problem.groups, in_group, *WINDOW)
    return by_group.swapaxes(0, 1).reshape(-1, in_group, *WINDOW)


def _sample_type(math: Math) -> np.dtype[Any]:
    """Of the samples that cuDNN reads and writes."""
    return np.dtype(np.float16 if math == "half" else np.float32)


def _rows_within(problem: Problem, options: Options) -> int:
    """Output rows of a band: as many as the limit and cuDNN's 32-bit counts allow."""
    itemsize = _sample_type(options.math).itemsize
    source_row = (problem.width + 2 * problem.padding) * problem.in_channels * itemsize
    response_row = problem.output_width * response_count(problem) * itemsize
    first = KERNEL_SIZE * source_row + response_row
    check_workspace("cudnn", first, options)
    most = min(int(BUFFER_SHARE * options.workspace_limit_bytes), MAX_ELEMENTS * itemsize)
    more = max(0, most - first) // (problem.stride * source_row + response_row)
    return min(problem.output_height, 1 + more)


def _arithmetic_of(math: Math, algorithm: Algorithm) -> Arithmetic:
    """What cuDNN's sums lose: a filter that keeps channels apart may be a dense one with zeros, and half stays half."""
    return replace(
        ARITHMETIC_OF_MATH[math],
        multiplies_zeros=True,
        transforms=algorithm in TRANSFORMING,
        response_unit=FLOAT16_UNIT if math == "half" else 0.0,
    )


def _handle() -> c_void_p:
    """The handle of the thread that asks, which need not be the one that made the plan, on its current stream."""
    import cupy

    handle = libcudnn.handle_of(int(cupy.cuda.Device().id), threading.get_ident())
    libcudnn.call("cudnnSetStream", handle, cupy.cuda.get_current_stream().ptr)
    return handle


class CudnnPlan(Plan):
    """A convolution, with or without a band's staging around it."""

    def __init__(self, problem: Problem, options: Options, path: Path) -> None:
        import cupy

        super().__init__(problem=problem)
        self._direct, self._grouped = direct, grouped = path == "direct", path == "grouped"
        sample, channels, responses = _sample_type(options.math), problem.in_channels, response_count(problem)
        rows, height, width, padding = problem.output_height, problem.height, problem.width, problem.padding
        if not direct:
            rows, width, padding = _rows_within(problem, options), width + 2 * padding, 0
            height = (rows - 1) * problem.stride + KERNEL_SIZE
        weights = _grouped_weights(problem) if grouped else problem.dense_weights().reshape(-1, channels, *WINDOW)
        shape = (1, channels, height, width)
        self._convolution = libcudnn.Convolution(sample.name, shape, weights.shape, padding, problem.stride)
        laid = weights if grouped else weights.transpose(0, 2, 3, 1)
        self._weights = cupy.asarray(np.ascontiguousarray(laid, sample))
        # Random samples, a row of them repeated: constant ones may run faster when algorithms are measured.
        row = cupy.asarray(np.random.default_rng(0).random((width, channels)).astype(sample))
        self._source = cupy.empty(shape[1:] if grouped else (height, width, channels), sample)
        self._source[...] = row.T[:, None] if grouped else row
        self._rows, self._source_rows = rows, height
        self._result = cupy.empty(rows * problem.output_width * responses, sample)
        self._buffer_bytes = 0 if direct else int(self._source.nbytes + self._result.nbytes)
        self._bands: list[tuple[int, Any]] = []
        if not direct:
            self._make_stages()
        self.moved_bytes = problem.input_bytes + problem.output_bytes + 2 * self._buffer_bytes * len(self._bands)
        self.choice = {
            "cudnn_version": libcudnn.version(),
            "path": path,
            "given": self._given(),
            "bands": max(1, len(self._bands)),
            "band_rows": rows,
            "math": options.math,
        }
        self._choose(options)
        if direct:
            del self._source, self._result  # they were for trials

    def _given(self) -> str:
        """What cuDNN is asked to compute."""
        channels, responses = self.problem.in_channels, response_count(self.problem)
        layout = f"NCHW, {self.problem.groups} groups" if self._grouped else "NHWC"
        return f"{channels}→{responses} channels of {self._source.dtype}, {layout}"

    def _make_stages(self) -> None:
        """The launches around the convolution of each band."""
        from edgeconv.hardware.cuda.launch import PackedLaunch

        problem, sample, rows, source_rows = self.problem, self._source.dtype, self._rows, self._source_rows
        variants = (staging_variant(problem, sample, entry, self._grouped) for entry in ("stage", "epilogue"))
        stage, epilogue = map(load, variants)
        width = problem.width + 2 * problem.padding
        geometry, blocks = strided_geometry(problem), -(-source_rows * width // STAGING_THREADS)
        for first in range(0, problem.output_height, rows):
            # The last band is as tall as the others and ends with the picture: it repeats some rows of the one before.
            row = min(first, problem.output_height - rows)
            place = (np.int32(row * problem.stride), np.int32(source_rows))
            self._bands.append((row, PackedLaunch(stage, blocks, (STAGING_THREADS, 1), geometry, *place)))
        pixels = rows * problem.output_width
        blocks = -(-pixels * problem.output_channels // STAGING_THREADS)
        self._epilogue = PackedLaunch(epilogue, blocks, (STAGING_THREADS, 1), np.int32(pixels))

    def _choose(self, options: Options) -> None:
        """Rank the algorithms; take the first that runs, or measure all and take the fastest.

        `skipped` of an entry says why it cannot be taken.
        """
        self._convolution.set_math(MathType.FMA if options.math == "fma" else MathType.TENSOR_OP)
        limit, find, handle = max(0, options.workspace_limit_bytes - self._buffer_bytes), options.cudnn_find, _handle()
        ranked = [line.as_json() for line in self._convolution.rank(handle)]
        runs: list[dict[str, Any]] = []
        for entry in ranked:
            if options.math == "fma":
                entry["math"] = "FMA"
            if entry["status"]:
                entry["skipped"] = f"status {entry['status']}"
            elif (needed := entry["workspace_bytes"]) > limit:
                entry["skipped"] = f"workspace of {needed:,} bytes is above the {limit:,} that are left"
            elif find or not runs:
                try:
                    self._take(entry)
                    self._convolve(handle, self._source, self._result)
                    if find:
                        entry["time_seconds"] = _seconds(self._convolve, handle, self._source, self._result)
                    runs.append(entry)
                except CudnnError as error:
                    entry["skipped"] = str(error)
        if not runs:
            tried = ", ".join(f"{entry['algorithm']}: {entry['skipped']}" for entry in ranked)
            raise UnavailableError(
                f"Method 'cudnn' has no algorithm that fits ({tried}): raise --workspace-limit or use --method sliding."
            )
        taken = min(runs, key=lambda entry: entry["time_seconds"]) if find else runs[0]
        self._take(taken)
        self.arithmetic = _arithmetic_of(options.math, self._algorithm)
        self.workspace_bytes = self._buffer_bytes + self._room_bytes + int(self._weights.nbytes)
        why = "fastest of those measured" if find else "first of the heuristic's ranking"
        chosen = {name: taken[name] for name in ("algorithm", "math", "workspace_bytes")}
        chosen["why"] = f"{why} that runs and fits the workspace limit"
        self.choice |= {"ranked": ranked, "taken": chosen}

    def _take(self, entry: dict[str, Any]) -> None:
        import cupy

        self._algorithm, self._room_bytes = Algorithm[entry["algorithm"]], entry["workspace_bytes"]
        self._convolution.set_math(MathType[entry["math"]])
        self._room = cupy.cuda.alloc(self._room_bytes)

    def _convolve(self, handle: c_void_p, source: Any, result: Any) -> None:
        buffers = (source.data.ptr, self._weights.data.ptr, result.data.ptr)
        self._convolution.run(handle, self._algorithm, buffers, (self._room.ptr, self._room_bytes))

    def run(self, image: Any, out: Any) -> None:
        """See Plan.run. A float picture that does not start on 16 bytes is copied, which allocates."""
        handle = _handle()
        if self._direct:
            self._run_direct(handle, image, out)
        for row, stage in self._bands:
            stage(image, self._source)
            self._convolve(handle, self._source, self._result)
            self._epilogue(self._result, out[row : row + self._rows])

    def parts(self, image: Any, out: Any) -> dict[str, Callable[[], None]]:
        """See Plan.parts: of a picture that is one band."""
        if len(self._bands) != 1:
            return {}
        ((_, stage),), handle = self._bands, _handle()
        return {
            "pad and convert": lambda: stage(image, self._source),
            "convolve": lambda: self._convolve(handle, self._source, self._result),
            "join and store": lambda: self._epilogue(self._result, out),
        }

    def _run_direct(self, handle: c_void_p, image: Any, out: Any) -> None:
        import cupy

        source, result = image, out
        if image.data.ptr % ADDRESS_ALIGNMENT:
            source = cupy.empty_like(image)
            source[...] = image
        if out.data.ptr % ADDRESS_ALIGNMENT:
            result = cupy.empty_like(out)
        self._convolve(handle, source, result)
        if result is not out:
            out[...] = result


def _seconds(function: Any, *arguments: Any) -> float:
    """The median time of a few calls on the GPU."""
    from cupyx.profiler import benchmark

    return float(np.median(benchmark(function, arguments, n_warmup=1, n_repeat=FIND_REPEATS).gpu_times))


def _can_be_direct(problem: Problem, math: Math) -> bool:
    """May cuDNN read the picture and write the output with nothing before or after?"""
    sample = _sample_type(math)
    plain = problem.directions == 1 and problem.output_mode == "raw" and problem.border == "zero"
    small = max(problem.input_bytes, problem.output_bytes) // sample.itemsize <= MAX_ELEMENTS
    return plain and small and problem.dtype == problem.output_dtype == sample


class CuDNN(Method):
    """cuDNN's legacy convolution API."""

    def unavailable_reason(self) -> str | None:
        return cuda_unavailable_reason() or libcudnn.unavailable_reason()

    def reason(self, problem: PictureProblem, options: Options) -> str | None:
        if problem.dtype == np.float64:
            return "it computes float64 in NCHW alone"
        if options.math != "fma" and problem.dtype == np.uint16:  # TF32 and half keep 11 bits, and half ends at 65,504
            return f"--math {options.math} keeps 11 bits of a sample, and this picture has 16, as --math fma keeps"
        return super().reason(problem, options)

    def prepare(self, problem: Problem, options: Options, pictures: int = 1) -> Plan:
        first: Path | None = "direct" if _can_be_direct(problem, options.math) else None
        if problem.groups > 1:
            first = "grouped"
        if first is not None:
            # Such a padding or size may be one that cuDNN does not support, which staged bands do not have, or groups.
            with suppress(UnavailableError):
                return CudnnPlan(problem, options, first)
        return CudnnPlan(problem, options, "staged")
