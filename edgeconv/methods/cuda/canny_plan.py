"""CUDA's Canny (canny.py) as a plan for a chain of stages, of one picture or of a batch in one run."""

from __future__ import annotations

from typing import Any

from edgeconv.core.chains import ChainProblem
from edgeconv.core.exactness import WHOLE
from edgeconv.methods.base import AddressPlan, check_workspace
from edgeconv.methods.cuda.canny import plan_canny, workspace_bytes_of
from edgeconv.methods.options import Options


def chain_reason(problem: ChainProblem) -> str | None:
    """Why there are no kernels for a chain, or None: for canny, with or without one smoothing, there are."""
    return None if problem.chain.canny_settings() is not None else "it has kernels for canny, not for these stages"


class CudaCannyPlan(AddressPlan):
    """Four launches: one pass over the picture, three over the map of its edge pixels."""

    def __init__(self, problem: ChainProblem, options: Options, pictures: int = 1) -> None:
        settings = problem.chain.canny_settings()
        assert settings is not None  # as `reason` asks
        needed = workspace_bytes_of(problem.height, problem.width, pictures)
        check_workspace("sliding", needed, options, or_else="use --method opencv")
        self._canny = plan_canny(problem.input_shape, problem.dtype, settings, pictures if pictures > 1 else None)
        choice = {"first_pass": "strips" if self._canny.by_strips else "tiles"}
        launches, workspace = self._canny.launches, self._canny.workspace_bytes
        super().__init__(problem, workspace, None, launches, WHOLE, choice, pictures)

    def run(self, image: Any, out: Any) -> None:
        self._canny.run(image, out[..., 0])

    def run_at(self, image_address: int, out_address: int, stream: int | None = None) -> None:
        self._canny.run_at(image_address, out_address, stream)
