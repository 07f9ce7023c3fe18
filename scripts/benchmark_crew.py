"""Measure how soon the CPU engine's threads work, beside the Python threads of pool.py.

    python3 scripts/benchmark_crew.py --output docs/results/crew_NAME.json

Microseconds of a job of empty units, and of one in which every thread waits for all others, with threads that are awake
and that sleep. Compare within a run only.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from script_options import Arguments

from edgeconv.core.records import header
from edgeconv.hardware.cpu import crew, jit
from edgeconv.hardware.devices import get_device
from edgeconv.hardware.pool import POOL
from edgeconv.hardware.threads import usable_threads
from edgeconv.hardware.versions import installed_versions
from edgeconv.io.files import write_bytes_atomically

MICROSECOND = 1e-6

UNITS = """
define void @nothing(ptr %arguments, i64 %worker, i64 %first, i64 %stop) {
  ret void
}
define void @meet(ptr %arrived, i64 %worker, i64 %first, i64 %stop) {
entry:
  %place = getelementptr i64, ptr %arrived, i64 1
  %all = load i64, ptr %place
  %before = atomicrmw add ptr %arrived, i64 1 seq_cst
  %round = udiv i64 %before, %all
  %next = add i64 %round, 1
  %wanted = mul i64 %next, %all
  br label %look
look:
  %now = load atomic i64, ptr %arrived seq_cst, align 8
  %early = icmp ult i64 %now, %wanted
  br i1 %early, label %look, label %over
over:
  ret void
}
"""
"""Units of nothing, and units that end when as many have begun as there are threads."""


def quantiles(seconds: list[float]) -> dict[str, float]:
    """Median, p90 and least, in microseconds."""
    ordered = [value / MICROSECOND for value in seconds]
    return {
        "median": round(statistics.median(ordered), 2),
        "p90": round(float(np.quantile(ordered, 0.9)), 2),
        "least": round(min(ordered), 2),
    }


def timed(call: Callable[[], Any]) -> float:
    """Seconds of one call."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


AWAKE, SLEEPING = 2000, 100
SLEEP_SECONDS = 3e-3


def after_sleep(call: Callable[[], Any]) -> list[float]:
    """Seconds of calls after each of which everybody falls asleep."""
    found = []
    for _ in range(SLEEPING):
        time.sleep(SLEEP_SECONDS)
        found.append(timed(call))
    return found


def measure_wake() -> list[dict[str, Any]]:
    """One row for each number of threads, kind of threads and state."""
    code = jit.compile_module(UNITS, jit.processor())
    meet_in_python = code.function("meet", 4)

    def meet_as(address: int, worker: int) -> None:
        meet_in_python(address, worker, 0, 1)

    rows = []
    for threads in sorted({2, 4, 8, 16, usable_threads()} & set(range(2, usable_threads() + 1))):
        arrived = np.array([0, threads], np.int64)
        address = arrived.ctypes.data

        def job(name: str, threads: int = threads, address: int = address) -> crew.CrewJob:
            return crew.CrewJob(code, name, address, threads, asked=threads, most_threads=threads)

        empty, meeting = job("nothing"), job("meet")
        calls: dict[tuple[str, str], Callable[[], Any]] = {
            ("crew", "empty units"): empty.run,
            ("crew", "all meet"): meeting.run,
            ("python threads", "empty units"): partial(POOL.run, lambda worker: None, threads),
            ("python threads", "all meet"): partial(POOL.run, partial(meet_as, address), threads),
        }
        for (kind, what), call in calls.items():
            for _ in range(20):
                call()
            states = {"awake": [timed(call) for _ in range(AWAKE)], "asleep": after_sleep(call)}
            if kind == "crew":
                crew.CREW.bind_sleepers(False)
                after_sleep(call)
                states["asleep, bound to no core"] = after_sleep(call)
                crew.CREW.bind_sleepers(True)
            for state, seconds in states.items():
                row = {"threads": threads, "kind": kind, "what": what, "state": state}
                rows.append(row | {"microseconds": quantiles(seconds)})
                print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Measure, print and write the record."""
    parser = Arguments(__doc__)
    parser.add_argument("--output", type=Path, required=True, help="Write the figures to this file, as JSON.")
    asked = parser.parse_args()
    record: dict[str, Any] = {
        **header(),
        "kind": "crew",
        "versions": installed_versions(),
        "host": get_device("cpu").describe(),
        "wake": measure_wake(),
    }
    write_bytes_atomically(asked.output, (json.dumps(record, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
