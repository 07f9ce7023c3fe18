"""Halide on the CPU, HWC in and out: the sum over taps, by a schedule for pictures of interleaved channels.

`halide` is scheduled by hand, rows in parallel and pixels in vectors; `halide-auto` by its Mullapudi2016 scheduler.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.peers.base import Peer
from edgeconv.bench.peers.convolutions import TOLERANCE
from edgeconv.core.choices import DeviceName
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem
from edgeconv.errors import UnavailableError
from edgeconv.hardware.threads import usable_threads

FEATURES = {"sse4.1": "sse41", "avx": "avx", "avx2": "avx2", "fma": "fma", "f16c": "f16c"}
"""LLVM's names, and Halide's. Its own look at the processor takes AVX-512 where a virtual machine hides it."""
WIDE = {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"}
VECTOR = 16
"""Pixels of a vector: two registers of AVX2, one of AVX-512."""
ROWS_PER_TASK = 16
AUTOSCHEDULER = "Mullapudi2016"


class ByHand(Peer):
    """Scheduled by hand."""

    distributions = ("halide",)
    module = "halide"

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        if problem.border != "zero":
            raise UnavailableError("it is written with a zero border")
        if problem.dtype == np.float16:
            raise UnavailableError("it is written for integers and float32")
        hl = import_module("halide")
        source = hl.Buffer(np.ascontiguousarray(image_host))  # NumPy's (row, column, channel) is its (channel, x, y)
        total = self._sum(hl, source, problem)
        height, width, outputs = problem.output_shape
        out = np.empty(problem.output_shape, problem.output_dtype)
        target = hl.Buffer(out)
        pipeline = hl.Pipeline(total)
        self.schedule(hl, pipeline, total, (outputs, width, height))
        pipeline.compile_jit(_target(hl))
        return Ready(lambda: pipeline.realize(target), lambda: out, problem, tolerance=TOLERANCE)

    def _sum(self, hl: Any, source: Any, problem: Problem) -> Any:
        c, x, y = hl.Var("c"), hl.Var("x"), hl.Var("y")
        bounds = [(0, problem.in_channels), (0, problem.width), (0, problem.height)]
        padded = hl.Func("padded")
        padded[c, x, y] = hl.cast(hl.Float(32), hl.BoundaryConditions.constant_exterior(source, 0, bounds)[c, x, y])
        weights = problem.dense_weights()

        def response(direction: int, k: int) -> Any:
            total = hl.f32(0)
            for channel in range(problem.in_channels):
                for dy in range(KERNEL_SIZE):
                    for dx in range(KERNEL_SIZE):
                        weight = float(weights[direction, k, channel, dy, dx])
                        if weight:
                            place = (
                                x * problem.stride + dx - problem.padding,
                                y * problem.stride + dy - problem.padding,
                            )
                            total = total + padded[channel, place[0], place[1]] * hl.f32(weight)
            return total

        def joined(k: int) -> Any:
            found = [response(direction, k) for direction in range(problem.directions)]
            if problem.combine == "magnitude":
                return hl.sqrt(found[0] * found[0] + found[1] * found[1])
            value = found[0]
            for other in found[1:]:
                value = hl.max(value, other)
            return value

        value = joined(0)
        for k in range(1, problem.output_channels):
            value = hl.select(c == k, joined(k), value)
        if problem.output_mode == "abs":
            value = hl.abs(value)
        if problem.output_dtype.kind == "u":
            most = float(np.iinfo(problem.output_dtype).max)
            bits = problem.output_dtype.itemsize * 8
            value = hl.cast(hl.UInt(bits), hl.clamp(hl.round(value), hl.f32(0), hl.f32(most)))
        filtered = hl.Func("filtered")
        filtered[c, x, y] = value
        self.variables, self.padded = (c, x, y), padded
        return filtered

    def schedule(self, hl: Any, pipeline: Any, total: Any, extents: tuple[int, int, int]) -> None:
        """Strips of rows in parallel, a strip's input as planes; pixels in vectors, their channels unrolled."""
        c, x, y = self.variables
        inner, outer, rows = hl.Var("inner"), hl.Var("outer"), hl.Var("rows")
        total.bound(c, 0, extents[0]).unroll(c).reorder(c, x, y)
        if extents[1] >= VECTOR:
            total.split(x, outer, inner, VECTOR, hl.TailStrategy.ShiftInwards).vectorize(inner)
            total.reorder(c, inner, outer, y)
        if extents[2] >= ROWS_PER_TASK:
            total.split(y, rows, y, ROWS_PER_TASK, hl.TailStrategy.ShiftInwards).parallel(rows)
            self.padded.compute_at(total, rows).reorder_storage(x, y, c).reorder(x, c, y)
            self.padded.vectorize(x, VECTOR, hl.TailStrategy.RoundUp)


class Automatic(ByHand):
    """Scheduled by a library."""

    def __init__(self, device: DeviceName) -> None:
        super().__init__(device)
        self._loaded = False

    def schedule(self, hl: Any, pipeline: Any, total: Any, extents: tuple[int, int, int]) -> None:
        if not self._loaded:
            folder = Path(hl.__file__).parent
            (plugin,) = folder.rglob(f"libautoschedule_{AUTOSCHEDULER.lower()}.*")
            hl.load_plugin(str(plugin))
            self._loaded = True
        for variable, extent in zip(self.variables, extents, strict=True):
            total.set_estimate(variable, 0, extent)
        cores = {"parallelism": str(usable_threads())}
        pipeline.apply_autoscheduler(_target(hl), hl.AutoschedulerParams(AUTOSCHEDULER, cores))


def _target(hl: Any) -> Any:
    """The machine's, as the system lets it be used."""
    there = {name for name, present in llvm.get_host_cpu_features().items() if present}
    features = [word for name, word in FEATURES.items() if name in there]
    if there >= WIDE:
        features += ["avx512", "avx512_skylake"]
    plain = hl.get_jit_target_from_environment()
    words = "-".join(str(plain).split("-")[:3])  # processor, bits, system
    return hl.Target("-".join([words, "jit", *features]))
