"""`edgeconv compare`: every method that works here, against the reference."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from command import edgeconv
from jsonschema import Draft202012Validator
from problems import random_image

from edgeconv.api.prepared import PreparedFilter
from edgeconv.core.filters import filter_bank
from edgeconv.core.request import make_request
from edgeconv.difference import methods, results
from edgeconv.difference.figures import Allowance
from edgeconv.errors import EXIT_DIFFERENT, UnavailableError, UsageError
from edgeconv.export.schemas import schema
from edgeconv.io.encoding import write_image
from edgeconv.methods import METHODS, all_methods, applicable, find, refuse_inapplicable
from edgeconv.methods.entry import MethodEntry
from edgeconv.methods.options import Options

RUNNABLE = [(entry.name, entry.device) for entry in all_methods() if entry.unavailable_reason() is None]


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    write_image(random_image(40, 50, "uint8"), tmp_path / "in.png")
    return tmp_path / "in.png"


def test_every_method_that_works_here_is_compared_and_the_others_named(picture: Path) -> None:
    words = ("--stride", 2, "--html", "c.html", "--junit", "c.xml", "--json")
    done = edgeconv("compare", "in.png", *words, cwd=picture.parent)
    assert done.code == 0, done.err
    record = json.loads(done.text)
    assert sorted((entry["name"], entry["device"]) for entry in record["methods"]) == sorted(RUNNABLE)
    assert record["methods"][0]["name"] == "reference"
    Draft202012Validator(schema("diff")).validate(record)
    assert len(record["comparisons"]) == len(RUNNABLE) - 1
    assert all(" did not run: " in line for line in record["left_out"])
    assert bool(record["left_out"]) == (len(record["methods"]) < len(METHODS))
    assert all(entry["kernel"]["median_seconds"] > 0 for entry in record["methods"])
    assert record["allowed"]["atol"] == 0  # whole numbers and whole weights: every method is exact
    assert '"canIgnore": false' in (picture.parent / "c.html").read_text(encoding="utf-8")


def test_a_float_picture_that_holds_no_number_somewhere_is_judged_by_the_rest(tmp_path: Path) -> None:
    pixels = random_image(40, 50, "float32")
    plain = np.abs(pixels).max()
    pixels[20, 25, 1], pixels[3, 4, 0] = np.nan, np.inf
    write_image(pixels, tmp_path / "in.npy")
    done = edgeconv("compare", "in.npy", "-f", "laplacian8", "--json", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert 0 < json.loads(done.text)["allowed"]["atol"] < 1e-3 * plain


def replace_outputs(monkeypatch: pytest.MonkeyPatch, change: Callable[[str, np.ndarray], None]) -> None:
    """Let `change` do something to what each method gives; OpenCV and the reference are the methods here."""
    right = PreparedFilter.run

    def wrong(self: PreparedFilter, image_hwc: np.ndarray) -> np.ndarray:
        out: np.ndarray = right(self, image_hwc)
        change(self.choice.method, out)
        return out

    monkeypatch.setattr(PreparedFilter, "run", wrong)
    monkeypatch.setattr(methods, "all_methods", lambda: [find("opencv", "cpu"), find("reference", "cpu")])


@pytest.mark.parametrize(
    ("filters", "row", "channel"), [(None, 20, 1), (["sobel-x", "sobel-y", "laplacian8"], 100, 2)], ids=["one", "bank"]
)
def test_a_method_that_errs_in_one_sample_is_found(
    picture: Path, monkeypatch: pytest.MonkeyPatch, filters: list[str] | None, row: int, channel: int
) -> None:
    """Of a bank in the last filter, which stands below the others."""

    def err(method: str, out: np.ndarray) -> None:
        if method == "opencv":
            out[20, 30, channel] ^= 8

    replace_outputs(monkeypatch, err)
    request = make_request() if filters is None else make_request(filter_bank(filters))
    done = methods.run(str(picture), request, Options(), results.Wanted())
    assert done.exit_code == 1
    (found,) = done.record.comparisons
    assert (found.worst.x, found.worst.y) == (30, row)
    assert filters or found.worst.channel == "G"
    said = " ".join(row.text for paragraph in done.shown for row in paragraph)
    assert "WRONG, 1 beyond their error bounds" in said
    assert "opencv on CPU: no time, as its output is wrong" in said
    assert done.record.methods[1].kernel is None


def test_every_method_has_a_time_and_what_was_checked_is_said_once(tmp_path: Path) -> None:
    """The check takes a part of so large a picture."""
    write_image(random_image(350, 400, "float32"), tmp_path / "in.npy")
    done = edgeconv("compare", "in.npy", "--filter", "laplacian8", cwd=tmp_path)
    assert done.code == 0, done.err
    lines = done.text.splitlines()
    for name, device in RUNNABLE:
        (time,) = (line for line in lines if line.startswith(f"{name} on {device.upper()}: "))
        assert re.fullmatch(r".*: [\d,.]+ (s|ms|µs), median of \d+ runs?", time)
    notes = [line for line in lines if line.startswith("note")]
    assert len(notes) == len(RUNNABLE) - 1
    part = re.compile(r"right, largest relative error \S+ in \d{3},\d{3} of 420,000 samples, each within its own bound")
    assert all(part.search(note) for note in notes), notes


@pytest.mark.parametrize("wrong_method", ["opencv", "reference", "both"])
def test_a_method_that_is_wrong_by_the_oracle_ends_with_1_whatever_is_allowed(
    picture: Path, monkeypatch: pytest.MonkeyPatch, wrong_method: str
) -> None:
    """Outputs that agree may all be wrong: the oracle's word counts beside what was asked of the comparison."""

    def flip(method: str, out: np.ndarray) -> None:
        if wrong_method in (method, "both"):
            out[20, 30, 1] ^= 64

    replace_outputs(monkeypatch, flip)
    wanted = results.Wanted(allowance=Allowance(atol=255))
    done = methods.run(str(picture), make_request(), Options(), wanted, by_rule=False)
    assert [each.same for each in done.record.comparisons] == [True]
    judged = {entry.name: entry.check.passed for entry in done.record.methods}
    assert judged == {name: wrong_method not in (name, "both") for name in ("reference", "opencv")}
    assert done.exit_code == EXIT_DIFFERENT


def test_methods_that_did_not_run_are_gathered_by_their_reason(picture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = (("opencv", "cpu"), ("sliding", "cuda"), ("cudnn", "cuda"), ("im2col", "cuda"), ("reference", "cpu"))
    here = [find(name, device) for name, device in names]
    why = {"sliding": "no GPU", "cudnn": "no cuDNN", "im2col": "no GPU"}
    monkeypatch.setattr(MethodEntry, "unavailable_reason", lambda entry: why.get(entry.name))
    monkeypatch.setattr(methods, "all_methods", lambda: here)
    done = methods.run(str(picture), make_request(), Options(), results.Wanted())
    assert done.record.left_out == [
        "sliding and im2col on CUDA did not run: no GPU",
        "cudnn on CUDA did not run: no cuDNN",
    ]


def test_a_method_that_does_not_do_this_problem_is_left_out_with_its_reason(
    picture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Grey, double precision, banks: not every method does everything, and the others are compared all the same."""
    opencv = type(find("opencv", "cpu").load())
    monkeypatch.setattr(opencv, "reason", lambda self, problem, options: "it takes no such pictures")
    here = [find(name, "cpu") for name in ("opencv", "sliding", "reference")]
    monkeypatch.setattr(methods, "all_methods", lambda: here)
    done = methods.run(str(picture), make_request(), Options(), results.Wanted())
    assert [entry.name for entry in done.record.methods] == ["reference", "sliding"]
    assert any("opencv on CPU did not run" in line and "no such pictures" in line for line in done.record.left_out)
    monkeypatch.setattr(methods, "all_methods", lambda: [here[0], here[2]])
    with pytest.raises(UsageError, match=r"No method but the reference runs this here.*no such pictures"):
        methods.run(str(picture), make_request(), Options(), results.Wanted())


def test_an_option_goes_to_the_methods_that_it_concerns_and_is_refused_where_none_does(
    picture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(methods, "all_methods", lambda: [find("opencv", "cpu"), find("reference", "cpu")])
    for options, words in ((Options(math="tf32"), "--math tf32"), (Options(gemm="cublas"), "--gemm cublas")):
        with pytest.raises(UnavailableError, match=words):
            methods.run(str(picture), make_request(), options, results.Wanted())
    for asked, what in ((("opencv",), "method 'opencv' on cpu"), (("opencv", "sliding"), "any method that runs here")):
        with pytest.raises(UnavailableError, match=f"^--gemm cublas does not apply to {what}: it is for im2col"):
            refuse_inapplicable(tuple(find(name, "cpu") for name in asked), Options(gemm="cublas"))
    refuse_inapplicable((find("opencv", "cpu"), find("im2col", "cuda")), Options(gemm="cublas"))
    assert applicable(find("opencv", "cpu"), Options(gemm="cublas", threads=2)) == Options(threads=2)
    assert applicable(find("im2col", "cuda"), Options(gemm="cublas", block=8)) == Options(gemm="cublas")


@pytest.mark.parametrize(("combine", "least"), [("none", 0.0), ("magnitude", 1e-9)])
def test_an_exact_sum_is_rounded_alike_everywhere_and_its_root_need_not_be(combine: str, least: float) -> None:
    problem = SimpleNamespace(combine=combine)
    check = SimpleNamespace(exact=True, bound_by_channel=[0.0])
    raw = np.full((2, 2, 1), 0.1, np.float32)
    bound = methods.largest_error(raw, raw, check, problem)  # type: ignore[arg-type]
    assert bound == 0.0 if least == 0.0 else bound > least


@pytest.mark.parametrize(
    ("dtype", "bounds", "allowed"),
    [
        ("uint8", (0.0, 0.0), 0.0),
        ("uint8", (0.0, 1e-4), 1.0),  # in levels: one may round up where the other rounds down
        ("uint8", (0.0, 1.0), 2.0),  # 0.5 and 1.5 are stored as 0 and 2
        ("uint16", (0.25, 2.5, 1.0), 3.0),
        ("float32", (0.0, 0.0), 0.0),
        ("float32", (1e-6, 4e-6), 5e-6),  # both may err, in opposite ways
        ("float32", (4e-6, 1e-6, 2e-6), 6e-6),  # the first is what the others are compared with
    ],
)
def test_what_two_right_outputs_may_differ_by(dtype: str, bounds: tuple[float, ...], allowed: float) -> None:
    output = np.zeros((1, 1, 3), dtype)
    ran = [methods.MethodRun(None, output, bound) for bound in bounds]  # type: ignore[arg-type]
    assert methods.agreement(ran) == pytest.approx(allowed, rel=1e-12)
