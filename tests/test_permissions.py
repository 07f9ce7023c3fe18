"""Whatever replaces a file leaves its permissions as they were: what was private does not become readable for all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from fault_jobs import JOBS, FaultJob, draw

from edgeconv.batch.ledger import LEDGER_NAME
from edgeconv.io.atomic import write_bytes_atomically


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir() if path.name != LEDGER_NAME}


def make_private(folder: Path) -> dict[str, int]:
    for path in folder.iterdir():
        path.chmod(0o700 if path.is_dir() else 0o600)
    return modes(folder)


@pytest.mark.parametrize("each", JOBS.values(), ids=[name.replace(" ", "_") for name in JOBS])
def test_what_is_replaced_keeps_its_permissions(each: FaultJob, tmp_path: Path) -> None:
    draw(tmp_path)
    each.prepare(tmp_path)
    if not list((tmp_path / "out").iterdir()):
        each.run(tmp_path)
    before = make_private(tmp_path / "out")
    each.run(tmp_path)
    after = modes(tmp_path / "out")
    assert before
    assert {name: mode for name, mode in after.items() if name in before} == {
        name: mode for name, mode in before.items() if name in after
    }
    for kept in tmp_path.glob("out.before-*"):
        assert set(modes(kept).values()) == {0o600}


def test_nobody_else_can_look_into_a_private_file_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "a"
    place.write_bytes(b"1")
    place.chmod(0o600)
    seen: list[tuple[int, int]] = []

    def look(path: Path, mode: int) -> None:
        """Before the file has its permissions."""
        seen.append((stat.S_IMODE(path.stat().st_mode), path.stat().st_size))

    monkeypatch.setattr(os, "chmod", look)
    write_bytes_atomically(place, b"2")
    assert seen == [(0o600, 0)]
