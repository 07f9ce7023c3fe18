"""The project's own bars: each reads the figure that it says, and grids measure what the bars ask for."""

from __future__ import annotations

import copy

import pytest
from bench_records import TimedMethod, measured_once

from edgeconv.bench import goals, record
from edgeconv.bench.candidates import method_candidates
from edgeconv.bench.goals import GOALS, Goal, outcomes
from edgeconv.bench.grid import cases, named_grid
from edgeconv.bench.peers import PEERS
from edgeconv.export import tables
from edgeconv.methods.options import Options
from edgeconv.runtime.devices.base import Train

CASE = ("cpu", "float32", "random", "mix")


@pytest.fixture
def result() -> record.BenchRecord:
    """A copy takes 1 ms, own 2 ms, other 4 ms, at 8 and 16."""
    return measured_once(TimedMethod("own", [2e-3]), TimedMethod("other", [4e-3]))


def figures(monkeypatch, result: record.BenchRecord, goal: Goal) -> list[tuple[object, ...]]:
    monkeypatch.setattr(goals, "GOALS", (goal,))
    return [(outcome.size, outcome.candidate, outcome.figure, outcome.met) for outcome in outcomes(result)]


def test_a_share_of_the_floor(monkeypatch, result) -> None:
    goal = Goal("floor", 0.6, *CASE, sizes=(8, 16, 32), candidates=("own", "other"), binds="noise")
    assert figures(monkeypatch, result, goal) == [(8, "own", 0.5, False), (16, "own", 0.5, False)]
    assert tables.goals(result).rows[0][1:] == ("8", "1", "floor ≥ 0.6", "own", "0.5", "MISSED by 17%", "noise")
    met = Goal("floor", 0.4, *CASE, sizes=(8,), candidates=("own",), binds="noise")
    assert figures(monkeypatch, result, met) == [(8, "own", 0.5, True)]
    assert tables.goals(result).rows[0][-2:] == ("met", "")


def test_a_ratio_to_the_fastest_rival(monkeypatch, result) -> None:
    goal = Goal("rivals", 0.5, *CASE, sizes=(8,), candidates=("own",), rivals=("other", "absent"))
    assert figures(monkeypatch, result, goal) == [(8, "own", 0.5, True)]
    assert tables.goals(result).rows[0][3] == "rivals ≤ 0.5 (other)"  # who did not take part is not named
    assert figures(monkeypatch, result, Goal("rivals", 1, *CASE, (8,), (1,), ("own",), ("absent",))) == []


def test_a_lead_is_one_figure_over_all_its_works(monkeypatch, result) -> None:
    goal = Goal("lead", 2.0, *CASE, sizes=(8, 16), candidates=("own",), rivals=("other",))
    assert figures(monkeypatch, result, goal) == [(None, "2 cases", pytest.approx(2.0), True)]


def test_seconds_a_call_and_own_bytes(monkeypatch, result) -> None:
    for row in result.rows:
        row.launch = Train(1e-6, 5e-6)
        row.moved_bytes = (1 if row.kind == "copy" else 2) * row.counts.fewest_bytes
    goal = Goal("call", 6e-6, *CASE, sizes=(8,), candidates=("own",))
    assert figures(monkeypatch, result, goal) == [(8, "own", 5e-6, True)]
    goal = Goal("own bytes", 0.9, *CASE, sizes=(8,), candidates=("own",))
    assert figures(monkeypatch, result, goal) == [(8, "own", pytest.approx(1.0), False)]


def test_rows_without_a_time_or_of_other_work_meet_nothing(monkeypatch, result) -> None:
    other = copy.deepcopy(result)
    for row in other.rows:
        row.case.picture = "photo.png"
    assert figures(monkeypatch, other, Goal("floor", 0.1, *CASE, sizes=(8,), candidates=("own",))) == []


@pytest.mark.parametrize(("grid", "device"), [("gpu", "cuda"), ("processor", "cpu")])
def test_the_named_grids_measure_every_bar(grid: str, device: str) -> None:
    measured_works = {
        (case.dtype, case.filter, case.channels, case.size, case.stride): part for case, part in cases(named_grid(grid))
    }
    candidates = {
        entry.label for part in named_grid(grid).parts for entry in method_candidates(part.methods, device, Options())
    }
    candidates |= {entry.name for entry in PEERS if entry.device == device}
    for goal in GOALS:
        if goal.device != device:
            continue
        for size in goal.sizes:
            for stride in goal.strides:
                assert (goal.dtype, goal.filter, goal.channels, size, stride) in measured_works, goal
        assert set(goal.rivals) <= candidates | {"cudnn"}, goal
