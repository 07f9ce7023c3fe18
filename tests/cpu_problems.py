"""The problems that every CPU method is put to: all filters, types and modes once, then geometry crossed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from problems import AWKWARD_SHAPES, assert_right, image_of, random_bank, random_weights, run_on_host

from edgeconv.core.choices import BORDERS, CHANNELS
from edgeconv.core.filters import Filter, WeightSet, filter_bank, filter_names, named_filter, weight_set
from edgeconv.core.problem import INPUT_DTYPES, Problem, make_problem
from edgeconv.errors import UsageError
from edgeconv.methods.base import Method
from edgeconv.methods.options import Options

RANDOM = "random"
"""Stands for weights without any structure, where a filter's name is expected."""
RANDOM_WHOLE = "random-whole"
"""The same with whole weights that fit a signed byte. A named filter may have a divisor, as in `sobel/7`."""
NO_RING, NO_RING_OPPOSITE = "no-ring", "no-ring-opposite"
"""Eight directions without any structure, spread over the channels as a named filter; and four with their opposites."""

STRIDES = (1, 2, 3, 4, 7)
PADDINGS = (0, 1, 2, 5)


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


EVERY_FILTER = tuple(
    Case(name, channels, dtype, "abs")
    for name in (*filter_names(), RANDOM)
    for channels in CHANNELS
    for dtype in ("uint8", "float32")
)

EVERY_TYPE = tuple(
    Case(name, channels, dtype, mode, stride=stride)
    for name, stride in (("sobel", 1), (RANDOM, 1), ("laplacian8", 2))
    for channels in CHANNELS
    for dtype in INPUT_DTYPES
    for mode in modes_of(dtype)
)

GEOMETRY_WORK = (
    ("laplacian8", "each", "uint8", "abs"),
    ("sobel", "mix", "uint8", "abs"),
    (RANDOM, "mix", "float32", "raw"),
    (RANDOM, "each", "float32", "raw"),
    (RANDOM, "luma", "uint16", "abs"),
)
"""One piece of work for every way a row can be laid out; geometry is crossed with each."""

GEOMETRY = tuple((work, stride, border) for work in GEOMETRY_WORK for stride in STRIDES for border in BORDERS)


GREY = (
    *(
        Case(name, "mix", dtype, mode, in_channels=1)
        for name in ("sobel", RANDOM)
        for dtype in INPUT_DTYPES
        for mode in modes_of(dtype)
    ),
    *(
        Case(name, "mix", dtype, "abs", stride=stride, in_channels=1)
        for name, stride in ((RANDOM_WHOLE, 2), ("kirsch", 3), ("laplacian8", 1))
        for dtype in ("uint8", "float64")
    ),
)

BANK_SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 24, 33, 64, 256)
"""Around where passes and registers begin: three, six, eight, sixteen, and what is none of their multiples."""

DIRECTED = "sobel,prewitt,scharr"
SINGLE = "sobel-x,laplacian8,identity,emboss,sharpen"

BANKS = (
    *(Case(RANDOM, "mix", "float32", "raw", filters=k, in_channels=c) for k in BANK_SIZES for c in (1, 3)),
    *(Case(RANDOM, "each", "float32", "raw", filters=k) for k in (2, 3, 7, 8, 11)),
    *(Case(RANDOM, "mix", "float64", "raw", filters=k, in_channels=c) for k in (1, 2, 4, 6, 8, 9, 16) for c in (1, 3)),
    *(
        Case(name, channels, dtype, "abs", filters=k)
        for name, k in ((RANDOM_WHOLE, 5), (RANDOM_WHOLE, 19), (DIRECTED, 3), (DIRECTED, 9), ("kirsch,robinson", 8))
        for channels in ("mix", "each")
        for dtype in ("uint8", "uint16", "float16")
    ),
    *(Case(SINGLE, channels, "uint8", "clip", filters=k) for k in (5, 8, 40) for channels in CHANNELS),
    *(Case(DIRECTED, "luma", dtype, "raw", filters=k) for k in (2, 8) for dtype in ("uint16", "float64")),
    *(
        Case(RANDOM, channels, "float32", "raw", stride=stride, padding=padding, border=border, filters=k)
        for k, channels in ((4, "mix"), (10, "mix"), (9, "each"))
        for stride, padding, border in ((2, 1, "reflect"), (3, 0, "zero"), (4, 5, "reflect101"), (1, 2, "replicate"))
    ),
    *(Case(RANDOM, "mix", "float32", "raw", filters=10, shape=shape) for shape in AWKWARD_SHAPES),
)
"""Grey and RGB, every type, equal filters and different ones, and every way in which directions are joined."""


def geometry_cases(work: tuple[str, str, str, str], stride: int, border: str) -> Iterator[Case]:
    """Every padding and awkward shape that has an output."""
    for padding in PADDINGS:
        for shape in AWKWARD_SHAPES:
            if min(shape) + 2 * padding >= 3:
                yield Case(*work, stride=stride, padding=padding, border=border, shape=shape)


def check_case(method: Method, case: Case, options: Options | None = None) -> None:
    """Run the case and compare every sample with the oracle; a failure names the case."""
    problem = case.problem()
    image = image_of(problem)
    try:
        assert_right(run_on_host(method.prepare(problem, options or Options()), image, problem))
    except (AssertionError, UsageError) as failure:
        raise AssertionError(f"{case}: {failure}") from failure
