"""One case, measured in steps that each return a value: one row for each candidate.

    draw ── set up ── first call ── judge ── turns, cold ── turns, warm ── judge again ── impossible times once more

A step that fails gives a `Verdict` in place of its value: the candidate has no times, and the others go on. Turns go
round all candidates of a device, several times, so that a machine that changes changes all of them alike. Times are
those of the convolution alone: the picture is on the device before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, TypeVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench import referee
from edgeconv.bench.candidates import Bench, BenchCandidate, Ready, share
from edgeconv.bench.grid import Case
from edgeconv.bench.record import BenchRow, BusPart, CasePart, Kind, Status, metrics_of, rounded
from edgeconv.bench.referee import FaultError, Pictures
from edgeconv.bench.rules import TimingRules
from edgeconv.bench.synthetic import bench_channels, bench_filter, grey_of
from edgeconv.bench.watch import Watch, Watched
from edgeconv.core.cost import Roof, count
from edgeconv.core.filters import GREY_CHANNELS
from edgeconv.core.noise import noise_pixels
from edgeconv.core.output import full_range
from edgeconv.core.request import Request, make_request
from edgeconv.core.timing import Budget, Sampler, Series, collect
from edgeconv.errors import EdgeconvError, UnavailableError, one_line_with_class
from edgeconv.hardware.process import wait_until_quiet
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
"""For each way over the bus."""
LONGEST_REASON = 500
"""Characters of a library's own message that are stored."""
DIGITS = 10
"""A sample is stored to a tenth of a nanosecond, finer than any clock here."""

T = TypeVar("T")


@dataclass(frozen=True)
class Verdict:
    """Why a candidate has no times."""

    status: Status
    reason: str
    fault: str | None = None


@dataclass(frozen=True)
class Entry:
    """What is known of a candidate before the turns; with a verdict it takes part in none."""

    candidate: BenchCandidate
    verdict: Verdict | None = None
    held: Ready | None = None
    check: verify.Check | None = None
    set_up_seconds: float | None = None
    cold_seconds: float | None = None
    launch: Train | None = None

    @property
    def ready(self) -> Ready:
        """What is run; only of an entry without a verdict."""
        assert self.held is not None
        return self.held


Step = Callable[[Entry, Pictures], Entry]
SeriesOf = dict[BenchCandidate, Series]
VerdictOf = dict[BenchCandidate, Verdict]


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


def measure_case(
    case: Case,
    pixels: NDArray[Any],
    candidates: Sequence[BenchCandidate],
    rules: TimingRules,
    roof: Roof,
    watch: Watch,
    seed: int,
) -> list[BenchRow]:
    """A row for each candidate of one device, in their order; `pixels` (HWC) as `pixels_for` gives.

    `seed`, which nobody knew before this run, gives the pictures that are timed.
    """
    bench = share(candidates[0].device, request_for(case, rules), pixels)
    limit = rules.check_samples if rules.check == "sample" else None
    pictures = referee.draw(bench, np.random.default_rng([seed, crc32(str(case).encode())]), case.picture is None)
    watch.begin()
    entries = [enter(candidate, pictures, limit) for candidate in candidates]
    verdicts = {entry.candidate: entry.verdict for entry in entries if entry.verdict is not None}

    def left(*kinds: Kind) -> list[Entry]:
        return [entry for entry in entries if entry.candidate not in verdicts and entry.candidate.kind in kinds]

    pictures.show_all()
    series: dict[L2State, SeriesOf] = {}
    for state in rules.l2_states:
        series[state], failed = turns(left("copy", "method", "peer"), state, rules.budget, pictures, watch)
        verdicts |= failed
    for entry in left("method", "peer"):
        wrong = attempt(partial(referee.expect_right_again, entry.ready, pictures, entry.candidate.kind, limit))
        if isinstance(wrong, Verdict):
            verdicts[entry.candidate] = wrong
    for state, found in series.items():
        for entry in left("method", "peer"):
            for floor in left("copy") if referee.has_floor(bench.problem) else ():
                again, failed = retake(entry, floor, found, state, pictures, watch)
                found |= again
                verdicts |= failed
    bus = time_bus(bench) if rules.around and bench.device.moves_data else None
    floors = {state: found[floor.candidate] for state, found in series.items() for floor in left("copy")}
    shown, seen = describe_case(case, bench), watch.report()

    def row_of(entry: Entry) -> BenchRow:
        candidate, verdict = entry.candidate, verdicts.get(entry.candidate)
        own = {state: found[candidate] for state, found in series.items()} if verdict is None else {}
        return row(entry, verdict, own, floors, bench, shown, roof, seen, bus)

    return [row_of(entry) for entry in entries]


def attempt(step: Callable[[], T]) -> T | Verdict:
    """What a step gives, or why it gives nothing: a library may raise anything, and the others go on."""
    try:
        return step()
    except FaultError as error:
        return Verdict("disqualified", str(error), error.fault)
    except EdgeconvError as error:
        return Verdict("refused", str(error))
    except Exception as error:
        return Verdict("failed", one_line_with_class(error, LONGEST_REASON))


def enter(candidate: BenchCandidate, pictures: Pictures, limit: int | None) -> Entry:
    """Set a candidate up, call it once, and judge its output on about `limit` samples (None: all)."""
    entry = Entry(candidate)
    check: Step = partial(judge, limit=limit)
    checks: dict[Kind, list[Step]] = {"copy": [], "method": [check], "peer": [check, set_up_anew]}
    for step in [set_up, call_first, *checks[candidate.kind], time_train]:
        after = attempt(partial(step, entry, pictures))
        entry = replace(entry, verdict=after, held=None) if isinstance(after, Verdict) else after
        if entry.verdict is not None:
            break
    return entry


def set_up(entry: Entry, pictures: Pictures) -> Entry:
    """Compile, allocate, choose an algorithm."""
    reason = entry.candidate.unavailable_reason()
    if reason is not None:
        raise UnavailableError(reason)
    started = perf_counter()
    ready = entry.candidate.prepare(pictures.bench)
    return replace(entry, held=ready, set_up_seconds=perf_counter() - started)


def call_first(entry: Entry, pictures: Pictures) -> Entry:
    """One run, cold, on the check's picture."""
    pictures.show_check()
    return replace(entry, cold_seconds=_seconds(partial(pictures.bench.once, entry.ready)))


def judge(entry: Entry, pictures: Pictures, limit: int | None) -> Entry:
    """Compare the output with the oracle's, and see that a method left the others' picture as it was."""
    ready, bench = entry.ready, pictures.bench
    image = bench.image_host
    check = verify.check(image, ready.result(), ready.problem, ready.arithmetic, limit, ready.tolerance)
    if not check.passed:
        reason = f"{check.unexplained_samples:,} wrong samples, worst at {check.worst}"
        return replace(entry, check=check, held=None, verdict=Verdict("wrong", reason))
    if entry.candidate.kind == "peer":  # whose arrays are given up before others are made
        return replace(entry, check=check, held=None)
    referee.expect_same_input(bench, bench.image, image)
    return replace(entry, check=check)


def set_up_anew(entry: Entry, pictures: Pictures) -> Entry:
    """A peer, with a drawn picture in place of the check's."""
    ready = entry.candidate.prepare(replace(pictures.bench, image_host=pictures.drawn))
    pictures.bench.once(ready)
    return replace(entry, held=ready)


def time_train(entry: Entry, pictures: Pictures) -> Entry:
    """What the host needs to put a call in a GPU's queue, by a train of calls."""
    device, ready = pictures.bench.device, entry.ready
    if not device.moves_data or ready.synchronize is not None:
        return entry
    calls = max(3, min(TRAIN_CALLS, int(TRAIN_SECONDS / _seconds(partial(pictures.bench.once, ready)))))
    return replace(entry, launch=device.train(ready.run, calls))


def turns(
    entries: Sequence[Entry], state: L2State, budget: Budget, pictures: Pictures, watch: Watch
) -> tuple[SeriesOf, VerdictOf]:
    """A series of each, by turns; a verdict on each that failed in between."""
    bench = pictures.bench
    series: SeriesOf = {}
    verdicts: VerdictOf = {}
    taken: Counter[BenchCandidate] = Counter()
    last_seconds: dict[BenchCandidate, float] = {}
    turn = 0

    def time_once(entry: Entry) -> float:
        # An empty cache is the same after any write: then each sample has another slot, with a warm one each turn.
        number = taken[entry.candidate] if state == "cold" else turn
        taken[entry.candidate] += 1
        last_seconds[entry.candidate] = seconds = sample(entry, state, number, pictures)
        return seconds

    samplers = {entry.candidate: Sampler(partial(time_once, entry), budget) for entry in entries}

    def take_turn(entry: Entry) -> None:
        if not bench.device.moves_data:
            wait_until_quiet()
        pictures.use(turn)
        if last_seconds.get(entry.candidate, 0.0) < SETTLED_SECONDS:
            bench.once(entry.ready)
        watch.look()
        samplers[entry.candidate].take_turn()

    while pending := [entry for entry in entries if entry.candidate not in {**series, **verdicts}]:
        turn += 1
        for entry in pending:
            failed = attempt(partial(take_turn, entry))
            if isinstance(failed, Verdict):
                verdicts[entry.candidate] = failed
                pictures.show_all()  # whatever it left there
            elif samplers[entry.candidate].stopped_because is not None:
                series[entry.candidate] = samplers[entry.candidate].series
    return series, verdicts


def sample(entry: Entry, state: L2State, number: int, pictures: Pictures) -> float:
    """Seconds of one run, by the device's clock, or by the host's where the candidate has queues of its own.

    A method runs on slot `number`, of which a patch is new; raises FaultError where its output there is not right.
    """
    bench, ready = pictures.bench, entry.ready
    device = bench.device
    enqueue_seconds = 0.0 if entry.launch is None else entry.launch.enqueue_seconds
    if ready.synchronize is not None:
        if state == "cold":
            device.time_once(lambda: None, "cold")
        else:
            bench.once(ready)
        seconds = _seconds(partial(bench.once, ready))
    elif entry.candidate.kind == "method":
        slot = pictures.use(number)
        patch, renew = referee.plant(pictures, slot, whole=state == "cold")
        seconds = device.time_once(ready.run, state, enqueue_seconds, renew)
        referee.expect_computed(ready, pictures, slot, patch)
    else:
        seconds = device.time_once(ready.run, state, enqueue_seconds)
    return round(seconds, DIGITS)


def retake(
    entry: Entry, floor: Entry, series: SeriesOf, state: L2State, pictures: Pictures, watch: Watch
) -> tuple[SeriesOf, VerdictOf]:
    """The series of a candidate and the floor, taken again while its time is impossible; a verdict if it stays so.

    The floor is set up anew, in the shape that is the fastest by then: others may use the cores that it had.
    """
    own, least = entry.candidate, floor.candidate
    both = {own: series[own], least: series[least]}
    retakes = 0
    while (wrong := attempt(partial(referee.expect_possible, both[own], both[least]))) is not None:
        if retakes == RETAKES:
            return both, {own: wrong}
        retakes += 1
        anew = attempt(partial(set_up, floor, pictures))
        if isinstance(anew, Verdict):
            return both, {least: anew}
        both, failed = turns([anew, entry], state, referee.EVIDENCE, pictures, watch)
        if failed:
            return both, failed
    return both, {}


def time_bus(bench: Bench) -> BusPart:
    """Medians of both ways over the bus with page-locked host arrays."""
    device, problem = bench.device, bench.problem
    host_in = device.host_empty(problem.input_shape, problem.dtype)
    np.copyto(host_in, bench.image_host)
    host_out = device.host_empty(problem.output_shape, problem.output_dtype)
    return BusPart(
        host_to_device_seconds=_median_seconds(lambda: device.copy_in(host_in, bench.image)),
        device_to_host_seconds=_median_seconds(lambda: device.copy_out(bench.out, host_out)),
    )


def _median_seconds(call: Callable[[], Any]) -> float:
    return collect(lambda: _seconds(call), FEW).statistics.median_seconds


def _seconds(call: Callable[[], Any]) -> float:
    """By the host's clock, of a call that is over when it comes back."""
    started = perf_counter()
    call()
    return perf_counter() - started


def describe_case(case: Case, bench: Bench) -> CasePart:
    """A case with the problem that it makes."""
    problem, pixels = bench.problem, bench.image_host
    return CasePart(
        **asdict(case),
        height=problem.height,
        width=problem.width,
        output_height=problem.output_height,
        output_width=problem.output_width,
        padding=problem.padding,
        border=problem.border,
        output_mode=bench.request.mode_for(pixels.dtype),
        input_sha256=sha256_of(pixels),
    )


def row(
    entry: Entry,
    verdict: Verdict | None,
    series: dict[L2State, Series],
    floors: dict[L2State, Series],
    bench: Bench,
    shown: CasePart,
    roof: Roof,
    seen: Watched,
    bus: BusPart | None,
) -> BenchRow:
    """The record of a candidate at a case."""
    candidate, device = entry.candidate, bench.device
    ready = entry.held or Ready(lambda: None, lambda: np.empty(0), bench.problem)
    counts, launch = count(bench.problem), entry.launch if verdict is None else None
    medians = {state: found.statistics.median_seconds for state, found in series.items()}
    floor_medians = {state: found.statistics.median_seconds for state, found in floors.items()}
    is_launch_bound = None
    if launch is not None and "warm" in medians:
        is_launch_bound = launch.enqueue_seconds >= medians["warm"]
    found = BenchRow(
        case=shown,
        kind=candidate.kind,
        candidate=candidate.label,
        name=candidate.name,
        device=candidate.device,
        options=candidate.options,
        status="measured" if verdict is None else verdict.status,
        reason=None if verdict is None else verdict.reason,
        differs=ready.differs,
        check=describe_check(entry.check),
        workspace_bytes=ready.workspace_bytes,
        moved_bytes=ready.moved_bytes,
        launches=ready.launches,
        choice=ready.choice,
        counts=describe_counts(counts),
        set_up_seconds=entry.set_up_seconds,
        cold_seconds=entry.cold_seconds,
        clock="CUDA events" if device.moves_data and ready.synchronize is None else "monotonic",
        lead_l2_state=device.l2_state if device.l2_state in series else next(iter(series), None),
        timings={state: describe_series(found) for state, found in series.items()},
        metrics={
            state: metrics_of(counts, seconds, floor_medians.get(state), roof, ready.moved_bytes)
            for state, seconds in medians.items()
        },
        launch=launch,
        launch_bound=is_launch_bound,
        bus=bus if verdict is None else None,
        machine=seen,
        fault=None if verdict is None else verdict.fault,
    )
    return rounded(found)
