"""Several series by turns, so that a machine that slows down affects all of them alike.

A turn ends with its part of the budget's samples or of its time, or with its part of `min_samples` where their noise is
low; no series counts as low in noise before it had all its turns.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter, process_time, sleep

from edgeconv.core.timing import Budget, Clock, Series, StopReason, noise, series_of

MAX_QUIET_SECONDS = 0.25
QUIET_LOOK_SECONDS = 0.002
QUIET_SHARE = 0.2
"""Of one core, in all threads together."""


class Sampler:
    """A series while it is sampled. `time_once` returns the seconds of one run."""

    def __init__(self, time_once: Callable[[], float], budget: Budget, clock: Clock = perf_counter) -> None:
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


def wait_until_quiet() -> None:
    """Wait until the threads of this process rest, `MAX_QUIET_SECONDS` at most.

    Threads of many libraries spin for milliseconds after their last work (OpenMP's, ONNX Runtime's), on the very cores
    that the next to be timed would work on.
    """
    deadline = perf_counter() + MAX_QUIET_SECONDS
    while (started := perf_counter()) < deadline:
        before = process_time()
        sleep(QUIET_LOOK_SECONDS)
        if process_time() - before < QUIET_SHARE * (perf_counter() - started):
            return
