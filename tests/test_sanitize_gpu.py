"""scripts/sanitize_gpu.py: what it makes of a tool's output."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "sanitize_gpu.py"
sys.path.insert(0, str(SCRIPT.parent))

import kernel_table  # noqa: E402
import sanitize_gpu  # noqa: E402

CLEAN = "========= COMPUTE-SANITIZER\nran 309 cases of 280 kernels\n========= ERROR SUMMARY: 0 errors\n"
FOUND = """========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at sliding+0x1230
========= Target application returned an error
========= ERROR SUMMARY: 2 errors
"""
RACES = "ran 3 cases of 2 kernels\n========= RACECHECK SUMMARY: 4 hazards displayed (1 error, 3 warnings)\n"


def test_a_clean_run() -> None:
    summary = sanitize_gpu.summary_of("memcheck", CLEAN, 0, 12.34)
    assert (summary.clean, summary.errors, summary.cases, summary.kernels) == (True, 0, 309, 280)
    assert (summary.seconds, summary.first_lines) == (12.3, ())


def test_what_was_found_is_shown() -> None:
    summary = sanitize_gpu.summary_of("memcheck", FOUND, sanitize_gpu.FOUND_CODE, 1)
    assert (summary.clean, summary.errors) == (False, 2)
    assert "Invalid __global__ read of size 4 bytes" in summary.first_lines[1]


def test_a_report_names_its_case_and_no_other() -> None:
    head, report = FOUND.split("\n", 1)
    text = f"{head}\ncase: a\ncase: b\n{report}case: c\nran 3 cases of 1 kernels\n"
    summary = sanitize_gpu.summary_of("memcheck", text, sanitize_gpu.FOUND_CODE, 1)
    assert [line for line in summary.first_lines if line.startswith("case: ")] == ["case: b"]


def test_hazards_count_as_errors_and_warnings() -> None:
    summary = sanitize_gpu.summary_of("racecheck", RACES, sanitize_gpu.FOUND_CODE, 1)
    assert (summary.clean, summary.errors, summary.warnings) == (False, 1, 3)


@pytest.mark.parametrize(("text", "code"), [("", 0), ("no such program", 127), ("ran 3 cases of 2 kernels", 0)])
def test_a_tool_that_gave_no_summary_is_not_clean(text: str, code: int) -> None:
    summary = sanitize_gpu.summary_of("initcheck", text, code, 1)
    assert not summary.clean
    assert summary.exit_code != 0
    assert "gave no summary" in summary.first_lines[0]


def test_cases_that_end_early_are_not_clean() -> None:
    assert not sanitize_gpu.summary_of("memcheck", "========= ERROR SUMMARY: 0 errors\n", 1, 1).clean
    assert not sanitize_gpu.summary_of("memcheck", "========= ERROR SUMMARY: 0 errors\n", 0, 1).clean


def test_each_tool_runs_the_cases_by_itself(tmp_path: Path) -> None:
    tool = tmp_path / "compute-sanitizer"
    tool.write_text(f'#!/bin/sh\necho "$EDGECONV_SANITIZER $@" >> {tmp_path}/called\necho "{RACES}"\nexit 9\n')
    tool.chmod(0o755)
    summary = sanitize_gpu.run_tool(str(tool), "racecheck")
    assert (summary.errors, summary.exit_code) == (1, 9)
    called = (tmp_path / "called").read_text().split()
    assert called[:3] == ["racecheck", "--tool", "racecheck"]
    assert called[-2:] == [str(SCRIPT), "--one-pass"]
    assert called[called.index("--error-exitcode") + 1] == "9"
    json.dumps(summary.__dict__)


def test_a_record_is_written_after_each_tool(tmp_path: Path) -> None:
    summaries = [
        sanitize_gpu.summary_of("memcheck", CLEAN, 0, 12.34),
        sanitize_gpu.summary_of("racecheck", RACES, 9, 1),
    ]
    for count in (1, 2):
        sanitize_gpu.write_record(tmp_path / "found.json", {"gpu": "one"}, summaries[:count])
        record = json.loads((tmp_path / "found.json").read_text())
        assert (record["gpu"], [tool["tool"] for tool in record["tools"]]) == ("one", ["memcheck", "racecheck"][:count])


def test_a_pass_says_how_many_cases_it_ran(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    works = kernel_table.works_for_a_gpu()[:3]
    given: list[object] = []
    cuda = SimpleNamespace(set_allocator=lambda allocator: None, Device=lambda: SimpleNamespace(synchronize=int))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(sanitize_gpu.kernel_table, "works_for_a_gpu", lambda: works)
    monkeypatch.setattr(sanitize_gpu, "sample_problems", list)
    monkeypatch.setattr(sanitize_gpu, "run_case", lambda work, zeroed: given.append(work))
    assert sanitize_gpu.one_pass() == 0
    assert given == works
    ran = sanitize_gpu.RAN.search(capsys.readouterr().out)
    assert ran is not None
    assert int(ran[1]) == len(works)


def test_each_case_gets_a_picture_of_its_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of three channels where the plan reads one would be read past its rows, and the oracle would see other
    pixels than the kernel."""
    monkeypatch.setitem(sys.modules, "cupy", np)
    for work in kernel_table.works_for_a_gpu():
        problem = work.case.problem()
        image = sanitize_gpu._random_image(problem, work.offset_samples)
        assert (image.shape, image.dtype) == (problem.input_shape, problem.dtype), work


def test_without_the_tool_it_says_what_to_install(tmp_path: Path) -> None:
    asked = (sys.executable, str(SCRIPT), "--sanitizer", str(tmp_path / "none"))
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == sanitize_gpu.EXIT_UNAVAILABLE
    assert "install" in done.stdout
