"""Every CPU method against the float64 oracle on this very machine, sample by sample.

    python3 scripts/check_cpu_methods.py [--methods sliding,im2col,opencv] [--seed 0]

The tests do more; this needs nothing beside edgeconv and numpy, so that it runs on a processor that has just been
unpacked, or under an emulator of one (README, "Where it was tried"). Filters of every kind, types, strides, borders and
shapes are crossed; whole weights on whole pictures must give the oracle's very samples. Ends with 1 where one is wrong.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from edgeconv.bench.candidates import ORACLE
from edgeconv.core.choices import Border
from edgeconv.core.problem import Problem
from edgeconv.core.request import make_request
from edgeconv.hardware.versions import installed_versions
from edgeconv.methods import find, method_names
from edgeconv.methods.options import Options
from edgeconv.runtime import check

FILTERS = ("emboss", "sobel", "kirsch")
"""One kernel without symmetry, a magnitude of two directions, a maximum of eight."""
CHANNELS = ("mix", "each", "luma")
DTYPES = ("uint8", "uint16", "float32")
GEOMETRY: tuple[tuple[int, int | str, Border], ...] = (
    (1, "same", "zero"),
    (2, "same", "reflect101"),
    (3, "valid", "zero"),
    (1, 4, "replicate"),
)
"""Stride, padding, border."""
SHAPES = ((5, 4), (64, 129))


@dataclass
class Count:
    """What was compared for one method."""

    problems: int = 0
    samples: int = 0
    unequal: int = 0
    """Whole outputs that differ from the oracle's rounded ones, if only by a tie."""
    wrong: int = 0
    """Beyond the bound that the plan's own arithmetic gives."""


def problems() -> Iterator[Problem]:
    """The crossed table."""
    for name, channels, dtype, (stride, padding, border), shape in product(FILTERS, CHANNELS, DTYPES, GEOMETRY, SHAPES):
        request = make_request(name, channels=channels, stride=stride, padding=padding, border=border)
        yield request.problem((*shape, 3), np.dtype(dtype))


def picture(problem: Problem, seed: int) -> np.ndarray:
    """Noise over the whole range of the type; floats from -1 to 1."""
    rng = np.random.default_rng(seed)
    shape = (problem.height, problem.width, 3)
    if problem.dtype.kind == "u":
        return rng.integers(0, np.iinfo(problem.dtype).max, shape, problem.dtype, endpoint=True)
    return rng.uniform(-1, 1, shape).astype(problem.dtype)


def compare(name: str, seed: int) -> Count:
    """Run one method over the table; the first wrong sample of each problem is printed."""
    method, count = find(name, "cpu").load(), Count()
    for problem in problems():
        image = picture(problem, seed)
        out = np.empty(problem.output_shape, problem.output_dtype)
        plan = method.prepare(problem, Options())
        plan.run(image, out)
        found = check.check(image, out, problem, plan.arithmetic)
        count.problems += 1
        count.samples += found.checked_samples
        count.wrong += found.unexplained_samples
        count.unequal += found.differing_samples
        if not found.passed:
            print(f"{name} WRONG at {found.worst}: {problem}", file=sys.stderr)
    return count


def main() -> int:
    """Compare, and print one line a method."""
    able = [name for name in method_names("cpu") if name != ORACLE]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default=",".join(able), help="names, separated by commas")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    chosen = arguments.methods.split(",")
    unknown = [name for name in chosen if name not in able]
    if unknown:
        parser.error(f"--methods: '{unknown[0]}' is not one of {', '.join(able)}")

    versions = ", ".join(f"{name} {version}" for name, version in installed_versions().items())
    print(f"{platform.system()} {platform.machine()}: {versions}")
    wrong = 0
    for name in chosen:
        started = time.perf_counter()
        count = compare(name, arguments.seed)
        wrong += count.wrong
        print(
            f"{name}: {count.wrong:,} wrong and {count.unequal:,} unequal of {count.samples:,} samples in "
            f"{count.problems:,} problems ({time.perf_counter() - started:.0f} s)"
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
