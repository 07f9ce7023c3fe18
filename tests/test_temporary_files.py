"""What a killed process left half-written is told from what a living one is writing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edgeconv.io import atomic
from edgeconv.io.contained_paths import ForeignFileError, place_inside

ENDED_PROCESS = 2**22 + 1
"""Above every process id of Linux: one that ended might be given to another process meanwhile."""


def of_process(folder: Path, process: int, is_elsewhere: bool = False) -> Path:
    """A temporary file as that process of this host, or of another place, would have named it."""
    _, place, _, random = atomic.temporary_name().split("-")
    place = f"{int(place, 16) ^ is_elsewhere:08x}"
    path = folder / f".edgeconv-{place}-{process}-{random}"
    path.write_bytes(b"half")
    return path


def test_the_file_of_a_process_that_ended_is_left_over_and_that_of_a_living_one_is_not(tmp_path: Path) -> None:
    dead, living = of_process(tmp_path, ENDED_PROCESS), of_process(tmp_path, os.getpid())
    assert atomic.remove_left_over_in(tmp_path) == [dead]
    assert list(tmp_path.iterdir()) == [living]


def test_a_file_of_another_place_is_left_over_only_when_it_is_old(tmp_path: Path) -> None:
    """What has ended here may well live there, under the same process id."""
    path = of_process(tmp_path, ENDED_PROCESS, is_elsewhere=True)
    assert atomic.remove_left_over_in(tmp_path) == []
    long_ago = path.stat().st_mtime - atomic.STALE_SECONDS - 60
    os.utime(path, (long_ago, long_ago))
    assert atomic.remove_left_over_in(tmp_path) == [path]


def test_nothing_else_is_ever_called_left_over(tmp_path: Path) -> None:
    whole = atomic.temporary_name()
    for name in ("a.png", ".edgeconv-notes.tmp", ".edgeconv-0123456789ab.tmp", whole.lstrip("."), f"{whole}.png"):
        (tmp_path / name).write_bytes(b"a person's own")
        os.utime(tmp_path / name, (0, 0))
    assert atomic.remove_left_over_in(tmp_path) == []
    assert atomic.remove_left_over_in(tmp_path / "missing") == []


def test_what_is_in_hand_can_be_removed_and_is_forgotten_once_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(source: Path, target: Path) -> None:
        assert Path(source).read_bytes() == b"data"
        atomic.remove_being_written()
        assert list(tmp_path.iterdir()) == []
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            atomic.write_bytes_atomically(tmp_path / "a.png", b"data")
    atomic.write_bytes_atomically(tmp_path / "a.png", b"data")
    atomic.remove_being_written()
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


def test_a_system_that_writes_a_part_at_a_time_gets_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    atomic.write_bytes_atomically(tmp_path / "a", b"0123456789")
    monkeypatch.undo()
    assert (tmp_path / "a").read_bytes() == b"0123456789"


def test_a_link_that_leads_out_of_a_folder_is_no_place_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "out").symlink_to(tmp_path / "out")
    (folder / "here").symlink_to("there")
    with pytest.raises(ForeignFileError, match="leads out of the folder"):
        place_inside(folder, "out")
    assert place_inside(folder, "here") == place_inside(folder, "there") == folder.resolve() / "there"
