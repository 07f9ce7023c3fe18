"""One case, measured in steps that each return a value: one row for each candidate.

    draw ── set up, first call, judge ── turns, cold ── turns, warm ── judge again ── impossible times once more

A step that fails gives a `Refused` in place of its value: the candidate has no times, and the others go on. Turns go
round all candidates of a device, several times, so that a machine that changes changes all of them alike. Times are
those of the convolution alone: the picture is on the device before.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, TypeVar
from zlib import crc32

import numpy as np

from edgeconv.api import check as verify
from edgeconv.bench import referee
from edgeconv.bench.candidates import Bench, BenchCandidate, Ready, share
from edgeconv.bench.grid import Case, Drawn, TimingRules
from edgeconv.bench.record import BenchRow, CasePart, Kind, Status, Train, metrics_of
from edgeconv.bench.referee import FaultError, Pictures
from edgeconv.bench.synthetic import bench_channels, bench_filter
from edgeconv.bench.turns import wait_until_quiet
from edgeconv.bench.watch import Watch, Watched
from edgeconv.core.cost import count
from edgeconv.core.noise import noise_pixels
from edgeconv.core.request import Request, make_request
from edgeconv.core.timing import Budget, Sampler, Series
from edgeconv.errors import EdgeconvError, UnavailableError, one_line_with_class
from edgeconv.hardware.device import L2State, Roof

SETTLED_SECONDS = 0.02
"""A longer run fills the caches many times over, so that nothing is gained by an untimed one before it."""
RETAKES = 3
"""More series of a candidate and the floor before a time counts as impossible: the floor may have been disturbed."""
TRAIN_CALLS = 50
TRAIN_SECONDS = 0.05
"""Most calls of a train of launches, and most time for it."""
LONGEST_REASON = 500
"""Characters of a library's own message that are stored."""

T = TypeVar("T")


@dataclass(frozen=True)
class Entry:
    """A candidate that is set up and gave the right output; a copy has no `check`."""

    candidate: BenchCandidate
    ready: Ready
    check: verify.Check | None
    set_up_seconds: float
    cold_seconds: float
    launch: Train | None


@dataclass(frozen=True)
class Refused:
    """Why a candidate has no times."""

    status: Status
    reason: str
    fault: str | None = None
    check: verify.Check | None = None
    """What was found in an output that is wrong."""


Outcomes = dict[BenchCandidate, Entry | Refused]
SeriesOf = dict[BenchCandidate, Series]


def request_for(case: Case | CasePart, rules: TimingRules | Drawn | CasePart) -> Request:
    """The request that a case stands for; a case that was drawn and a record's have their rules with them."""
    return make_request(
        bench_filter(case.filter, case.channels),
        channels=case.channels,
        stride=case.stride,
        padding=rules.padding,
        border=rules.border,
        output_mode=rules.output_mode,
    )


def measure_case(
    case: Case,
    candidates: Sequence[BenchCandidate],
    rules: TimingRules,
    roof: Roof,
    watch: Watch,
    seed: int,
) -> list[BenchRow]:
    """A row for each candidate of one device, in their order.

    `seed`, which nobody knew before this run, gives the pictures that are timed.
    """
    height, width = (case.drawn.height, case.drawn.width) if case.drawn else (case.size, case.size)
    noise = noise_pixels(height, width, case.dtype, bench_channels(case.filter))
    bench = share(candidates[0].device, request_for(case, case.drawn or rules), noise)
    pictures = referee.draw(bench, np.random.default_rng([seed, crc32(str(case).encode())]))
    outcomes, series = compete(candidates, pictures, rules, watch)
    return rows_of(outcomes, series, describe_case(case, bench), bench, roof, watch.report())


def compete(
    candidates: Sequence[BenchCandidate], pictures: Pictures, rules: TimingRules, watch: Watch
) -> tuple[Outcomes, dict[L2State, SeriesOf]]:
    """Every step of a case: what came of each candidate, and the times of those that are not refused."""
    outcomes: Outcomes = {
        candidate: attempt(enter, candidate, pictures, rules.check_samples) for candidate in candidates
    }

    def left(*kinds: Kind) -> list[Entry]:
        return [found for found in outcomes.values() if isinstance(found, Entry) and found.candidate.kind in kinds]

    pictures.show_all()
    series: dict[L2State, SeriesOf] = {}
    for state in rules.l2_states:
        series[state], refused = turns(left("copy", "method", "peer"), state, rules.budget, pictures, watch)
        outcomes |= refused
    for entry in left("method", "peer"):
        wrong = attempt(referee.expect_right_again, entry.ready, pictures, entry.candidate.kind, rules.check_samples)
        if isinstance(wrong, Refused):
            outcomes[entry.candidate] = wrong
    for state in series if referee.has_floor(pictures.bench.problem) else ():
        for entry in left("method", "peer"):
            for floor in left("copy"):
                both = attempt(retake, entry, floor, series[state], state, pictures, watch)
                if isinstance(both, Refused):
                    outcomes[entry.candidate] = both
                else:
                    series[state] |= both
    return outcomes, series


def attempt(step: Callable[..., T], *arguments: Any) -> T | Refused:
    """What a step gives, or why it gives nothing: a library may raise anything, and the others go on."""
    try:
        return step(*arguments)
    except FaultError as error:
        return Refused("disqualified", str(error), error.fault)
    except EdgeconvError as error:
        return Refused("refused", str(error))
    except Exception as error:
        return Refused("failed", one_line_with_class(error, LONGEST_REASON))


def enter(candidate: BenchCandidate, pictures: Pictures, limit: int | None) -> Entry | Refused:
    """Set a candidate up, call it once, cold, and judge its output on about `limit` samples (None: all)."""
    bench, reason, check = pictures.bench, candidate.unavailable_reason(), None
    if reason is not None:
        raise UnavailableError(reason)
    started = perf_counter()
    ready = candidate.prepare(bench)
    set_up_seconds = perf_counter() - started
    pictures.show(0, bench.image_host)
    cold_seconds = _seconds(bench.once, ready)
    if candidate.kind != "copy":
        image = bench.image_host
        check = verify.check(image, ready.result(), ready.problem, ready.arithmetic, limit, ready.tolerance)
        if not check.passed:
            return Refused("wrong", referee.what_is_wrong(check), check=check)
    if candidate.kind == "method":
        referee.expect_same_input(bench, bench.image, bench.image_host)
    if candidate.kind == "peer":  # set up anew, with a drawn picture in place of the check's
        del ready  # whose arrays are given up before others are made
        ready = candidate.prepare(replace(bench, image_host=pictures.drawn))
        bench.once(ready)
    return Entry(candidate, ready, check, set_up_seconds, cold_seconds, time_train(ready, bench))


def time_train(ready: Ready, bench: Bench) -> Train | None:
    """What the host needs to put a call in a GPU's queue, by a train of calls."""
    if not bench.device.moves_data or ready.synchronize is not None:
        return None
    calls = max(3, min(TRAIN_CALLS, int(TRAIN_SECONDS / _seconds(bench.once, ready))))
    ready.run()
    bench.device.synchronize()
    started = perf_counter()
    for _ in range(calls):
        ready.run()
    queued = perf_counter()
    bench.device.synchronize()
    return Train((queued - started) / calls, (perf_counter() - started) / calls)


def turns(
    entries: Sequence[Entry], state: L2State, budget: Budget, pictures: Pictures, watch: Watch
) -> tuple[SeriesOf, dict[BenchCandidate, Refused]]:
    """A series of each, by turns; why not of each that failed in between."""
    bench, turn, sample_numbers = pictures.bench, 0, itertools.count()
    refused: dict[BenchCandidate, Refused] = {}
    last_seconds = {entry.candidate: 0.0 for entry in entries}

    def time_once(entry: Entry) -> float:
        # An empty cache is the same after any write: then each sample has another slot, with a warm one each turn.
        number = next(sample_numbers) if state == "cold" else turn
        last_seconds[entry.candidate] = seconds = sample(entry, state, number, pictures)
        return seconds

    samplers = {entry.candidate: Sampler(partial(time_once, entry), budget) for entry in entries}

    def take_turn(entry: Entry) -> None:
        if not bench.device.moves_data:
            wait_until_quiet()
        pictures.use(turn)
        if last_seconds[entry.candidate] < SETTLED_SECONDS:
            bench.once(entry.ready)
        watch.look()
        samplers[entry.candidate].take_turn()

    while pending := [entry for entry in entries if samplers[entry.candidate].stopped_because is None]:
        turn += 1
        for entry in pending:
            failed = attempt(take_turn, entry)
            if isinstance(failed, Refused):
                refused[entry.candidate] = failed
                entries = [other for other in entries if other is not entry]
                pictures.show_all()  # whatever it left there
    return {entry.candidate: samplers[entry.candidate].series for entry in entries}, refused


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
        return _seconds(bench.once, ready)
    if entry.candidate.kind != "method":
        return device.time_once(ready.run, state, enqueue_seconds)
    slot = pictures.use(number)
    patch, renew = referee.plant(pictures, slot, whole=state == "cold")
    seconds = device.time_once(ready.run, state, enqueue_seconds, renew)
    referee.expect_computed(ready, pictures, slot, patch)
    return seconds


def retake(
    entry: Entry, floor: Entry, series: SeriesOf, state: L2State, pictures: Pictures, watch: Watch
) -> SeriesOf | Refused:
    """The series of a candidate and the floor, taken again while its time is impossible; Refused if it stays so.

    The floor is set up anew, in the shape that is the fastest by then: others may use the cores that it had.
    """
    own, least, retakes = entry.candidate, floor.candidate, 0
    while (wrong := attempt(referee.expect_possible, series[own], series[least])) and retakes < RETAKES:
        retakes += 1
        anew = replace(floor, ready=least.prepare(pictures.bench))
        series, refused = turns([anew, entry], state, referee.EVIDENCE, pictures, watch)
        for failed in refused.values():
            return failed
    return wrong or {own: series[own], least: series[least]}


def rows_of(
    outcomes: Outcomes,
    series: dict[L2State, SeriesOf],
    case: CasePart,
    bench: Bench,
    roof: Roof,
    machine: Watched,
) -> list[BenchRow]:
    """The records of all candidates at a case."""
    counts = count(bench.problem)
    floors = {
        state: found[each].median_seconds for state, found in series.items() for each in found if each.kind == "copy"
    }
    rows = []
    for candidate, outcome in outcomes.items():
        row = partial(
            BenchRow,
            case=case,
            kind=candidate.kind,
            candidate=candidate.label,
            device=candidate.device,
            options=candidate.options,
            counts=counts,
            machine=machine,
            check=outcome.check,
        )
        if isinstance(outcome, Refused):
            rows.append(row(status=outcome.status, reason=outcome.reason, fault=outcome.fault))
            continue
        ready, launch = outcome.ready, outcome.launch
        own = {state: found[candidate] for state, found in series.items()}
        rows.append(
            row(
                status="measured",
                differs=ready.differs,
                **ready.about,
                set_up_seconds=outcome.set_up_seconds,
                cold_seconds=outcome.cold_seconds,
                lead_l2_state=bench.device.l2_state if bench.device.l2_state in own else next(iter(own)),
                timings=own,
                metrics={
                    state: metrics_of(
                        counts, found.median_seconds, floors.get(state), roof, ready.about.get("moved_bytes")
                    )
                    for state, found in own.items()
                },
                launch=launch,
                launch_bound=launch.enqueue_seconds >= own["warm"].median_seconds if launch and "warm" in own else None,
            )
        )
    return rows


def describe_case(case: Case, bench: Bench) -> CasePart:
    """A case with the problem that it makes."""
    problem = bench.problem
    named = {name: getattr(case, name) for name in ("size", "stride", "dtype", "filter", "channels")}
    sides = ("height", "width", "output_height", "output_width", "padding", "border")
    made = {name: getattr(problem, name) for name in sides}
    return CasePart(**named, **made, output_mode=bench.request.mode_for(problem.dtype))


def _seconds(call: Callable[..., Any], *arguments: Any) -> float:
    """By the host's clock, of a call that is over when it comes back."""
    started = perf_counter()
    call(*arguments)
    return perf_counter() - started
