"""Exact figures of two pictures, in one pass over strips of rows that stay in the processor's caches.

Layout: HWC with one or three channels; both pictures have the same shape and type. Beside the two pictures a byte per
pixel is held where they differ, and four more while regions are found. What each word means:

    unequal     the two samples are not the same number. NaN equals NaN, +0 equals −0, an infinity equals itself
    differing   unequal, and beyond the allowance:  |difference| > atol + rtol · |reference|, and for floats
                more than `ulp` representable numbers apart. A NaN against a number always differs
    difference  other − reference
    ULP         the number of steps from one float to the other through every float between them (both signs have
                one zero; infinity is one step past the largest number). Not defined, so not counted, for NaN
    unbounded   samples where a NaN or an infinity meets another number: the largest difference is then infinite;
                mean, mean absolute and RMSE are those of the other samples
    ignored     a mask of the pixels that are not judged: a border along the sides, and rectangles anywhere
    region      differing, judged pixels that are connected (to all eight neighbours)
    PSNR        20 · log10(peak / RMSE) in dB; peak is the type's largest value, of floats the largest finite
                |reference|

Integers are tallied by a histogram of their signed differences, from which every figure follows exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.geometry import bands
from edgeconv.core.output import finite_range, magnitude
from edgeconv.core.records import Amount, Meta, Natural, Part, Share
from edgeconv.difference.scale import magnitude_of, scale_for
from edgeconv.errors import UsageError

STRIP_SAMPLES = {1: 2**18, 2: 2**20, 4: 2**16, 8: 2**16}
"""Samples of a strip by their size in bytes: of floats few, as what is made of them takes eight bytes a sample; 16 bits
get more, to pay for their wide histogram once a strip."""

MAX_LISTED = 100
"""Regions that are listed, the largest first; all are counted."""

CHANNEL_NAMES = {1: ("grey",), 3: ("R", "G", "B")}

if TYPE_CHECKING:
    Unbounded = float
else:
    Unbounded = float | None
"""May be infinite or NaN, and is null in JSON then: the type on the right is what the JSON Schema is made from."""


class Box(Part):
    """A rectangle of pixels, counted from 0 at the top left; bounds are inclusive."""

    left: Natural
    top: Natural
    right: Natural
    bottom: Natural

    def __str__(self) -> str:
        return f"x {self.left}–{self.right}, y {self.top}–{self.bottom}"


class Region(Box):
    """The bounds of differing pixels that are connected."""

    pixels: Natural


@dataclass(frozen=True)
class Allowance:
    """What is accepted as the same."""

    atol: float = 0.0
    rtol: float = 0.0
    ulp: int = 0
    """Floats only: accepted as well where at most N representable numbers apart."""
    max_count: int = 0
    """Number of differing samples that is tolerated."""
    ignore_border: int = 0
    """Pixels along each side that are not judged (but still reported)."""
    ignored_regions: tuple[Box, ...] = ()
    """The same for rectangles anywhere, which may overlap."""

    def check(self, shape: tuple[int, ...], dtype: Any) -> None:
        """Raise UsageError for what has no meaning with pictures of `shape` and `dtype`."""
        for name in ("atol", "rtol", "ulp", "max_count", "ignore_border"):
            value = getattr(self, name)
            if not math.isfinite(value) or value < 0:
                raise UsageError(f"--{name.replace('_', '-')} {value:g} is not a finite number from 0.")
        if self.ulp and np.dtype(dtype).kind == "u":
            raise UsageError(f"--ulp is for floats, and these are {np.dtype(dtype).name}: use --atol.")
        for box in self.ignored_regions:
            if not (0 <= box.left <= box.right < shape[1] and 0 <= box.top <= box.bottom < shape[0]):
                raise UsageError(
                    f"--ignore: the region {box} is not within {shape[1]}×{shape[0]} pixels: draw it anew."
                )

    def ignored(self, shape: tuple[int, ...]) -> NDArray[np.bool_] | None:
        """The mask of the pixels that are not judged, H×W; None where all are. Raises UsageError where none is."""
        if not (self.ignore_border or self.ignored_regions):
            return None
        mask = np.ones(shape[:2], bool)
        margin = self.ignore_border
        mask[margin : shape[0] - margin, margin : shape[1] - margin] = False
        for box in self.ignored_regions:
            mask[box.top : box.bottom + 1, box.left : box.right + 1] = True
        if mask.all():
            raise UsageError(f"--ignore and --ignore-border leave no pixel of {shape[1]}×{shape[0]}: ignore less.")
        return mask


class SampleFigures(Part):
    """Figures of the samples that are judged: all, or those of one channel."""

    samples: Natural
    unequal_samples: Natural
    differing_samples: Natural
    unbounded_samples: Natural
    max_abs: Annotated[Unbounded, Meta(description="null: infinite, as a sample is unbounded")]
    mean: Annotated[float, Meta(description="signed: other − reference")]
    mean_abs: Amount
    rmse: Amount
    psnr_db: Annotated[Unbounded, Meta(description="null: infinite, as nothing is unequal")]
    max_ulp: Annotated[Natural | None, Meta(description="null: integers")]
    histogram: Annotated[tuple[Natural, ...], Meta(description="samples in each of difference_classes")]
    differing_share: Share


class Spot(Part):
    """One pixel with both values, and the channel with the largest difference; null where a value is not finite."""

    y: Natural
    x: Natural
    channel: str
    reference: tuple[Unbounded, ...]
    other: tuple[Unbounded, ...]
    difference: Unbounded


class Figures(Part):
    """Everything that one pass found."""

    same: Annotated[bool, Meta(description="not more than the allowed number of judged samples differ")]
    judged: SampleFigures
    differing_pixels: Annotated[Natural, Meta(description="judged, with at least one differing sample")]
    worst: Annotated[Spot | None, Meta(description="the first judged sample with the largest difference")]
    peak: float
    channels: dict[str, SampleFigures]
    region_count: Natural
    regions: Annotated[tuple[Region, ...], Meta(description="the largest")]
    ignored_samples: Annotated[Natural, Meta(description="of the pixels that are not judged")]
    ignored_differing_samples: Natural


def of_pair(reference: NDArray[Any], other: NDArray[Any], allowance: Allowance | None = None) -> Figures:
    """Compare two pictures of the same shape (HWC) and type (uint8, uint16, float16, float32, float64).

    Raises UsageError for an allowance without meaning here, ValueError where shape or type differ.
    """
    if reference.shape != other.shape or reference.dtype != other.dtype:
        raise ValueError(f"{reference.shape} {reference.dtype} cannot be compared with {other.shape} {other.dtype}")
    allowance = allowance or Allowance()
    allowance.check(reference.shape, reference.dtype)
    ignored = allowance.ignored(reference.shape)
    height, width, channels = reference.shape
    ignored_pixels = 0 if ignored is None else int(np.count_nonzero(ignored))
    sums = [_Sums(reference.dtype, height * width - ignored_pixels) for _ in range(channels)]
    differs = np.zeros((height, width), bool)
    worst, largest, peak, ignored_differing = None, 0.0, 0.0, 0
    rows = max(1, STRIP_SAMPLES[reference.dtype.itemsize] // (width * channels))
    for start, stop in bands(height, rows):
        before, after = reference[start:stop], other[start:stop]
        if reference.dtype.kind == "f":
            peak = max(peak, magnitude(finite_range(before)))
        if np.array_equal(before, after):
            continue
        sizes = magnitude_of(before, after)
        beyond = _beyond(before, after, sizes, allowance)
        if ignored is not None:
            ignored_differing += int(np.count_nonzero(beyond[ignored[start:stop]]))
            sizes[ignored[start:stop]] = 0
            beyond[ignored[start:stop]] = False
        for channel, cell in enumerate(sums):
            unequal = sizes[..., channel] > 0
            if unequal.any():
                cell.differing += int(np.count_nonzero(beyond[..., channel]))
                cell.add(*(_values(each[..., channel], unequal) for each in (before, after, sizes)))
                differs[start:stop] |= beyond[..., channel]
        if (found := max(cell.max_abs for cell in sums)) > largest:
            y, x, _ = np.unravel_index(int(sizes.argmax()), sizes.shape)
            worst, largest = (start + int(y), int(x)), found
    peak = peak if reference.dtype.kind == "f" else float(np.iinfo(reference.dtype).max)
    pixels, count, regions = _regions(differs)
    judged = _figures(sums, peak)
    return Figures(
        same=judged.differing_samples <= allowance.max_count,
        judged=judged,
        differing_pixels=pixels,
        worst=_spot(reference, other, worst),
        peak=peak,
        channels={name: _figures([cell], peak) for name, cell in zip(CHANNEL_NAMES[channels], sums, strict=True)},
        region_count=count,
        regions=regions,
        ignored_samples=ignored_pixels * channels,
        ignored_differing_samples=ignored_differing,
    )


def ulp_distance(reference: NDArray[Any], other: NDArray[Any]) -> NDArray[np.int64]:
    """Steps between floats of one type (float16, float32, float64), any shape; −1 where either is NaN.

    Of float64 there may be more than an int64 holds: then as many as it does.
    """
    signed, unsigned = np.dtype(f"i{reference.itemsize}"), np.dtype(f"u{reference.itemsize}")

    def place(values: NDArray[Any]) -> NDArray[Any]:
        # The bits of positive floats rise with them; those of negative ones fall. Turned over they form one line.
        bits = np.ascontiguousarray(values).view(signed)
        return np.where(bits < 0, np.iinfo(signed).min - bits, bits)

    one, two = place(reference), place(other)
    steps = (np.maximum(one, two) - np.minimum(one, two)).view(unsigned)  # whose highest bit is a digit like the others
    distance = np.minimum(steps.astype(np.uint64), np.uint64(np.iinfo(np.int64).max)).astype(np.int64)
    return np.where(np.isnan(reference) | np.isnan(other), -1, distance)


def _regions(differs: NDArray[np.bool_]) -> tuple[int, int, tuple[Region, ...]]:
    """How many pixels differ, how many regions they form, and the largest of these.

    Regions of one size stand from the top, then from the left.
    """
    rows = np.flatnonzero(differs.any(axis=1))
    if not rows.size:
        return 0, 0, ()
    import cv2

    top, bottom = int(rows[0]), int(rows[-1]) + 1
    columns = np.flatnonzero(differs[top:bottom].any(axis=0))
    left, right = int(columns[0]), int(columns[-1]) + 1
    inside = differs[top:bottom, left:right].view(np.uint8)
    _, _, boxes, _ = cv2.connectedComponentsWithStats(inside, connectivity=8)
    found = boxes[1:]  # the first is what does not differ
    order = np.lexsort((found[:, 0], found[:, 1], -found[:, 4]))[:MAX_LISTED]
    regions = tuple(
        Region(left + x, top + y, left + x + width - 1, top + y + height - 1, pixels)
        for x, y, width, height, pixels in found[order].tolist()
    )
    return int(found[:, 4].sum()), len(found), regions


def _spot(reference: NDArray[Any], other: NDArray[Any], place: tuple[int, int] | None) -> Spot | None:
    if place is None:
        return None
    y, x = place
    before, after = reference[y, x], other[y, x]
    channel = int(magnitude_of(before[None], after[None]).argmax())
    return Spot(
        y=y,
        x=x,
        channel=CHANNEL_NAMES[before.size][channel],
        reference=tuple(before.tolist()),
        other=tuple(after.tolist()),
        difference=float(after[channel]) - float(before[channel]),
    )


def _beyond(
    reference: NDArray[Any], other: NDArray[Any], sizes: NDArray[Any], allowance: Allowance
) -> NDArray[np.bool_]:
    """Samples that differ by more than was allowed; `sizes` are the |differences|."""
    limit: Any = allowance.atol
    if allowance.rtol:
        limit = limit + allowance.rtol * np.abs(reference.astype(np.float64))
        limit[~np.isfinite(limit)] = allowance.atol  # nothing is near a NaN or an infinity
    beyond: NDArray[np.bool_] = sizes > limit
    if allowance.ulp:
        steps = ulp_distance(reference, other)
        beyond &= (steps < 0) | (steps > allowance.ulp)
    return beyond


def _values(samples: NDArray[Any], chosen: NDArray[np.bool_]) -> NDArray[Any]:
    """Those that are chosen, 1-D; a copy of all of them takes a fifth of the time."""
    return samples.ravel() if chosen.all() else samples[chosen]


class _Sums:
    """Sums and largest values of the samples of a channel that are judged."""

    def __init__(self, dtype: np.dtype[Any], samples: int) -> None:
        self.samples = samples
        self.unequal = self.differing = self.unbounded = 0
        self.total: Any = 0
        self.total_abs: Any = 0
        self.total_squares: Any = 0
        self.max_abs = 0.0
        self.max_ulp: int | None = None if dtype.kind == "u" else 0
        self.bounds = np.array(scale_for(dtype).lower_bounds)
        self.histogram = np.zeros(self.bounds.size, np.int64)
        """Of what is unequal."""

    def add(self, before: NDArray[Any], after: NDArray[Any], sizes: NDArray[Any]) -> None:
        """Count samples that are unequal, 1-D and at least one, whose |differences| are `sizes`."""
        self.unequal += sizes.size
        self.max_abs = max(self.max_abs, float(sizes.max()))
        if self.max_ulp is None:  # each |difference| that occurs, and how often: every sum is exact
            counts = np.bincount(sizes, minlength=np.iinfo(before.dtype).max + 1)
            steps = np.arange(counts.size)
            self.histogram += np.add.reduceat(counts, self.bounds.astype(np.int64))
            self.total += int(after.sum(dtype=np.int64)) - int(before.sum(dtype=np.int64))
            self.total_abs += int(steps @ counts)
            self.total_squares += int(np.square(steps) @ counts)
            return
        at_least = [np.count_nonzero(sizes >= bound) for bound in self.bounds]
        self.histogram -= np.diff(at_least, append=0)
        self.max_ulp = max(self.max_ulp, int(ulp_distance(before, after).max()))
        bounded = np.isfinite(sizes)
        self.unbounded += sizes.size - int(np.count_nonzero(bounded))
        steps = np.subtract(_values(after, bounded), _values(before, bounded), dtype=np.float64)
        largest = np.abs(steps).max(initial=0)
        # Squares and sums of the largest float64, and squares of the smallest, are beyond its range.
        unit = np.longdouble(1.0 if largest == 0 or 1e-150 < largest < 1e150 else largest)
        steps /= float(unit)
        self.total += steps.sum() * unit
        self.total_abs += np.abs(steps).sum() * unit
        self.total_squares += np.square(steps).sum() * unit**2


def _figures(cells: Sequence[_Sums], peak: float) -> SampleFigures:
    """The figures of some channels together."""
    samples, unequal, differing, unbounded = (
        sum(getattr(cell, name) for cell in cells) for name in ("samples", "unequal", "differing", "unbounded")
    )
    bounded = max(1, samples - unbounded)
    rmse = float(np.sqrt(sum(cell.total_squares for cell in cells) / bounded))
    histogram = np.sum([cell.histogram for cell in cells], axis=0)
    histogram[0] = samples - unequal
    psnr_db = math.inf if rmse == 0 else 20 * math.log10(peak / rmse) if peak else -math.inf
    return SampleFigures(
        samples=samples,
        unequal_samples=unequal,
        differing_samples=differing,
        unbounded_samples=unbounded,
        max_abs=max(cell.max_abs for cell in cells),
        mean=float(sum(cell.total for cell in cells) / bounded),
        mean_abs=float(sum(cell.total_abs for cell in cells) / bounded),
        rmse=rmse,
        psnr_db=psnr_db,
        max_ulp=None if cells[0].max_ulp is None else max(cell.max_ulp or 0 for cell in cells),
        histogram=tuple(histogram.tolist()),
        differing_share=differing / max(1, samples),
    )
