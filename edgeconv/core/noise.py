"""A picture of noise to measure with: no method can lean on its structure, and it is always the same.

Pixels fill the whole range of an integer type and −1 to 1 of a float type.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.filters import RGB_CHANNELS

SEED = 20_261_121


def noise_pixels(height: int, width: int, dtype: Any, channels: int = RGB_CHANNELS) -> NDArray[Any]:
    """A picture of noise, HWC."""
    return noise_of(np.random.default_rng(SEED), (height, width, channels), dtype)


def noise_of(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Noise of any shape from a generator of one's own, for what must not be known beforehand."""
    kind = np.dtype(dtype)
    if kind.kind == "u":
        return rng.integers(0, np.iinfo(kind).max, shape, dtype=kind, endpoint=True)
    noise = rng.random(shape, dtype=np.float64 if kind == np.float64 else np.float32)
    noise *= 2
    noise -= 1
    return noise.astype(kind, copy=False)
