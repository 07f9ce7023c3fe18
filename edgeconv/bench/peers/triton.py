"""A stencil in Triton: each program computes a tile of output pixels; tile and warps are tuned by Triton itself.

The three outputs of an RGB picture are kept in registers together; equal loads of theirs become one.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.peers.base import Peer
from edgeconv.bench.peers.convolutions import TOLERANCE
from edgeconv.core.choices import DeviceName
from edgeconv.core.filters import CHANNEL_COUNTS
from edgeconv.core.problem import Problem
from edgeconv.errors import UnavailableError


class Triton(Peer):
    """triton.jit, with arrays of PyTorch."""

    distributions = ("triton",)
    module = "triton"
    requirement = "torch"

    def __init__(self, device: DeviceName) -> None:
        super().__init__(device)
        self._stencil: Any = None

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        if problem.border != "zero":
            raise UnavailableError("its masked loads give 0 outside of the picture, which is a zero border")
        if problem.combine == "maximum" or problem.output_channels not in CHANNEL_COUNTS:
            raise UnavailableError("it is written for one or three outputs of one direction, or of two")
        torch, triton = import_module("torch"), import_module("triton")
        if self._stencil is None:
            self._stencil = import_module("edgeconv.bench.peers.triton_stencil").stencil
        stencil = self._stencil
        image = torch.from_numpy(image_host).to("cuda")
        out = torch.empty(problem.output_shape, dtype=getattr(torch, problem.output_dtype.name), device="cuda")
        weights = torch.from_numpy(np.ascontiguousarray(problem.dense_weights(), np.float32)).to("cuda")
        sizes = (problem.height, problem.width, problem.output_height, problem.output_width)
        whole = problem.output_dtype.kind == "u"
        constants = {
            "IN": problem.in_channels,
            "OUT": problem.output_channels,
            "APART": problem.groups > 1,
            "MAGNITUDE": problem.combine == "magnitude",
            "STRIDE": problem.stride,
            "PADDING": problem.padding,
            "ABSOLUTE": problem.output_mode == "abs",
            "MOST": int(np.iinfo(problem.output_dtype).max) if whole else 0,
        }

        def grid(tile: dict[str, int]) -> tuple[int, int]:
            return triton.cdiv(sizes[3], tile["ACROSS"]), triton.cdiv(sizes[2], tile["DOWN"])

        def run() -> None:
            stencil[grid](image, weights, out, *sizes, **constants)

        return Ready(run, lambda: out.cpu().numpy(), problem, tolerance=TOLERANCE)
