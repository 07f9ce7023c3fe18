"""Exact figures of two pictures, in one pass over strips of rows that stay in the processor's caches.

Layout: HWC with one or three channels; both pictures have the same shape and type. Beside the two pictures a few
megabytes are held, whatever their size. What each word means:

    unequal     the two samples are not the same number. NaN equals NaN, +0 equals −0, an infinity equals itself
    differing   unequal, and beyond what was allowed:  |difference| > atol + rtol · |reference|, and for floats
                more than `ulp` representable numbers apart. A NaN against a number always differs
    difference  other − reference
    ULP         the number of steps from one float to the other through every float between them (both signs have
                one zero; infinity is one step past the largest number). Not defined, so not counted, for NaN
    unbounded   samples where a NaN or an infinity meets another number: the largest difference is then infinite;
                mean, mean absolute and RMSE are those of the other samples
    border      the ring of `ring` pixels along the four sides, where padding mistakes live; interior is the rest
    ignored     the regions that the caller names, which are in neither border nor interior and are not judged
    PSNR        20 · log10(peak / RMSE) in dB; peak is the type's largest value, of floats the largest finite
                |reference|

Whole numbers are tallied by a histogram of their signed differences, from which every figure follows exactly.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.geometry import bands
from edgeconv.difference.regions import Region, RegionFinder
from edgeconv.difference.scale import magnitude_of, scale_for
from edgeconv.errors import UsageError

STRIP_SAMPLES = {1: 2**18, 2: 2**20, 4: 2**18, 8: 2**18}
"""Samples of a strip by their size in bytes. 16 bits get more, to pay for their wide histogram once a strip."""

SPARSE_SHARE = 1 / 16
"""Below this share of unequal samples it is quicker to pick them out than to tally all."""

BORDER, INTERIOR, IGNORED = 0, 1, 2
CHANNEL_NAMES = {1: ("grey",), 3: ("R", "G", "B")}


@dataclass(frozen=True)
class Box:
    """A rectangle of pixels; bounds are inclusive."""

    left: int
    top: int
    right: int
    bottom: int

    def __str__(self) -> str:
        return f"x {self.left}–{self.right}, y {self.top}–{self.bottom}"


@dataclass(frozen=True)
class Allowance:
    """What is accepted as the same."""

    atol: float = 0.0
    rtol: float = 0.0
    ulp: int = 0
    """Floats only: accepted as well where at most so many representable numbers apart."""
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


@dataclass(frozen=True)
class PartFigures:
    """Figures of a part of the samples: all, border, interior or one channel."""

    samples: int
    unequal_samples: int
    differing_samples: int
    unbounded_samples: int
    max_abs: float
    """Infinite where a sample is unbounded."""
    mean: float
    """Signed: other − reference."""
    mean_abs: float
    rmse: float
    psnr_db: float
    """Infinite where nothing is unequal."""
    max_ulp: int | None
    """None for whole numbers."""
    histogram: tuple[int, ...]
    """Samples in each class of |difference|: see scale.py."""

    @property
    def differing_share(self) -> float:
        """Differing of all samples."""
        return self.differing_samples / self.samples if self.samples else 0.0


@dataclass(frozen=True)
class Spot:
    """One pixel with both values, and the channel that says most."""

    y: int
    x: int
    channel: str
    reference: tuple[float, ...]
    other: tuple[float, ...]
    difference: float
    """In that channel."""
    ulp: int | None
    """In that channel; None for whole numbers and where one of the two is NaN."""


@dataclass(frozen=True)
class Figures:
    """Everything that one comparison found."""

    height: int
    width: int
    channels: tuple[str, ...]
    dtype: str
    peak: float
    ring: int
    """Width of the border ring in pixels."""
    judged: PartFigures
    """The part that the verdict is about: all, or the interior where the border is ignored."""
    whole: PartFigures
    border: PartFigures
    interior: PartFigures
    ignored: PartFigures | None
    """None where no region is ignored."""
    by_channel: tuple[PartFigures, ...]
    differing_pixels: int
    """Judged pixels with at least one differing sample."""
    first: Spot | None
    """The first differing pixel in reading order, among those judged."""
    worst: Spot | None
    """The first judged sample with the largest difference, None where all are equal."""
    region_count: int
    regions: tuple[Region, ...]
    """The largest connected parts of the differing, judged pixels."""
    same: bool
    """Not more than the allowed number of judged samples differ."""


def compare(reference: NDArray[Any], other: NDArray[Any], allowance: Allowance | None = None) -> Figures:
    """Compare two pictures of the same shape (HWC) and type (uint8, uint16, float16, float32, float64).

    Raises UsageError for an allowance without meaning here, ValueError where shape or type differ.
    """
    if reference.shape != other.shape or reference.dtype != other.dtype:
        raise ValueError(f"{reference.shape} {reference.dtype} cannot be compared with {other.shape} {other.dtype}")
    allowance = allowance or Allowance()
    allowance.check(reference.shape, reference.dtype)
    return _Comparison(reference, other, allowance).figures()


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


class _Comparison:
    """One pass over the strips."""

    def __init__(self, reference: NDArray[Any], other: NDArray[Any], allowance: Allowance) -> None:
        self.reference, self.other, self.allowance = reference, other, allowance
        self.height, self.width, self.channels = reference.shape
        self.margin = allowance.ignore_border
        self.ring = self.margin or 1
        self.boxes = allowance.ignored_regions
        self.zones = (BORDER, INTERIOR, IGNORED) if self.boxes else (BORDER, INTERIOR)
        self.judged_zones = (INTERIOR,) if self.margin else (BORDER, INTERIOR)
        tally = _WholeNumbers if reference.dtype.kind == "u" else _Floats
        self.tally: _Tally = tally(reference.dtype, self.channels, len(self.zones))
        self.regions = RegionFinder(self.width)
        self.differing = np.zeros((len(self.zones), self.channels), np.int64)
        self.differing_pixels = 0
        self.first: tuple[int, int] | None = None
        self.worst: tuple[int, int] | None = None
        self.worst_magnitude = 0.0

    def figures(self) -> Figures:
        """Run over the pictures and gather what was found."""
        rows = max(1, STRIP_SAMPLES[self.reference.dtype.itemsize] // (self.width * self.channels))
        # One worker labels regions while the next strips are tallied: OpenCV and most of NumPy let go of the lock.
        with ThreadPoolExecutor(1) as pool:
            labelled = [
                pool.submit(self.regions.add, self._strip(start, stop)) for start, stop in bands(self.height, rows)
            ]
        for each in labelled:
            each.result()
        region_count, regions = self.regions.finish()
        every = range(self.channels)
        whole, border, interior = (self._part(zones, every) for zones in (self.zones, (BORDER,), (INTERIOR,)))
        without_regions = interior if self.margin else whole
        judged = self._part(self.judged_zones, every) if self.boxes else without_regions
        if not judged.samples:
            raise UsageError("--ignore leaves no pixel to judge: take a region out of its file.")
        return Figures(
            height=self.height,
            width=self.width,
            channels=CHANNEL_NAMES[self.channels],
            dtype=self.reference.dtype.name,
            peak=self.tally.peak,
            ring=self.ring,
            judged=judged,
            whole=whole,
            border=border,
            interior=interior,
            ignored=self._part((IGNORED,), every) if self.boxes else None,
            by_channel=tuple(self._part(self.zones, (channel,)) for channel in every),
            differing_pixels=self.differing_pixels,
            first=self._spot(self.first),
            worst=self._spot(self.worst),
            region_count=region_count,
            regions=regions,
            same=judged.differing_samples <= self.allowance.max_count,
        )

    def _part(self, zones: Sequence[int], channels: Sequence[int]) -> PartFigures:
        return self.tally.part(zones, channels, int(self.differing[np.ix_(zones, channels)].sum()))

    def _strip(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Count a strip of rows; returns its differing, judged pixels, H×W."""
        reference, other = self.reference[start:stop], self.other[start:stop]
        pieces = list(self._pieces(start, stop))
        pixels = np.zeros(reference.shape[:2], bool)
        unequal = reference != other
        if not unequal.any():
            for zone, rows, columns in pieces:
                self.tally.add_equal(zone, reference[rows, columns])
            return pixels

        largest = [0.0] * len(self.zones)
        for zone, rows, columns in pieces:
            found = self.tally.add(zone, reference[rows, columns], other[rows, columns])
            largest[zone] = max(largest[zone], found)
        beyond = _beyond(reference, other, self.allowance, unequal)
        for channel in range(self.channels):
            plane = np.ascontiguousarray(beyond[..., channel])
            for zone, rows, columns in pieces:
                self.differing[zone, channel] += np.count_nonzero(plane[rows, columns])
            pixels |= plane

        # What is not judged takes no part in first, worst and regions.
        margin = self.margin
        judged_rows = slice(max(start, margin) - start, max(start, min(stop, self.height - margin)) - start)
        judged_columns = slice(margin, self.width - margin)
        if margin:
            judged = np.zeros_like(pixels)
            judged[judged_rows, judged_columns] = pixels[judged_rows, judged_columns]
            pixels = judged
        for rows, columns in self._ignored(start, stop):
            pixels[rows, columns] = False
        self.differing_pixels += int(np.count_nonzero(pixels))
        if self.first is None and pixels.any():
            y, x = np.unravel_index(int(pixels.argmax()), pixels.shape)
            self.first = (start + int(y), int(x))
        if max(largest[zone] for zone in self.judged_zones) > self.worst_magnitude:
            magnitude = magnitude_of(reference[judged_rows, judged_columns], other[judged_rows, judged_columns])
            for rows, columns in self._ignored(start + judged_rows.start, start + judged_rows.stop, margin):
                magnitude[rows, columns] = 0
            y, x, _ = np.unravel_index(int(magnitude.argmax()), magnitude.shape)
            self.worst_magnitude = float(magnitude.max())
            self.worst = (start + judged_rows.start + int(y), margin + int(x))
        return pixels

    def _pieces(self, start: int, stop: int) -> Iterator[tuple[int, slice, slice]]:
        """The strip cut into (zone, rows, columns); rows count from the strip's first."""
        top = min(max(start, self.ring), stop)
        bottom = max(min(stop, self.height - self.ring), top)
        left, right = min(self.ring, self.width), max(self.width - self.ring, self.ring)
        middle = slice(top - start, bottom - start)
        pieces = (
            (BORDER, slice(0, top - start), slice(0, self.width)),
            (BORDER, middle, slice(0, left)),
            (INTERIOR, middle, slice(left, right)),
            (BORDER, middle, slice(right, self.width)),
            (BORDER, slice(bottom - start, stop - start), slice(0, self.width)),
        )
        boxes = [_box_of(rows, columns) for rows, columns in self._ignored(start, stop)]
        for zone, rows, columns in pieces:
            if rows.start >= rows.stop or columns.start >= columns.stop:
                continue
            if not boxes:
                yield zone, rows, columns
                continue
            for is_ignored, part_rows, part_columns in _cut(rows, columns, boxes):
                yield IGNORED if is_ignored else zone, part_rows, part_columns

    def _ignored(self, start: int, stop: int, margin: int = 0) -> Iterator[tuple[slice, slice]]:
        """The ignored regions within rows `start` to `stop`, counted from the first, and columns from `margin` on."""
        for box in self.boxes:
            top, bottom = max(box.top, start), min(box.bottom + 1, stop)
            if top < bottom:
                yield (
                    slice(top - start, bottom - start),
                    slice(max(box.left - margin, 0), max(box.right + 1 - margin, 0)),
                )

    def _spot(self, place: tuple[int, int] | None) -> Spot | None:
        if place is None:
            return None
        y, x = place
        reference, other = self.reference[y, x], self.other[y, x]
        channel = int(magnitude_of(reference[None], other[None]).argmax())
        ulp = None
        if reference.dtype.kind == "f":
            steps = int(ulp_distance(reference, other)[channel])
            ulp = None if steps < 0 else steps
        return Spot(
            y=y,
            x=x,
            channel=CHANNEL_NAMES[self.channels][channel],
            reference=tuple(reference.tolist()),
            other=tuple(other.tolist()),
            difference=float(other[channel]) - float(reference[channel]),
            ulp=ulp,
        )


def _box_of(rows: slice, columns: slice) -> Box:
    return Box(columns.start, rows.start, columns.stop - 1, rows.stop - 1)


def _cut(rows: slice, columns: slice, boxes: Sequence[Box]) -> Iterator[tuple[bool, slice, slice]]:
    """A rectangle cut into pieces that lie within one of `boxes` (True), and pieces that lie outside all of them."""

    def edges(span: slice, bounds: list[tuple[int, int]]) -> list[int]:
        inner = {edge for first, last in bounds for edge in (first, last + 1) if span.start < edge < span.stop}
        return sorted({span.start, span.stop, *inner})

    for top, bottom in pairwise(edges(rows, [(box.top, box.bottom) for box in boxes])):
        across = [(box.left, box.right) for box in boxes if box.top <= top <= box.bottom]
        for left, right in pairwise(edges(columns, across)):
            yield any(first <= left <= last for first, last in across), slice(top, bottom), slice(left, right)


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
    """Sums over cells: (zone, channel)."""

    peak: float

    @abstractmethod
    def add(self, zone: int, reference: NDArray[Any], other: NDArray[Any]) -> float:
        """Count a piece, HWC; returns its largest |difference|."""

    @abstractmethod
    def add_equal(self, zone: int, reference: NDArray[Any]) -> None:
        """Count a piece whose two sides are equal."""

    @abstractmethod
    def part(self, zones: Sequence[int], channels: Sequence[int], differing: int) -> PartFigures:
        """The figures of some cells together."""

    def _psnr_db(self, rmse: float) -> float:
        if rmse == 0:
            return math.inf
        return 20 * math.log10(self.peak / rmse) if self.peak else -math.inf


class _WholeNumbers(_Tally):
    """A histogram of signed differences per cell."""

    def __init__(self, dtype: np.dtype[Any], channels: int, zones: int) -> None:
        largest = int(np.iinfo(dtype).max)
        self.peak = float(largest)
        self.scale = scale_for(dtype)
        self.zero = largest
        self.values = np.arange(-largest, largest + 1)
        self.counts = np.zeros((zones, channels, self.values.size), np.int64)
        self.narrow = np.int16 if self.counts[0].size < 2**15 else np.int32
        # One histogram serves all channels: each has its own stretch of bins.
        self.bin_of_equal = (np.arange(channels) * self.values.size + largest).astype(self.narrow)

    def add(self, zone: int, reference: NDArray[Any], other: NDArray[Any]) -> float:
        unequal = reference != other
        some = int(np.count_nonzero(unequal))
        if some < SPARSE_SHARE * unequal.size:
            bins = np.subtract(other[unequal], reference[unequal], dtype=self.narrow)
            channels = np.nonzero(unequal)[2]
            bins += self.bin_of_equal[channels]
            self.counts[zone, :, self.zero] += unequal.shape[0] * unequal.shape[1]
            self.counts[zone, :, self.zero] -= np.bincount(channels, minlength=unequal.shape[2])
        else:
            bins = np.subtract(other, reference, dtype=self.narrow)
            bins += self.bin_of_equal
        found = np.bincount(bins.ravel(), minlength=self.counts[zone].size).reshape(self.counts[zone].shape)
        self.counts[zone] += found
        return float(np.abs(self.values[found.any(axis=0)]).max(initial=0))

    def add_equal(self, zone: int, reference: NDArray[Any]) -> None:
        self.counts[zone, :, self.zero] += reference.shape[0] * reference.shape[1]

    def part(self, zones: Sequence[int], channels: Sequence[int], differing: int) -> PartFigures:
        counts = self.counts[np.ix_(zones, channels)].sum(axis=(0, 1))
        samples, unequal = int(counts.sum()), int(counts.sum() - counts[self.zero])
        of = max(1, samples)
        rmse = math.sqrt(int(counts @ self.values**2) / of)
        return PartFigures(
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
        )


class _Floats(_Tally):
    """Sums and largest values per cell, in float64; of float64 in more, as their squares may be beyond it."""

    def __init__(self, dtype: np.dtype[Any], channels: int, zones: int) -> None:
        self.peak = 0.0
        self.scale = scale_for(dtype)
        cells = (zones, channels)
        self.samples, self.unequal, self.unbounded, self.max_ulp = np.zeros((4, *cells), np.int64)
        self.wide: Any = np.longdouble if dtype == np.float64 else np.float64
        self.sum, self.sum_abs, self.sum_squares = np.zeros((3, *cells), self.wide)
        self.max_abs = np.zeros(cells)
        self.histogram = np.zeros((*cells, len(self.scale.labels)), np.int64)

    def add(self, zone: int, reference: NDArray[Any], other: NDArray[Any]) -> float:
        self.add_equal(zone, reference)
        magnitude = magnitude_of(reference, other)
        for channel in range(reference.shape[2]):
            cell = zone, channel
            unequal = magnitude[..., channel] > 0
            size = magnitude[..., channel][unequal]
            before, after = reference[..., channel][unequal], other[..., channel][unequal]
            bounded = np.isfinite(size)
            finite = size[bounded]
            self.unequal[cell] += size.size
            self.unbounded[cell] += size.size - finite.size
            self.sum[cell] += np.subtract(after[bounded], before[bounded], dtype=self.wide).sum()
            self.sum_abs[cell] += finite.sum(dtype=self.wide)
            self.sum_squares[cell] += np.square(finite, dtype=self.wide).sum()
            self.max_abs[cell] = max(self.max_abs[cell], size.max(initial=0))
            self.max_ulp[cell] = max(self.max_ulp[cell], ulp_distance(before, after).max(initial=0))
            found = self.scale.counts(size)
            self.histogram[cell] += found
            self.histogram[cell][0] -= size.size  # add_equal has counted them all as the same
        return float(magnitude.max())

    def add_equal(self, zone: int, reference: NDArray[Any]) -> None:
        pixels = reference.shape[0] * reference.shape[1]
        self.samples[zone] += pixels
        self.histogram[zone, :, 0] += pixels
        finite = np.abs(reference[np.isfinite(reference)])
        self.peak = max(self.peak, float(finite.max(initial=0)))

    def part(self, zones: Sequence[int], channels: Sequence[int], differing: int) -> PartFigures:
        cells = np.ix_(zones, channels)
        samples, unbounded = int(self.samples[cells].sum()), int(self.unbounded[cells].sum())
        of = max(1, samples - unbounded)
        rmse = float(np.sqrt(self.sum_squares[cells].sum() / of))
        return PartFigures(
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
        )
