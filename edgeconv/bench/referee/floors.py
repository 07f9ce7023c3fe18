"""Times that no candidate can reach: clearly below that of only reading and writing the bytes, in the same turns.

The floor is the plain candidate of the case (`copy` in records), which reads what the case must read and writes what it
must write, in the same state of the last-level cache. A time is impossible where even the floor's fast samples (p10)
take `CLEARLY` times as long as its median; both are taken again, some times, before that is said, the floor in the
shape that is the fastest by then: it may have been disturbed, or have chosen several threads before others took their
cores.
"""

from __future__ import annotations

from edgeconv.bench.referee.faults import FaultError
from edgeconv.core.problem import Problem
from edgeconv.core.timing import Series
from edgeconv.core.units import seconds_text

CLEARLY = 1.25


def has_floor(problem: Problem) -> bool:
    """Whether every row of the picture is needed: above stride 1, rows under zero weights alone need not be read."""
    return problem.stride == 1 or bool(problem.weights.any(axis=(0, 1, 2, 4)).all())


def is_impossible(series: Series, floor: Series) -> bool:
    """Whether no candidate can have taken so little."""
    return series.statistics.median_seconds * CLEARLY < floor.statistics.p10_seconds


def expect_possible(series: Series, floor: Series) -> None:
    """Raises FaultError for an impossible time."""
    if is_impossible(series, floor):
        taken, least = (seconds_text(each.statistics.median_seconds) for each in (series, floor))
        raise FaultError("impossible time", f"{taken}, and reading and writing the bytes alone takes {least}")
