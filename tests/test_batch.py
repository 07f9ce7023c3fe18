"""`edgeconv batch`: which pictures go where, under which names, and what is said about them.

Odd names, unreadable folders and damaged files cost a row in the ledger each, and no other picture anything.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest
from batch_folders import RULES, SUFFIX, a_row, contents, run_here, settings_for
from command import edgeconv
from damaged import BAD_FILES
from problems import random_image, save_image

import edgeconv as package
from edgeconv.batch import ledger, process, tasks
from edgeconv.batch.names import Names, refuse_device_name
from edgeconv.batch.stores import Task
from edgeconv.batch.summary import BatchSummary, PictureResult
from edgeconv.core.request import make_request
from edgeconv.errors import ImageWriteError
from edgeconv.io.reading import read_image
from edgeconv.options import DEFAULT_NAME

A, B = f"a{SUFFIX}.png", f"b{SUFFIX}.png"
SOBEL = make_request("sobel", stride=3)


def named(template: str = DEFAULT_NAME) -> Names:
    return Names(settings_for("/out", name=template, method="sliding", request=SOBEL))


def task(source: str, folder: str = ".", problem: str | None = None) -> Task:
    return Task(source, PurePosixPath(folder), f"/in/{source}", problem)


# --- which pictures --------------------------------------------------------------------------------------------------


def test_outputs_keep_the_shape_of_the_folder_and_hold_the_edges(photos: Path, out: Path) -> None:
    done = edgeconv("batch", photos, "-o", out, "--recursive", *RULES, "--json")
    assert (done.code, done.err) == (0, "")
    assert set(contents(out)) == {A, B, f"deep/{A}"}
    for source, output in (("a.png", A), ("deep/a.png", f"deep/{A}")):
        expected = package.convolve(read_image(photos / source).pixels, channels="each", method="reference")
        assert np.array_equal(read_image(out / output).pixels, expected)
    summary = json.loads(done.text)
    assert (summary["pictures"], summary["done"], summary["failed"]) == (3, 3, 0)
    assert summary["stage_seconds"]["decode"] > 0


def test_a_list_of_pictures_can_come_from_standard_input(photos: Path, out: Path) -> None:
    listed = f"{photos / 'a.png'}\r\n\n{photos / 'b.tiff'}".encode()
    assert edgeconv("batch", "--files-from", "-", "-o", out, *RULES, stdin=listed).code == 0
    assert set(contents(out)) == {A, B}


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (b"a.png\nb.png\n", ["a.png", "b.png"]),
        (b"a.png\r\n\r\n \t\nb.png", ["a.png", "b.png"]),
        (b"\xef\xbb\xbfa.png\n", ["a.png"]),
        (b" a.png \n", [" a.png "]),
        (b"\xff.png\n", ["\udcff.png"]),
    ],
)
def test_the_lines_of_a_list(data: bytes, names: list[str], tmp_path: Path) -> None:
    """A mark of its byte order is none of the first name; spaces and bytes that are no text may be of one."""
    (tmp_path / "list.txt").write_bytes(data)
    assert tasks.read_list(tmp_path / "list.txt") == names


def test_what_a_list_names_and_is_not_there_stops_no_other(photos: Path) -> None:
    out, listed = photos.parent / "edges", photos.parent / "list.txt"
    listed.write_text(f"{photos / 'gone.png'}\n{photos / 'a.png'}\n", encoding="utf-8")
    done = edgeconv("batch", "--files-from", listed, "-o", out, *RULES, "--json")
    assert (done.code, len(done.error_lines), json.loads(done.text)["done"]) == (1, 1, 1), done.err
    assert "gone.png: there is no such file" in done.err
    assert {row.status for row in ledger.read(out).rows} == {"done", "failed"}
    assert edgeconv("batch", photos / "gone.png", photos / "a.png", "-o", out, *RULES).code == 2  # a slip of the pen


def test_shares_are_disjoint_and_together_complete(photos: Path, out: Path) -> None:
    """A share is the hash of the name with its folders, for ever the same."""
    for share in ((1, 2), (2, 2)):
        run_here([photos], out, recursive=True, share=share)
    assert sorted(Path(row.input).name for row in ledger.read(out).rows) == ["a.png", "a.png", "b.tiff"]
    for name, folder in (("a.png", "."), ("a.png", "one/two"), ("é 1.png", "ü"), ("odd\udce9.png", ".")):
        told = name if folder == "." else f"{folder}/{name}"
        digest = int(hashlib.sha256(told.encode("utf-8", "backslashreplace")).hexdigest(), 16)
        for count in (1, 2, 5, 1000):
            taken = [share for share in range(1, count + 1) if tasks.shard([task(name, folder)], share, count)]
            assert taken == [digest % count + 1]


def test_a_link_to_a_folder_is_not_searched_and_that_is_said(photos: Path, out: Path) -> None:
    (photos / "elsewhere").symlink_to(photos / "deep")
    done = edgeconv("batch", photos, "-r", "-o", out, *RULES, "--json")
    assert (done.code, json.loads(done.text)["done"], len(done.error_lines)) == (0, 3, 1)
    assert str(photos / "elsewhere") in done.err
    assert edgeconv("batch", photos, "-o", photos.parent / "more", *RULES).err == ""  # no deeper folder was meant


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "made"),
    [
        (("--stride", 2, "--name", "{stem}-{width}x{height}{ext}"), {"a-15x10.png", "b-15x11.png"}),
        (
            ("--name", "{{{stem!s:_>3}}}-{width:04d}x{height:04}{ext}"),
            {"{__a}-0030x0020.png", "{__b}-0030x0021.png"},
        ),
        (("--name", "{stem}.BMP"), {"a.BMP", "b.BMP"}),
        (("--name", "{stem}.tif", "--format", "tiff"), {"a.tif", "b.tif"}),
    ],
)
def test_names_are_made_of_fields_and_end_in_the_suffix_of_a_format(
    photos: Path, out: Path, words: tuple[Any, ...], made: set[str]
) -> None:
    assert edgeconv("batch", photos, "-o", out, *RULES, *words).code == 0
    assert set(contents(out)) == made
    begins = {".png": b"\x89PNG", ".BMP": b"BM", ".tif": b"II"}
    assert all(data.startswith(begins[Path(name).suffix]) for name, data in contents(out).items())


@pytest.mark.parametrize(
    ("one", "other", "collide"),
    [
        (task("a.png"), task("a.jpg"), True),
        (task("a.png"), task("A.PNG"), True),
        (task("\u00e9.png"), task("E\u0301.jpg"), True),
        (task("a.png"), task("b.jpg"), False),
        (task("a.png"), task("a.jpg", "deep"), False),
        (task("a.png", "Deep"), task("a.jpg", "deep"), True),
        (task("a.png"), task("a.jpg", problem="is a pipe"), False),
        (task("a.png", problem="is a pipe"), task("a.jpg"), False),
    ],
)
def test_two_outputs_of_one_name(one: Task, other: Task, collide: bool) -> None:
    if not collide:
        named().refuse_collisions([one, other])
        return
    with pytest.raises(ImageWriteError) as raised:
        named().refuse_collisions([one, other])
    way_out = "rename one" if other.path.suffix == ".PNG" else "pass --name '{stem}{source_ext}_"
    where = PurePosixPath("/out") / other.folder / f"{other.path.stem}_sobel_sliding_s3"
    assert str(raised.value).startswith(f"{other.source} and {one.source} would both be written to {where}: {way_out}")


# --- how they are encoded, and what is said --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        [{"format": "jpg", "quality": quality} for quality in (95, 20)],
        [{"format": "webp", "quality": quality} for quality in (95, 20)],
        [{"png_level": level} for level in (0, None, 9)],
    ],
    ids=["JPEG", "WebP", "PNG"],
)
def test_quality_and_level_trade_bytes_and_count_as_parameters(
    photos: Path, out: Path, given: list[dict[str, Any]]
) -> None:
    save_image(np.tile(random_image(20, 30, "uint8"), (10, 10, 1)), photos / "a.png")
    sizes = []
    for settings in given:
        assert run_here([photos], out, overwrite=True, resume=True, **settings).done == 2
        sizes.append((out / A).with_suffix(f".{settings.get('format', 'png')}").stat().st_size)
    assert sizes == sorted(set(sizes), reverse=True)


def test_the_stage_that_takes_most_of_the_time_is_said() -> None:
    summary = BatchSummary(4, 2, "reference", "cpu", "", "", failed=2)
    seconds = {"read": 0.01, "decode": 1.0, "convolve": 0.49, "encode": 2.5}
    summary.count(PictureResult(a_row("a.png"), stage_seconds=seconds), 2.0)
    assert summary.note == "2 failed, mostly encode"
    assert summary.pictures_per_second == 0.5


@pytest.mark.parametrize(("option", "failed"), [(["--fail-fast"], 1), (["--max-failures", "2"], 2)])
def test_a_limit_of_failures_stops_the_batch(photos: Path, out: Path, option: list[str], failed: int) -> None:
    for index in range(6):
        (photos / f"{index}.png").write_bytes(b"no")
    done = edgeconv("batch", photos, "-o", out, *RULES, "--jobs", 1, "--json", *option)
    summary = json.loads(done.text)
    assert done.code == 1
    assert summary["failed"] == failed
    assert summary["stopped_because"] == f"{failed} failed"


# --- what is passed over ---------------------------------------------------------------------------------------------


OTHERS = ("a.psd", "b.PSD", "deep/c.psd", "d.heic", "README", "deep/e.svg", "tail.\x1b[31m")
SAID = "3 .psd, 1 .\\u001b[31m, 1 .heic, 1 .svg, 1 without a suffix"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: a picture in `photos`, beside files of other kinds."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos" / "deep").mkdir(parents=True)
    for name in (*OTHERS, ".hidden.psd"):
        (tmp_path / "photos" / name).write_bytes(b"8BPS")
    save_image(random_image(20, 30, "uint8"), "photos/one.png")
    return tmp_path


def test_files_of_other_kinds_are_said_and_counted(folder: Path) -> None:
    done = edgeconv("batch", "photos", "-r", "-o", "out", *RULES)
    assert (done.code, done.error_lines) == (0, [f"edgeconv: skipped, as edgeconv does not read such files: {SAID}"])
    assert [line for line in done.text.splitlines() if line.startswith("skipped ")] == [f"skipped   {SAID}"]
    flat = edgeconv("batch", "photos", "-o", "flat", *RULES, "--json")
    assert json.loads(flat.text)["passed_over"] == {".psd": 2, ".heic": 1, "": 1, ".\x1b[31m": 1}
    (folder / "photos" / "one.png").unlink()
    nothing = edgeconv("batch", "photos", "-r", "-o", "out", *RULES)
    assert (nothing.code, len(nothing.error_lines)) == (2, 1)
    assert f"({SAID} are there)" in nothing.err


def test_our_own_ledger_and_locks_are_no_files_of_another_kind(photos: Path) -> None:
    for name in ("edgeconv-ledger-0123456789abcdef-01234567.lock", "edgeconv-ledger.lock"):
        (photos / name).touch()
    assert tasks.find(tasks.Inputs([photos]), "out").passed_over == {}
    for words in ([], ["--resume"]):
        done = edgeconv("batch", photos, "-o", photos, *RULES, *words)
        assert (done.code, done.err) == (0, "")
        assert "skipped " not in done.text


def test_one_stem_in_two_formats_is_refused_with_a_way_out_that_works(folder: Path) -> None:
    save_image(random_image(20, 30, "uint8", 7), "photos/one.bmp")
    (folder / "photos" / "two.png").symlink_to("one.png")
    (folder / "photos" / "two.bmp").symlink_to("one.png")  # two names of one file, that differ in the suffix alone
    refused = edgeconv("batch", "photos", "-o", "out", *RULES)
    assert refused.code == 2
    way_out = "{stem}{source_ext}_{filter}{rules}_{method}_s{stride}{ext}"
    assert f"pass --name '{way_out}'" in refused.err
    assert not Path("out").exists()
    expected = {f"{name}_sobel_reference_s1.png" for name in ("one.png", "one.bmp", "two.png", "two.bmp")}
    for words, state in (([], "done"), (["--resume"], "skipped")):
        done = edgeconv("batch", "photos", "-o", "out", *RULES, "--name", way_out, "--json", *words)
        assert done.code == 0
        assert json.loads(done.text)[state] == len(expected)
        assert set(contents(Path("out"))) == expected
    assert len(ledger.read("out").rows) == len(expected)


def test_outputs_of_earlier_batches_are_no_inputs(folder: Path) -> None:
    """As `batch .` finds them, in folders with a ledger."""
    save_image(random_image(20, 30, "uint8"), "photo.png")
    assert edgeconv("batch", "photo.png", "-o", "first", *RULES).code == 0
    assert edgeconv("batch", "photo.png", "-o", "first/below", *RULES).code == 0
    save_image(random_image(20, 30, "uint8"), "first/new.png")
    done = edgeconv("batch", ".", "-r", "-o", "second", *RULES, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.text)["earlier_outputs"] == 2
    made = {name.replace("_sobel_reference_s1", "") for name in contents(Path("second"))}
    assert made == {"photo.png", "first/new.png", "photos/one.png"}
    named = edgeconv("batch", "first/photo_sobel_reference_s1.png", "-o", "third", *RULES, "--json")
    assert json.loads(named.text)["done"] == 1


def test_a_ledger_from_elsewhere_hides_nothing_outside_its_folder(folder: Path) -> None:
    save_image(random_image(20, 30, "uint8"), "photo.png")
    Path("strange").mkdir()
    row = edgeconv("batch", "photo.png", "-o", "ours", *RULES)
    assert row.code == 0
    (written,) = ledger.read("ours").rows
    text = (Path("ours") / ledger.LEDGER_NAME).read_text(encoding="utf-8").replace(written.output, "../photo.png")
    (Path("strange") / ledger.LEDGER_NAME).write_text(text, encoding="utf-8")
    done = edgeconv("batch", ".", "-r", "-o", "new", *RULES, "--json")
    assert json.loads(done.text)["done"] == 2, done.err  # photo.png and photos/one.png, not what `ours` holds


# --- odd names, folders and files ------------------------------------------------------------------------------------


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
    assert len(list(ledger.read(out).rows)) == len(BAD_FILES) + 2


def test_a_name_that_is_not_utf8_is_kept_byte_for_byte(photos: Path) -> None:
    odd = photos / os.fsdecode(b"\xff\xe9 \xe2\x82\xac.png")
    save_image(random_image(9, 9, "uint8"), odd)
    out, listed = photos.parent / "edges", photos.parent / "list.txt"
    done = edgeconv("batch", photos, "-o", out, *RULES, "--json")
    assert (done.code, json.loads(done.text)["done"]) == (0, 3), done.err
    rows = {row.input: row for row in ledger.read(out).rows}
    assert Path(str(rows[str(odd)].output)).stem == f"{odd.stem}{SUFFIX}"
    assert edgeconv("verify", out).code == 0
    listed.write_bytes(os.fsencode(odd))
    again = edgeconv("batch", "--files-from", listed, "-o", out, *RULES, "--resume", "--json")
    assert (again.code, json.loads(again.text)["skipped"]) == (0, 1)


def test_a_name_that_grows_too_long_fails_alone(photos: Path, out: Path) -> None:
    long = "x" * 250 + ".png"
    save_image(random_image(9, 9, "uint8"), photos / long)
    done = edgeconv("batch", photos, photos / ("y" * 300), "-o", out, *RULES)
    assert (done.code, len(done.error_lines)) == (1, 2), done.err
    assert set(contents(out)) == {f"a{SUFFIX}.png", f"b{SUFFIX}.png"}
    assert {row.status for row in ledger.read(out).rows if len(Path(row.input).name) > 200} == {"failed"}


def test_whatever_goes_wrong_with_one_picture_fails_alone(
    photos: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decode = process.decode_image

    def decode_or_fail(data: bytes, name: str, *rules: Any, **more: Any) -> Any:
        if name.endswith("a.png"):
            raise ZeroDivisionError("of a kind\nthat nobody thought of")
        return decode(data, name, *rules, **more)

    monkeypatch.setattr(process, "decode_image", decode_or_fail)
    summary = run_here([photos], out)
    assert (summary.done, summary.failed) == (1, 1)
    (row,) = (row for row in ledger.read(out).rows if row.status == "failed")
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
    assert run_here([photos], out.with_name("flat")).failed == 0, "nothing of that folder was wanted"
    summary = run_here([photos], out, recursive=True)
    assert (summary.pictures, summary.done, summary.failed) == (3, 2, 1)
    (row,) = (row for row in ledger.read(out).rows if row.status == "failed")
    assert row.input == str(photos / "deep")
    assert "cannot be listed" in str(row.error)


def test_a_pipe_with_a_pictures_name_fails_and_is_not_waited_for(photos: Path, out: Path) -> None:
    os.mkfifo(photos / "endless.png")
    (photos / "linked.png").symlink_to(photos / "endless.png")
    done = edgeconv("batch", photos, "-o", out, *RULES, "--json")
    summary = json.loads(done.text)
    assert (done.code, summary["done"], summary["failed"]) == (1, 2, 2)
    assert all("is a pipe" in failure["error"] for failure in summary["failures"])


@pytest.mark.parametrize(
    ("name", "is_refused"),
    [("NUL.png", True), ("com1.a.png", True), ("Con", True), ("CON_x.png", False), ("COM10.png", False), ("a", False)],
)
def test_an_output_is_not_named_like_a_device_of_windows(name: str, is_refused: bool) -> None:
    if not is_refused:
        refuse_device_name(name)
        return
    with pytest.raises(ImageWriteError, match="reserves that name"):
        refuse_device_name(name)
