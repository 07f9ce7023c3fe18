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
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.geometry import bands
from edgeconv.core.records import Amount, Meta, Natural, Part, Share
from edgeconv.difference.scale import magnitude_of, scale_for
from edgeconv.errors import UsageError

STRIP_SAMPLES = {1: 2**18, 2: 2**20, 4: 2**18, 8: 2**18}
"""Samples of a strip by their size in bytes. 16 bits get more, to pay for their wide histogram once a strip."""

SPARSE_SHARE = 1 / 16
"""Below this share of unequal samples it is quicker to pick them out than to tally all."""

MAX_LISTED = 100
"""Regions that are listed, the largest first; all are counted."""

JUDGED, IGNORED = 0, 1
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
        if self.ignore_border and 2 * self.ignore_border >= min(shape[:2]):
            raise UsageError(
                f"--ignore-border {self.ignore_border} leaves nothing of {shape[1]}×{shape[0]} pixels: use less."
            )
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
            raise UsageError("--ignore leaves no pixel to judge: take a region out of its file.")
        return mask


class SampleFigures(Part):
    """Figures of some of the samples: those that are judged, all, or those of one channel."""

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
    ulp: Annotated[Natural | None, Meta(description="null: integers, or one of the two is NaN")]


class Figures(Part, omit_defaults=True):
    """Everything that one pass found."""

    same: Annotated[bool, Meta(description="not more than the allowed number of judged samples differ")]
    judged: SampleFigures
    differing_pixels: Annotated[Natural, Meta(description="judged, with at least one differing sample")]
    first: Annotated[Spot | None, Meta(description="the first differing, judged pixel in reading order")]
    worst: Annotated[Spot | None, Meta(description="the first judged sample with the largest difference")]
    peak: float
    whole: SampleFigures
    channels: dict[str, SampleFigures]
    region_count: Natural
    regions: Annotated[tuple[Region, ...], Meta(description="the largest")]
    ignored: Annotated[SampleFigures | None, Meta(description="of the pixels that are not judged")] = None
    ssim: float | None = None


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
    kind = _Integers if reference.dtype.kind == "u" else _Floats
    tally: _Tally = kind(reference.dtype, channels)
    differs = np.zeros((height, width), bool)
    rows = max(1, STRIP_SAMPLES[reference.dtype.itemsize] // (width * channels))
    # One worker tallies while differing pixels are found and labelled: OpenCV and most of NumPy let go of the lock.
    with ThreadPoolExecutor(1) as pool:
        tallied = []
        for start, stop in bands(height, rows):
            before, after = reference[start:stop], other[start:stop]
            mask = None if ignored is None else ignored[start:stop]
            unequal = before != after
            if not unequal.any():
                tallied.append(pool.submit(tally.add_equal, before, mask))
                continue
            beyond = _beyond(before, after, allowance, unequal)
            tallied.append(pool.submit(tally.add, before, after, unequal, beyond, mask, start))
            for channel in range(channels):
                differs[start:stop] |= beyond[..., channel]
            if mask is not None:
                differs[start:stop] &= ~mask
        pixels, first, count, regions = _regions(differs)
    for each in tallied:
        each.result()
    every = tuple(range(channels))
    whole = tally.figures((JUDGED, IGNORED), every)
    judged = whole if ignored is None else tally.figures((JUDGED,), every)
    return Figures(
        same=judged.differing_samples <= allowance.max_count,
        judged=judged,
        differing_pixels=pixels,
        first=_spot(reference, other, first),
        worst=_spot(reference, other, tally.worst),
        peak=tally.peak,
        whole=whole,
        channels={name: tally.figures((JUDGED, IGNORED), (c,)) for c, name in enumerate(CHANNEL_NAMES[channels])},
        region_count=count,
        regions=regions,
        ignored=None if ignored is None else tally.figures((IGNORED,), every),
    )


def ulp_distance(reference: NDArray[Any], other: NDArray[Any]) -> NDArray[np.int64]:
    """Steps between floats of one type (float16, float32, float64), any shape; −1 where either is NaN.

    Of float64 there may be more than an int64 holds: then as many as it does.
    """
    signed: Any = {2: np.int16, 4: np.int32, 8: np.int64}[reference.dtype.itemsize]
    most = np.iinfo(np.int64).max

    def key(values: NDArray[Any]) -> NDArray[np.uint64]:
        # The bits of positive floats rise with them; those of negative ones fall. Turned over they form one line.
        bits = np.ascontiguousarray(values).view(signed).astype(np.int64)
        line = np.where(bits < 0, np.iinfo(signed).min - bits, bits).astype(np.int64)
        # Counted from 0 they keep their order, and a difference may be 64 bits long.
        return np.asarray(line.view(np.uint64) + np.uint64(2**63), np.uint64)

    one, two = key(reference), key(other)
    distance = np.minimum(np.maximum(one, two) - np.minimum(one, two), np.uint64(most)).astype(np.int64)
    return np.where(np.isnan(reference) | np.isnan(other), -1, distance)


def _regions(differs: NDArray[np.bool_]) -> tuple[int, tuple[int, int] | None, int, tuple[Region, ...]]:
    """How many pixels differ, the first of them (y, x), how many regions they form, and the largest of these.

    Regions of one size stand from the top, then from the left.
    """
    rows = np.flatnonzero(differs.any(axis=1))
    if not rows.size:
        return 0, None, 0, ()
    import cv2

    top, bottom = int(rows[0]), int(rows[-1]) + 1
    first = top, int(differs[top].argmax())
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
    return int(found[:, 4].sum()), first, len(found), regions


def _spot(reference: NDArray[Any], other: NDArray[Any], place: tuple[int, int] | None) -> Spot | None:
    if place is None:
        return None
    y, x = place
    before, after = reference[y, x], other[y, x]
    channel = int(magnitude_of(before[None], after[None]).argmax())
    ulp = None
    if before.dtype.kind == "f":
        steps = int(ulp_distance(before, after)[channel])
        ulp = None if steps < 0 else steps
    return Spot(
        y=y,
        x=x,
        channel=CHANNEL_NAMES[before.size][channel],
        reference=tuple(before.tolist()),
        other=tuple(after.tolist()),
        difference=float(after[channel]) - float(before[channel]),
        ulp=ulp,
    )


def _beyond(
    reference: NDArray[Any], other: NDArray[Any], allowance: Allowance, unequal: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Samples that differ by more than was allowed."""
    if reference.dtype.kind == "u" and allowance.atol == allowance.rtol == 0:
        return unequal
    limit: Any = allowance.atol
    if allowance.rtol:
        limit = limit + allowance.rtol * np.abs(reference.astype(np.float64))
        limit[~np.isfinite(limit)] = allowance.atol  # nothing is near a NaN or an infinity
    beyond: NDArray[np.bool_] = magnitude_of(reference, other) > limit
    if allowance.ulp:
        steps = ulp_distance(reference, other)
        beyond &= (steps < 0) | (steps > allowance.ulp)
    return beyond


class _Tally(ABC):
    """Sums over cells: (JUDGED or IGNORED, channel)."""

    peak: float
    worst: tuple[int, int] | None = None
    """y, x of the first judged sample with the largest difference so far."""

    def __init__(self, dtype: np.dtype[Any], channels: int) -> None:
        self.scale = scale_for(dtype)
        self.cells = 2, channels
        self.differing = np.zeros(self.cells, np.int64)
        self.worst_magnitude = 0.0

    def add(
        self,
        reference: NDArray[Any],
        other: NDArray[Any],
        unequal: NDArray[np.bool_],
        beyond: NDArray[np.bool_],
        ignored: NDArray[np.bool_] | None,
        top: int,
    ) -> None:
        """Count a strip, HWC, from row `top` on: `beyond` are its differing samples, `ignored` is a mask, H×W."""
        for channel in range(self.cells[1]):
            plane = np.ascontiguousarray(beyond[..., channel])
            left_out = 0 if ignored is None else np.count_nonzero(plane & ignored)
            self.differing[:, channel] += np.array([np.count_nonzero(plane) - left_out, left_out])
        if self.add_unequal(reference, other, unequal, ignored) > self.worst_magnitude:
            magnitude = magnitude_of(reference, other)
            if ignored is not None:
                magnitude[ignored] = 0
            y, x, _ = np.unravel_index(int(magnitude.argmax()), magnitude.shape)
            self.worst, self.worst_magnitude = (top + int(y), int(x)), float(magnitude.max())

    @abstractmethod
    def add_unequal(
        self,
        reference: NDArray[Any],
        other: NDArray[Any],
        unequal: NDArray[np.bool_],
        ignored: NDArray[np.bool_] | None,
    ) -> float:
        """Count the differences of a strip; returns the largest |difference| that is judged."""

    @abstractmethod
    def add_equal(self, reference: NDArray[Any], ignored: NDArray[np.bool_] | None) -> None:
        """Count a strip whose two sides are equal."""

    @abstractmethod
    def figures(self, zones: Sequence[int], channels: Sequence[int]) -> SampleFigures:
        """The figures of some cells together."""

    def _psnr_db(self, rmse: float) -> float:
        if rmse == 0:
            return math.inf
        return 20 * math.log10(self.peak / rmse) if self.peak else -math.inf


def _pixels(shape: tuple[int, ...], ignored: NDArray[np.bool_] | None) -> tuple[int, int]:
    """How many pixels of a strip are judged, and how many are not."""
    left_out = 0 if ignored is None else int(np.count_nonzero(ignored))
    return shape[0] * shape[1] - left_out, left_out


class _Integers(_Tally):
    """A histogram of signed differences per cell."""

    def __init__(self, dtype: np.dtype[Any], channels: int) -> None:
        super().__init__(dtype, channels)
        largest = int(np.iinfo(dtype).max)
        self.peak = float(largest)
        self.zero = largest
        self.values = np.arange(-largest, largest + 1)
        self.counts = np.zeros((*self.cells, self.values.size), np.int64)
        self.narrow = np.int16 if self.counts.size < 2**15 else np.int32
        # One histogram serves all cells: each has its own stretch of bins.
        self.ignored_bins = self.narrow(channels * self.values.size)
        self.bin_of_equal = (np.arange(channels) * self.values.size + largest).astype(self.narrow)

    def add_unequal(
        self,
        reference: NDArray[Any],
        other: NDArray[Any],
        unequal: NDArray[np.bool_],
        ignored: NDArray[np.bool_] | None,
    ) -> float:
        is_sparse = np.count_nonzero(unequal) < SPARSE_SHARE * unequal.size
        if is_sparse:
            rows, columns, channels = np.nonzero(unequal)
            bins = np.subtract(other[unequal], reference[unequal], dtype=self.narrow)
            bins += self.bin_of_equal[channels]
            if ignored is not None:
                bins[ignored[rows, columns]] += self.ignored_bins
            self.add_equal(reference, ignored)
        else:
            bins = np.subtract(other, reference, dtype=self.narrow)
            bins += self.bin_of_equal
            if ignored is not None:
                bins[ignored] += self.ignored_bins
        found = np.bincount(bins.ravel(), minlength=self.counts.size).reshape(self.counts.shape)
        self.counts += found
        if is_sparse:
            self.counts[..., self.zero] -= found.sum(axis=-1)  # add_equal has counted them as equal
        return float(np.abs(self.values[found[JUDGED].any(axis=0)]).max(initial=0))

    def add_equal(self, reference: NDArray[Any], ignored: NDArray[np.bool_] | None) -> None:
        self.counts[..., self.zero] += np.array(_pixels(reference.shape, ignored))[:, None]

    def figures(self, zones: Sequence[int], channels: Sequence[int]) -> SampleFigures:
        counts = self.counts[np.ix_(zones, channels)].sum(axis=(0, 1))
        samples, unequal = int(counts.sum()), int(counts.sum() - counts[self.zero])
        differing = int(self.differing[np.ix_(zones, channels)].sum())
        of = max(1, samples)
        rmse = math.sqrt(int(counts @ self.values**2) / of)
        return SampleFigures(
            samples=samples,
            unequal_samples=unequal,
            differing_samples=differing,
            unbounded_samples=0,
            max_abs=float(np.abs(self.values[counts > 0]).max(initial=0)),
            mean=int(counts @ self.values) / of,
            mean_abs=int(counts @ np.abs(self.values)) / of,
            rmse=rmse,
            psnr_db=self._psnr_db(rmse),
            max_ulp=None,
            histogram=tuple(self.scale.counts(np.abs(self.values), counts).tolist()),
            differing_share=differing / of,
        )


class _Floats(_Tally):
    """Sums and largest values per cell, in float64; of float64 in more, as their squares may be beyond it."""

    def __init__(self, dtype: np.dtype[Any], channels: int) -> None:
        super().__init__(dtype, channels)
        self.peak = 0.0
        self.samples, self.unequal, self.unbounded, self.max_ulp = np.zeros((4, *self.cells), np.int64)
        self.wide: Any = np.longdouble if dtype == np.float64 else np.float64
        self.sum, self.sum_abs, self.sum_squares = np.zeros((3, *self.cells), self.wide)
        self.max_abs = np.zeros(self.cells)
        self.histogram = np.zeros((*self.cells, len(self.scale.labels)), np.int64)

    def add_unequal(
        self,
        reference: NDArray[Any],
        other: NDArray[Any],
        unequal: NDArray[np.bool_],
        ignored: NDArray[np.bool_] | None,
    ) -> float:
        self.add_equal(reference, ignored)
        magnitude = magnitude_of(reference, other)
        largest = 0.0
        for channel in range(self.cells[1]):
            apart = magnitude[..., channel] > 0
            zones = [apart] if ignored is None else [apart & ~ignored, apart & ignored]
            for zone, chosen in enumerate(zones):
                size = magnitude[..., channel][chosen]
                before, after = reference[..., channel][chosen], other[..., channel][chosen]
                self._add_chosen((zone, channel), size, before, after)
                if zone == JUDGED:
                    largest = max(largest, float(size.max(initial=0)))
        return largest

    def _add_chosen(self, cell: tuple[int, int], size: NDArray[Any], before: NDArray[Any], after: NDArray[Any]) -> None:
        """Count unequal samples of one cell, each a |difference| and both values."""
        bounded = np.isfinite(size)
        finite = size[bounded]
        self.unequal[cell] += size.size
        self.unbounded[cell] += size.size - finite.size
        self.sum[cell] += np.subtract(after[bounded], before[bounded], dtype=self.wide).sum()
        self.sum_abs[cell] += finite.sum(dtype=self.wide)
        self.sum_squares[cell] += np.square(finite, dtype=self.wide).sum()
        self.max_abs[cell] = max(self.max_abs[cell], size.max(initial=0))
        self.max_ulp[cell] = max(self.max_ulp[cell], ulp_distance(before, after).max(initial=0))
        self.histogram[cell] += self.scale.counts(size)
        self.histogram[cell][0] -= size.size  # add_equal has counted them all as the same

    def add_equal(self, reference: NDArray[Any], ignored: NDArray[np.bool_] | None) -> None:
        pixels = np.array(_pixels(reference.shape, ignored))[:, None]
        self.samples += pixels
        self.histogram[..., 0] += pixels
        finite = np.abs(reference[np.isfinite(reference)])
        self.peak = max(self.peak, float(finite.max(initial=0)))

    def figures(self, zones: Sequence[int], channels: Sequence[int]) -> SampleFigures:
        cells = np.ix_(zones, channels)
        samples, unbounded = int(self.samples[cells].sum()), int(self.unbounded[cells].sum())
        differing = int(self.differing[cells].sum())
        of = max(1, samples - unbounded)
        rmse = float(np.sqrt(self.sum_squares[cells].sum() / of))
        return SampleFigures(
            samples=samples,
            unequal_samples=int(self.unequal[cells].sum()),
            differing_samples=differing,
            unbounded_samples=unbounded,
            max_abs=float(self.max_abs[cells].max()),
            mean=float(self.sum[cells].sum() / of),
            mean_abs=float(self.sum_abs[cells].sum() / of),
            rmse=rmse,
            psnr_db=self._psnr_db(rmse),
            max_ulp=int(self.max_ulp[cells].max()),
            histogram=tuple(self.histogram[cells].sum(axis=(0, 1)).tolist()),
            differing_share=differing / max(1, samples),
        )
