"""Fixed classes of absolute difference: what the histogram counts, and what the heat map's colours mean.

Classes depend on the type alone, never on the two pictures, so that the same colour means the same difference in
every map ever made of that type.

    whole numbers   0, 1, 2, 3, 4 to 7, 8 to 15, ... up to the largest value of the type
    floats          0, below 1e-9, then one class a decade, 1000 and more, and one for NaN and infinity

Colours run dark to light (the samples of Matplotlib's inferno, by van der Walt and Smith, CC0) so that they can be
told apart in grey and by colour-blind people; class 0 is dark grey, and the last class of floats is green because
it is no magnitude at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Colour = tuple[int, int, int]

SAME_COLOUR: Colour = (38, 38, 42)
UNBOUNDED_COLOUR: Colour = (0, 200, 83)
INFERNO: tuple[Colour, ...] = (
    (66, 10, 104),
    (106, 23, 110),
    (147, 38, 103),
    (188, 55, 84),
    (221, 81, 58),
    (243, 120, 25),
    (252, 165, 10),
    (246, 215, 70),
    (252, 255, 164),
)
"""At 1/9, 2/9, ... of the map's length: the first is already far from `SAME_COLOUR`."""

FLOAT_DECADES = range(-9, 4)


@dataclass(frozen=True)
class Scale:
    """Classes of |difference| for one type. Class 0 is "same"."""

    lower_bounds: tuple[float, ...]
    """Smallest |difference| of each class, rising; the second of floats is the smallest above 0."""
    labels: tuple[str, ...]
    colours: tuple[Colour, ...]
    """RGB, 8 bits."""

    def classes(self, magnitude: NDArray[Any]) -> NDArray[np.uint8]:
        """The class of each |difference|; any shape, finite or infinite, no NaN."""
        bounds = np.asarray(self.lower_bounds[1:])
        return np.asarray(np.searchsorted(bounds, magnitude, side="right"), np.uint8)

    def counts(self, magnitude: NDArray[Any], times: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """How many of `magnitude` (1-D; each counted `times`) fall into each class."""
        weights = None if times is None else times.astype(np.float64)  # exact up to 2^53
        found = np.bincount(self.classes(magnitude), weights=weights, minlength=len(self.labels))
        return np.asarray(found, np.int64)


@cache
def scale_for(dtype: Any) -> Scale:
    """The classes of a type of sample."""
    kind = np.dtype(dtype)
    return _whole_numbers(int(np.iinfo(kind).max)) if kind.kind == "u" else _floats()


def magnitude_of(reference: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    """|other − reference|: int32 for whole numbers, float64 for floats; exact, but for the one rounding of float64.

    NaN against NaN and an infinity against itself are 0; NaN or an infinity against anything else is infinite.
    """
    if reference.dtype.kind == "u":
        steps: NDArray[np.int32] = np.subtract(other, reference, dtype=np.int32)
        return np.abs(steps, out=steps)
    with np.errstate(invalid="ignore", over="ignore"):
        magnitude: NDArray[np.float64] = np.subtract(other, reference, dtype=np.float64)
        np.abs(magnitude, out=magnitude)
        magnitude[reference == other] = 0  # an infinity minus itself is NaN
    lost = np.isnan(magnitude)
    magnitude[lost] = np.where(np.isnan(reference[lost]) & np.isnan(other[lost]), 0, np.inf)
    return magnitude


def _whole_numbers(largest: int) -> Scale:
    bounds = [0, 1, 2, 3]
    while bounds[-1] < largest:
        bounds.append(4 if bounds[-1] == 3 else bounds[-1] * 2)
        if bounds[-1] > largest:
            bounds.pop()
            break
    labels = [
        f"{low:,}" if low + 1 == high else f"{low:,}–{high - 1:,}"
        for low, high in zip(bounds, [*bounds[1:], largest + 1], strict=True)
    ]
    return Scale(tuple(map(float, bounds)), tuple(labels), (SAME_COLOUR, *_ramp(len(bounds) - 1)))


def _floats() -> Scale:
    smallest = float(np.nextafter(0, 1))
    bounds = (0.0, smallest, *(10.0**decade for decade in FLOAT_DECADES), np.inf)
    labels = ["0", f"below 1e{FLOAT_DECADES[0]}"]
    labels += [f"from 1e{decade}" for decade in FLOAT_DECADES]
    labels.append("NaN or infinite")
    return Scale(bounds, tuple(labels), (SAME_COLOUR, *_ramp(len(bounds) - 2), UNBOUNDED_COLOUR))


def _ramp(steps: int) -> list[Colour]:
    """`steps` colours evenly along the map."""
    places = np.linspace(0, len(INFERNO) - 1, steps)
    channels = [np.interp(places, range(len(INFERNO)), channel) for channel in zip(*INFERNO, strict=True)]
    return [(round(red), round(green), round(blue)) for red, green, blue in zip(*channels, strict=True)]
