"""The hand-over of units in every order of steps, and faults that must be found."""

from __future__ import annotations

import pytest
from crew_model import Broken, Model, ModelJob

from edgeconv.hardware.cpu import crew_code

MOST_STATES = 100_000


@pytest.fixture(autouse=True)
def _impatient_crew(monkeypatch: pytest.MonkeyPatch) -> None:
    """As few looks at a word as there can be before a thread sleeps."""
    for name, value in (("POLLS_PER_LOOK", 1), ("SPIN_NANOSECONDS", 0), ("WAIT_NANOSECONDS", 0)):
        monkeypatch.setattr(crew_code, name, value)


ONE, TWO = ModelJob(units=1, threads=2), ModelJob(units=2, threads=2)
ALONE = ModelJob(units=1, threads=1)


@pytest.mark.parametrize(
    ("callers", "sleepers"),
    [
        pytest.param([[TWO]], 1, id="one job"),
        pytest.param([[TWO]], 0, id="one small job in a series"),
        pytest.param([[ONE, ALONE]], 1, id="a second job, which has no place for a helper"),
        pytest.param([[ONE, ONE]], 1, id="a second job"),
        pytest.param([[ONE], [ONE]], 1, id="two callers", marks=pytest.mark.slow),
    ],
)
def test_every_order_of_steps_does_every_unit_once(callers: list[list[ModelJob]], sleepers: int) -> None:
    visited = Model(callers, 1, sleepers).explore(MOST_STATES)
    assert visited > 500  # the model has not stopped at its first step


def every_helper_has_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    real = crew_code._CrewEmitter.take_units
    monkeypatch.setattr(
        crew_code._Helper, "take_units", lambda e, worker, on_first, is_helper: real(e, worker, on_first)
    )


def the_last_helper_wakes_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    real = crew_code._CrewEmitter.futex

    def futex(emitter, word, operation, value):
        if not isinstance(emitter, crew_code._Helper) or operation != crew_code.FUTEX_WAKE_PRIVATE:
            real(emitter, word, operation, value)

    monkeypatch.setattr(crew_code._CrewEmitter, "futex", futex)


def a_caller_waits_for_its_own_units_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew_code._Caller, "_wait", lambda emitter, units: None)


@pytest.mark.parametrize(
    ("fault", "callers", "what"),
    [
        (every_helper_has_a_place, [[ONE, ALONE]], "has no worker 1"),
        (the_last_helper_wakes_nobody, [[TWO]], "nothing moves"),
        (a_caller_waits_for_its_own_units_alone, [[TWO]], "has returned|not over"),
    ],
)
def test_a_fault_is_found(monkeypatch: pytest.MonkeyPatch, fault, callers, what) -> None:
    """One line of the emitters gone wrong; the model must see what comes of it."""
    fault(monkeypatch)
    with pytest.raises(Broken, match=what):
        Model(callers, helpers=1).explore(MOST_STATES)
