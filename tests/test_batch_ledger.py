"""What a batch may replace, what it passes over, and what its ledger says: nothing of anybody's is lost."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from batch_folders import RULES, SUFFIX, a_row, contents, opened_ledger, run_here
from command import edgeconv
from problems import random_image, save_image

from edgeconv.batch import ledger
from edgeconv.batch.summary import BatchSummary
from edgeconv.batch.verify import verify
from edgeconv.errors import ImageWriteError

A, B = f"a{SUFFIX}.png", f"b{SUFFIX}.png"
"""Outputs of the two pictures of `photos`."""


def states(out: Path) -> set[str]:
    return {finding.state for finding in verify(out).findings}


def test_the_ledger_tells_every_pictures_fate(photos: Path, out: Path) -> None:
    (photos / "bad.png").write_bytes(b"not a picture")
    assert edgeconv("batch", photos, "-o", out, *RULES).code == 1
    rows = {Path(row.input).name: row for row in ledger.read(out).rows}
    assert {name: row.status for name, row in rows.items()} == {"a.png": "done", "b.tiff": "done", "bad.png": "failed"}
    good, bad = rows["a.png"], rows["bad.png"]
    assert good.input_sha256 == hashlib.sha256((photos / "a.png").read_bytes()).hexdigest()
    assert good.output_sha256 == ledger.sha256_of((out / str(good.output)).read_bytes())
    assert (good.method, good.device, bad.output) == ("reference", "cpu", None)
    assert "is not a picture" in str(bad.error)


# --- one batch after another ----------------------------------------------------------------------------------------


def nothing(photos: Path, out: Path) -> None:
    pass


def draw(name: str) -> Callable[[Path, Path], None]:
    return lambda photos, out: save_image(random_image(20, 30, "uint8", 99), photos / name)


def write(name: str, data: bytes = b"a person's own") -> Callable[[Path, Path], None]:
    def step(photos: Path, out: Path) -> None:
        out.mkdir(exist_ok=True)
        (out / name).write_bytes(data)

    return step


def flip_a_bit(photos: Path, out: Path) -> None:
    data = (out / A).read_bytes()
    (out / A).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def spoil(photos: Path, out: Path) -> None:
    (photos / "b.tiff").write_bytes(b"not a picture")


def remove(photos: Path, out: Path) -> None:
    (out / B).unlink()


AGAIN, OVER = {"resume": True}, {"overwrite": True}
DEEP = {"folder": "deep"}
RETRY = AGAIN | {"retry_failed": True}
STORIES: dict[str, list[tuple[Callable[[Path, Path], None], dict[str, Any], tuple[int, int, int], str]]] = {
    "resumed": [
        (nothing, AGAIN, (2, 0, 0), ""),
        (nothing, AGAIN, (0, 2, 0), ""),
        (draw("a.png"), AGAIN, (1, 1, 0), ""),
        (remove, AGAIN, (1, 1, 0), ""),
        (nothing, AGAIN | {"format": "bmp"}, (2, 0, 0), ""),
        (nothing, AGAIN | {"method": "opencv"}, (2, 0, 0), ""),
    ],
    "changed by somebody, but not in size": [
        (nothing, {}, (2, 0, 0), ""),
        (flip_a_bit, AGAIN, (0, 1, 1), "was changed since"),
        (nothing, AGAIN | OVER, (1, 1, 0), ""),
    ],
    "a person's own": [
        (write(A), {}, (1, 0, 1), "exists: pass --overwrite"),
        (nothing, AGAIN, (0, 1, 1), "--retry-failed tries again"),
        (nothing, AGAIN | OVER, (1, 1, 0), ""),
    ],
    "equal outputs are left": [(nothing, {}, (2, 0, 0), ""), (nothing, {}, (2, 0, 0), "")],
    "other settings": [
        (nothing, {"name": "{stem}{ext}"}, (2, 0, 0), ""),
        (nothing, {"name": "{stem}{ext}", "method": "opencv", "png_level": 9}, (0, 0, 2), "with other settings"),
    ],
    "changed pixels": [(nothing, {}, (2, 0, 0), ""), (draw("a.png"), {}, (2, 0, 0), "")],
    "another picture's name": [
        (draw("deep/a.png"), {"format": "bmp"}, (2, 0, 0), ""),
        (nothing, {"format": "bmp"} | DEEP, (0, 0, 1), "holds the result of another picture"),
        (nothing, {"format": "bmp"} | DEEP | OVER, (1, 0, 0), ""),
        (nothing, {"format": "bmp"} | AGAIN | OVER, (1, 1, 0), ""),
    ],
    "another place": [(nothing, {"recursive": True}, (3, 0, 0), ""), (nothing, DEEP | AGAIN | OVER, (1, 0, 0), "")],
    "failed before": [
        (spoil, {}, (1, 0, 1), "is not a picture"),
        (nothing, AGAIN, (0, 1, 1), "--retry-failed tries again"),
        (draw("b.tiff"), RETRY, (1, 1, 0), ""),
    ],
}


@pytest.mark.parametrize("story", STORIES)
def test_what_a_batch_does_after_another(photos: Path, out: Path, story: str) -> None:
    for change, settings, counts, says in STORIES[story]:
        change(photos, out)
        others = (
            {name: path.stat().st_mtime_ns for name in contents(out) if (path := out / name)} if out.exists() else {}
        )
        given = dict(settings)
        summary = run_here([photos / given.pop("folder", "")], out, **given)
        assert (summary.done, summary.skipped, summary.failed) == counts, summary.failures
        assert all(says in failure.error for failure in summary.failures)
        if counts[0] == 0 or story.startswith("equal"):
            assert {name: (out / name).stat().st_mtime_ns for name in others} == others, "something was replaced"


def test_a_picture_of_the_same_relative_name_elsewhere_is_another_one(tmp_path: Path) -> None:
    out = tmp_path / "edges"
    for seed, place in enumerate(("here", "there")):
        (tmp_path / place).mkdir()
        save_image(random_image(9, 9, "uint8", seed), tmp_path / place / "a.png")
    assert edgeconv("batch", "a.png", "-o", out, *RULES, cwd=tmp_path / "here").code == 0
    assert edgeconv("batch", "a.png", "-o", out, *RULES, cwd=tmp_path / "there").code == 1
    assert edgeconv("batch", "../here/a.png", "-o", out, *RULES, "--resume", cwd=tmp_path / "there").code == 0


def test_two_pictures_never_take_one_name_even_where_it_is_known_only_late(tmp_path: Path) -> None:
    save_image(random_image(4, 23, "uint8", 1), tmp_path / "a.png")
    save_image(random_image(4, 3, "uint8", 2), tmp_path / "a2.png")
    out = tmp_path / "out"
    summary = run_here([tmp_path], out, name="{stem}{width}{ext}", overwrite=True)
    assert "gives them different names" in summary.failures[0].error
    assert set(contents(out)) == {"a23.png"}
    assert sorted(row.status for row in ledger.read(out).rows) == ["done", "failed"]


# --- into the folder of the inputs ----------------------------------------------------------------------------------


SAME, SIZED = ("--name", "{stem}{ext}", "--overwrite"), ("--name", "{stem}-{width}x{height}{ext}", "--overwrite")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (SAME, 2),
        ((*SAME, "--format", "tiff"), 2),
        ((*SAME, "--resume"), 2),
        ((*SAME, "--shard", "3/3"), 2),
        (SIZED, 1),
        (("--resume", "--overwrite"), 1),
    ],
)
def test_no_input_is_overwritten(photos: Path, words: tuple[str, ...], code: int) -> None:
    """What is known early is found before the first write; a size is known late."""
    for name in ("a-30x20.png", A):
        save_image(random_image(9, 9, "uint8"), photos / name)
    before = contents(photos)
    done = edgeconv("batch", photos, "-o", photos, *RULES, *words)
    assert done.code == code
    assert "one of the inputs" in done.err
    after = contents(photos)
    assert {name: after[name] for name in before} == before
    assert code == 1 or (after == before and not (photos / ledger.LEDGER_NAME).exists())


def test_outputs_beside_their_inputs_are_not_filtered_again(photos: Path) -> None:
    words = ("batch", photos, "-r", "-o", photos, *RULES, "--resume", "--json")
    for counts in ((3, 0), (0, 3)):
        summary = json.loads(edgeconv(*words).text)
        assert (summary["done"], summary["skipped"], summary["earlier_outputs"]) == (*counts, counts[1])
    assert "3 outputs of earlier runs" in edgeconv("batch", photos, "-r", "-o", photos, *RULES).text
    made, book = contents(photos), photos / ledger.LEDGER_NAME
    book.write_bytes(b"".join(book.read_bytes().splitlines(keepends=True)[:2]))  # killed between a file and its row
    summary = json.loads(edgeconv(*words).text)
    assert (summary["done"], summary["skipped"], summary["earlier_outputs"], summary["failed"]) == (1, 2, 3, 0)
    assert contents(photos) == made
    assert edgeconv("batch", photos / A, "-o", photos, *RULES).code == 0  # named, so it is meant


# --- the file -------------------------------------------------------------------------------------------------------


def test_of_rows_in_several_files_the_last_that_was_written_counts(tmp_path: Path) -> None:
    """A batch counts those before it. A count that somebody drove up does not run over."""
    digests = ["first", "second", "third", "last"]
    for share, digest in zip(((2, 2), (1, 2), (2, 2), (1, 1)), digests, strict=True):
        with opened_ledger(tmp_path, share) as book:
            book.append(a_row("a", digest))
    assert [row.output_sha256 for row in ledger.read(tmp_path).rows] == digests
    with (tmp_path / ledger.LEDGER_NAME).open("ab") as stream:
        stream.write(a_row("a", "old").to_line(2**53 - 1))
    with opened_ledger(tmp_path) as book:
        book.append(a_row("a", "new"))
    assert [row.output_sha256 for row in ledger.read(tmp_path).rows][-2:] == ["old", "new"]


def test_a_row_that_a_killed_run_left_broken_is_no_damage(photos: Path, out: Path) -> None:
    run_here([photos], out)
    book = out / ledger.LEDGER_NAME
    with book.open("ab") as stream:
        stream.write(b'{"input": "b", "inp')
    assert ledger.read(out).damaged == []
    run_here([photos], out)
    assert book.read_bytes().count(ledger.CUT_SHORT + b"\n") == 1, "marked, and nothing else is"
    assert ledger.read(out).damaged == []
    assert edgeconv("verify", out).code == 0


WITHOUT_TIME = json.dumps(
    {name: getattr(a_row("a"), name) for name in a_row("a").__struct_fields__ if name != "seconds"}
)


@pytest.mark.parametrize(
    "damage", [b"\0\0\0\n", b'{"input": "a", "output": 7}\n', b"[" * 9999 + b"\n", WITHOUT_TIME.encode() + b"\n"]
)
def test_verify_names_a_row_that_was_damaged_later(photos: Path, out: Path, damage: bytes) -> None:
    run_here([photos], out, recursive=True)
    book = out / ledger.LEDGER_NAME
    lines = book.read_bytes().splitlines(keepends=True)
    lines[1] = damage
    book.write_bytes(b"".join(lines))
    found = edgeconv("verify", out)
    assert (found.code, len(found.error_lines)) == (1, 1)
    assert "unreadable: line 2 of" in found.text
    assert "2 of 2 outputs" in found.text
    run_here([photos], out, recursive=True, resume=True)
    assert "3 of 3 outputs" in edgeconv("verify", out).text


def write_half(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    """The next write to `place` is cut short as by a full disk; there is room again at once."""
    write, left = os.write, [1]

    def short(descriptor: int, data: bytes) -> int:
        if left and place.exists() and os.path.samestat(os.fstat(descriptor), place.stat()):
            left.pop()
            return write(descriptor, data[: len(data) // 2])
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", short)


def test_behind_a_row_that_a_full_disk_cut_short_nothing_is_appended(
    photos: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out.mkdir()
    write_half(monkeypatch, out / ledger.LEDGER_NAME)
    with opened_ledger(out) as book:
        for name in ("a", "b"):
            with pytest.raises(ImageWriteError, match="No space left"):
                book.append(a_row(name))
    assert ledger.read(out).rows == []
    write_half(monkeypatch, out / ledger.LEDGER_NAME)
    with pytest.raises(ImageWriteError, match="No space left"):
        run_here([photos], out, recursive=True, jobs=3)
    assert run_here([photos], out, recursive=True, resume=True).done == 3
    assert ledger.read(out).damaged == []
    assert len(verify(out).findings) == 3
    assert states(out) == {"same"}


@pytest.mark.parametrize("how", ["removed", "renamed", "renamed and made anew"])
def test_an_output_folder_that_goes_in_the_middle_is_an_error(photos: Path, out: Path, how: str) -> None:
    for index in range(9):
        save_image(random_image(9, 9, "uint8", index), photos / f"{index}.png")
    gone: list[Path] = []

    def take_away(now: BatchSummary) -> None:
        if now.done == 2 and not gone:
            gone.append(out)
            shutil.rmtree(out, ignore_errors=True) if how == "removed" else out.rename(out.with_name("elsewhere"))
            if how == "renamed and made anew":
                out.mkdir()

    with pytest.raises(ImageWriteError, match=r"was moved, replaced or removed.*--resume"):
        run_here([photos], out, jobs=1, watch=take_away)
    again = run_here([photos], out, resume=True)
    assert (again.done, again.failed) == (11, 0)
    assert states(out) == {"same"}


def test_a_ledger_that_goes_behind_the_last_row_is_an_error(photos: Path, out: Path) -> None:
    with pytest.raises(ImageWriteError, match="removed"):
        run_here([photos], out, watch=lambda now: (out / ledger.LEDGER_NAME).unlink() if now.done == 2 else None)


@pytest.mark.parametrize("gone", ["before it is put in place", "behind its back"])
def test_an_output_that_is_not_there_after_it_was_written_is_not_done(
    photos: Path, monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    out, replace = photos.parent / "edges", os.link

    def lose(source: Path, target: Path) -> None:
        if gone == "behind its back":
            replace(source, target)
        out.rename(out.with_name("elsewhere"))

    monkeypatch.setattr(os, "link", lose)
    with pytest.raises(ImageWriteError, match="was moved"):
        run_here([photos / "a.png"], out)
    assert ledger.read(out.with_name("elsewhere")).rows == []


def test_a_share_without_pictures_says_so(photos: Path) -> None:
    done = edgeconv("batch", photos, "-o", photos.parent / "edges", *RULES, "--shard", "9/9")
    assert done.code == 0
    assert "edgeconv: --shard 9/9 has no picture" in done.err


def test_verify_names_what_is_missing_or_changed(photos: Path, out: Path) -> None:
    edgeconv("batch", photos, "-r", "-o", out, *RULES)
    assert edgeconv("verify", out).code == 0
    (out / A).unlink()
    with (out / B).open("ab") as stream:
        stream.write(b"!")
    found = edgeconv("verify", out)
    assert found.code == 1
    assert set(found.text.splitlines()) >= {f"missing: {A}", f"changed: {B}"}
    assert "1 of 3 outputs" in found.text
    assert edgeconv("verify", photos).code == 2


def test_each_share_has_a_file_of_its_own_and_all_are_one_ledger(photos: Path, out: Path) -> None:
    save_image(random_image(9, 9, "uint8"), photos / "c.png")
    for share in ((1, 2), (2, 2)):
        run_here([photos], out, recursive=True, share=share)
    names = {path.name for path in out.iterdir() if path.suffix == ".jsonl"}
    assert names == {"edgeconv-ledger.1-of-2.jsonl", "edgeconv-ledger.2-of-2.jsonl"}
    assert len(ledger.read(out).rows) == 4
    assert states(out) == {"same"}
    assert run_here([photos], out, recursive=True, resume=True).skipped == 4
    (out / "edgeconv-ledger.2-of-2.jsonl").write_bytes(b"no row\n")
    found = edgeconv("verify", out)
    assert found.code == 1
    assert f"unreadable: line 1 of {out / 'edgeconv-ledger.2-of-2.jsonl'}" in found.text
