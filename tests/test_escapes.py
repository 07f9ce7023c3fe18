"""A name of a file is shown and never obeyed: by no terminal, no log, no spreadsheet and no page."""

from __future__ import annotations

import csv
import io
import json
import logging
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from bench_records import TimedMethod, measured_once
from command import edgeconv
from hypothesis import given
from hypothesis import strategies as st
from meet import run_program
from problems import random_image

from edgeconv.core.records import to_json
from edgeconv.core.text import cell, visible, visible_lines
from edgeconv.export.rows import export as export_csv
from edgeconv.io.encoding import write_image

OBEYED = {*map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), *"\u200e\u200f\u2028\u2029\u061c"}
OBEYED |= {*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))}

HOSTILE = "=cmd\x1b]0;title\x07\x9b31m\u202egnp\r\nFORGED line\x7f \"' taken=\"'><taken>"
"""A name that would begin a formula, set a window's title, turn red, turn round, begin a line of its own, and become an
attribute or a tag of a page."""


@given(st.text())
def test_what_is_visible_is_one_line_that_nothing_obeys(text: str) -> None:
    shown = visible(text)
    assert not OBEYED & set(shown)
    shown.encode()  # no lone surrogate either
    assert visible(shown) == shown
    if "\\" not in text:
        assert json.loads(json.dumps(shown).replace("\\\\u", "\\u")) == text
    assert not (OBEYED - {"\n"}) & set(visible_lines(text))
    assert visible_lines(text).count("\n") == text.count("\n")


@pytest.mark.parametrize("before", ["", " ", "  ", "\xa0", "\u2003 "])
@pytest.mark.parametrize("first", "=+-@＝＋－＠")
def test_a_cell_is_no_formula_behind_any_space(first: str, before: str) -> None:
    assert cell(f"{before}{first}1+1") == f"'{before}{first}1+1"
    assert cell(f"{before}a{first}1") == f"{before}a{first}1"


def test_a_spreadsheet_of_a_record_computes_nothing() -> None:
    made = measured_once(TimedMethod("opencv", [1e-3], "opencv"))
    for row in made.rows:
        row.case.filter = HOSTILE
    text = export_csv([made])[".csv"].decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["filter"] for row in rows} == {"'" + visible(HOSTILE)}
    numbers = [row["median_seconds"] for row in rows]
    assert all(float(number) > 0 for number in numbers if number)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: hostile names of pictures, folders, a kernel file, a record."""
    monkeypatch.chdir(tmp_path)
    for place, seed in (("photos", 1), ("new", 2), (f"{HOSTILE}.d", 1), (".", 1)):
        Path(place).mkdir(exist_ok=True)
        write_image(random_image(20, 30, "uint8", seed), Path(place, f"{HOSTILE}.png"))
    write_image(random_image(20, 30, "uint8", 3), "plain.png")
    Path("photos", f"{HOSTILE}2.png").write_bytes(b"no picture")
    Path("photos", f"{HOSTILE}.{HOSTILE}").touch()
    Path(f"{HOSTILE}.json").write_text("[[0, 1, 0], [1, -4, 1], [0, 1, 0]]", encoding="ascii")
    made = measured_once(TimedMethod("opencv", [1e-3], "opencv"))
    for row in made.rows:
        row.case.filter = HOSTILE
        row.reason = HOSTILE
    made.warnings.append(HOSTILE)
    Path("bench.json").write_bytes(to_json(made))
    return tmp_path


QUICK = ("-m", "opencv", "--samples", "1", "--time-limit", "0.01", "--check", "none")
COMMANDS = {
    "run": [("run", f"{HOSTILE}.png", *QUICK, "-o", "out/"), ("run", "plain.png", *QUICK, "-o", f"{HOSTILE}.out/")],
    "run, as JSON": [("run", f"{HOSTILE}.png", *QUICK, "-o", "out/", "--json")],
    "run, its kernel": [("run", "plain.png", *QUICK, "--kernel-file", f"{HOSTILE}.json", "-o", "out/")],
    "run, refused": [("run", f"{HOSTILE}.gif"), ("run", "plain.png", "--method", HOSTILE), (HOSTILE,)],
    "run, by tiles": [("run", f"{HOSTILE}.png", "--tile", 16, "-m", "opencv", "-o", f"{HOSTILE}.tiff")],
    "batch": [
        ("batch", "photos", "-m", "opencv", "-o", f"{HOSTILE}.edges"),
        ("batch", "photos", "-m", "opencv", "-o", f"{HOSTILE}.edges", "--json", "--resume"),
        ("batch", f"{HOSTILE}.missing", "-o", "out"),
        ("verify", f"{HOSTILE}.edges"),
    ],
    "diff": [
        ("diff", f"{HOSTILE}.png", "plain.png", "--html", "a.html", "--junit", "a.xml", "--pictures", f"{HOSTILE}.p"),
        ("diff", f"{HOSTILE}.png", "plain.png", f"new/{HOSTILE}.png", "--json"),
    ],
    "diff of folders": [
        ("diff", "photos", "new", "--html", "b.html", "--junit", "b.xml"),
        ("diff", "photos", "new", "--json"),
        ("diff", f"{HOSTILE}.d", "new", "--update"),
    ],
    "compare": [("compare", f"{HOSTILE}.png", "--html", "c.html", "--junit", "c.xml")],
    "resize": [("resize", f"{HOSTILE}.png", "--sizes", "8", "-o", f"{HOSTILE}.small")],
    "report": [
        ("report", "bench.json"),
        ("report", "bench.json", "--markdown", "e.md", "--csv", "e.csv", "--html", "e.html"),
        ("report", f"{HOSTILE}.json"),
    ],
    "view": [("view", "-")],
}


def text_files(folder: Path) -> dict[str, str]:
    """What was written that a person may look at in a terminal."""
    endings = {".json", ".jsonl", ".html", ".xml", ".md", ".csv", ".svg"}
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix in endings)
    return {str(path): path.read_bytes().decode() for path in files}


class Names(HTMLParser):
    """The names of a page's tags and attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found |= {tag, *(name for name, _ in attributes)}


@pytest.mark.parametrize("what", COMMANDS)
def test_no_output_of_any_command_holds_what_would_be_obeyed(folder: Path, what: str) -> None:
    said = []
    for words in COMMANDS[what]:
        done = edgeconv(*words)
        assert "should not have happened" not in done.err
        said += [done.text, done.err]
    shown = {f"printed {number}": text for number, text in enumerate(said)} | text_files(folder)
    assert what == "view" or any(visible("cmd\x1b]0;title") in text for text in shown.values())
    for place, text in shown.items():
        allowed = {"\n", "\r"} if place.endswith(".csv") else {"\n"}
        assert not OBEYED & set(text) - allowed, visible(place)
        assert not [line for line in text.splitlines() if line.strip().startswith("FORGED")], visible(place)
        if place.endswith(".xml"):
            ElementTree.fromstring(text)
        if place.endswith(".html"):
            names = Names(text).found
            assert "html" in names
            assert "taken" not in names
            assert "<taken" not in text, "in a script neither"
        if place.endswith(".json"):
            json.loads(text)


def test_what_libraries_log_or_warn_of_is_made_visible_too() -> None:
    code = (
        "import logging, warnings, edgeconv.api.doctor\n"
        f"name = {HOSTILE!r}\n"
        "def text():\n"
        "    logging.getLogger('tifffile').warning('<%s> is odd', name)\n"
        "    warnings.warn(name)\n"
        "    return name\n"
        "edgeconv.api.doctor.text = text\n"
        "import sys; sys.argv[1:] = ['doctor']\n"
        "from edgeconv.cli import main; main()"
    )
    done = run_program(code, PYTHONUTF8="1")
    assert done.returncode == 0, done.stderr
    for text in (done.stdout, done.stderr):
        assert visible("cmd\x1b]0;") in text
        assert not (OBEYED - {"\n"}) & set(text)
    assert logging.lastResort is not None
