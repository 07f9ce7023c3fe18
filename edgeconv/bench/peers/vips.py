"""libvips through pyvips: a pipeline of its own operations from memory to memory, its own threads.

Outside the picture libvips repeats the edge pixel. Its cache of operations is switched off, so that every run computes.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.peers.base import HALO, Peer
from edgeconv.core.output import TOLERANCE_FLOAT32
from edgeconv.core.problem import Problem
from edgeconv.errors import UnavailableError

FORMATS = {"uint8": "uchar", "uint16": "ushort", "float32": "float"}


class Vips(Peer):
    """conv with float precision."""

    distributions = ("pyvips",)
    module = "pyvips"
    requirement = "pyvips[binary]"  # the extra brings libvips

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        if problem.padding != HALO or problem.dtype.name not in FORMATS:
            raise UnavailableError(f"it knows padding {HALO} and the types {', '.join(FORMATS)}")
        pyvips = import_module("pyvips")
        pyvips.cache_set_max(0)
        done = replace(problem, border="replicate")
        height, width, channels = image_host.shape
        image = pyvips.Image.new_from_memory(
            np.ascontiguousarray(image_host).data, width, height, channels, FORMATS[problem.dtype.name]
        )
        held: list[Any] = [None]

        def run() -> None:
            held[0] = _pipeline(pyvips, image, done).write_to_memory()

        return Ready(
            run=run,
            result=lambda: np.frombuffer(held[0], done.output_dtype).reshape(done.output_shape),
            problem=done,
            tolerance=TOLERANCE_FLOAT32,
            differs=None if problem.border == "replicate" else f"its border is replicate, not {problem.border}",
        )


def _pipeline(pyvips: Any, image: Any, problem: Problem) -> Any:
    """The whole work, not yet computed: libvips computes when the result is written."""
    directions = []
    for kernels in problem.weights:
        if 1 < problem.groups == len(kernels) and (kernels == kernels[0]).all():
            directions.append(_conv(pyvips, image, kernels[0, 0]))
        elif problem.groups == 1 and (kernels == kernels[0, 0]).all():
            plane = _conv(pyvips, image.cast("float").recomb([[1.0] * problem.in_channels]), kernels[0, 0])
            directions.append(plane.bandjoin([plane] * (len(kernels) - 1)) if len(kernels) > 1 else plane)
        else:
            directions.append(_every_pair(pyvips, image, kernels, problem.groups))
    if problem.combine == "magnitude":
        value = (directions[0] * directions[0] + directions[1] * directions[1]) ** 0.5
    elif problem.combine == "maximum":
        value = directions[0]
        for other in directions[1:]:
            value = (value > other).ifthenelse(value, other)
    else:
        value = directions[0]
    if problem.stride > 1:
        width, height = problem.output_width * problem.stride, problem.output_height * problem.stride
        value = value.embed(0, 0, width, height).subsample(problem.stride, problem.stride)
    if problem.output_mode == "abs":
        value = value.abs()
    return (value.rint() if problem.output_dtype.kind == "u" else value).cast(FORMATS[problem.output_dtype.name])


def _every_pair(pyvips: Any, image: Any, kernels: NDArray[np.float32], groups: int) -> Any:
    """A filtered plane for each pair of channels that meet, summed for each output."""
    outputs = []
    for number, of_output in enumerate(kernels):
        first = number * groups // len(kernels) * len(of_output)
        planes = [_conv(pyvips, image.extract_band(first + index), kernel) for index, kernel in enumerate(of_output)]
        total = planes[0]
        for plane in planes[1:]:
            total = total + plane
        outputs.append(total)
    return outputs[0].bandjoin(outputs[1:]) if len(outputs) > 1 else outputs[0]


def _conv(pyvips: Any, image: Any, kernel: NDArray[np.float32]) -> Any:
    return image.cast("float").conv(pyvips.Image.new_from_array(kernel.tolist()), precision="float")
