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


def test_a_clean_run() -> None:
    found = sanitize_gpu.summary_of("memcheck", CLEAN, 0, 12.34)
    assert (found["clean"], found["errors"], found["cases"], found["kernels"]) == (True, 0, 309, 280)
    assert (found["seconds"], found["first_lines"]) == (12.3, [])


def test_what_was_found_is_shown_with_its_case_and_no_other() -> None:
    head, report = FOUND.split("\n", 1)
    text = f"{head}\ncase: a\ncase: b\n{report}case: c\nran 3 cases of 1 kernels\n"
    found = sanitize_gpu.summary_of("memcheck", text, sanitize_gpu.FOUND_CODE, 1)
    assert (found["clean"], found["errors"]) == (False, 2)
    assert found["first_lines"][1:3] == ["case: b", report.splitlines()[0]]
    assert [line for line in found["first_lines"] if line.startswith("case: ")] == ["case: b"]


def test_hazards_count_as_errors_and_warnings() -> None:
    found = sanitize_gpu.summary_of("racecheck", RACES, 0, 1)
    assert (found["clean"], found["errors"], found["warnings"]) == (False, 1, 3)


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("", 0, "gave no summary"),
        ("no such program", 127, "gave no summary"),
        ("ran 3 cases of 2 kernels", 0, "gave no summary"),
        ("========= ERROR SUMMARY: 0 errors\n", 1, "ERROR SUMMARY: 0"),
        ("========= ERROR SUMMARY: 0 errors\n", 0, "ERROR SUMMARY: 0"),
    ],
)
def test_a_tool_that_did_not_run_all_cases_is_not_clean(text: str, code: int, told: str) -> None:
    found = sanitize_gpu.summary_of("initcheck", text, code, 1)
    assert not found["clean"]
    assert told in found["first_lines"][0]


def test_without_the_tool_it_says_what_to_install(tmp_path: Path) -> None:
    asked = (sys.executable, str(SCRIPT), "--sanitizer", str(tmp_path / "none"))
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == sanitize_gpu.EXIT_UNAVAILABLE
    assert "install" in done.stdout
