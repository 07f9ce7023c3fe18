"""3×3 filters as data: one table of named filters, and parsing of user-defined ones.

A filter is one or several 3×3 kernels and the rule that combines their responses:

    single       one kernel, its response unchanged
    magnitude    sqrt(gx² + gy²) of two kernels
    maximum      the largest of eight compass directions

A filter bank is up to 256 filters of one rule that are computed together, each with its own outputs.

Kernels are correlated, not flipped: a positive weight on the right responds to a picture that brightens to the
right. They have their textbook whole-number weights, without scaling, so Sobel on a full 8-bit step is 1020
(scikit-image divides by 4 and gives 0.707 of the range; libvips clips at 254).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.choices import CHAINS, CHANNELS, Channels, Luma
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.option import did_you_mean
from edgeconv.errors import UsageError

Combine = Literal["single", "magnitude", "maximum"]

RGB_CHANNELS = 3
GREY_CHANNELS = 1
CHANNEL_COUNTS = (GREY_CHANNELS, RGB_CHANNELS)
"""Channels that a picture may have."""
MOST_FILTERS = 256
"""Filters of a bank."""

Weights = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Filter:
    """`kernels` is (directions, 3, 3), or (directions, filters, in, 3, 3) for a bank; it is made read-only."""

    name: str
    kernels: Weights
    combine: Combine
    summary: str
    source: str
    members: tuple[str, ...] = ()
    """Names of the filters of a bank; none where its weights are numbers."""
    file: Path | None = None
    """The file it was read from, if any: no output may replace it."""

    def __post_init__(self) -> None:
        self.kernels.setflags(write=False)

    @property
    def is_bank(self) -> bool:
        """True where several filters are computed together (a bank may have one)."""
        return self.kernels.ndim == 5

    @property
    def is_of_the_table(self) -> bool:
        """Whether it is what its name stands for: a copy of a line of `FILTERS` too, as another process has one."""
        same = next((entry for entry in FILTERS if entry.name == self.name), None)
        return same is not None and self.combine == same.combine and np.array_equal(self.kernels, same.kernels)

    @property
    def is_full_set(self) -> bool:
        """True where every pair of output and input channel of an RGB picture has its own kernel."""
        return self.is_bank and self.kernels.shape[2] == RGB_CHANNELS

    @property
    def filters(self) -> int:
        """How many filters it has: 1, or those of the bank."""
        return int(self.kernels.shape[1]) if self.is_bank else 1

    @property
    def labels(self) -> tuple[str, ...]:
        """What the pictures that it gives are called, where it gives several: by their filters, or k00, k01, ….

        One filter gives one picture, and so do 3×3×3×3 numbers: they are a convolution from RGB to RGB.
        """
        if self.filters == 1 or (not self.members and self.is_full_set and self.filters == RGB_CHANNELS):
            return ()
        digits = max(2, len(str(self.filters - 1)))
        return self.members or tuple(f"k{number:0{digits}}" for number in range(self.filters))


def _kernel(*rows: tuple[float, float, float]) -> NDArray[np.float32]:
    return np.array(rows, dtype=np.float32)


def _derivative_x(smooth: tuple[int, int, int]) -> NDArray[np.float32]:
    """Smoothing along the column, central difference along the row."""
    return np.outer(smooth, (-1, 0, 1)).astype(np.float32)


COMPASS_RING = ((0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0))
"""The eight outer positions of a 3×3 kernel, clockwise from the top left."""


def _compass(name: str, north: NDArray[np.float32], source: str) -> Filter:
    """The eight kernels made by rotating the outer ring of `north` clockwise in steps of 45 degrees."""
    ring = [north[place] for place in COMPASS_RING]
    turned = np.repeat(north[np.newaxis], len(ring), axis=0)
    for step in range(len(ring)):
        for index, place in enumerate(COMPASS_RING):
            turned[(step, *place)] = ring[(index - step) % len(ring)]
    return Filter(name, turned, "maximum", "largest of eight compass directions", source)


SOBEL_X = _derivative_x((1, 2, 1))
SCHARR_X = _derivative_x((3, 10, 3))
PREWITT_X = _derivative_x((1, 1, 1))


def _single(name: str, kernel: NDArray[np.float32], summary: str, source: str) -> Filter:
    return Filter(name, kernel[np.newaxis], "single", summary, source)


def _magnitude(name: str, kernel_x: NDArray[np.float32], source: str) -> Filter:
    return Filter(name, np.stack([kernel_x, kernel_x.T]), "magnitude", f"gradient magnitude of {name}-x and -y", source)


_GONZALEZ = "Gonzalez and Woods, Digital Image Processing"
_SOBEL = "Sobel and Feldman 1968"
_SCHARR = "Scharr 2000, whole-number form"
_PREWITT = "Prewitt 1970"

FILTERS: tuple[Filter, ...] = (
    _single("laplacian4", _kernel((0, 1, 0), (1, -4, 1), (0, 1, 0)), "second derivative, four neighbours", _GONZALEZ),
    _single("laplacian8", _kernel((1, 1, 1), (1, -8, 1), (1, 1, 1)), "second derivative, eight neighbours", _GONZALEZ),
    _single("sobel-x", SOBEL_X, "derivative along x, smoothed 1 2 1", _SOBEL),
    _single("sobel-y", SOBEL_X.T, "derivative along y, smoothed 1 2 1", _SOBEL),
    _single("scharr-x", SCHARR_X, "derivative along x, smoothed 3 10 3", _SCHARR),
    _single("scharr-y", SCHARR_X.T, "derivative along y, smoothed 3 10 3", _SCHARR),
    _single("prewitt-x", PREWITT_X, "derivative along x, smoothed 1 1 1", _PREWITT),
    _single("prewitt-y", PREWITT_X.T, "derivative along y, smoothed 1 1 1", _PREWITT),
    _single("sharpen", _kernel((0, -1, 0), (-1, 5, -1), (0, -1, 0)), "picture minus laplacian4", _GONZALEZ),
    _single("emboss", _kernel((-2, -1, 0), (-1, 1, 1), (0, 1, 2)), "relief lit from the top left", "common practice"),
    _single("identity", _kernel((0, 0, 0), (0, 1, 0), (0, 0, 0)), "the picture itself", "definition"),
    _magnitude("sobel", SOBEL_X, _SOBEL),
    _magnitude("scharr", SCHARR_X, _SCHARR),
    _magnitude("prewitt", PREWITT_X, _PREWITT),
    _compass("kirsch", _kernel((5, 5, 5), (-3, 0, -3), (-3, -3, -3)), "Kirsch 1971"),
    _compass("robinson", _kernel((1, 2, 1), (0, 0, 0), (-1, -2, -1)), "Robinson 1977"),
)


CUSTOM = "custom"
"""The name of a kernel that came without one."""


def filter_names() -> tuple[str, ...]:
    """The names of the table, in its order."""
    return tuple(entry.name for entry in FILTERS)


def named_filter(name: str) -> Filter:
    """Look a filter up by name; raises UsageError naming those there are."""
    for entry in FILTERS:
        if entry.name == name:
            return entry
    if name in CHAINS:
        raise UsageError(
            f"'{name}' is a chain of stages, and only single filters can be used here: use one of "
            f"{', '.join(filter_names())}, or 'edgeconv run', 'batch' or 'compare' for '{name}'."
        )
    known = f"use one of {', '.join((*filter_names(), *CHAINS))}, or --kernel."
    raise UsageError(f"Filter '{name}' is not known: {known}{did_you_mean(name, (*filter_names(), *CHAINS))}")


def custom_filter(values: Any, name: str = CUSTOM) -> Filter:
    """A filter from nested numbers: 3×3, or a bank K×C×3×3 as (filter, input channel, row, column), C 1 or 3.

    Raises UsageError for any other shape and for values that are not finite numbers.
    """
    try:
        raw = np.asanyarray(values)
        if raw.dtype.kind == "c" or isinstance(raw, np.ma.MaskedArray):
            raise TypeError
        weights = np.array(raw, dtype=np.float64)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise UsageError(f"Kernel '{name}' is not a 3×3 table of real numbers, none of them masked.") from None
    number, channels = weights.shape[:2] if weights.ndim == 4 else (1, GREY_CHANNELS)
    known = weights.shape[-2:] == (KERNEL_SIZE, KERNEL_SIZE) and weights.ndim in (2, 4)
    if not known or not 1 <= number <= MOST_FILTERS or channels not in CHANNEL_COUNTS:
        shape = "×".join(str(side) for side in weights.shape) or "a single number"
        raise UsageError(
            f"Kernel '{name}' is {shape}: it must be 3×3, or K×C×3×3 (filter, input channel, row, column) "
            f"with K up to {MOST_FILTERS} and C 1 or 3."
        )
    if not np.isfinite(weights).all() or np.abs(weights).max() > np.finfo(np.float32).max:
        raise UsageError(f"Kernel '{name}' has a value that is not a finite float32 number.")
    return Filter(name, weights[np.newaxis], "single", "given by the user", "the user")


def filter_bank(members: Sequence[str | Filter]) -> Filter:
    """Several filters to be computed together: single ones, or gradient magnitudes, or compass filters.

    Raises UsageError where their responses are combined by different rules.
    """
    filters = [named_filter(member) if isinstance(member, str) else member for member in members]
    if not 1 <= len(filters) <= MOST_FILTERS:
        raise UsageError(f"A filter bank has 1 to {MOST_FILTERS} filters, not {len(filters)}.")
    first = filters[0]
    for other in filters:
        if other.is_bank:
            raise UsageError(f"Filter '{other.name}' is a bank itself: give its filters one by one.")
        if (other.combine, len(other.kernels)) != (first.combine, len(first.kernels)):
            raise UsageError(
                f"Filters '{first.name}' ({first.combine}) and '{other.name}' ({other.combine}) cannot be in one bank: "
                f"use filters whose responses are combined alike, or two runs."
            )
    kernels = np.stack([each.kernels for each in filters], axis=1)[:, :, np.newaxis]
    names = tuple(each.name for each in filters)
    summary = f"a bank of {len(filters)} filters"
    return Filter(",".join(names), kernels, first.combine, summary, "the user", members=names)


def parse_weight(text: str) -> float:
    """A number, or a fraction such as `1/3` or `-2.5/9`. Raises ValueError."""
    above, slash, below = text.partition("/")
    if not slash:
        return float(text)
    divisor = float(below)
    if not divisor:
        raise ValueError(f"'{text}' divides by zero")
    return float(above) / divisor


def parse_kernel(text: str) -> Filter:
    """A 3×3 kernel written as rows: `0,1,0; 1,-4,1; 0,1,0` (spaces or commas within a row), fractions as `1/3`."""
    rows = [row.replace(",", " ").split() for row in text.strip().strip(";").split(";")]
    try:
        values = [[parse_weight(cell) for cell in row] for row in rows]
    except ValueError:
        raise UsageError(f"--kernel '{text}' has a cell that is not a number: write '0,1,0;1,-4,1;0,1,0'.") from None
    if len({len(row) for row in values}) != 1:
        raise UsageError(f"--kernel '{text}' has rows of unequal length: write '0,1,0;1,-4,1;0,1,0'.")
    return custom_filter(values)


# --- from a filter to weights -----------------------------------------------------------------------------------

LUMA_WEIGHTS: dict[Luma, tuple[float, float, float]] = {
    "bt601": (0.299, 0.587, 0.114),
    "bt709": (0.2126, 0.7152, 0.0722),
}
"""Share of R, G and B in luma: ITU-R BT.601-7 section 2.5.1 and BT.709-6 section 3.2."""


@dataclass(frozen=True, eq=False)
class WeightSet:
    """The weights of one problem: (directions, out, in / groups, 3, 3)."""

    weights: Weights
    groups: int
    combine: Combine = field(default="single")


def weight_set(chosen: Filter, channels: Channels, luma: Luma = "bt601", in_channels: int = RGB_CHANNELS) -> WeightSet:
    """Spread a filter, or a bank of K, over the channels of a picture.

    RGB     mix    a kernel is used for all three input channels; a full set unchanged. Outputs: K of a bank; one
                   filter has three, all alike, as in a 3→3 convolution
            each   every channel separately (three groups of one). Output c·K + k is filter k of channel c
            luma   K outputs: luma is linear, so its three shares are folded into the kernels
    grey    one channel in, K outputs, for every choice of channels
    """
    if luma not in LUMA_WEIGHTS:
        raise UsageError(f"Luma '{luma}' is not one of {', '.join(LUMA_WEIGHTS)}.")
    if channels not in CHANNELS:
        raise UsageError(f"Channels '{channels}' is not one of {', '.join(CHANNELS)}.")
    if chosen.is_full_set:
        if in_channels != RGB_CHANNELS:
            raise UsageError(f"Kernel '{chosen.name}' has kernels for three channels, and the picture is grey.")
        if channels != "mix":
            raise UsageError(f"Kernel '{chosen.name}' has kernels for three channels, which needs --channels mix.")
        return WeightSet(chosen.kernels, groups=1, combine=chosen.combine)
    tall = chosen.kernels if chosen.is_bank else chosen.kernels[:, np.newaxis, np.newaxis]
    if in_channels == GREY_CHANNELS:
        return WeightSet(tall, groups=1, combine=chosen.combine)
    if channels == "mix":
        outputs = 1 if chosen.is_bank else RGB_CHANNELS
        return WeightSet(np.tile(tall, (1, outputs, RGB_CHANNELS, 1, 1)), groups=1, combine=chosen.combine)
    if channels == "each":
        return WeightSet(np.tile(tall, (1, RGB_CHANNELS, 1, 1, 1)), groups=RGB_CHANNELS, combine=chosen.combine)
    share = np.array(LUMA_WEIGHTS[luma], dtype=np.float64)
    folded = tall.astype(np.float64) * share[:, np.newaxis, np.newaxis]
    return WeightSet(folded, groups=1, combine=chosen.combine)
