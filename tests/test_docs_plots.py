"""Plots of docs/ are of the records beside them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from bench_records import TimedMethod, measured
from command import PROJECT

from edgeconv.bench import record

SCRIPT = PROJECT / "scripts" / "docs_plots.py"


def run(*words: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    line = [sys.executable, SCRIPT, *map(str, words)]
    return subprocess.run(line, cwd=PROJECT, capture_output=True, text=True, env=environment, check=False)


def test_committed_plots_are_of_their_records() -> None:
    done = run("--check")
    assert done.returncode == 0, done.stderr


def test_a_record_that_changed_makes_its_plots_stale(monkeypatch, tmp_path) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "here").mkdir()
    path = tmp_path / "here" / "lab.json"
    path.write_bytes(record.to_json(measured(monkeypatch, TimedMethod("own", [1e-3]))))
    assert run("--check", "--results", tmp_path).returncode == 1
    drawn = run("--results", tmp_path)
    assert drawn.returncode == 0, drawn.stderr
    assert any("lab_gflops" in line for line in drawn.stdout.splitlines())
    assert run("--check", "--results", tmp_path).returncode == 0
    path.write_bytes(path.read_bytes() + b"\n")
    stale = run("--check", "--results", tmp_path)
    assert (stale.returncode, len(stale.stderr.splitlines())) == (1, len(drawn.stdout.splitlines()))
