"""Clocks and throttle reasons of an NVIDIA GPU, by nvidia-ml-py, which comes with the extras for CUDA."""

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
    """A GPU at one moment; None stands for what it refuses to tell."""

    sm_clock_mhz: int | None
    memory_clock_mhz: int | None
    throttle_reasons_mask: int | None
    temperature_celsius: int | None
    power_watts: float | None
    driver_version: str | None = None
    """As NVIDIA numbers it: '580.159.04'."""

    @property
    def slowdowns(self) -> tuple[str, ...]:
        """What holds the GPU back, in words."""
        mask = self.throttle_reasons_mask or 0
        return tuple(words for bit, words in SLOWDOWNS.items() if mask & bit)


def read_gpu(pci_bus_id: str) -> GpuReading | None:
    """The GPU at `pci_bus_id` ('0000:17:00.0') now, within some tens of microseconds.

    None where the package is missing or the GPU does not respond.
    """
    found = _open(pci_bus_id)
    return None if found is None else _reading(*found)


@cache
def _open(pci_bus_id: str) -> tuple[Any, Any] | None:
    """NVIDIA's library and its handle of the GPU."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        return pynvml, pynvml.nvmlDeviceGetHandleByPciBusId(pci_bus_id)
    except pynvml.NVMLError:
        return None


def _reading(nvml: Any, gpu: Any) -> GpuReading:
    def ask(function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except nvml.NVMLError:
            return None

    milliwatts = ask(nvml.nvmlDeviceGetPowerUsage, gpu)
    return GpuReading(
        sm_clock_mhz=ask(nvml.nvmlDeviceGetClockInfo, gpu, nvml.NVML_CLOCK_SM),
        memory_clock_mhz=ask(nvml.nvmlDeviceGetClockInfo, gpu, nvml.NVML_CLOCK_MEM),
        throttle_reasons_mask=ask(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, gpu),
        temperature_celsius=ask(nvml.nvmlDeviceGetTemperature, gpu, nvml.NVML_TEMPERATURE_GPU),
        power_watts=None if milliwatts is None else milliwatts / 1e3,
        driver_version=ask(nvml.nvmlSystemGetDriverVersion),
    )
