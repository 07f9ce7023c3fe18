"""The newest request wins, and what is dear is made once and not kept for ever. Threads, but no clocks to beat."""

from __future__ import annotations

import threading
from queue import SimpleQueue

import pytest

from edgeconv.view import latest_request
from edgeconv.view.latest_request import LatestRequestRunner, Token
from edgeconv.view.lru_cache import LruCache

PATIENCE = 60
"""Seconds: far more than anything takes."""


def test_every_item_is_served_when_each_is_waited_for() -> None:
    served: SimpleQueue[int] = SimpleQueue()
    runner: LatestRequestRunner[int] = LatestRequestRunner(lambda item, token: served.put(item), "test")
    for item in range(20):
        runner.submit(item)
        assert served.get(timeout=PATIENCE) == item


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


def test_the_newest_waits_for_no_number_of_stale_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latest_request, "HELP_SECONDS", 0.001)
    began: SimpleQueue[int] = SimpleQueue()
    go_on = threading.Event()

    def serve(item: int, token: Token) -> None:
        began.put(item)
        go_on.wait(PATIENCE)  # steps that cannot be interrupted

    runner: LatestRequestRunner[int] = LatestRequestRunner(serve, "test")
    for item in range(latest_request.MOST_THREADS):
        runner.submit(item)
        assert began.get(timeout=PATIENCE) == item
    runner.submit(latest_request.MOST_THREADS)
    go_on.set()
    assert began.get(timeout=PATIENCE) == latest_request.MOST_THREADS, (
        "one more than may serve is served by who is first"
    )


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


def test_a_closed_lane_serves_nothing() -> None:
    served: list[int] = []
    runner: LatestRequestRunner[int] = LatestRequestRunner(lambda item, token: served.append(item), "test")
    runner.close()
    assert runner.submit(1).cancelled
    assert not runner.busy
    assert served == []


def test_a_token_rests_until_it_is_cancelled() -> None:
    token = Token()
    assert token.wait(0.001)
    threading.Timer(0.01, token.cancel).start()
    assert not token.wait(PATIENCE)


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


def test_what_cannot_be_made_is_tried_again() -> None:
    keep: LruCache[bytes] = LruCache(10, len)

    def fail() -> bytes:
        raise ValueError("not now")

    with pytest.raises(ValueError, match="not now"):
        keep.get("a", fail)
    assert keep.get("a", lambda: b"now") == b"now"
