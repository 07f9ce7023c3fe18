"""The problems that every CPU method is put to: all filters, types and modes once, then geometry crossed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from problems import AWKWARD_SHAPES, assert_right, random_image, random_weights, run_on_host

from edgeconv.core.choices import BORDERS, CHANNELS
from edgeconv.core.filters import WeightSet, filter_names, named_filter, weight_set
from edgeconv.core.problem import INPUT_DTYPES, Problem, make_problem
from edgeconv.errors import UsageError
from edgeconv.methods.base import Method
from edgeconv.methods.options import Options

RANDOM = "random"
"""Stands for weights without any structure, where a filter's name is expected."""
RANDOM_WHOLE = "random-whole"
"""The same with whole weights that fit a signed byte."""

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

    def problem(self) -> Problem:
        height, width = self.shape
        return make_problem(
            (height, width, 3),
            self.dtype,
            weights_of(self.filter, self.channels),
            stride=self.stride,
            padding=self.padding,
            border=self.border,
            output_mode=self.output_mode,
        )

    def __str__(self) -> str:
        height, width = self.shape
        return (
            f"{self.filter}-{self.channels}-{self.dtype}-{self.output_mode}-s{self.stride}-p{self.padding}"
            f"-{self.border}-{height}x{width}"
        )


def weights_of(name: str, channels: str) -> WeightSet:
    if name == RANDOM_WHOLE:
        shares = random_weights(channels)
        return WeightSet(np.rint(shares.weights * 127), shares.groups)
    return random_weights(channels) if name == RANDOM else weight_set(named_filter(name), channels)


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


def geometry_cases(work: tuple[str, str, str, str], stride: int, border: str) -> Iterator[Case]:
    """Every padding and awkward shape that has an output."""
    for padding in PADDINGS:
        for shape in AWKWARD_SHAPES:
            if min(shape) + 2 * padding >= 3:
                yield Case(*work, stride=stride, padding=padding, border=border, shape=shape)


def check_case(method: Method, case: Case, options: Options | None = None) -> None:
    """Run the case and compare every sample with the oracle; a failure names the case."""
    problem = case.problem()
    image = random_image(problem.height, problem.width, problem.dtype)
    try:
        assert_right(run_on_host(method.prepare(problem, options or Options()), image, problem))
    except (AssertionError, UsageError) as failure:
        raise AssertionError(f"{case}: {failure}") from failure
