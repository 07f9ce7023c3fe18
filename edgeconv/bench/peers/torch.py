"""PyTorch: conv2d in both layouts and in half precision, its own im2col, and shifted multiply-adds that it compiles.

    torch           HWC in memory, read as NCHW with channels last; float32, TF32 off; float64 pictures in float64
    torch-nchw      CHW in memory: the picture and the result are planes, which no picture file holds
    torch-half      channels last, float16 arithmetic
    torch-unfold    unfold and matmul: explicit columns
    torch-compile   base.shifted_sums, fused into one kernel, written into an array that is there; HWC in and out

Integer pictures are converted, filtered, rounded and stored, all of it timed. cuDNN may try its algorithms at the
first run (`cudnn.benchmark`), which is not timed. Large arrays are asked for in huge pages, as those of NumPy are:
without, each new result pays for pages of 4 KiB.

Source: PyTorch's tutorial on channels last, its notes on CUDA semantics (TF32) and on torch.compile.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any, get_args

import numpy as np

from edgeconv.bench.candidates import Bench, Ready
from edgeconv.bench.peers.base import DTYPES, HALO, TOLERANCE, Library, grouped, kept, on_host, shifted_sums, work_of
from edgeconv.core.choices import Border, DeviceName
from edgeconv.core.filters import Combine
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem
from edgeconv.hardware.threads import usable_threads

PAD_MODES: dict[Border, str] = {"zero": "constant", "replicate": "replicate", "reflect101": "reflect"}
"""It has no border that repeats the edge pixel in a reflection."""
HALF_TOLERANCE = 5e-3
"""Relative: weights and results rounded to half, 2⁻¹¹ each, summed over 27 products."""
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # read when torch is imported


def _convolve(functional: Any, image: Any, kernels: Any, problem: Problem) -> Any:
    """(1, channels, height, width) to (1, responses, output height, output width)."""
    padding = HALO if problem.border == "zero" else 0
    if not padding:
        image = functional.pad(image, (HALO,) * 4, mode=PAD_MODES[problem.border])
    return functional.conv2d(image, kernels, stride=problem.stride, padding=padding, groups=problem.groups)


def _unfold(functional: Any, image: Any, kernels: Any, problem: Problem) -> Any:
    """Columns in memory, then a matrix product."""
    columns = functional.unfold(image, KERNEL_SIZE, padding=HALO, stride=problem.stride)
    return (kernels.flatten(1) @ columns).unflatten(2, (problem.output_height, problem.output_width))


def conv2d(
    problem: Problem,
    bench: Bench,
    layout: str = "channels_last",
    arithmetic: str | None = None,
    tolerance: float = TOLERANCE,
    differs: str | None = None,
    convolve: Callable[..., Any] = _convolve,
) -> Ready:
    """`convolve` in a memory format of PyTorch, and in a type; None: that of the weights."""
    torch, stored = _torch(problem)
    form, kind = getattr(torch, layout), getattr(torch, arithmetic or problem.weights.dtype.name)
    weights, split = grouped(problem)
    planes = torch.from_numpy(bench.image_host).to(bench.device.name).permute(2, 0, 1).unsqueeze(0)
    image = planes.contiguous(memory_format=form)
    kernels = torch.tensor(weights).to(bench.device.name, kind).contiguous(memory_format=form)

    def compute() -> Any:
        with torch.inference_mode():
            responses = convolve(torch.nn.functional, image.to(kind), kernels, problem)
            if problem.directions > 1:
                apart = responses.unflatten(1, split)
                joined = apart.square().sum(2).sqrt() if problem.combine == "magnitude" else apart.amax(2)
                responses = joined.flatten(1, 2)
            return stored(responses)

    run, result = kept(compute, lambda out: np.ascontiguousarray(on_host(out[0].permute(1, 2, 0))))
    return Ready(run, result, problem, tolerance=tolerance, differs=differs)


def shifts(problem: Problem, bench: Bench) -> Ready:
    """torch.compile: a store for each output channel, so that its taps are read once for all of them."""
    work, (torch, stored) = work_of(problem), _torch(problem)
    image, mode = torch.from_numpy(bench.image_host).to(bench.device.name), PAD_MODES[problem.border]
    kind, kind_out = (getattr(torch, dtype.name) for dtype in (problem.weights.dtype, problem.output_dtype))
    values = shifted_sums(problem, work, lambda one, other: (one * one + other * other).sqrt())
    out = torch.empty(problem.output_shape, dtype=kind_out, device=bench.device.name)

    def filtered(image: Any, out: Any) -> None:
        planes = image.to(kind).permute(2, 0, 1)
        padded = torch.nn.functional.pad(planes, (HALO,) * 4, mode=mode).permute(1, 2, 0)
        found = values(padded)
        if work.apart:
            out.copy_(stored(found[0]))
        else:
            for channel in range(out.shape[2]):
                out[:, :, channel] = stored(found[channel % len(found)])

    torch._dynamo.reset()
    compiled = torch.compile(filtered, dynamic=False, fullgraph=True)

    def run() -> None:
        with torch.inference_mode():
            compiled(image, out)

    return Ready(run, lambda: on_host(out), problem, tolerance=TOLERANCE)


def _torch(problem: Problem) -> tuple[Any, Callable[[Any], Any]]:
    """The module with its settings, and output.store in its words."""
    torch = import_module("torch")
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.set_num_threads(usable_threads())
    dtype, is_absolute = problem.output_dtype, problem.output_mode == "abs"
    kind, most = getattr(torch, dtype.name), int(np.iinfo(dtype).max) if dtype.kind == "u" else None

    def stored(values: Any) -> Any:
        values = values.abs() if is_absolute else values
        return (values if most is None else values.round().clamp(0, most)).to(kind)

    return torch, stored


def _missing(device: DeviceName) -> str | None:
    has_cuda = device == "cpu" or import_module("torch").cuda.is_available()
    return None if has_cuda else "this torch was built without CUDA"


_library = partial(Library, module="torch", distributions=("torch",), borders=tuple(PAD_MODES), missing=_missing)
PLANAR: Any = {"layout": "contiguous_format", "differs": "picture and result are planes (CHW), not HWC"}
TYPES, JOINED = (*DTYPES, "float16", "float64"), get_args(Combine)
HALF_WORDS = "half arithmetic: products and results are rounded to float16"
CHANNELS_LAST = _library(conv2d, dtypes=TYPES, combines=JOINED)
PLANES = replace(CHANNELS_LAST, set_up=partial(conv2d, **PLANAR))
HALF = _library(
    partial(conv2d, arithmetic="float16", tolerance=HALF_TOLERANCE, differs=HALF_WORDS),
    dtypes=("uint8", "float16", "float32"),
    combines=JOINED,
)
UNFOLD = replace(PLANES, set_up=partial(conv2d, convolve=_unfold, **PLANAR), borders=("zero",), has_groups=False)
COMPILED = _library(shifts, dtypes=TYPES)
