"""`shifts`: a method of a package of its own, as an example for yours.

Each tap of a filter multiplies the whole padded picture, shifted by the tap's place; the products are summed in
float64. Layouts: pictures HWC, weights (directions, out, in, 3, 3), where `in` is 1 if each channel stands by itself.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from edgeconv.core.exactness import FLOAT64
from edgeconv.core.geometry import KERNEL_SIZE, OUTSIDE, border_indices
from edgeconv.core.output import store
from edgeconv.core.problem import Problem
from edgeconv.methods.base import Method, Options, Plan
from edgeconv.methods.reference import join


class ShiftsPlan(Plan):
    """Holds the padded picture and the sums, so that a run allocates neither."""

    def __init__(self, problem: Problem) -> None:
        self._rows = border_indices(problem.height, problem.padding, problem.border)
        self._columns = border_indices(problem.width, problem.padding, problem.border)
        self._padded = np.zeros((len(self._rows), len(self._columns), 3))
        self._sums = np.empty((problem.directions, *problem.output_shape))
        self._product = np.empty(problem.output_shape[:2])
        arrays = (self._padded, self._sums, self._product)
        super().__init__(problem, workspace_bytes=sum(each.nbytes for each in arrays), arithmetic=FLOAT64)

    def run(self, image: Any, out: Any) -> None:
        """See Plan.run."""
        problem, stride = self.problem, self.problem.stride
        inside = np.ix_(self._rows != OUTSIDE, self._columns != OUTSIDE)
        self._padded[inside] = image[self._rows[self._rows != OUTSIDE]][:, self._columns[self._columns != OUTSIDE]]
        self._sums.fill(0)
        directions, outputs, inputs = problem.weights.shape[:3]
        taps = product(range(directions), range(outputs), range(inputs), range(KERNEL_SIZE), range(KERNEL_SIZE))
        height, width = self._product.shape
        for direction, output, channel, row, column in taps:
            shifted = self._padded[
                row : row + (height - 1) * stride + 1 : stride,
                column : column + (width - 1) * stride + 1 : stride,
                channel if problem.groups == 1 else output * problem.groups // outputs,
            ]
            weight = float(problem.weights[direction, output, channel, row, column])
            self._sums[direction, ..., output] += np.multiply(shifted, weight, out=self._product)
        out[...] = store(join(self._sums, problem.combine, problem.dtype), problem.output_mode, problem.output_dtype)


class Shifts(Method):
    """Stateless; name and device stand in pyproject.toml."""

    def unavailable_reason(self) -> str | None:
        """None: NumPy is there wherever edgeconv is."""
        return None

    def prepare(self, problem: Problem, options: Options, pictures: int = 1) -> Plan:
        """See Method.prepare."""
        return ShiftsPlan(problem)
