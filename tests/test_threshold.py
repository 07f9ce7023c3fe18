"""Masks by a threshold: the rule against plain Python, and that every way to an output gives the same mask."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import edgeconv
from jsonschema import Draft202012Validator
from problems import random_image

import edgeconv as package
from edgeconv.batch import ledger
from edgeconv.core import output
from edgeconv.core.output import least_sample, mask, threshold_text
from edgeconv.core.request import make_request
from edgeconv.errors import UsageError
from edgeconv.export.schemas import schema
from edgeconv.io.encoding import write_image
from edgeconv.io.reading import read_image
from edgeconv.run import report_text
from edgeconv.run.report import as_report

DTYPES = ("uint8", "uint16", "float16", "float32", "float64")
WHITE = {"uint8": 255, "uint16": 65535, "float16": 1.0, "float32": 1.0, "float64": 1.0}
WHOLE = {"uint8": 40, "uint16": 9000, "float16": 0.5, "float32": 0.7, "float64": 0.7}
"""A threshold that some samples reach."""


def plain_mask(samples: np.ndarray, threshold: float) -> np.ndarray:
    """The rule in plain Python, sample by sample, with numbers of any size."""
    kind = samples.dtype
    limit = threshold if kind.kind == "u" else float(kind.type(threshold))
    reached = [not math.isnan(value) and abs(value) >= limit for value in map(float, samples.ravel())]
    return np.array([WHITE[kind.name] * each for each in reached], kind).reshape(samples.shape)


def exact_output(picture: np.ndarray, **rules: Any) -> np.ndarray:
    return package.convolve(picture, method="reference", device="cpu", **rules)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_rule_is_that_of_plain_python(dtype: str) -> None:
    samples = random_image(13, 17, dtype)
    limit = WHOLE[dtype]
    samples[0, :4, 0] = [limit, np.nextafter(limit, 9e9) if dtype[0] == "f" else limit + 1, limit, 0]
    samples.setflags(write=False)
    for threshold in (limit, limit - 0.25, limit + 0.25, float(np.abs(samples).max())):
        found = mask(samples, threshold)
        assert found.dtype == samples.dtype
        assert np.array_equal(found, plain_mask(samples, threshold)), threshold
        assert 0 < np.count_nonzero(found) < found.size


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_signs_infinities_and_what_is_no_number(dtype: str) -> None:
    samples = np.array([0.7, -0.7, 0.69, -0.69, np.inf, -np.inf, np.nan, -0.0], dtype).reshape(2, 4, 1)
    assert mask(samples, 0.7).ravel().tolist() == [1, 1, 0, 0, 1, 1, 0, 0], "0.7 reaches 0.7 in every type"


@pytest.mark.parametrize("samples_at_once", [1, 40, 42, 43, 84, 10_000])
def test_strips_make_no_difference(monkeypatch: pytest.MonkeyPatch, samples_at_once: int) -> None:
    picture = random_image(10, 14, "uint8")
    monkeypatch.setattr(output, "STRIP_SAMPLES", samples_at_once)
    assert np.array_equal(mask(picture, 99.5), np.where(picture >= 100, 255, 0))


@pytest.mark.parametrize("value", [0, -1, -0.0, np.nan, np.inf, -np.inf, True, "40", 10**400, [40]])
def test_what_is_no_threshold_is_refused_in_one_line(value: Any) -> None:
    with pytest.raises(UsageError, match=r"^Threshold .* is not a number above 0\.$"):
        make_request(threshold=value)


@pytest.mark.parametrize(
    ("dtype", "threshold", "words"),
    [
        ("uint8", 255.5, "Threshold 255.5 is above 255, the largest sample of a uint8 output: use less."),
        ("uint16", 70000, "Threshold 70000 is above 65535, the largest sample of a uint16 output: use less."),
        ("float16", 70000, "Threshold 70000 is above 65504, the largest sample of a float16 output: use less."),
        ("float32", 1e39, "Threshold 1e+39 is above 3.40282e+38, the largest sample of a float32 output: use less."),
        ("float16", 1e-9, "Threshold 1e-09 is 0 as float16, which every sample reaches: use more."),
    ],
)
def test_what_means_nothing_for_a_type_is_refused_in_one_line(dtype: str, threshold: float, words: str) -> None:
    with pytest.raises(UsageError) as refused:
        make_request(threshold=threshold).problem((5, 5, 3), dtype)
    assert str(refused.value) == words


def test_the_limits_of_each_type_are_thresholds() -> None:
    assert [least_sample(value, np.dtype(np.uint8)) for value in (1e-9, 1, 254.1, 255)] == [1, 1, 255, 255]
    assert least_sample(65504.0, np.dtype(np.float16)) == 65504
    make_request(threshold=300).problem((5, 5, 3), "uint16")
    make_request(threshold=300, output_mode="raw").problem((5, 5, 3), "uint8")  # whose output is float32


@pytest.mark.parametrize(("value", "text"), [(40.0, "40"), (0.15, "0.15"), (1e-7, "1e-07"), (1e20, "1e+20")])
def test_a_threshold_is_written_shortly(value: float, text: str) -> None:
    assert threshold_text(value) == text
    assert float(text) == value


# --- every way to an output ------------------------------------------------------------------------------------------

MODES = {"uint8": ("abs", "clip", "normalize", "raw"), "uint16": ("abs", "raw"), "float32": ("abs", "normalize", "raw")}


@pytest.mark.parametrize(("dtype", "mode"), [(dtype, mode) for dtype, modes in MODES.items() for mode in modes])
def test_each_mode_is_masked_after_it_was_stored(dtype: str, mode: str) -> None:
    picture = random_image(21, 34, dtype)
    rules = {"filter": "sobel-x", "channels": "each", "output_mode": mode}
    samples = exact_output(picture, **rules)
    limit = float(np.median(np.abs(samples)[samples != 0]))
    found = exact_output(picture, **rules, threshold=limit)
    assert (found.dtype, found.shape) == (samples.dtype, samples.shape)
    assert np.array_equal(found, plain_mask(samples, limit))


@pytest.mark.parametrize("shape", [(9, 11), (9, 11, 1), (9, 11, 3), (2, 9, 11, 3)])
def test_arrays_of_every_shape_through_plans(shape: tuple[int, ...]) -> None:
    picture = random_image(int(np.prod(shape[:-1])), shape[-1], "uint8", channels=1).reshape(shape)
    plan = package.plan(shape, "uint8", filter="sobel", method="sliding", device="cpu", threshold=80)
    samples = package.convolve(picture, "sobel", "sliding", device="cpu")
    assert np.array_equal(plan(picture), plain_mask(samples, 80))
    out = np.full(plan.output_shape, 7, plan.output_dtype)
    assert plan(picture[..., ::1], out=out) is out
    assert np.array_equal(out, plain_mask(samples, 80))
    assert "mask                     where |output| is at least 80\n" in plan.explain()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for dtype, name in (("uint8", "photo.png"), ("uint16", "deep.png"), ("float32", "field.npy")):
        write_image(random_image(37, 53, dtype), tmp_path / name)
    return tmp_path


@pytest.mark.parametrize(
    ("picture", "limit", "name"),
    [
        ("photo.png", "40", "photo_sobel_luma_t40_sliding_s1.png"),
        ("deep.png", "9000.5", "deep_sobel_luma_t9000.5_sliding_s1.png"),
        ("field.npy", "0.25", "field_sobel_luma_t0.25_sliding_s1.tiff"),
    ],
)
def test_run_writes_the_mask_and_says_so(folder: Path, picture: str, limit: str, name: str) -> None:
    words = ("run", picture, "-f", "sobel", "--channels", "luma", "-m", "sliding", "--device", "cpu")
    assert edgeconv(*words, "-o", "whole.npy", cwd=folder).code == 0
    done = edgeconv(*words, "--threshold", limit, "-v", cwd=folder)
    assert (done.code, done.err) == (0, "")
    samples = read_image(folder / "whole.npy").pixels
    found = read_image(folder / name).pixels
    assert np.array_equal(found, plain_mask(samples, float(limit)))
    assert found.shape == (37, 53, 1), "luma is one channel, and so is its mask"
    record = json.loads((folder / name).with_suffix(".json").read_text(encoding="utf-8"))
    Draft202012Validator(schema("run")).validate(record)
    assert record["problem"]["threshold"] == float(limit)
    assert record["timing"]["leaves_out"] == "threshold"
    phases = record["phases_seconds"]
    assert phases["threshold"] > 0
    assert record["whole_run_seconds"] == pytest.approx(sum(phases.values()))
    assert record["check"]["passed"]
    assert f"output {record['problem']['output_mode']}, threshold {limit}" in done.text
    assert "(before threshold)" in done.text
    (verdict,) = (row for row in report_text.summary(as_report(record)) if row.label == "right")
    assert verdict.text.endswith("(before threshold)")


def test_an_output_without_a_threshold_is_described_as_ever(folder: Path) -> None:
    """So that outputs of before there was one are still known."""
    assert edgeconv("run", "photo.png", "-m", "opencv", cwd=folder).code == 0
    record = json.loads((folder / "photo_sobel_opencv_s1.json").read_text(encoding="utf-8"))
    assert "threshold" not in record["problem"]
    assert "threshold" not in record["phases_seconds"]
    assert record["timing"]["leaves_out"] is None


def test_a_batch_with_another_threshold_is_other_work(folder: Path) -> None:
    common = ("batch", "photo.png", "deep.png", "-o", "out", "-m", "opencv", "--name", "{stem}{ext}", "--json")
    assert edgeconv(*common, "-t", 40, cwd=folder).code == 0
    again = edgeconv(*common, "-t", 40, "--resume", cwd=folder)
    assert json.loads(again.text)["skipped"] == 2
    other = json.loads(edgeconv(*common, "-t", 90, "--resume", "--overwrite", cwd=folder).text)
    assert (other["done"], other["skipped"]) == (2, 0)
    assert other["stage_seconds"]["threshold"] > 0
    rows = ledger.read(folder / "out").rows
    assert len({row.parameters_sha256 for row in rows}) == 2
    for name in ("photo.png", "deep.png"):
        samples = package.convolve(read_image(folder / name).pixels, method="opencv")
        assert np.array_equal(read_image(folder / "out" / name).pixels, plain_mask(samples, 90))


def test_a_batch_fails_the_picture_whose_type_a_threshold_is_beyond(folder: Path) -> None:
    done = edgeconv("batch", "photo.png", "deep.png", "-o", "out", "-t", 300, cwd=folder)
    assert done.code == 1
    assert "300 is above 255" in done.err
    assert [path.name for path in (folder / "out").glob("*.png")] == ["deep_sobel_t300_sliding_s1.png"]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float16", "float32"])
def test_masks_of_arrays_on_the_gpu(dtype: str) -> None:
    import cupy

    picture = random_image(65, 63, dtype)
    for mode in ("abs", "normalize", "raw"):
        samples = package.convolve(picture, "sobel", "sliding", device="cuda", output_mode=mode)
        limit = float(np.median(samples[samples > 0]))
        found = package.convolve(cupy.asarray(picture), "sobel", "sliding", output_mode=mode, threshold=limit)
        assert np.array_equal(cupy.asnumpy(found), plain_mask(samples, limit)), mode
