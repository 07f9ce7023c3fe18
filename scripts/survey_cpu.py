"""Survey the CPU engine: every row of a table of types, filters, channels, strides, borders, widths and views beside its
best sibling, by bytes and by operations.

    python3 scripts/survey_cpu.py --output docs/results/survey_two_cores.json     measures (about four minutes)
    python3 scripts/survey_cpu.py --filters kirsch,sobel --below 0.6              some rows, and those that stand out

Siblings are rows that differ in one axis alone. A row's share of the best of them is the larger of two: its bytes a
second over theirs (fewest bytes, cost.py), and its operations a second over theirs (forms.py; an operation on a wider
type counts for more, as fewer fit into a register). So a row is weak only where neither memory nor arithmetic excuses
it. The share that is shown is that of the worst axis. One thread, and the time that it itself had, so that others on the
machine matter little; the rounds go over all rows again and again, and the fastest time of each is taken.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from edgeconv.bench.synthetic import bench_filter
from edgeconv.core.choices import BORDERS, CHANNELS
from edgeconv.core.cost import count
from edgeconv.core.filters import weight_set
from edgeconv.core.forms import operations_per_pixel
from edgeconv.core.noise import noise_pixels
from edgeconv.core.problem import INPUT_DTYPES, make_problem
from edgeconv.hardware.cpu import jit
from edgeconv.hardware.cpu.scalars import SCALAR_BYTES
from edgeconv.methods import require
from edgeconv.methods.options import Options

HEIGHT, WIDTH, ODD_WIDTH = 1200, 1600, 1601
FILTERS = ("laplacian8", "sobel", "kirsch", "robinson", "random", "random-whole")
STRIDES = (1, 2, 3, 4, 5, 6)
PLAIN = ("laplacian8", "sobel", "random")
"""Filters that the other axes are crossed with."""
STAND_OUT = 0.6


@dataclass(frozen=True)
class Row:
    """One case; its fields are the axes."""

    dtype: str
    filter: str
    channels: str
    stride: int = 1
    border: str = "zero"
    width: int = WIDTH
    in_channels: int = 3
    offset: int = 0
    """Samples that the picture lies behind a cache line."""

    def __str__(self) -> str:
        return (
            f"{self.dtype} {self.filter} {'grey' if self.in_channels == 1 else self.channels} s{self.stride} "
            f"{self.border} {HEIGHT}×{self.width}" + (f" +{self.offset}" if self.offset else "")
        )


def rows() -> Iterator[Row]:
    """Types × filters × channels; of the plain filters also every stride, border, width, view and grey."""
    for dtype, name, channels in product(INPUT_DTYPES, FILTERS, CHANNELS):
        row = Row(dtype, name, channels)
        yield row
        if name in PLAIN:
            for stride in STRIDES[1:]:
                yield replace(row, stride=stride)
            for border in BORDERS[1:]:
                yield replace(row, border=border)
            yield replace(row, width=ODD_WIDTH)
            yield replace(row, offset=1)
        if channels == "mix":
            yield replace(row, in_channels=1)


@dataclass
class Measured:
    """A row's fastest time and what was done in it."""

    row: Row
    seconds: float
    megabytes: float
    """Fewest bytes, in 10^6."""
    operations: float
    """Millions, each counted as many times as its type is longer than 16 bits."""
    share: float = 0.0
    worst_axis: str = ""


def prepare(row: Row) -> tuple[Any, Measured]:
    """A function that runs it once, and the row without a time."""
    chosen = bench_filter(row.filter, row.channels if row.in_channels == 3 else "luma")
    weights = weight_set(chosen, row.channels, in_channels=row.in_channels)
    shape = (HEIGHT, row.width, row.in_channels)
    problem = make_problem(shape, row.dtype, weights, stride=row.stride, border=row.border, output_mode="abs")
    memory = jit.aligned_zeros((problem.input_bytes // problem.dtype.itemsize + row.offset) * problem.dtype.itemsize)
    image = memory.view(problem.dtype)[row.offset :].reshape(shape)
    image[...] = noise_pixels(*shape[:2], row.dtype, row.in_channels)
    out = np.zeros(problem.output_shape, problem.output_dtype)
    plan = require("sliding", "cpu").prepare(problem, Options(threads=1))
    plan.run(image, out)
    pixels = problem.output_height * problem.output_width
    widths = SCALAR_BYTES[plan.choice["arithmetic"]] // SCALAR_BYTES["i16"]
    operations = pixels * operations_per_pixel(problem) * widths
    measured = Measured(row, np.inf, count(problem).fewest_bytes / 1e6, operations / 1e6)
    return lambda: plan.run(image, out), measured


def judge(measured: list[Measured]) -> None:
    """Fill in each row's share of its best siblings."""
    axes = [field.name for field in fields(Row)]
    for axis in axes:
        families: dict[Any, list[Measured]] = {}
        for entry in measured:
            rest = tuple((name, getattr(entry.row, name)) for name in axes if name != axis)
            families.setdefault(rest, []).append(entry)
        for family in families.values():
            by_bytes = max(entry.megabytes / entry.seconds for entry in family)
            by_operations = max(entry.operations / entry.seconds for entry in family)
            for entry in family:
                share = max(entry.megabytes / by_bytes, entry.operations / by_operations) / entry.seconds
                if not entry.worst_axis or share < entry.share:
                    entry.share, entry.worst_axis = share, axis


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="a JSON file")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--below", type=float, default=STAND_OUT, help="print rows whose share is below")
    for axis in ("dtype", "filter", "channels"):
        parser.add_argument(f"--{axis}s", help="only these, commas between")
    asked = parser.parse_args()
    chosen = list(dict.fromkeys(rows()))
    for axis in ("dtype", "filter", "channels"):
        words = getattr(asked, f"{axis}s")
        chosen = [row for row in chosen if not words or getattr(row, axis) in words.split(",")]
    measured: dict[Row, Measured] = {}
    for _ in range(asked.rounds):
        for row in chosen:
            run, entry = prepare(row)
            entry = measured.setdefault(row, entry)
            for _ in range(3):
                started = time.thread_time()
                run()
                entry.seconds = min(entry.seconds, time.thread_time() - started)
    found = list(measured.values())
    judge(found)
    for entry in sorted(found, key=lambda entry: entry.share):
        if entry.share < asked.below:
            print(
                f"{entry.share:5.2f} by {entry.worst_axis:11s} {entry.seconds * 1e3:8.2f} ms "
                f"{entry.megabytes / entry.seconds / 1e3:6.1f} GB/s {entry.operations / entry.seconds / 1e3:7.1f} Gop/s  "
                f"{entry.row}"
            )
    weak = sum(entry.share < STAND_OUT for entry in found)
    print(f"{len(found)} rows, {weak} below {STAND_OUT}")
    if asked.output:
        lines = [json.dumps(asdict(entry.row) | {k: v for k, v in asdict(entry).items() if k != "row"}) for entry in found]
        asked.output.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
