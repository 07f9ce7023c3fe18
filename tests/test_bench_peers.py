"""Each installed peer does each case, or says that it cannot."""

from __future__ import annotations

import numpy as np
import pytest

from edgeconv.bench.candidates import share
from edgeconv.bench.peers import PEERS, PeerCandidate
from edgeconv.bench.peers.base import grouped, work_of
from edgeconv.bench.synthetic import bench_channels, bench_filter
from edgeconv.core.noise import noise_pixels
from edgeconv.core.request import make_request
from edgeconv.errors import UnavailableError
from edgeconv.methods.options import Options
from edgeconv.runtime import check

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
    ("uint8", "laplacian8", "each", 1, "zero"),
    ("float32", "laplacian8", "each", 2, "zero"),
    ("uint16", "laplacian8", "luma", 3, "zero"),
    ("float32", "laplacian8", "mix", 1, "replicate"),
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
    for entry in PEERS:
        candidate = PeerCandidate(entry, Options())
        reason = candidate.unavailable_reason()
        try:
            complaint = complaint_of(candidate, entry.device, *case) if reason is None else reason.endswith(".")
        except UnavailableError:
            continue
        if complaint:
            wrong[entry.name, entry.device] = complaint
    assert wrong == {}


def complaint_of(
    candidate: PeerCandidate, device: str, dtype: str, name: str, channels: str, stride: int, border: str
) -> object:
    """What is wrong with a peer's second run of a case, or None."""
    request = make_request(bench_filter(name, channels), channels=channels, stride=stride, border=border)
    pixels = noise_pixels(23, 34, dtype, bench_channels(name))
    problem = request.problem(pixels.shape, pixels.dtype)
    ready = candidate.prepare(share(device, request, pixels))
    for _ in range(2):
        ready.run()
        (ready.synchronize or (lambda: None))()
    found = check.check(pixels, ready.result(), ready.problem, ready.arithmetic, tolerance=ready.tolerance)
    if not found.passed:
        return found.worst
    silent = ready.problem.border != problem.border and "border" not in ready.differs
    return "another border without a word" if silent else None


def test_float64_is_measured_only_where_it_is_computed_in() -> None:
    """float32 sums would pass for a library, whose arithmetic is not known. OpenCV is always here."""
    entry = next(entry for entry in PEERS if entry.name == "opencv-filter2d")
    assert PeerCandidate(entry, Options()).unavailable_reason() is None
    assert PeerCandidate(entry, Options()).version != "unknown"
    pixels = noise_pixels(9, 9, "float64")
    with pytest.raises(UnavailableError, match="float32 only"):
        PeerCandidate(entry, Options()).prepare(share("cpu", make_request("laplacian8"), pixels))


def test_no_two_peers_of_a_device_share_a_name() -> None:
    assert len({(entry.name, entry.device) for entry in PEERS}) == len(PEERS)


def test_a_group_keeps_its_directions_together() -> None:
    problem = make_request("sobel", channels="each").problem((5, 5, 3), "uint8")
    weights, split = grouped(problem)
    assert (weights.shape, split) == ((6, 1, 3, 3), (3, 2, 1))
    assert np.array_equal(weights[::2], problem.weights[0])
    assert np.array_equal(weights[1::2], problem.weights[1])


@pytest.mark.parametrize(
    ("dtype", "name", "channels", "apart", "mixing", "sums"),
    [
        ("uint8", "sobel", "each", True, [[1]], "int16"),
        ("uint16", "sobel", "each", True, [[1]], "int32"),
        ("uint8", "grey-sobel", "mix", True, [[1]], "int16"),
        ("uint8", "laplacian8", "mix", False, [[1, 1, 1]], "int16"),
        ("uint8", "sobel", "luma", False, [[0.299, 0.587, 0.114]], "float32"),
        ("float32", "laplacian4", "each", True, [[1]], "float32"),
        ("float32", "random", "mix", False, np.eye(3).tolist(), "float32"),
        ("uint16", "random-whole", "mix", False, np.eye(3).tolist(), "int32"),
    ],
)
def test_the_least_work_is_read_off_the_weights(dtype, name, channels, apart, mixing, sums) -> None:
    request = make_request(bench_filter(name, channels), channels=channels)
    problem = request.problem((5, 6, bench_channels(name)), dtype)
    work = work_of(problem)
    assert (work.apart, work.sums.name) == (apart, sums)
    assert work.mixing == pytest.approx(np.array(mixing))
    if not apart:  # planes times kernels are the weights
        again = np.einsum("pc,dkpyx->dkcyx", work.mixing, work.weights)
        assert np.broadcast_to(again, problem.weights.shape) == pytest.approx(problem.weights, rel=1e-5)
