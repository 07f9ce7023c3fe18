"""textbook on CUDA: the kernel of a first lesson, one thread per output value, one launch per output channel.

What the lab reports measure with thread blocks of 8 × 8, 16 × 16 and 32 × 32 (`--block`). It is there to be compared
with: bench/ladders/conv.py goes on from it step by step to `sliding`. Sums are multiply-adds in float32, or in
float64 where float32 does not hold them (exactness.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from edgeconv.core.exactness import own_arithmetic
from edgeconv.core.problem import Problem
from edgeconv.hardware.cuda.kernels import KernelVariant, load
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason
from edgeconv.methods.base import Method, Plan
from edgeconv.methods.cuda.kernel_args import (
    blocks_over,
    problem_defines,
    strided_geometry,
)
from edgeconv.methods.options import DEFAULT_BLOCK, Block, Options


def textbook_variant(problem: Problem, block: Block) -> KernelVariant:
    """The kernel with thread blocks of `block` × `block`."""
    return KernelVariant("methods/cuda/textbook.cu", "textbook", (*problem_defines(problem), ("BLOCK", block)))


@dataclass
class TextbookPlan(Plan):
    """One launch for each output channel."""

    block: Block = DEFAULT_BLOCK

    def __post_init__(self) -> None:
        import cupy

        from edgeconv.hardware.cuda.launch import PackedLaunch

        problem, side = self.problem, self.block
        kernel = load(textbook_variant(problem, side))
        blocks = blocks_over(problem, side, side)
        self._weights = cupy.asarray(problem.weights)
        arguments = (np.uint64(self._weights.data.ptr), strided_geometry(problem))
        self._launches = [
            PackedLaunch(kernel, blocks, (side, side), *arguments, np.int32(channel))
            for channel in range(problem.output_channels)
        ]
        self.launches = len(self._launches)
        self.workspace_bytes = problem.weights.nbytes
        # Within a launch the caches keep a window's samples for the windows beside it.
        self.moved_bytes = problem.input_bytes * self.launches + problem.output_bytes
        self.arithmetic = own_arithmetic(problem)
        self.choice = {"kernel": "one thread per output value", "block": side, "arithmetic": self.arithmetic.name}

    def run(self, image: Any, out: Any) -> None:
        for launch in self._launches:
            launch(image, out)


class Textbook(Method):
    """The CUDA method `textbook`."""

    def unavailable_reason(self) -> str | None:
        return cuda_unavailable_reason()

    def prepare(self, problem: Problem, options: Options, pictures: int = 1) -> Plan:
        """See Method.prepare. Any problem can be done."""
        return TextbookPlan(problem, block=options.block)
