"""Clocks and throttle reasons of an NVIDIA GPU, by nvidia-ml-py, which comes with the extras for CUDA.

A GPU that cannot be asked, or a machine without the package, is None, and so is a reading that the GPU refuses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

SLOWDOWNS: dict[int, str] = {
    0x04: "software power cap",
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
"""Bits of the throttle mask that mean a GPU runs slower than it could; idle (0x01) and the rest are by choice."""


@dataclass(frozen=True)
class GpuReading:
    """A GPU at one moment."""

    sm_clock_mhz: int | None
    memory_clock_mhz: int | None
    throttle_reasons_mask: int | None
    temperature_celsius: int | None
    power_watts: float | None

    @property
    def slowdowns(self) -> tuple[str, ...]:
        """What holds the GPU back, in words."""
        mask = self.throttle_reasons_mask or 0
        return tuple(words for bit, words in SLOWDOWNS.items() if mask & bit)


@dataclass(frozen=True)
class Gpu:
    """One GPU, known by its place on the bus."""

    nvml: Any
    handle: Any

    @property
    def driver_version(self) -> str | None:
        """As NVIDIA numbers it: '580.159.04'."""
        version: str | None = self._ask(self.nvml.nvmlSystemGetDriverVersion)
        return version

    def read(self) -> GpuReading:
        """The GPU now; it takes some tens of microseconds."""
        nvml, gpu = self.nvml, self.handle
        milliwatts = self._ask(nvml.nvmlDeviceGetPowerUsage, gpu)
        return GpuReading(
            sm_clock_mhz=self._ask(nvml.nvmlDeviceGetClockInfo, gpu, nvml.NVML_CLOCK_SM),
            memory_clock_mhz=self._ask(nvml.nvmlDeviceGetClockInfo, gpu, nvml.NVML_CLOCK_MEM),
            throttle_reasons_mask=self._ask(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, gpu),
            temperature_celsius=self._ask(nvml.nvmlDeviceGetTemperature, gpu, nvml.NVML_TEMPERATURE_GPU),
            power_watts=None if milliwatts is None else milliwatts / 1e3,
        )

    def _ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except self.nvml.NVMLError:
            return None


@cache
def open_gpu(pci_bus_id: str) -> Gpu | None:
    """The GPU at `pci_bus_id` ('0000:17:00.0'), or None where the package is missing or the GPU does not respond."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        return Gpu(pynvml, pynvml.nvmlDeviceGetHandleByPciBusId(pci_bus_id))
    except pynvml.NVMLError:
        return None
