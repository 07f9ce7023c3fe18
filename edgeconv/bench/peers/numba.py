"""Loops in Numba, as one who knows it writes them: whole numbers where they fit, channels apart as flat rows.

CPU   strips of rows in parallel. A strip is first copied into padded planes of the type that sums are computed in
      (base.Work: int16 for uint8 with small whole weights), then each row of a plane is one expression of nine taps
GPU   a thread for each pixel, or for each sample where channels stand apart: it reads a sample once for all outputs

Source: Numba's manual, "Automatic parallelization with @jit", "Writing CUDA kernels".
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from importlib import import_module
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.peers.base import TOLERANCE, Peer, require_zero_border, work_of
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem
from edgeconv.errors import UnavailableError
from edgeconv.hardware.threads import usable_threads

ROWS = 32
"""Output rows of a strip: its planes stay in the cache of a core."""
BLOCK = (64, 4)
"""Threads of a block, along x and y."""


class Loops(Peer):
    """What both devices share."""

    distributions: tuple[str, ...] = ("numba",)
    module = "numba"

    def refuse(self, problem: Problem) -> None:
        """Raise UnavailableError for what these loops leave out."""
        require_zero_border(problem)
        if problem.dtype == np.float16:
            raise UnavailableError("Numba has no float16 arithmetic")

    def stored(self, jit: Any, problem: Problem, kind: Any, rint: Any) -> Any:
        """`stored(first, other)`: the sample of one response, or of two (else `other` is not used)."""
        is_magnitude, is_absolute = problem.combine == "magnitude", problem.output_mode == "abs"
        joined = np.float32 if is_magnitude else kind
        is_whole, is_rounded = problem.output_dtype.kind == "u", joined is np.float32
        most = joined(np.iinfo(problem.output_dtype).max if is_whole else 0)

        @jit
        def stored(first: Any, other: Any) -> Any:
            value = joined(first)
            if is_magnitude:
                value = np.float32(sqrt(value * value + np.float32(other) * np.float32(other)))
            if is_absolute:
                value = joined(abs(value))
            if is_whole:
                value = min(max(value, joined(0)), most)
                if is_rounded:
                    value = rint(value)
            return value

        return stored


class OnCPU(Loops):
    """numba.njit(parallel=True)."""

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        self.refuse(problem)
        if problem.combine == "maximum":
            raise UnavailableError("it is written for one direction, or two")
        numba = import_module("numba")
        numba.set_num_threads(min(usable_threads(), numba.config.NUMBA_NUM_THREADS))
        prange, jit = numba.prange, numba.njit(fastmath=True)
        work = work_of(problem)
        kind = work.sums.type
        stored = self.stored(jit, problem, kind, np.rint)
        weights, mixing = work.weights.astype(kind), work.mixing.astype(kind)
        directions, outputs, planes = weights.shape[:3]
        step = problem.in_channels if work.apart else 1
        rows, columns, channels = problem.height, problem.width * step, mixing.shape[1]
        height, width, out_channels = problem.output_shape
        stride, padding = problem.stride, problem.padding
        line_length = (problem.width + 2 * padding - KERNEL_SIZE + 1) * step
        # A line holds what is computed of a row; of it every `pitch`-th run of `run_length` samples is stored.
        runs, run_length = (width, step) if stride > 1 else (1, width * step)
        pitch, copies = stride * step, out_channels // (outputs * step)
        span = (ROWS - 1) * stride + KERNEL_SIZE
        strips = -(-height // ROWS)
        sums, stores = work.sums, problem.output_dtype

        @jit
        def fill(plane: Any, shares: Any, samples: Any) -> None:
            for x in range(columns):
                total = kind(0)
                for channel in range(channels):
                    total = kind(total + shares[channel] * kind(samples[x * channels + channel]))
                plane[x + padding * step] = total

        @jit
        def add(total: Any, k: Any, top: Any, middle: Any, bottom: Any) -> None:
            for x in range(line_length):
                total[x] += (
                    k[0, 0] * top[x] + k[0, 1] * top[x + step] + k[0, 2] * top[x + 2 * step]
                    + k[1, 0] * middle[x] + k[1, 1] * middle[x + step] + k[1, 2] * middle[x + 2 * step]
                    + k[2, 0] * bottom[x] + k[2, 1] * bottom[x + step] + k[2, 2] * bottom[x + 2 * step]
                )  # fmt: skip

        @numba.njit(parallel=True, fastmath=True)
        def filtered(samples: Any, out: Any) -> None:
            for strip in prange(strips):
                first = strip * ROWS
                padded = np.zeros((planes, span, columns + 2 * padding * step), sums)
                lines = np.empty((outputs, line_length), stores)
                totals = np.empty((2, line_length), sums)
                for row in range(span):
                    y = first * stride + row - padding
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
                                add(totals[direction], weights[direction, k, plane], a, b, c)
                        for x in range(line_length):
                            lines[k, x] = stored(totals[0, x], totals[1, x])
                    for run in range(runs):
                        for x in range(run_length):
                            for copy in range(copies):
                                for k in range(outputs):
                                    place = ((run * run_length + x) * copies + copy) * outputs + k
                                    out[y, place] = lines[k, run * pitch + x]

        out = np.empty(problem.output_shape, problem.output_dtype)
        flat_rows = image_host.reshape(rows, -1), out.reshape(height, -1)
        return Ready(lambda: filtered(*flat_rows), lambda: out, problem, tolerance=TOLERANCE)


class OnGPU(Loops):
    """numba.cuda: arrays of CuPy, on its stream."""

    distributions = ("numba-cuda", "numba")
    needs = ("cupy",)

    def unavailable_reason(self) -> str | None:
        reason = super().unavailable_reason()
        if reason is None and not import_module("numba.cuda").is_available():
            return "numba.cuda finds no GPU, or no compiler (pip install 'numba-cuda[cu13]')"
        return reason

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        self.refuse(problem)
        cuda, cupy = import_module("numba.cuda"), import_module("cupy")
        jit = cuda.jit(device=True, fastmath=True)
        work = work_of(problem)
        stored = self.stored(jit, problem, np.float32, import_module("numba.cuda.libdevice").rintf)
        weights, mixing = work.weights.astype(np.float32), work.mixing
        directions, outputs, planes = weights.shape[:3]
        rows, columns, channels = problem.input_shape
        height, width, out_channels = problem.output_shape
        stride, padding, apart = problem.stride, problem.padding, work.apart
        mixed, responses = mixing.shape[1], outputs * directions
        threads_across = width * channels if apart else width
        is_maximum, size, zero = problem.combine == "maximum", KERNEL_SIZE, np.float32(0)

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
            for dy in range(size):
                for dx in range(size):
                    row, column = y * stride + dy - padding, x * stride + dx - padding
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
                value = totals[k * directions]
                other = totals[k * directions + directions - 1]
                if is_maximum:
                    for direction in range(1, directions):
                        value = max(value, totals[k * directions + direction])
                sample = stored(value, other)
                if apart:
                    out[y, x, lane] = sample
                else:
                    for copy in range(k, out_channels, outputs):
                        out[y, x, copy] = sample

        image, out = cupy.asarray(image_host), cupy.empty(problem.output_shape, problem.output_dtype)
        on_gpu = [cuda.as_cuda_array(array) for array in (image, out)]
        grid = tuple(-(-extent // side) for extent, side in zip((threads_across, height), BLOCK, strict=True))
        launch = filtered[grid, BLOCK, cuda.external_stream(cupy.cuda.get_current_stream().ptr)]
        return Ready(lambda: launch(*on_gpu), lambda: out.get(), problem, tolerance=TOLERANCE)
