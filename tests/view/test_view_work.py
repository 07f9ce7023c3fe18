"""What requests are answered with: pixels of `convolve`, figures of `diff`, the record of `run`, or one line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from problems import random_image

from edgeconv import canny, convolve
from edgeconv.core.records import fields_of
from edgeconv.difference import figures
from edgeconv.io.image import read_image, write_image
from edgeconv.io.read_limits import ReadRules
from edgeconv.methods.base import Plan
from edgeconv.view import compute as work
from edgeconv.view.latest_request import Token
from edgeconv.view.parameters import Parameters
from edgeconv.view.sources import INPUT, OUTPUT, REFERENCE_OUTPUT, ViewSource
from edgeconv.view.state import ViewRequest, find_mode


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


def answers(workshop: work.Workshop, request: ViewRequest, token: Token | None = None) -> list[work.Computed]:
    found: list[work.Computed] = []
    workshop.serve(request, token or Token(), found.append)
    assert isinstance(found[-1], work.RequestDone)
    assert all(answer.generation == request.generation for answer in found)
    return found


def only(found: list[work.Computed], kind: type) -> Any:
    (answer,) = [answer for answer in found if isinstance(answer, kind)]
    return answer


def layers(found: list[work.Computed]) -> Iterator[work.Layer]:
    return (answer.layer for answer in found if isinstance(answer, work.LayerReady))


@pytest.mark.parametrize("method", ["opencv", "sliding", "im2col", "reference"])
def test_the_output_is_that_of_convolve(picture: Path, method: str) -> None:
    parameters = Parameters(filter="sobel", method=method, device="cpu", channels="each", stride=2)
    (layer,) = layers(answers(work.Workshop(), request_for(picture, parameters)))
    expected = convolve(random_image(40, 56, np.uint8), "sobel", method, device="cpu", channels="each", stride=2)
    assert np.array_equal(layer.pixels, expected)
    assert layer.label == f"sobel by {method} on CPU"


@pytest.mark.parametrize("rules", [{"filter": "canny"}, {"filter": "canny", "thresholds": "9,90", "blur": 3}])
def test_edges_by_canny_are_those_of_python(picture: Path, rules: dict[str, Any]) -> None:
    workshop, parameters = work.Workshop(), Parameters(device="cpu", **rules)
    found = answers(workshop, request_for(picture, parameters))
    (layer,) = layers(found)
    numbers = {"low": 9, "high": 90, "blur": 3} if "blur" in rules else {}
    assert np.array_equal(layer.pixels[:, :, 0], canny(random_image(40, 56, np.uint8), **numbers))
    record = only(found, work.RunMeasured).record
    assert record.throughput is not None
    assert record.check.passed
    assert workshop.output_name(str(picture), parameters).startswith("picture_canny_")


def test_a_float_picture_has_no_edges_by_canny(tmp_path: Path) -> None:
    path = tmp_path / "floats.tiff"
    write_image(random_image(9, 9, "float32"), path)
    found = answers(work.Workshop(), request_for(path, Parameters(filter="canny", device="cpu")))
    assert "need pictures of uint8 or uint16" in only(found, work.Failed).message


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
def test_grey_is_shown_and_filtered_as_one_channel(tmp_path: Path, dtype: str) -> None:
    """And as three where the window was opened with --rgb."""
    path = tmp_path / "grey.tiff"
    write_image(random_image(40, 56, dtype)[:, :, :1], path)
    for rules, channels in ((ReadRules(), 1), (ReadRules(rgb=True), 3)):
        pixels = read_image(path, rules).pixels
        parameters = Parameters(filter="sobel", method="reference", device="cpu", channels="each")
        found = answers(work.Workshop(rules), request_for(path, parameters, mode="difference"))
        left, right = (layer.pixels for layer in layers(found))
        assert np.array_equal(left, pixels)
        assert pixels.shape[2] == channels
        assert np.array_equal(right, convolve(pixels, "sobel", "reference", channels="each"))
        assert only(found, work.DifferenceReady).comparisons.comparisons


def test_a_kernel_file_that_becomes_a_bank_of_one_is_computed_again(tmp_path: Path, picture: Path) -> None:
    """The same numbers in another shape give one output in place of three."""
    file = tmp_path / "k.npy"
    parameters = Parameters(kernel_file=str(file), method="reference", device="cpu")
    workshop = work.Workshop()
    for shape, channels in (((3, 3), 3), ((1, 1, 3, 3), 1), ((3, 3), 3)):
        np.save(file, np.ones(shape))
        (layer,) = layers(answers(workshop, request_for(picture, parameters)))
        assert layer.pixels.shape[2] == channels


def test_the_difference_has_the_figures_of_diff(picture: Path) -> None:
    found = answers(work.Workshop(), request_for(picture, mode="difference"))
    left, right = (layer.pixels for layer in layers(found))
    (comparison,) = only(found, work.DifferenceReady).comparisons.comparisons
    expected = fields_of(figures.of_pair(left, right))
    assert {name: getattr(comparison, name) for name in expected} == expected


def test_a_run_is_measured_once_and_told_again(picture: Path) -> None:
    workshop = work.Workshop()
    first = only(answers(workshop, request_for(picture)), work.RunMeasured)
    again = only(answers(workshop, replace(request_for(picture), mode=find_mode("split"))), work.RunMeasured)
    assert (first.again, again.again) == (False, True)
    assert again.record is first.record
    assert first.record.check.passed
    assert first.record.speed.kernel_gflops > 0
    assert {"decode", "set_up", "convolve"} <= first.record.phases_seconds.keys()
    assert first.parameters.method == "auto"


def test_the_method_of_a_side_is_what_is_measured(picture: Path) -> None:
    found = answers(work.Workshop(), request_for(picture, mode="split", right=REFERENCE_OUTPUT))
    measured = only(found, work.RunMeasured)
    assert (measured.parameters.method, measured.parameters.device) == ("reference", "cpu")


def test_a_method_beside_the_chosen_one_is_not_told_what_it_does_not_know(picture: Path) -> None:
    parameters = Parameters(method="cudnn", math="tf32", block=8)
    found = answers(work.Workshop(), request_for(picture, parameters, right=REFERENCE_OUTPUT))
    assert len(list(layers(found))) == 1
    assert only(found, work.RunMeasured).parameters == Parameters(method="reference", device="cpu")


def test_two_pictures_are_not_measured(picture: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.png"
    write_image(random_image(40, 56, np.uint8, seed=1), other)
    found = answers(work.Workshop(), request_for(picture, mode="split", right=ViewSource("file", str(other))))
    assert not [answer for answer in found if isinstance(answer, work.RunMeasured)]
    assert np.array_equal(list(layers(found))[1].pixels, random_image(40, 56, np.uint8, seed=1))


def test_a_cancelled_request_computes_no_further(picture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = Token()
    computed: list[str] = []

    def compute(self: work.Workshop, *arguments: Any) -> None:
        computed.append("output")

    def cancel(answer: work.Computed) -> None:
        if isinstance(answer, work.PictureRead):
            token.cancel()

    monkeypatch.setattr(work.Workshop, "_computed", compute)
    work.Workshop().serve(request_for(picture), token, cancel)
    assert computed == []


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("a library's\nown words")])
def test_whatever_a_method_raises_the_answer_is_one_line(picture: Path, monkeypatch, error: Exception) -> None:
    def fail(self: Plan, image: Any, out: Any) -> None:
        raise error

    monkeypatch.setattr("edgeconv.methods.reference.ReferencePlan.run", fail)
    parameters = Parameters(method="reference", device="cpu")
    failed = only(answers(work.Workshop(), request_for(picture, parameters)), work.Failed)
    assert "memory" in failed.message or "a library's own words" in failed.message
    assert "\n" not in failed.message


def test_a_picture_that_was_changed_is_read_anew_when_asked(picture: Path) -> None:
    workshop = work.Workshop()
    (before,) = layers(answers(workshop, request_for(picture)))
    write_image(random_image(40, 56, np.uint8, seed=5), picture)
    (kept,) = layers(answers(workshop, request_for(picture)))
    assert kept is before
    workshop.forget(str(picture))
    (after,) = layers(answers(workshop, request_for(picture)))
    assert np.array_equal(after.pixels, convolve(random_image(40, 56, np.uint8, seed=5), device="cpu"))


def test_two_float_sides_are_shown_in_one_range(tmp_path: Path) -> None:
    path = tmp_path / "picture.npy"
    np.save(path, random_image(20, 20, np.float32))
    left, right = layers(answers(work.Workshop(), request_for(path, mode="split")))
    low, high = left.pixels.min(), left.pixels.max()
    shown = right.pyramid.tile((0, 0, 0)).astype(float)
    expected = np.rint((np.clip(right.pixels, low, high) - low) * (255 / (high - low)))
    assert np.abs(shown - expected).max() <= 1
