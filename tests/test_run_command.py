"""`edgeconv run` as a stranger would use it: what appears on disk and on the screen, and what never does."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from threading import Event

import numpy as np
import pytest
from command import edgeconv
from jsonschema import Draft202012Validator
from meet import held, run_program
from problems import random_image

import edgeconv as package
from edgeconv.core.filters import named_filter, weight_set
from edgeconv.core.problem import make_problem
from edgeconv.export.schemas import schema
from edgeconv.io.encoding import write_image
from edgeconv.io.reading import read_image
from edgeconv.methods.options import Options
from edgeconv.methods.reference import Reference
from edgeconv.run import picture, report

HEIGHT, WIDTH = 37, 53


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an 8-bit, a 16-bit and a float picture."""
    for dtype, name in (("uint8", "photo.png"), ("uint16", "deep.png"), ("float32", "field.npy")):
        write_image(random_image(HEIGHT, WIDTH, dtype), tmp_path / name)
    return tmp_path


def oracle(pixels: np.ndarray, **rules: object) -> np.ndarray:
    weights = weight_set(named_filter("sobel"), "each")
    problem = make_problem(pixels.shape, pixels.dtype, weights, border="reflect101", **rules)
    out = np.empty(problem.output_shape, problem.output_dtype)
    Reference().prepare(problem, Options()).run(pixels, out)
    return out


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_picture_and_its_report_appear_under_the_promised_names(folder: Path) -> None:
    done = edgeconv("run", "photo.png", "--method", "reference", "--stride", 2, "--filter", "sobel", "-v", cwd=folder)
    assert (done.code, done.err) == (0, "")
    assert names(folder) >= {"photo_sobel_reference_s2.png", "photo_sobel_reference_s2.json"}
    expected = oracle(read_image(folder / "photo.png").pixels, stride=2, output_mode="abs")
    assert np.array_equal(read_image(folder / "photo_sobel_reference_s2.png").pixels, expected)
    for word in ("27×19×3 uint8", "GFLOPS", "GB/s", "phases", "right", "roofline"):
        assert word in done.text, word


def test_the_report_fits_its_schema_and_tells_the_truth(folder: Path) -> None:
    done = edgeconv("run", "photo.png", "--method", "opencv", "--json", "--check", "full", cwd=folder)
    record = json.loads((folder / "photo_sobel_opencv_s1.json").read_text(encoding="utf-8"))
    assert json.loads(done.text) == record
    Draft202012Validator(schema("run"), format_checker=Draft202012Validator.FORMAT_CHECKER).validate(record)
    assert record["input"]["sha256"] == report.sha256_of(read_image(folder / "photo.png").pixels)
    assert record["output"]["sha256"] == report.sha256_of(read_image(folder / record["output"]["file"]).pixels)
    assert record["counts"]["nominal_flops"] == 2 * 2 * 9 * 3 * HEIGHT * WIDTH
    assert record["counts"]["fewest_bytes"] == 2 * 3 * HEIGHT * WIDTH
    assert record["check"]["checked_share"] == 1.0
    assert record["whole_run_seconds"] == pytest.approx(sum(record["phases_seconds"].values()))
    kernel = record["timing"]["kernel"]
    assert kernel["n"] == len(kernel["samples_seconds"])
    gflops = record["counts"]["nominal_flops"] / kernel["median_seconds"] / 1e9
    assert record["speed"]["kernel_gflops"] == pytest.approx(gflops)
    assert (record["method"]["asked_for"], record["method"]["name"]) == ("opencv", "opencv")
    del record["phases_seconds"]["convolve"]
    assert not Draft202012Validator(schema("run")).is_valid(record)


def test_a_plan_is_made_while_its_picture_is_decoded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, (prepare, decode) = Event(), (picture.prepare_filter, picture.decode_image)
    monkeypatch.setattr(picture, "prepare_filter", lambda *words: begun.set() or prepare(*words))
    monkeypatch.setattr(picture, "decode_image", lambda *words, **more: begun.wait(60) and decode(*words, **more))
    assert edgeconv("run", "photo.png", cwd=folder).code == 0


def test_the_start_is_processor_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that waited before, as in `sleep 3; exec edgeconv`, did not take long to start."""
    monkeypatch.setattr("edgeconv.cli.run.thread_time", lambda: 7.5)
    record = json.loads(edgeconv("run", "photo.png", "--json", cwd=folder).text)
    assert record["phases_seconds"]["start"] == 7.5
    assert record["wall_seconds"] > record["whole_run_seconds"] > 7.5


def test_standard_input_to_standard_output(folder: Path) -> None:
    done = edgeconv(
        "run", "-", "--method", "reference", "-o", "-", cwd=folder, stdin=(folder / "photo.png").read_bytes()
    )
    assert done.code == 0
    assert "GFLOPS" in done.err
    (folder / "piped.png").write_bytes(done.out)
    expected = oracle(read_image(folder / "photo.png").pixels, output_mode="abs")
    assert np.array_equal(read_image(folder / "piped.png").pixels, expected)


def test_a_run_that_is_stopped_while_it_measures_leaves_nothing(folder: Path) -> None:
    before = names(folder)
    with held("edgeconv.api.measure:time_kernel", ["run", "photo.png"], cwd=folder) as child:
        child.arrived()
        child.process.send_signal(signal.SIGINT)
        assert child.process.wait() == 130
        assert child.errors() == "edgeconv: error: stopped by SIGINT.\n"
    assert names(folder) == before


def test_normalize_says_what_time_and_check_leave_out(folder: Path) -> None:
    words = ("run", "photo.png", "-m", "opencv", "--output-mode", "normalize")
    assert "before normalize" in edgeconv(*words, cwd=folder).text
    record = json.loads((folder / "photo_sobel_normalize_opencv_s1.json").read_text(encoding="utf-8"))
    assert record["timing"]["leaves_out"] == "normalize"


def test_a_picture_smaller_than_the_filter_names_the_way_out(folder: Path) -> None:
    write_image(random_image(1, 1, "uint8"), folder / "dot.png")
    refused = edgeconv("run", "dot.png", "--padding", "valid", cwd=folder)
    assert (refused.code, len(refused.error_lines)) == (2, 1)
    assert "--padding same" in refused.err
    assert edgeconv("run", "dot.png", cwd=folder).code == 0


def test_the_version_is_the_packages() -> None:
    assert edgeconv("--version").text.strip() == f"edgeconv {package.__version__}"


def test_what_should_not_happen_is_one_line_with_a_way_to_see_more(folder: Path) -> None:
    code = "import sys, edgeconv.run.picture as at; at.run_picture = None; from edgeconv.cli import main; main()"
    done = run_program(code, "run", "photo.png", cwd=folder)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "EDGECONV_DEBUG" in done.stderr
    assert "Traceback" in run_program(code, "run", "photo.png", cwd=folder, EDGECONV_DEBUG="1").stderr


def test_filters_lists_every_filter() -> None:
    listing = edgeconv("filters").text
    for name in ("sobel (default)", "kirsch", "scharr-y", "emboss"):
        assert name in listing


def test_a_kernel_of_ones_own(folder: Path) -> None:
    (folder / "k.csv").write_text("0,1,0\n1,-4,1\n0,1,0\n")
    inline = edgeconv("run", "photo.png", "--kernel", "0,1,0;1,-4,1;0,1,0", "-o", "a.png", cwd=folder)
    filed = edgeconv("run", "photo.png", "--kernel-file", "k.csv", "-o", "b.png", cwd=folder)
    named = edgeconv("run", "photo.png", "--filter", "laplacian4", "-o", "c.png", cwd=folder)
    assert [inline.code, filed.code, named.code] == [0, 0, 0]
    assert (folder / "a.png").read_bytes() == (folder / "b.png").read_bytes() == (folder / "c.png").read_bytes()
