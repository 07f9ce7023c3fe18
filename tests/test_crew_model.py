"""The hand-over of units, in every order of steps and under ThreadSanitizer; and faults that both must find."""

from __future__ import annotations

import platform
import random
import shutil
import subprocess
import sys
from pathlib import Path

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


SOURCE = Path(__file__).parent / "crew_tsan" / "crew.cpp"


def thread_sanitizer() -> str | None:
    """Why programs cannot run under ThreadSanitizer here; None where they can."""
    if sys.platform != "linux" or shutil.which("g++") is None or shutil.which("setarch") is None:
        return "needs g++ with ThreadSanitizer on Linux (apt install g++)"
    found = subprocess.run(("g++", "-print-file-name=libtsan.so"), capture_output=True, text=True, check=True)
    return None if "/" in found.stdout else "needs g++ with ThreadSanitizer on Linux (apt install g++)"


@pytest.mark.skipif(thread_sanitizer() is not None, reason=str(thread_sanitizer()))
@pytest.mark.parametrize(("fault", "races"), [((), False), (("-DRELAXED_DONE",), True)], ids=str)
def test_the_hand_over_under_thread_sanitizer(tmp_path: Path, fault: tuple[str, ...], races: bool) -> None:
    """Without addresses at random, which ThreadSanitizer cannot stand on every kernel."""
    program = tmp_path / "crew"
    build = ("g++", "-std=c++17", "-O1", "-g", "-fsanitize=thread", *fault, str(SOURCE), "-o", str(program), "-pthread")
    subprocess.run(build, check=True, timeout=120)
    run = ("setarch", platform.machine(), "-R", str(program), "3", "3", "1500")
    ended = subprocess.run(run, capture_output=True, text=True, timeout=120, check=False)
    assert ("WARNING: ThreadSanitizer" in ended.stderr) == races, ended.stderr[:2000]
    assert races or (ended.returncode == 0 and "0 units were not done once" in ended.stdout)
