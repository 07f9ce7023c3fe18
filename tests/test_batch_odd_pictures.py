"""Odd names, unreadable folders and damaged files cost a row in the ledger each, and no other picture anything."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from batch_folders import RULES, SUFFIX, contents, run_here
from command import edgeconv
from damaged import BAD_FILES
from problems import random_image

from edgeconv.batch import codecs, ledger
from edgeconv.io.image import write_image

ONLY_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="other systems allow only names that are text")


def test_a_folder_of_every_damaged_file_loses_no_good_one(photos: Path, out: Path) -> None:
    for index, bad in enumerate(BAD_FILES):
        (photos / f"bad{index}_{bad.name}").write_bytes(bad.data)
    listed = photos.parent / "all.txt"
    listed.write_text("\n".join(str(path) for path in sorted(photos.iterdir()) if path.is_file()), encoding="utf-8")
    done = edgeconv("batch", "--files-from", listed, "-o", out, *RULES, "--name", "{stem}{ext}", "--json")
    summary = json.loads(done.text)
    assert done.code == 1
    assert (summary["done"], summary["failed"]) == (2, len(BAD_FILES))
    assert set(contents(out)) == {"a.png", "b.png"}
    assert len(list(ledger.read_rows(out))) == len(BAD_FILES) + 2


@ONLY_LINUX
def test_a_name_that_is_not_utf8_is_kept_byte_for_byte(photos: Path) -> None:
    odd = photos / os.fsdecode(b"\xff\xe9 \xe2\x82\xac.png")
    write_image(random_image(9, 9, "uint8"), odd)
    out, listed = photos.parent / "edges", photos.parent / "list.txt"
    done = edgeconv("batch", photos, "-o", out, *RULES, "--json")
    assert (done.code, json.loads(done.text)["done"]) == (0, 3), done.err
    rows = {row.input: row for row in ledger.read_rows(out)}
    assert Path(str(rows[str(odd)].output)).stem == f"{odd.stem}{SUFFIX}"
    assert edgeconv("verify", out).code == 0
    listed.write_bytes(os.fsencode(odd))
    again = edgeconv("batch", "--files-from", listed, "-o", out, *RULES, "--resume", "--json")
    assert (again.code, json.loads(again.text)["skipped"]) == (0, 1)


@ONLY_LINUX
def test_a_bad_picture_of_an_odd_name_fails_alone(photos: Path, out: Path) -> None:
    (photos / os.fsdecode(b"\xff.png")).write_bytes(b"not a picture")
    done = edgeconv("batch", photos, "-o", out, *RULES, "--json")
    assert done.code == 1
    assert (json.loads(done.text)["done"], len(done.error_lines)) == (2, 1), done.err


def test_a_name_that_grows_too_long_fails_alone(photos: Path, out: Path) -> None:
    long = "x" * 250 + ".png"
    write_image(random_image(9, 9, "uint8"), photos / long)
    done = edgeconv("batch", photos, photos / ("y" * 300), "-o", out, *RULES)
    assert (done.code, len(done.error_lines)) == (1, 2), done.err
    assert set(contents(out)) == {f"a{SUFFIX}.png", f"b{SUFFIX}.png"}
    assert {row.status for row in ledger.read_rows(out) if len(Path(row.input).name) > 200} == {"failed"}


def test_whatever_goes_wrong_with_one_picture_fails_alone(
    photos: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decode = codecs.decode_image

    def decode_or_fail(data: bytes, name: str, *rules: Any) -> Any:
        if name.endswith("a.png"):
            raise ZeroDivisionError("of a kind\nthat nobody thought of")
        return decode(data, name, *rules)

    monkeypatch.setattr(codecs, "decode_image", decode_or_fail)
    summary = run_here([photos], out)
    assert (summary.done, summary.failed) == (1, 1)
    (row,) = (row for row in ledger.read_rows(out) if row.status == "failed")
    assert str(row.error).endswith("a.png: ZeroDivisionError: of a kind that nobody thought of")


def closed(folder: Path) -> Callable[..., Any]:
    """`os.scandir` for a user who may not list `folder` (whoever runs the tests may be allowed everything)."""
    scandir = os.scandir

    def scan(path: Any = ".") -> Any:
        if Path(path) == folder:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scandir(path)

    return scan


def test_a_folder_that_cannot_be_listed_is_a_failure_with_its_name(
    photos: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "scandir", closed(photos / "deep"))
    summary = run_here([photos], out, recursive=True)
    assert (summary.pictures, summary.done, summary.failed) == (3, 2, 1)
    (row,) = (row for row in ledger.read_rows(out) if row.status == "failed")
    assert row.input == str(photos / "deep")
    assert "cannot be listed" in str(row.error)


def test_a_folder_of_which_nothing_is_wanted_need_not_be_listed(
    photos: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "scandir", closed(photos / "deep"))
    assert run_here([photos], out).failed == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_with_a_pictures_name_fails_and_is_not_waited_for(photos: Path, out: Path) -> None:
    os.mkfifo(photos / "endless.png")
    (photos / "linked.png").symlink_to(photos / "endless.png")
    done = edgeconv("batch", photos, "-o", out, *RULES, "--json")
    summary = json.loads(done.text)
    assert (done.code, summary["done"], summary["failed"]) == (1, 2, 2)
    assert all("is a pipe" in failure["error"] for failure in summary["failures"])
