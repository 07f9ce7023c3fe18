"""How many threads may work: the affinity mask, then the container's quota, never a mere count of cores."""

from __future__ import annotations

import os
from functools import cache

from edgeconv.errors import UsageError
from edgeconv.hardware.system_files import read_system_file

CGROUP2_CPU_MAX = "/sys/fs/cgroup/cpu.max"
CGROUP1_QUOTA = "/sys/fs/cgroup/cpu/cpu.cfs_quota_us"
CGROUP1_PERIOD = "/sys/fs/cgroup/cpu/cpu.cfs_period_us"


def quota_threads(text: str) -> int | None:
    """Whole threads that a `quota period` pair in microseconds allows, at least one; None for no limit."""
    quota, _, period = text.strip().partition(" ")
    if not quota.isdecimal() or not period.isdecimal() or int(period) == 0:
        return None
    return max(1, int(quota) // int(period))


def _container_quota() -> int | None:
    text = read_system_file(CGROUP2_CPU_MAX)
    if text is not None:
        return quota_threads(text)
    quota, period = (read_system_file(path) or "" for path in (CGROUP1_QUOTA, CGROUP1_PERIOD))
    return quota_threads(f"{quota.strip()} {period.strip()}")


@cache
def usable_threads() -> int:
    """Threads that this process may keep busy."""
    has_mask = hasattr(os, "sched_getaffinity")  # Linux alone
    allowed = len(os.sched_getaffinity(0)) if has_mask else os.cpu_count() or 1
    return min(allowed, _container_quota() or allowed)


def resolve_threads(asked: int | None) -> int:
    """`asked`, or what this process may use; raises UsageError below 1."""
    if asked is None:
        return usable_threads()
    if asked < 1:
        raise UsageError(f"--threads {asked} is not a whole number from 1.")
    return asked
