"""How many threads a process may use: its mask, its container's quota, and what was asked for. By hand."""

from __future__ import annotations

from typing import Any

import pytest

from edgeconv.errors import UsageError
from edgeconv.hardware import threads


@pytest.mark.parametrize(
    ("files", "mask", "usable"),
    [
        ({}, 8, 8),
        ({}, None, 64),  # where there is no mask every core counts
        ({threads.CGROUP2_CPU_MAX: "300000 100000\n"}, 8, 3),
        ({threads.CGROUP2_CPU_MAX: "900000 100000\n"}, 8, 8),
        ({threads.CGROUP2_CPU_MAX: "250000 100000"}, 8, 2),  # two and a half keep two busy
        ({threads.CGROUP2_CPU_MAX: "50000 100000"}, 8, 1),
        ({threads.CGROUP2_CPU_MAX: "200000 0"}, 8, 8),
        ({threads.CGROUP2_CPU_MAX: "200000"}, 8, 8),
        ({threads.CGROUP2_CPU_MAX: "max 100000\n", threads.CGROUP1_QUOTA: "100000"}, 8, 8),
        ({threads.CGROUP1_QUOTA: "400000\n", threads.CGROUP1_PERIOD: "100000\n"}, 8, 4),
        ({threads.CGROUP1_QUOTA: "-1\n", threads.CGROUP1_PERIOD: "100000\n"}, 8, 8),
        ({threads.CGROUP1_QUOTA: "400000\n"}, 8, 8),
    ],
)
def test_usable_threads_are_those_of_mask_and_quota(
    monkeypatch: pytest.MonkeyPatch, files: dict[str, str], mask: int | None, usable: int
) -> None:
    monkeypatch.setattr(threads, "read_system_file", files.get)
    if mask is None:
        monkeypatch.delattr(threads.os, "sched_getaffinity", raising=False)
    else:
        monkeypatch.setattr(threads.os, "sched_getaffinity", lambda process: set(range(mask)), raising=False)
    monkeypatch.setattr(threads.os, "cpu_count", lambda: 64)
    assert threads.read_limits().threads == usable


def test_what_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "usable_threads", lambda: 5)
    asked: list[Any] = [None, 1, 12]
    assert [threads.resolve_threads(each) for each in asked] == [5, 1, 12]
    with pytest.raises(UsageError, match="--threads 0 is not a whole number from 1"):
        threads.resolve_threads(0)


def test_limits_are_asked_for_again_and_the_same_object_until_then(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [threads.Limits(4, frozenset(range(4))), threads.Limits(2, None)]
    clock = [1e9]  # no process has run for so long
    monkeypatch.setattr(threads, "read_limits", lambda: found.pop(0))
    monkeypatch.setattr(threads.time, "monotonic", lambda: clock[0])
    first = threads.current_limits()
    clock[0] += threads.LIMITS_SECONDS * 0.9
    assert threads.current_limits() is first
    clock[0] += threads.LIMITS_SECONDS * 0.2
    assert threads.usable_threads() == 2
