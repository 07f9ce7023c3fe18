"""Timing samples and their statistics, independent of devices: a caller provides a function that times one run.

    cold   the first run of a plan: the cost for a single picture
    warm   the median of many, with the least and the count, and from `LEAST_SAMPLES` on with p10 and p90

Percentiles are linear between closest ranks (NumPy's default). Noise is (p90 − p10) / median.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

Clock = Callable[[], float]

StopReason = Literal["noise target", "time limit", "sample limit", "every tile of the full size was taken"]


@dataclass(frozen=True)
class Statistics:
    """Order statistics of a series, in seconds; p10 and p90 are None of fewer than `LEAST_SAMPLES`."""

    median_seconds: float
    p10_seconds: float | None
    p90_seconds: float | None
    min_seconds: float
    n: int


@dataclass(frozen=True)
class Series:
    """Every sample in the order taken, in seconds, and why the sampling stopped."""

    samples_seconds: tuple[float, ...]
    stopped_because: StopReason

    @property
    def statistics(self) -> Statistics:
        """The summary of the samples."""
        return summarize(self.samples_seconds)


@dataclass(frozen=True)
class Budget:
    """When to stop: at `max_samples`, after `time_limit_seconds`, or once noise is at most `noise_target`.

    The time limit waits for `LEAST_SAMPLES`, since fewer show no spread, but no longer than `PATIENCE` limits.
    Interleaved series divide the budget: a turn ends with its part of the samples or of the time, or with its part of
    `min_samples` where their noise is low, and no series counts as low in noise before it had all its `turns`.
    """

    min_samples: int = 5
    max_samples: int = 200
    time_limit_seconds: float = 0.15
    noise_target: float = 0.02
    turns: int = 1


LEAST_SAMPLES = 5
"""Of fewer there are no p10 and p90, and no verdict on a ratio (bench/intervals.py)."""
PATIENCE = 10


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value below which `share` (0 to 1) of the sorted values lie, linear between ranks."""
    rank = share * (len(ordered) - 1)
    below = int(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (rank - below)


def summarize(samples: Sequence[float]) -> Statistics:
    """Order statistics of one or more samples."""
    if not samples:
        raise ValueError("no samples")
    ordered = sorted(samples)
    has_spread = len(ordered) >= LEAST_SAMPLES
    return Statistics(
        median_seconds=percentile(ordered, 0.5),
        p10_seconds=percentile(ordered, 0.1) if has_spread else None,
        p90_seconds=percentile(ordered, 0.9) if has_spread else None,
        min_seconds=ordered[0],
        n=len(ordered),
    )


def noise(samples: Sequence[float]) -> float:
    """(p90 − p10) / median of one or more samples, 0 for a median of 0."""
    ordered = sorted(samples)
    median = percentile(ordered, 0.5)
    return (percentile(ordered, 0.9) - percentile(ordered, 0.1)) / median if median > 0 else 0.0


class Sampler:
    """A series while it is sampled. `time_once` returns the seconds of one run."""

    def __init__(self, time_once: Callable[[], float], budget: Budget, clock: Clock = time.perf_counter) -> None:
        self._time_once, self._budget, self._clock = time_once, budget, clock
        self._samples: list[float] = []
        self._spent_seconds = 0.0
        self._turn = 0
        self.stopped_because: StopReason | None = None

    def take_turn(self) -> None:
        """Take samples, at least one, until this turn's part of the budget is used up, or all of it."""
        budget = self._budget
        self._turn += 1
        before, until = len(self._samples), self._spent_seconds + budget.time_limit_seconds / budget.turns
        while self.stopped_because is None:
            self._take()
            taken = len(self._samples) - before
            quiet = taken * budget.turns >= budget.min_samples and self._is_quiet()
            if quiet or taken * budget.turns >= budget.max_samples or self._spent_seconds >= until:
                return

    @property
    def series(self) -> Series:
        """The complete series; only once the budget is used up."""
        if self.stopped_because is None:
            raise ValueError("the series is not complete")
        return Series(tuple(self._samples), self.stopped_because)

    def _take(self) -> None:
        """Take one sample, and check whether the budget is used up."""
        started = self._clock()
        self._samples.append(self._time_once())
        self._spent_seconds += self._clock() - started
        self.stopped_because = self._why_to_stop()

    def _why_to_stop(self) -> StopReason | None:
        budget, n = self._budget, len(self._samples)
        if n >= budget.max_samples:
            return "sample limit"
        limit = budget.time_limit_seconds
        limits_over = self._spent_seconds / limit if limit > 0 else PATIENCE
        if limits_over >= (1 if n >= LEAST_SAMPLES else PATIENCE):
            return "time limit"
        if self._turn >= budget.turns and n >= budget.min_samples and self._is_quiet():
            return "noise target"
        return None

    def _is_quiet(self) -> bool:
        return noise(self._samples) <= self._budget.noise_target


def collect(time_once: Callable[[], float], budget: Budget, clock: Clock = time.perf_counter) -> Series:
    """Call `time_once` (it returns the seconds of one run) until the budget is used up; at least once."""
    sampler = Sampler(time_once, replace(budget, turns=1), clock)
    while sampler.stopped_because is None:
        sampler.take_turn()
    return sampler.series


def interleave(turns: Sequence[tuple[Sampler, Callable[[], None]]]) -> None:
    """Interleave several series, so that a machine that slows down affects all of them alike.

    Each sampler comes with a function that is called, untimed, before its turn: a run that restores what the others
    evicted from the caches.
    """
    while pending := [turn for turn in turns if turn[0].stopped_because is None]:
        for sampler, settle in pending:
            settle()
            sampler.take_turn()


class Stopwatch:
    """Wall-clock time of named phases, in the order in which they started."""

    def __init__(self, clock: Clock = time.perf_counter) -> None:
        self._clock = clock
        self.phases_seconds: dict[str, float] = {}

    def phase(self, name: str) -> _Phase:
        """A context manager that adds the time spent inside to `name`."""
        return _Phase(self, name, self._clock)


class _Phase:
    def __init__(self, owner: Stopwatch, name: str, clock: Clock) -> None:
        self._owner, self._name, self._clock = owner, name, clock

    def __enter__(self) -> None:
        self._started = self._clock()

    def __exit__(self, *_: object) -> None:
        phases = self._owner.phases_seconds
        phases[self._name] = phases.get(self._name, 0.0) + self._clock() - self._started
