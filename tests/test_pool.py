"""The worker pool: every piece once, and a failure reaches the caller after all workers have ended."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest
from meet import Meeting, NoThread, run_program

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
    together = Meeting(3)

    def job(worker):
        together.wait()
        if worker == failing:
            raise ValueError(f"worker {worker}")
        ended.append(worker)

    with pytest.raises(ValueError, match=f"worker {failing}"):
        POOL.run(job, 3)
    assert sorted(ended) == [worker for worker in range(3) if worker != failing]
    run_pieces(lambda piece, worker: None, 10, 3)  # the pool works on


@pytest.mark.parametrize("given", [0, 1])
def test_a_system_that_gives_fewer_threads_has_every_piece_done(given, monkeypatch):
    pool = WorkerPool()
    monkeypatch.setattr("edgeconv.hardware.pool.POOL", pool)
    pool.run(lambda worker: None, 1 + given)
    with monkeypatch.context() as limited:
        limited.setattr(threading, "Thread", NoThread)
        done = []
        for _ in range(2):
            run_pieces(lambda piece, worker: done.append((piece, worker)), 4, 4)
        assert sorted(piece for piece, _ in done) == sorted(2 * [0, 1, 2, 3])
        assert {worker for _, worker in done} <= set(range(1 + given))
    together = Meeting(4)
    pool.run(lambda worker: together.wait(), 4)  # the threads that are needed are started later


START = """
import signal, threading, time
from edgeconv.hardware.pool import POOL

main, ended, interruptions = threading.get_ident(), [], []

def interrupt(*_):
    interruptions.append(None)
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
"""
TWO_MORE = """
def come(count):
    while len(interruptions) < count:
        time.sleep(0.001)

def job(worker):
    if worker == 0:
        signal.raise_signal(signal.SIGALRM)
    for count in (1, 2):  # the caller waits for those that are still at it
        come(count)
        if worker == 1:
            signal.pthread_kill(main, signal.SIGALRM)
    come(3)
    ended.append(worker)

try:
    POOL.run(job, 3)
except KeyboardInterrupt:
    print(sorted(ended), len(interruptions))
"""
AT_ANY_MOMENT = """
def work(worker):
    sum(range(100 * worker))
    if worker == 2:
        sum(range(50 * (turn % 60)))
        signal.pthread_kill(main, signal.SIGALRM)

for turn in range(300):
    try:
        POOL.run(work, 3)
        while len(interruptions) == turn:
            pass
    except KeyboardInterrupt:
        pass
together = threading.Barrier(3)
POOL.run(lambda worker: together.wait(), 3)
print(len(interruptions))
"""


@pytest.mark.parametrize(
    ("program", "said"),
    [
        pytest.param(TWO_MORE, "[1, 2] 3", id="leaves only after all have ended"),
        pytest.param(AT_ANY_MOMENT, "300", id="leaves a pool that works"),
    ],
)
def test_who_is_interrupted(program: str, said: str) -> None:
    """Workers write to arrays that the caller may free; an interruption may also come between what one reports and what
    the caller makes of it. Forks: test_crew.py.
    """
    ended = run_program(START + program)
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
