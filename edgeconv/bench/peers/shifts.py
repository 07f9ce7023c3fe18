"""Shifted multiply-adds: the 3×3 sum as one writes it for a compiler of array expressions, weights as constants.

    plane[dy :: stride, dx :: stride] · weight, summed over the taps of a kernel that are not 0

The planes of `Work` are made from a padded picture (height, width, channels); of channels apart the picture is one.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

import numpy as np

from edgeconv.bench.peers.base import work_of
from edgeconv.core.problem import Problem
from edgeconv.errors import UnavailableError


class Shifts:
    """A problem in that form, for PyTorch's arrays and JAX's."""

    def __init__(self, problem: Problem) -> None:
        work = work_of(problem)
        if not work.weights.any(axis=(2, 3, 4)).all():
            raise UnavailableError("an output has no weights")
        self._apart, self._mixing = work.apart, work.mixing.tolist()
        self._rows, self._columns = (
            [slice(first, first + (extent - 1) * problem.stride + 1, problem.stride) for first in range(3)]
            for extent in (problem.output_height, problem.output_width)
        )
        self._taps = [
            [
                [(plane, dy, dx, float(kernels[plane, dy, dx])) for plane, dy, dx in np.argwhere(kernels).tolist()]
                for kernels in of_direction
            ]
            for of_direction in work.weights
        ]

    def responses(self, padded: Any) -> list[list[Any]]:
        """By different output and direction: (height, width), or (height, width, channels) of channels apart."""
        planes = [padded]
        if not self._apart:
            channels = range(padded.shape[2])
            planes = [
                reduce(add, [padded[:, :, c] * shares[c] for c in channels if shares[c]]) for shares in self._mixing
            ]
        return [
            [
                reduce(add, [planes[plane][self._rows[dy], self._columns[dx]] * w for plane, dy, dx, w in taps[k]])
                for taps in self._taps
            ]
            for k in range(len(self._taps[0]))
        ]
