"""Folders by relative name: what is new, missing, changed or the same, and a baseline that never loses a file."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from command import edgeconv
from jsonschema import Draft202012Validator

from edgeconv.difference.folders import run
from edgeconv.difference.results import Wanted
from edgeconv.errors import ImageReadError
from edgeconv.export.schemas import schema
from edgeconv.io.encoding import write_image


def flat(value: int, height: int = 5) -> np.ndarray:
    return np.full((height, 6, 3), value, np.uint8)


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """old/ and new/: same, equal in other bytes, changed, new, missing, of another size."""
    for folder in ("old/deep", "new/deep"):
        (tmp_path / folder).mkdir(parents=True)
    write_image(flat(1), tmp_path / "old/same.png")
    write_image(flat(1), tmp_path / "new/same.png")
    write_image(flat(2), tmp_path / "old/equal.bmp")
    write_image(flat(2), tmp_path / "equal.tiff")
    (tmp_path / "equal.tiff").rename(tmp_path / "new/equal.bmp")
    write_image(flat(3), tmp_path / "old/deep/changed.png")
    write_image(flat(4), tmp_path / "new/deep/changed.png")
    write_image(flat(5), tmp_path / "new/added.png")
    write_image(flat(6), tmp_path / "old/gone.png")
    write_image(flat(7), tmp_path / "old/grown.png")
    write_image(flat(7, 9), tmp_path / "new/grown.png")
    (tmp_path / "new/notes.txt").write_text("not a picture")
    return tmp_path


STATUSES = {
    "added.png": "new",
    "deep/changed.png": "changed",
    "equal.bmp": "same",
    "gone.png": "missing",
    "grown.png": "layout",
    "same.png": "same",
}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_relative_name_gets_its_status_and_the_text_lists_what_is_not_the_same(folders: Path) -> None:
    done = edgeconv("diff", "old", "new", "--json", "--junit", "out.xml", cwd=folders)
    assert done.code == 3, done.err
    record = json.loads(done.text)
    assert {pair["name"]: pair["status"] for pair in record["pairs"]} == STATUSES
    Draft202012Validator(schema("diff")).validate(record)
    (changed,) = (pair["diff"] for pair in record["pairs"] if pair["status"] == "changed")
    assert changed["comparisons"][0]["judged"]["differing_samples"] == 5 * 6 * 3
    suite = ElementTree.parse(folders / "out.xml").getroot()
    assert suite.attrib == {"tests": "6", "failures": "4", "errors": "0"}
    lines = edgeconv("diff", "old", "new", cwd=folders).text.splitlines()
    assert [line.split()[:2] for line in lines[:-2]] == [
        [status, name] for name, status in STATUSES.items() if status != "same"
    ]
    assert lines[-2].split(maxsplit=1) == ["total", "2 same; 1 missing; 1 new; 1 changed; 1 other size or type"]
    assert "  not compared, as edgeconv does not read such files: " in lines[-1]


def test_a_broken_picture_is_reported_the_rest_compared_and_nothing_updated(folders: Path) -> None:
    (folders / "new/same.png").write_bytes(b"broken")
    done = edgeconv("diff", "old", "new", "--json", cwd=folders)
    assert done.code == 2
    found = {pair["name"]: pair["status"] for pair in json.loads(done.text)["pairs"]}
    assert found == {**STATUSES, "same.png": "unreadable"}
    before = contents(folders)
    done = edgeconv("diff", "old", "new", "--update", cwd=folders)
    assert (done.code, len(done.error_lines)) == (2, 1)
    assert contents(folders) == before


def test_update_makes_the_baseline_like_the_new_folder_and_keeps_the_old_files(folders: Path) -> None:
    before, after = contents(folders / "old"), contents(folders / "new")
    done = edgeconv("diff", "old", "new", "--update", cwd=folders)
    assert done.code == 0, done.err
    assert "2 replaced, 1 added, 1 removed" in done.text
    # What was the same is left as it was, byte for byte.
    expected = {**after, "equal.bmp": before["equal.bmp"]}
    expected.pop("notes.txt")
    assert contents(folders / "old") == expected
    (kept,) = folders.glob("old.before-*")
    assert str(kept) in done.text
    assert contents(kept) == {name: before[name] for name in ("deep/changed.png", "grown.png", "gone.png")}
    assert contents(folders / "new") == after
    again = edgeconv("diff", "old", "new", "--update", cwd=folders)
    assert again.code == 0
    assert "needs no update" in again.text
    assert len(list(folders.glob("old.before-*"))) == 1


def test_a_folder_that_cannot_be_listed_is_an_error_and_never_an_empty_one(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir, before = os.scandir, contents(folders / "old")

    def closed(path: Any = ".") -> Any:
        if Path(path) == folders / "new/deep":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed)
    with pytest.raises(ImageReadError, match="deep: the folder cannot be listed") as caught:
        run(folders / "old", folders / "new", Wanted(), update=True)
    assert caught.value.exit_code == 2
    assert contents(folders / "old") == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("name", ["added.png", "deep/changed.png", "gone.png"])
def test_a_pipe_with_a_pictures_name_is_not_read(folders: Path, name: str) -> None:
    place = folders / ("old" if name == "gone.png" else "new") / name
    place.unlink()
    os.mkfifo(place)
    done = edgeconv("diff", "old", "new", cwd=folders)
    assert done.code == 2
    assert f"{place.relative_to(folders)}: is a pipe" in done.text


@pytest.mark.parametrize(
    "words", ["old old", "old old/deep", "old new new", "old new/added.png", "old new --pictures x", "deep empty"]
)
def test_folders_that_make_no_pair_are_refused(folders: Path, words: str) -> None:
    (folders / "deep").mkdir()
    (folders / "empty").mkdir()
    done = edgeconv("diff", *words.split(), cwd=folders)
    assert done.code == 2
    assert len(done.error_lines) == 1


def test_pairs_above_the_page_limit_are_listed_without_pictures(folders: Path) -> None:
    done = edgeconv("diff", "old", "new", "--html", "page.html", "--page-limit", "10", cwd=folders)
    assert done.code == 3
    assert "not in the viewer" in (folders / "page.html").read_text(encoding="utf-8")
