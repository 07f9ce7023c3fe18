"""Triton on arrays of PyTorch: channels apart as flat rows, everything else by tiles of pixels (triton_stencil.py).

Source: Triton's tutorials; `triton.autotune` of its reference.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.peers.base import TOLERANCE, Peer, flat_work, on_host
from edgeconv.core.filters import CHANNEL_COUNTS
from edgeconv.core.problem import Problem
from edgeconv.errors import UnavailableError


class Triton(Peer):
    """triton.jit."""

    distributions = ("triton",)
    module = "triton"
    needs = ("torch",)
    dtypes = (*Peer.dtypes, "float16")
    borders = ("zero",)

    def set_up(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        work = flat_work(problem)
        kept, planes = work.weights.shape[1:3]
        if kept not in CHANNEL_COUNTS:
            raise UnavailableError("it is written for one or three outputs")
        torch, triton = import_module("torch"), import_module("triton")
        stencils = import_module("edgeconv.bench.peers.triton_stencil")
        image = torch.from_numpy(image_host).to("cuda")
        out = torch.empty(problem.output_shape, dtype=getattr(torch, problem.output_dtype.name), device="cuda")
        weights, mixing = (
            torch.tensor(np.asarray(array, np.float32), device="cuda") for array in (work.weights, work.mixing)
        )
        constants = {
            "MAGNITUDE": problem.combine == "magnitude",
            "ABSOLUTE": problem.output_mode == "abs",
            "MOST": int(np.iinfo(problem.output_dtype).max) if problem.output_dtype.kind == "u" else 0,
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
            return triton.cdiv(length, chosen["ACROSS"]), triton.cdiv(height, chosen["DOWN"])

        def run() -> None:
            kernel[grid](*arguments, **constants)

        return Ready(run, lambda: on_host(out), problem, tolerance=TOLERANCE)
