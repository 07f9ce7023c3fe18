"""Each bomb ends, and within memory: with its error, or with the picture that is in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bombs import BOMBS
from command import PROJECT, unmeasured

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the limits are set in a fork of one process")

SPARE_BYTES = 512 * 2**20
"""Above what the picture itself needs."""


def run_limited(jobs: list[tuple[str, str, bool, int]]) -> dict[str, tuple[str, str]]:
    """How each (name, path, by tiles, need in bytes) ended under limits: word and message."""
    child = Path(__file__).with_name("limited_reader.py")
    lines = "".join(json.dumps([*job, SPARE_BYTES]) + "\n" for job in jobs)
    environment = unmeasured() | {"PYTHONPATH": os.pathsep.join((str(PROJECT), str(PROJECT / "tests")))}
    done = subprocess.run(
        [sys.executable, str(child)], input=lines, capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return {name: (word, said) for name, word, said in map(json.loads, done.stdout.splitlines())}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("bombs")
    for bomb in BOMBS:
        bomb.write(made)
    return made


@pytest.fixture(scope="module")
def ended(folder: Path) -> dict[str, tuple[str, str]]:
    return run_limited([(bomb.what, str(folder / bomb.what), False, bomb.need_bytes) for bomb in BOMBS])


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.what)
def test_a_bomb(bomb, ended: dict[str, tuple[str, str]]) -> None:
    word, said = ended[bomb.what]
    if bomb.says is None:
        assert word == "read", said
    else:
        assert word == "refused", said
        assert bomb.says in said


def test_no_bomb_does_harm_by_tiles(folder: Path) -> None:
    pytest.importorskip("tifffile")
    pytest.importorskip("pyvips")
    pytest.importorskip("zarr")
    jobs = [(bomb.what, str(folder / bomb.what), True, bomb.need_bytes) for bomb in BOMBS]
    for what, (word, said) in run_limited(jobs).items():
        assert word in ("read", "refused"), (what, word, said)
