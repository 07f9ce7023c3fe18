"""The positions of the window's threshold slider, and the threshold that each of them stands for. Numbers alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.output import finite_range, full_range, magnitude

FLOAT_POSITIONS = 1000
"""Of outputs that are floats: as fine as a hand moves a slider."""
FULL_STEP = 4
"""Sobel's response to a step, in units of the step: 1 + 2 + 1."""
FLOAT_DIGITS = 4
"""Significant digits of thresholds between levels, so that what is saved can be read."""


@dataclass(frozen=True)
class ThresholdScale:
    """Position 0 is no threshold; 1 to `positions` are those up to `most`, in equal steps."""

    positions: int = 255
    most: float = 255.0

    def threshold_at(self, position: int) -> float | None:
        """The threshold of a position."""
        exact = self.most * position / self.positions
        return None if position < 1 else exact if exact.is_integer() else float(f"{exact:.{FLOAT_DIGITS}g}")

    def position_of(self, threshold: float | None) -> int:
        """The nearest position of a threshold, which is never that of none."""
        if threshold is None:
            return 0
        return max(1, min(self.positions, round(min(threshold / self.most, 1.0) * self.positions)))


def scale_of_edges(dtype: np.dtype[Any]) -> ThresholdScale:
    """The scale for the two thresholds of edges in pictures of `dtype`: up to Sobel's response to a full step."""
    return ThresholdScale(FULL_STEP * 255, FULL_STEP * full_range(dtype))


def scale_of(dtype: np.dtype[Any], output: NDArray[Any] | None) -> ThresholdScale:
    """The scale for an output of `dtype`: every level of an integer type, or of floats up to the largest |value|.

    `output` is without a threshold; None where it fills the range of its type.
    """
    most = full_range(dtype) if dtype.kind == "u" or output is None else magnitude(finite_range(output))
    return ThresholdScale(int(most) if dtype.kind == "u" else FLOAT_POSITIONS, most if 0 < most < np.inf else 1.0)
