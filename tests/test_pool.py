"""The worker pool: every piece once, and a failure reaches the caller after all workers have ended."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import weakref

import pytest
from command import unmeasured

from edgeconv.hardware.pool import PARALLEL_BYTES, POOL, WorkerPool, run_pieces, threads_for


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_every_piece_is_done_once(threads):
    done = []
    run_pieces(lambda piece, worker: done.append((piece, worker)), 100, threads)
    assert sorted(piece for piece, _ in done) == list(range(100))
    assert {worker for _, worker in done} <= set(range(threads))


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_failure_in_any_worker_is_raised_once_all_have_ended(failing):
    ended = []
    together = threading.Barrier(3)

    def job(worker):
        together.wait()
        if worker == failing:
            raise ValueError(f"worker {worker}")
        ended.append(worker)

    with pytest.raises(ValueError, match=f"worker {failing}"):
        POOL.run(job, 3)
    assert sorted(ended) == [worker for worker in range(3) if worker != failing]
    run_pieces(lambda piece, worker: None, 10, 3)  # the pool works on


class NoThread:
    """What a system does at its limit of threads."""

    def __init__(self, **_: object) -> None:
        pass

    def start(self) -> None:
        raise RuntimeError("can't start new thread")


@pytest.mark.parametrize("given", [0, 1])
def test_a_system_that_gives_fewer_threads_has_every_piece_done(given, monkeypatch):
    pool = WorkerPool()
    pool.run(lambda worker: None, 1 + given)
    monkeypatch.setattr(threading, "Thread", NoThread)
    done = []
    for _ in range(2):
        pool.run(done.append, 4)
    assert sorted(done) == sorted(2 * [0, 1, 2, 3])
    monkeypatch.undo()
    together = threading.Barrier(4)
    pool.run(lambda worker: together.wait(timeout=20), 4)  # the threads that are needed are started later


INTERRUPTED = """
import itertools, signal, threading, time
from edgeconv.hardware.pool import POOL

ended, interruptions = [], itertools.count()

def job(worker):
    if worker:
        time.sleep(0.3)
        ended.append(worker)
    else:
        signal.setitimer(signal.ITIMER_REAL, 0.05)

def interrupt(*_):
    if next(interruptions) < 2:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
try:
    POOL.run(job, 3)
except KeyboardInterrupt:
    print(sorted(ended), next(interruptions))
"""
AT_ANY_MOMENT = """
import signal, threading
from edgeconv.hardware.pool import POOL

def interrupt(*_):
    raise KeyboardInterrupt

def work(worker):
    sum(range(3000 * worker))

signal.signal(signal.SIGALRM, interrupt)
interrupted = 0
for turn in range(600):
    try:
        signal.setitimer(signal.ITIMER_REAL, 20e-6 + turn % 60 * 5e-6)
        POOL.run(work, 3)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupted += 1
together = threading.Barrier(3)
POOL.run(lambda worker: together.wait(timeout=20), 3)
print(interrupted > 10)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timer signals")
@pytest.mark.parametrize(
    ("program", "said"),
    [
        pytest.param(
            INTERRUPTED, "[1, 2] 3", id="leaves only after all have ended"
        ),  # they write to the caller's arrays
        pytest.param(
            AT_ANY_MOMENT, "True", id="leaves a pool that works"
        ),  # also between a worker's report and its end
    ],
)
def test_who_is_interrupted(program: str, said: str) -> None:
    """Workers write to arrays that the caller may free; an interruption may also come between what one reports and what
    the caller makes of it. In a process where coverage is not measured: see `unmeasured`.
    """
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=unmeasured())
    assert (ended.returncode, ended.stdout.strip()) == (0, said), ended.stderr


def test_threads_that_wait_keep_nothing_alive():
    class Picture:
        pass

    picture = Picture()
    seen = weakref.ref(picture)
    run_pieces(lambda piece, worker, picture=picture: None, 10, 3)
    del picture
    gc.collect()
    assert seen() is None


def test_small_work_stays_on_the_callers_thread_unless_threads_are_asked_for():
    assert threads_for(None, PARALLEL_BYTES - 1, pieces=100) == 1
    assert threads_for(3, PARALLEL_BYTES - 1, pieces=100) == 3
    assert threads_for(3, PARALLEL_BYTES, pieces=2) == 2


FORK = """
import os, warnings
from edgeconv.hardware.pool import run_pieces
warnings.simplefilter("ignore", DeprecationWarning)  # forking beside threads is what is tried here
run_pieces(lambda piece, worker: None, 10, 3)
child = os.fork()
if child == 0:
    run_pieces(lambda piece, worker: None, 10, 3)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_starts_threads_of_its_own():
    """Without that it would wait forever for threads that stayed with its parent."""
    subprocess.run([sys.executable, "-c", FORK], check=True, timeout=30)
