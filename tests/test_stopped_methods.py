"""How far a method is, and that it stops where nobody wants it any more."""

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
def test_a_method_tells_how_far_it_is_and_stops_where_it_is_told_to(method: str, threads: int) -> None:
    picture = random_image(1500, 700, np.uint8)
    options = edgeconv.Options(threads=threads, workspace_limit_bytes=2**24) if method == "opencv" else None
    plan = edgeconv.plan(picture.shape, "uint8", method=method, device="cpu", options=options)
    shares: list[float] = []
    with listening(shares.append):
        whole = plan(picture)
    assert shares[0] >= 0
    assert shares == sorted(shares)
    assert shares[-1] < 1
    assert len(shares) > (threads == 1)

    def stop(share: float) -> None:
        raise Stopped

    out = np.full_like(whole, 7)
    with listening(stop), pytest.raises(Stopped):
        plan(picture, out=out)
    assert np.array_equal(plan(picture), whole), "the plan works on"


def test_nothing_is_told_to_another_thread_or_after_the_block() -> None:
    shares: list[float] = []
    with listening(shares.append):
        thread = threading.Thread(target=progress.report, args=(0.5,))
        thread.start()
        thread.join()
        with listening(lambda share: None):
            progress.report(0.6)
        progress.report(0.7)
    progress.report(0.8)
    assert shares == [0.7]


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
