"""Each bomb ends quickly and within memory: with its error, or with the picture that is in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bombs import BOMBS, zarr_bombs
from command import PROJECT, unmeasured

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the limits are set in a fork of one process")

SPARE_BYTES = 512 * 2**20
"""Above what the picture itself needs."""
SPARE_SECONDS = 2.0
UNPACKED = 2**25


def run_limited(jobs: list[tuple[str, str, int]]) -> dict[str, tuple[str, float, str]]:
    """How each (name, path, need in bytes) ended in a process of its own with limits: word, seconds and message."""
    child = Path(__file__).with_name("limited_reader.py")
    lines = "".join(json.dumps([*job, SPARE_BYTES]) + "\n" for job in jobs)
    environment = unmeasured() | {"PYTHONPATH": os.pathsep.join((str(PROJECT), str(PROJECT / "tests")))}
    done = subprocess.run(
        [sys.executable, str(child)], input=lines, capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return {name: (word, seconds, said) for name, word, seconds, said in map(json.loads, done.stdout.splitlines())}


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, float, str]]:
    folder = tmp_path_factory.mktemp("bombs")
    jobs = []
    for bomb in BOMBS:
        (folder / bomb.name).write_bytes(bomb.make())
        jobs.append((bomb.what, str(folder / bomb.name), bomb.need_bytes))
    return run_limited(jobs)


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.what)
def test_a_bomb(bomb, ended: dict[str, tuple[str, float, str]]) -> None:
    word, seconds, said = ended[bomb.what]
    if bomb.says is None:
        assert word == "read", said
    else:
        assert word == "refused", said
        assert bomb.says in said
    assert seconds < SPARE_SECONDS + bomb.need_bytes / 2**26


def test_no_chunk_of_a_zarr_unpacks_beyond_its_place(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    jobs = [(what, str(path), 0) for what, path in zarr_bombs(tmp_path, UNPACKED)]
    assert len(jobs) > 10
    for what, (word, seconds, said) in run_limited(jobs).items():
        assert (word, " more than " in said) == ("refused", True), (what, word, said)
        assert seconds < SPARE_SECONDS, what
