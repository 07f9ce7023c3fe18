"""`edgeconv batch`: nothing lost, whatever happens in the middle."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from command import PROJECT, edgeconv
from damaged import BAD_FILES
from problems import random_image

import edgeconv as package
from edgeconv.batch import ledger, plan
from edgeconv.devices import get_device
from edgeconv.errors import ImageReadError, ImageWriteError, UsageError
from edgeconv.image import read_image, write_image

RULES = ("--method", "reference", "--channels", "each")
SUFFIX = "_laplacian8_reference_s1"


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Three pictures in a folder, one of them deeper."""
    folder = tmp_path / "photos"
    (folder / "deep").mkdir(parents=True)
    for seed, name in enumerate(("a.png", "b.tiff", "deep/a.png")):
        write_image(random_image(20 + seed, 30, "uint8", seed), folder / name)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Every output by relative name, the ledger left out."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != ledger.LEDGER_NAME)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_outputs_keep_the_shape_of_the_folder_and_hold_the_edges(photos: Path) -> None:
    out = photos.parent / "edges"
    done = edgeconv("batch", photos, "-o", out, "--recursive", *RULES, "--json")
    assert (done.code, done.err) == (0, "")
    assert set(contents(out)) == {f"a{SUFFIX}.png", f"b{SUFFIX}.png", f"deep/a{SUFFIX}.png"}
    for source, output in (("a.png", f"a{SUFFIX}.png"), ("deep/a.png", f"deep/a{SUFFIX}.png")):
        expected = package.convolve(read_image(photos / source).pixels, channels="each", method="reference")
        assert np.array_equal(read_image(out / output).pixels, expected)
    summary = json.loads(done.text)
    assert (summary["pictures"], summary["done"], summary["failed"]) == (3, 3, 0)
    assert summary["stage_seconds"]["decode"] > 0


def test_without_recursive_only_the_folder_itself(photos: Path) -> None:
    assert edgeconv("batch", photos, "-o", photos.parent / "edges", *RULES).code == 0
    assert set(contents(photos.parent / "edges")) == {f"a{SUFFIX}.png", f"b{SUFFIX}.png"}


def test_the_ledger_tells_every_pictures_fate(photos: Path) -> None:
    (photos / "bad.png").write_bytes(b"not a picture")
    out = photos.parent / "edges"
    done = edgeconv("batch", photos, "-o", out, *RULES)
    assert done.code == 1
    assert "bad.png" in done.err
    rows = {Path(row.input).name: row for row in ledger.read_rows(out)}
    assert {name: row.status for name, row in rows.items()} == {"a.png": "done", "b.tiff": "done", "bad.png": "failed"}
    good = rows["a.png"]
    assert good.input_sha256 == ledger.sha256_of((photos / "a.png").read_bytes())
    assert good.output_sha256 == ledger.sha256_of((out / str(good.output)).read_bytes())
    assert rows["bad.png"].output is None
    assert "is not a picture" in str(rows["bad.png"].error)


def test_resume_passes_over_what_is_done_and_unchanged(photos: Path) -> None:
    out = photos.parent / "edges"

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


def test_failed_pictures_are_tried_again_only_when_asked(photos: Path) -> None:
    out = photos.parent / "edges"
    (photos / "bad.png").write_bytes(b"not a picture")
    edgeconv("batch", photos, "-o", out, *RULES)
    again = edgeconv("batch", photos, "-o", out, *RULES, "--resume", "--json")
    assert (again.code, json.loads(again.text)["failed"]) == (1, 1)
    assert len(list(ledger.read_rows(out))) == 3
    edgeconv("batch", photos, "-o", out, *RULES, "--retry-failed")
    assert len(list(ledger.read_rows(out))) == 4


def test_a_folder_of_every_damaged_file_loses_no_good_one(photos: Path) -> None:
    for index, bad in enumerate(BAD_FILES):
        (photos / f"bad{index}_{bad.name}").write_bytes(bad.data)
    listed = photos.parent / "all.txt"
    listed.write_text("\n".join(str(path) for path in sorted(photos.iterdir()) if path.is_file()), encoding="utf-8")
    out = photos.parent / "edges"
    done = edgeconv("batch", "--files-from", listed, "-o", out, *RULES, "--name", "{stem}{ext}", "--json")
    summary = json.loads(done.text)
    assert done.code == 1
    assert (summary["done"], summary["failed"]) == (2, len(BAD_FILES))
    assert set(contents(out)) == {"a.png", "b.png"}
    assert len(list(ledger.read_rows(out))) == len(BAD_FILES) + 2


@pytest.mark.parametrize(("option", "failed"), [(["--fail-fast"], 1), (["--max-failures", "2"], 2)])
def test_a_limit_of_failures_stops_the_batch(photos: Path, option: list[str], failed: int) -> None:
    for index in range(6):
        (photos / f"{index}.png").write_bytes(b"no")
    done = edgeconv("batch", photos, "-o", photos.parent / "edges", *RULES, "--jobs", 1, "--json", *option)
    summary = json.loads(done.text)
    assert done.code == 1
    assert summary["failed"] == failed
    assert summary["stopped_because"] == f"{failed} failed"


def test_colliding_names_are_found_before_the_first_write(photos: Path) -> None:
    write_image(random_image(8, 8, "uint8"), photos / "A.bmp")
    out = photos.parent / "edges"
    done = edgeconv("batch", photos, "-o", out, *RULES)
    assert (done.code, len(done.error_lines)) == (2, 1)
    assert "A.bmp" in done.err
    assert "a.png" in done.err
    assert not out.exists()


def test_nothing_foreign_is_overwritten_and_ones_own_is_left_when_equal(photos: Path) -> None:
    out = photos.parent / "edges"
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


def test_inputs_are_never_overwritten(photos: Path) -> None:
    write_image(random_image(9, 9, "uint8"), photos / "b.png")
    (photos / "b.tiff").unlink()
    before = contents(photos)
    done = edgeconv("batch", photos, "-o", photos, *RULES, "--name", "{stem}{ext}", "--overwrite")
    assert done.code == 1
    assert contents(photos) == before


def test_names_can_hold_the_size(photos: Path) -> None:
    out = photos.parent / "edges"
    assert (
        edgeconv("batch", photos, "-o", out, *RULES, "--stride", 2, "--name", "{stem}-{width}x{height}{ext}").code == 0
    )
    assert set(contents(out)) == {"a-15x10.png", "b-15x11.png"}


def test_shares_are_disjoint_and_together_complete(photos: Path) -> None:
    out = photos.parent / "edges"
    for share in ("1/2", "2/2"):
        assert edgeconv("batch", photos, "-r", "-o", out, *RULES, "--shard", share).code == 0
    assert sorted(Path(row.input).name for row in ledger.read_rows(out)) == ["a.png", "a.png", "b.tiff"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["--files-from"]),
        (["missing"], ["missing"]),
        (["--files-from", "missing.txt"], ["missing.txt"]),
        ([".", "--name", "x{ext}"], ["{stem}"]),
        ([".", "--name", "{stem}{colour}"], ["{colour}"]),
        ([".", "--name", "{stem"], ["template"]),
        ([".", "--name", "../{stem}"], ["-o"]),
        ([".", "--jobs", "0"], ["--jobs"]),
        ([".", "--shard", "3/2"], ["--shard"]),
        ([".", "--format", "gif"], ["gif", "png"]),
        ([".", "--max-failures", "0"], ["--max-failures"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_words_get_one_line_and_make_nothing(photos: Path, arguments: list[str], words: list[str]) -> None:
    done = edgeconv("batch", *arguments, "-o", "made", cwd=photos)
    assert (done.code, len(done.error_lines)) == (2, 1), done.err
    for word in words:
        assert word in done.err
    assert not (photos / "made").exists()


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ImageReadError, match="No picture"):
        plan.find_tasks([tmp_path], recursive=True)


def test_verify_names_what_is_missing_or_changed(photos: Path) -> None:
    out = photos.parent / "edges"
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


def test_a_broken_last_line_of_the_ledger_hides_no_row(tmp_path: Path) -> None:
    row = ledger.Row("a", 1, "x", "p", "o", 2, "y", "done", 0.1, None)
    with ledger.Ledger(tmp_path) as book:
        book.append(row)
    with (tmp_path / ledger.LEDGER_NAME).open("ab") as stream:
        stream.write(b'{"input": "b", "inp')
    with ledger.Ledger(tmp_path) as book:
        book.append(row)
    assert [found.input for found in ledger.read_rows(tmp_path)] == ["a", "a"]


# --- interruptions ----------------------------------------------------------------------------------------------

MANY = 40


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Enough pictures to be interrupted among."""
    folder = tmp_path / "many"
    folder.mkdir()
    for index in range(MANY):
        write_image(random_image(200, 200, "uint8", index), folder / f"{index:03}.png")
    return folder


def started(folder: Path, out: Path) -> subprocess.Popen[bytes]:
    """A batch that is under way: its ledger has a first row."""
    words = [sys.executable, "-m", "edgeconv", "batch", str(folder), "-o", str(out), *RULES, "--resume", "--jobs", "2"]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    book = out / ledger.LEDGER_NAME
    while process.poll() is None and not (book.exists() and book.stat().st_size):
        time.sleep(0.002)
    return process


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_batch_killed_at_random_moments_resumes_to_the_same_bytes(many: Path) -> None:
    whole, broken = many.parent / "whole", many.parent / "broken"
    assert edgeconv("batch", many, "-o", whole, *RULES).code == 0
    moments = random.Random(7)
    kills = 0
    for _ in range(12):
        process = started(many, broken)
        time.sleep(moments.uniform(0, 0.05))
        process.kill()
        kills += process.wait() == -signal.SIGKILL
    assert kills >= 3
    assert edgeconv("batch", many, "-o", broken, *RULES, "--resume").code == 0
    leftovers = {name for name in contents(broken) if name.startswith(".edgeconv-")}
    assert {name: data for name, data in contents(broken).items() if name not in leftovers} == contents(whole)
    assert edgeconv("verify", broken).code == 0


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_polite_stop_finishes_what_is_in_hand(many: Path, number: signal.Signals) -> None:
    out = many.parent / "out"
    process = started(many, out)
    process.send_signal(number)
    assert process.wait() == 128 + number
    rows = list(ledger.read_rows(out))
    assert 0 < len(rows) < MANY
    assert set(contents(out)) == {row.output for row in rows}
    assert edgeconv("verify", out).code == 0


@pytest.mark.skipif(sys.platform == "win32", reason="resource limits are POSIX")
def test_a_full_disk_is_a_clear_error_with_no_half_file(photos: Path) -> None:
    write_image(random_image(300, 300, "uint8"), photos / "large.png")
    out = photos.parent / "edges"
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000));"
        "from edgeconv.cli import main; main()"
    )
    words = [sys.executable, "-c", code, "batch", str(photos), "-o", str(out), *RULES, "--jobs", "1"]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert [line for line in done.stderr.splitlines() if "large" in line and "cannot be written" in line]
    assert set(contents(out)) == {f"a{SUFFIX}.png", f"b{SUFFIX}.png"}


def test_a_ledger_that_cannot_be_written_stops_everything(photos: Path) -> None:
    out = photos.parent / "edges"
    (out / ledger.LEDGER_NAME).mkdir(parents=True)
    done = edgeconv("batch", photos, "-o", out, *RULES)
    assert (done.code, len(done.error_lines)) == (2, 1)
    assert contents(out) == {}


def test_memory_does_not_grow_with_the_number_of_pictures(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from edgeconv.batch import plan; from edgeconv.batch.pipeline import *;"
        "from edgeconv.request import make_request; from edgeconv.choose import Choice;"
        "folder = Path(sys.argv[1]); tasks = plan.find_tasks([folder], False);"
        "peaks = [];"
        "watch = lambda now: peaks.append(get_device('cpu').peak_bytes());"
        "names = plan.Names(plan.DEFAULT_NAME, 'f', 'm', 1);"
        "choice = Choice('opencv', 'cpu', 'test');"
        "Batch(tasks, Settings(make_request(channels='each'), choice, folder / 'out', names, jobs=2)).run(watch);"
        "print(len(peaks), peaks[len(peaks) // 4], peaks[-1])"
    )
    source = tmp_path / "0000.png"
    write_image(random_image(96, 96, "uint8"), source)
    for index in range(1, 2000):
        os.link(source, tmp_path / f"{index:04}.png")
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    words = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    steps, early, late = map(int, done.stdout.split())
    assert steps > 500
    if get_device("cpu").peak_bytes() is not None:
        assert late - early < 8 * 2**20
    assert len(contents(tmp_path / "out")) == 2000


# --- names and shares, without a process ------------------------------------------------------------------------


def test_collisions_do_not_depend_on_case() -> None:
    tasks = [plan.Task(Path("x/Photo.png"), Path()), plan.Task(Path("y/photo.jpg"), Path())]
    names = plan.Names(plan.DEFAULT_NAME, "sobel", "sliding", 1)
    with pytest.raises(ImageWriteError, match="both be written"):
        plan.refuse_collisions(tasks, Path("out"), names)
    plan.refuse_collisions([tasks[0], plan.Task(Path("y/photo.jpg"), Path("y"))], Path("out"), names)


@pytest.mark.parametrize("text", ["", "1", "0/4", "5/4", "a/b", "1/0"])
def test_a_share_must_be_one_of_the_shares(text: str) -> None:
    with pytest.raises(UsageError):
        plan.parse_shard(text)
