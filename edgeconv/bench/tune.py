"""`edgeconv tune`: measure this machine once, in seconds, so that `--method auto` chooses by figures (see tuned.py).

The default case (laplacian8, mix) at three sizes, three strides and two types, checked as ever; and for each method
what a process of its own needs from nothing to its first small result.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from edgeconv.bench.grid import CaseGrid, GridPart
from edgeconv.bench.record import BenchRecord, BenchRow
from edgeconv.bench.rules import TimingRules
from edgeconv.bench.runner import BenchRun, run
from edgeconv.bench.summary import median
from edgeconv.core.choices import DEFAULT_FILTER, DeviceName
from edgeconv.core.records import fields_of
from edgeconv.core.timing import Budget
from edgeconv.errors import UnavailableError
from edgeconv.methods import METHODS
from edgeconv.runtime.profile import Curve, Point, Profile, machine_facts, place_to_save, save

GRID = CaseGrid(
    "tune",
    "what a choice needs to know",
    (
        GridPart(
            sizes=(256, 1024, 2048),
            strides=(1, 2, 3),
            dtypes=("uint8", "float32"),
            filters=(DEFAULT_FILTER,),
            channels=("mix",),
            methods=tuple(dict.fromkeys(entry.name for entry in METHODS if not entry.to_compare)),
        ),
    ),
)
RULES = TimingRules(
    budget=Budget(min_samples=3, max_samples=15, time_limit_seconds=0.02, noise_target=0.05, turns=4),
    l2_states=("warm",),
    check_samples=30_000,
)
START_SIDE = 64
STARTS = 3
START_PATIENCE_SECONDS = 120
_START = (
    "import time; began = time.perf_counter();"
    "import numpy; from edgeconv.core.request import make_request; from edgeconv.methods.base import Options;"
    "from edgeconv.runtime.session import Session; shape = ({side}, {side}, 3);"
    "session = Session(make_request().problem(shape, 'uint8'), {method!r}, {device!r}, Options());"
    "session.convolve(numpy.zeros(shape, 'uint8')); print(time.perf_counter() - began)"
)


def tune(progress: Callable[[int, int, str], None]) -> tuple[Profile, Path]:
    """Measure, write the profile and return it with its place; raises EdgeconvError.

    Where the profile cannot be saved, nothing is measured.
    """
    path = place_to_save()
    profile = profile_of(run(BenchRun(GRID, RULES), progress), start_seconds)
    save(profile, path)
    return profile, path


def profile_of(record: BenchRecord, start: Callable[[str, DeviceName], float]) -> Profile:
    """The curves of every method that was right at every size; `start` gives what a process needs to begin with it."""
    found: dict[tuple[str, DeviceName, int, str], list[BenchRow]] = {}
    failed = set()
    for row in record.rows:
        if row.kind != "method":
            continue
        key = (row.name, row.device, row.case.stride, row.case.dtype)
        found.setdefault(key, []).append(row)
        if row.status != "measured":
            failed.add(key)
    starts: dict[tuple[str, DeviceName], float] = {}
    curves = []
    for (method, device, stride, dtype), rows in found.items():
        if (method, device, stride, dtype) in failed:
            continue
        if (method, device) not in starts:
            starts[method, device] = start(method, device)
        points = tuple(_point(row) for row in sorted(rows, key=lambda row: row.case.size))
        curves.append(Curve(method, device, stride, dtype, starts[method, device], points))
    return Profile(machine_facts(fields_of(record.machine["cpu"])), tuple(curves))


def start_seconds(method: str, device: DeviceName) -> float:
    """From the first import to the first result in a process of its own, the least of a few.

    Raises UnavailableError where it fails.
    """
    code = _START.format(side=START_SIDE, method=method, device=device)
    taken = []
    for _ in range(STARTS):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=START_PATIENCE_SECONDS, check=False
        )
        if done.returncode != 0:
            reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise UnavailableError(f"Method '{method}' on {device} does not start in a process of its own: {reason}.")
        taken.append(float(done.stdout))
    return min(taken)


def _point(row: BenchRow) -> Point:
    seconds = median(row) if row.end_to_end is None else row.end_to_end.median_seconds
    return Point(row.case.height * row.case.width, seconds, row.workspace_bytes or 0)
