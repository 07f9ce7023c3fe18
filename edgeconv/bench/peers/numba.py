"""Loops in Numba, as one who knows it writes them.

CPU   rows in parallel; of a row each tap is added to all pixels before the next, which LLVM makes vectors of. The
      picture is first taken apart into padded planes of float32, rows in parallel too.
GPU   one thread per output pixel; a tap outside of the picture adds nothing
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from importlib import import_module
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.peers.base import Peer
from edgeconv.bench.peers.convolutions import TOLERANCE
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem
from edgeconv.errors import UnavailableError
from edgeconv.hardware.threads import usable_threads

BLOCK = (32, 8)
"""Threads of a block, along x and y."""


class Loops(Peer):
    """What both devices share."""

    distributions: tuple[str, ...] = ("numba",)
    module = "numba"

    def check(self, problem: Problem) -> None:
        """Raise UnavailableError for what these loops leave out."""
        if problem.border != "zero":
            raise UnavailableError("its loops take 0 for what is outside of the picture, which is a zero border")
        if problem.dtype == np.float16:
            raise UnavailableError("Numba has no float16 arithmetic")

    def joined(self, jit: Any, problem: Problem, rint: Any) -> Any:
        """`joined(first, other)`: the stored value of two directions (the second unused where there is none)."""
        is_magnitude, is_absolute = problem.combine == "magnitude", problem.output_mode == "abs"
        whole = problem.output_dtype.kind == "u"
        zero = np.float32(0)
        most = np.float32(np.iinfo(problem.output_dtype).max if whole else 0)

        @jit
        def joined(first: Any, other: Any) -> Any:
            value = np.float32(sqrt(first * first + other * other)) if is_magnitude else first
            if is_absolute:
                value = abs(value)
            if whole:
                value = rint(min(max(value, zero), most))
            return value

        return joined


class OnCPU(Loops):
    """numba.njit(parallel=True)."""

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        self.check(problem)
        if problem.combine == "maximum":
            raise UnavailableError("it is written for one direction, or two")
        numba = import_module("numba")
        numba.set_num_threads(min(usable_threads(), numba.config.NUMBA_NUM_THREADS))
        prange = numba.prange
        joined = self.joined(numba.njit(fastmath=True), problem, np.rint)
        rows, columns, channels = problem.input_shape
        height, width, outputs = problem.output_shape
        stride, padding, directions = problem.stride, problem.padding, problem.directions
        weights = np.ascontiguousarray(problem.dense_weights(), np.float32)
        image, out = image_host.copy(), np.empty(problem.output_shape, problem.output_dtype)
        planes = np.zeros((channels, rows + 2 * padding, columns + 2 * padding), np.float32)
        size = KERNEL_SIZE

        @numba.njit(parallel=True, fastmath=True)
        def filtered(image: Any, planes: Any, out: Any) -> None:
            for y in prange(rows):
                for c in range(channels):
                    target = planes[c, y + padding, padding : padding + columns]
                    for x in range(columns):
                        target[x] = image[y, x, c]
            for y in prange(height):
                totals = np.zeros((2, width), np.float32)
                for k in range(outputs):
                    for direction in range(directions):
                        total = totals[direction]
                        total[:] = 0
                        for c in range(channels):
                            for dy in range(size):
                                for dx in range(size):
                                    weight = weights[direction, k, c, dy, dx]
                                    if weight != 0:
                                        source = planes[c, y * stride + dy, dx:]
                                        for x in range(width):
                                            total[x] += weight * source[x * stride]
                    for x in range(width):
                        out[y, x, k] = joined(totals[0, x], totals[1, x])

        return Ready(lambda: filtered(image, planes, out), lambda: out, problem, tolerance=TOLERANCE)


class OnGPU(Loops):
    """numba.cuda: arrays of CuPy, on its stream."""

    distributions = ("numba-cuda", "numba")

    def unavailable_reason(self) -> str | None:
        reason = super().unavailable_reason()
        if reason is None and not import_module("numba.cuda").is_available():
            return "numba.cuda finds no GPU, or no compiler (pip install 'numba-cuda[cu13]')"
        return reason

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        self.check(problem)
        cuda, cupy = import_module("numba.cuda"), import_module("cupy")
        jit = cuda.jit(device=True, fastmath=True)
        joined = self.joined(jit, problem, import_module("numba.cuda.libdevice").rintf)
        rows, columns, channels = problem.input_shape
        height, width, outputs = problem.output_shape
        stride, padding, directions = problem.stride, problem.padding, problem.directions
        weights = np.ascontiguousarray(problem.dense_weights(), np.float32)
        apart, is_maximum = problem.groups > 1, problem.combine == "maximum"
        size, zero = KERNEL_SIZE, np.float32(0)

        @jit
        def response(image: Any, weights: Any, direction: int, k: int, top: int, left: int) -> Any:
            total = zero
            first, last = (k, k + 1) if apart else (0, channels)
            for dy in range(size):
                for dx in range(size):
                    if 0 <= top + dy < rows and 0 <= left + dx < columns:
                        for c in range(first, last):
                            total += weights[direction, k, c, dy, dx] * np.float32(image[top + dy, left + dx, c])
            return total

        @cuda.jit(fastmath=True)
        def filtered(image: Any, out: Any) -> None:
            constant = cuda.const.array_like(weights)
            x, y = cuda.grid(2)
            if x >= width or y >= height:
                return
            top, left = y * stride - padding, x * stride - padding
            for k in range(outputs):
                value = response(image, constant, 0, k, top, left)
                other = value
                for direction in range(1, directions):
                    other = response(image, constant, direction, k, top, left)
                    if is_maximum:
                        value = max(value, other)
                out[y, x, k] = joined(value, other)

        image = cupy.asarray(image_host)
        out = cupy.empty(problem.output_shape, problem.output_dtype)
        on_gpu = [cuda.as_cuda_array(array) for array in (image, out)]
        grid = tuple(-(-extent // side) for extent, side in zip((width, height), BLOCK, strict=True))
        queue = cuda.external_stream(cupy.cuda.get_current_stream().ptr)
        launch = filtered[grid, BLOCK, queue]
        return Ready(lambda: launch(*on_gpu), lambda: out.get(), problem, tolerance=TOLERANCE)
