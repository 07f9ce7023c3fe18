"""How many threads may work: the affinity mask, then the container's quota, never a mere count of cores."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from functools import lru_cache

from edgeconv.errors import UsageError
from edgeconv.hardware.system_files import read_system_file

CGROUP2_CPU_MAX = "/sys/fs/cgroup/cpu.max"
CGROUP1_QUOTA = "/sys/fs/cgroup/cpu/cpu.cfs_quota_us"
CGROUP1_PERIOD = "/sys/fs/cgroup/cpu/cpu.cfs_period_us"

LIMITS_SECONDS = 0.5
"""Mask and quota can change while a process runs; asking takes some 20 µs."""


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


@dataclass(frozen=True)
class Limits:
    """What the system lets this process use."""

    threads: int
    """Threads that it may keep busy."""
    cpus: frozenset[int] | None
    """The cores that its main thread may run on; None where the system does not tell."""


def read_limits() -> Limits:
    """Ask the system."""
    has_mask = hasattr(os, "sched_getaffinity")  # Linux alone
    cpus = frozenset(os.sched_getaffinity(os.getpid())) if has_mask else None
    allowed = os.cpu_count() or 1 if cpus is None else len(cpus)
    return Limits(min(allowed, _container_quota() or allowed), cpus)


def current_limits() -> Limits:
    """The limits, never older than `LIMITS_SECONDS`; the same object until they are read again."""
    return _limits_in(time.monotonic() // LIMITS_SECONDS)


@lru_cache(maxsize=1)
def _limits_in(period: float) -> Limits:
    return read_limits()


def usable_threads() -> int:
    """Threads that this process may keep busy now."""
    return current_limits().threads


def resolve_threads(asked: int | None) -> int:
    """`asked`, or what this process may use; raises UsageError below 1."""
    if asked is None:
        return usable_threads()
    if asked < 1:
        raise UsageError(f"--threads {asked} is not a whole number from 1.")
    return asked
