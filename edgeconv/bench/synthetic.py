"""Weights for the bench: random, so that no method can lean on their structure, and always the same.

Filters are added to the named ones (the pixels are those of core/noise.py):

    random         weights from −1 to 1; 27 different ones an output channel in `mix`
    random-whole   whole weights from −8 to 8, which 8-bit arithmetic sums exactly
    bank-c3-k16    a bank of 16 random filters, each for all 3 channels; bank-c1-k16 is for a grey picture
    grey-NAME      a named filter, or one of the random ones, on a grey picture
    own-whole, own-fractions   in a grid that is drawn: kernels that are drawn themselves (surface.py)

In `each` and `luma`, and on a grey picture, the random ones are one 3×3 kernel, as a named filter is. A kernel of one's
own is named by its rows, `0,1,0;1,-4,1;0,1,0`.
"""

from __future__ import annotations

import re

import numpy as np

from edgeconv.core.filters import (
    GREY_CHANNELS,
    MOST_FILTERS,
    RGB_CHANNELS,
    Filter,
    filter_names,
    named_filter,
    parse_kernel,
)
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.noise import SEED

LARGEST_WEIGHTS = {"random": 1, "random-whole": 8}
BANK_NAME = re.compile(r"bank-c([13])-k([1-9][0-9]{0,2})")
GREY_PREFIX = "grey-"
DRAWN_FILTERS = ("own-whole", "own-fractions")
CANNY = "canny"
"""In place of a filter; for `bench ab` alone."""
FILTER_FAMILIES = ("bank-c1-kK", "bank-c3-kK", "grey-NAME")


def bench_filter_names() -> tuple[str, ...]:
    """Every filter that a grid may name, but for those of families and those that are drawn."""
    return (*LARGEST_WEIGHTS, *filter_names())


def is_bench_filter(name: str) -> bool:
    """Whether a grid may name it."""
    bank = BANK_NAME.fullmatch(name)
    if bank is not None:
        return int(bank[2]) <= MOST_FILTERS
    return name in DRAWN_FILTERS or name.removeprefix(GREY_PREFIX) in (*bench_filter_names(), CANNY)


def bench_channels(name: str) -> int:
    """Channels of the picture that a filter is measured on: 1 for a grey one."""
    bank = BANK_NAME.fullmatch(name)
    if bank is not None:
        return int(bank[1])
    return GREY_CHANNELS if name.startswith(GREY_PREFIX) else RGB_CHANNELS


def bench_filter(name: str, channels: str) -> Filter:
    """A random filter or bank that suits `channels`, a named one, or a kernel by its rows; else raises UsageError."""
    if ";" in name:
        return parse_kernel(name)
    plain, bank = name.removeprefix(GREY_PREFIX), BANK_NAME.fullmatch(name)
    if bank is None and plain not in LARGEST_WEIGHTS:
        return named_filter(plain)
    outer = (RGB_CHANNELS, RGB_CHANNELS) if channels == "mix" and plain == name else ()
    if bank is not None:
        outer = (int(bank[2]), int(bank[1]))
    largest = LARGEST_WEIGHTS.get(plain, 1)
    kernels = np.random.default_rng(SEED).uniform(-largest, largest, (1, *outer, KERNEL_SIZE, KERNEL_SIZE))
    if plain == "random-whole":
        kernels = np.rint(kernels)
    return Filter(name, kernels.astype(np.float32), "single", "random weights of the bench", f"PCG64, seed {SEED}")
