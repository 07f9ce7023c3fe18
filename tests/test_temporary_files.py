"""What a killed process left half-written is told from what a living one is writing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edgeconv.io import temporary_files
from edgeconv.io.files import write_bytes_atomically


def of_process(folder: Path, process: int) -> Path:
    """A temporary file as that process of this host would have named it."""
    mine = temporary_files.begin(folder / "a.png")
    temporary_files.end(mine)
    theirs = mine.with_name(mine.name.replace(f"-{os.getpid()}-", f"-{process}-"))
    theirs.write_bytes(b"half")
    return theirs


ENDED_PROCESS = 2**22 + 1
"""Above every process id of Linux: one that ended might be given to another process meanwhile."""


def test_the_file_of_a_process_that_ended_is_left_over_and_that_of_a_living_one_is_not(
    tmp_path: Path,
) -> None:
    dead = of_process(tmp_path, ENDED_PROCESS)
    of_process(tmp_path, os.getpid())
    assert temporary_files.left_over_in(tmp_path) == [dead]


def test_a_file_of_another_place_is_left_over_only_when_it_is_old(tmp_path: Path) -> None:
    """What has ended here may well live there, under the same process id."""
    (mine,) = (part for part in temporary_files.new_name().split("-") if len(part) == 8 and part != "edgeconv")
    elsewhere = f"{int(mine, 16) ^ 1:08x}"
    path = tmp_path / f".edgeconv-{elsewhere}-{ENDED_PROCESS}-0123456789ab.tmp"
    path.write_bytes(b"half")
    assert temporary_files.left_over_in(tmp_path) == []
    long_ago = path.stat().st_mtime - temporary_files.STALE_SECONDS - 60
    os.utime(path, (long_ago, long_ago))
    assert temporary_files.left_over_in(tmp_path) == [path]


def test_nothing_else_is_ever_called_left_over(tmp_path: Path) -> None:
    whole = temporary_files.new_name()
    for name in ("a.png", ".edgeconv-notes.tmp", ".edgeconv-0123456789ab.tmp", whole.lstrip("."), f"{whole}.png"):
        (tmp_path / name).write_bytes(b"a person's own")
        os.utime(tmp_path / name, (0, 0))
    assert temporary_files.left_over_in(tmp_path) == []
    assert temporary_files.left_over_in(tmp_path / "missing") == []


def test_what_is_in_hand_can_be_removed_and_is_forgotten_once_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(source: Path, target: Path) -> None:
        assert Path(source).read_bytes() == b"data"
        temporary_files.remove_being_written()
        assert list(tmp_path.iterdir()) == []
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            write_bytes_atomically(tmp_path / "a.png", b"data")
    write_bytes_atomically(tmp_path / "a.png", b"data")
    temporary_files.remove_being_written()
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]
