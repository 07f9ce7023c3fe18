"""Triton on arrays of PyTorch: channels apart as flat rows, everything else by tiles of pixels (triton_stencil.py).

Source: Triton's tutorials; `triton.autotune` of its reference.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.peers.base import HALO, TOLERANCE, Peer, require_zero_border, work_of
from edgeconv.core.filters import CHANNEL_COUNTS
from edgeconv.core.problem import Problem
from edgeconv.errors import UnavailableError


class Triton(Peer):
    """triton.jit."""

    distributions = ("triton",)
    module = "triton"
    needs = ("torch",)
    requirement = "torch"
    environment: ClassVar = {"THP_MEM_ALLOC_ENABLE": "1"}

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        require_zero_border(problem)
        work = work_of(problem)
        kept, planes = work.weights.shape[1:3]
        if problem.combine == "maximum" or kept not in CHANNEL_COUNTS:
            raise UnavailableError("it is written for one or three outputs of one direction, or of two")
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
        if work.apart and problem.stride == 1 and problem.padding == HALO:
            length = width * outputs

            def rows_grid(piece: dict[str, int]) -> tuple[int, int]:
                return triton.cdiv(length, piece["ACROSS"]), triton.cdiv(height, piece["ROWS"])

            def run_rows() -> None:
                stencils.flat_rows[rows_grid](image, weights, out, length, height, STEP=outputs, **constants)

            return Ready(run_rows, lambda: out.cpu().numpy(), problem, tolerance=TOLERANCE)
        constants |= {
            "IN": problem.in_channels,
            "OUT": outputs,
            "KEPT": kept,
            "PLANES": planes,
            "MIXED": work.mixing.shape[1],
            "APART": work.apart,
            "STRIDE": problem.stride,
            "PADDING": problem.padding,
        }
        sizes = (problem.height, problem.width, height, width)
        columns = width * outputs if work.apart else width

        def grid(tile: dict[str, int]) -> tuple[int, int]:
            return triton.cdiv(columns, tile["ACROSS"]), triton.cdiv(height, tile["DOWN"])

        def run() -> None:
            stencils.tiles[grid](image, mixing, weights, out, *sizes, **constants)

        return Ready(run, lambda: out.cpu().numpy(), problem, tolerance=TOLERANCE)
