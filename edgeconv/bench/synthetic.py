"""Weights for the bench: random, so that no method can lean on their structure, and always the same.

Two filters are added to the named ones (the pixels are those of core/noise.py):

    random         weights from −1 to 1; 27 different ones an output channel in `mix`
    random-whole   whole weights from −8 to 8, which 8-bit arithmetic sums exactly

In `each` and `luma` they are one 3×3 kernel, as a named filter is. A kernel of one's own is named by its rows,
`0,1,0;1,-4,1;0,1,0`.
"""

from __future__ import annotations

import numpy as np

from edgeconv.core.filters import RGB_CHANNELS, Filter, filter_names, named_filter, parse_kernel
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.noise import SEED

LARGEST_WHOLE_WEIGHT = 8

RANDOM_FILTERS = ("random", "random-whole")


def bench_filter_names() -> tuple[str, ...]:
    """Every filter that a grid may name."""
    return (*RANDOM_FILTERS, *filter_names())


def bench_filter(name: str, channels: str) -> Filter:
    """A random filter that suits `channels`, a named one, or a kernel by its rows; else raises UsageError."""
    if ";" in name:
        return parse_kernel(name)
    if name not in RANDOM_FILTERS:
        return named_filter(name)
    outer = (RGB_CHANNELS, RGB_CHANNELS) if channels == "mix" else ()
    shape = (1, *outer, KERNEL_SIZE, KERNEL_SIZE)
    rng = np.random.default_rng(SEED)
    largest = LARGEST_WHOLE_WEIGHT if name == "random-whole" else 1
    kernels = rng.uniform(-largest, largest, shape)
    if name == "random-whole":
        kernels = np.rint(kernels)
    return Filter(name, kernels.astype(np.float32), "single", "random weights of the bench", f"PCG64, seed {SEED}")
