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
from problems import random_image, save_image
from pytestqt.qtbot import QtBot

from edgeconv import convolve
from edgeconv.core.progress import Stopped
from edgeconv.io.read_limits import ReadRules
from edgeconv.io.reading import read_image
from edgeconv.methods.base import Plan
from edgeconv.view import render as work
from edgeconv.view.layers import Layer
from edgeconv.view.parameters import Parameters
from edgeconv.view.state import INPUT, OUTPUT, REFERENCE_OUTPUT, ViewRequest, ViewSource

PATIENCE = 60
"""Seconds: far more than anything takes."""
PIXELS = random_image(40, 56, np.uint8)
SIGNALS = ("picture_read", "layer_ready", "scale_known", "difference_ready", "measured", "failed", "done")


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "picture.png"
    save_image(PIXELS, path)
    return path


def request_for(
    path: Path, parameters: Parameters | None = None, mode: str = "single", **sides: ViewSource
) -> ViewRequest:
    chosen = {"left": INPUT, "right": OUTPUT} | sides
    return ViewRequest(1, str(path), parameters or Parameters(device="cpu"), mode, **chosen)


Answers = dict[str, list[Any]]
"""By signal; of one value the value, of several a tuple."""


def answers(service: work.RenderService, request: ViewRequest) -> Answers:
    """All of them, in the order in which they came."""
    found: Answers = {}

    def keep(name: str, generation: int, *values: Any) -> None:
        assert generation == request.generation
        found.setdefault(name, []).append(values[0] if len(values) == 1 else values)

    ears = {name: lambda *words, name=name: keep(name, *words) for name in SIGNALS}
    service.cancel(request.generation, request)
    for name, ear in ears.items():
        getattr(service, name).connect(ear)
    service.serve(request)
    for name, ear in ears.items():
        getattr(service, name).disconnect(ear)
    assert list(found)[-1] == "done"
    return found


def only(found: Answers, name: str) -> Any:
    (answer,) = found[name]
    return answer


def layers(found: Answers) -> Iterator[Layer]:
    return (layer for _, layer in found["layer_ready"])


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
def test_grey_is_shown_and_filtered_as_one_channel(tmp_path: Path, dtype: str) -> None:
    """And as three where the window was opened with --rgb."""
    path = tmp_path / "grey.tiff"
    save_image(random_image(40, 56, dtype)[:, :, :1], path)
    for rules, channels in ((ReadRules(), 1), (ReadRules(rgb=True), 3)):
        pixels = read_image(path, rules).pixels
        parameters = Parameters(filter="sobel", method="reference", device="cpu", channels="each")
        found = answers(work.RenderService(rules), request_for(path, parameters, mode="difference"))
        left, right = (layer.pixels for layer in layers(found))
        assert np.array_equal(left, pixels)
        assert pixels.shape[2] == channels
        assert np.array_equal(right, convolve(pixels, "sobel", "reference", channels="each"))
        assert only(found, "difference_ready")[1].comparisons


def test_a_kernel_file_that_becomes_a_bank_of_one_is_computed_again(tmp_path: Path, picture: Path) -> None:
    """The same numbers in another shape give one output in place of three under `mix`."""
    file = tmp_path / "k.npy"
    parameters = Parameters(kernel_file=str(file), channels="mix", method="reference", device="cpu")
    service = work.RenderService()
    for shape, channels in (((3, 3), 3), ((1, 1, 3, 3), 1), ((3, 3), 3)):
        np.save(file, np.ones(shape))
        (layer,) = layers(answers(service, request_for(picture, parameters)))
        assert layer.pixels.shape[2] == channels


def test_the_method_of_a_side_is_measured_and_not_told_what_it_does_not_know(picture: Path) -> None:
    parameters = Parameters(method="cudnn", math="tf32", block=8)
    found = answers(work.RenderService(), request_for(picture, parameters, mode="split", right=REFERENCE_OUTPUT))
    assert len(list(layers(found))) == 2
    assert only(found, "measured")[1] == Parameters(method="reference", device="cpu")


def test_two_pictures_are_not_measured(picture: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.png"
    save_image(random_image(40, 56, np.uint8, seed=1), other)
    found = answers(work.RenderService(), request_for(picture, mode="split", right=ViewSource("file", str(other))))
    assert "measured" not in found
    assert np.array_equal(list(layers(found))[1].pixels, random_image(40, 56, np.uint8, seed=1))


def test_a_stale_request_computes_no_further(picture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = work.RenderService()
    computed: list[str] = []
    monkeypatch.setattr(work.measure, "filter_picture", lambda *_: computed.append("output"))
    service.picture_read.connect(lambda *_: service.cancel(2))
    service.done.connect(lambda generation: computed.append("done"))
    service.cancel(1)
    service.serve(request_for(picture))
    assert computed == []


@pytest.mark.parametrize(
    ("newer", "wanted"),
    [
        ({"mode": "split"}, True),
        ({"parameters": Parameters(device="cpu", threshold=9.0)}, True),
        ({"parameters": Parameters(device="cpu", stride=2)}, False),
        ({"right": INPUT}, False),
    ],
)
def test_a_computation_goes_on_while_the_newest_request_wants_it_too(
    picture: Path, newer: dict[str, Any], wanted: bool
) -> None:
    service, request = work.RenderService(), request_for(picture)
    service.cancel(2, replace(request, generation=2, **newer))
    listen = service._listener(request, OUTPUT)
    if wanted:
        listen()
    else:
        with pytest.raises(Stopped):
            listen()


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
    with qtbot.waitSignal(service.done, timeout=PATIENCE * 1000) as heard:
        service.submit(replace(request_for(picture), generation=3))
    assert heard.args == [3], "though two threads are busy"
    go_on.set()
    assert service.pool.waitForDone(PATIENCE * 1000)


class Held(list):
    """A value of as many bytes as it is long, which can be watched."""


def test_two_threads_compute_a_value_once_and_one_that_was_stopped_again() -> None:
    made: list[int] = []
    both_here = threading.Barrier(2, timeout=PATIENCE)

    def make() -> Held:
        made.append(1)
        if len(made) == 1:
            both_here.wait()
            raise Stopped
        return Held("thing")

    cache = work.Cache(100, len)

    def begin() -> None:
        with pytest.raises(Stopped):
            cache.get("key", make)

    thread = threading.Thread(target=begin)
    thread.start()
    while not made:
        pass
    both_here.wait()
    value = cache.get("key", make)
    thread.join(PATIENCE)
    assert cache.get("key", make) is value
    assert len(made) == 2


def test_the_least_recently_used_go_and_nothing_is_kept_of_them() -> None:
    cache, made = work.Cache(10, len), []

    def get(name: str, size: int = 4) -> Any:
        return cache.get(name, lambda: (made.append(name), Held("x" * size))[1])

    for name in "abac":
        get(name)
    made.clear()
    for name in "acb":
        get(name)
    assert made == ["b"]
    last = weakref.ref(get("d", 1000))
    assert cache.held_bytes == 1000, "the newest stays, whatever its size"
    get("a", 1000)
    gc.collect()
    assert last() is None
    assert len(cache._values) == 1, "a key is forgotten with its value"


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("a library's\nown words")])
def test_whatever_a_method_raises_the_answer_is_one_line(picture: Path, monkeypatch, error: Exception) -> None:
    def fail(self: Plan, image: Any, out: Any) -> None:
        raise error

    monkeypatch.setattr("edgeconv.methods.reference.ReferencePlan.run", fail)
    parameters = Parameters(method="reference", device="cpu")
    message, unreadable = only(answers(work.RenderService(), request_for(picture, parameters)), "failed")
    assert "memory" in message or "a library's own words" in message
    assert "\n" not in message
    assert unreadable is None


def test_a_picture_that_was_changed_is_read_anew_when_asked(picture: Path) -> None:
    service = work.RenderService()
    (before,) = layers(answers(service, request_for(picture)))
    save_image(random_image(40, 56, np.uint8, seed=5), picture)
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
    shown = right.levels[0].astype(float)
    expected = np.rint((np.clip(right.pixels, low, high) - low) * (255 / (high - low)))
    assert np.abs(shown - expected).max() <= 1


def output_of(picture: Path, pixels: np.ndarray, **parameters: Any) -> work.ThresholdScale:
    """The scale of the slider for an output."""
    save_image(pixels, picture)
    chosen = Parameters(device="cpu", method="reference", **({"filter": "identity"} | parameters))
    return only(answers(work.RenderService(), request_for(picture, chosen)), "scale_known")[0]


@pytest.mark.parametrize(("dtype", "levels"), [("uint8", 255), ("uint16", 65535)])
def test_every_level_of_an_integer_output_has_a_position(tmp_path: Path, dtype: str, levels: int) -> None:
    scale = output_of(tmp_path / "in.tiff", np.zeros((2, 3, 3), dtype))
    assert scale.positions == levels
    assert [scale.threshold_at(place) for place in (0, 1, 40, levels)] == [None, 1.0, 40.0, float(levels)]
    assert all(scale.position_of(scale.threshold_at(place)) == place for place in range(levels + 1))
    assert [work.ThresholdScale().position_of(value) for value in (1e-9, 300.0, 1e300, None)] == [1, 255, 255, 0]
    assert output_of(tmp_path / "in.tiff", np.zeros((9, 9, 3), dtype), filter="canny").most == 4 * levels


@pytest.mark.parametrize("most", [1e-30, 0.013, 7.7, 1020.0, 3e38])
def test_floats_have_steps_up_to_their_largest_size(tmp_path: Path, most: float) -> None:
    pixels = np.zeros((1, 12, 3), np.float32)
    pixels[0, 1::3] = np.array([-most, most / 3, np.nan, -np.inf], np.float32)[:, np.newaxis]
    scale = output_of(tmp_path / "in.npy", pixels, channels="each")
    assert scale.positions == work.FLOAT_POSITIONS
    assert scale.threshold_at(work.FLOAT_POSITIONS) == pytest.approx(most, rel=1e-3)
    places = range(work.FLOAT_POSITIONS + 1)
    assert all(scale.position_of(scale.threshold_at(place)) == place for place in places)
    half = scale.threshold_at(work.FLOAT_POSITIONS // 2)
    assert half is not None
    assert half == pytest.approx(most / 2, rel=1e-3)
    assert output_of(tmp_path / "in.npy", pixels, channels="each", output_mode="normalize").most == 1
    assert len(f"{half:e}".split("e")[0].rstrip("0")) <= 5, "four digits and the point"


@pytest.mark.parametrize("value", [0.0, np.nan])
def test_an_output_with_nothing_in_it_has_a_scale(tmp_path: Path, value: float) -> None:
    found = output_of(tmp_path / "in.npy", np.full((2, 2, 3), value, np.float32))
    assert found == work.ThresholdScale(work.FLOAT_POSITIONS, 1.0)
