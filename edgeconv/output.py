"""How a computed value becomes a stored sample: the one rule that every method follows.

    abs    |value|, rounded to nearest with ties to even, clipped to the type
    clip   value, rounded the same way, clipped to the type
    raw    value itself, float32 (float16 for a float16 picture)

For float pictures `abs` is |value| with no rounding and no clipping. `normalize` stretches the raw values of
one picture from their least to their greatest over the whole range of the type (0 to 1 for floats).
The functions take NumPy or CuPy arrays and give back the same kind.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeconv.problem import StoredMode


def store(values: Any, mode: StoredMode, dtype: np.dtype[Any], xp: Any = np) -> Any:
    """Turn float `values` into samples of `dtype` (the output's type) as `mode` says."""
    if mode == "abs":
        values = xp.abs(values)
    if dtype.kind != "u":
        return values.astype(dtype, copy=False)
    return xp.clip(xp.rint(values), 0, np.iinfo(dtype).max).astype(dtype)


def full_range(dtype: np.dtype[Any]) -> float:
    """The value that white has in `dtype`: 255, 65535, or 1.0 for floats."""
    return float(np.iinfo(dtype).max) if dtype.kind == "u" else 1.0


STRETCH_SAMPLES = 2**20
"""Samples that are stretched at once: 8 MB in float64."""


def normalize(raw: Any, dtype: np.dtype[Any], xp: Any = np) -> Any:
    """Stretch `raw` (HWC) over the full range of `dtype`, strip by strip; a flat picture becomes zero."""
    return stretch(raw, float(raw.min()), float(raw.max()), dtype, xp)


def stretch(raw: Any, low: float, high: float, dtype: np.dtype[Any], xp: Any = np) -> Any:
    """What `normalize` makes of a part of a picture (HWC) whose least and greatest raw values are `low` and `high`."""
    scale = full_range(dtype) / (high - low) if high > low else 0.0
    out = xp.empty(raw.shape, dtype)
    rows_per_strip = max(1, STRETCH_SAMPLES // (raw.shape[1] * raw.shape[2]))
    for start in range(0, raw.shape[0], rows_per_strip):
        strip = (raw[start : start + rows_per_strip].astype(xp.float64) - low) * scale
        out[start : start + rows_per_strip] = xp.rint(strip) if dtype.kind == "u" else strip
    return out
