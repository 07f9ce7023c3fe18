"""What requests are answered with: pixels of `convolve`, figures of `diff`, the record of `run`, or one line."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest
from problems import random_image
from pytestqt.qtbot import QtBot

from edgeconv import canny, convolve
from edgeconv.core.progress import Stopped
from edgeconv.core.records import fields_of
from edgeconv.difference import figures
from edgeconv.io.image import read_image, write_image
from edgeconv.io.read_limits import ReadRules
from edgeconv.methods.base import Plan
from edgeconv.view import render as work
from edgeconv.view.parameters import Parameters
from edgeconv.view.sources import INPUT, OUTPUT, REFERENCE_OUTPUT, ViewSource
from edgeconv.view.state import ViewRequest, find_mode

PATIENCE = 60
"""Seconds: far more than anything takes."""


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "picture.png"
    write_image(random_image(40, 56, np.uint8), path)
    return path


def request_for(
    path: Path, parameters: Parameters | None = None, mode: str = "single", **sides: ViewSource
) -> ViewRequest:
    chosen = {"left": INPUT, "right": OUTPUT} | sides
    return ViewRequest(1, str(path), parameters or Parameters(device="cpu"), find_mode(mode), **chosen)


def answers(service: work.RenderService, request: ViewRequest) -> list[work.Answer]:
    found: list[work.Answer] = []
    service.cancel(request.generation)
    service.answered.connect(found.append)
    service.serve(request)
    service.answered.disconnect()
    assert isinstance(found[-1], work.RequestDone)
    assert all(answer.generation == request.generation for answer in found)
    return found


def only(found: list[work.Answer], kind: type) -> Any:
    (answer,) = [answer for answer in found if isinstance(answer, kind)]
    return answer


def layers(found: list[work.Answer]) -> Iterator[work.Layer]:
    return (answer.layer for answer in found if isinstance(answer, work.LayerReady))


@pytest.mark.parametrize("method", ["opencv", "sliding", "im2col", "reference"])
def test_the_output_is_that_of_convolve(picture: Path, method: str) -> None:
    parameters = Parameters(filter="sobel", method=method, device="cpu", channels="each", stride=2)
    (layer,) = layers(answers(work.RenderService(), request_for(picture, parameters)))
    expected = convolve(random_image(40, 56, np.uint8), "sobel", method, device="cpu", channels="each", stride=2)
    assert np.array_equal(layer.pixels, expected)
    assert layer.label == f"sobel by {method} on CPU"


@pytest.mark.parametrize("rules", [{"filter": "canny"}, {"filter": "canny", "thresholds": "9,90", "blur": 3}])
def test_edges_by_canny_are_those_of_python(picture: Path, rules: dict[str, Any]) -> None:
    service, parameters = work.RenderService(), Parameters(device="cpu", **rules)
    found = answers(service, request_for(picture, parameters))
    (layer,) = layers(found)
    numbers = {"low": 9, "high": 90, "blur": 3} if "blur" in rules else {}
    assert np.array_equal(layer.pixels[:, :, 0], canny(random_image(40, 56, np.uint8), **numbers))
    record = only(found, work.RunMeasured).record
    assert record.throughput is not None
    assert record.check.passed
    assert service.output_name(str(picture), parameters).startswith("picture_canny_")


def test_a_float_picture_has_no_edges_by_canny(tmp_path: Path) -> None:
    path = tmp_path / "floats.tiff"
    write_image(random_image(9, 9, "float32"), path)
    found = answers(work.RenderService(), request_for(path, Parameters(filter="canny", device="cpu")))
    assert "need pictures of uint8 or uint16" in only(found, work.Failed).message


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
def test_grey_is_shown_and_filtered_as_one_channel(tmp_path: Path, dtype: str) -> None:
    """And as three where the window was opened with --rgb."""
    path = tmp_path / "grey.tiff"
    write_image(random_image(40, 56, dtype)[:, :, :1], path)
    for rules, channels in ((ReadRules(), 1), (ReadRules(rgb=True), 3)):
        pixels = read_image(path, rules).pixels
        parameters = Parameters(filter="sobel", method="reference", device="cpu", channels="each")
        found = answers(work.RenderService(rules), request_for(path, parameters, mode="difference"))
        left, right = (layer.pixels for layer in layers(found))
        assert np.array_equal(left, pixels)
        assert pixels.shape[2] == channels
        assert np.array_equal(right, convolve(pixels, "sobel", "reference", channels="each"))
        assert only(found, work.DifferenceReady).comparisons.comparisons


def test_a_kernel_file_that_becomes_a_bank_of_one_is_computed_again(tmp_path: Path, picture: Path) -> None:
    """The same numbers in another shape give one output in place of three."""
    file = tmp_path / "k.npy"
    parameters = Parameters(kernel_file=str(file), method="reference", device="cpu")
    service = work.RenderService()
    for shape, channels in (((3, 3), 3), ((1, 1, 3, 3), 1), ((3, 3), 3)):
        np.save(file, np.ones(shape))
        (layer,) = layers(answers(service, request_for(picture, parameters)))
        assert layer.pixels.shape[2] == channels


def test_the_difference_has_the_figures_of_diff(picture: Path) -> None:
    found = answers(work.RenderService(), request_for(picture, mode="difference"))
    left, right = (layer.pixels for layer in layers(found))
    (comparison,) = only(found, work.DifferenceReady).comparisons.comparisons
    expected = fields_of(figures.of_pair(left, right))
    assert {name: getattr(comparison, name) for name in expected} == expected


def test_a_run_is_measured_once_and_told_again(picture: Path) -> None:
    service = work.RenderService()
    first = only(answers(service, request_for(picture)), work.RunMeasured)
    again = only(answers(service, replace(request_for(picture), mode=find_mode("split"))), work.RunMeasured)
    assert (first.again, again.again) == (False, True)
    assert again.record is first.record
    assert first.record.check.passed
    assert first.record.speed.kernel_gflops > 0
    assert {"decode", "set_up", "convolve"} <= first.record.phases_seconds.keys()
    assert first.parameters.method == "auto"


def test_the_method_of_a_side_is_what_is_measured(picture: Path) -> None:
    found = answers(work.RenderService(), request_for(picture, mode="split", right=REFERENCE_OUTPUT))
    measured = only(found, work.RunMeasured)
    assert (measured.parameters.method, measured.parameters.device) == ("reference", "cpu")


def test_a_method_beside_the_chosen_one_is_not_told_what_it_does_not_know(picture: Path) -> None:
    parameters = Parameters(method="cudnn", math="tf32", block=8)
    found = answers(work.RenderService(), request_for(picture, parameters, right=REFERENCE_OUTPUT))
    assert len(list(layers(found))) == 1
    assert only(found, work.RunMeasured).parameters == Parameters(method="reference", device="cpu")


def test_two_pictures_are_not_measured(picture: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.png"
    write_image(random_image(40, 56, np.uint8, seed=1), other)
    found = answers(work.RenderService(), request_for(picture, mode="split", right=ViewSource("file", str(other))))
    assert not [answer for answer in found if isinstance(answer, work.RunMeasured)]
    assert np.array_equal(list(layers(found))[1].pixels, random_image(40, 56, np.uint8, seed=1))


def test_a_stale_request_computes_no_further(picture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = work.RenderService()
    computed: list[str] = []
    found: list[work.Answer] = []

    def stop(answer: work.Answer) -> None:
        found.append(answer)
        service.cancel(answer.generation + 1)

    monkeypatch.setattr(work.measure, "filter_picture", lambda *_: computed.append("output"))
    service.answered.connect(stop)
    service.cancel(1)
    service.serve(request_for(picture))
    assert [type(answer) for answer in found] == [work.PictureRead]
    assert computed == []


def test_the_newest_request_passes_stale_ones_and_replaces_what_waits(
    qtbot: QtBot, picture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = work.RenderService()
    began: SimpleQueue[int] = SimpleQueue()
    go_on = threading.Event()
    serve = work.RenderService.serve

    def held(self: work.RenderService, request: ViewRequest) -> None:
        began.put(request.generation)
        if request.generation in (1, 2):
            go_on.wait(PATIENCE)  # a step that cannot be interrupted
        serve(self, request)

    monkeypatch.setattr(work.RenderService, "serve", held)
    for generation in (1, 2):
        service.submit(replace(request_for(picture), generation=generation))
        assert began.get(timeout=PATIENCE) == generation
    for generation in (3, 4):
        service.submit(replace(request_for(picture), generation=generation))
    with qtbot.waitSignal(
        service.answered, timeout=PATIENCE * 1000, check_params_cb=lambda each: isinstance(each, work.RequestDone)
    ) as heard:
        pass
    assert heard.args[0].generation == 4, "though both threads are busy"
    go_on.set()
    assert service.pool.waitForDone(PATIENCE * 1000)
    assert [began.get() for _ in range(began.qsize())] == [4]


def test_two_threads_compute_a_value_once_and_one_that_was_stopped_again() -> None:
    made: list[int] = []
    both_here = threading.Barrier(2, timeout=PATIENCE)

    def make() -> bytes:
        made.append(1)
        if len(made) == 1:
            both_here.wait()
            raise Stopped
        return b"thing"

    cache = work.Cache(100, len)

    def begin() -> None:
        with pytest.raises(Stopped):
            cache.get("key", make)

    thread = threading.Thread(target=begin)
    thread.start()
    while not made:
        pass
    both_here.wait()
    assert cache.get("key", make) == b"thing"
    thread.join(PATIENCE)
    assert cache.get("key", make) == b"thing"
    assert len(made) == 2


class Key:
    """A key that is equal to itself alone."""


def test_the_least_recently_used_go_and_nothing_is_kept_of_them() -> None:
    cache, made = work.Cache(10, len), []
    keys = {name: Key() for name in "abc"}

    def get(name: str, size: int = 4) -> None:
        cache.get(keys[name], lambda: (made.append(name), b"x" * size)[1])

    for name in "abac":
        get(name)
    made.clear()
    for name in "acb":
        get(name)
    assert made == ["b"]
    for _ in range(2):
        get("c", 1000)
    last = weakref.ref(keys.pop("c"))
    get("a", 1000)
    gc.collect()
    assert last() is None, "a key that was found in the cache is forgotten with its value"
    assert cache.held_bytes == 1000, "the newest stays, whatever its size"


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("a library's\nown words")])
def test_whatever_a_method_raises_the_answer_is_one_line(picture: Path, monkeypatch, error: Exception) -> None:
    def fail(self: Plan, image: Any, out: Any) -> None:
        raise error

    monkeypatch.setattr("edgeconv.methods.reference.ReferencePlan.run", fail)
    parameters = Parameters(method="reference", device="cpu")
    failed = only(answers(work.RenderService(), request_for(picture, parameters)), work.Failed)
    assert "memory" in failed.message or "a library's own words" in failed.message
    assert "\n" not in failed.message


def test_a_picture_that_was_changed_is_read_anew_when_asked(picture: Path) -> None:
    service = work.RenderService()
    (before,) = layers(answers(service, request_for(picture)))
    write_image(random_image(40, 56, np.uint8, seed=5), picture)
    (kept,) = layers(answers(service, request_for(picture)))
    assert kept is before
    service.forget(str(picture))
    (after,) = layers(answers(service, request_for(picture)))
    assert np.array_equal(after.pixels, convolve(random_image(40, 56, np.uint8, seed=5), device="cpu"))


def test_two_float_sides_are_shown_in_one_range(tmp_path: Path) -> None:
    path = tmp_path / "picture.npy"
    np.save(path, random_image(20, 20, np.float32))
    left, right = layers(answers(work.RenderService(), request_for(path, mode="split")))
    low, high = left.pixels.min(), left.pixels.max()
    shown = right.pyramid.tile((0, 0, 0)).astype(float)
    expected = np.rint((np.clip(right.pixels, low, high) - low) * (255 / (high - low)))
    assert np.abs(shown - expected).max() <= 1
