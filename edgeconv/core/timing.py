"""Timing samples and their statistics, independent of devices: a caller provides a function that times one run.

    cold   the first run of a plan: the cost for a single picture
    warm   the median of many, with the least and the count, and from `MIN_SAMPLES` on with p10 and p90

Percentiles are linear between closest ranks (NumPy's default). Noise is (p90 − p10) / median.

Several series are taken by turns, so that a machine that slows down affects all of them alike. A turn ends with its
part of the budget's samples or of its time, or with its part of `min_samples` where their noise is low; no series
counts as low in noise before it had all its turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Literal

from edgeconv.core.records import Amount, Meta, Part, Positive

Clock = Callable[[], float]

StopReason = Literal["noise target", "time limit", "sample limit", "every tile of the full size was taken"]

MIN_SAMPLES = 5
"""Of fewer there are no p10 and p90, and no verdict on a ratio (bench/intervals.py)."""
PATIENCE = 10
SAMPLE_DIGITS = 4
"""Significant digits of a sample: finer than a sample is like the next. Medians are of all digits."""


class Series(Part):
    """Statistics of a series, every sample in the order taken, and why the sampling stopped."""

    median_seconds: Amount
    p10_seconds: Annotated[Amount | None, Meta(description="null of fewer than 5 samples, as p90_seconds")]
    p90_seconds: Amount | None
    min_seconds: Amount
    n: Positive
    stopped_because: StopReason
    samples_seconds: Annotated[list[Amount], Meta(min_length=1)]

    @property
    def spread_seconds(self) -> tuple[float, float] | None:
        """p10 and p90; None of fewer than `MIN_SAMPLES`, of which older records have them too."""
        if self.p10_seconds is None or self.p90_seconds is None or self.n < MIN_SAMPLES:
            return None
        return self.p10_seconds, self.p90_seconds


def series_of(samples: Sequence[float], stopped_because: StopReason) -> Series:
    """The series of one or more samples."""
    if not samples:
        raise ValueError("no samples")
    ordered = sorted(samples)
    has_spread = len(ordered) >= MIN_SAMPLES
    return Series(
        median_seconds=percentile(ordered, 0.5),
        p10_seconds=percentile(ordered, 0.1) if has_spread else None,
        p90_seconds=percentile(ordered, 0.9) if has_spread else None,
        min_seconds=ordered[0],
        n=len(ordered),
        stopped_because=stopped_because,
        samples_seconds=[float(f"{seconds:.{SAMPLE_DIGITS}g}") for seconds in samples],
    )


@dataclass(frozen=True)
class Budget:
    """When to stop: at `max_samples`, after `time_limit_seconds`, or once noise is at most `noise_target`.

    The time limit waits for `MIN_SAMPLES`, since fewer show no spread, but no longer than `PATIENCE` limits.
    A series has `turns`.
    """

    min_samples: int = 5
    max_samples: int = 200
    time_limit_seconds: float = 0.15
    noise_target: float = 0.02
    turns: int = 1

    def why_to_stop(self, samples: Sequence[float], spent_seconds: float, quiet_ends: bool = True) -> StopReason | None:
        """Why a series that took so long so far is complete; None where it goes on."""
        if len(samples) >= self.max_samples:
            return "sample limit"
        limits_over = spent_seconds / self.time_limit_seconds if self.time_limit_seconds > 0 else PATIENCE
        if limits_over >= (1 if len(samples) >= MIN_SAMPLES else PATIENCE):
            return "time limit"
        if quiet_ends and len(samples) >= self.min_samples and noise(samples) <= self.noise_target:
            return "noise target"
        return None


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value below which `share` (0 to 1) of the sorted values lie, linear between ranks."""
    rank = share * (len(ordered) - 1)
    below = int(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (rank - below)


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
            quiet = taken * budget.turns >= budget.min_samples and noise(self._samples) <= budget.noise_target
            if quiet or taken * budget.turns >= budget.max_samples or self._spent_seconds >= until:
                return

    @property
    def series(self) -> Series:
        """The complete series; only once the budget is used up."""
        if self.stopped_because is None:
            raise ValueError("the series is not complete")
        return series_of(self._samples, self.stopped_because)

    def _take(self) -> None:
        """Take one sample, and check whether the budget is used up."""
        started = self._clock()
        self._samples.append(self._time_once())
        self._spent_seconds += self._clock() - started
        last_turn = self._turn >= self._budget.turns
        self.stopped_because = self._budget.why_to_stop(self._samples, self._spent_seconds, last_turn)


def collect(timed: Sequence[Callable[[], float]], budget: Budget, clock: Clock = time.perf_counter) -> list[Series]:
    """Series of functions that return the seconds of one run, by turns until the budget of each is used up."""
    samplers = [Sampler(time_once, budget, clock) for time_once in timed]
    while unfinished := [each for each in samplers if each.stopped_because is None]:
        for each in unfinished:
            each.take_turn()
    return [each.series for each in samplers]


class Stopwatch:
    """Wall-clock time of named phases, in the order in which they started."""

    def __init__(self, clock: Clock = time.perf_counter) -> None:
        self._clock = clock
        self.phases_seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time that is spent inside the block to `name`."""
        started = self._clock()
        try:
            yield
        finally:
            self.phases_seconds[name] = self.phases_seconds.get(name, 0.0) + self._clock() - started

    def add(self, name: str, seconds: float) -> None:
        """Add time that was measured elsewhere."""
        self.phases_seconds[name] = self.phases_seconds.get(name, 0.0) + seconds
