"""Nothing in a folder is passed over in silence, and two pictures of one stem can both be filtered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from batch_folders import RULES, contents
from command import edgeconv
from problems import random_image

from edgeconv.batch import ledger
from edgeconv.io.image import read_image, write_image

OTHERS = ("a.psd", "b.PSD", "deep/c.psd", "d.heic", "README", "deep/e.svg", "tail.\x1b[31m")
SAID = "3 .psd, 1 .\\u001b[31m, 1 .heic, 1 .svg, 1 without a suffix"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: pictures in `photos`, one stem in two formats, beside files of other kinds."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos" / "deep").mkdir(parents=True)
    for name in OTHERS:
        (tmp_path / "photos" / name).write_bytes(b"8BPS")
    (tmp_path / "photos" / ".hidden.psd").write_bytes(b"")
    write_image(random_image(20, 30, "uint8"), "photos/one.png")
    return tmp_path


def test_files_of_other_kinds_are_said_and_counted(folder: Path) -> None:
    done = edgeconv("batch", "photos", "-r", "-o", "out", *RULES)
    assert (done.code, done.error_lines) == (0, [f"edgeconv: skipped, as edgeconv does not read such files: {SAID}"])
    assert [line for line in done.text.splitlines() if line.startswith("skipped ")] == [f"skipped   {SAID}"]
    done = edgeconv("batch", "photos", "-o", "flat", *RULES, "--json")
    kinds = {".psd": 2, ".heic": 1, "": 1, ".\x1b[31m": 1}
    assert json.loads(done.text)["passed_over"] == kinds
    assert len(done.error_lines) == 1


def test_our_own_ledger_is_no_file_of_another_kind(folder: Path) -> None:
    for name in OTHERS:
        (folder / "photos" / name).unlink()
    for words in ([], ["--resume"]):
        done = edgeconv("batch", "photos", "-o", "photos", *RULES, *words)
        assert (done.code, done.err) == (0, "")
        assert "skipped " not in done.text


def test_a_folder_with_nothing_but_other_kinds_says_which(folder: Path) -> None:
    (folder / "photos" / "one.png").unlink()
    done = edgeconv("batch", "photos", "-r", "-o", "out", *RULES)
    assert (done.code, len(done.error_lines)) == (2, 1)
    assert f"({SAID} are there)" in done.err


def test_a_diff_of_folders_says_what_it_did_not_compare(folder: Path) -> None:
    (folder / "new").mkdir()
    (folder / "new" / "x.psd").touch()
    write_image(read_image("photos/one.png").pixels, "new/one.png")
    done = edgeconv("diff", "photos", "new")
    assert done.code == 0
    assert done.text.splitlines()[-1] == f"note   not compared, as edgeconv does not read such files: {'4' + SAID[1:]}"


def test_one_stem_in_two_formats_is_refused_with_a_way_out_that_works(folder: Path) -> None:
    write_image(random_image(20, 30, "uint8", 7), "photos/one.bmp")
    (folder / "photos" / "two.png").symlink_to("one.png")
    (folder / "photos" / "two.bmp").symlink_to("one.png")  # two names of one file, that differ in the suffix alone
    refused = edgeconv("batch", "photos", "-o", "out", *RULES)
    assert refused.code == 2
    way_out = "{stem}{source_ext}_{filter}{rules}_{method}_s{stride}{ext}"
    assert f"pass --name '{way_out}'" in refused.err
    assert not Path("out").exists()
    expected = {f"{name}_laplacian8_each_reference_s1.png" for name in ("one.png", "one.bmp", "two.png", "two.bmp")}
    for words, state in (([], "done"), (["--resume"], "skipped")):
        done = edgeconv("batch", "photos", "-o", "out", *RULES, "--name", way_out, "--json", *words)
        assert done.code == 0
        assert json.loads(done.text)[state] == len(expected)
        assert set(contents(Path("out"))) == expected
    assert len(list(ledger.read("out").rows)) == len(expected)


def test_outputs_of_earlier_runs_and_batches_are_no_inputs(folder: Path) -> None:
    """In the current folder, as `batch .` finds them: beside their reports, and in folders with a ledger."""
    write_image(random_image(20, 30, "uint8"), "photo.png")
    write_image(random_image(20, 30, "uint8"), "mine.png")
    Path("mine.json").write_text('{"kind": "run", "output": {"file": "mine.png", "file_bytes": 1}}', encoding="ascii")
    assert edgeconv("run", "photo.png", *RULES).code == 0
    assert edgeconv("batch", "photo.png", "-o", "first", *RULES).code == 0
    assert edgeconv("batch", "photo.png", "-o", "first/below", *RULES).code == 0
    write_image(random_image(20, 30, "uint8"), "first/new.png")
    done = edgeconv("batch", ".", "-r", "-o", "second", *RULES, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.text)["earlier_outputs"] == 3
    made = {name.replace("_laplacian8_each_reference_s1", "") for name in contents(Path("second"))}
    assert made == {"photo.png", "mine.png", "first/new.png", "photos/one.png"}
    named = edgeconv("batch", "photo_laplacian8_each_reference_s1.png", "-o", "third", *RULES, "--json")
    assert json.loads(named.text)["done"] == 1


def test_a_ledger_from_elsewhere_hides_nothing_outside_its_folder(folder: Path) -> None:
    write_image(random_image(20, 30, "uint8"), "photo.png")
    Path("strange").mkdir()
    row = edgeconv("batch", "photo.png", "-o", "ours", *RULES)
    assert row.code == 0
    (written,) = ledger.read("ours").rows
    text = (Path("ours") / ledger.LEDGER_NAME).read_text(encoding="utf-8").replace(written.output, "../photo.png")
    (Path("strange") / ledger.LEDGER_NAME).write_text(text, encoding="utf-8")
    done = edgeconv("batch", ".", "-r", "-o", "new", *RULES, "--json")
    assert json.loads(done.text)["done"] == 2, done.err  # photo.png and photos/one.png, not what `ours` holds
