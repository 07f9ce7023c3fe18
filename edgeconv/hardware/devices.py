"""Devices: the CPU, and an NVIDIA GPU through CuPy. Asking for one imports only what it needs."""

from __future__ import annotations

from functools import cache

from edgeconv.core.choices import DeviceName
from edgeconv.hardware.device import Device


@cache
def get_device(name: DeviceName) -> Device:
    """The device; one instance per process."""
    if name == "cuda":
        from edgeconv.hardware.cuda.device import CudaDevice

        return CudaDevice()
    from edgeconv.hardware.cpu.device import CpuDevice

    return CpuDevice()
