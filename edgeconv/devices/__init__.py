"""Devices: the CPU, and an NVIDIA card through CuPy. Asking for one imports only what it needs."""

from __future__ import annotations

from functools import cache

from edgeconv.devices.base import Device
from edgeconv.methods.base import DeviceName


@cache
def get_device(name: DeviceName) -> Device:
    """The device; one instance a process."""
    if name == "cuda":
        from edgeconv.devices.cuda import CudaDevice

        return CudaDevice()
    from edgeconv.devices.cpu import CpuDevice

    return CpuDevice()
