"""How a computed value becomes a stored sample: the one rule that every method follows.

    abs    |value|, rounded to nearest with ties to even, clipped to the type
    clip   value, rounded the same way, clipped to the type
    raw    value itself, float32 (of a float picture in its own type)

For float pictures `abs` is |value| with no rounding and no clipping. `normalize` stretches the raw values of
one picture from their least to their greatest over the whole range of the type (0 to 1 for floats); NaN and infinities
are excluded and unchanged. A picture whose values differ by no more than the error of float32 arithmetic is flat.

A threshold makes a mask of the stored samples, whatever the mode: the full value of the type (255, 65535, 1.0) where
|sample| is at least the threshold, else 0, each channel by itself. It counts in the units of these samples: 0 to 255 of
an 8-bit picture, also of its `raw` floats, 0 to 1 of `normalize` of floats. Of floats it is first rounded to their
type, so that 0.7 reaches 0.7; NaN reaches nothing.
The functions take NumPy or CuPy arrays and return the same kind.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.geometry import bands
from edgeconv.core.problem import StoredMode
from edgeconv.errors import UsageError

TOLERANCE_FLOAT32 = 1e-6
FLOAT32_STEP, FLOAT64_STEP = 2.0**-23, 2.0**-52

WHOLE_TEXT_BELOW = 1e15
"""Larger thresholds are written with an exponent."""

Range = tuple[float, float]
"""The least and the greatest of some values; the greatest is below the least where there are none."""

NO_RANGE: Range = (np.inf, -np.inf)


def store(values: Any, mode: StoredMode, dtype: np.dtype[Any], xp: Any = np) -> Any:
    """Turn float `values` into samples of `dtype` (the output's type) as `mode` says."""
    if mode == "abs":
        values = xp.abs(values)
    if dtype.kind != "u":
        with np.errstate(over="ignore"):  # beyond the range of float16 the result is infinity
            return values.astype(dtype, copy=False)
    return xp.clip(xp.rint(values), 0, np.iinfo(dtype).max).astype(dtype)


def full_range(dtype: np.dtype[Any]) -> float:
    """The value of white in `dtype`: 255, 65535, or 1.0 for floats."""
    return float(np.iinfo(dtype).max) if dtype.kind == "u" else 1.0


STRIP_SAMPLES = 2**20
"""Samples that are stretched, or compared with a threshold, at once: 8 MB in float64."""


def finite_range(values: Any, xp: Any = np) -> Range:
    """The range of those of `values` that are finite."""
    with np.errstate(invalid="ignore"):
        low, high = float(values.min()), float(values.max())
    if np.isfinite(low) and np.isfinite(high):
        return low, high
    finite = xp.isfinite(values)
    return float(xp.where(finite, values, np.inf).min()), float(xp.where(finite, values, -np.inf).max())


def join_ranges(first: Range, second: Range) -> Range:
    """The range of both together."""
    return min(first[0], second[0]), max(first[1], second[1])


def magnitude(values: Range) -> float:
    """The largest |value| of a range, 0 where there are no values."""
    return max(-values[0], values[1], 0.0)


def range_to_stretch(values: Range, pixels: Range, weights: NDArray[Any]) -> Range:
    """`values`, the range of an output, or their least alone where they differ by no more than rounding does.

    That is `TOLERANCE_FLOAT32` times the largest of `values`, or where terms cancel one float32 step of an upper bound
    of Σ|weight · pixel|. `weights` are those of a Problem, `pixels` is the range of the picture. float64 weights stand
    for sums in float64.
    """
    step, tolerance = FLOAT32_STEP, TOLERANCE_FLOAT32
    if weights.dtype == np.float64:
        step, tolerance = FLOAT64_STEP, tolerance * FLOAT64_STEP / FLOAT32_STEP
    per_output = float(np.abs(weights.astype(np.float64)).sum(axis=(2, 3, 4)).max())
    low, high = values
    limit = max(tolerance * magnitude(values), step * per_output * magnitude(pixels))
    return (low, low) if high - low <= limit else (low, high)


def stretch(raw: Any, low: float, high: float, dtype: np.dtype[Any], xp: Any = np) -> Any:
    """A part of a picture (HWC) stretched from `low` and `high`, the range of the whole, over that of `dtype`.

    Strip by strip; a flat picture, whose range is one value, becomes zero.
    """
    out = xp.empty(raw.shape, dtype)
    for start, stop in _strips(raw):
        strip = raw[start:stop].astype(xp.float64)
        if high > low:
            strip = (strip - low) * (full_range(dtype) / (high - low))
        else:
            strip[xp.isfinite(strip)] = 0.0
        out[start:stop] = xp.rint(strip) if dtype.kind == "u" else strip
    return out


def _strips(samples: Any) -> Iterator[tuple[int, int]]:
    """Rows (start, stop) of a picture (HWC) that are worked on at once."""
    return bands(samples.shape[0], max(1, STRIP_SAMPLES // (samples.shape[1] * samples.shape[2])))


def threshold_text(threshold: float) -> str:
    """As few digits as tell it from any other: `40`, `0.15`, `1e-07`."""
    return str(int(threshold)) if threshold.is_integer() and threshold < WHOLE_TEXT_BELOW else repr(threshold)


def least_sample(threshold: float, dtype: np.dtype[Any]) -> Any:
    """The least sample of `dtype` that reaches a threshold.

    Raises UsageError for a threshold that no sample of that type reaches, or every one.
    """
    known = np.iinfo(dtype) if dtype.kind == "u" else np.finfo(dtype)
    if threshold > float(known.max):
        raise UsageError(
            f"Threshold {threshold_text(threshold)} is above {known.max:g}, the largest sample of a {dtype.name} "
            "output: use less."
        )
    least = dtype.type(math.ceil(threshold) if dtype.kind == "u" else threshold)
    if not least > 0:
        text = threshold_text(threshold)
        raise UsageError(f"Threshold {text} is 0 as {dtype.name}, which every sample reaches: use more.")
    return least


def mask(samples: Any, threshold: float, xp: Any = np) -> Any:
    """Stored samples (HWC) as a mask of the same shape and type: see above. Raises as `least_sample`."""
    dtype = samples.dtype
    least, full = least_sample(threshold, dtype), dtype.type(full_range(dtype))
    out = xp.empty(samples.shape, dtype)
    for start, stop in _strips(samples):
        strip, into = samples[start:stop], out[start:stop]
        into[...] = (strip if dtype.kind == "u" else xp.abs(strip)) >= least
        into *= full
    return out
