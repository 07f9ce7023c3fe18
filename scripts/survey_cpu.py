"""Measure the CPU engine on its whole surface: types, filters, channels, strides, borders, views beside each other.

    python3 scripts/survey_cpu.py --output docs/results/survey_two_cores.json.xz     measures (about two minutes)
    python3 scripts/survey_cpu.py --filters kirsch,sobel --below 0.6                 some rows, and those that stand out

Siblings are rows that differ in one axis alone. A row's share of the best of them is the larger of two: its bytes a
second over theirs (of whole rows that are read, as memory comes in cache lines), and its operations a second over
theirs (`operation_bytes_per_pixel` in edgeconv/core/forms.py, where wider types count for more). So a row is weak only
where neither memory nor arithmetic excuses it. The share that is shown is that of the worst axis. One thread, and the
time that it itself had, so that others on the machine matter little; the rounds go over all rows again and again, and
the fastest time of each is taken.
"""

from __future__ import annotations

import json
import lzma
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from script_options import Arguments

from edgeconv import __version__
from edgeconv.bench.synthetic import bench_filter
from edgeconv.core.choices import BORDERS, CHANNELS, Border, Channels
from edgeconv.core.filters import weight_set
from edgeconv.core.forms import operation_bytes_per_pixel
from edgeconv.core.geometry import touched_places
from edgeconv.core.noise import noise_pixels
from edgeconv.core.problem import INPUT_DTYPES, make_problem
from edgeconv.hardware.cpu import jit
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
    channels: Channels
    stride: int = 1
    border: Border = "zero"
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
    """10^6 bytes of the rows that are read, and of the output."""
    operations: float
    """10^6 bytes of operands: each operation times the bytes of its type."""
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
    rows_read = touched_places(problem.height, problem.stride, problem.padding, problem.border).size
    read_bytes = problem.input_bytes // problem.height * rows_read
    measured = Measured(
        row,
        np.inf,
        (read_bytes + problem.output_bytes) / 1e6,
        pixels * operation_bytes_per_pixel(problem) / 1e6,
    )
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
    parser = Arguments(__doc__)
    parser.add_argument("--output", type=Path, help="A JSON file to write, packed where it ends with .xz.")
    parser.add_argument("--rounds", type=int, default=4, help="How often all rows are gone over.")
    parser.add_argument("--below", type=float, default=STAND_OUT, help="Print the rows whose share is below.")
    for axis in ("dtype", "filter", "channels"):
        parser.add_argument(f"--{axis.rstrip('s')}s", help="Only rows of these, commas between.")
    asked = parser.parse_args()
    chosen = list(dict.fromkeys(rows()))
    for axis in ("dtype", "filter", "channels"):
        words = getattr(asked, f"{axis.rstrip('s')}s")
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
                f"{entry.megabytes / entry.seconds / 1e3:6.1f} GB/s, operands "
                f"{entry.operations / entry.seconds / 1e3:7.1f} GB/s  "
                f"{entry.row}"
            )
    weak = sum(entry.share < STAND_OUT for entry in found)
    print(f"{len(found)} rows, {weak} below {STAND_OUT}")
    if asked.output:
        write_record(asked.output, found)


def write_record(path: Path, found: list[Measured]) -> None:
    """A row a line; packed where the name ends with .xz."""
    versions = {"edgeconv": __version__, "processor": jit.processor().name}
    lines = []
    for entry in found:
        figures = {name: value for name, value in asdict(entry).items() if name != "row"}
        rounded = {
            name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in figures.items()
        }
        lines.append(json.dumps(asdict(entry.row) | rounded))
    rows_text = ",\n".join(lines)
    text = f'{{"kind": "survey", "versions": {json.dumps(versions)}, "rows": [\n{rows_text}\n]}}\n'.encode()
    path.write_bytes(lzma.compress(text) if path.suffix == ".xz" else text)


if __name__ == "__main__":
    main()
