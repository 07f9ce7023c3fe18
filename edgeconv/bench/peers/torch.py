"""PyTorch's conv2d, as it lies best in memory and as it is usually written, and its own im2col.

    ChannelsLast   HWC in memory, read as NCHW with channels last; float32, TF32 off; float64 pictures in float64
    Planes         CHW in memory: the picture and the result are planes, which no picture file holds
    Half           channels last, float16 arithmetic
    Unfold         unfold and matmul: explicit columns

Integer pictures are converted, filtered, rounded and stored, all of it timed. cuDNN may try its algorithms at the
first run (`cudnn.benchmark`), which is not timed.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.peers.base import Peer
from edgeconv.bench.peers.convolutions import HALF_TOLERANCE, TOLERANCE, grouped
from edgeconv.core.choices import Border
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem
from edgeconv.errors import UnavailableError
from edgeconv.hardware.threads import usable_threads

PAD_MODES: dict[Border, str] = {"replicate": "replicate", "reflect101": "reflect"}
"""Other borders than zero; it has none that repeats the edge pixel in a reflection."""


class ChannelsLast(Peer):
    """The picture stays HWC."""

    distributions = ("torch",)
    module = "torch"
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
        torch = import_module("torch")
        if problem.border != "zero" and problem.border not in PAD_MODES:
            raise UnavailableError(f"it has no border '{problem.border}'")
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        torch.set_num_threads(usable_threads())
        layout = torch.channels_last if self.channels_last else torch.contiguous_format
        kind = torch.float16 if self.half else getattr(torch, problem.weights.dtype.name)
        weights = grouped(problem)
        image = torch.from_numpy(image_host).to(self.device).permute(2, 0, 1).unsqueeze(0)
        image = image.contiguous(memory_format=layout)
        kernels = torch.tensor(weights.weights).to(self.device, kind).contiguous(memory_format=layout)
        stored = storing(problem)
        held: list[Any] = [None]

        def run() -> None:
            with torch.inference_mode():
                responses = self.convolve(image.to(kind), kernels, problem)
                if weights.directions > 1:
                    apart = responses.unflatten(1, weights.split)
                    joined = apart.square().sum(2).sqrt() if problem.combine == "magnitude" else apart.amax(2)
                    responses = joined.flatten(1, 2)
                held[0] = store(responses, *stored)

        def result() -> NDArray[Any]:
            host: NDArray[Any] = held[0][0].permute(1, 2, 0).cpu().numpy()
            return np.ascontiguousarray(host)

        return Ready(run, result, problem, tolerance=HALF_TOLERANCE if self.half else TOLERANCE, differs=self.differs)

    def convolve(self, image: Any, kernels: Any, problem: Problem) -> Any:
        """(1, 3, height, width) to (1, responses, output height, output width)."""
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


def store(responses: Any, absolute: bool, most: int | None, kind: Any) -> Any:
    """output.store in PyTorch's words; `most` is the largest integer of the output's type, None for floats."""
    if absolute:
        responses = responses.abs()
    if most is not None:
        responses = responses.round().clamp(0, most)
    return responses.to(kind)


def storing(problem: Problem) -> tuple[bool, int | None, Any]:
    """What `store` wants to know."""
    dtype = problem.output_dtype
    most = int(np.iinfo(dtype).max) if dtype.kind == "u" else None
    return problem.output_mode == "abs", most, getattr(import_module("torch"), dtype.name)
