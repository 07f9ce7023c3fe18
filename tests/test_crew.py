"""The crew at work: forks (of the pool too), signals, exits, cores that are taken away, and many callers at once."""

from __future__ import annotations

import gc
import itertools
import os
import threading
import weakref
from pathlib import Path

import pytest
from crew_units import Argument, Counted, Field, units
from meet import NoThread, join, run_program, wait_until

from edgeconv.hardware import threads
from edgeconv.hardware.cpu import crew, jit
from edgeconv.hardware.cpu.crew import MAX_THREADS, CrewField

TESTS = str(Path(__file__).parent)


@pytest.mark.parametrize("asked", [1, 2, 3, 7])
@pytest.mark.parametrize("units", [1, 2, 50])
def test_every_unit_is_done_once_each_time(asked: int, units: int) -> None:
    counted = Counted(units, asked=asked, max_threads=asked)
    for _ in range(200):
        counted.work.run()
    assert counted.tally == [200] * units
    assert counted.workers <= set(range(asked))


@pytest.mark.parametrize("threads", [1, 2])
def test_work_holds_its_code(threads: int) -> None:
    """Whatever becomes of the caches in which code is kept: else a run would end the process."""
    compiled = jit.compile_module(units(), jit.processor())
    held = weakref.ref(compiled)
    arguments = {Argument.UNITS: 1, Argument.BLOCK: 0}
    work = crew.NativeWork(compiled, arguments, 1, asked=threads, max_threads=threads)
    del compiled
    gc.collect()
    assert held() is not None
    del work
    gc.collect()
    assert held() is None


def test_many_callers_at_once() -> None:
    jobs = [Counted(9, asked=3, max_threads=3) for _ in range(12)]

    def call(counted: Counted) -> None:
        for _ in range(300):
            counted.work.run()

    callers = [threading.Thread(target=call, args=(counted,)) for counted in jobs]
    for caller in callers:
        caller.start()
    for caller in callers:
        join(caller)
    assert [counted.tally for counted in jobs] == [[300] * 9] * 12


def test_helpers_do_take_part() -> None:
    """The caller alone cannot get on: its unit waits for a sign that is given once another has begun too."""
    counted = Counted(2, asked=2, max_threads=2)
    counted.block[Field.SIGN] = 0
    caller = threading.Thread(target=counted.work.run)
    caller.start()
    try:
        wait_until(lambda: counted.block[Field.BEGUN] == 2)
    finally:
        counted.block[Field.SIGN] = 1
        join(caller)
    assert counted.workers == {0, 1}


def limited(monkeypatch: pytest.MonkeyPatch, usable: int, cpus: frozenset[int] | None = None) -> None:
    """From now on the system says so."""
    limits = threads.Limits(usable, cpus)
    monkeypatch.setattr(threads, "_limits_in", lambda period: limits)


def test_a_job_takes_fewer_threads_when_the_process_gets_fewer_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, 4)
    counted = Counted(40, asked=None, max_threads=4)
    counted.work.run()
    assert counted.work.threads == 4
    limited(monkeypatch, 1)
    counted.block[Field.WORKERS] = 0
    counted.work.run()
    assert (counted.work.threads, counted.workers) == (1, {0})
    limited(monkeypatch, 3)
    counted.work.run()
    assert counted.work.threads == 3
    assert set(counted.tally) == {3}


def cores_of_helpers() -> set[str]:
    """The allowed cores of the first two helpers of this process."""
    found = set()
    for helper in threading.enumerate():
        if helper.name in ("edgeconv-crew-1", "edgeconv-crew-2"):
            text = Path(f"/proc/self/task/{helper.native_id}/status").read_text(encoding="ascii")
            found |= {line.partition("\t")[2] for line in text.splitlines() if line.startswith("Cpus_allowed_list")}
    return found


def test_helpers_go_where_the_process_may_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once they have slept and woken; while they sleep they leave one core to the caller."""
    allowed = os.sched_getaffinity(0)
    one = min(allowed)
    counted = Counted(4, asked=3, max_threads=3)
    counted.work.run()

    def run_on_one() -> bool:
        counted.work.run()
        return cores_of_helpers() == {str(one)}

    try:
        limited(monkeypatch, 1, frozenset({one}))
        wait_until(run_on_one)
    finally:
        limited(monkeypatch, len(allowed), frozenset(allowed))
        counted.work.run()
    assert len(set(counted.tally)) == 1


START = f"""
import atexit, os, signal, sys, threading, warnings
sys.path.insert(0, {TESTS!r})
warnings.simplefilter("ignore", DeprecationWarning)  # forking beside threads is what is tried here
from crew_units import Counted, units
from edgeconv.hardware.cpu import jit
from edgeconv.hardware.pool import run_pieces

def beside(run):  # again and again in another thread, until the sign that is returned
    ending = threading.Event()
    def go_on():
        while not ending.is_set():
            run()
    threading.Thread(target=go_on, daemon=True).start()
    return ending

def fork_often(of_child, of_parent=lambda: None):
    for _ in range(20):
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            os._exit(0 if of_child() else 3)
        assert os.waitpid(child, 0)[1] == 0
        of_parent()

counted, other = Counted(20, asked=3, max_threads=3), Counted(20, asked=3, max_threads=3)
"""
INTERRUPTED = """
class Rung(Exception):
    pass

def ring(number, frame):
    raise Rung

signal.signal(signal.SIGALRM, ring)
for _ in range(50):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        while True:
            counted.work.run()
    except Rung:
        pass
assert len(set(counted.tally)) == 1, "a run was cut short"
before = counted.tally[0]
counted.work.run()
print(counted.tally == [before + 1] * 20)
"""
FORK = """
def runs():
    mine, pieces = Counted(20, asked=3, max_threads=3), []
    for _ in range(50):
        mine.work.run()
        counted.work.run()
        run_pieces(lambda piece, worker: pieces.append(piece), 9, 3)
    return sorted(pieces) == sorted(50 * [*range(9)]) and mine.tally == [50] * 20 and len(set(counted.tally)) == 1

counted.work.run()
run_pieces(lambda piece, worker: None, 9, 3)
ending = beside(other.work.run)
fork_often(runs, counted.work.run)
ending.set()
print(counted.tally == [21] * 20)
"""
FORK_WHILE_COMPILING = """
def compiles():
    return jit.compile_module(units(), jit.processor())

signs = [beside(compiles) for _ in range(2)]
fork_often(compiles)
[sign.set() for sign in signs]
print(True)
os._exit(0)  # a thread may be inside the compiler
"""
EXIT = """
atexit.register(lambda: counted.work.run() or print(counted.tally == [2] * 20, flush=True))
counted.work.run()
beside(other.work.run)
"""


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(INTERRUPTED, id="an exception of a signal handler comes when the run has ended"),  # as of Ctrl-C
        # at any moment of its parent's threads
        pytest.param(FORK, id="a forked child makes a crew and a pool of its own"),
        pytest.param(FORK_WHILE_COMPILING, id="a child that is forked while others compile can compile"),
        pytest.param(EXIT, id="the interpreter ends cleanly beside a thread that is still at it"),
    ],
)
def test_of_a_process(program: str) -> None:
    ended = run_program(START + program)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "True\n", "")


@pytest.mark.parametrize("missing", ["the crew", "threads"])
def test_without_a_crew_or_its_threads_all_units_are_done(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if missing == "threads":
        monkeypatch.setattr(crew, "CREW", crew.Crew())
        monkeypatch.setattr(crew.threading, "Thread", NoThread)
    else:
        monkeypatch.setattr(crew, "unavailable_reason", lambda: "there is none here")
        monkeypatch.setattr(crew.CREW, "run", None)
    counted = Counted(30, asked=3, max_threads=3)
    counted.work.run()
    assert counted.tally == [1] * 30
    assert missing != "threads" or counted.workers == {0}


def test_machine_code_lives_as_long_as_one_of_its_functions() -> None:
    """Threads that ask for one code at once each get their own, of which the cache keeps one."""
    compiled = jit.compile_module(units(), jit.processor())
    engine, function = weakref.ref(compiled.engine), compiled.function("work", 4)
    del compiled
    gc.collect()
    assert engine() is not None
    del function
    gc.collect()
    assert engine() is None


def test_the_words_of_the_crew_have_bytes_of_their_own() -> None:
    """The last one is a table with a word for every helper."""
    *starts, end = sorted(CrewField)
    assert starts[-1] is CrewField.ASLEEP
    assert end - CrewField.ASLEEP == 4 * MAX_THREADS
    assert all(after - before >= 8 for before, after in itertools.pairwise(starts))
