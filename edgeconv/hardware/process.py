"""What the system says of this process."""

from __future__ import annotations

import os
import time
from time import perf_counter, process_time, sleep  # held: a method of another package may replace those of `time`

from edgeconv.hardware.system_files import read_system_file

MOST_QUIET_SECONDS = 0.25
QUIET_LOOK_SECONDS = 0.002
QUIET_SHARE = 0.2
"""Of one core, in all threads together."""


def seconds_since_process_start() -> float | None:
    """Wall time since the process began, where the system tells (Linux); None elsewhere."""
    try:
        fields = (read_system_file("/proc/self/stat") or "").rpartition(")")[2].split()
        started_after_boot = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        return time.clock_gettime(time.CLOCK_BOOTTIME) - started_after_boot
    except (OSError, AttributeError, ValueError, IndexError):
        return None


def share_at_rest(seconds: float) -> float:
    """Share of a core that this process uses while the thread that calls sleeps."""
    started, before = perf_counter(), process_time()
    sleep(seconds)
    return (process_time() - before) / (perf_counter() - started)


def wait_until_quiet() -> None:
    """Wait until the threads of this process rest, `MOST_QUIET_SECONDS` at most.

    Threads of many libraries spin for milliseconds after their last work (OpenMP's, ONNX Runtime's), on the very cores
    that the next to be timed would work on.
    """
    deadline = perf_counter() + MOST_QUIET_SECONDS
    while (started := perf_counter()) < deadline:
        before = process_time()
        sleep(QUIET_LOOK_SECONDS)
        if process_time() - before < QUIET_SHARE * (perf_counter() - started):
            return
