"""Kernels as one writes them who knows Numba, Halide or Triton: whole numbers where they fit, no more than `Work`.

What stands apart is taken as flat rows of width · channels samples, taps `channels` samples apart; what lies outside of
the picture is 0.

    numba    CPU: strips of rows in parallel. A strip is first copied into padded planes of the type that sums are
             computed in (int16 for uint8 with small whole weights); a row of a plane is one expression of nine taps.
             GPU: a thread for each pixel or flat sample, which reads a sample once for all outputs
    halide   strips of rows in parallel, samples in vectors; what a strip needs of a plane is computed once for it, and
             outputs are unrolled
    triton   flat rows, or tiles of pixels (triton_stencil.py), on arrays of PyTorch

Source: Numba's manual, "Automatic parallelization with @jit", "Writing CUDA kernels"; Halide's tutorial, lessons 5
(schedules) and 8 (stages), and its apps/blur; Triton's tutorials and `triton.autotune` of its reference.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from collections.abc import Callable
from functools import cache, reduce
from importlib import import_module
from math import sqrt
from operator import add
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.peers.base import HALO, TOLERANCE, Peer, Work, on_host, work_of
from edgeconv.core.filters import CHANNEL_COUNTS, Weights
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem
from edgeconv.errors import UnavailableError
from edgeconv.hardware.threads import usable_threads

ROWS = 32
"""Output rows of a strip: its planes stay in the cache of a core."""
BLOCK = (64, 4)
"""Threads of a block, along x and y."""
FEATURES = {"sse4.1": "sse41", "avx": "avx", "avx2": "avx2", "fma": "fma", "f16c": "f16c"}
"""LLVM's names, and Halide's. Its own look at the processor takes AVX-512 where a virtual machine hides it."""
WIDE = {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"}
VECTOR_BYTES = 64
"""Of the sums of a vector: two registers of AVX2, one of AVX-512."""


class ByHand(Peer):
    """What they share."""

    borders = ("zero",)

    def work(self, problem: Problem) -> Work:
        """Raises UnavailableError for flat rows with a stride."""
        work = work_of(problem)
        if work.apart and problem.stride > 1:
            raise UnavailableError("it is written for channels apart with stride 1")
        return work


def _most(problem: Problem) -> int:
    """The greatest sample of an integer output, 0 of a float one."""
    return int(np.iinfo(problem.output_dtype).max) if problem.output_dtype.kind == "u" else 0


class Numba(ByHand):
    """What both devices share."""

    distributions: tuple[str, ...] = ("numba",)
    module = "numba"

    def stored(self, jit: Any, problem: Problem, kind: Any, rint: Any) -> Any:
        """`stored(first, other)`: the sample of one response, or of two (else `other` is not used)."""
        is_magnitude, is_absolute = problem.combine == "magnitude", problem.output_mode == "abs"
        joined = np.float32 if is_magnitude else kind
        most, is_rounded = joined(_most(problem)), joined is np.float32

        @jit
        def stored(first: Any, other: Any) -> Any:
            value = joined(first)
            if is_magnitude:
                value = np.float32(sqrt(value * value + np.float32(other) * np.float32(other)))
            if is_absolute:
                value = joined(abs(value))
            if most > 0:
                value = min(max(value, joined(0)), most)
                if is_rounded:
                    value = rint(value)
            return value

        return stored


class NumbaOnCPU(Numba):
    """numba.njit(parallel=True)."""

    def set_up(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        work, numba = self.work(problem), import_module("numba")
        numba.set_num_threads(min(usable_threads(), numba.config.NUMBA_NUM_THREADS))
        prange, jit = numba.prange, numba.njit(fastmath=True)
        sums, stores, kind = work.sums, problem.output_dtype, work.sums.type
        stored = self.stored(jit, problem, kind, np.rint)
        weights, mixing = work.weights.astype(kind), np.array(work.mixing, kind)
        directions, outputs, planes = weights.shape[:3]
        height, width, out_channels = problem.output_shape
        # A line holds what is computed of a row; every `stride`-th of its samples is stored, `copies` times.
        step = problem.in_channels if work.apart else 1
        rows, columns, channels = problem.height, problem.width * step, mixing.shape[1]
        stride, samples_out, copies = problem.stride, width * step, out_channels // (outputs * step)
        span, strips = (ROWS - 1) * stride + KERNEL_SIZE, -(-height // ROWS)

        @jit
        def fill(plane: Any, shares: Any, samples: Any) -> None:
            for x in range(columns):
                total = kind(0)
                for channel in range(channels):
                    total = kind(total + shares[channel] * kind(samples[x * channels + channel]))
                plane[x + step] = total

        @jit
        def add_taps(total: Any, k: Any, top: Any, middle: Any, bottom: Any) -> None:
            for x in range(columns):
                total[x] += (
                    k[0, 0] * top[x] + k[0, 1] * top[x + step] + k[0, 2] * top[x + 2 * step]
                    + k[1, 0] * middle[x] + k[1, 1] * middle[x + step] + k[1, 2] * middle[x + 2 * step]
                    + k[2, 0] * bottom[x] + k[2, 1] * bottom[x + step] + k[2, 2] * bottom[x + 2 * step]
                )  # fmt: skip

        @numba.njit(parallel=True, fastmath=True)
        def filtered(samples: Any, out: Any) -> None:
            for strip in prange(strips):
                first = strip * ROWS
                padded = np.zeros((planes, span, columns + 2 * step), sums)
                lines = np.empty((outputs, columns), stores)
                totals = np.empty((2, columns), sums)
                for row in range(span):
                    y = first * stride + row - HALO
                    if 0 <= y < rows:
                        for plane in range(planes):
                            fill(padded[plane, row], mixing[plane], samples[y])
                for y in range(first, min(first + ROWS, height)):
                    row = (y - first) * stride
                    for k in range(outputs):
                        totals[:] = 0
                        for direction in range(directions):
                            for plane in range(planes):
                                a, b, c = padded[plane, row], padded[plane, row + 1], padded[plane, row + 2]
                                add_taps(totals[direction], weights[direction, k, plane], a, b, c)
                        for x in range(columns):
                            lines[k, x] = stored(totals[0, x], totals[1, x])
                    for x in range(samples_out):
                        for copy in range(copies):
                            for k in range(outputs):
                                out[y, (x * copies + copy) * outputs + k] = lines[k, x * stride]

        out = np.empty(problem.output_shape, problem.output_dtype)
        flat_rows = image_host.reshape(rows, -1), out.reshape(height, -1)
        return Ready(lambda: filtered(*flat_rows), lambda: out, problem, tolerance=TOLERANCE)


class NumbaOnGPU(Numba):
    """numba.cuda: arrays of CuPy, on its stream."""

    distributions = ("numba-cuda", "numba")

    def unavailable_reason(self) -> str | None:
        reason = super().unavailable_reason()
        if reason is None and not import_module("numba.cuda").is_available():
            return "numba.cuda finds no GPU, or no compiler (pip install 'numba-cuda[cu13]')"
        return reason

    def set_up(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        cuda, cupy, work = import_module("numba.cuda"), import_module("cupy"), self.work(problem)
        jit = cuda.jit(device=True, fastmath=True)
        stored = self.stored(jit, problem, np.float32, import_module("numba.cuda.libdevice").rintf)
        weights, mixing = work.weights.astype(np.float32), np.array(work.mixing, np.float32)
        directions, outputs, planes = weights.shape[:3]
        rows, columns, channels = problem.input_shape
        height, width, out_channels = problem.output_shape
        stride, apart, mixed, responses = problem.stride, work.apart, mixing.shape[1], outputs * directions
        threads_across, zero = width * channels if apart else width, np.float32(0)

        @cuda.jit(fastmath=True)
        def filtered(image: Any, out: Any) -> None:
            all_weights, shares = cuda.const.array_like(weights), cuda.const.array_like(mixing)
            across, y = cuda.grid(2)
            if across >= threads_across or y >= height:
                return
            x, lane = (across // channels, across % channels) if apart else (across, 0)
            totals = cuda.local.array(responses, np.float32)
            for response in range(responses):
                totals[response] = zero
            for dy in range(KERNEL_SIZE):
                for dx in range(KERNEL_SIZE):
                    row, column = y * stride + dy - HALO, x * stride + dx - HALO
                    if 0 <= row < rows and 0 <= column < columns:
                        for plane in range(planes):
                            sample = zero
                            for channel in range(mixed):
                                if shares[plane, channel] != zero:
                                    sample += shares[plane, channel] * np.float32(image[row, column, lane + channel])
                            for k in range(outputs):
                                for direction in range(directions):
                                    weight = all_weights[direction, k, plane, dy, dx]
                                    totals[k * directions + direction] += weight * sample
            for k in range(outputs):
                sample = stored(totals[k * directions], totals[k * directions + directions - 1])
                if apart:
                    out[y, x, lane] = sample
                else:
                    for copy in range(k, out_channels, outputs):
                        out[y, x, copy] = sample

        image, out = cupy.asarray(image_host), cupy.empty(problem.output_shape, problem.output_dtype)
        on_gpu = [cuda.as_cuda_array(array) for array in (image, out)]
        grid = tuple(-(-extent // side) for extent, side in zip((threads_across, height), BLOCK, strict=True))
        launch = filtered[grid, BLOCK, cuda.external_stream(cupy.cuda.get_current_stream().ptr)]
        return Ready(lambda: launch(*on_gpu), lambda: on_host(out), problem, tolerance=TOLERANCE)


class Halide(ByHand):
    """Compiled when it is set up."""

    distributions, module = ("halide",), "halide"

    def set_up(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        hl, work = import_module("halide"), self.work(problem)
        kind = {"int16": hl.Int(16), "int32": hl.Int(32), "float32": hl.Float(32)}[work.sums.name]
        vector = VECTOR_BYTES // work.sums.itemsize
        channels, stride = problem.in_channels, problem.stride
        height, width, outputs = problem.output_shape
        step = channels if work.apart else 1
        c, x, y, rows, inner = (hl.Var(name) for name in ("c", "x", "y", "rows", "inner"))
        # A Halide buffer counts the last axis of NumPy's first: (sample of a row, row).
        source = hl.Buffer(image_host.reshape(problem.height, -1))
        bounds = [(0, problem.width * channels), (0, problem.height)]
        padded = hl.BoundaryConditions.constant_exterior(source, 0, bounds)

        def times(sample: Any, weight: float) -> Any:
            return hl.cast(kind, sample) * hl.cast(kind, work.sums.type(weight).item())

        def channel(index: int) -> Any:
            return hl.cast(kind, padded[x * channels + index, y])

        mixed = work.planes(
            hl.cast(kind, padded[x, y]),
            channel,
            lambda shares: reduce(add, [times(channel(index), share) for index, share in enumerate(shares)]),
        )
        plane = hl.Func("plane")
        plane[c, x, y] = hl.mux(c, mixed) if len(mixed) > 1 else mixed[0]

        def filter_by(kernel: Weights) -> Callable[[int], list[Any]]:
            return lambda index: [
                times(plane[index, x * stride + (dx - HALO) * step, y * stride + dy - HALO], kernel[dy, dx])
                for dy, dx in np.argwhere(kernel).tolist()
            ]

        def magnitude(one: Any, other: Any) -> Any:
            return hl.sqrt(hl.f32(one) * hl.f32(one) + hl.f32(other) * hl.f32(other))

        found = work.values(filter_by, magnitude)(list(range(len(mixed))))
        values = [_stored(hl, value, problem) for value in found]
        out = np.empty(problem.output_shape, problem.output_dtype)
        filtered = hl.Func("filtered")
        if work.apart:
            target, length = hl.Buffer(out.reshape(height, -1)), width * channels
            filtered[x, y] = values[0]
        else:
            target, length = hl.Buffer(out), width
            filtered[c, x, y] = hl.mux(c, values) if len(values) > 1 else values[0]
            filtered.bound(c, 0, outputs).unroll(c).reorder(c, x, y)
        if length >= vector:
            filtered.split(x, x, inner, vector, hl.TailStrategy.ShiftInwards).vectorize(inner)
            if not work.apart:
                filtered.reorder(c, inner, x, y)
        if height >= ROWS:
            filtered.split(y, rows, y, ROWS, hl.TailStrategy.ShiftInwards).parallel(rows)
            plane.compute_at(filtered, rows).reorder_storage(x, y, c).reorder(x, c, y)
            plane.bound(c, 0, len(mixed)).unroll(c)
            plane.vectorize(x, vector, hl.TailStrategy.RoundUp)
        pipeline = hl.Pipeline(filtered)
        pipeline.compile_jit(_target())
        return Ready(lambda: pipeline.realize(target), lambda: out, problem, tolerance=TOLERANCE)


def _stored(hl: Any, value: Any, problem: Problem) -> Any:
    """The value as a sample."""
    if problem.output_mode == "abs":
        value = hl.abs(value)
    if (most := _most(problem)) == 0:
        return hl.f32(value)
    if value.type().is_float():
        value = hl.cast(hl.Int(32), hl.round(value))
    value = hl.clamp(value, 0, min(most, 2 ** (value.type().bits() - 1) - 1))
    return hl.cast(hl.UInt(problem.output_dtype.itemsize * 8), value)


@cache
def _target() -> Any:
    """The machine's, as the system lets it be used."""
    hl = import_module("halide")
    there = {name for name, present in llvm.get_host_cpu_features().items() if present}
    features = [word for name, word in FEATURES.items() if name in there]
    if there >= WIDE:
        features += ["avx512", "avx512_skylake"]
    words = "-".join(str(hl.get_jit_target_from_environment()).split("-")[:3])  # processor, bits, system
    return hl.Target("-".join([words, "jit", *features]))


class Triton(ByHand):
    """triton.jit."""

    distributions, module = ("triton",), "triton"
    needs = ("torch",)
    dtypes = (*Peer.dtypes, "float16")

    def set_up(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        work = self.work(problem)
        kept, planes = work.weights.shape[1:3]
        if kept not in CHANNEL_COUNTS:
            raise UnavailableError("it is written for one or three outputs")
        torch, triton = import_module("torch"), import_module("triton")
        stencils = import_module("edgeconv.bench.peers.triton_stencil")
        image = torch.from_numpy(image_host).to("cuda")
        out = torch.empty(problem.output_shape, dtype=getattr(torch, problem.output_dtype.name), device="cuda")
        weights, mixing = (
            torch.tensor(np.asarray(array, np.float32), device="cuda") for array in (work.weights, work.mixing)
        )
        constants = {
            "MAGNITUDE": problem.combine == "magnitude",
            "ABSOLUTE": problem.output_mode == "abs",
            "MOST": _most(problem),
        }
        height, width, outputs = problem.output_shape
        if work.apart:
            kernel, length = stencils.flat_rows, width * outputs
            arguments: tuple[Any, ...] = (image, weights, out, length, height)
            constants |= {"STEP": outputs}
        else:
            kernel, length = stencils.tiles, width
            arguments = (image, mixing, weights, out, problem.height, problem.width, height, width)
            constants |= {"IN": problem.in_channels, "OUT": outputs, "KEPT": kept, "PLANES": planes}
            constants |= {"MIXED": len(work.mixing[0]), "STRIDE": problem.stride}

        def grid(chosen: dict[str, int]) -> tuple[int, int]:
            return triton.cdiv(length, chosen["ACROSS"]), triton.cdiv(height, chosen["DOWN"])

        def run() -> None:
            kernel[grid](*arguments, **constants)

        return Ready(run, lambda: on_host(out), problem, tolerance=TOLERANCE)
