"""Did the machine stay the same while it was measured? Clocks and slowdowns of a GPU, and who else used the CPU.

A GPU is read while it is at work (an idle one lowers its clocks). The readings come from functions, so that a test
plays them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from edgeconv.core.choices import DeviceName
from edgeconv.core.records import Amount, Part, field
from edgeconv.hardware.nvml import GpuReading
from edgeconv.hardware.system_files import read_system_file

CLOCK_TOLERANCE = 0.03
OTHERS_TOLERANCE = 0.10
"""Shares by which a clock may move, and of the cores that others may keep busy."""


@dataclass(frozen=True)
class CpuUse:
    """Core-seconds since some start: of everybody, of this process and its own, and how many cores and seconds."""

    busy_seconds: float
    own_seconds: float
    wall_seconds: float
    cores: int


def read_cpu_use() -> CpuUse | None:
    """From the first line of /proc/stat (proc(5)); None where there is none."""
    try:
        lines = (read_system_file("/proc/stat") or "").splitlines()
        user, nice, system, _, _, irq, softirq, steal = map(int, lines[0].split()[1:9])
    except (ValueError, IndexError):  # not as Linux writes it
        return None
    ticks = user + nice + system + irq + softirq + steal
    children = os.times()  # of those that were waited for, as a peer that is a command is
    own = time.process_time() + children.children_user + children.children_system
    return CpuUse(ticks / os.sysconf("SC_CLK_TCK"), own, time.perf_counter(), os.cpu_count() or 1)


def read_no_gpu() -> GpuReading | None:
    """Where there is no GPU, or none that tells."""
    return None


def gpu_reader() -> Callable[[], GpuReading | None]:
    """A function that reads the current GPU, or one that answers None where it does not tell."""
    import cupy

    from edgeconv.hardware import nvml

    gpu = nvml.open_gpu(cupy.cuda.Device().pci_bus_id)
    return read_no_gpu if gpu is None else gpu.read


class Watched(Part):
    """What a watch saw; `flags` has a sentence for each thing that makes a time doubtful."""

    sm_clock_min_mhz: int | None
    sm_clock_max_mhz: int | None
    last_gpu_reading: GpuReading | None = field(name="last_card_reading")
    others_busy_share: Amount | None
    flags: list[str]


class Watch:
    """Readings of one case on one device, from `begin` to `report`."""

    def __init__(
        self,
        device: DeviceName,
        read_gpu: Callable[[], GpuReading | None] = read_no_gpu,
        read_cpu: Callable[[], CpuUse | None] = read_cpu_use,
    ) -> None:
        self.device, self._read_gpu, self._read_cpu = device, read_gpu, read_cpu
        self._readings: list[GpuReading] = []
        self._before: CpuUse | None = None

    def begin(self) -> None:
        """Forget what was, and start."""
        self._readings.clear()
        self._before = self._read_cpu()

    def look(self) -> None:
        """Read the GPU; to be called while it works."""
        reading = self._read_gpu()
        if reading is not None:
            self._readings.append(reading)

    def report(self) -> Watched:
        """What was seen since `begin`."""
        clocks = [reading.sm_clock_mhz for reading in self._readings if reading.sm_clock_mhz]
        slowdowns = sorted({words for reading in self._readings for words in reading.slowdowns})
        others = _others_share(self._before, self._read_cpu())
        flags = []
        if slowdowns:
            flags.append(f"throttled: {', '.join(slowdowns)}")
        if clocks and max(clocks) > min(clocks) * (1 + CLOCK_TOLERANCE):
            flags.append(f"clock moved: {min(clocks)} to {max(clocks)} MHz")
        if self.device == "cpu" and others is not None and others > OTHERS_TOLERANCE:
            flags.append(f"other processes used the CPU: {others:.0%} of the cores")
        last = self._readings[-1] if self._readings else None
        return Watched(min(clocks, default=None), max(clocks, default=None), last, others, flags)


def _others_share(before: CpuUse | None, after: CpuUse | None) -> float | None:
    """Share of the cores that other processes used between two readings; None where that is not known."""
    if before is None or after is None or after.wall_seconds <= before.wall_seconds:
        return None
    others = after.busy_seconds - before.busy_seconds - (after.own_seconds - before.own_seconds)
    return min(1.0, max(0.0, others / ((after.wall_seconds - before.wall_seconds) * after.cores)))
