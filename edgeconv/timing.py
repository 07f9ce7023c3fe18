"""Samples and what they say. No device is known here: a caller brings a function that times one run.

    cold   the first run of a plan: what a single picture pays
    warm   the median of many, with p10, p90, the least and how many

Percentiles are linear between closest ranks (NumPy's default). Noise is (p90 − p10) / median.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Clock = Callable[[], float]


@dataclass(frozen=True)
class Statistics:
    """Order statistics of a series, in seconds."""

    median_seconds: float
    p10_seconds: float
    p90_seconds: float
    min_seconds: float
    n: int

    @property
    def noise(self) -> float:
        """(p90 − p10) / median, 0 for a median of 0."""
        spread = self.p90_seconds - self.p10_seconds
        return spread / self.median_seconds if self.median_seconds > 0 else 0.0


@dataclass(frozen=True)
class Series:
    """Every sample in the order taken, in seconds, and why the sampling stopped."""

    samples_seconds: tuple[float, ...]
    stopped_because: str

    @property
    def statistics(self) -> Statistics:
        """The summary of the samples."""
        return summarize(self.samples_seconds)


@dataclass(frozen=True)
class Budget:
    """When to stop: at `max_samples`, after `time_limit_seconds`, or once noise is at most `noise_target`.

    The time limit waits for `LEAST_SAMPLES`, since one sample has no spread, but no longer than `PATIENCE` limits.
    """

    min_samples: int = 5
    max_samples: int = 200
    time_limit_seconds: float = 0.15
    noise_target: float = 0.02


LEAST_SAMPLES = 3
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
    return Statistics(
        median_seconds=percentile(ordered, 0.5),
        p10_seconds=percentile(ordered, 0.1),
        p90_seconds=percentile(ordered, 0.9),
        min_seconds=ordered[0],
        n=len(ordered),
    )


def collect(time_once: Callable[[], float], budget: Budget, clock: Clock = time.perf_counter) -> Series:
    """Call `time_once` (it returns the seconds of one run) until the budget says stop; at least once."""
    started = clock()
    samples: list[float] = []
    while True:
        samples.append(time_once())
        if len(samples) >= budget.max_samples:
            return Series(tuple(samples), "sample limit")
        limits_over = (clock() - started) / budget.time_limit_seconds if budget.time_limit_seconds > 0 else PATIENCE
        if limits_over >= (1 if len(samples) >= LEAST_SAMPLES else PATIENCE):
            return Series(tuple(samples), "time limit")
        if len(samples) >= budget.min_samples and summarize(samples).noise <= budget.noise_target:
            return Series(tuple(samples), "noise target")


class Stopwatch:
    """Wall time of named phases, in the order they began."""

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
