"""Times that no candidate can reach: clearly below that of only reading and writing the bytes, in the same turns.

The floor is the plain candidate of the case (`copy` in records), which reads what the case must read and writes what it
must write, in the same state of the last-level cache. A time is impossible where even the floor's fast samples (p10)
take `CLEARLY` times as long as its median. Other programs may have disturbed the floor, or the shape that it has may be
of several threads whose cores others took since. So both are taken again, some times, before that is said: with the
samples of `evidence`, the floor in the shape that is the fastest by then. The time must be impossible each time.
"""

from __future__ import annotations

from dataclasses import replace

from edgeconv.bench.referee.faults import FaultError
from edgeconv.core.problem import Problem
from edgeconv.core.timing import Budget, Series, percentile
from edgeconv.core.units import seconds_text

CLEARLY = 1.25
EVIDENCE_SAMPLES, EVIDENCE_SECONDS = 9, 0.2
"""What each further series has, at least: so many samples, or what there is time for, and never fewer than five."""


def has_floor(problem: Problem) -> bool:
    """Whether every row of the picture is needed: above stride 1, rows under zero weights alone need not be read."""
    return problem.stride == 1 or bool(problem.weights.any(axis=(0, 1, 2, 4)).all())


def evidence(budget: Budget) -> Budget:
    """A budget as `budget`, of samples enough for a verdict where it is for one or two."""
    return replace(
        budget,
        min_samples=max(EVIDENCE_SAMPLES, budget.min_samples),
        max_samples=max(EVIDENCE_SAMPLES, budget.max_samples),
        time_limit_seconds=max(EVIDENCE_SECONDS, budget.time_limit_seconds),
    )


def is_impossible(series: Series, floor: Series) -> bool:
    """Whether no candidate can have taken so little."""
    return series.statistics.median_seconds * CLEARLY < percentile(sorted(floor.samples_seconds), 0.1)


def expect_possible(series: Series, floor: Series) -> None:
    """Raises FaultError for an impossible time."""
    if is_impossible(series, floor):
        taken, least = (seconds_text(each.statistics.median_seconds) for each in (series, floor))
        raise FaultError("impossible time", f"{taken}, and reading and writing the bytes alone takes {least}")
