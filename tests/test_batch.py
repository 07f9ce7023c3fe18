"""`edgeconv batch`: which pictures go where, under which names, and what is said about them."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path, PurePosixPath

import numpy as np
import pytest
from batch_folders import RULES, SUFFIX, contents
from command import edgeconv
from picture_files import noisy, png
from problems import random_image

import edgeconv as package
from edgeconv.batch import ledger, tasks
from edgeconv.batch.stores import Task
from edgeconv.batch.summary import BatchSummary, PictureResult
from edgeconv.io.image import read_image, write_image

LINKS = pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")


def test_outputs_keep_the_shape_of_the_folder_and_hold_the_edges(photos: Path, out: Path) -> None:
    done = edgeconv("batch", photos, "-o", out, "--recursive", *RULES, "--json")
    assert (done.code, done.err) == (0, "")
    assert set(contents(out)) == {f"a{SUFFIX}.png", f"b{SUFFIX}.png", f"deep/a{SUFFIX}.png"}
    for source, output in (("a.png", f"a{SUFFIX}.png"), ("deep/a.png", f"deep/a{SUFFIX}.png")):
        expected = package.convolve(read_image(photos / source).pixels, channels="each", method="reference")
        assert np.array_equal(read_image(out / output).pixels, expected)
    summary = json.loads(done.text)
    assert (summary["pictures"], summary["done"], summary["failed"]) == (3, 3, 0)
    assert summary["stage_seconds"]["decode"] > 0


def test_without_recursive_only_the_folder_itself(photos: Path, out: Path) -> None:
    assert edgeconv("batch", photos, "-o", out, *RULES).code == 0
    assert set(contents(out)) == {f"a{SUFFIX}.png", f"b{SUFFIX}.png"}


def test_the_list_of_pictures_can_come_from_standard_input(photos: Path, out: Path) -> None:
    listed = f"{photos / 'a.png'}\r\n\n{photos / 'b.tiff'}".encode()
    assert edgeconv("batch", "--files-from", "-", "-o", out, *RULES, stdin=listed).code == 0
    assert set(contents(out)) == {f"a{SUFFIX}.png", f"b{SUFFIX}.png"}


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
    assert {row.status for row in ledger.read_rows(out)} == {"done", "failed"}
    assert edgeconv("batch", photos / "gone.png", photos / "a.png", "-o", out, *RULES).code == 2  # a slip of the pen


def test_names_can_hold_the_size(photos: Path, out: Path) -> None:
    assert (
        edgeconv("batch", photos, "-o", out, *RULES, "--stride", 2, "--name", "{stem}-{width}x{height}{ext}").code == 0
    )
    assert set(contents(out)) == {"a-15x10.png", "b-15x11.png"}
    filled = ("--name", "{{{stem!s:_>3}}}-{width:04d}x{height:04}{ext}")
    assert edgeconv("batch", photos, "-o", photos / "filled", *RULES, *filled).code == 0
    assert set(contents(photos / "filled")) == {"{__a}-0030x0020.png", "{__b}-0030x0021.png"}


def test_shares_are_disjoint_and_together_complete(photos: Path, out: Path) -> None:
    for share in ("1/2", "2/2"):
        assert edgeconv("batch", photos, "-r", "-o", out, *RULES, "--shard", share).code == 0
    assert sorted(Path(row.input).name for row in ledger.read_rows(out)) == ["a.png", "a.png", "b.tiff"]


@pytest.mark.parametrize(
    ("name", "folder"),
    [("a.png", ""), ("a.png", "one"), ("a.png", "one/two"), ("b.png", "one"), ("é 1.png", "ü"), ("odd\udce9.png", "")],
)
def test_a_share_is_the_hash_of_the_name_with_its_folders(name: str, folder: str) -> None:
    """For ever the same, as jobs of one array may run under several versions."""
    told = f"{folder}/{name}" if folder else name
    digest = hashlib.sha256(told.encode("utf-8", "backslashreplace")).hexdigest()
    for count in (1, 2, 5, 1000):
        expected = int(digest, 16) % count + 1
        assert [share for share in range(1, count + 1) if tasks.shard([task(name, folder)], share, count)] == [expected]


@LINKS
def test_two_names_of_one_file_give_two_outputs_and_both_are_passed_over_later(photos: Path, out: Path) -> None:
    for name in ("cat.png", "dog.png"):
        (photos / name).symlink_to(photos / "deep" / "a.png")
    given = ("batch", photos, photos / "a.png", "-o", out, *RULES, "--resume", "--json")
    for counts in ((4, 0), (0, 4)):
        summary = json.loads(edgeconv(*given).text)
        assert (summary["done"], summary["skipped"]) == counts
    assert set(contents(out)) == {f"{stem}{SUFFIX}.png" for stem in ("a", "b", "cat", "dog")}
    (out / f"cat{SUFFIX}.png").unlink()
    summary = json.loads(edgeconv(*given).text)
    assert (summary["done"], summary["skipped"]) == (1, 3)


@LINKS
def test_a_link_to_a_folder_is_not_searched_and_that_is_said(photos: Path, out: Path) -> None:
    (photos / "elsewhere").symlink_to(photos / "deep")
    done = edgeconv("batch", photos, "-r", "-o", out, *RULES, "--json")
    assert (done.code, json.loads(done.text)["done"], len(done.error_lines)) == (0, 3, 1)
    assert str(photos / "elsewhere") in done.err
    assert edgeconv("batch", photos, "-o", photos.parent / "more", *RULES).err == ""  # no deeper folder was meant


@pytest.mark.parametrize("format", ["jpg", "webp"])
def test_quality_trades_bytes_for_detail_and_counts_as_a_parameter(photos: Path, out: Path, format: str) -> None:
    sizes = []
    for quality in (95, 20):
        given = ("--format", format, "--quality", quality, "--overwrite", "--resume", "--json")
        assert json.loads(edgeconv("batch", photos, "-o", out, *RULES, *given).text)["done"] == 2
        sizes.append((out / f"a{SUFFIX}.{format}").stat().st_size)
    assert sizes[0] > 1.5 * sizes[1]


def test_the_level_of_png_trades_time_for_bytes_and_counts_as_a_parameter(photos: Path, out: Path) -> None:
    write_image(np.tile(random_image(20, 30, "uint8"), (10, 10, 1)), photos / "a.png")
    sizes, pixels = [], []
    for level in ((), ("--png-level", 0), ("--png-level", 1), ("--png-level", 9)):
        done = edgeconv("batch", photos, "-o", out, *RULES, *level, "--overwrite", "--resume", "--json")
        assert json.loads(done.text)["done"] == 2, done.err
        sizes.append((out / f"a{SUFFIX}.png").stat().st_size)
        pixels.append(read_image(out / f"a{SUFFIX}.png").pixels)
    default, stored, fastest, smallest = sizes
    assert default == fastest
    assert smallest < fastest < stored
    assert all(np.array_equal(pixels[0], other) for other in pixels[1:])


def test_what_decoding_drops_is_said_and_kept(photos: Path, out: Path) -> None:
    write_image(random_image(9, 9, "uint8")[:, :, 0], photos / "grey.png")
    write_image(random_image(9, 9, "uint8")[:, :, 1], photos / "pale.png")
    (photos / "clear.png").write_bytes(png(np.dstack([noisy(), noisy()[:, :, :1]])))
    for seen in ("done", "unchanged since an earlier run"):
        done = edgeconv("batch", photos, "-o", out, *RULES, "--resume", "--rgb")
        assert done.code == 0
        assert f"5 {seen}" in done.text
        assert "grey spread to three channels: 2" in done.text
        assert "alpha channel dropped: 1" in done.text
    notes = {Path(row.input).name: row.notes for row in ledger.read_rows(out)}
    assert notes["clear.png"] == ("alpha channel dropped",)
    assert notes["a.png"] == ()


def test_the_stage_that_takes_most_of_the_time_is_said() -> None:
    summary = BatchSummary(4, 2, "reference", "cpu", "", "", failed=2)
    seconds = {"read": 0.01, "decode": 1.0, "convolve": 0.49, "encode": 2.5}
    summary.count(PictureResult("a.png", "done", stage_seconds=seconds), 2.0)
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


def test_a_name_that_ends_in_a_suffix_says_the_format(photos: Path, out: Path) -> None:
    assert edgeconv("batch", photos, "-o", out, *RULES, "--name", "{stem}.BMP").code == 0
    assert all(data.startswith(b"BM") for data in contents(out).values())
    assert edgeconv("batch", photos, "-o", out, *RULES, "--name", "{stem}.tif", "--format", "tiff").code == 0


def task(source: str, folder: str = "") -> Task:
    return Task(source, PurePosixPath(folder), f"/{source}")
