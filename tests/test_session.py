"""A session's order of copies, runs and second passes, on a made-up device that has memory of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from problems import random_image

from edgeconv.core.cost import Roof
from edgeconv.core.problem import Problem
from edgeconv.core.request import make_request
from edgeconv.core.timing import Budget, Stopwatch
from edgeconv.methods.options import Options
from edgeconv.runtime import session as sessions
from edgeconv.runtime.session import Session, plain

WORKSPACE = 1000
ROOF = Roof(1.0, 2.0, "made up")


class OnDevice:
    """An array that is not the host's."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.pixels = np.zeros(shape, dtype)
        self.shape, self.dtype = self.pixels.shape, self.pixels.dtype


ARRAYS = SimpleNamespace(ascontiguousarray=lambda image: image)
"""The module of the device's arrays."""


class Device:
    """Writes down what it is asked for; a sample takes what `seconds` says."""

    array_module = ARRAYS

    def __init__(self, moves_data: bool) -> None:
        self.moves_data = moves_data
        self.log: list[Any] = []
        self.guarded: list[int] = []

    @contextmanager
    def guard(self, needed_bytes: int) -> Iterator[None]:
        self.guarded.append(needed_bytes)
        yield

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        self.log.append(("empty", shape, np.dtype(dtype).name))
        return OnDevice(shape, dtype) if self.moves_data else np.zeros(shape, dtype)

    def host_empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        self.log.append(("host", shape, np.dtype(dtype).name))
        return np.zeros(shape, dtype)

    def copy_in(self, image: Any, out: OnDevice) -> None:
        assert isinstance(image, np.ndarray)
        assert isinstance(out, OnDevice)
        self.log.append("in")
        out.pixels[...] = image

    def copy_out(self, image: Any, out: Any) -> None:
        assert isinstance(out, np.ndarray)
        self.log.append("out")
        out[...] = image.pixels if isinstance(image, OnDevice) else image

    def synchronize(self) -> None:
        self.log.append("wait")

    def time_once(self, call: Any) -> float:
        call()
        return 0.25

    def roof(self) -> Roof:
        return ROOF


class Plan:
    """Adds one to the picture's first sample."""

    workspace_bytes = WORKSPACE

    def __init__(self, device: Device) -> None:
        self._device = device

    def run(self, image: Any, out: Any) -> None:
        self._device.log.append("run")
        given, made = (each.pixels if isinstance(each, OnDevice) else each for each in (image, out))
        assert given.flags.c_contiguous
        made[...] = given[0, 0, 0] + 1


IMAGE = random_image(6, 7, "uint8")
FEW = Budget(min_samples=2, max_samples=2)
OPTIONS = Options(workspace_limit_bytes=5000)


def made(monkeypatch: pytest.MonkeyPatch, moves_data: bool, second: Any = None) -> tuple[Session, Device, Problem]:
    device = Device(moves_data)
    asked: list[Any] = []
    ready = SimpleNamespace(prepare=lambda problem, options: asked.append((problem, options)) or Plan(device))
    monkeypatch.setattr(sessions, "require", lambda *words: asked.append(words) or ready)
    monkeypatch.setattr(sessions, "get_device", lambda name: device)
    problem = make_request(stride=2, output_mode="raw").problem(IMAGE.shape, "uint8")
    session = Session(problem, "sliding", "cuda", OPTIONS, second)
    assert asked == [("sliding", "cuda", OPTIONS), (problem, OPTIONS)]
    assert (session.problem, session.method_name, session.device) == (problem, "sliding", device)
    return session, device, problem


def needed(problem: Problem) -> int:
    return 6 * 7 * 3 + 3 * 4 * 3 * 4


def test_a_plan_is_made_under_guard_of_all_that_it_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    session, device, problem = made(monkeypatch, True)
    assert device.guarded == [needed(problem) + 5000]
    assert session.needed_bytes == needed(problem) + WORKSPACE
    session.convolve(IMAGE)
    session.convolve_into(OnDevice(IMAGE.shape, np.uint8), OnDevice((3, 4, 3), np.float32))
    session.time_kernel(IMAGE, FEW)
    session.time_end_to_end(IMAGE, FEW)
    assert session.measure_roof() is ROOF
    assert set(device.guarded[1:]) == {needed(problem) + WORKSPACE}


def test_on_a_device_with_its_own_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    session, device, _ = made(monkeypatch, True)
    watch = Stopwatch()
    first = session.convolve(IMAGE, watch)
    image, out = ("empty", (6, 7, 3), "uint8"), ("empty", (3, 4, 3), "float32")
    assert device.log == [out, image, "in", "run", "wait", "out"]
    assert list(watch.phases_seconds) == ["host_to_device", "convolve", "device_to_host"]
    assert (first.shape, first.dtype) == ((3, 4, 3), np.float32)
    assert (first == IMAGE[0, 0, 0] + 1.0).all()
    device.log.clear()
    result = session.new_result()
    assert (result.shape, result.dtype) == ((3, 4, 3), np.float32)
    assert session.convolve(IMAGE, result=result) is result
    assert device.log == ["in", "run", "wait", "out"], "the arrays are kept"
    assert session.take_arrays() == session.take_arrays()
    session.release_arrays()
    device.log.clear()
    session.convolve(IMAGE[::-1, ::-1])
    assert device.log == [out, image, "in", "run", "wait", "out"]


def test_a_picture_of_the_device_is_not_copied_in(monkeypatch: pytest.MonkeyPatch) -> None:
    session, device, _ = made(monkeypatch, True)
    there = OnDevice(IMAGE.shape, np.uint8)
    watch = Stopwatch()
    left = session.convolve_and_leave(there, watch)
    assert left is session.take_arrays()[1]
    assert device.log[:3] == [("empty", (3, 4, 3), "float32"), "run", "wait"]
    assert list(watch.phases_seconds) == ["convolve"]
    device.log.clear()
    own = OnDevice((3, 4, 3), np.float32)
    session.convolve_into(there, own)
    assert (own.pixels == there.pixels[0, 0, 0] + 1.0).all()
    assert device.log == ["run"], "and it is not waited for"


def test_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    session, device, _ = made(monkeypatch, False)
    watch = Stopwatch()
    result = session.new_result()
    assert session.convolve(IMAGE[:, ::-1], watch, result) is result
    assert (result == IMAGE[0, -1, 0] + 1.0).all()
    first, second = session.convolve(IMAGE), session.convolve(IMAGE)
    assert first is not second
    assert device.log == ["run"] * 3
    assert list(watch.phases_seconds) == ["convolve"]
    assert session.take_arrays()[0] is None


@pytest.mark.parametrize("moves_data", [False, True])
def test_a_second_pass_finishes_what_the_plan_gave(monkeypatch: pytest.MonkeyPatch, moves_data: bool) -> None:
    seen: list[Any] = []

    def second(raw: Any, image: Any, module: Any) -> Any:
        seen.append((raw, image, module))
        return np.full(raw.shape, 7, np.uint8)

    session, device, _ = made(monkeypatch, moves_data, second)
    finished = session.convolve(IMAGE)
    assert (finished.dtype, finished.min(), finished.max()) == (np.uint8, 7, 7)
    image, out = session.take_arrays()
    assert seen[0][0] is out
    assert seen[0][1] is image if moves_data else np.array_equal(seen[0][1], IMAGE)
    assert seen[0][2] == ARRAYS
    raw = session.raw()
    assert (raw.dtype, raw.shape) == (np.float32, (3, 4, 3))
    assert (raw == IMAGE[0, 0, 0] + 1.0).all()
    seen.clear()
    series = session.time_kernel(IMAGE, FEW)
    assert (series.samples_seconds, len(seen)) == ((0.25, 0.25), 2)
    if moves_data:
        device.log.clear()
        session.time_end_to_end(IMAGE, FEW)
        staged = [("host", (6, 7, 3), "uint8"), ("host", (3, 4, 3), "uint8")]
        assert device.log == [*staged, *["in", "run", "out"] * 2]


def test_what_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    session, device, _ = made(monkeypatch, True)
    session.take_arrays()
    device.log.clear()
    series = session.time_kernel(IMAGE, FEW)
    assert (series.samples_seconds, device.log) == ((0.25, 0.25), ["in", "run", "run"])
    device.log.clear()
    ticks = iter(range(0, 1000, 10))
    monkeypatch.setattr(sessions.time, "perf_counter", lambda: float(next(ticks)))
    for staged in ([("host", (6, 7, 3), "uint8"), ("host", (3, 4, 3), "float32")], []):
        series = session.time_end_to_end(IMAGE, FEW)
        assert device.log == [*staged, *["in", "run", "out"] * 2]
        assert all(seconds == 10.0 for seconds in series.samples_seconds)
        device.log.clear()


def test_on_the_cpu_both_times_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    session, device, _ = made(monkeypatch, False)
    for time in (session.time_kernel, session.time_end_to_end):
        device.log.clear()
        series = time(IMAGE[::-1], FEW)
        assert series.samples_seconds == (0.25, 0.25)
        assert [each for each in device.log if each == "run"] == ["run", "run"]


def test_a_picture_is_copied_only_where_native_code_needs_it() -> None:
    assert plain(IMAGE) is IMAGE
    assert plain(IMAGE[:, ::-1]).flags.c_contiguous
    odd = np.zeros(4 * 30 + 1, np.uint8)[1:].view(np.float32)
    assert plain(odd).flags.aligned
