"""Two of the same after each other, with one thing changed: nothing that is kept answers for something else.

Each asks A, B, A, B and compares with A and B by themselves. What is changed is walked from signatures and data
classes, so that a parameter that is added is asked for here too, and drawn.
"""

from __future__ import annotations

import inspect
import pickle
from dataclasses import fields, replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest
from batch_folders import processor_for, settings_for
from problems import random_image

import edgeconv
from edgeconv.api.convolve import PLANS
from edgeconv.batch.engines import cluster_worker
from edgeconv.batch.process import PictureProcessor
from edgeconv.batch.settings import Settings
from edgeconv.batch.stores import Task
from edgeconv.core.problem import INPUT_DTYPES
from edgeconv.core.request import Request, make_request
from edgeconv.errors import EdgeconvError
from edgeconv.io.encoding import encode_image
from edgeconv.io.read_limits import ReadRules
from edgeconv.methods.options import Options
from edgeconv.options import Workers
from edgeconv.view.parameters import Parameters
from edgeconv.view.state import INPUT, OUTPUT, ViewRequest

PICTURE = random_image(12, 17, "uint8")

# --- convolve: plans that are remembered ----------------------------------------------------------------------------

OTHER_OPTIONS: dict[str, Any] = {
    "workspace_limit_bytes": 1,
    "threads": 3,
    "math": "tf32",
    "gemm": "cublas",
    "cudnn_find": True,
    "block": 32,
}


CALL: dict[str, Any] = {"image": PICTURE, "filter": "sobel", "method": "im2col", "device": "cpu", "output_mode": "raw"}
OTHER_RULES: dict[str, Any] = {
    "filter": "scharr",
    "channels": "mix",
    "luma": "bt709",
    "stride": 2,
    "padding": "valid",
    "border": "reflect",
    "output_mode": "clip",
    "threshold": 40.0,
}
OTHER_CALL: dict[str, Any] = OTHER_RULES | {
    "image": PICTURE[:, ::-1].astype(np.uint16),
    "method": "opencv",
    "device": "auto",
    "options": Options(workspace_limit_bytes=0),
    "out": np.zeros(PICTURE.shape, np.float32),
}


def answer_of(**words: Any) -> tuple[Any, ...]:
    """What `convolve` gives, or says."""
    try:
        out = edgeconv.convolve(**words)
    except EdgeconvError as error:
        return (str(error),)
    return out.shape, out.dtype.name, out.tobytes()


@pytest.mark.parametrize("name", inspect.signature(edgeconv.convolve).parameters)
def test_convolve_answers_what_was_asked_last(name: str) -> None:
    base = CALL | ({"channels": "luma"} if name == "luma" else {})
    fresh = in_turn(base, base | {name: OTHER_CALL[name]})
    assert len(PLANS.plans) == (1 if name in ("out", "options") else 2)  # the other options are refused
    if name not in ("method", "device", "out"):  # which are right in the same way
        assert fresh[0] != fresh[1]


def in_turn(first: dict[str, Any], second: dict[str, Any]) -> list[tuple[Any, ...]]:
    """What each of two calls answers, also after the other; they must be the same."""
    fresh = []
    for words in (first, second):
        PLANS.plans.clear()
        fresh.append(answer_of(**words))
    PLANS.plans.clear()
    assert [answer_of(**words) for words in (first, second, first, second)] == [*fresh, *fresh], (first, second)
    return fresh


NUMBERS = np.array(
    [[[[0, 0, 0], [0, 3, 1], [0, 0, 0]]], [[[1, 0, 0], [0, 2, 0], [0, 0, 0]]], [[[0, 1, 0]] * 3]], "float32"
)
ALIKE: dict[str, tuple[Any, Any]] = {
    "signed and unsigned": (np.full((3, 3), -1, np.int8), np.full((3, 3), 255, np.uint8)),
    "whole and real": (NUMBERS[0, 0], NUMBERS[0, 0].view(np.int32)),
    "one byte order and the other": (NUMBERS[0, 0], NUMBERS[0, 0].view(">f4")),
    "three filters and three channels": (NUMBERS, NUMBERS.reshape(1, 3, 3, 3)),
    "a filter and a bank of it": ("sobel-x", ["sobel-x"]),
    "a bank and its other order": (["sobel-x", "laplacian8"], ["laplacian8", "sobel-x"]),
}
"""Filters that have the same bytes, or the same names, and are others."""


@pytest.mark.parametrize("what", ALIKE)
def test_filters_that_look_alike_keep_apart(what: str) -> None:
    words = {"image": PICTURE, "method": "reference", "device": "cpu", "output_mode": "raw"}
    first, second = in_turn(*(words | {"filter": filter} for filter in ALIKE[what]))
    assert first != second or what == "a filter and a bank of it"


@pytest.mark.parametrize("shape", [(12, 17), (12, 17, 1), (1, 12, 17, 1)])
def test_pictures_of_the_same_bytes_keep_apart(shape: tuple[int, ...]) -> None:
    picture = random_image(12, 17, "uint16", channels=1).reshape(shape)
    for other in (picture.view(np.float16), picture.reshape(12, 17, 1), picture.reshape(17, 12, 1)):
        in_turn(*({"image": each, "filter": "sobel", "device": "cpu"} for each in (picture, other)))


def test_weights_that_were_changed_in_place_are_new_weights() -> None:
    weights = np.zeros((3, 3), np.float32)
    weights[1, 1] = 1
    assert np.array_equal(edgeconv.convolve(PICTURE, weights, "reference", channels="each"), PICTURE)
    weights[1, 1] = 0
    assert not edgeconv.convolve(PICTURE, weights, "reference", channels="each").any()


# --- batch, tiles, the window ----------------------------------------------------------------------------------------

SHAPES = ((12, 17), (17, 12), (12, 18))
PICTURES = [random_image(height, width, dtype) for height, width in SHAPES for dtype in INPUT_DTYPES]


def filtered(by: PictureProcessor, pixels: np.ndarray) -> np.ndarray:
    """What two stages of a batch make of a file with these pixels."""
    work = by.begin(Task("a.npy", PurePosixPath(), ""))
    work.data = bytes(encode_image(pixels, "a.npy"))
    by.decode([work])
    by.filter([work])
    assert work.row.error is None
    return work.output.copy()


def test_pictures_of_one_batch_are_filtered_by_their_own_shape_and_type(tmp_path: Path) -> None:
    """Each pair of them, both ways round: 8 and 16 bits of one size too."""
    expected = [edgeconv.convolve(each, method="reference", device="cpu") for each in PICTURES]
    by = processor_for(settings_for(tmp_path))
    for first in range(len(PICTURES)):
        for second in range(len(PICTURES)):
            for which in (first, second):
                out = filtered(by, PICTURES[which])
                assert (out.dtype, out.shape) == (expected[which].dtype, expected[which].shape)
                assert np.array_equal(out, expected[which])


@pytest.mark.parametrize("name", [field.name for field in fields(Request)])
def test_works_after_each_other_in_one_worker_keep_apart(tmp_path: Path, name: str) -> None:
    base = {"filter": "laplacian8", "channels": "luma" if name == "luma" else "each"}  # sobel is never negative
    requests = make_request(**base), make_request(**base | {name: OTHER_RULES[name]})
    sent = [pickle.dumps(processor_for(settings_for(tmp_path, request=request))) for request in requests]
    results = [filtered(cluster_worker._unpickled(sent[which]), PICTURE) for which in (0, 1, 0, 1)]
    assert np.array_equal(results[0], results[2])
    assert np.array_equal(results[1], results[3])
    assert not np.array_equal(results[0], results[1])


OTHER_SETTINGS: dict[str, Any] = {
    "name": "{stem}{ext}",
    "format": "tiff",
    "quality": 3,
    "png_level": 3,
    "jpeg_codec": "gpu",
}
"""What an output holds depends on them; on the request and the options too, field by field below."""
OF_NO_CONSEQUENCE = {
    "output": "elsewhere",
    "ledger": "elsewhere",
    "share": (1, 2),
    "overwrite": True,
    "resume": True,
    "retry_failed": True,
    "max_failures": 3,
    "workers": Workers(jobs="3"),
}
OPTIONS_OF_NO_CONSEQUENCE = {"workspace_limit_bytes", "threads", "block"}
"""They change how long it takes and how much memory, and no bit of the output."""


def test_every_setting_of_a_batch_decides_what_an_output_holds_or_is_known_not_to(tmp_path: Path) -> None:
    in_the_row = {"method", "device"}
    known = {*OTHER_SETTINGS, *OF_NO_CONSEQUENCE, *in_the_row, "request", "options", "rules"}
    assert {field.name for field in fields(Settings)} == known
    assert {field.name for field in fields(Request)} == set(OTHER_RULES)
    base = settings_for(tmp_path, request=make_request())
    others = [replace(base, **{name: value}) for name, value in OTHER_SETTINGS.items()]
    others += [replace(base, request=make_request(**{name: each})) for name, each in OTHER_RULES.items()]
    by_option = {name: replace(base, options=Options(**{name: value})) for name, value in OTHER_OPTIONS.items()}
    others += [settings for name, settings in by_option.items() if name not in OPTIONS_OF_NO_CONSEQUENCE]
    others.append(replace(base, rules=ReadRules(rgb=True)))
    hashes = [settings.parameters_sha256() for settings in (base, *others)]
    assert len(set(hashes)) == len(hashes)
    same = [by_option[name] for name in OPTIONS_OF_NO_CONSEQUENCE]
    same += [replace(base, **{name: value}) for name, value in OF_NO_CONSEQUENCE.items()]
    same += [replace(base, method="opencv"), replace(base, device="cuda"), replace(base, rules=ReadRules(1, 1, True))]
    assert {settings.parameters_sha256() for settings in same} == {hashes[0]}


SHOWN = Parameters(device="cpu", method="im2col", filter="sobel", output_mode="raw")
OTHER_SHOWN: dict[str, Any] = (
    OTHER_RULES
    | OTHER_OPTIONS
    | {
        "kernel": "1,2,3;4,5,6;7,8,9",
        "threshold": 300.0,
        "chain": "gaussian,sobel",
        "thresholds": "900,1000",
        "gradient": "l2",
        "blur": 3,
        "method": "opencv",
        "device": "cuda",
        "threads": 1,
        "workspace_limit": "1",
    }
)


def layer_of(service: Any, path: Path, parameters: Parameters) -> Any:
    """The pixels of the output and how they were made, or the line that says why there are none."""
    service._rested = lambda generation: False  # nothing is measured
    request = ViewRequest(1, str(path), parameters, "single", INPUT, OUTPUT)
    answers: list[Any] = []
    hear = [service.layer_ready.connect(lambda _, side, layer: answers.append(layer))]
    hear.append(service.failed.connect(lambda _, message, unreadable: answers.append(message)))
    service.cancel(1, request)
    service.serve(request)
    for ear in hear:
        service.disconnect(ear)
    (found,) = answers
    if isinstance(found, str):
        return found
    options = service._output(request, OUTPUT).filtered.plan.options
    return found.pixels.tobytes(), found.pixels.dtype.name, found.label, options


@pytest.mark.parametrize("name", [field.name for field in fields(Parameters)])
def test_the_window_shows_what_was_asked_last(tmp_path: Path, name: str) -> None:
    render = pytest.importorskip("edgeconv.view.render", reason="PySide6 is not installed")
    path = tmp_path / "in.png"
    edgeconv.write_image(PICTURE, path)
    base = SHOWN
    if name == "luma":
        base = replace(SHOWN, channels="luma")
    if name == "kernel":
        base = replace(SHOWN, filter=Parameters().filter)
    if name in ("thresholds", "gradient", "blur"):
        base = Parameters(filter="canny", device="cpu")
    if name == "chain":
        base = replace(SHOWN.with_filter(Parameters().filter), device="cpu")
    if name == "kernel_file":
        kernel = tmp_path / "kernel.json"
        kernel.write_text("[[0, 1, 0], [1, -4, 1], [0, 1, 1]]", encoding="ascii")
        base = replace(SHOWN, filter=Parameters().filter)
        changed = replace(base, kernel_file=str(kernel))
    else:
        changed = replace(base, **{name: OTHER_SHOWN[name]})
    fresh = [layer_of(render.RenderService(), path, parameters) for parameters in (base, changed)]
    assert fresh[0] != fresh[1]
    service = render.RenderService()
    assert [layer_of(service, path, each) for each in (base, changed, base, changed)] == [*fresh, *fresh]
