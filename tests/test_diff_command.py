"""`edgeconv diff` as a user runs it: exit codes, one line an error, nothing written on error."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from xml.etree import ElementTree

import cv2
import numpy as np
import pytest
from command import edgeconv
from jsonschema import Draft202012Validator
from problems import random_image

from edgeconv.cli import app
from edgeconv.core.text import visible
from edgeconv.errors import EdgeconvError
from edgeconv.export.schemas import schema
from edgeconv.io.encoding import write_image
from edgeconv.io.formats import tiff


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """a.png; b.png with three samples changed; the same as floats; a grey one; a larger one; a broken one."""
    a = np.full((6, 8, 3), 10, np.uint8)
    b = a.copy()
    b[0, 0, 0], b[3, 4, 1], b[3, 5, 2] = 11, 17, 8
    write_image(a, tmp_path / "a.png")
    write_image(b, tmp_path / "b.png")
    write_image(a.astype(np.float32), tmp_path / "a.tiff")
    write_image(b.astype(np.float32), tmp_path / "b.npy")
    double = a.astype(np.float64)
    double[0, 0] = 1e300  # beyond float32
    write_image(double, tmp_path / "double.tiff")
    write_image(np.nextafter(double, 11), tmp_path / "next.npy")
    write_image(a[..., 0], tmp_path / "grey.png")
    write_image(np.zeros((7, 8, 3), np.uint8), tmp_path / "taller.png")
    write_image((a.astype(np.uint16) * 257), tmp_path / "deep.png")
    (tmp_path / "broken.png").write_bytes((tmp_path / "a.png").read_bytes()[:-20])
    return tmp_path


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("a.png a.png", 0),
        ("a.png b.png", 1),
        ("a.png b.png --atol 7", 0),
        ("a.png a.png b.png", 1),
        ("a.tiff b.npy", 1),
        ("a.tiff b.npy --ulp 10000000", 0),
        ("a.png a.tiff --convert float32", 0),
        ("double.tiff next.npy --ulp 1", 0),
        ("a.tiff double.tiff", 3),
        ("a.tiff double.tiff --convert float32 --max-count 3", 0),
        ("a.png grey.png --rgb", 0),
        ("a.png deep.png --convert unit", 0),
        ("a.png grey.png", 3),
        ("a.png taller.png", 3),
        ("a.png missing.png", 2),
        ("a.png broken.png", 2),
        ("a.png", 2),
        ("a.png b.png --convert colour", 2),
        ("a.png b.png --ulp 1", 2),
        ("a.png b.png --update", 2),
        ("a.png b.png --max-pixels 47", 2),
        ("a.png b.png --max-pixels 48", 1),
        ("a.png b.png --junit nowhere/x.xml", 2),
        ("a.png b.png --junit a.png", 2),
    ],
)
def test_the_exit_code_says_how_it_went(folder: Path, words: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    try:
        ended = app(["diff", *words.split()], standalone_mode=False)
    except EdgeconvError as error:
        ended = error.exit_code
    assert ended == code
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_the_text_leads_with_exact_figures(folder: Path) -> None:
    text = edgeconv("diff", "a.png", "b.png", cwd=folder).text
    assert "differs: 3 of 144 samples (2.1 %) in 3 pixels, by at most 7" in text
    assert "7 in G at x 4, y 3: reference 10 10 10, other 10 17 10" in text
    assert (
        "ULP           largest distance 6,815,744" in edgeconv("diff", "a.tiff", "b.npy", "--ulp", 1, cwd=folder).text
    )
    line = edgeconv("diff", "a.png", "grey.png", cwd=folder).err
    assert "grey.png is 8×6×1 uint8, a.png is 8×6×3 uint8" in line
    assert "pass --rgb." in line


def test_json_and_junit_hold_the_same_figures_and_an_odd_name_stands_in_every_output(folder: Path) -> None:
    name = os.fsdecode(b"\x01\xff\xfe.png")
    (folder / name).write_bytes((folder / "b.png").read_bytes())
    words = ("--json", "--junit", "out.xml", "--html", "page.html", "--pictures", "p")
    done = edgeconv("diff", "a.png", "a.png", name, *words, cwd=folder)
    assert done.code == 1, done.err
    record = json.loads(done.text)
    Draft202012Validator(schema("diff")).validate(record)
    assert [entry["judged"]["differing_samples"] for entry in record["comparisons"]] == [0, 3]
    assert record["comparisons"][1]["file"] == name
    suite = ElementTree.parse(folder / "out.xml").getroot()
    assert suite.attrib == {"tests": "2", "failures": "1", "errors": "0"}
    cases = list(suite.iter("testcase"))
    assert [case.find("failure") is not None for case in cases] == [False, True]
    assert cases[1].attrib["name"] == visible(name)
    (folder / "page.html").read_text(encoding="utf-8")


def test_standard_input_can_be_one_of_the_pictures(folder: Path) -> None:
    done = edgeconv("diff", "a.png", "-", cwd=folder, stdin=(folder / "b.png").read_bytes())
    assert done.code == 1
    assert "3 of 144" in done.text


def test_ssim_stands_beside_the_exact_figures(folder: Path) -> None:
    """Or is refused with the package's name where the extra is not installed."""
    write_image(np.full((16, 16, 3), 90, np.uint8), folder / "c.png")
    write_image(np.full((16, 16, 3), 91, np.uint8), folder / "d.png")
    done = edgeconv("diff", "c.png", "d.png", "--ssim", cwd=folder)
    if done.code == 4:
        assert "pip install '.[diff]'" in done.err
        return
    assert done.code == 1
    assert "768 of 768" in done.text
    assert "SSIM" in done.text


def test_the_schema_is_one_and_records_of_floats_keep_to_it(folder: Path) -> None:
    """NaN and infinity have no place in JSON; figures that are infinite are null."""
    strange = np.load(folder / "b.npy")
    strange[0, 0], strange[5, 7] = np.nan, np.inf
    np.save(folder / "strange.npy", strange)
    Draft202012Validator.check_schema(schema("diff"))
    done = edgeconv("diff", "a.tiff", "strange.npy", "--json", cwd=folder)
    record = json.loads(done.text)
    Draft202012Validator(schema("diff")).validate(record)
    (found,) = record["comparisons"]
    assert found["judged"]["max_abs"] is None
    assert found["judged"]["unbounded_samples"] == 6
    assert found["worst"]["other"] == [None, None, None]


def pages_of(count: int, height: int = 6) -> list[np.ndarray]:
    return [np.full((height, 8), 10 * number, np.uint8) for number in range(count)]


def test_all_pages_of_a_bank_are_compared(tmp_path: Path) -> None:
    """A difference on the last page alone is one; rows are counted through all pages."""
    for name, pages in (("a", pages_of(3)), ("b", pages_of(3))):
        pages[2][4, 5] += name == "b"
        assert cv2.imwritemulti(str(tmp_path / f"{name}.tif"), pages)
    done = edgeconv("diff", "a.tif", "b.tif", "--json", cwd=tmp_path)
    found = json.loads(done.text)
    assert (done.code, found["same"]) == (1, False)
    assert found["reference"]["layout"] == "8×18×1 uint8"
    (comparison,) = found["comparisons"]
    assert comparison["notes"] == ["3 pages, one below the other"]
    assert (comparison["differing_pixels"], comparison["worst"]["y"]) == (1, 2 * 6 + 4)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / f"{name}.tif").rename(tmp_path / name / "bank.tif")
    assert edgeconv("diff", "a", "b", cwd=tmp_path).code == 1
    (limited,) = edgeconv("diff", "a/bank.tif", "b/bank.tif", "--max-pixels", 100, cwd=tmp_path).error_lines
    assert "100" in limited


@pytest.mark.parametrize("damage", ["loop", "beyond the end", "cut page"])
def test_damage_behind_the_first_page_is_one_line(damage: str, tmp_path: Path) -> None:
    assert cv2.imwritemulti(str(tmp_path / "a.tif"), pages_of(3))
    data = bytearray((tmp_path / "a.tif").read_bytes())
    _, second, third = (struct.unpack_from("<I", page, 4)[0] for page in tiff.pages(bytes(data)))
    entries = struct.unpack_from("<H", data, second)[0]
    following = second + 2 + 12 * entries
    assert struct.unpack_from("<I", data, following)[0] == third
    if damage == "loop":
        struct.pack_into("<I", data, following, second)
    elif damage == "beyond the end":
        struct.pack_into("<I", data, following, len(data) + 100)
    else:
        struct.pack_into("<H", data, third, 60000)
    (tmp_path / "b.tif").write_bytes(data)
    done = edgeconv("diff", "b.tif", "a.tif", cwd=tmp_path)
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert done.err.startswith("edgeconv: error: b.tif")


def test_quiet_says_by_the_exit_code_alone(tmp_path: Path) -> None:
    write_image(random_image(9, 8, "uint8"), tmp_path / "a.png")
    write_image(random_image(9, 8, "uint8", seed=1), tmp_path / "b.png")
    for other, code in (("a.png", 0), ("b.png", 1), ("none.png", 2)):
        done = edgeconv("diff", "-q", "a.png", other, cwd=tmp_path)
        assert (done.code, done.text) == (code, "")
        assert bool(done.err) == (code == 2)
