"""The crew at work: forks, signals, exits, cores that are taken away, and many callers at once."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import weakref
from pathlib import Path

import pytest
from crew_units import Argument, Counted, Field, units
from meet import join, run_program, wait_until

from edgeconv.hardware import threads
from edgeconv.hardware.cpu import crew, jit

TESTS = str(Path(__file__).parent)
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="this system has no crew")


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


INTERRUPTED = """
import signal, sys
sys.path.insert(0, {tests!r})
from crew_units import Counted

class Rung(Exception):
    pass

def ring(number, frame):
    raise Rung

counted = Counted(30, asked=3, max_threads=3)
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
assert counted.tally == [before + 1] * 30
print("all of it")
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timer signals")
def test_an_exception_of_a_signal_handler_leaves_a_crew_that_works() -> None:
    """As Ctrl-C does: it is raised when the run has ended, and the next run does all of its units."""
    ended = run_program(INTERRUPTED.format(tests=TESTS))
    assert (ended.returncode, ended.stdout) == (0, "all of it\n"), ended.stderr


def cores_of_helpers() -> set[str]:
    """The allowed cores of the first two helpers of this process."""
    found = set()
    for helper in threading.enumerate():
        if helper.name in ("edgeconv-crew-1", "edgeconv-crew-2"):
            text = Path(f"/proc/self/task/{helper.native_id}/status").read_text(encoding="ascii")
            found |= {line.partition("\t")[2] for line in text.splitlines() if line.startswith("Cpus_allowed_list")}
    return found


@LINUX
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


FORK = """
import os, signal, sys, threading, warnings
sys.path.insert(0, {tests!r})
warnings.simplefilter("ignore", DeprecationWarning)  # forking beside threads is what is tried here
from crew_units import Counted
counted = Counted(20, asked=3, max_threads=3)
counted.work.run()
other = Counted(20, asked=3, max_threads=3)
ending = threading.Event()
def go_on():
    while not ending.is_set():
        other.work.run()
beside = threading.Thread(target=go_on)
beside.start()  # another thread's job may be under way at the moment of the fork
for _ in range(20):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        mine = Counted(20, asked=3, max_threads=3)
        for _ in range(50):
            mine.work.run()
            counted.work.run()
        os._exit(0 if mine.tally == [50] * 20 and len(set(counted.tally)) == 1 else 3)
    assert os.waitpid(child, 0)[1] == 0
    counted.work.run()
ending.set()
beside.join()
assert counted.tally == [21] * 20, counted.tally
assert len(set(other.tally)) == 1
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_makes_a_crew_of_its_own() -> None:
    """At any moment of the parent's: its helpers and the callers beside the forking one stay behind."""
    assert run_program(FORK.format(tests=TESTS)).returncode == 0


FORK_WHILE_COMPILING = """
import os, signal, sys, threading, warnings
sys.path.insert(0, {tests!r})
warnings.simplefilter("ignore", DeprecationWarning)
from crew_units import units
from edgeconv.hardware.cpu import jit
ending = threading.Event()
def compile_on():
    while not ending.is_set():
        jit.compile_module(units(), jit.processor())
compilers = [threading.Thread(target=compile_on) for _ in range(2)]
for compiler in compilers:
    compiler.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        jit.compile_module(units(), jit.processor())
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
ending.set()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_that_is_forked_while_others_compile_can_compile() -> None:
    """The compiler's lock would stay locked in it for ever."""
    assert run_program(FORK_WHILE_COMPILING.format(tests=TESTS)).returncode == 0


EXIT = """
import atexit, sys, threading
sys.path.insert(0, {tests!r})
from crew_units import Counted
counted, other = (Counted(20, asked=3, max_threads=3) for _ in range(2))
atexit.register(lambda: counted.work.run() or print(counted.tally == [2] * 20, flush=True))
counted.work.run()
def go_on():
    while True:
        other.work.run()
threading.Thread(target=go_on, daemon=True).start()
"""


def test_the_interpreter_ends_cleanly_beside_a_thread_that_is_still_at_it() -> None:
    ended = run_program(EXIT.format(tests=TESTS))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "True\n", "")


def test_without_a_crew_the_pool_does_the_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "unavailable_reason", lambda: "there is none here")
    monkeypatch.setattr(crew.CREW, "run", None)
    counted = Counted(30, asked=3, max_threads=3)
    counted.work.run()
    assert counted.tally == [1] * 30


def test_a_system_that_gives_no_thread_leaves_the_work_to_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    lonely = crew.Crew()

    class NoThread(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(crew, "CREW", lonely)
    monkeypatch.setattr(crew.threading, "Thread", NoThread)
    counted = Counted(10, asked=3, max_threads=3)
    counted.work.run()
    assert (counted.tally, counted.workers) == ([1] * 10, {0})
