"""Clocks and throttle reasons of an NVIDIA GPU: four calls of the driver's management library, over ctypes.

`libnvidia-ml.so.1` comes with the driver, so this needs no package. A GPU that cannot be asked is None, and a
reading that the GPU refuses is None: what is not known is not made up.

Source: nvml.h and the NVML API reference (clock types, `nvmlClocksThrottleReason` bits).
"""

from __future__ import annotations

import ctypes
import sys
from ctypes import byref, c_uint, c_ulonglong, c_void_p
from dataclasses import dataclass
from functools import cache
from typing import Any

LIBRARY = "nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1"
_SUCCESS = 0
_CLOCK_SM, _CLOCK_MEMORY = 1, 2
_TEMPERATURE_GPU = 0
_VERSION_BYTES = 80

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


class Gpu:
    """One GPU, known by its place on the bus."""

    def __init__(self, library: Any, handle: Any) -> None:
        self._library, self._handle = library, handle

    @property
    def driver_version(self) -> str | None:
        """As NVIDIA numbers it: '580.159.04'."""
        text = ctypes.create_string_buffer(_VERSION_BYTES)
        failed = self._library.nvmlSystemGetDriverVersion(text, _VERSION_BYTES)
        return None if failed else text.value.decode(errors="replace")

    def read(self) -> GpuReading:
        """The GPU now; it takes some tens of microseconds."""
        power_milliwatts = self._ask("nvmlDeviceGetPowerUsage", c_uint())
        return GpuReading(
            sm_clock_mhz=self._ask("nvmlDeviceGetClockInfo", c_uint(), _CLOCK_SM),
            memory_clock_mhz=self._ask("nvmlDeviceGetClockInfo", c_uint(), _CLOCK_MEMORY),
            throttle_reasons_mask=self._ask("nvmlDeviceGetCurrentClocksThrottleReasons", c_ulonglong()),
            temperature_celsius=self._ask("nvmlDeviceGetTemperature", c_uint(), _TEMPERATURE_GPU),
            power_watts=None if power_milliwatts is None else power_milliwatts / 1e3,
        )

    def _ask(self, name: str, answer: Any, *which: int) -> int | None:
        status = getattr(self._library, name)(self._handle, *which, byref(answer))
        return int(answer.value) if status == _SUCCESS else None


@cache
def open_gpu(pci_bus_id: str) -> Gpu | None:
    """The GPU at `pci_bus_id` ('0000:17:00.0'), or None where the library or the GPU does not respond."""
    try:
        library = ctypes.CDLL(LIBRARY)
        handle = c_void_p()
        if library.nvmlInit_v2() != _SUCCESS:
            return None
        if library.nvmlDeviceGetHandleByPciBusId_v2(pci_bus_id.encode(), byref(handle)) != _SUCCESS:
            return None
    except (OSError, AttributeError):
        return None
    return Gpu(library, handle)
