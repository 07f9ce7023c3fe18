"""An output folder that somebody else filled: its ledger and its links lead to nothing outside, and nothing waits."""

from __future__ import annotations

import json
import os
import random
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from batch_folders import SUFFIX, contents, run_here, settings_for
from command import edgeconv
from problems import random_image

from edgeconv.batch import ledger
from edgeconv.batch.ledger import PreviousResults
from edgeconv.batch.settings import ALL
from edgeconv.batch.verify import verify
from edgeconv.core.request import make_request
from edgeconv.difference import folders
from edgeconv.errors import EdgeconvError, ImageReadError, ImageWriteError
from edgeconv.io.contained_paths import foreign_reason
from edgeconv.io.encoding import write_image
from edgeconv.run.job import Job
from edgeconv.run.picture import run_picture

OUTSIDE = (
    "../secret.png",
    "deep/../../secret.png",
    "/etc/hostname",
    "/dev/zero",
    "",
    ".",
    "deep/",
    "a\0.png",
    "\ud800",
)
"""Names that are not those of plain files inside a folder."""


@pytest.fixture
def out(photos: Path) -> Path:
    """An output folder with two good outputs, beside a file that is nobody else's business."""
    (photos.parent / "secret.png").write_bytes(b"secret")
    run_here([photos], photos.parent / "edges")
    return photos.parent / "edges"


@pytest.fixture
def opened() -> Iterator[list[str]]:
    """Names of all that is opened while the test runs."""
    seen: list[str] = []
    at_work = True

    def note(event: str, words: tuple[Any, ...]) -> None:
        if at_work and event == "open" and isinstance(words[0], str):
            seen.append(os.path.basename(words[0]))

    sys.addaudithook(note)
    yield seen
    at_work = False


def add_row(out: Path, **fields: Any) -> None:
    """Append the ledger's first row with other fields."""
    book = out / ledger.LEDGER_NAME
    row = json.loads(book.read_bytes().splitlines()[0]) | fields
    with book.open("ab") as stream:
        stream.write(json.dumps(row).encode() + b"\n")


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_row_that_names_what_is_outside_is_reported_and_never_opened(out: Path, name: str, opened: list[str]) -> None:
    add_row(out, output=name, output_sha256=ledger.sha256_of(b"secret"))
    found = verify(out).findings
    assert [(finding.output, finding.state) for finding in found][2:] == [(name, "foreign")]
    assert {finding.state for finding in found[:2]} == {"same"}
    assert f"a{SUFFIX}.png" in opened
    assert not {"secret.png", "hostname", "zero"} & set(opened)
    opened.clear()
    assert run_here([out.parent / "photos"], out, resume=True).skipped == 2
    assert opened.count(ledger.LEDGER_NAME) == 2, "it is read once, and opened to be appended to"


def test_verify_says_so_and_ends_with_1(out: Path) -> None:
    for name in ("../secret.png", ""):
        add_row(out, output=name, output_sha256=ledger.sha256_of(b"secret"))
    for damaged, rows in ((1, "1 row of"), (2, "2 rows of")):
        with (out / ledger.LEDGER_NAME).open("ab") as stream:
            stream.write(b"{\n")
        done = edgeconv("verify", out)
        assert (done.code, len(done.error_lines)) == (1, 2), damaged
        assert {"foreign: ../secret.png leads out of the folder", "foreign: '' is empty"} <= {*done.text.splitlines()}
        assert "2 of 4 outputs" in done.text
        assert rows in done.error_lines[0]


def test_plain_names_are_not_foreign() -> None:
    for name in ("a.png", "deep/a.png", "..a", "a..b/...", "\udcff.png", " "):
        assert foreign_reason(name) is None, name


@pytest.mark.parametrize("kind", ["pipe", "link out", "link to a device", "link to nothing outside", "folder", "loop"])
def test_an_output_that_is_no_plain_file_inside_is_not_opened(out: Path, kind: str) -> None:
    place = out / f"a{SUFFIX}.png"
    place.unlink()
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    else:
        targets = {"link out": "../secret.png", "link to a device": "/dev/zero", "loop": place.name}
        place.symlink_to(targets.get(kind, "../new.png"))
    before = contents(out.parent / "photos")
    assert {finding.output for finding in verify(out).findings if finding.state == "same"} == {f"b{SUFFIX}.png"}
    for overwrite in (False, True):
        again = run_here([out.parent / "photos"], out, resume=True, overwrite=overwrite)
        assert (again.done, again.skipped, again.failed) == (0, 1, 1)
        assert place.name in again.failures[0].error
    assert not (out.parent / "new.png").exists()
    assert (out.parent / "secret.png").read_bytes() == b"secret"
    assert contents(out.parent / "photos") == before


def test_a_folder_that_leads_out_gets_no_output(photos: Path) -> None:
    out, elsewhere = photos.parent / "edges", photos.parent / "elsewhere"
    out.mkdir()
    elsewhere.mkdir()
    (out / "deep").symlink_to(elsewhere)
    summary = run_here([photos], out, recursive=True, overwrite=True)
    assert (summary.done, summary.failed) == (2, 1)
    assert "leads out of the folder" in summary.failures[0].error
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("name", [ledger.LEDGER_NAME, "edgeconv-ledger.1-of-2.jsonl", "edgeconv-ledger.lock"])
@pytest.mark.parametrize("kind", ["pipe", "link to a device", "link to a file"])
def test_a_ledger_or_lock_that_is_no_plain_file_is_an_error(photos: Path, name: str, kind: str) -> None:
    out, mine = photos.parent / "edges", photos.parent / "mine.txt"
    out.mkdir()
    mine.write_bytes(b"mine\n")
    if kind == "pipe":
        os.mkfifo(out / name)
    else:
        (out / name).symlink_to("/dev/zero" if kind == "link to a device" else mine)
    commands = [lambda: run_here([photos], out)]
    if name != "edgeconv-ledger.lock":
        share = (1, 2) if "of" in name else ALL
        commands += [lambda: verify(out), lambda: ledger.Ledger(out, share)]
    for command in commands:
        with pytest.raises((ImageReadError, ImageWriteError), match=r"cannot be (read|written)|remove it"):
            command()
    assert mine.read_bytes() == b"mine\n"
    assert contents(out) == {}


def test_a_line_that_never_ends_takes_no_memory_and_hides_no_row(out: Path) -> None:
    book = out / ledger.LEDGER_NAME
    rows = book.read_bytes()
    with book.open("wb") as stream:
        stream.write(rows)
        stream.seek(2**27, os.SEEK_CUR)  # of which a file system keeps nothing
        stream.write(b"\n" + rows.splitlines(keepends=True)[0])
    tracemalloc.start()
    try:
        assert len(ledger.read(out).rows) == 3
        assert ledger.read(out).damaged == [(str(book), 3)]
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


HOSTILE_VALUES = (None, True, -1, 10**30, 1.5, "", "\0", "\ud800", "../x", "/dev/zero", "x" * 5000, [], [[]], [1], {})


def test_no_row_whatever_it_holds_ends_anything_with_an_internal_error(out: Path) -> None:
    """Every field of a row in turn takes values of every kind; whatever comes of it is a result or our own error."""
    book = out / ledger.LEDGER_NAME
    good = book.read_bytes()
    fields = list(json.loads(good.splitlines()[0]))
    draw = random.Random(14)
    rows = [{field: value} for field in fields for value in HOSTILE_VALUES]
    rows += [{field: draw.choice(HOSTILE_VALUES) for field in draw.sample(fields, 4)} for _ in range(200)]
    base = [json.loads(line) for line in good.splitlines()]
    book.write_bytes(good + b"".join(json.dumps(draw.choice(base) | row).encode() + b"\n" for row in rows))
    verify(out)
    PreviousResults(ledger.read(out).rows, settings_for(out))
    try:
        summary = run_here([out.parent / "photos"], out, resume=True, retry_failed=True)
        assert not any("Error" in failure.error for failure in summary.failures)
    except EdgeconvError as error:
        pytest.fail(f"rows alone stop nothing: {error}")


@pytest.mark.parametrize("kind", ["pipe", "deep"])
def test_a_run_waits_for_no_pipe_where_its_report_goes(tmp_path: Path, kind: str) -> None:
    write_image(random_image(20, 30, "uint8"), tmp_path / "a.png")
    if kind == "pipe":
        os.mkfifo(tmp_path / "b.json")
    else:
        (tmp_path / "b.json").write_bytes(b"[" * 100_000)
    wanted = Job(str(tmp_path / "a.png"), make_request(), "reference", output=str(tmp_path / "b.png"), samples=0)
    with pytest.raises(ImageWriteError, match="exists"):
        run_picture(wanted)


def test_a_baseline_is_not_updated_through_a_link_that_leads_out(tmp_path: Path) -> None:
    baseline, new, elsewhere = tmp_path / "baseline", tmp_path / "new", tmp_path / "elsewhere"
    for folder in (baseline, new / "deep", elsewhere):
        folder.mkdir(parents=True)
    write_image(random_image(9, 9, "uint8", 1), elsewhere / "a.png")
    write_image(random_image(9, 9, "uint8", 2), new / "deep" / "a.png")
    (baseline / "deep").symlink_to(elsewhere)
    before = (elsewhere / "a.png").read_bytes()
    with pytest.raises(ImageWriteError, match="leads out"):
        folders.accept(baseline, new, [folders.Pair("deep/a.png", "new")])
    assert (elsewhere / "a.png").read_bytes() == before
