"""What a person at a terminal sees: few lines, in colour, that fit; and what a pipe gets instead."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest
from command import PROJECT, edgeconv, edgeconv_process
from problems import random_image
from run_reports import all_run_reports
from selection import pairs_then_slow
from terminal import on_terminal, without_colours

from edgeconv.core.text import TextRow, broken
from edgeconv.io.encoding import write_image
from edgeconv.io.files import read_text
from edgeconv.io.reading import read_image
from edgeconv.run.job import MAX_SAMPLING_SECONDS, sampling_seconds

ONCE = ("-m", "opencv", "--samples", 0)
"""What keeps a run short where its times are not looked at."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two small pictures."""
    write_image(random_image(20, 30, "uint8"), tmp_path / "photo.png")
    write_image(random_image(24, 18, "uint8"), tmp_path / "other.bmp")
    return tmp_path


def test_a_run_says_what_was_written_how_fast_and_whether_it_is_right_in_three_lines(folder: Path) -> None:
    done = on_terminal("run", "photo.png", "-m", "opencv", cwd=folder, columns=100)
    written, speed, verdict = without_colours(done.text).splitlines()
    assert written.startswith("wrote  photo_sobel_opencv_s1.png  30×20 uint8, ")
    assert written.endswith(" with measuring")
    assert speed.startswith("speed  ")
    assert " by opencv on " in speed
    assert " GFLOPS" in speed
    assert verdict == "right  1,800 samples (all) are equal to the float64 reference"
    assert "\x1b[1;32mright\x1b[0m" in done.text
    assert (folder / "photo_sobel_opencv_s1.png").exists()


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_that_wants_no_colours_gets_none(folder: Path, environment: dict[str, str]) -> None:
    done = on_terminal("run", "photo.png", *ONCE, cwd=folder, **environment)
    assert (done.code, "\x1b" in done.text) == (0, False)
    assert "\x1b" not in on_terminal("run", "none.png", cwd=folder, **environment).text


def test_an_error_is_red_on_a_terminal(folder: Path) -> None:
    assert "\x1b[1;31merror:\x1b[0m none.png: there is no such file" in on_terminal("run", "none.png", cwd=folder).text


def test_a_pipe_gets_neither_colours_nor_broken_lines(folder: Path) -> None:
    done = edgeconv_process("run", "photo.png", "-v", *ONCE, cwd=folder)
    assert "\x1b" not in done.text
    assert all(line.split()[0] in line[:9] for line in done.text.splitlines())
    assert any(len(line) > 80 for line in done.text.splitlines())


SHOWN = (
    ("run", "photo.png", "-v", *ONCE),
    ("run", "--help"),
    ("--help",),
    ("doctor",),
    ("filters",),
    ("diff", "photo.png", "photo.png", "--atol", 3),
    ("run", "photo.png", "--border", "nothing-that-is-known"),
)


@pytest.mark.parametrize(("words", "columns"), pairs_then_slow([*product(SHOWN, [40, 80, 132])], together=1))
def test_lines_fit_the_terminal(folder: Path, words: tuple[object, ...], columns: int) -> None:
    shown = without_colours(on_terminal(*words, cwd=folder, columns=columns).text)
    assert max(map(len, shown.splitlines())) <= max(columns, 52)  # of help text Typer gives no fewer than 50 columns


def test_columns_takes_the_place_of_the_terminals_width(folder: Path) -> None:
    wide = without_colours(on_terminal("run", "--help", cwd=folder, columns=200, COLUMNS="100").text)
    narrow = without_colours(on_terminal("run", "--help", cwd=folder, columns=200, COLUMNS="60").text)
    assert 80 < max(map(len, wide.splitlines())) <= 100
    assert max(map(len, narrow.splitlines())) <= 60


def test_quiet_prints_errors_alone(folder: Path) -> None:
    assert on_terminal("run", "photo.png", "--quiet", *ONCE, cwd=folder).text == ""
    assert (folder / "photo_sobel_opencv_s1.json").exists()
    done = edgeconv("run", "none.png", "-q", cwd=folder)
    assert (done.code, done.out, len(done.error_lines)) == (2, b"", 1)


def test_timed_runs_take_no_more_than_half_of_what_the_picture_took() -> None:
    assert sampling_seconds(0.1) == 0.05
    assert sampling_seconds(60.0) == MAX_SAMPLING_SECONDS


def test_a_folder_with_the_name_of_a_picture_says_nothing_of_formats(folder: Path) -> None:
    (folder / "q.jpg").mkdir()
    for place in ("q.jpg", "q.jpg/"):
        done = edgeconv("run", "photo.png", "-o", place, "--quality", 50, *ONCE, cwd=folder)
        assert (done.code, done.out) == (2, b"")
        assert "--quality applies to lossy formats" in done.err
    done = edgeconv("run", "photo.png", "-o", "q.jpg", "--quality", 50, "--format", "jpg", *ONCE, cwd=folder)
    assert done.code == 0
    assert [path.suffix for path in sorted((folder / "q.jpg").iterdir())] == [".jpg", ".json"]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ([], "photo_sobel_opencv_s1.png"),
        (["--channels", "each", "--output-mode", "abs"], "photo_sobel_opencv_s1.png"),
        (["--channels", "luma", "--output-mode", "raw"], "photo_sobel_luma_raw_opencv_s1.tiff"),
        (["--kernel", "0,1,0;1,-4,1;0,1,0"], "photo_custom-4a197d_opencv_s1.png"),
        (["--kernel", "0,1,0;1,-5,1;0,1,0"], "photo_custom-9eee74_opencv_s1.png"),
        (["--kernel-file", "sobel.csv"], "photo_sobel-4a197d_opencv_s1.png"),
        (["--format", "jpg", "--quality", 30], "photo_sobel_opencv_s1.jpg"),
    ],
)
def test_run_and_batch_name_what_is_not_the_default(folder: Path, words: list[object], name: str) -> None:
    (folder / "sobel.csv").write_text("0,1,0\n1,-4,1\n0,1,0\n", encoding="ascii")
    assert edgeconv("run", "photo.png", *words, *ONCE, "-o", "run/", cwd=folder).code == 0
    assert edgeconv("batch", "photo.png", *words, "-m", "opencv", "-o", "batch", cwd=folder).code == 0
    assert (folder / "run" / name).exists()
    assert (folder / "batch" / name).exists()
    assert (folder / "run" / name).read_bytes() == (folder / "batch" / name).read_bytes()


def test_quality_and_format_do_what_they_say(folder: Path) -> None:
    for quality in (5, 95):
        words = ("--quality", quality, "-o", f"q{quality}.jpg", *ONCE)
        assert edgeconv("run", "photo.png", *words, cwd=folder).code == 0
    assert (folder / "q5.jpg").stat().st_size < (folder / "q95.jpg").stat().st_size
    piped = edgeconv("run", "photo.png", "-o", "-", "--format", "bmp", *ONCE, cwd=folder)
    (folder / "piped.bmp").write_bytes(piped.out)
    assert piped.out[:2] == b"BM"
    assert read_image(folder / "piped.bmp").pixels.shape == (20, 30, 3)


GEMM = PROJECT / "docs" / "results" / "bench_gemm_h200.json.xz"


def saved_reports(folder: Path) -> list[Path]:
    """Reports of two runs, each as a file."""
    found = all_run_reports()
    paths = [folder / f"{name}.json" for name in ("cpu_sliding_s1", "cuda_cudnn_s1")]
    for path in paths:
        path.write_text(json.dumps(found[path.stem]), encoding="utf-8")
    return paths


@pytest.mark.parametrize("columns", [72, 160])
def test_a_report_is_drawn_on_a_terminal_and_markdown_in_a_pipe(tmp_path: Path, columns: int) -> None:
    paths = [*saved_reports(tmp_path), GEMM]
    done = on_terminal("report", *paths, cwd=tmp_path, columns=columns)
    shown = without_colours(done.text)
    assert done.code == 0
    assert max(map(len, shown.splitlines())) <= columns
    assert "|" not in shown
    assert "──" in shown
    assert "\x1b[1" in done.text
    piped = edgeconv("report", *paths, cwd=tmp_path)
    assert piped.text.startswith("# edgeconv bench gemm on ")
    cells = [
        cell.strip() for line in piped.text.splitlines() if line.startswith("| ") for cell in line.split("|")[1:-1]
    ]
    words = {word for cell in cells if "---" not in cell for word in cell.replace("\\", "").split()}
    headings = {heading for table in piped.text.split("## ")[1:] for heading in table.splitlines()[2].split(" | ")}
    unnamed = {word for heading in headings for word in heading.strip("| ").split() if word not in shown}
    assert unnamed == set(), "a column that has no room is named"
    if columns > 100:
        assert {word for word in words if "GFLOPS" in word or "µs" in word} <= set(shown.split())


def test_a_report_without_colours_has_no_escape_sequence(tmp_path: Path) -> None:
    record = saved_reports(tmp_path)[1]
    shown = on_terminal("report", record, cwd=tmp_path, NO_COLOR="1").text
    assert "\x1b" not in shown
    hostile = json.loads(read_text(record, 2**20))
    hostile["input"]["file"] = "a\x1b]0;title\x07.png"
    (tmp_path / "hostile.json").write_text(json.dumps(hostile), encoding="utf-8")
    coloured = on_terminal("report", "hostile.json", cwd=tmp_path, columns=200).text
    assert "\x1b]" not in coloured
    assert "\\u001b]0;title\\u0007.png" in coloured


def test_a_long_text_is_broken_under_its_label_and_a_path_never() -> None:
    path = "a-folder/" * 9 + "picture.png"
    rows = [TextRow("wrote", f"{path} in a second"), TextRow("check", "right")]
    ((_, wrote), (_, check)) = broken(rows, 40)
    assert wrote == [f"wrote  {path}", "       in a second"]
    assert check == ["check  right"]
    assert [lines for _, lines in broken(rows, None)] == [[f"wrote  {path} in a second"], ["check  right"]]
    assert broken([TextRow("a\x1b", "b\nc")], None)[0][1] == ["a\\u001b  b\\u000ac"]


def test_a_picture_is_not_written_to_a_terminal(folder: Path) -> None:
    done = on_terminal("run", "photo.png", "-o", "-", cwd=folder)
    assert done.code == 2
    assert "Standard output is a terminal" in done.text


def test_help_has_the_options_under_the_headings_of_their_groups() -> None:
    shown = edgeconv("run", "--help").text.splitlines()
    headings = [line for line in shown if line.endswith(":") and not line.startswith(" ")]
    assert headings[:3] == ["Arguments:", "Filters, chains and masks:", "Which method, and where:"]
    assert headings[-1] == "Other:"
    for heading, option in (("Timing and check:", "--samples"), ("Reading pictures:", "--strict")):
        after = shown[shown.index(heading) + 1 :]
        assert any(line.strip().startswith(option) for line in after[: after.index("")])
