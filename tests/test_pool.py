"""The worker pool: every piece once, and a failure reaches the caller after all workers have ended."""

from __future__ import annotations

import threading

import pytest

from edgeconv.pool import PARALLEL_BYTES, POOL, run_pieces, threads_for


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


def test_small_work_stays_on_the_callers_thread_unless_threads_are_asked_for():
    assert threads_for(None, PARALLEL_BYTES - 1, pieces=100) == 1
    assert threads_for(3, PARALLEL_BYTES - 1, pieces=100) == 3
    assert threads_for(3, PARALLEL_BYTES, pieces=2) == 2
