"""A problem in a few words, which are its name in a test report too."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from problems import random_bank, random_weights

from edgeconv.core.filters import Filter, WeightSet, filter_bank, named_filter, weight_set
from edgeconv.core.problem import Problem, make_problem

RANDOM = "random"
"""Stands for weights without any structure, where a filter's name is expected."""
RANDOM_WHOLE = "random-whole"
"""The same with whole weights that fit a signed byte. A named filter may have a divisor, as in `sobel/7`."""
NO_RING, NO_RING_OPPOSITE = "no-ring", "no-ring-opposite"
"""Eight directions without any structure, spread over the channels as a named filter; and four with their opposites."""


@dataclass(frozen=True)
class Case:
    """One problem; `str` of it is its name in a test report."""

    filter: str
    channels: str
    dtype: str
    output_mode: str
    stride: int = 1
    padding: int = 1
    border: str = "zero"
    shape: tuple[int, int] = (13, 45)
    filters: int = 0
    """Those of a bank; 0: one filter."""
    in_channels: int = 3

    def problem(self) -> Problem:
        height, width = self.shape
        return make_problem(
            (height, width, self.in_channels),
            self.dtype,
            weights_of(self.filter, self.channels, self.filters, self.in_channels),
            stride=self.stride,
            padding=self.padding,
            border=self.border,
            output_mode=self.output_mode,
        )

    def __str__(self) -> str:
        height, width = self.shape
        return (
            f"{self.filter}-{self.channels}-{self.dtype}-{self.output_mode}-s{self.stride}-p{self.padding}"
            f"-{self.border}-{height}x{width}x{self.in_channels}{f'-k{self.filters}' if self.filters else ''}"
        )


def weights_of(name: str, channels: str, filters: int = 0, in_channels: int = 3) -> WeightSet:
    """One filter, or a bank: of random ones, of one filter again and again, or of those that a comma is between."""
    if name in (RANDOM, RANDOM_WHOLE) and (filters or in_channels == 1):
        groups = in_channels if channels == "each" else 1
        return random_bank(filters or 1, in_channels, groups, whole=name == RANDOM_WHOLE)
    if name == RANDOM_WHOLE:
        shares = random_weights(channels)
        return WeightSet(np.rint(shares.weights * 127), shares.groups)
    if name == RANDOM:
        return random_weights(channels)
    if name in (NO_RING, NO_RING_OPPOSITE):
        kernels = np.random.default_rng(8).uniform(-1, 1, (8, 3, 3)).astype(np.float32)
        kernels = np.concatenate([kernels[:4], -kernels[:4]]) if name == NO_RING_OPPOSITE else kernels
        return weight_set(Filter(name, kernels, "maximum", "", ""), channels, in_channels=in_channels)
    name, _, divisor = name.partition("/")
    if divisor:
        whole = weight_set(named_filter(name), channels, in_channels=in_channels)
        return WeightSet(whole.weights / np.float32(divisor), whole.groups, whole.combine)
    names = name.split(",")
    bank = filter_bank([names[i % len(names)] for i in range(filters)]) if filters else named_filter(name)
    return weight_set(bank, channels, in_channels=in_channels)


def modes_of(dtype: str) -> tuple[str, ...]:
    return ("abs", "clip", "raw") if np.dtype(dtype).kind == "u" else ("abs", "raw")


DIRECTED = "sobel,prewitt,scharr"
SINGLE = "sobel-x,laplacian8,identity,emboss,sharpen"
"""Filters of a bank, joined directions and single ones."""
FILTERS = (
    *((name, 0, 3) for name in ("laplacian8", "sobel-x", "emboss", "identity", "sobel", "sobel/7", "prewitt")),
    *((name, 0, 3) for name in ("kirsch", "robinson", RANDOM, RANDOM_WHOLE)),
    *((name, 0, 1) for name in ("laplacian8", "sobel", "kirsch", RANDOM, NO_RING, NO_RING_OPPOSITE)),
    *((RANDOM, filters, channels) for filters, channels in ((2, 3), (5, 1), (9, 3), (17, 3), (70, 1))),
    *((name, filters, 3) for name, filters in ((RANDOM_WHOLE, 12), (DIRECTED, 9), ("kirsch,robinson", 8), (SINGLE, 5))),
)
"""Name, number of filters (0: no bank), channels of the picture: every form, grey pictures, and banks around where
passes and registers begin, of equal filters too."""
PLAIN = [filter for filter in FILTERS if filter[0] in (RANDOM, "sobel") or filter == ("kirsch", 0, 1)]
"""Enough for what makes nothing of a form."""
