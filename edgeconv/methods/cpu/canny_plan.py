"""The CPU engine's Canny (canny.py) as a plan for a chain of stages."""

from __future__ import annotations

from typing import Any

from edgeconv.core.chains import ChainProblem
from edgeconv.core.exactness import WHOLE
from edgeconv.methods.base import AddressChainPlan, check_workspace
from edgeconv.methods.cpu.arrays import address_of, check_arrays
from edgeconv.methods.cpu.canny import plan_canny
from edgeconv.methods.options import Options


def chain_reason(problem: ChainProblem) -> str | None:
    """Why the engine cannot compute a chain, or None: canny, with or without one smoothing, is what it has code for."""
    return None if problem.chain.canny_settings() is not None else "it has code for canny alone, not for these stages"


class EngineCannyPlan(AddressChainPlan):
    """Strips of rows by the engine's threads, then the edges that cross them."""

    def __init__(self, problem: ChainProblem, options: Options) -> None:
        settings = problem.chain.canny_settings()
        assert settings is not None  # as chain_reason asks
        shape = problem.input_shape if problem.in_channels > 1 else problem.input_shape[:2]
        self._canny = plan_canny(shape, problem.dtype, settings, options.threads)
        workspace, choice = self._canny.workspace_bytes, self._canny.choice
        check_workspace("sliding", workspace, options, or_else="use --method opencv")
        super().__init__(problem, workspace_bytes=workspace, arithmetic=WHOLE, choice=choice)

    def run(self, image: Any, out: Any) -> None:
        check_arrays(image, out, self.problem)
        self._canny.run_at(address_of(image), address_of(out))

    def run_at(self, image_address: int, out_address: int, stream: int | None = None) -> None:
        self._canny.run_at(image_address, out_address)
