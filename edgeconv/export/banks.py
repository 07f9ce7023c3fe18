"""Filter banks in a bench record: every candidate over the number of filters, beside what the machine can do at all.

memory         the picture read once and all outputs written once, at the measured bandwidth of a copy
arithmetic     all multiply-adds at the measured rate of float32 multiply-adds; of float64 no rate is measured
limit          the longer of both; where they cross, the roofline bends
"""

from __future__ import annotations

from typing import NamedTuple

from edgeconv.bench.intervals import ratio_interval
from edgeconv.bench.record import BenchRecord, BenchRow
from edgeconv.bench.summary import median, samples
from edgeconv.bench.synthetic import BANK_NAME
from edgeconv.core.choices import DeviceName
from edgeconv.core.text import digits_text
from edgeconv.export.tables import percent, shown
from edgeconv.hardware.device import Roof
from edgeconv.page import Table


class BankSeries(NamedTuple):
    """Banks of growing size on one kind of picture: a line of tables and plots for each candidate."""

    device: DeviceName
    in_channels: int
    size: int
    stride: int
    dtype: str
    roof: Roof
    rows: dict[int, list[BenchRow]]
    """Those of methods and peers that have a time, by the number of filters."""

    @property
    def title(self) -> str:
        """What it is of."""
        picture = "grey" if self.in_channels == 1 else "RGB"
        return f"{picture} {self.dtype}, {self.size}×{self.size}, stride {self.stride}"

    def limits_seconds(self, filters: int) -> tuple[float, float | None]:
        """Of memory, and of arithmetic where its rate is known: below the longer no float32 method can be."""
        counts = self.rows[filters][0].counts
        arithmetic = counts.nominal_flops / self.roof.fma_flops_per_second
        return counts.fewest_bytes / self.roof.copy_bytes_per_second, None if self.dtype == "float64" else arithmetic


def bank_series(record: BenchRecord) -> list[BankSeries]:
    """Every series of a record, none where it has no banks."""
    found: dict[tuple[DeviceName, int, int, int, str], dict[int, list[BenchRow]]] = {}
    for row in record.rows:
        bank = BANK_NAME.fullmatch(row.case.filter)
        if bank and row.device in record.roofs and row.kind != "copy" and row.timings:
            key = (row.device, int(bank[1]), row.case.size, row.case.stride, row.case.dtype)
            found.setdefault(key, {}).setdefault(int(bank[2]), []).append(row)
    return [BankSeries(*key, record.roofs[key[0]], dict(sorted(found[key].items()))) for key in sorted(found)]


def bank_map(series: BankSeries) -> Table:
    """One line for each number of filters, in µs: the limits, every candidate's time, the fastest method's share of the
    limit and its lead over libraries.
    """
    first = sorted((row for rows in series.rows.values() for row in rows), key=lambda row: row.kind != "method")
    candidates = list(dict.fromkeys(row.candidate for row in first))
    lines = []
    for filters, rows in series.rows.items():
        found, (memory, arithmetic) = {row.candidate: median(row) for row in rows}, series.limits_seconds(filters)
        timed = sorted(rows, key=median)
        ours = next((row for row in timed if row.kind == "method" and row.options.math == "fma"), None)
        theirs = next((row for row in timed if row.kind == "peer" or row.candidate.startswith("cudnn")), None)
        share = None if ours is None else max(memory, arithmetic or 0.0) / median(ours)
        ratio = ratio_interval(samples(ours), samples(theirs)) if ours and theirs else None
        lead = shown(ratio, lambda known: f"no verdict ({known.doubt})" if known.doubt else str(known))
        seconds = (memory, arithmetic, *map(found.get, candidates))
        microseconds = (shown(each, lambda known: digits_text(known * 1e6, 3)) for each in seconds)
        lines.append((str(filters), *microseconds, percent(share), lead))
    named = [f"`{candidate}`" for candidate in candidates]
    header = ("filters", "memory", "arithmetic", *named, "of the limit", "lead over libraries")
    return Table(series.title, header, tuple(lines))
