"""The hand-over of units in every order of steps, and faults that must be found."""

from __future__ import annotations

import random

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
    ("callers", "limit", "sleepers"),
    [
        pytest.param([[TWO]], 99, 1, id="one job"),
        pytest.param([[TWO]], 99, 0, id="one small job in a series"),
        pytest.param([[ONE, ALONE]], 99, 1, id="a second job, which has no place for a helper"),
        pytest.param([[ONE, ONE]], 99, 1, id="a second job"),
        pytest.param([[ONE], [ONE]], 1, 1, id="two callers"),
        pytest.param([[TWO]], 1, 1, id="no core for a helper"),
    ],
)
def test_every_order_of_steps_does_every_unit_once(callers: list[list[ModelJob]], limit: int, sleepers: int) -> None:
    visited = Model(callers, 1, limit, sleepers).explore(MOST_STATES)
    assert visited > 500  # the model has not stopped at its first step


def test_random_orders_of_two_callers_and_two_helpers() -> None:
    callers = [[ModelJob(2, 3), ModelJob(3, 2)], [TWO, ModelJob(1, 3)]]
    Model(callers, helpers=2).wander(random.Random(1), walks=20)


class _Faults:
    """Emitters with one line gone wrong each; the model must see what comes of it."""

    @staticmethod
    def the_generation_never_changes(monkeypatch: pytest.MonkeyPatch) -> None:
        real, one_more = crew_code._Caller.int64, 2**crew_code.HALF_BITS
        monkeypatch.setattr(
            crew_code._Caller, "int64", lambda emitter, value: real(emitter, 0 if value == one_more else value)
        )

    @staticmethod
    def the_last_helper_wakes_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
        real = crew_code._CrewEmitter.futex

        def futex(emitter, address, operation, value):
            if isinstance(emitter, crew_code._Helper) and operation == crew_code.FUTEX_WAKE_PRIVATE:
                return
            real(emitter, address, operation, value)

        monkeypatch.setattr(crew_code._CrewEmitter, "futex", futex)


@pytest.mark.parametrize(
    ("fault", "callers", "what"),
    [
        (_Faults.the_generation_never_changes, [[ONE, ALONE]], "has no worker 1"),
        (_Faults.the_last_helper_wakes_nobody, [[TWO]], "nothing moves"),
    ],
)
def test_a_fault_is_found(monkeypatch: pytest.MonkeyPatch, fault, callers, what) -> None:
    fault(monkeypatch)
    with pytest.raises(Broken, match=what):
        Model(callers, helpers=1).explore(MOST_STATES)
