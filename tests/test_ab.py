"""`edgeconv bench ab`: the verdict on intervals by hand, what a side may be, and the command from end to end."""

from __future__ import annotations

import json
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import PROJECT, edgeconv

from edgeconv.bench import ab
from edgeconv.bench.ab import AbCase, AbRecord, AbRow, ab_cases, compare_sides, side_of, verdict_of
from edgeconv.bench.grid import chosen_grid
from edgeconv.bench.intervals import Ratio
from edgeconv.core.records import as_type, plain
from edgeconv.errors import UsageError
from edgeconv.options import GridAxes

ROWS = """
[[part]]
methods = ["auto:threads=1", "auto:call=convolve:threads=1"]
devices = "cpu"
sizes = [9, 12]
dtypes = "uint8"
filters = ["sobel", "bank-c3-k2", "grey-random"]

[[part]]
devices = "cpu"
sizes = 9
filters = "canny"
dtypes = "uint8"
"""


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.toml"
    path.write_text(ROWS)
    return path


def cases_of(grid: str | Path, **axes: Any) -> list[AbCase]:
    return ab_cases(chosen_grid(GridAxes(str(grid), **axes)))


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.051, 1.2, "slower"),
        (1.05, 1.2, "no verdict"),
        (0.96, 1.04, "same"),
        (1 / 1.05, 1.05, "same"),
        (0.94, 1.0, "no verdict"),
        (0.9, 0.952, "faster"),
        (0.0, float("inf"), "no verdict"),
    ],
)
def test_the_whole_interval_decides(low: float, high: float, verdict: str) -> None:
    assert verdict_of(Ratio(1.0, low, high, 9), 0.05) == verdict


def row_of(title: str, *b_seconds: list[float]) -> AbRow:
    """A takes a second in each turn."""
    return AbRow(title, [[1.0] * len(turns) for turns in b_seconds], list(b_seconds))


def record_of(*rows: AbRow) -> AbRecord:
    return AbRecord(1, "0", "2001-02-03T04:05:06+00:00", "ab", "a", "b", {}, list(rows))


def test_a_ratio_is_over_pairs_of_processes_and_in_a_pair_over_turns_that_follow_each_other() -> None:
    """Student's t of ln 1.06, ln 1.08 and so on: 99 % of five pairs are 4.604 standard errors."""
    row = row_of("row", [1.06], [1.08], [1.07], [1.06], [1.08])
    assert str(row.ratio) == "1.07 [1.05, 1.091]"
    assert row.half_width == pytest.approx(0.0206, abs=1e-4)
    assert (row.verdict(0.04), row.verdict(0.05)) == ("slower", "no verdict")
    assert row_of("row", *[[1.07]] * 4).verdict(0.04) == "no verdict", "too few pairs"
    assert AbRow("row", [], [], "A: no").verdict(0.04) == "cannot run"
    slowed = AbRow("row", [[1.0, 1.0, 1.0, 2.0, 2.0]], [[1.1, 1.1, 2.2, 2.2, 2.2]])
    assert slowed.ratios == pytest.approx([1.1]), "half as fast between two turns, and then for both"
    mean = record_of(row_of("1", [1.21], [1.21], [0.1]), row_of("2", [1.0], [1.0]), AbRow("3", [], [], "B: no")).mean
    assert mean is not None
    assert (mean.ratio, mean.samples) == (pytest.approx(1.1), 2), "over the pairs that every row has"


def test_rows_are_the_cases_of_a_grid(rows: Path) -> None:
    titles = [case.title for case in cases_of(rows)]
    assert len(titles) == 2 * 2 * 3 + 1
    assert "12 s1 uint8 bank-c3-k2 mix cpu auto:threads=1" in titles
    (bank, convolve) = cases_of(rows, sizes="12", filters="bank-c3-k2")
    assert (bank.call, convolve.call, bank.shape) == ("plan", "convolve", (12, 12, 3))
    assert (bank.words["threads"], bank.words["method"]) == (1, "auto")
    assert [len(bank.words["filter"]), len(bank.words["filter"][0])] == [2, 3]
    assert [cases_of(rows, filters=name)[0].shape for name in ("grey-random", "canny")] == [(9, 9, 1), (9, 9, 3)]
    assert {case.device for case in cases_of("guard")} == {"cpu", "cuda"}
    drawn = cases_of("surface", seed=1, cases=50, devices="cpu")
    assert {case.words["padding"] for case in drawn} > {"same", 2}
    assert all("border" in case.words and case.shape[:2] != (1, 1) for case in drawn)


def test_a_side_is_a_folder_an_interpreter_or_a_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with side_of(str(PROJECT)) as folder, side_of(sys.executable) as python:
        assert (folder.folder, python.folder) == (PROJECT, None)
    for word in (str(tmp_path), "nothing", "--output=taken"):
        with pytest.raises(UsageError, match=word), side_of(word):
            pass
    if shutil.which("git") and (PROJECT / ".git").exists():
        monkeypatch.chdir(PROJECT)
        with side_of("HEAD") as revision:
            assert revision.folder is not None
            assert (revision.folder / "edgeconv" / "__init__.py").is_file()


def test_two_versions_by_turns(rows: Path, tmp_path: Path) -> None:
    """The second knows no canny and ends with another error for a bank: both are lines, and the others are measured."""
    other = tmp_path / "other" / "edgeconv"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text(
        "import numpy as np\n\nclass Options:\n    def __init__(self, threads): pass\n\n"
        "def plan(shape, dtype, *, method, filter, channels, border, stride, device, options):\n"
        "    if not isinstance(filter, str) and len(filter) == 2: raise ValueError('no banks\\nhere')\n"
        "    made = lambda image, out: out\n"
        "    made.output_shape, made.output_dtype = shape, dtype\n    return made\n\n"
        "def convolve(image, **words): return image\n"
    )
    told: list[tuple[int, int, str]] = []
    with side_of(str(PROJECT)) as a, side_of(str(other.parent)) as b:
        record = compare_sides(a, b, cases_of(rows), 0.0, progress=lambda *words: told.append(words))
    by_title = {row.title: row for row in record.rows}
    assert by_title["9 s1 uint8 canny mix cpu"].cannot == "B: module 'edgeconv' has no attribute 'canny'"
    assert by_title["12 s1 uint8 bank-c3-k2 mix cpu auto:threads=1"].cannot == "B: no banks"
    measured = [row for row in record.rows if row.cannot is None]
    assert [(len(row.a_seconds), len(row.b_seconds)) for row in measured] == [(1, 1)] * 8
    assert all(len(row.a_seconds[0]) == len(row.b_seconds[0]) >= 10 for row in measured), "turns of one pair"
    assert told[-1][:2] == (13, 13), "the time was up from the beginning"
    assert as_type(plain(record), AbRecord) == record


@pytest.mark.parametrize("scatter", [0.0, 0.04])
def test_pairs_and_turns_are_added_until_enough_is_known(rows: Path, monkeypatch, scatter: float) -> None:
    """Of a side that always takes a second and one whose turns scatter: processes are made up."""
    asked: list[str] = []
    times = np.random.default_rng(1)

    @contextmanager
    def made_up(side: ab.Side, place: str):
        def ask(**words: object) -> dict[str, float]:
            asked.append(side.name if "turn" in words else "case")
            return {"seconds": 1 + scatter * times.uniform(-1, 1)}

        yield ask

    monkeypatch.setattr(ab, "process_of", made_up)
    monkeypatch.setattr(ab, "ROW_SECONDS", 1e6)
    a, b, cases = ab.Side("A", "", None), ab.Side("B", "", None), cases_of(rows, filters="canny")
    record = compare_sides(a, b, cases[:1], 1e9)
    (row,) = record.rows
    assert asked[:6] == ["case", "case", "A", "B", "B", "A"]
    pairs, turns = len(row.a_seconds), max(map(len, row.a_seconds))
    assert (pairs > 5 and turns > 10) if scatter else (pairs, turns) == (5, 10)
    assert row.half_width < ab.HALF_WIDTH


def test_the_command(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it measured is not judged; then what it says of rows that are slower, and that cannot run."""
    out = tmp_path / "ab.json"
    words = ("bench", "ab", PROJECT, PROJECT, "--grid", rows)
    once = ("--sizes", "12", "--filters", "sobel", "--methods", "auto", "--time-limit", "0.001")
    done = edgeconv(*words, *once, "-o", out)
    assert (done.code, "1 row: 1 no verdict" in done.text) == (0, True), done.err
    record = json.loads(out.read_bytes())
    assert (record["kind"], len(record["rows"][0]["b_seconds"])) == ("ab", 1)
    found = [row_of("slow", *[[1.1]] * 5), AbRow("none", [], [], "A: no such call")]
    monkeypatch.setattr(ab, "compare_sides", lambda *given, **words: record_of(*found))
    wrong = (("--time-limit", "0"), ("--fail-on", "much"))
    assert [edgeconv(*words, *each).code for each in wrong] == [2, 2]
    for margin, code in (("5%", 1), ("15%", 0)):
        done = edgeconv(*words, "--fail-on", margin)
        assert done.code == code
    assert "| same | slow | 1 s | 1.1 s | 1.1 [1.1, 1.1] | 5 |" in done.text
    assert "| cannot run | none | – | – | A: no such call | – |" in done.text
    del found[0]
    assert edgeconv(*words).code == 1, "nothing was compared"
