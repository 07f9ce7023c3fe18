"""Each installed peer does each case, or says that it cannot."""

from __future__ import annotations

import numpy as np
import pytest

from edgeconv.api import check
from edgeconv.bench.candidates import share
from edgeconv.bench.peers import PEERS, peer_candidates
from edgeconv.bench.peers.base import Peer, work_of
from edgeconv.bench.synthetic import bench_channels, bench_filter
from edgeconv.core.noise import noise_pixels
from edgeconv.core.request import make_request
from edgeconv.errors import UnavailableError

CASES = [
    # dtype, filter, channels, stride, border
    ("float32", "random", "mix", 1, "zero"),
    ("float32", "random", "mix", 3, "replicate"),
    ("float32", "random", "each", 1, "reflect101"),
    ("float32", "random", "luma", 2, "zero"),
    ("uint8", "laplacian4", "each", 3, "reflect"),
    ("uint8", "random-whole", "mix", 1, "zero"),
    ("uint8", "scharr", "each", 2, "reflect101"),
    ("uint8", "sobel", "mix", 1, "zero"),
    ("uint8", "sobel", "each", 1, "replicate"),
    ("uint16", "sobel", "each", 1, "zero"),
    ("float32", "sobel", "each", 1, "zero"),
    ("uint8", "sobel", "luma", 1, "zero"),
    ("uint16", "laplacian8", "luma", 3, "zero"),
    ("uint16", "kirsch", "each", 1, "zero"),
    ("uint8", "grey-laplacian8", "mix", 1, "zero"),
    ("uint8", "grey-sobel", "mix", 2, "reflect101"),
    ("float32", "bank-c1-k4", "mix", 1, "zero"),
    ("float32", "bank-c3-k5", "mix", 2, "zero"),
    ("float64", "bank-c3-k2", "mix", 1, "zero"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_every_peer_that_is_here_is_right_or_says_why_not(case) -> None:
    wrong = {}
    for peer in PEERS:
        reason = peer.unavailable_reason()
        try:
            complaint = complaint_of(peer, *case) if reason is None else reason.endswith(".")
        except UnavailableError:
            continue
        if complaint:
            wrong[peer.name, peer.device] = complaint
    assert wrong == {}


def complaint_of(peer: Peer, dtype: str, name: str, channels: str, stride: int, border: str) -> object:
    """What is wrong with a peer's second run of a case, or None."""
    request = make_request(bench_filter(name, channels), channels=channels, stride=stride, border=border)
    pixels = noise_pixels(23, 34, dtype, bench_channels(name))
    problem = request.problem(pixels.shape, pixels.dtype)
    ready = peer.prepare(share(peer.device, request, pixels))
    for _ in range(2):
        ready.run()
        (ready.synchronize or (lambda: None))()
    found = check.check(pixels, ready.result(), ready.problem, ready.arithmetic, tolerance=ready.tolerance)
    if not found.passed:
        return found.worst
    silent = ready.problem.border != problem.border and "border" not in ready.differs
    return "another border without a word" if silent else None


def test_what_a_peer_does_not_take_is_refused_with_the_reason() -> None:
    """float32 sums would pass for float64 of a library, whose arithmetic is not known. OpenCV is always here."""
    ((peer,), _) = peer_candidates(["opencv-filter2d"], "cpu")
    assert peer.version != "unknown"
    for dtype, padding, word in (("float64", "same", "not float64"), ("uint8", "valid", "padding 1, not 0")):
        bench = share("cpu", make_request("laplacian8", padding=padding), noise_pixels(9, 9, dtype))
        with pytest.raises(UnavailableError, match=word):
            peer.prepare(bench)


def test_the_least_work_is_read_off_the_weights() -> None:
    cases = ("uint8 sobel each", "uint16 sobel each", "uint8 laplacian8 mix", "uint8 sobel luma", "float32 random mix")
    found = []
    for dtype, name, channels in map(str.split, cases):
        work = work_of(make_request(bench_filter(name, channels), channels=channels).problem((5, 6, 3), dtype))
        found.append((work.apart, work.sums.name, np.shape(work.mixing)))
    assert found == [
        (True, "int16", (1, 1)),
        (True, "int32", (1, 1)),
        (False, "int16", (1, 3)),
        (False, "float32", (1, 3)),
        (False, "float32", (3, 3)),
    ]
