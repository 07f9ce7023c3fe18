"""Fixed classes of absolute difference: what the histogram counts, and what the heat map's colours mean.

Classes depend on the type alone, never on the two pictures, so that the same colour means the same difference in
every map ever made of that type.

    integers        0, 1, 2, 3, 4 to 7, 8 to 15, ... up to the largest value of the type
    floats          0, below 1e-9, then one class a decade, 1000 and more, and one for NaN and infinity

Colours run dark to light (from Matplotlib's inferno, by van der Walt and Smith, CC0). From one to the next the contrast
is 1.5:1 or more, so that they can be told apart in grey and by colour-blind people. Between black and white there is
room for seven beside "same": where a type has more classes, neighbours share a colour, the largest first. The last
class of floats, NaN and infinity, is green, as it has no magnitude.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Colour = tuple[int, int, int]

SAME_COLOUR: Colour = (18, 18, 22)
UNBOUNDED_COLOUR: Colour = (0, 200, 83)
RAMP: tuple[Colour, ...] = (
    (87, 17, 107),
    (140, 35, 104),
    (189, 56, 83),
    (227, 91, 49),
    (247, 141, 18),
    (248, 199, 51),
    (252, 255, 164),
)
"""Each has about 1.5 times the luminance of the one before, as WCAG 2.2 counts it: relative luminance + 0.05."""

FLOAT_DECADES = range(-9, 4)


@dataclass(frozen=True)
class Scale:
    """Classes of |difference| for one type. Class 0 is "same"."""

    lower_bounds: tuple[float, ...]
    """Smallest |difference| of each class, rising; the second of floats is the smallest above 0."""
    labels: tuple[str, ...]
    colours: tuple[Colour, ...]
    """RGB, 8 bits."""
    unit: str
    """What the labels count, as a legend says it."""

    def classes(self, magnitude: NDArray[Any]) -> NDArray[np.uint8]:
        """The class of each |difference|; any shape, finite or infinite, no NaN."""
        bounds = np.asarray(self.lower_bounds[1:])
        return np.asarray(np.searchsorted(bounds, magnitude, side="right"), np.uint8)

    @property
    def legend(self) -> list[tuple[str, Colour]]:
        """A label for each colour; classes of one colour have one, as `64–255`."""
        entries: list[tuple[str, Colour]] = []
        for label, colour in zip(self.labels, self.colours, strict=True):
            if entries and entries[-1][1] == colour:
                first, _ = entries.pop()
                label = first if "1e" in first else f"{first.partition('–')[0]}–{label.rpartition('–')[2]}"
            entries.append((label, colour))
        return entries


@cache
def scale_for(dtype: Any) -> Scale:
    """The classes of a type of sample."""
    kind = np.dtype(dtype)
    return _integers(int(np.iinfo(kind).max)) if kind.kind == "u" else _floats()


def magnitude_of(reference: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    """|other − reference|: int32 for integers, float64 for floats; exact, but for the one rounding of float64.

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


def _integers(largest: int) -> Scale:
    bounds = [0, 1, 2, 3, *(1 << bit for bit in range(2, largest.bit_length()))]
    labels = [
        f"{low:,}" if low + 1 == high else f"{low:,}–{high - 1:,}"
        for low, high in zip(bounds, [*bounds[1:], largest + 1], strict=True)
    ]
    colours = SAME_COLOUR, *_ramp(len(bounds) - 1)
    return Scale(tuple(map(float, bounds)), tuple(labels), colours, f"levels of {largest:,}")


def _floats() -> Scale:
    smallest = float(np.nextafter(0, 1))
    bounds = (0.0, smallest, *(10.0**decade for decade in FLOAT_DECADES), np.inf)
    labels = ["0", f"below 1e{FLOAT_DECADES[0]}"]
    labels += [f"from 1e{decade}" for decade in FLOAT_DECADES]
    labels.append("NaN or infinite")
    colours = SAME_COLOUR, *_ramp(len(bounds) - 2), UNBOUNDED_COLOUR
    return Scale(bounds, tuple(labels), colours, "absolute difference")


def _ramp(classes: int) -> list[Colour]:
    """A colour for each class above "same"."""
    return [RAMP[len(RAMP) - 1 - (classes - number) * len(RAMP) // classes] for number in range(1, classes + 1)]
