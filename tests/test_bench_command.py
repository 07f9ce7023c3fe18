"""`edgeconv bench` as a user runs it: real methods, small and short."""

from __future__ import annotations

import csv
import io
import json
import re

import jsonschema
from command import edgeconv

from edgeconv.bench.grid import GRIDS
from edgeconv.export import EXPORTERS
from edgeconv.export.rows import HEADER
from edgeconv.export.schemas import schema

SHORT = ("--time-limit", "0.002", "--samples", "5", "--devices", "cpu")


def test_a_grid_becomes_a_record_a_table_and_a_page_of_text(tmp_path) -> None:
    words = ("--sizes", "16,24", "--strides", "1,2", "--methods", "opencv,reference", "--peers", "opencv-filter2d")
    done = edgeconv("bench", *words, *SHORT, "-o", "out", "--formats", "json,csv,markdown", cwd=tmp_path)
    assert done.code == 0, done.err
    told, _, rest = done.text.partition("\n\n")
    assert [line.partition(":")[0] for line in told.splitlines()] == [
        f"{size} s{stride} float32 random mix on cpu" for size in (16, 24) for stride in (1, 2)
    ]
    assert "\nout/bench.json\nout/bench.csv\nout/bench.md\n" in rest
    assert rest.count(" | 16 | CPU, float32, random, mix, stride 1 | ") == 4
    assert rest.count(" | opencv-filter2d | ") == 4
    result = json.loads((tmp_path / "out" / "bench.json").read_text(encoding="utf-8"))
    jsonschema.validate(result, schema("bench"))
    assert result["complete"]
    assert len(result["rows"]) == 2 * 2 * 4
    assert {row["entrant"] for row in result["rows"]} == {"copy", "opencv", "reference", "opencv-filter2d"}
    assert [row["reason"] for row in result["rows"] if row["status"] != "measured"] == []
    table = list(csv.reader(io.StringIO((tmp_path / "out" / "bench.csv").read_text(encoding="utf-8"))))
    assert table[0] == list(HEADER)
    assert len(table) == 1 + 2 * len(result["rows"])  # cold and warm
    page = (tmp_path / "out" / "bench.md").read_text(encoding="utf-8")
    assert "## The fastest method" in page
    assert "floor share = median seconds of the floor: a copy of the fewest bytes" in page


def test_the_help_names_every_grid_format_and_command(tmp_path) -> None:
    words = set(re.findall(r"[\w-]+", edgeconv("bench", "--help").text))
    assert {grid.name for grid in GRIDS} | {"json", *EXPORTERS} | {"ab", "gemm", "conv"} <= words


def test_a_record_is_replaced_only_when_that_is_asked_for_and_can_be_measured(tmp_path) -> None:
    words = ("bench", "--strides", "1", "--methods", "opencv", *SHORT, "--formats", "json", "-o", ".")
    assert edgeconv(*words, "--sizes", "8", cwd=tmp_path).code == 0
    kept = (tmp_path / "bench.json").read_bytes()
    (tmp_path / "mine.csv").write_text("1,2\n", encoding="utf-8")
    (tmp_path / "file").touch()
    for more, told in (
        (("--sizes", "8"), "--overwrite"),
        (("--sizes", "8", "--name", "mine"), "mine.csv"),
        (("--sizes", "2", "--padding", "valid", "--overwrite"), ""),
        (("--sizes", "8", "--output", "file"), "file"),
        (("--sizes", "8", "--output", "file/below"), "file"),
    ):
        refused = edgeconv(*words, *more, cwd=tmp_path)
        assert (refused.code, len(refused.error_lines), told in refused.err) == (2, 1, True), more
        assert (tmp_path / "bench.json").read_bytes() == kept
    nothing = edgeconv("bench", "--methods", "cudnn", "--devices", "cpu", "-o", "elsewhere", cwd=tmp_path)
    assert (nothing.code, len(nothing.error_lines)) == (4, 1)
    assert not (tmp_path / "elsewhere" / "bench.json").exists()
    assert edgeconv(*words, "--sizes", "8", "--overwrite", cwd=tmp_path).code == 0
    assert json.loads((tmp_path / "bench.json").read_text(encoding="utf-8"))["kind"] == "bench"
    assert (tmp_path / "bench.json").read_bytes() != kept


def test_words_that_mean_nothing_are_one_line_before_anything_runs(tmp_path) -> None:
    for words in (
        ("--grid", "labs"),
        ("--grid", "nowhere.toml"),
        ("--peers", "nothing"),
        ("--methods", "x"),
        ("--formats", "pdf"),
        ("--l2", "hot"),
        ("--check", "some"),
        ("--stop-after", "-1"),
        ("--grid", "lab", "--seed", "1"),
        ("--cases", "3"),
        ("--grid", "surface", "--seed", "-1"),
        ("--grid", "surface", "--cases", "0"),
        ("--noise", "x"),
        ("--samples", "0"),
        ("--time-limit", "0"),
        ("photo.png",),
    ):
        done = edgeconv("bench", *words, cwd=tmp_path)
        assert (done.code, len(done.error_lines)) == (2, 1), (words, done.err)
    assert not (tmp_path / "results" / "bench.json").exists()
