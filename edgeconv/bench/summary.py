"""What a record says in short: the fastest at each case, by how much, and how sure. Reads only the record."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from edgeconv.bench.grid import Case
from edgeconv.bench.intervals import Ratio, ratio_interval
from edgeconv.bench.record import BenchRecord, BenchRow


@dataclass(frozen=True)
class Group:
    """Rows of one kind of case: the same type, filter, channels and stride, in all sizes, on one device."""

    rows: tuple[BenchRow, ...]

    @property
    def title(self) -> str:
        """In a few words."""
        device, case = self.rows[0].device, self.rows[0].case
        return f"{device.upper()}, {case.dtype}, {case.filter}, {case.channels}, stride {case.stride}"

    @property
    def sizes(self) -> tuple[int, ...]:
        """Ascending."""
        return tuple(sorted({row.case.size for row in self.rows}))


@dataclass(frozen=True)
class Winner:
    """The fastest method at a case beside the fastest peer."""

    method: BenchRow
    peer: BenchRow | None
    ratio: Ratio | None
    """The peer's time over the method's: above 1 where the method is faster."""


def groups(record: BenchRecord) -> list[Group]:
    """Rows sorted into groups, in the order in which they first come."""
    found: dict[tuple[object, ...], list[BenchRow]] = {}
    for row in record.rows:
        case = row.case
        kind = (row.device, case.dtype, case.filter, case.channels, case.stride)
        found.setdefault(kind, []).append(row)
    return [Group(tuple(rows)) for rows in found.values()]


def timed_by_case(record: BenchRecord) -> dict[tuple[str, Case], list[BenchRow]]:
    """The rows that have a time, by device and case."""
    found: dict[tuple[str, Case], list[BenchRow]] = {}
    for row in record.rows:
        if row.lead_series is not None:
            found.setdefault((row.device, row.case.named), []).append(row)
    return found


def winners(group: Group) -> list[Winner]:
    """One per size, where a method competes; peers that do not are not set against it."""
    found = []
    for size in group.sizes:
        here = [row for row in group.rows if row.case.size == size and competes(row)]
        method = fastest(row for row in here if row.kind == "method")
        peer = fastest(row for row in here if row.kind == "peer")
        if method is not None:
            ratio = None if peer is None else ratio_interval(samples(method), samples(peer))
            found.append(Winner(method, peer, ratio))
    return found


def leads(record: BenchRecord) -> dict[tuple[str, str, str], dict[Case, Ratio]]:
    """By device, kind of cases and peer: the peer's time over that of the fastest method, doubtful ones too."""
    found: dict[tuple[str, str, str], dict[Case, Ratio]] = {}
    for (device, case), timed in timed_by_case(record).items():
        method = fastest(row for row in timed if row.kind == "method" and competes(row))
        kind = "banks" if case.filter.startswith("bank-") else case.channels
        for peer in filter(competes, timed):
            if method and peer.kind == "peer":
                ratio = ratio_interval(samples(method), samples(peer))
                found.setdefault((device, kind, peer.candidate), {})[case] = ratio
    return found


def competes(row: BenchRow) -> bool:
    """Whether a row may be called the fastest.

    Not where it computes in less than float32 and the picture's type does not ask for that, nor what has another border
    or stores another output, nor where it is the same kernel as its method's own row, called from Python (`call=plan`
    of older records).
    """
    differs = row.differs or ""
    reduced = row.options.math != "fma" or differs.startswith("half")
    other = "its border is" in differs or "its output is" in differs
    return not (reduced and row.case.dtype != "float16") and not other and ":call=" not in row.candidate


def fastest(rows: Iterable[BenchRow]) -> BenchRow | None:
    """The row with the least median among those that were timed."""
    return min((row for row in rows if row.lead_l2_state is not None), key=median, default=None)


def median(row: BenchRow) -> float:
    """Seconds that a timed row leads with."""
    series = row.lead_series
    return math.inf if series is None else float(series.median_seconds)


def samples(row: BenchRow) -> Sequence[float]:
    """The samples behind `median`."""
    series = row.lead_series
    return [] if series is None else list(series.samples_seconds)
