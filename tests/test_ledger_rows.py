"""The ledger piece by piece: names, runs, lines that are no rows, what is found of outputs; in this process."""

from __future__ import annotations

import errno
import hashlib
import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from edgeconv.batch import ledger
from edgeconv.batch.ledger import ALL, Contents, Finding, Ledger, is_ledger_name, open_ledger, place_of
from edgeconv.batch.row import CUT_SHORT, MOST_LINE_BYTES, MOST_RUNS, LedgerRow
from edgeconv.errors import ImageReadError, ImageWriteError
from edgeconv.io import folder_lock

DATA = b"an output"


def row(output: str | None = "a.png", status: Any = "done", digest: str | None = None, **rest: Any) -> LedgerRow:
    return LedgerRow(
        "in.png", 3, "0", "1", output, len(DATA), digest or ledger.sha256_of(DATA), status, 0.5, None, **rest
    )


def write(folder: Path, *lines: bytes, name: str = ledger.LEDGER_NAME) -> None:
    (folder / name).write_bytes(b"".join(lines))


def test_a_hash_is_sha_256() -> None:
    assert ledger.sha256_of(b"abc").startswith("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    assert ledger.sha256_of(memoryview(DATA)) == hashlib.sha256(DATA).hexdigest()


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("edgeconv-ledger.jsonl", True),
        ("edgeconv-ledger.2-of-13.jsonl", True),
        (ledger.SEGMENTS_NAME, True),
        ("edgeconv-ledger.jsonl.bak", False),
        ("my-edgeconv-ledger.jsonl", False),
        ("edgeconv-ledger.-of-3.jsonl", False),
    ],
)
def test_names_of_ledgers(name: str, known: bool) -> None:
    assert is_ledger_name(name) == known


def test_places_of_ledgers() -> None:
    assert place_of("/out") == place_of("/out", ALL) == place_of("/out", (1, 1)) == "/out/edgeconv-ledger.jsonl"
    assert place_of("/out", (2, 3)) == "/out/edgeconv-ledger.2-of-3.jsonl"
    assert place_of("s3://b/out").endswith(f"/{ledger.SEGMENTS_NAME}")
    assert place_of("s3://b/out", (2, 3)).endswith(f"/{ledger.SEGMENTS_NAME}")


@pytest.mark.parametrize(
    ("runs", "following"),
    [((), 1), ((None,), 1), ((1, 4, 2), 5), ((MOST_RUNS - 2,), MOST_RUNS - 1), ((MOST_RUNS - 1,), MOST_RUNS - 1)],
)
def test_each_batch_counts_on_from_those_before(tmp_path: Path, runs: tuple[int | None, ...], following: int) -> None:
    plain = row().to_line(1)
    lines = [plain.replace(b'"run": 1', b'"run": ' + (b"null" if run is None else str(run).encode())) for run in runs]
    write(tmp_path, *lines)
    with open_ledger(str(tmp_path)) as opened:
        opened.append(row("last.png"))
    assert [(each.output, each.run) for each in ledger.read_rows(tmp_path) if each.output == "last.png"] == [
        ("last.png", following)
    ]


def test_what_is_read_of_a_folder(tmp_path: Path) -> None:
    """Rows of all files by their runs, foreign rows and damaged lines apart; a last line without its end is neither."""
    foreign = row("../x.png")
    write(tmp_path, row("b.png").to_line(2), b"what is this\n", foreign.to_line(2), b"\n", b'{"broken')
    write(tmp_path, row("a.png").to_line(1), b"x" + CUT_SHORT + b"\n", name="edgeconv-ledger.1-of-2.jsonl")
    write(tmp_path, row("c.png").to_line(9), name="other.jsonl")
    found = ledger.read(tmp_path)
    assert [each.output for each in found.rows] == ["a.png", "b.png"]
    assert [each.output for each in found.foreign] == ["../x.png"]
    assert found.damaged == [(str(tmp_path / ledger.LEDGER_NAME), 2)] == ledger.damaged_lines(tmp_path)
    assert [each.output for each in ledger.read_rows(str(tmp_path))] == ["a.png", "b.png"]


def test_a_line_longer_than_any_row_is_one_damaged_line(tmp_path: Path) -> None:
    write(tmp_path, b"y" * (2 * MOST_LINE_BYTES + 5) + b"\n", row().to_line(1), b"z" * MOST_LINE_BYTES + b"\n")
    found = ledger.read(tmp_path)
    assert [number for _, number in found.damaged] == [1, 3]
    assert [each.output for each in found.rows] == ["a.png"]


def test_no_folder_has_no_rows_and_a_ledger_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    nothing = Contents([], [], [])
    assert ledger.read(tmp_path / "none") == ledger.read(tmp_path) == nothing
    file = tmp_path / "file"
    file.write_bytes(b"")
    assert ledger.read(file) == nothing
    with pytest.raises(ImageReadError, match=r"Ledger of '.*' cannot be read: "):
        ledger.read("a\0b")
    (tmp_path / ledger.LEDGER_NAME).mkdir()
    with pytest.raises(ImageReadError, match=f"Ledger '{tmp_path}/{ledger.LEDGER_NAME}' cannot be read: .*: remove it"):
        ledger.read(tmp_path)


def test_the_last_row_of_an_output_that_was_done_counts() -> None:
    rows = [row("a.png", digest="1"), row("b.png", "failed"), row("a.png", digest="2"), row(None)]
    assert ledger.done_by_output(rows) == {"a.png": rows[2]}


# --- writing ---------------------------------------------------------------------------------------------------------


def test_rows_are_appended_and_a_broken_last_line_is_marked(tmp_path: Path) -> None:
    place = tmp_path / ledger.LEDGER_NAME
    for before, after in ((b"", b""), (b"whole\n", b"whole\n"), (b"brok", b"brok" + CUT_SHORT + b"\n")):
        place.write_bytes(before)
        with Ledger(place, 7) as opened:
            opened.append(row())
        assert place.read_bytes().startswith(after + b'{"input": "in.png"')
        assert place.read_bytes().count(b'"run": 7}\n') == 1


def test_a_ledger_in_use_is_not_opened_again(tmp_path: Path) -> None:
    place = tmp_path / ledger.LEDGER_NAME
    in_use = pytest.raises(ImageWriteError, match=f"Ledger '{place}' is in use by another batch: wait")
    with Ledger(place, 1), in_use:
        Ledger(place, 2)
    Ledger(place, 2).__exit__(None, None, None)


def descriptors() -> int:
    return len(os.listdir("/dev/fd"))


def test_a_ledger_leaves_no_file_open(tmp_path: Path) -> None:
    place, before = tmp_path / ledger.LEDGER_NAME, descriptors()
    with Ledger(place, 1), pytest.raises(ImageWriteError):
        Ledger(place, 2)
    own = ValueError("nothing is said of the ledger behind an error of the batch's own")
    opened = Ledger(place, 1)
    place.unlink()
    opened.__exit__(ValueError, own, None)
    with pytest.raises(ImageWriteError, match="was moved"), Ledger(place, 1):
        place.unlink()
    assert descriptors() == before


def test_a_ledger_that_was_moved_takes_no_more_rows(tmp_path: Path) -> None:
    place = tmp_path / ledger.LEDGER_NAME
    opened = Ledger(place, 1)
    opened.append(row())
    place.rename(tmp_path / "moved")
    for _ in range(2):
        with pytest.raises(ImageWriteError, match="was moved, replaced or removed while the batch was running"):
            opened.append(row())
    (tmp_path / "moved").rename(place)
    with pytest.raises(ImageWriteError, match="was moved"):  # for ever after
        opened.append(row())
    assert place.read_bytes().count(b"\n") == 1
    opened.__exit__(None, None, None)


@pytest.mark.parametrize("written", [5, -1], ids=["in part", "not at all"])
def test_a_full_disk_ends_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int) -> None:
    opened = Ledger(tmp_path / ledger.LEDGER_NAME, 1)
    plain = os.write

    def write(descriptor: int, line: bytes) -> int:
        if written < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return plain(descriptor, line[:written])

    with monkeypatch.context() as patch:
        patch.setattr(ledger.os, "write", write)
        with pytest.raises(ImageWriteError, match=r"cannot be written: No space left on device\. Nothing more"):
            opened.append(row())
    with pytest.raises(ImageWriteError, match="No space left"):
        opened.append(row())
    opened.__exit__(None, None, None)
    assert ledger.read_rows(tmp_path) == []


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    place = tmp_path / "none" / ledger.LEDGER_NAME
    with pytest.raises(ImageWriteError, match=f"Ledger '{place}' cannot be written: No such file"):
        Ledger(place, 1)


# --- verify ----------------------------------------------------------------------------------------------------------


def test_what_verify_finds(tmp_path: Path) -> None:
    rows = [row("same.png"), row("changed.png"), row("missing.png"), row("../away.png"), row("not.png", "failed")]
    write(tmp_path, *(each.to_line(1) for each in rows), b"damaged\n")
    (tmp_path / "same.png").write_bytes(DATA)
    (tmp_path / "changed.png").write_bytes(DATA + b".")
    found = ledger.look_through(tmp_path)
    states = [("same.png", "same"), ("changed.png", "changed"), ("missing.png", "missing"), ("../away.png", "foreign")]
    assert [(each.output, each.state) for each in found.findings] == states
    assert found.findings[:3] == [Finding(name, state) for name, state in states[:3]]  # type: ignore[arg-type]
    assert found.findings[3].detail
    assert (len(found.damaged), found.in_progress) == (1, False)
    assert ledger.verify(tmp_path) == found.findings


def test_verify_of_a_folder_without_a_ledger_says_so_and_of_an_empty_one_finds_nothing(tmp_path: Path) -> None:
    with pytest.raises(ImageReadError, match=r"has no edgeconv-ledger\.jsonl: name the output folder"):
        ledger.verify(tmp_path)
    write(tmp_path)
    assert ledger.verify(tmp_path) == []
    write(tmp_path, row("/away.png").to_line(1))
    assert [each.state for each in ledger.verify(tmp_path)] == ["foreign"]


def test_what_differs_while_a_batch_is_at_work_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The output is newer than its row until the second look; what was the same is not hashed twice."""
    looked: list[str] = []
    plain = ledger._look_at
    monkeypatch.setattr(ledger, "_look_at", lambda folder, name, each: looked.append(name) or plain(folder, name, each))
    (tmp_path / "a.png").write_bytes(DATA)
    (tmp_path / "b.png").write_bytes(b"newer")
    lock = folder_lock.one_batch_in(str(tmp_path), None)
    with lock, Ledger(tmp_path / ledger.LEDGER_NAME, 1) as opened:
        opened.append(row("a.png"))
        opened.append(row("b.png"))
        monkeypatch.setattr(
            ledger.time, "sleep", lambda seconds: opened.append(row("b.png", digest=ledger.sha256_of(b"newer")))
        )
        found = ledger.look_through(tmp_path)
        assert [each.state for each in found.findings] == ["same", "same"]
        assert found.in_progress
        assert looked == ["a.png", "b.png", "b.png"]


def test_what_still_differs_after_three_seconds_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, pauses = [100.0], []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += 1.0

    monkeypatch.setattr(ledger.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(ledger.time, "sleep", sleep)
    write(tmp_path, row("a.png").to_line(1))
    with folder_lock.one_batch_in(str(tmp_path), None):
        assert [each.state for each in ledger.verify(tmp_path)] == ["missing"]
    assert pauses == [folder_lock.PAUSE_SECONDS] * 4  # at 0, 1, 2 and 3 seconds
    pauses.clear()
    assert [each.state for each in ledger.verify(tmp_path)] == ["missing"]
    assert pauses == [], "nobody is at work"


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
@pytest.mark.parametrize("back", ["a link", "a hard link", "a copy", "nothing"])
def test_a_ledger_that_is_moved_while_it_is_open_is_noticed_whatever_takes_its_name(tmp_path: Path, back: str) -> None:
    path, moved = tmp_path / ledger.LEDGER_NAME, tmp_path / "moved"
    refused = pytest.raises(ImageWriteError, match="was moved, replaced or removed")
    with nullcontext() if back == "a hard link" else refused, open_ledger(str(tmp_path)) as book:
        book.append(row())
        path.rename(moved)
        if back == "a link":
            path.symlink_to(moved)
        elif back == "a hard link":
            path.hardlink_to(moved)
        elif back == "a copy":
            path.write_bytes(moved.read_bytes())
        book.append(row("b.png"))


def test_a_place_has_a_ledger_or_none_here_and_in_a_store(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    try:
        for folder in (str(tmp_path), "memory://edges"):
            assert not ledger._is_there(folder)
            with open_ledger(folder) as book:
                book.append(row())
            assert ledger._is_there(folder)
    finally:
        fsspec.filesystem("memory").store.clear()
