"""Halide on the CPU, scheduled by hand as one who knows it would: strips of rows in parallel, samples in vectors.

    channels apart, stride 1      a row of width · channels samples, taps `channels` apart
    one plane of all channels     the sum, or luma, once for each strip; then one channel
    everything else               a plane for each channel and strip, outputs unrolled

Sums are int16 or int32 where they fit (base.Work). What lies outside of the picture is 0, from a padded strip.

Source: Halide's tutorial, lessons 5 (schedules) and 8 (stages), and its apps/blur.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.peers.base import TOLERANCE, Peer, require_zero_border, work_of
from edgeconv.core.problem import Problem
from edgeconv.errors import UnavailableError

FEATURES = {"sse4.1": "sse41", "avx": "avx", "avx2": "avx2", "fma": "fma", "f16c": "f16c"}
"""LLVM's names, and Halide's. Its own look at the processor takes AVX-512 where a virtual machine hides it."""
WIDE = {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"}
VECTOR_BYTES = 64
"""Of the sums of a vector: two registers of AVX2, one of AVX-512."""
ROWS_PER_TASK = 32


class Halide(Peer):
    """Compiled when it is set up."""

    distributions = ("halide",)
    module = "halide"

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        require_zero_border(problem)
        if problem.dtype == np.float16:
            raise UnavailableError("it is written for integers and float32")
        hl = import_module("halide")
        work = work_of(problem)
        kind = {"int16": hl.Int(16), "int32": hl.Int(32), "float32": hl.Float(32)}[work.sums.name]
        number = work.sums.type
        vector = VECTOR_BYTES // work.sums.itemsize
        channels, stride, padding = problem.in_channels, problem.stride, problem.padding
        height, width, outputs = problem.output_shape
        flat = work.apart and stride == 1
        step = channels if work.apart else 1
        c, x, y, rows, inner = (hl.Var(name) for name in ("c", "x", "y", "rows", "inner"))
        # A Halide buffer counts the last axis of NumPy's first: (sample of a row, row).
        source = hl.Buffer(image_host.reshape(problem.height, -1))
        bounds = [(0, problem.width * channels), (0, problem.height)]
        padded = hl.BoundaryConditions.constant_exterior(source, 0, bounds)
        plane = hl.Func("plane")
        if work.apart:
            plane[c, x, y] = hl.cast(kind, padded[x, y])
        else:
            mixed = []
            for shares in work.mixing:
                terms = [
                    hl.cast(kind, padded[x * channels + channel, y]) * hl.cast(kind, number(share).item())
                    for channel, share in enumerate(shares)
                    if share
                ]
                mixed.append(_sum(terms))
            plane[c, x, y] = hl.mux(c, mixed) if len(mixed) > 1 else mixed[0]

        def joined(k: int, column: Any, row: Any) -> Any:
            found = []
            for kernels in work.weights[:, k]:
                terms = [
                    plane[channel, column + (dx - padding) * step, row + dy - padding]
                    * hl.cast(kind, number(kernels[channel, dy, dx]).item())
                    for channel, dy, dx in np.argwhere(kernels).tolist()
                ]
                found.append(_sum(terms) if terms else hl.cast(kind, 0))
            if problem.combine == "magnitude":
                across, down = (hl.f32(value) for value in found)
                return hl.sqrt(across * across + down * down)
            value = found[0]
            for other in found[1:]:
                value = hl.max(value, other)
            return value

        out = np.empty(problem.output_shape, problem.output_dtype)
        filtered = hl.Func("filtered")
        if flat:
            target, length = hl.Buffer(out.reshape(height, -1)), width * channels
            filtered[x, y] = self.stored(hl, joined(0, x, y), problem)
        else:
            target, length = hl.Buffer(out), width
            column = (x * channels + c) * stride - c * (stride - 1) if work.apart else x * stride
            values = [joined(k, column, y * stride) for k in range(work.weights.shape[1])]
            filtered[c, x, y] = self.stored(hl, hl.mux(c, values) if len(values) > 1 else values[0], problem)
            filtered.bound(c, 0, outputs).unroll(c).reorder(c, x, y)
        if length >= vector:
            filtered.split(x, x, inner, vector, hl.TailStrategy.ShiftInwards).vectorize(inner)
            if not flat:
                filtered.reorder(c, inner, x, y)
        if height >= ROWS_PER_TASK:
            filtered.split(y, rows, y, ROWS_PER_TASK, hl.TailStrategy.ShiftInwards).parallel(rows)
            plane.compute_at(filtered, rows).reorder_storage(x, y, c).reorder(x, c, y)
            plane.bound(c, 0, work.weights.shape[2]).unroll(c)
            plane.vectorize(x, vector, hl.TailStrategy.RoundUp)
        pipeline = hl.Pipeline(filtered)
        pipeline.compile_jit(_target())
        return Ready(lambda: pipeline.realize(target), lambda: out, problem, tolerance=TOLERANCE)

    @staticmethod
    def stored(hl: Any, value: Any, problem: Problem) -> Any:
        """The value as a sample."""
        if problem.output_mode == "abs":
            value = hl.abs(value)
        if problem.output_dtype.kind != "u":
            return value
        bits, most = problem.output_dtype.itemsize * 8, int(np.iinfo(problem.output_dtype).max)
        if value.type().is_float():
            value = hl.cast(hl.Int(32), hl.round(value))
        value = hl.clamp(value, 0, min(most, 2 ** (value.type().bits() - 1) - 1))
        return hl.cast(hl.UInt(bits), value)


def _sum(terms: list[Any]) -> Any:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


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
