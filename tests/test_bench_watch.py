"""What makes a time doubtful, from readings that the test writes down."""

from __future__ import annotations

import os
from typing import Any

import pytest

from edgeconv.bench import watch
from edgeconv.bench.watch import Watch
from edgeconv.hardware.clocks import GpuReading


def seen(device: Any, clocks: tuple[int | None, ...] = (), mask: int = 0, use: tuple[float, float] = (0.0, 0.0)) -> Any:
    """The report of a work of 10 seconds on four cores; `use` are core-seconds of everybody, and of this process."""
    gpus = iter([GpuReading(clock, 1000, mask, 40, 100.0) for clock in clocks])
    uses = iter([(50.0, 4000.0), (50.0 + use[0] - use[1], 4040.0)])
    watched = Watch(device, lambda: next(gpus, None), lambda: next(uses))
    for _ in clocks:
        watched.look()
    return watched.report()


@pytest.mark.parametrize(
    ("device", "use", "share", "flags"),
    [
        ("cpu", (30.0, 20.0), 0.25, ["other processes used the CPU: 25 % of the cores"]),  # 10 of 40 core seconds
        ("cpu", (20.2, 20.0), 0.005, []),
        ("cuda", (30.0, 20.0), 0.25, []),  # the GPU's time is not the cores'
        ("cpu", (19.0, 20.0), 0.0, []),  # clocks that tick apart
        ("cpu", (99.0, 0.0), 1.0, ["other processes used the CPU: 100 % of the cores"]),
    ],
)
def test_what_others_took_of_the_cores(device: str, use: tuple[float, float], share: float, flags: list[str]) -> None:
    found = seen(device, use=use)
    assert (found.others_busy_share, found.flags) == (pytest.approx(share), flags)


@pytest.mark.parametrize(
    ("clocks", "mask", "flags"),
    [
        ((1980, 1980), 0x01, []),
        ((1980, 1000), 0, ["clock moved: 1000 to 1980 MHz"]),
        ((None, 1980), 0, []),
        ((1980,), 0x04 | 0x40, ["throttled: hardware thermal slowdown, software power cap"]),
    ],
)
def test_what_the_gpu_says_of_itself(clocks: tuple[int | None, ...], mask: int, flags: list[str]) -> None:
    found = seen("cuda", clocks, mask)
    known = [clock for clock in clocks if clock]
    assert (found.flags, found.sm_clock_min_mhz, found.sm_clock_max_mhz) == (flags, min(known), max(known))


def test_who_is_busy_by_the_counters_of_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    """user nice system idle iowait irq softirq steal, then guests, who are users already: proc(5)."""
    fields = "1000 200 30 500000 60000 7 8 9 10000 20000"
    monkeypatch.setattr(watch, "read_system_file", lambda path: f"cpu  {fields}\ncpu0 1 2 3\n")
    monkeypatch.setattr(watch.os, "times", lambda: (400.0, 100.0, 40.0, 2.0, 9000.0))
    found = watch.read_cpu_use()
    assert found is not None
    assert found[0] == 1254 / os.sysconf("SC_CLK_TCK") - 542.0
    for text in (None, "", "cpu\n", "cpu a b\n"):
        monkeypatch.setattr(watch, "read_system_file", lambda path, text=text: text)
        assert watch.read_cpu_use() is None
