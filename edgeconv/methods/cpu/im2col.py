"""im2col on the CPU: columns in memory, then a matrix product with the weights.

The column matrix of a whole picture would be 27 times its pixels. Here a band of it is 27 rows (one per tap) of
up to `TILE_PIXELS` pixels, which stays in the L2 cache; the product (outputs × taps) · (taps × pixels) keeps
`outputs` rows of sums in registers while it goes down the taps. Nothing is shared: equal kernels
are multiplied as often as they occur, so the time is that of the method and not of a shortcut.
"""

from __future__ import annotations

from edgeconv.core.problem import PictureProblem, Problem
from edgeconv.methods.base import Method, Plan
from edgeconv.methods.cpu.engine import CodeShape, EnginePlan, cannot_read, moves_past_caches
from edgeconv.methods.cpu.lowering import make_lowering
from edgeconv.methods.options import Options

TILE_PIXELS = 1024
"""Pixels of a band: 27 columns of them in float32 are 108 KiB."""


class CpuIm2col(Method):
    """Always available: llvmlite is a base dependency."""

    def unavailable_reason(self) -> str | None:
        """None: the compiler came with the package."""
        return None

    def reason(self, problem: PictureProblem, options: Options) -> str | None:
        """See Method.reason."""
        return super().reason(problem, options) or cannot_read(problem)

    def prepare(self, problem: Problem, options: Options, pictures: int = 1) -> Plan:
        lowering = make_lowering(problem, share=False, streaming=moves_past_caches(problem))
        return EnginePlan("im2col", problem, lowering, options, CodeShape(TILE_PIXELS, columns=True))
