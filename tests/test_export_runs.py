"""`edgeconv report` of runs and ladders: what tables, spreadsheet, drawings and page hold, alone and beside a bench."""

from __future__ import annotations

import copy
import csv
import io
import json
import lzma
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from command import edgeconv
from problems import random_image
from run_reports import run_report

from edgeconv.core.records import to_json
from edgeconv.errors import ImageReadError, UsageError
from edgeconv.export import find_exporter
from edgeconv.export.rows import labels
from edgeconv.export.schemas import read
from edgeconv.io.encoding import write_image
from edgeconv.run.report import RunReport


@pytest.fixture
def report() -> RunReport:
    return run_report("h200", "cuda_cudnn_s1")


def text_of(made: list[RunReport], name: str) -> str:
    (content,) = find_exporter(name)(made).values()
    return content.decode()


def test_labels_say_what_differs_and_are_never_twice_the_same(report) -> None:
    one = report
    assert labels([one]) == ["cuda cudnn"]
    assert labels([one, one]) == ["cuda cudnn #1", "cuda cudnn #2"]
    other = copy.deepcopy(one)
    other.problem.stride = 3
    other.method.options = replace(other.method.options, math="tf32")
    assert labels([one, other]) == ["cuda cudnn stride 1", "cuda cudnn stride 3 math tf32"]
    edges = copy.deepcopy(one)
    edges.problem.filter.name = "sobel"
    elsewhere, beside = copy.deepcopy(one), copy.deepcopy(one)
    elsewhere.device.name = "another GPU"
    assert labels([one, elsewhere]) == [f"cuda cudnn machine {report.device.name}" for report in (one, elsewhere)]
    beside.device.kind, beside.device.name = "cpu", "its host"
    assert labels([one, beside]) == ["cuda cudnn", "cpu cudnn"]
    assert labels([one, edges]) == ["cuda cudnn filter laplacian8", "cuda cudnn filter sobel"]


def test_a_mask_is_told_from_the_output_that_it_is_made_of(report) -> None:
    whole = report
    mask = copy.deepcopy(whole)
    mask.problem.threshold, mask.phases_seconds["threshold"] = 40.0, 0.125
    assert labels([whole, mask]) == ["cuda cudnn", "cuda cudnn threshold 40.0"]
    page = text_of([whole, mask], "markdown")
    assert re.search(r"\| device to host \| threshold \| encode \|", page)
    assert re.search(r"\| cuda cudnn threshold 40.0 \| .* \| 125 ms \| ", page)
    lines = list(csv.DictReader(io.StringIO(text_of([whole, mask], "csv"))))
    assert [line["threshold"] for line in lines] == ["", "40.0"]


def test_a_picture_whose_name_is_no_text_gets_its_report_and_its_page(tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff\xfe.png")
    write_image(random_image(40, 30, "uint8"), tmp_path / name)
    done = edgeconv("run", name, "--method", "opencv", "--samples", 3, "-o", "e/", cwd=tmp_path)
    assert done.code == 0, done.err
    (made,) = (tmp_path / "e").glob("*.json")
    assert json.loads(made.read_bytes())["input"]["file"] == name
    again = edgeconv("run", name, "--method", "opencv", "--samples", 3, "-o", "e/", "--json", cwd=tmp_path)
    assert (again.code, json.loads(again.text)["input"]["file"]) == (0, name)
    shown = edgeconv("report", made, "--html", "r.html", "--csv", "r.csv", cwd=tmp_path)
    assert shown.code == 0, shown.err
    assert "Where the time went" in (tmp_path / "r.html").read_text(encoding="utf-8")
    none = edgeconv("report", made, "--plots", "p", cwd=tmp_path)
    assert (none.code, "These records have no plots" in none.err) == (2, True)
    assert edgeconv("report", made, cwd=tmp_path).text.startswith("# edgeconv run: ")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"kind": "diff"}', "is not a record of edgeconv bench, bench conv, bench gemm, ab or run"),
        ('{"kind": ["run"]}', "bench gemm, ab or run"),
        ("[]", "is not a record of edgeconv bench, bench conv, bench gemm, ab or run"),
        ('{"kind": "run", "schema_version": 99}', "schema version 99"),
        ("{", "is not JSON"),
    ],
)
def test_other_files_are_refused_with_their_name(tmp_path, content: str, words: str) -> None:
    path = tmp_path / "odd.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=r"odd\.json") as caught:
        read(path)
    assert words in str(caught.value)


def test_a_record_that_xz_packed_is_read_as_it_is(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("edgeconv.io.records.RECORD_BYTES", 2**20)
    made = to_json(run_report("h200", "cuda_sliding_s2"))
    path = tmp_path / "run.json.xz"
    path.write_bytes(lzma.compress(made))
    assert read(path) == run_report("h200", "cuda_sliding_s2")
    for damaged, says in (
        (lzma.compress(made)[:-40], "it is cut short"),
        (lzma.compress(made)[:40] + bytes(40) + lzma.compress(made)[80:], "xz cannot unpack it"),
        (lzma.compress(bytes(2**20 + 1)), "has more than 1,048,576 bytes"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(ImageReadError, match=says):
            read(path)
