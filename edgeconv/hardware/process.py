"""What the system says of this process."""

from __future__ import annotations

import os
import time

from edgeconv.hardware.system_files import read_system_file


def seconds_since_process_start() -> float | None:
    """Wall time since the process began, where the system tells (Linux); None elsewhere."""
    try:
        fields = (read_system_file("/proc/self/stat") or "").rpartition(")")[2].split()
        started_after_boot = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        return time.clock_gettime(time.CLOCK_BOOTTIME) - started_after_boot
    except (OSError, AttributeError, ValueError, IndexError):
        return None
