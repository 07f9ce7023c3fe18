"""PyTorch: conv2d in both layouts and in half precision, its own im2col, and shifted multiply-adds that it compiles.

    torch           HWC in memory, read as NCHW with channels last; float32, TF32 off; float64 pictures in float64
    torch-nchw      CHW in memory: the picture and the result are planes, which no picture file holds
    torch-half      channels last, float16 arithmetic
    torch-unfold    unfold and matmul: explicit columns
    torch-compile   `Shifts` fused into one kernel, written into an array that is there; HWC in and out

Integer pictures are converted, filtered, rounded and stored, all of it timed. cuDNN may try its algorithms at the
first run (`cudnn.benchmark`), which is not timed. Large arrays are asked for in huge pages, as those of NumPy are:
without, each new result pays for pages of 4 KiB.

Source: PyTorch's tutorial on channels last, its notes on CUDA semantics (TF32) and on torch.compile.
"""

from __future__ import annotations

from functools import reduce
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.peers.base import TOLERANCE, Peer, grouped, kept
from edgeconv.bench.peers.shifts import Shifts
from edgeconv.core.choices import Border
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem
from edgeconv.errors import UnavailableError
from edgeconv.hardware.threads import usable_threads

PAD_MODES: dict[Border, str] = {"zero": "constant", "replicate": "replicate", "reflect101": "reflect"}
"""It has no border that repeats the edge pixel in a reflection."""
HALF_TOLERANCE = 5e-3
"""Relative: weights and results rounded to half, 2⁻¹¹ each, summed over 27 products."""


class ChannelsLast(Peer):
    """The picture stays HWC."""

    distributions = ("torch",)
    module = "torch"
    environment: ClassVar = {"THP_MEM_ALLOC_ENABLE": "1"}
    has_double = True
    channels_last = True
    half = False
    differs: str | None = None

    def unavailable_reason(self) -> str | None:
        reason = super().unavailable_reason()
        if reason is None and self.device == "cuda" and not import_module("torch").cuda.is_available():
            return "this torch was built without CUDA"
        return reason

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        torch = _set_up(problem)
        layout = torch.channels_last if self.channels_last else torch.contiguous_format
        kind = torch.float16 if self.half else getattr(torch, problem.weights.dtype.name)
        weights, split = grouped(problem)
        image = torch.from_numpy(image_host).to(self.device).permute(2, 0, 1).unsqueeze(0)
        image = image.contiguous(memory_format=layout)
        kernels = torch.tensor(weights).to(self.device, kind).contiguous(memory_format=layout)
        stored = _storing(torch, problem)

        def compute() -> Any:
            with torch.inference_mode():
                responses = self.convolve(image.to(kind), kernels, problem)
                if problem.directions > 1:
                    apart = responses.unflatten(1, split)
                    joined = apart.square().sum(2).sqrt() if problem.combine == "magnitude" else apart.amax(2)
                    responses = joined.flatten(1, 2)
                return _stored(responses, *stored)

        run, result = kept(compute, lambda out: np.ascontiguousarray(out[0].permute(1, 2, 0).cpu().numpy()))
        tolerance = HALF_TOLERANCE if self.half else TOLERANCE
        return Ready(run, result, problem, tolerance=tolerance, differs=self.differs)

    def convolve(self, image: Any, kernels: Any, problem: Problem) -> Any:
        """(1, channels, height, width) to (1, responses, output height, output width)."""
        functional = import_module("torch").nn.functional
        padding = problem.padding
        if problem.border != "zero" and padding > 0:
            image = functional.pad(image, (padding,) * 4, mode=PAD_MODES[problem.border])
            padding = 0
        return functional.conv2d(image, kernels, stride=problem.stride, padding=padding, groups=problem.groups)


class Planes(ChannelsLast):
    """The picture and the result are planes."""

    channels_last = False
    differs = "picture and result are planes (CHW), not HWC"


class Half(ChannelsLast):
    """float16 arithmetic."""

    has_double = False
    half = True
    differs = "half arithmetic: products and results are rounded to float16"


class Unfold(Planes):
    """Columns in memory, then a matrix product."""

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        if problem.groups != 1 or problem.border != "zero":
            raise UnavailableError("its unfold knows one group and a zero border")
        return super().prepare(problem, image_host)

    def convolve(self, image: Any, kernels: Any, problem: Problem) -> Any:
        torch = import_module("torch")
        columns = torch.nn.functional.unfold(image, KERNEL_SIZE, padding=problem.padding, stride=problem.stride)
        product = torch.matmul(kernels.flatten(1), columns)
        return product.unflatten(2, (problem.output_height, problem.output_width))


class TorchCompile(ChannelsLast):
    """torch.compile: a store for each output channel, so that its taps are read once for all of them."""

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        torch = _set_up(problem)
        kind = getattr(torch, problem.weights.dtype.name)
        shifts, stored = Shifts(problem), _storing(torch, problem)
        image = torch.from_numpy(image_host).to(self.device)
        out = torch.empty(problem.output_shape, dtype=stored[-1], device=self.device)
        is_magnitude, channels = problem.combine == "magnitude", problem.output_channels
        padding, mode = (problem.padding,) * 4, PAD_MODES[problem.border]

        def filtered(image: Any, out: Any) -> None:
            planes = image.to(kind).permute(2, 0, 1)
            padded = torch.nn.functional.pad(planes, padding, mode=mode).permute(1, 2, 0)
            found = []
            for responses in shifts.responses(padded):
                if is_magnitude:
                    joined = (responses[0] * responses[0] + responses[1] * responses[1]).sqrt()
                else:
                    joined = reduce(torch.maximum, responses)
                found.append(_stored(joined, *stored))
            if found[0].ndim == 3:
                out.copy_(found[0])
            else:
                for channel in range(channels):
                    out[:, :, channel] = found[channel % len(found)]

        torch._dynamo.reset()
        compiled = torch.compile(filtered, dynamic=False, fullgraph=True)

        def run() -> None:
            with torch.inference_mode():
                compiled(image, out)

        return Ready(run, lambda: out.cpu().numpy(), problem, tolerance=TOLERANCE)


def _set_up(problem: Problem) -> Any:
    """The module with its settings; raises UnavailableError for a border that it has not."""
    if problem.border not in PAD_MODES:
        raise UnavailableError(f"it has no border '{problem.border}'")
    torch = import_module("torch")
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.set_num_threads(usable_threads())
    return torch


def _stored(values: Any, is_absolute: bool, most: int | None, kind: Any) -> Any:
    """output.store in PyTorch's words; `most` is the largest integer of the output's type, None for floats."""
    if is_absolute:
        values = values.abs()
    if most is not None:
        values = values.round().clamp(0, most)
    return values.to(kind)


def _storing(torch: Any, problem: Problem) -> tuple[bool, int | None, Any]:
    """What `_stored` wants to know."""
    dtype = problem.output_dtype
    most = int(np.iinfo(dtype).max) if dtype.kind == "u" else None
    return problem.output_mode == "abs", most, getattr(torch, dtype.name)
