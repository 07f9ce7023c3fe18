"""The newest request wins, and what is dear is made once and not kept for ever. Threads, but no clocks to beat."""

from __future__ import annotations

import threading
from queue import SimpleQueue

from edgeconv.view.latest_request import LatestRequestRunner, Token
from edgeconv.view.lru_cache import LruCache

PATIENCE = 60
"""Seconds: far more than anything takes."""


def test_a_newer_item_cancels_the_one_that_is_served_and_passes_it() -> None:
    began: SimpleQueue[tuple[int, Token]] = SimpleQueue()
    finished: SimpleQueue[int] = SimpleQueue()
    go_on = threading.Event()

    def serve(item: int, token: Token) -> None:
        began.put((item, token))
        if item == 0:
            go_on.wait(PATIENCE)  # a step that cannot be interrupted
        finished.put(item)

    runner: LatestRequestRunner[int] = LatestRequestRunner(serve, "test")
    runner.submit(0)
    _, stale = began.get(timeout=PATIENCE)
    runner.submit(1)
    assert stale.cancelled
    assert finished.get(timeout=PATIENCE) == 1, "the newest must not wait for a stale step"
    go_on.set()
    assert finished.get(timeout=PATIENCE) == 0


def test_what_waits_is_replaced() -> None:
    release = threading.Event()
    served: list[int] = []
    all_busy = threading.Semaphore(0)
    done = threading.Semaphore(0)

    def serve(item: int, token: Token) -> None:
        all_busy.release()
        release.wait(PATIENCE)
        served.append(item)
        done.release()

    runner: LatestRequestRunner[int] = LatestRequestRunner(serve, "test", most_threads=1)
    runner.submit(0)
    assert all_busy.acquire(timeout=PATIENCE)
    tokens = [runner.submit(item) for item in (1, 2, 3)]
    assert [token.cancelled for token in tokens] == [True, True, False]
    assert runner.busy
    release.set()
    for _ in range(2):
        assert done.acquire(timeout=PATIENCE)
    assert served == [0, 3]


def test_two_threads_make_a_thing_once() -> None:
    made: list[int] = []
    both_here = threading.Barrier(2, timeout=PATIENCE)

    def make() -> bytes:
        made.append(1)
        return b"thing"

    keep: LruCache[bytes] = LruCache(100, len)

    def ask() -> None:
        both_here.wait()
        assert keep.get("key", make) == b"thing"

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert made == [1]


def test_the_least_recently_used_go_and_the_newest_stays_whatever_its_size() -> None:
    keep: LruCache[bytes] = LruCache(10, len)
    made: list[str] = []

    def get(key: str, size: int = 4) -> None:
        keep.get(key, lambda: (made.append(key), b"x" * size)[1])

    for key in "abac":
        get(key)
    made.clear()
    for key in "acb":
        get(key)
    assert made == ["b"]
    get("huge", 1000)
    made.clear()
    get("huge", 1000)
    assert made == []
    assert keep.held_bytes == 1000
