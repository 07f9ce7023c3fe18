"""Did the machine stay the same while it was measured? Clocks and slowdowns of a GPU, and who else used the CPU.

A GPU is read while it is at work (an idle one lowers its clocks). The readings come from functions, so that a test
plays them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial

from edgeconv.core.choices import DeviceName
from edgeconv.core.records import Amount, Part
from edgeconv.core.text import share_text
from edgeconv.hardware.clocks import GpuReading, read_gpu
from edgeconv.hardware.system_files import read_system_file

CLOCK_TOLERANCE = 0.03
OTHERS_TOLERANCE = 0.10
"""Shares by which a clock may move, and of the cores that others may keep busy."""


CpuUse = tuple[float, float]
"""Core-seconds since some start: those that others were busy for, and those that all cores have."""


def read_cpu_use() -> CpuUse | None:
    """From the first line of /proc/stat (proc(5)); None where there is none."""
    try:
        lines = (read_system_file("/proc/stat") or "").splitlines()
        user, nice, system, _, _, irq, softirq, steal = map(int, lines[0].split()[1:9])
    except (ValueError, IndexError):  # not as Linux writes it
        return None
    ticks = user + nice + system + irq + softirq + steal
    own = sum(os.times()[:4])  # with children that were waited for, as a peer that is a command is
    return ticks / os.sysconf("SC_CLK_TCK") - own, time.perf_counter() * (os.cpu_count() or 1)


def gpu_reader(device: DeviceName) -> Callable[[], GpuReading | None]:
    """A function that reads the GPU in use; it gives None on a CPU, and where a GPU does not tell."""
    if device == "cpu":
        return lambda: None
    import cupy

    return partial(read_gpu, cupy.cuda.Device().pci_bus_id)


class Watched(Part):
    """What a watch saw; `flags` has a sentence for each thing that makes a time doubtful."""

    sm_clock_min_mhz: int | None
    sm_clock_max_mhz: int | None
    others_busy_share: Amount | None
    flags: list[str]


class Watch:
    """Readings of one case on one device, from now to `report`."""

    def __init__(
        self,
        device: DeviceName,
        read_gpu: Callable[[], GpuReading | None] | None = None,
        read_cpu: Callable[[], CpuUse | None] = read_cpu_use,
    ) -> None:
        self.device, self._read_gpu, self._read_cpu = device, read_gpu or gpu_reader(device), read_cpu
        self._readings: list[GpuReading] = []
        self._before = self._read_cpu()

    def look(self) -> None:
        """Read the GPU; to be called while it works."""
        reading = self._read_gpu()
        if reading is not None:
            self._readings.append(reading)

    def report(self) -> Watched:
        """What was seen."""
        clocks = [reading.sm_clock_mhz for reading in self._readings if reading.sm_clock_mhz]
        slowdowns = sorted({words for reading in self._readings for words in reading.slowdowns})
        before, after, others = self._before, self._read_cpu(), None
        if before and after:
            others = min(1.0, max(0.0, (after[0] - before[0]) / (after[1] - before[1])))
        flags = []
        if slowdowns:
            flags.append(f"throttled: {', '.join(slowdowns)}")
        if clocks and max(clocks) > min(clocks) * (1 + CLOCK_TOLERANCE):
            flags.append(f"clock moved: {min(clocks)} to {max(clocks)} MHz")
        if self.device == "cpu" and others is not None and others > OTHERS_TOLERANCE:
            flags.append(f"other processes used the CPU: {share_text(others)} of the cores")
        return Watched(min(clocks, default=None), max(clocks, default=None), others, flags)
