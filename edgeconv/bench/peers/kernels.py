"""Kernels as one writes them who knows Halide or Triton: integers where they fit, no more than `Work`.

What stands apart is taken as flat rows of width · channels samples, taps `channels` samples apart; what lies outside of
the picture is 0.

    halide   strips of rows in parallel, samples in vectors; what a strip needs of a plane is computed once for it, and
             outputs are unrolled
    triton   flat rows, or tiles of pixels (triton_stencil.py), on arrays of PyTorch

Source: Halide's tutorial, lessons 5 (schedules) and 8 (stages), and its apps/blur; Triton's tutorials and
`triton.autotune` of its reference.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial, reduce
from importlib import import_module
from operator import add
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from edgeconv.bench.candidates import Bench, Ready
from edgeconv.bench.peers.base import DTYPES, HALO, TOLERANCE, Library, Work, on_host, work_of
from edgeconv.core.filters import CHANNEL_COUNTS, Weights
from edgeconv.core.problem import Problem
from edgeconv.errors import UnavailableError

ROWS = 32
"""Output rows of a strip: its planes stay in the cache of a core."""
FEATURES = {"sse4.1": "sse41", "avx": "avx", "avx2": "avx2", "fma": "fma", "f16c": "f16c"}
"""LLVM's names, and Halide's. Its own look at the processor takes AVX-512 where a virtual machine hides it."""
WIDE = {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"}
VECTOR_BYTES = 64
"""Of the sums of a vector: two registers of AVX2, one of AVX-512."""


by_hand = partial(Library, borders=("zero",))
"""A library by whose means a person writes it."""


def work_by_hand(problem: Problem) -> Work:
    """`work_of`; raises UnavailableError for flat rows with a stride too."""
    work = work_of(problem)
    if work.apart and problem.stride > 1:
        raise UnavailableError("it is written for channels apart with stride 1")
    return work


def most_of(problem: Problem) -> int:
    """The greatest sample of an integer output, 0 of a float one."""
    return int(np.iinfo(problem.output_dtype).max) if problem.output_dtype.kind == "u" else 0


def halide(problem: Problem, bench: Bench) -> Ready:
    """Compiled when it is set up."""
    hl, work = import_module("halide"), work_by_hand(problem)
    kind = {"int16": hl.Int(16), "int32": hl.Int(32), "float32": hl.Float(32)}[work.sums.name]
    vector = VECTOR_BYTES // work.sums.itemsize
    channels, stride = problem.in_channels, problem.stride
    height, width, outputs = problem.output_shape
    step = channels if work.apart else 1
    c, x, y, rows, inner = (hl.Var(name) for name in ("c", "x", "y", "rows", "inner"))
    # A Halide buffer counts the last axis of NumPy's first: (sample of a row, row).
    source = hl.Buffer(bench.image_host.reshape(problem.height, -1))
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
    if (most := most_of(problem)) == 0:
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


def triton(problem: Problem, bench: Bench) -> Ready:
    """triton.jit."""
    work = work_by_hand(problem)
    kept, planes = work.weights.shape[1:3]
    if kept not in CHANNEL_COUNTS:
        raise UnavailableError("it is written for one or three outputs")
    torch, cdiv = import_module("torch"), import_module("triton").cdiv
    stencils = import_module("edgeconv.bench.peers.triton_stencil")
    image = torch.from_numpy(bench.image_host).to("cuda")
    out = torch.empty(problem.output_shape, dtype=getattr(torch, problem.output_dtype.name), device="cuda")
    weights, mixing = (
        torch.tensor(np.asarray(array, np.float32), device="cuda") for array in (work.weights, work.mixing)
    )
    constants = {
        "MAGNITUDE": problem.combine == "magnitude",
        "ABSOLUTE": problem.output_mode == "abs",
        "MOST": most_of(problem),
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
        return cdiv(length, chosen["ACROSS"]), cdiv(height, chosen["DOWN"])

    def run() -> None:
        kernel[grid](*arguments, **constants)

    return Ready(run, lambda: on_host(out), problem, tolerance=TOLERANCE)


HALIDE = by_hand(halide, "halide", ("halide",))
TRITON = by_hand(triton, "triton", ("triton",), needs=("torch",), dtypes=(*DTYPES, "float16"))
