"""Plots of docs/ are of the records beside them."""

from __future__ import annotations

import lzma
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench_records import TimedMethod, measured_once
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


@pytest.mark.slow
def test_a_record_that_changed_makes_its_plots_stale(tmp_path) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "here").mkdir()
    path = tmp_path / "here" / "lab.json.xz"
    made = record.to_json(measured_once(TimedMethod("own", [1e-3])))
    path.write_bytes(lzma.compress(made))
    page = tmp_path / "page.md"
    names = [f"lab_{figure}_cpu_float32_random_mix.svg" for figure in ("gflops", "time")]
    page.write_text("".join(f"![plot](here/plots/{name})\n" for name in names), encoding="utf-8")
    assert run("--check", "--pages", page).returncode == 1
    drawn = run("--pages", page)
    assert drawn.returncode == 0, drawn.stderr
    assert [Path(line).name for line in drawn.stdout.splitlines()] == names
    assert run("--check", "--pages", page).returncode == 0
    path.write_bytes(lzma.compress(made + b"\n"))
    stale = run("--check", "--pages", page)
    assert (stale.returncode, len(stale.stderr.splitlines())) == (1, len(names))
    assert run("--pages", page).returncode == 0
    (tmp_path / "here" / "plots" / "lab_roofline_cpu.svg").write_text("no page shows it", encoding="utf-8")
    assert "lab_roofline_cpu.svg" in run("--check", "--pages", page).stderr
