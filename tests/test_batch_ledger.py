"""What a batch may replace, what it passes over, and what its ledger says: nothing of anybody's is lost."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from contextlib import nullcontext
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

import pytest
from batch_folders import RULES, SUFFIX, a_row, contents, opened_ledger, run_here
from command import edgeconv
from problems import random_image

from edgeconv.batch import ledger
from edgeconv.batch.summary import BatchSummary
from edgeconv.batch.verify import verify
from edgeconv.errors import ImageReadError, ImageWriteError
from edgeconv.io.image import write_image


def test_the_ledger_tells_every_pictures_fate(photos: Path, out: Path) -> None:
    (photos / "bad.png").write_bytes(b"not a picture")
    done = edgeconv("batch", photos, "-o", out, *RULES)
    assert done.code == 1
    assert "bad.png" in done.err
    rows = {Path(row.input).name: row for row in ledger.read_rows(out)}
    assert {name: row.status for name, row in rows.items()} == {"a.png": "done", "b.tiff": "done", "bad.png": "failed"}
    good = rows["a.png"]
    assert good.input_sha256 == hashlib.sha256((photos / "a.png").read_bytes()).hexdigest()
    assert good.output_sha256 == ledger.sha256_of((out / str(good.output)).read_bytes())
    assert rows["bad.png"].output is None
    assert "is not a picture" in str(rows["bad.png"].error)


def test_nothing_foreign_is_overwritten_and_ones_own_is_left_when_equal(photos: Path, out: Path) -> None:
    assert edgeconv("batch", photos, "-o", out, *RULES).code == 0
    before = {path: path.stat().st_mtime_ns for path in out.glob("*.png")}
    assert edgeconv("batch", photos, "-o", out, *RULES).code == 0
    assert {path: path.stat().st_mtime_ns for path in out.glob("*.png")} == before
    (out / f"a{SUFFIX}.png").write_bytes(b"a person's own")
    refused = edgeconv("batch", photos, "-o", out, *RULES)
    assert refused.code == 1
    assert "--overwrite" in refused.err
    assert (out / f"a{SUFFIX}.png").read_bytes() == b"a person's own"
    assert edgeconv("batch", photos, "-o", out, *RULES, "--overwrite").code == 0
    assert (out / f"a{SUFFIX}.png").read_bytes() != b"a person's own"


def test_the_result_of_another_picture_is_not_replaced(photos: Path, out: Path) -> None:
    assert edgeconv("batch", photos, "-o", out, *RULES).code == 0
    before = contents(out)
    refused = edgeconv("batch", photos / "deep", "-o", out, *RULES)
    assert refused.code == 1
    assert "another picture" in refused.err
    assert "--overwrite" in refused.err
    assert contents(out) == before
    assert edgeconv("batch", photos / "deep", "-o", out, *RULES, "--overwrite").code == 0
    assert contents(out) != before


def test_a_picture_of_the_same_relative_name_elsewhere_is_another_one(tmp_path: Path) -> None:
    out = tmp_path / "edges"
    for seed, place in enumerate(("here", "there")):
        (tmp_path / place).mkdir()
        write_image(random_image(9, 9, "uint8", seed), tmp_path / place / "a.png")
    assert edgeconv("batch", "a.png", "-o", out, *RULES, cwd=tmp_path / "here").code == 0
    assert edgeconv("batch", "a.png", "-o", out, *RULES, cwd=tmp_path / "there").code == 1
    assert edgeconv("batch", "../here/a.png", "-o", out, *RULES, "--resume", cwd=tmp_path / "there").code == 0


def test_a_result_with_other_parameters_is_not_replaced_and_one_of_changed_pixels_is(photos: Path, out: Path) -> None:
    assert edgeconv("batch", photos, "-o", out, *RULES).code == 0
    refused = edgeconv("batch", photos, "-o", out, *RULES, "--border", "replicate")
    assert refused.code == 1
    assert "other settings" in refused.err
    before = contents(out)
    write_image(random_image(20, 30, "uint8", 99), photos / "a.png")
    assert edgeconv("batch", photos, "-o", out, *RULES).code == 0
    assert contents(out)[f"a{SUFFIX}.png"] != before[f"a{SUFFIX}.png"]


@pytest.mark.parametrize("more", [(), ("--format", "tiff"), ("--resume",)])
def test_an_output_that_would_be_an_input_is_found_before_the_first_write(photos: Path, more: tuple[str]) -> None:
    before = contents(photos)
    done = edgeconv("batch", photos, "-o", photos, *RULES, "--name", "{stem}{ext}", "--overwrite", *more)
    assert (done.code, len(done.error_lines)) == (2, 1)
    assert "one of the inputs" in done.err
    assert contents(photos) == before
    assert not (photos / ledger.LEDGER_NAME).exists()


def test_an_input_whose_name_is_known_only_late_is_not_overwritten_either(photos: Path) -> None:
    write_image(random_image(9, 9, "uint8"), photos / "a-30x20.png")
    before = contents(photos)
    done = edgeconv("batch", photos, "-o", photos, *RULES, "--name", "{stem}-{width}x{height}{ext}", "--overwrite")
    assert done.code == 1
    assert "a-30x20.png: is one of the inputs" in done.err
    assert {name: data for name, data in contents(photos).items() if name in before} == before


def test_an_input_of_another_share_is_not_overwritten(photos: Path) -> None:
    write_image(random_image(9, 9, "uint8"), photos / "a-30x20.png")
    names = ("--name", "{stem}-{width}x{height}{ext}", "--overwrite")
    before = contents(photos)
    for share in ("1/3", "2/3", "3/3"):
        edgeconv("batch", photos, "-o", photos, *RULES, *names, "--shard", share)
    assert {name: data for name, data in contents(photos).items() if name in before} == before
    done = edgeconv("batch", photos, "-o", photos, *RULES, "--name", "{stem}{ext}", "--overwrite", "--shard", "3/3")
    assert (done.code, contents(photos).keys() & before.keys()) == (2, before.keys())


def test_two_pictures_never_take_one_name_even_where_it_is_known_only_late(tmp_path: Path) -> None:
    write_image(random_image(4, 23, "uint8", 1), tmp_path / "a.png")
    write_image(random_image(4, 3, "uint8", 2), tmp_path / "a2.png")
    out = tmp_path / "out"
    done = edgeconv("batch", tmp_path, "-o", out, *RULES, "--name", "{stem}{width}{ext}", "--overwrite")
    assert done.code == 1
    assert "gives them different names" in done.err
    assert set(contents(out)) == {"a23.png"}
    assert sorted(row.status for row in ledger.read_rows(out)) == ["done", "failed"]


def test_outputs_beside_their_inputs_are_not_filtered_again(photos: Path) -> None:
    for counts in ((3, 0), (0, 3)):
        done = edgeconv("batch", photos, "-r", "-o", photos, *RULES, "--resume", "--json")
        summary = json.loads(done.text)
        assert (summary["done"], summary["skipped"]) == counts
        assert summary["earlier_outputs"] == counts[1]
    assert "3 outputs of earlier runs" in edgeconv("batch", photos, "-r", "-o", photos, *RULES).text
    assert edgeconv("batch", photos / f"a{SUFFIX}.png", "-o", photos, *RULES).code == 0  # named, so it is meant


def test_an_output_among_the_inputs_without_its_row_does_not_stop_a_batch_from_being_resumed(photos: Path) -> None:
    words = ("batch", photos, "-r", "-o", photos, *RULES, "--resume", "--json")
    assert edgeconv(*words).code == 0
    made = contents(photos)
    book = photos / ledger.LEDGER_NAME
    book.write_bytes(b"".join(book.read_bytes().splitlines(keepends=True)[:-1]))  # killed between a file and its row
    resumed = edgeconv(*words)
    summary = json.loads(resumed.text or "{}")
    assert (resumed.code, summary["done"], summary["skipped"], summary["earlier_outputs"]) == (0, 1, 2, 3), resumed.err
    assert contents(photos) == made


def test_an_input_where_an_output_goes_is_not_overwritten_by_a_batch_that_is_resumed(photos: Path) -> None:
    write_image(random_image(9, 9, "uint8"), photos / f"a{SUFFIX}.png")
    before = contents(photos)
    done = edgeconv("batch", photos, "-o", photos, *RULES, "--resume", "--overwrite")
    assert done.code == 1
    assert f"a{SUFFIX}.png: is one of the inputs" in done.err
    assert {name: data for name, data in contents(photos).items() if name in before} == before


def test_resume_passes_over_what_is_done_and_unchanged(photos: Path, out: Path) -> None:

    def resumed(*more: str) -> dict[str, int]:
        summary = json.loads(edgeconv("batch", photos, "-o", out, *RULES, "--resume", "--json", *more).text)
        return {key: summary[key] for key in ("done", "skipped", "failed")}

    assert resumed() == {"done": 2, "skipped": 0, "failed": 0}
    assert resumed() == {"done": 0, "skipped": 2, "failed": 0}
    write_image(random_image(20, 30, "uint8", 99), photos / "a.png")
    assert resumed() == {"done": 1, "skipped": 1, "failed": 0}
    (out / f"b{SUFFIX}.png").unlink()
    assert resumed() == {"done": 1, "skipped": 1, "failed": 0}
    assert resumed("--stride", "2") == {"done": 2, "skipped": 0, "failed": 0}


def test_resume_makes_an_output_again_that_was_changed_but_not_in_size(photos: Path, out: Path) -> None:
    run_here([photos], out)
    path = out / f"a{SUFFIX}.png"
    right = path.read_bytes()
    path.write_bytes(right[:-1] + bytes([right[-1] ^ 1]))
    again = run_here([photos], out, resume=True, overwrite=True)
    assert (again.done, again.skipped) == (1, 1)
    assert path.read_bytes() == right


def test_resume_makes_an_output_again_whose_name_another_picture_took(photos: Path, out: Path) -> None:
    write_image(random_image(20, 30, "uint8", 98), photos / "deep" / "a.png")
    run_here([photos], out, format="bmp")  # so that both results are of one size
    before = contents(out)
    run_here([photos / "deep"], out, format="bmp", overwrite=True)
    again = run_here([photos], out, format="bmp", resume=True, overwrite=True)
    assert (again.done, again.skipped) == (1, 1)
    assert contents(out) == before


def test_resume_makes_what_is_wanted_in_another_place(photos: Path, out: Path) -> None:
    run_here([photos], out, recursive=True)
    again = run_here([photos / "deep"], out, resume=True, overwrite=True)
    assert (again.done, again.skipped) == (1, 0)


def test_failed_pictures_are_tried_again_only_when_asked(photos: Path, out: Path) -> None:
    (photos / "bad.png").write_bytes(b"not a picture")
    edgeconv("batch", photos, "-o", out, *RULES)
    again = edgeconv("batch", photos, "-o", out, *RULES, "--resume", "--json")
    assert (again.code, json.loads(again.text)["failed"]) == (1, 1)
    assert len(list(ledger.read_rows(out))) == 3
    assert "--retry-failed tries again" in again.err
    afresh = edgeconv("batch", photos, "-o", out, *RULES, "--retry-failed")
    assert len(list(ledger.read_rows(out))) == 4
    assert "earlier run" not in afresh.err


def test_what_was_in_the_way_can_be_overwritten_by_a_batch_that_is_resumed(photos: Path, out: Path) -> None:
    out.mkdir()
    (out / f"a{SUFFIX}.png").write_bytes(b"a person's own")
    assert run_here([photos], out).failed == 1
    assert run_here([photos], out, resume=True).failed == 1
    resumed = run_here([photos], out, resume=True, overwrite=True)
    assert (resumed.done, resumed.skipped, resumed.failed) == (1, 1, 0)


def test_verify_names_what_is_missing_or_changed(photos: Path, out: Path) -> None:
    edgeconv("batch", photos, "-r", "-o", out, *RULES)
    assert edgeconv("verify", out).code == 0
    (out / f"a{SUFFIX}.png").unlink()
    with (out / f"b{SUFFIX}.png").open("ab") as stream:
        stream.write(b"!")
    found = edgeconv("verify", out)
    assert found.code == 1
    assert set(found.text.splitlines()) >= {f"missing: a{SUFFIX}.png", f"changed: b{SUFFIX}.png"}
    assert "1 of 3 outputs" in found.text
    assert edgeconv("verify", photos).code == 2


def test_each_share_has_a_file_of_its_own_and_all_are_one_ledger(photos: Path, out: Path) -> None:
    write_image(random_image(9, 9, "uint8"), photos / "c.png")
    for share in ((1, 2), (2, 2)):
        run_here([photos], out, recursive=True, share=share)
    names = {path.name for path in out.iterdir() if path.suffix == ".jsonl"}
    assert names == {"edgeconv-ledger.1-of-2.jsonl", "edgeconv-ledger.2-of-2.jsonl"}
    assert len(list(ledger.read_rows(out))) == 4
    assert edgeconv("verify", out).code == 0
    assert run_here([photos], out, recursive=True, resume=True).skipped == 4
    (out / "edgeconv-ledger.2-of-2.jsonl").write_bytes(b"no row\n")
    found = edgeconv("verify", out)
    assert found.code == 1
    assert f"unreadable: line 1 of {out / 'edgeconv-ledger.2-of-2.jsonl'}" in found.text


def test_of_rows_in_several_files_the_last_that_was_written_counts(tmp_path: Path) -> None:
    """Whatever the clock says: a batch counts those before it."""
    for share, digest in (((2, 2), "first"), ((1, 2), "second"), ((2, 2), "third"), ((1, 1), "last")):
        with opened_ledger(tmp_path, share) as book:
            book.append(a_row("a", digest))
    assert [row.output_sha256 for row in ledger.read_rows(tmp_path)] == ["first", "second", "third", "last"]


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


WITHOUT_TIME = (
    b'{"input": "a", "input_realpath": "/a", "input_bytes": 1, "input_sha256": "x", "parameters_sha256": "p", '
    b'"method": "m", "device": "cpu", '
    b'"output": "o", "output_bytes": 2, "output_sha256": "y", "status": "done", "seconds": 1, '
    b'"error": null, "finished_utc": 1}\n'
)


@pytest.mark.parametrize("damage", [b"\0\0\0\n", b'{"input": "a", "output": 7}\n', b"[" * 9999 + b"\n", WITHOUT_TIME])
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


def test_a_ledger_that_cannot_be_written_stops_everything(photos: Path, out: Path) -> None:
    (out / ledger.LEDGER_NAME).mkdir(parents=True)
    done = edgeconv("batch", photos, "-o", out, *RULES)
    assert (done.code, len(done.error_lines)) == (2, 1)
    assert contents(out) == {}


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
    write_half(monkeypatch, out / ledger.LEDGER_NAME)
    with pytest.raises(ImageWriteError, match="No space left"):
        run_here([photos], out, recursive=True, jobs=3)
    assert ledger.read_rows(out) == []
    assert run_here([photos], out, recursive=True, resume=True).done == 3
    assert ledger.read(out).damaged == []
    assert len(verify(out).findings) == 3
    assert edgeconv("verify", out).code == 0


def test_a_ledger_that_could_not_be_written_takes_no_more_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_half(monkeypatch, tmp_path / ledger.LEDGER_NAME)
    with opened_ledger(tmp_path) as book:
        for name in ("a", "b"):
            with pytest.raises(ImageWriteError, match="No space left"):
                book.append(a_row(name))
    with opened_ledger(tmp_path) as book:
        book.append(a_row("c"))
    assert [row.input for row in ledger.read_rows(tmp_path)] == ["c"]
    assert ledger.read(tmp_path).damaged == []


@pytest.mark.parametrize("how", ["removed", "renamed", "renamed and made anew"])
def test_an_output_folder_that_goes_in_the_middle_is_an_error(photos: Path, out: Path, how: str) -> None:
    for index in range(9):
        write_image(random_image(9, 9, "uint8", index), photos / f"{index}.png")
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
    assert {finding.state for finding in verify(out).findings} == {"same"}


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
    assert ledger.read_rows(out.with_name("elsewhere")) == []


class Ahead(datetime):
    """The clock of a machine that is a month ahead of the others."""

    @classmethod
    def now(cls, zone: tzinfo | None = None) -> datetime:
        return datetime.now(zone) + timedelta(days=30)


def test_a_clock_that_is_ahead_makes_no_right_output_wrong(
    photos: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(ledger, "datetime", Ahead)
        for share in ((1, 2), (2, 2)):
            run_here([photos], out, recursive=True, share=share)
    for seed, name in enumerate(("a.png", "deep/a.png")):
        write_image(random_image(20, 30, "uint8", 90 + seed), photos / name)
    assert run_here([photos], out, recursive=True, resume=True).done == 2
    assert {finding.state for finding in verify(out).findings} == {"same"}
    assert run_here([photos], out, recursive=True, resume=True).skipped == 3


def test_a_count_that_somebody_drove_up_does_not_run_over(tmp_path: Path) -> None:
    (tmp_path / ledger.LEDGER_NAME).write_bytes(a_row("a", "old").to_line(2**53 - 1))
    with opened_ledger(tmp_path) as book:
        book.append(a_row("a", "new"))
    assert [row.output_sha256 for row in ledger.read_rows(tmp_path)] == ["old", "new"]


def test_what_is_read_of_a_folder(tmp_path: Path) -> None:
    """Rows of all files by their runs, damaged lines apart; a last line without its end is neither."""
    lines = (a_row("b.png").to_line(2), b"what is this\n", a_row("../x.png").to_line(2), b"\n", b'{"broken')
    (tmp_path / ledger.LEDGER_NAME).write_bytes(b"".join(lines))
    cut_short = b"x" + ledger.CUT_SHORT + b"\n"
    (tmp_path / "edgeconv-ledger.1-of-2.jsonl").write_bytes(a_row("a.png").to_line(1) + cut_short)
    (tmp_path / "other.jsonl").write_bytes(a_row("c.png").to_line(9))
    found = ledger.read(tmp_path)
    assert [each.output for each in found.rows] == ["a.png", "b.png", "../x.png"]
    assert found.damaged == [(str(tmp_path / ledger.LEDGER_NAME), 2)]


def test_no_folder_has_no_rows_and_a_ledger_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    nothing = ledger.Contents([], [], [])
    assert ledger.read(tmp_path / "none") == ledger.read(tmp_path) == nothing
    file = tmp_path / "file"
    file.write_bytes(b"")
    assert ledger.read(file) == nothing
    with pytest.raises(ImageReadError, match=r"Ledger of '.*' cannot be read: "):
        ledger.read("a\0b")
    (tmp_path / ledger.LEDGER_NAME).mkdir()
    with pytest.raises(ImageReadError, match=f"Ledger '{tmp_path}/{ledger.LEDGER_NAME}' cannot be read: .*: remove it"):
        ledger.read(tmp_path)


def test_a_resumed_batch_reads_its_ledger_once(photos: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("batch", photos, "-o", out, "--channels", "each", "--resume")
    assert edgeconv(*words, "--method", "opencv").code == 0
    read, opened = ledger.open_regular, []
    monkeypatch.setattr(ledger, "open_regular", lambda path: opened.append(path) or read(path))
    done = edgeconv(*words)
    assert "2 unchanged" in done.text
    assert "opencv on cpu (as in the earlier run" in done.text
    assert opened == [str(out / ledger.LEDGER_NAME)]


def test_a_ledger_can_be_kept_elsewhere(photos: Path, out: Path) -> None:
    place = out.parent / "records" / "here"
    done = edgeconv("batch", photos, "-o", out, *RULES, "--ledger", place)
    assert f"ledger    {place / ledger.LEDGER_NAME}" in done.text
    assert [path.suffix for path in out.iterdir()] == [".png", ".png"]
    assert edgeconv("verify", out).code == 2
    assert "2 of 2 outputs" in edgeconv("verify", out, "--ledger", place).text
    again = edgeconv("batch", photos, "-o", out, *RULES, "--ledger", place, "--resume", "--json")
    assert json.loads(again.text)["skipped"] == 2


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
@pytest.mark.parametrize("back", ["a link", "a hard link", "a copy", "nothing"])
def test_a_ledger_that_is_moved_while_it_is_open_is_noticed_whatever_takes_its_name(tmp_path: Path, back: str) -> None:
    path, moved = tmp_path / ledger.LEDGER_NAME, tmp_path / "moved"
    refused = pytest.raises(ImageWriteError, match="was moved, replaced or removed")
    with nullcontext() if back == "a hard link" else refused, opened_ledger(tmp_path) as book:
        book.append(a_row("a.png"))
        path.rename(moved)
        if back == "a link":
            path.symlink_to(moved)
        elif back == "a hard link":
            path.hardlink_to(moved)
        elif back == "a copy":
            path.write_bytes(moved.read_bytes())
        book.append(a_row("b.png"))
