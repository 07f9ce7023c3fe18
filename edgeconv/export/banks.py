"""Filter banks in a bench record: every candidate over the number of filters, beside what the machine can do at all.

memory         the picture read once and all outputs written once, at the measured bandwidth of a copy
arithmetic     all multiply-adds at the measured rate of float32 multiply-adds; of float64 no rate is measured
limit          the longer of both; where they cross, the roofline bends
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from edgeconv.bench.intervals import ratio_interval
from edgeconv.bench.record import BenchRecord, BenchRow
from edgeconv.bench.summary import median, samples
from edgeconv.bench.synthetic import BANK_NAME
from edgeconv.core.choices import DeviceName
from edgeconv.core.cost import Roof
from edgeconv.core.units import digits_text
from edgeconv.export.tables import NOTHING, Table, percent, ratio_cell

MICROSECONDS = 1e6


@dataclass(frozen=True)
class BankPoint:
    """All candidates at one bank and size."""

    device: DeviceName
    in_channels: int
    filters: int
    size: int
    stride: int
    dtype: str
    rows: tuple[BenchRow, ...]
    memory_seconds: float
    arithmetic_seconds: float

    @property
    def limit_seconds(self) -> float:
        """Below this no float32 method can be."""
        return max(self.memory_seconds, self.arithmetic_seconds)

    def row(self, candidate: str) -> BenchRow | None:
        """The row of a candidate that has a time."""
        return next((row for row in self.timed if row.candidate == candidate), None)

    @property
    def timed(self) -> list[BenchRow]:
        """Rows of methods and peers that have a time, fastest first."""
        found = [row for row in self.rows if row.kind != "copy" and row.lead_series is not None]
        return sorted(found, key=median)


@dataclass(frozen=True)
class BankSeries:
    """Banks of growing size on one kind of picture: a line of tables and plots for each candidate."""

    device: DeviceName
    in_channels: int
    size: int
    stride: int
    dtype: str
    points: tuple[BankPoint, ...]

    @property
    def title(self) -> str:
        """What it is of."""
        picture = "grey" if self.in_channels == 1 else "RGB"
        return f"{picture} {self.dtype}, {self.size}×{self.size}, stride {self.stride}"

    @property
    def candidates(self) -> list[str]:
        """Those with a time at some point, methods first, in the record's order."""
        rows = [row for point in self.points for row in point.rows if row.kind != "copy" and row.lead_series]
        return list(dict.fromkeys(row.candidate for row in sorted(rows, key=lambda row: row.kind != "method")))


def bank_series(record: BenchRecord) -> list[BankSeries]:
    """Every series of a record, none where it has no banks."""

    def kind(point: BankPoint) -> tuple[DeviceName, int, int, int, str]:
        return point.device, point.in_channels, point.size, point.stride, point.dtype

    points = sorted(_points(record), key=lambda point: (*kind(point), point.filters))
    return [BankSeries(*key, tuple(found)) for key, found in groupby(points, kind)]


def _points(record: BenchRecord) -> Iterable[BankPoint]:
    def case(row: BenchRow) -> tuple[DeviceName, str, int, int, str]:
        return row.device, row.case.filter, row.case.size, row.case.stride, row.case.dtype

    for (device, name, size, stride, dtype), found in groupby(sorted(record.rows, key=case), case):
        bank, roof = BANK_NAME.fullmatch(name), record.roofs.get(device)
        if bank is None or roof is None:
            continue
        rows = tuple(found)
        seconds = _limits(rows[0], roof)
        yield BankPoint(device, int(bank[1]), int(bank[2]), size, stride, dtype, rows, *seconds)


def _limits(row: BenchRow, roof: Roof) -> tuple[float, float]:
    memory = row.counts.fewest_bytes / roof.copy_bytes_per_second
    arithmetic = row.counts.nominal_flops / roof.fma_flops_per_second
    return memory, 0.0 if row.case.dtype == "float64" else arithmetic


def bank_map(series: BankSeries) -> Table:
    """One line for each number of filters, in µs: the limits, every candidate's time, the fastest method's share of the
    limit and its lead over libraries.
    """
    candidates = series.candidates
    lines = []
    for point in series.points:
        rows = [point.row(candidate) for candidate in candidates]
        ours = next((row for row in point.timed if row.kind == "method" and row.options.math == "fma"), None)
        theirs = next((row for row in point.timed if row.kind == "peer" or row.candidate.startswith("cudnn")), None)
        lines.append(
            (
                str(point.filters),
                _microseconds(point.memory_seconds),
                _microseconds(point.arithmetic_seconds) if point.arithmetic_seconds else NOTHING,
                *(NOTHING if row is None else _microseconds(median(row)) for row in rows),
                NOTHING if ours is None else percent(point.limit_seconds / median(ours)),
                NOTHING
                if ours is None or theirs is None
                else ratio_cell(ratio_interval(samples(ours), samples(theirs))),
            )
        )
    named = [f"`{candidate}`" for candidate in candidates]
    header = ("filters", "memory", "arithmetic", *named, "of the limit", "lead over libraries")
    return Table(series.title, header, tuple(lines))


def _microseconds(seconds: float) -> str:
    return digits_text(seconds * MICROSECONDS, 3)
