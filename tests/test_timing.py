"""Statistics to exact numbers, with a clock that the test turns."""

from __future__ import annotations

import pytest

from edgeconv.core.timing import (
    Budget,
    Sampler,
    Stopwatch,
    collect,
    noise,
    series_of,
)


class FakeClock:
    """Seconds that pass only when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def run_of(self, seconds: float) -> float:
        self.now += seconds
        return seconds


def test_summary_of_eleven_samples() -> None:
    samples = [float(value) for value in (5, 3, 1, 2, 4, 11, 10, 9, 8, 7, 6)]
    summary = series_of(samples, "time limit")
    assert (summary.median_seconds, summary.p10_seconds, summary.p90_seconds) == (6.0, 2.0, 10.0)
    assert (summary.min_seconds, summary.n) == (1.0, 11)
    assert noise(samples) == pytest.approx(8 / 6)


def test_few_samples_have_no_p10_and_p90() -> None:
    few, enough = (series_of([1.0, 2.0, 3.0, 4.0, 5.0][:count], "time limit") for count in (4, 5))
    assert (few.median_seconds, few.min_seconds, few.p10_seconds, few.p90_seconds) == (2.5, 1.0, None, None)
    assert (enough.p10_seconds, enough.p90_seconds) == (pytest.approx(1.4), pytest.approx(4.6))


def test_no_samples_have_no_summary() -> None:
    with pytest.raises(ValueError, match="no samples"):
        series_of([], "time limit")


@pytest.mark.parametrize(
    ("durations", "budget", "n", "because"),
    [
        ([1.0] * 100, Budget(5, 200, 1000.0, 0.02), 5, "noise target"),
        ([1.0, 9.0] * 100, Budget(5, 8, 1000.0, 0.02), 8, "sample limit"),
        ([1.0, 9.0] * 100, Budget(5, 200, 24.0, 0.02), 6, "time limit"),
        ([20.0] * 100, Budget(7, 200, 12.0, 0.02), 5, "time limit"),
        ([50.0] * 100, Budget(7, 200, 12.0, 0.02), 3, "time limit"),
        ([110.0] * 100, Budget(5, 200, 12.0, 0.02), 2, "time limit"),
        ([120.0] * 100, Budget(5, 200, 12.0, 0.02), 1, "time limit"),
        ([150.0] * 100, Budget(5, 200, 12.0, 0.02), 1, "time limit"),
        ([1.0] * 100, Budget(5, 200, 0.0, 0.02), 1, "time limit"),
    ],
)
def test_sampling_stops_and_says_why(durations, budget, n, because) -> None:
    clock = FakeClock()
    pending = iter(durations)
    (series,) = collect([lambda: clock.run_of(next(pending))], budget, clock)
    assert (len(series.samples_seconds), series.stopped_because) == (n, because)
    assert list(series.samples_seconds) == durations[:n]


def test_stopwatch_adds_up_a_phase_that_comes_twice() -> None:
    clock = FakeClock()
    watch = Stopwatch(clock)
    for seconds in (2.0, 3.0):
        with watch.phase("convolve"):
            clock.run_of(seconds)
    with watch.phase("encode"):
        clock.run_of(1.0)
    assert watch.phases_seconds == {"convolve": 5.0, "encode": 1.0}


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (Budget(min_samples=2, max_samples=100, time_limit_seconds=1000.0, turns=3), [1.0, 2.0, 3.0]),
        (Budget(min_samples=100, max_samples=100, time_limit_seconds=8.0, turns=4), [2.0, 4.0, 6.0, 8.0]),
        (Budget(min_samples=100, max_samples=8, time_limit_seconds=1000.0, turns=4), [2.0, 4.0, 6.0, 8.0]),
    ],
    ids=["quiet", "time", "samples"],
)
def test_a_turn_ends_with_its_part_of_each_limit(budget: Budget, expected: list[float]) -> None:
    clock = FakeClock()
    sampler = Sampler(lambda: clock.run_of(1.0), budget, clock)
    ends = []
    while sampler.stopped_because is None:
        sampler.take_turn()
        ends.append(clock.now)
    assert ends == expected


def test_an_unfinished_series_cannot_be_read() -> None:
    with pytest.raises(ValueError, match="not complete"):
        _ = Sampler(lambda: 1.0, Budget()).series
