"""Shifted multiply-adds: the 3×3 sum as one writes it for a compiler of array expressions, shared by several peers.

    sum over taps of  padded[dy :: stride, dx :: stride, channels] · weights of that tap for all outputs

Taps without weights are left out. Where all kernels are equal the channels are added first, as in PlanePeer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem
from edgeconv.errors import UnavailableError


@dataclass(frozen=True)
class ShiftedTap:
    """One shift of the padded picture and what it is multiplied by."""

    rows: slice
    columns: slice
    channels: slice
    weights: NDArray[np.floating[Any]]
    """(out,): of each output, over the last axis."""


PlacedTap = tuple[slice, slice, slice, Any]
"""Rows, columns, channels, and weights as an array of the library."""


@dataclass(frozen=True)
class Shifts:
    """A problem in that form."""

    sums_channels: bool
    """Whether the input channels are added before the taps are taken."""
    directions: tuple[tuple[ShiftedTap, ...], ...]

    def placed(self, place: Callable[[NDArray[Any]], Any]) -> list[list[PlacedTap]]:
        """With the weights put beside the picture by `place`."""
        return [[(tap.rows, tap.columns, tap.channels, place(tap.weights)) for tap in taps] for taps in self.directions]


def shifts_of(problem: Problem) -> Shifts:
    """The taps of every direction."""
    weights = problem.dense_weights()
    sums_channels = problem.groups == 1 and problem.in_channels > 1 and bool((weights == weights[:, :1, :1]).all())
    if sums_channels:
        weights = weights[:, :, :1]
    apart = problem.groups == problem.in_channels == problem.output_channels
    channels = range(1) if apart else range(weights.shape[2])

    def tap(direction: int, channel: int, dy: int, dx: int) -> ShiftedTap:
        of_tap = weights[direction, :, :, dy, dx]
        return ShiftedTap(
            slice(dy, dy + (problem.output_height - 1) * problem.stride + 1, problem.stride),
            slice(dx, dx + (problem.output_width - 1) * problem.stride + 1, problem.stride),
            slice(None) if apart else slice(channel, channel + 1),
            np.ascontiguousarray(np.diagonal(of_tap) if apart else of_tap[:, channel]),
        )

    steps = [(c, dy, dx) for c in channels for dy in range(KERNEL_SIZE) for dx in range(KERNEL_SIZE)]
    taps = [[tap(direction, *step) for step in steps] for direction in range(len(weights))]
    directions = tuple(tuple(t for t in of if t.weights.any()) for of in taps)
    if not all(directions):
        raise UnavailableError("a direction has no weights")
    return Shifts(sums_channels, directions)


def responses(sums_channels: bool, directions: Sequence[Sequence[PlacedTap]], padded: Any) -> list[Any]:
    """(height, width, out) of every direction; `padded` is (height, width, in)."""
    source = padded.sum(-1)[:, :, None] if sums_channels else padded
    found = []
    for taps in directions:
        terms = [source[rows, columns, channels] * weights for rows, columns, channels, weights in taps]
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        found.append(total)
    return found
