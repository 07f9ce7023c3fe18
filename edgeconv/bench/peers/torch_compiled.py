"""Shifted multiply-adds in PyTorch, fused into one kernel by torch.compile. HWC in and out."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.peers.convolutions import TOLERANCE
from edgeconv.bench.peers.shifts import responses, shifts_of
from edgeconv.bench.peers.torch import PAD_MODES, ChannelsLast, store, storing
from edgeconv.core.problem import Problem
from edgeconv.errors import UnavailableError
from edgeconv.hardware.threads import usable_threads


class TorchShifts(ChannelsLast):
    """Weights are constants of the compiled code."""

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        torch = import_module("torch")
        if problem.border != "zero" and problem.border not in PAD_MODES:
            raise UnavailableError(f"it has no border '{problem.border}'")
        torch.set_num_threads(usable_threads())
        kind = getattr(torch, problem.weights.dtype.name)
        stored = storing(problem)
        shifts = shifts_of(problem)
        image = torch.from_numpy(image_host).to(self.device)
        mode = {"zero": "constant", **PAD_MODES}[problem.border]

        def place(weights: NDArray[Any]) -> Any:
            return torch.from_numpy(weights).to(self.device, kind)

        sums_channels, placed = shifts.sums_channels, shifts.placed(place)
        padding, is_magnitude = (problem.padding,) * 4, problem.combine == "magnitude"

        def filtered(image: Any) -> Any:
            planes = image.to(kind).permute(2, 0, 1)
            padded = torch.nn.functional.pad(planes, padding, mode=mode).permute(1, 2, 0)
            found = responses(sums_channels, placed, padded)
            if is_magnitude:
                joined = (found[0] * found[0] + found[1] * found[1]).sqrt()
            else:
                joined = found[0]
                for other in found[1:]:
                    joined = torch.maximum(joined, other)
            return store(joined, *stored)

        torch._dynamo.reset()
        compiled = torch.compile(filtered, dynamic=False, fullgraph=True)
        held: list[Any] = [None]

        def run() -> None:
            with torch.inference_mode():
                held[0] = compiled(image)

        return Ready(run, lambda: np.ascontiguousarray(held[0].cpu().numpy()), problem, tolerance=TOLERANCE)
