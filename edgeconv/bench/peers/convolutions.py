"""What the neural-network peers share: a 3×3 problem as one grouped convolution whose outputs are then joined.

weights   (groups · directions · out / groups, in / groups, 3, 3), a group's outputs next to each other
joining   over the axis of directions of (groups, directions, out / groups, height, width)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.problem import Problem

TOLERANCE = 1e-5
"""Relative: float32 sums in another order, or by Winograd's transform, which the libraries may choose."""

HALF_TOLERANCE = 5e-3
"""Relative: weights and results rounded to half, 2⁻¹¹ each, summed over 27 products."""


@dataclass(frozen=True)
class GroupedWeights:
    """One convolution for all directions."""

    weights: NDArray[np.float32]
    groups: int
    directions: int
    outputs_a_group: int

    @property
    def split(self) -> tuple[int, int, int]:
        """(groups, directions, outputs a group): the channels of the result, taken apart."""
        return self.groups, self.directions, self.outputs_a_group


def grouped(problem: Problem) -> GroupedWeights:
    """The weights of `problem` put in the order of a grouped convolution."""
    directions, outputs, in_group, rows, columns = problem.weights.shape
    a_group = outputs // problem.groups
    apart = problem.weights.reshape(directions, problem.groups, a_group, in_group, rows, columns)
    together = np.ascontiguousarray(apart.swapaxes(0, 1)).reshape(-1, in_group, rows, columns)
    return GroupedWeights(together, problem.groups, directions, a_group)
