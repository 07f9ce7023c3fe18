"""Sliding window on the CPU: rows are read once, and never more than three of them are materialised.

HWC in and out. What is equal is computed once (lowering.py), code is generated for the weights, the stride and
the processor (rowcode.py), and threads take strips of rows (engine.py). Results do not depend on the threads.
"""

from __future__ import annotations

from edgeconv.core.chains import ChainProblem
from edgeconv.core.problem import PictureProblem, Problem
from edgeconv.methods.base import Method, Plan
from edgeconv.methods.cpu import canny
from edgeconv.methods.cpu.engine import CodeShape, EnginePlan, cannot_read, moves_past_caches
from edgeconv.methods.cpu.lowering import make_lowering
from edgeconv.methods.options import Options

TILE_PIXELS = 16384
"""Output pixels of a tile (samples where rows are flat). Whole rows of common pictures: a row that is cut costs
a spare block at each end, and reading pieces of rows keeps the processor from fetching ahead."""


class CpuSliding(Method):
    """Always available: llvmlite is a base dependency."""

    def unavailable_reason(self) -> str | None:
        """None: the compiler came with the package."""
        return None

    def reason(self, problem: PictureProblem, options: Options) -> str | None:
        """See Method.reason."""
        return canny.chain_reason(problem) if isinstance(problem, ChainProblem) else cannot_read(problem)

    def prepare(self, problem: Problem | ChainProblem, options: Options, pictures: int = 1) -> Plan:
        if isinstance(problem, ChainProblem):
            return canny.EngineCannyPlan(problem, options)
        lowering = make_lowering(problem, streaming=moves_past_caches(problem))
        return EnginePlan("sliding", problem, lowering, options, CodeShape(TILE_PIXELS, columns=False))
