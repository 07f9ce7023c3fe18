"""The hand-over of units in every order of steps, and faults that must be found."""

from __future__ import annotations

import random

import pytest
from crew_model import Broken, Model, ModelJob

from edgeconv.hardware.cpu import crew_code
from edgeconv.hardware.cpu.crew_layout import CrewField, SlotField

MOST_STATES = 100_000


@pytest.fixture(autouse=True)
def _small_crew(monkeypatch: pytest.MonkeyPatch) -> None:
    """One slot, so that jobs follow one another in it, and as few looks at a word as there can be."""
    monkeypatch.setattr(crew_code, "POLLS_PER_LOOK", 1)
    set_slots(monkeypatch, 1)


def set_slots(monkeypatch: pytest.MonkeyPatch, slots: int) -> None:
    monkeypatch.setattr(crew_code, "SLOTS", slots)
    monkeypatch.setattr(crew_code, "CREW_BYTES", CrewField.FIRST_SLOT + slots * SlotField.END)


ONE, TWO = ModelJob(units=1, threads=2), ModelJob(units=2, threads=2)
ALONE = ModelJob(units=1, threads=1)


@pytest.mark.parametrize(
    ("callers", "limit", "sleepers"),
    [
        pytest.param([[TWO]], 99, 1, id="one job"),
        pytest.param([[TWO]], 99, 0, id="one small job in a series"),
        pytest.param([[ONE, ALONE]], 99, 1, id="a second job in the slot, which has no seat"),
        pytest.param([[ONE, ONE]], 99, 1, id="a second job in the slot"),
        pytest.param([[TWO]], 1, 1, id="no core for a helper"),
    ],
)
def test_every_order_of_steps_does_every_unit_once(callers: list[list[ModelJob]], limit: int, sleepers: int) -> None:
    visited = Model(callers, 1, limit, sleepers).explore(MOST_STATES)
    assert visited > 500  # the model has not stopped at its first step


@pytest.mark.parametrize("slots", [1, 2])
def test_random_orders_of_two_callers_and_two_helpers(monkeypatch: pytest.MonkeyPatch, slots: int) -> None:
    set_slots(monkeypatch, slots)
    callers = [[ModelJob(2, 3), ModelJob(3, 2)], [TWO, ModelJob(1, 3)]]
    Model(callers, helpers=2).wander(random.Random(slots), walks=10)


class _Faults:
    """Emitters with one line gone wrong each; the model must see what comes of it."""

    @staticmethod
    def the_generation_never_changes(monkeypatch: pytest.MonkeyPatch) -> None:
        take, both = crew_code._CrewEmitter.take_units, crew_code._CrewEmitter.both

        def take_units(emitter, slot, generation, *others):
            return take(emitter, slot, emitter.int64(0), *others)

        monkeypatch.setattr(crew_code._CrewEmitter, "take_units", take_units)
        monkeypatch.setattr(
            crew_code._CrewEmitter, "both", lambda emitter, generation, low: both(emitter, emitter.int64(0), low)
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
