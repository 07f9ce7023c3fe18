"""Times that no candidate can reach: clearly below that of only reading and writing the bytes, in the same turns.

The floor is the plain candidate of the case (`copy` in records), which reads what the case must read and writes what it
must write, in the same state of the last-level cache. A time is impossible where even the floor's fast samples (p10)
take `CLEARLY` times as long as its median. Other programs may have disturbed the floor, or the shape that it has may be
of several threads whose cores others took since. So both are taken again, some times, before that is said: with the
samples of `evidence`, the floor in the shape that is the fastest by then; the fastest series of each counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from edgeconv.bench.referee.faults import FaultError
from edgeconv.core.problem import Problem
from edgeconv.core.timing import Budget, Series, Statistics
from edgeconv.core.units import seconds_text

CLEARLY = 1.25
EVIDENCE_SAMPLES = 9
EVIDENCE_SECONDS = 0.2
"""Of each series that a verdict stands on, at least."""


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


def is_impossible(taken: Sequence[Series], floors: Sequence[Series]) -> bool:
    """Whether no candidate can have taken so little: the fastest of its series beside the floor's."""
    return _fastest(taken).median_seconds * CLEARLY < min(floor.statistics.p10_seconds for floor in floors)


def expect_possible(taken: Sequence[Series], floors: Sequence[Series]) -> None:
    """Raises FaultError for an impossible time."""
    if is_impossible(taken, floors):
        seconds, least = (seconds_text(_fastest(series).median_seconds) for series in (taken, floors))
        raise FaultError("impossible time", f"{seconds}, and reading and writing the bytes alone takes {least}")


def _fastest(series: Sequence[Series]) -> Statistics:
    return min((each.statistics for each in series), key=lambda statistics: statistics.median_seconds)
