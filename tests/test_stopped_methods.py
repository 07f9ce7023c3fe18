"""A method is heard of while it works, and stops where nobody wants it any more."""

from __future__ import annotations

import threading
from itertools import product

import numpy as np
import pytest
from problems import random_image
from selection import pairs_then_slow

import edgeconv
from edgeconv.core import progress
from edgeconv.core.progress import Stopped, listening
from edgeconv.hardware.pool import run_pieces


@pytest.mark.parametrize(
    ("threads", "method"), pairs_then_slow([*product([1, 3], ["reference", "opencv"])], together=1)
)
def test_a_method_is_heard_of_and_stops_where_it_is_told_to(method: str, threads: int) -> None:
    picture = random_image(1500, 700, np.uint8)
    options = edgeconv.Options(threads=threads, workspace_limit_bytes=2**24) if method == "opencv" else None
    plan = edgeconv.plan(picture.shape, "uint8", method=method, device="cpu", options=options)
    heard: list[str] = []
    with listening(lambda: heard.append("on")):
        whole = plan(picture)
    assert len(heard) > (threads == 1)

    def stop() -> None:
        raise Stopped

    out = np.full_like(whole, 7)
    with listening(stop), pytest.raises(Stopped):
        plan(picture, out=out)
    assert np.array_equal(plan(picture), whole), "the plan works on"


def test_nothing_is_told_to_another_thread_or_after_the_block() -> None:
    outer: list[str] = []
    inner: list[str] = []
    with listening(lambda: outer.append("outer")):
        thread = threading.Thread(target=progress.report)
        thread.start()
        thread.join()
        with listening(lambda: inner.append("inner")):
            progress.report()
        assert (outer, inner) == ([], ["inner"])
        progress.report()
    progress.report()
    assert (outer, inner) == (["outer"], ["inner"])


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_once_a_piece_has_failed_none_is_begun(threads: int) -> None:
    begun: list[int] = []
    failed = threading.Event()

    def work(piece: int, worker: int) -> None:
        begun.append(piece)
        if piece == 3:
            failed.set()
            raise ValueError("a piece")
        if piece > 3:
            failed.wait(60)

    with pytest.raises(ValueError, match="a piece"):
        run_pieces(work, 10_000, threads)
    assert len(begun) < 4 + 100 * threads
