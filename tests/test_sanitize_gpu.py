"""scripts/sanitize_gpu.py: what it makes of a tool's output."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "sanitize_gpu.py"
sys.path.insert(0, str(SCRIPT.parent))

import sanitize_gpu  # noqa: E402

CLEAN = "========= COMPUTE-SANITIZER\nran 309 cases of 280 kernels\n========= ERROR SUMMARY: 0 errors\n"
FOUND = """========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at sliding+0x1230
========= Target application returned an error
========= ERROR SUMMARY: 2 errors
"""
RACES = "ran 3 cases of 2 kernels\n========= RACECHECK SUMMARY: 4 hazards displayed (1 error, 3 warnings)\n"


@pytest.mark.parametrize(
    ("tool", "text", "code", "found", "told"),
    [
        ("memcheck", CLEAN, 0, (True, 0, 0, 309, 280), None),
        ("racecheck", RACES, 0, (False, 1, 3, 3, 2), "RACECHECK SUMMARY"),
        ("initcheck", "", 0, (False, 0, 0, 0, 0), "gave no summary"),
        ("initcheck", "no such program", 127, (False, 0, 0, 0, 0), "gave no summary"),
        ("initcheck", "ran 3 cases of 2 kernels", 0, (False, 0, 0, 3, 2), "gave no summary"),
        ("initcheck", "========= ERROR SUMMARY: 0 errors\n", 1, (False, 0, 0, 0, 0), "ERROR SUMMARY: 0"),
        ("initcheck", "========= ERROR SUMMARY: 0 errors\n", 0, (False, 0, 0, 0, 0), "ERROR SUMMARY: 0"),
    ],
)
def test_a_tool_that_found_something_or_did_not_run_all_cases_is_not_clean(
    tool: str, text: str, code: int, found: tuple[object, ...], told: str | None
) -> None:
    summary = sanitize_gpu.summary_of(tool, text, code, 12.34)
    assert tuple(summary[name] for name in ("clean", "errors", "warnings", "cases", "kernels")) == found
    assert summary["seconds"] == 12.3
    assert summary["first_lines"] == [] if told is None else any(told in line for line in summary["first_lines"])


def test_what_was_found_is_shown_with_its_case_and_no_other() -> None:
    head, report = FOUND.split("\n", 1)
    text = f"{head}\ncase: a\ncase: b\n{report}case: c\nran 3 cases of 1 kernels\n"
    found = sanitize_gpu.summary_of("memcheck", text, sanitize_gpu.FOUND_CODE, 1)
    assert (found["clean"], found["errors"]) == (False, 2)
    assert found["first_lines"][1:3] == ["case: b", report.splitlines()[0]]
    assert [line for line in found["first_lines"] if line.startswith("case: ")] == ["case: b"]


def test_without_the_tool_it_says_what_to_install(tmp_path: Path) -> None:
    asked = (sys.executable, str(SCRIPT), "--sanitizer", str(tmp_path / "none"))
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == sanitize_gpu.EXIT_UNAVAILABLE
    assert "install" in done.stdout
