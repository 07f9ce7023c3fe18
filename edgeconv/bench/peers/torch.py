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
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.peers.base import HALO, TOLERANCE, Peer, grouped, kept, on_host, shifted_sums, work_of
from edgeconv.core.choices import Border
from edgeconv.core.filters import Combine
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem
from edgeconv.hardware.threads import usable_threads

PAD_MODES: dict[Border, str] = {"zero": "constant", "replicate": "replicate", "reflect101": "reflect"}
"""It has no border that repeats the edge pixel in a reflection."""
HALF_TOLERANCE = 5e-3
"""Relative: weights and results rounded to half, 2⁻¹¹ each, summed over 27 products."""
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # read when torch is imported


class ChannelsLast(Peer):
    """The picture stays HWC."""

    distributions, module = ("torch",), "torch"
    dtypes: tuple[str, ...] = (*Peer.dtypes, "float16", "float64")
    borders: tuple[Border, ...] = tuple(PAD_MODES)
    combines: tuple[Combine, ...] = ("single", "magnitude", "maximum")
    layout, tolerance = "channels_last", TOLERANCE
    arithmetic: str | None = None
    """Its type; None: that of the weights."""
    differs: str | None = None

    def unavailable_reason(self) -> str | None:
        reason = super().unavailable_reason()
        if reason is None and self.device == "cuda" and not import_module("torch").cuda.is_available():
            return "this torch was built without CUDA"
        return reason

    def set_up(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        torch, stored = _torch(problem)
        layout, kind = getattr(torch, self.layout), getattr(torch, self.arithmetic or problem.weights.dtype.name)
        weights, split = grouped(problem)
        planes = torch.from_numpy(image_host).to(self.device).permute(2, 0, 1).unsqueeze(0)
        image = planes.contiguous(memory_format=layout)
        kernels = torch.tensor(weights).to(self.device, kind).contiguous(memory_format=layout)

        def compute() -> Any:
            with torch.inference_mode():
                responses = self.convolve(torch.nn.functional, image.to(kind), kernels, problem)
                if problem.directions > 1:
                    apart = responses.unflatten(1, split)
                    joined = apart.square().sum(2).sqrt() if problem.combine == "magnitude" else apart.amax(2)
                    responses = joined.flatten(1, 2)
                return stored(responses)

        run, result = kept(compute, lambda out: np.ascontiguousarray(on_host(out[0].permute(1, 2, 0))))
        return Ready(run, result, problem, tolerance=self.tolerance, differs=self.differs)

    def convolve(self, functional: Any, image: Any, kernels: Any, problem: Problem) -> Any:
        """(1, channels, height, width) to (1, responses, output height, output width)."""
        padding = HALO if problem.border == "zero" else 0
        if not padding:
            image = functional.pad(image, (HALO,) * 4, mode=PAD_MODES[problem.border])
        return functional.conv2d(image, kernels, stride=problem.stride, padding=padding, groups=problem.groups)


class Planes(ChannelsLast):
    """The picture and the result are planes."""

    layout = "contiguous_format"
    differs = "picture and result are planes (CHW), not HWC"


class Half(ChannelsLast):
    """float16 arithmetic."""

    dtypes = ("uint8", "float16", "float32")
    arithmetic, tolerance = "float16", HALF_TOLERANCE
    differs = "half arithmetic: products and results are rounded to float16"


class Unfold(Planes):
    """Columns in memory, then a matrix product."""

    borders, has_groups = ("zero",), False

    def convolve(self, functional: Any, image: Any, kernels: Any, problem: Problem) -> Any:
        columns = functional.unfold(image, KERNEL_SIZE, padding=HALO, stride=problem.stride)
        return (kernels.flatten(1) @ columns).unflatten(2, (problem.output_height, problem.output_width))


class TorchCompile(ChannelsLast):
    """torch.compile: a store for each output channel, so that its taps are read once for all of them."""

    combines = Peer.combines

    def set_up(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        work, (torch, stored) = work_of(problem), _torch(problem)
        image, mode = torch.from_numpy(image_host).to(self.device), PAD_MODES[problem.border]
        kind, kind_out = (getattr(torch, dtype.name) for dtype in (problem.weights.dtype, problem.output_dtype))
        values = shifted_sums(problem, work, lambda one, other: (one * one + other * other).sqrt())
        out = torch.empty(problem.output_shape, dtype=kind_out, device=self.device)

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
