"""Kernels as one writes them who knows Numba: whole numbers where they fit, no more than `Work`.

    CPU    strips of rows in parallel. A strip is first copied into padded planes of the type that sums are computed in
           (int16 for uint8 with small whole weights); a row of a plane is one expression of nine taps
    GPU    a thread for each pixel or flat sample, which reads a sample once for all outputs

Source: Numba's manual, "Automatic parallelization with @jit", "Writing CUDA kernels".
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from importlib import import_module
from math import sqrt
from typing import Any

import numpy as np

from edgeconv.bench.candidates import Bench, Ready
from edgeconv.bench.peers.base import HALO, TOLERANCE, on_host
from edgeconv.bench.peers.kernels import ROWS, by_hand, most_of, work_by_hand
from edgeconv.core.choices import DeviceName
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem
from edgeconv.hardware.threads import usable_threads

BLOCK = (64, 4)
"""Threads of a block, along x and y."""


def _stored(jit: Any, problem: Problem, kind: Any, rint: Any) -> Any:
    """`stored(first, other)`: the sample of one response, or of two (else `other` is not used)."""
    is_magnitude, is_absolute = problem.combine == "magnitude", problem.output_mode == "abs"
    joined = np.float32 if is_magnitude else kind
    most, is_rounded = joined(most_of(problem)), joined is np.float32

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


def on_cpu(problem: Problem, bench: Bench) -> Ready:
    """numba.njit(parallel=True)."""
    work, numba = work_by_hand(problem), import_module("numba")
    numba.set_num_threads(min(usable_threads(), numba.config.NUMBA_NUM_THREADS))
    prange, jit = numba.prange, numba.njit(fastmath=True)
    sums, stores, kind = work.sums, problem.output_dtype, work.sums.type
    stored = _stored(jit, problem, kind, np.rint)
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
    flat_rows = bench.image_host.reshape(rows, -1), out.reshape(height, -1)
    return Ready(lambda: filtered(*flat_rows), lambda: out, problem, tolerance=TOLERANCE)


def on_gpu(problem: Problem, bench: Bench) -> Ready:
    """numba.cuda: arrays of CuPy, on its stream."""
    cuda, cupy, work = import_module("numba.cuda"), import_module("cupy"), work_by_hand(problem)
    jit = cuda.jit(device=True, fastmath=True)
    stored = _stored(jit, problem, np.float32, import_module("numba.cuda.libdevice").rintf)
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

    image, out = cupy.asarray(bench.image_host), cupy.empty(problem.output_shape, problem.output_dtype)
    on_gpu = [cuda.as_cuda_array(array) for array in (image, out)]
    grid = tuple(-(-extent // side) for extent, side in zip((threads_across, height), BLOCK, strict=True))
    launch = filtered[grid, BLOCK, cuda.external_stream(cupy.cuda.get_current_stream().ptr)]
    return Ready(lambda: launch(*on_gpu), lambda: on_host(out), problem, tolerance=TOLERANCE)


def _missing(device: DeviceName) -> str | None:
    is_here = import_module("numba.cuda").is_available()
    return None if is_here else "numba.cuda finds no GPU, or no compiler (pip install 'numba-cuda[cu13]')"


ON_CPU = by_hand(on_cpu, "numba", ("numba",))
ON_GPU = by_hand(on_gpu, "numba", ("numba-cuda", "numba"), missing=_missing)
