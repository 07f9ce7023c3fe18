"""One case, measured: every candidate is set up, run cold, checked against the oracle, tried, and only then timed.

    set up ── first run (cold) ── check ── trials ──┬── right: turns with cold L2, turns with warm L2, checked again,
                                                    │          trains, end to end
                                                    └── wrong: a row with the error and no time

Turns go round all candidates of a device, several times, so that a machine that changes changes all of them alike.
A row's `status` is measured, wrong (the output is not the oracle's), disqualified (the referee found a fault: see
referee/faults.py), refused (edgeconv's own reason), or failed (an error of a library, in its message). Times are those
of the convolution alone: the picture is on the device before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench import metrics
from edgeconv.bench.candidates import Bench, BenchCandidate, Ready, share
from edgeconv.bench.grid import Case
from edgeconv.bench.record import BenchRow, BusPart, CasePart, FilesPart, Status, rounded
from edgeconv.bench.referee.faults import Fault, FaultError
from edgeconv.bench.referee.floors import evidence, expect_possible, has_floor, is_impossible
from edgeconv.bench.referee.pictures import TimedPictures
from edgeconv.bench.referee.trials import Trials
from edgeconv.bench.rules import TimingRules as TimingRules
from edgeconv.bench.synthetic import bench_channels, bench_filter, grey_of
from edgeconv.bench.watch import Watch, Watched
from edgeconv.core.choices import DeviceName
from edgeconv.core.cost import Counts, Roof, count
from edgeconv.core.filters import GREY_CHANNELS, RGB_CHANNELS
from edgeconv.core.noise import noise_pixels
from edgeconv.core.output import full_range
from edgeconv.core.problem import Problem
from edgeconv.core.request import Request, make_request
from edgeconv.core.timing import Budget, Sampler, Series, collect, interleave
from edgeconv.errors import EdgeconvError, one_line_with_class
from edgeconv.hardware.process import wait_until_quiet
from edgeconv.io.files import STANDARD_STREAM
from edgeconv.io.formats import FORMAT_OF_DTYPE
from edgeconv.io.image import decode_image, encode_image
from edgeconv.io.resize import resize
from edgeconv.run.report import describe_check, describe_counts, describe_series, sha256_of
from edgeconv.runtime import check as verify
from edgeconv.runtime.devices.base import L2State, Train

SETTLED_SECONDS = 0.02
"""A longer run fills the caches many times over, so that nothing is gained by an untimed one before it."""
RETAKES = 3
"""More series of a candidate and the floor before a time counts as impossible: the floor may have been disturbed."""
TRAIN_CALLS = 50
TRAIN_SECONDS = 0.05
"""Most calls of a train of launches, and most time for it."""
FEW = Budget(min_samples=3, max_samples=7, time_limit_seconds=0.05)
"""For what is timed beside the convolution: the bus, files."""


LONGEST_REASON = 500
"""Characters of a library's own message that are stored."""
DIGITS = 10
"""A sample is stored to a tenth of a nanosecond, finer than any clock here."""


@dataclass(frozen=True)
class Place:
    """A device in this run: who competes there, its measured roof, and the watch over it."""

    device: DeviceName
    candidates: tuple[BenchCandidate, ...]
    roof: Roof
    watch: Watch


def request_for(case: Case, rules: TimingRules) -> Request:
    """The request that a case stands for."""
    return make_request(
        bench_filter(case.filter, case.channels),
        channels=case.channels,
        stride=case.stride,
        padding=rules.padding,
        border=rules.border,
        output_mode=rules.output_mode,
    )


def pixels_for(case: Case, picture: NDArray[Any] | None) -> NDArray[Any]:
    """Noise of size × size, or `picture` with a longest side of that size, in the case's type; grey where that is."""
    channels = bench_channels(case.filter)
    if picture is None:
        return noise_pixels(case.size, case.size, case.dtype, channels)
    sized = resize(picture, case.size)
    if channels == GREY_CHANNELS:
        sized = grey_of(sized)
    target = np.dtype(case.dtype)
    if sized.dtype == target:
        return sized
    scaled = sized.astype(np.float64) / full_range(sized.dtype)
    if target.kind == "u":
        return np.rint(np.clip(scaled, 0, 1) * full_range(target)).astype(target)
    return scaled.astype(target)


@dataclass(frozen=True)
class CaseResult:
    """One row per candidate, in their order, and what decoding and encoding take (None where no method ran)."""

    rows: list[BenchRow]
    files: FilesPart | None


def measure(
    case: Case, pixels: NDArray[Any], place: Place, rules: TimingRules, with_files: bool, seed: int
) -> CaseResult:
    """Measure all candidates of `place` at `case`, decoding and encoding if asked; `pixels` as `pixels_for` gives.

    `seed`, which nobody knew before this run, gives the pictures that are timed.
    """
    request = request_for(case, rules)
    bench = share(place.device, request, pixels)
    problem = bench.problem
    rng = np.random.default_rng([seed, crc32(str(case).encode())])
    with bench.device.guard(problem.input_bytes + problem.output_bytes):
        pictures = TimedPictures(bench, rng, case.picture is None)
    trials = Trials(pictures, rules.check_samples if rules.check == "sample" else None)
    place.watch.begin()
    entered = [_Entered(candidate, bench, rules, trials) for candidate in place.candidates]
    runners = [runner for runner in entered if runner.status == "measured"]
    pictures.show_all()
    for state in rules.l2_states:
        _take_turns([runner for runner in runners if runner.status == "measured"], state, rules.budget, place.watch)
    for runner in runners:
        runner.check_again()
    _refuse_impossible(runners, problem, rules, place.watch)
    pictures.show_check()
    bus = _time_bus(bench) if rules.around and bench.device.moves_data else None
    runners = [runner for runner in runners if runner.status == "measured"]
    for runner in runners:
        runner.finish(bus, rules)
    methods = [runner for runner in runners if runner.candidate.kind == "method"]
    files = None
    if rules.around and with_files and methods and holds_as_file(problem):
        methods[0].once()  # the output of the check's picture, which a file is made of
        files = _time_files(bench, methods[0], case)
    seen = place.watch.report()
    counts = count(problem)
    copies = next((runner.series for runner in runners if runner.candidate.kind == "copy"), {})
    shown = _describe_case(case, request, problem, pixels)
    rows = [runner.row(shown, counts, copies, place, seen) for runner in entered]
    return CaseResult(rows, files)


class _Entered:
    """A candidate at one case: set up, run once, checked and tried by the constructor."""

    def __init__(self, candidate: BenchCandidate, bench: Bench, rules: TimingRules, trials: Trials) -> None:
        self.candidate, self.bench, self.trials = candidate, bench, trials
        self.status: Status = "measured"
        self.reason: str | None = None
        self.fault: Fault | None = None
        self.turns = self.samples = 0
        self.ready: Ready | None = None
        self.check: verify.Check | None = None
        self.set_up_seconds: float | None = None
        self.cold_seconds: float | None = None
        self.last_seconds = 0.0
        self.series: dict[L2State, Series] = {}
        self.launch: Train | None = None
        self.end_to_end: Series | None = None
        self.bus: BusPart | None = None
        try:
            reason = candidate.unavailable_reason()
            if reason is not None:
                self.status, self.reason = "refused", reason
                return
            self._set_up(rules)
            if self.status == "measured":
                self._try()
        except FaultError as error:
            self.disqualify(error)
        except EdgeconvError as error:
            self.status, self.reason = "refused", str(error)
        except Exception as error:  # a library's own, of any class: the others still run
            self.fail(error)

    def fail(self, error: Exception) -> None:
        """Say what a library raised, and keep no time that was taken before."""
        if isinstance(error, FaultError):
            self.disqualify(error)
            return
        self.status = "failed"
        self.reason = one_line_with_class(error, LONGEST_REASON)
        self._forget_times()

    def disqualify(self, error: FaultError) -> None:
        """Say what the referee found, and keep no time that was taken before."""
        self.status, self.reason, self.fault = "disqualified", str(error), error.fault
        self.ready = None  # what it holds, threads among it, is given up
        self._forget_times()

    def _forget_times(self) -> None:
        self.series.clear()
        self.end_to_end = self.launch = self.bus = None

    def _set_up(self, rules: TimingRules) -> None:
        bench = self.bench
        started = perf_counter()
        self.ready = self.candidate.prepare(bench)
        self.set_up_seconds = perf_counter() - started
        self.trials.pictures.show_check()
        self.trials.pictures.poison(bench.out)
        started = perf_counter()
        self.once()
        self.cold_seconds = perf_counter() - started
        if self.candidate.kind == "copy":
            return
        limit = rules.check_samples if rules.check == "sample" else None
        found = self.ready.result()
        self.check = verify.check(
            bench.image_host,
            found,
            self.ready.problem,
            self.ready.arithmetic,
            limit,
            self.ready.tolerance,
        )
        if not self.check.passed:
            self.status = "wrong"
            self.reason = f"{self.check.unexplained_samples:,} wrong samples, worst at {self.check.worst}"
            wrong_share = self.check.unexplained_samples / self.check.checked_samples
            fault = self.trials.why_wrong(self.ready, found, wrong_share) if self._writes_to_bench else None
            self.ready = None
            if fault is not None:
                raise FaultError(fault, self.reason)

    @property
    def _writes_to_bench(self) -> bool:
        """Whether it reads and writes the arrays of the bench, so that the referee can change them."""
        return self.candidate.kind == "method"

    def _try(self) -> None:
        """What comes between a right output and the first timed sample; raises FaultError."""
        ready = self.ready
        if ready is None or self.candidate.kind == "copy":
            return
        if self._writes_to_bench:
            self.trials.before(ready, self.once)
        else:  # what is timed is a picture that it has not seen
            self.ready = ready = None
            self.ready = self.candidate.prepare(replace(self.bench, image_host=self.trials.pictures.drawn))
            self.once()

    def choose_again(self) -> None:
        """Set a floor up anew, in the shape that is the fastest now: others may use the cores that it had."""
        self.ready = None  # its arrays are given up before others are made
        self.ready = self.candidate.prepare(self.bench)

    def begin_turn(self) -> None:
        """Go on with the other slot."""
        self.turns += 1
        self.trials.pictures.use(self.turns)

    def check_again(self) -> None:
        """After the last timed sample: is its output right?"""
        if self.status != "measured" or self.ready is None or self.candidate.kind == "copy":
            return
        try:
            if self._writes_to_bench:
                self.trials.after(self.ready, self.once)
            else:
                self.trials.again(self.ready)
        except Exception as error:  # the others still run
            self.fail(error)

    def once(self) -> None:
        """One run, waited for."""
        assert self.ready is not None  # set up by the constructor
        self.ready.run()
        (self.ready.synchronize or self.bench.device.synchronize)()

    def time_once(self, state: L2State, enqueue_seconds: float) -> float:
        """Seconds of one run, by the device's clock, or by the host's where the candidate has queues of its own."""
        assert self.ready is not None  # set up by the constructor
        device, ready = self.bench.device, self.ready
        if ready.synchronize is None:
            renew = None
            if self._writes_to_bench:
                # An empty cache is the same after any write: then all of the output is new, and the slot another.
                number = self.samples if state == "cold" else self.turns
                renew = self.trials.renew(number, whole=state == "cold")
            self.last_seconds = round(device.time_once(ready.run, state, enqueue_seconds, renew), DIGITS)
            if self._writes_to_bench:
                self.trials.sample(ready)
            self.samples += 1
            return self.last_seconds
        if state == "cold":
            device.time_once(lambda: None, "cold")
        else:
            self.once()
        started = perf_counter()
        ready.run()
        ready.synchronize()
        self.last_seconds = round(perf_counter() - started, DIGITS)
        return self.last_seconds

    def finish(self, bus: BusPart | None, rules: TimingRules) -> None:
        """What is timed beside the turns: the way over the bus."""
        self.bus = bus
        if bus is None or self.candidate.kind != "method" or self.ready is None:
            return
        bench, run = self.bench, self.ready.run
        staged_in, staged_out = bench.staging

        def once() -> float:
            started = perf_counter()
            bench.device.copy_in(staged_in, bench.image)
            run()
            bench.device.copy_out(bench.out, staged_out)
            return perf_counter() - started

        self.end_to_end = collect(once, replace(rules.budget, time_limit_seconds=rules.budget.time_limit_seconds / 2))

    def row(
        self,
        shown: CasePart,
        counts: Counts,
        copies: dict[L2State, Series],
        place: Place,
        seen: Watched,
    ) -> BenchRow:
        """The record of this candidate at this case."""
        candidate, ready = self.candidate, self.ready
        found = {
            state: metrics.metrics_of(
                counts,
                series.statistics.median_seconds,
                copies[state].statistics.median_seconds if state in copies else None,
                place.roof,
                None if ready is None else ready.moved_bytes,
            )
            for state, series in self.series.items()
        }
        lead: L2State = self.bench.device.l2_state
        warm = self.series.get("warm")
        launch_bound = None
        if self.launch is not None and warm is not None:
            launch_bound = self.launch.enqueue_seconds >= warm.statistics.median_seconds
        by_host = ready is not None and ready.synchronize is not None
        row = BenchRow(
            case=shown,
            kind=candidate.kind,
            candidate=candidate.label,
            name=candidate.name,
            device=candidate.device,
            options=candidate.options,
            status=self.status,
            reason=self.reason,
            differs=ready.differs if ready is not None else None,
            check=describe_check(self.check),
            workspace_bytes=None if ready is None else ready.workspace_bytes,
            moved_bytes=None if ready is None else ready.moved_bytes,
            launches=None if ready is None else ready.launches,
            choice={} if ready is None else ready.choice,
            counts=describe_counts(counts),
            set_up_seconds=self.set_up_seconds,
            cold_seconds=self.cold_seconds,
            clock="CUDA events" if self.bench.device.moves_data and not by_host else "monotonic",
            lead_l2_state=lead if lead in self.series else next(iter(self.series), None),
            timings={state: describe_series(series) for state, series in self.series.items()},
            metrics=found,
            launch=self.launch,
            launch_bound=launch_bound,
            bus=self.bus,
            end_to_end=None if self.end_to_end is None else describe_series(self.end_to_end),
            machine=seen,
            fault=self.fault,
        )
        return rounded(row)


def _take_turns(runners: Sequence[_Entered], state: L2State, budget: Budget, watch: Watch) -> None:
    turns = []
    for runner in runners:
        enqueue_seconds = _guarded(runner, partial(_enqueue_seconds, runner))

        def timed(runner: _Entered = runner, enqueue_seconds: float = enqueue_seconds) -> float:
            return _guarded(runner, lambda: runner.time_once(state, enqueue_seconds))

        def settle(runner: _Entered = runner) -> None:
            if not runner.bench.device.moves_data:
                wait_until_quiet()
            runner.begin_turn()
            if runner.last_seconds < SETTLED_SECONDS:
                _guarded(runner, runner.once)
            watch.look()

        turns.append((Sampler(timed, budget), settle))
    interleave(turns)
    for runner, (sampler, _) in zip(runners, turns, strict=True):
        if runner.status == "measured":
            runner.series[state] = sampler.series


def _refuse_impossible(runners: Sequence[_Entered], problem: Problem, rules: TimingRules, watch: Watch) -> None:
    """Disqualify those whose times are clearly below the floor's, by this series and by others of both."""
    floor = next((runner for runner in runners if runner.candidate.kind == "copy"), None)
    if floor is None or not has_floor(problem):
        return
    for state in rules.l2_states:
        for runner in runners:
            if state not in runner.series or state not in floor.series or runner is floor:
                continue
            for _ in range(RETAKES):
                if not is_impossible(runner.series[state], floor.series[state]):
                    break
                _guarded(floor, floor.choose_again)
                _take_turns([floor, runner], state, evidence(rules.budget), watch)
                if not runner.status == floor.status == "measured":
                    break
            if runner.status == floor.status == "measured":
                _guarded(runner, partial(expect_possible, runner.series[state], floor.series[state]))


def _guarded(runner: _Entered, call: Callable[[], float | None]) -> float:
    """What `call` gives; 0 once the candidate has failed, which ends its series soon."""
    if runner.status != "measured":
        return 0.0
    try:
        return call() or 0.0
    except Exception as error:  # as above: the others still run
        runner.fail(error)
        return 0.0


def _enqueue_seconds(runner: _Entered) -> float:
    """What the host needs to put a call in a GPU's queue, by a train of calls that is timed once per case."""
    device, ready = runner.bench.device, runner.ready
    if runner.launch is None and device.moves_data and ready is not None and ready.synchronize is None:
        started = perf_counter()
        runner.once()
        calls = max(3, min(TRAIN_CALLS, int(TRAIN_SECONDS / (perf_counter() - started))))
        train = device.train(ready.run, calls)
        runner.launch = train
    return 0.0 if runner.launch is None else runner.launch.enqueue_seconds


def _time_bus(bench: Bench) -> BusPart:
    """Medians of both ways over the bus with page-locked host arrays."""
    device, (host_in, host_out) = bench.device, bench.staging
    return BusPart(
        host_to_device_seconds=_median_seconds(lambda: device.copy_in(host_in, bench.image)),
        device_to_host_seconds=_median_seconds(lambda: device.copy_out(bench.out, host_out)),
    )


def _median_seconds(call: Callable[[], Any]) -> float:
    """By the host's clock, of calls that are over when they come back."""

    def once() -> float:
        started = perf_counter()
        call()
        return perf_counter() - started

    return collect(once, FEW).statistics.median_seconds


def holds_as_file(problem: Problem) -> bool:
    """Whether picture and output are what files hold: RGB in, RGB or luma out, of a type that has a format."""
    types = {problem.dtype.name, problem.output_dtype.name}
    channels = problem.in_channels == RGB_CHANNELS and problem.output_channels in (GREY_CHANNELS, RGB_CHANNELS)
    return channels and types <= FORMAT_OF_DTYPE.keys()


def _time_files(bench: Bench, method: _Entered, case: Case) -> FilesPart:
    """Decoding the picture and encoding the result, in memory, in the format that `edgeconv run` would write."""
    assert method.ready is not None  # it was timed
    out = method.ready.result()
    out_format = FORMAT_OF_DTYPE[out.dtype.name]
    in_format = FORMAT_OF_DTYPE[bench.image_host.dtype.name]
    picture = bytes(encode_image(bench.image_host, STANDARD_STREAM, format=in_format))
    return FilesPart(
        **asdict(case),
        format=in_format,
        file_bytes=len(picture),
        decode_seconds=_median_seconds(lambda: decode_image(picture, "bench")),
        encode_seconds=_median_seconds(lambda: encode_image(out, STANDARD_STREAM, format=out_format)),
    )


def _describe_case(case: Case, request: Request, problem: Problem, pixels: NDArray[Any]) -> CasePart:
    return CasePart(
        **asdict(case),
        height=problem.height,
        width=problem.width,
        output_height=problem.output_height,
        output_width=problem.output_width,
        padding=problem.padding,
        border=problem.border,
        output_mode=request.mode_for(pixels.dtype),
        input_sha256=sha256_of(pixels),
    )
