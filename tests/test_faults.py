"""Every call is disturbed once, in everything that writes: nothing is half-written, and a resume ends equal.

What is disturbed and what must hold: fault_jobs.py. How: faults.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest
from command import PROJECT, unmeasured
from fault_jobs import JOBS, FaultJob, expected_of, fresh, look, results
from faults import Faults
from selection import few_then_slow

from edgeconv.errors import EdgeconvError

LEAST_CALLS = {"fails": 5, "short": 1, "dies": 5}
"""Of each job; otherwise the layer would have missed its writing."""

CLEANING = {"unlink", "rmdir", "remove"}
"""Where these fail, a temporary stays that nobody takes for an output."""

QUICKEST = "run"


def name_of(each: FaultJob) -> str:
    return each.name.replace(" ", "_")


each_job = pytest.mark.parametrize("each", JOBS.values(), ids=name_of)


@each_job
@pytest.mark.parametrize("kind", few_then_slow(["fails", "short"]))
def test_a_call_that_fails_leaves_nothing_half_written(each: FaultJob, kind: str, tmp_path: Path) -> None:
    before, after = expected_of(each, tmp_path / "expected")
    for at in count(1):
        with fresh(each, tmp_path / str(at)) as folder:
            with suppress(EdgeconvError), Faults(folder, kind, at) as faults:  # no other error may come out of it
                each.run(folder)
            if not faults.struck:
                break
            assert not each.all_or_nothing or set(results(folder)) in (set(before), set(after))
            look(each, folder, before, after, may_leave=faults.struck in CLEANING)
    assert at > LEAST_CALLS[kind]


@pytest.mark.parametrize(
    "each", few_then_slow(sorted(JOBS.values(), key=lambda each: each.name != QUICKEST)), ids=name_of
)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
def test_a_process_that_ends_at_a_call_leaves_nothing_half_written(each: FaultJob, tmp_path: Path) -> None:
    words = [sys.executable, str(PROJECT / "tests" / "fault_jobs.py"), each.name, str(tmp_path / "jobs")]
    done = subprocess.run(words, env=unmeasured(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= LEAST_CALLS["dies"]
