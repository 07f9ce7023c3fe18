"""Nothing depends on /proc or /sys: a sandbox that hides them costs figures in a report, never the picture."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from meet import run_program
from picture_files import noisy, png

from edgeconv.bench import watch
from edgeconv.hardware.devices import get_device
from edgeconv.hardware.system_files import read_system_file, read_system_link

HIDDEN = """
import os, sys

def hidden(path):
    return isinstance(path, (str, bytes, os.PathLike)) and os.fsdecode(path).startswith(("/proc", "/sys"))

def hide(event, arguments):
    if event in ("open", "os.listdir", "os.scandir", "glob.glob") and arguments and hidden(arguments[0]):
        raise FileNotFoundError(2, "No such file or directory", arguments[0])

readlink = os.readlink

def read_link(path, **other):
    if hidden(path):
        raise FileNotFoundError(2, "No such file or directory", path)
    return readlink(path, **other)

os.readlink = read_link
sys.addaudithook(hide)
from edgeconv.cli import main

for line in sys.argv[1:]:
    sys.argv = ["edgeconv", *line.split()]
    try:
        main()
    except SystemExit as left:
        if left.code:
            sys.exit(f"{line}: {left.code}")
"""
COMMANDS = (
    "run a.png -o edges.png",
    "run a.png -o tiles.tif --tile 16",
    "batch a.png -o out",
    "bench --sizes 32 --methods opencv --dtypes uint8 --strides 1 --samples 2 --formats json",
    "doctor",
)


def test_every_command_runs_where_proc_is_hidden(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png(noisy(40, 50)))
    done = run_program(HIDDEN, *COMMANDS, cwd=tmp_path)
    assert (done.returncode, done.stderr.count("This should not have happened")) == (0, 0), done.stderr
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(tmp_path.glob("*.json"))]
    assert [record["check"]["passed"] for record in records] == [True] * 2


def test_what_is_hidden_is_none_and_not_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*words: object, **others: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", nothing)
    monkeypatch.setattr("os.readlink", nothing)
    assert read_system_file("/proc/self/status") is None
    assert read_system_link("/proc/self/ns/pid") is None
    facts = get_device("cpu").describe()
    assert facts["governor"] is None
    assert facts["name"]
    assert watch.read_cpu_use() is None
    if sys.platform == "linux":
        assert get_device("cpu").peak_bytes() is None
        assert get_device("cpu").free_bytes() is None
