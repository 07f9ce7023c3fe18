"""A session: one plan for many pictures, whose results are the caller's, second passes, and what its times hold."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from problems import random_image

from edgeconv.api import session as sessions
from edgeconv.api.session import Session
from edgeconv.core.request import make_request
from edgeconv.core.timing import Budget, Stopwatch
from edgeconv.methods.options import Options

IMAGE, OTHER = random_image(6, 7, "uint8"), random_image(6, 7, "uint8", 1)
FEW = Budget(min_samples=2, max_samples=2)
PROBLEM = make_request("sobel", stride=2, output_mode="raw").problem(IMAGE.shape, "uint8")


def session_of(device: Any = "cpu", second: Any = None) -> Session:
    return Session(PROBLEM, "sliding", device, Options(), second)


def expected(image: np.ndarray) -> np.ndarray:
    return Session(PROBLEM, "reference", "cpu", Options()).convolve(image)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_result_is_the_callers_and_the_next_picture_leaves_it_alone(device: str) -> None:
    session, watch = session_of(device), Stopwatch()
    first = session.convolve(IMAGE, watch)
    second = session.convolve(OTHER)
    given = session.new_result()
    assert session.convolve(IMAGE[::-1, ::-1], result=given) is given
    for found, image in ((first, IMAGE), (second, OTHER), (given, IMAGE[::-1, ::-1])):
        np.testing.assert_allclose(found, expected(image), rtol=1e-6)
    moved = ["host_to_device", "convolve", "device_to_host"] if device == "cuda" else ["convolve"]
    assert list(watch.phases_seconds) == moved
    session.release_arrays()
    np.testing.assert_allclose(session.convolve(OTHER), expected(OTHER), rtol=1e-6)


def test_a_second_pass_finishes_what_the_plan_gave_and_is_timed_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[np.ndarray] = []

    def second(raw: Any, image: Any, module: Any) -> Any:
        seen.append(raw.copy())
        assert (image == IMAGE).all()
        return np.full(raw.shape, 7, np.uint8)

    session = session_of(second=second)
    finished = session.convolve(IMAGE)
    assert (finished.dtype, finished.min(), finished.max()) == (np.uint8, 7, 7)
    assert (session.raw() == seen[0]).all()
    assert (seen[0] == expected(IMAGE)).all()
    seen.clear()
    inside: list[int] = []

    def turned(call: Any) -> float:
        before = len(seen)
        call()
        inside.append(len(seen) - before)
        return 0.25

    monkeypatch.setattr(session.device, "time_once", turned)
    for time in (session.time_kernel, session.time_end_to_end):
        assert time(IMAGE, FEW).samples_seconds == (0.25, 0.25)
    assert inside[-4:] == [1, 1, 1, 1]


def test_a_time_end_to_end_holds_both_copies_the_plan_and_its_second_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU as a device with memory of its own, by a clock that each step turns further."""
    clock = [0.0]

    def takes(seconds: float, call: Any) -> Any:
        def step(*words: Any) -> Any:
            clock[0] += seconds
            return call(*words)

        return step

    session = session_of(second=takes(100, lambda raw, image, module: raw.astype(np.uint8)))
    monkeypatch.setattr(session.device, "moves_data", True, raising=False)
    for owner, name, seconds in (
        (session.device, "copy_in", 1),
        (session.plan, "run", 10),
        (session.device, "copy_out", 1000),
    ):
        monkeypatch.setattr(owner, name, takes(seconds, getattr(owner, name)))
    monkeypatch.setattr(sessions, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    assert session.time_end_to_end(IMAGE, FEW).samples_seconds == (1111.0, 1111.0)
