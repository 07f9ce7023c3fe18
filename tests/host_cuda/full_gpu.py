"""CuPy on a machine whose GPU has no memory left: the GPU is there, and whatever needs CUDA's context fails.

A command imports a copy of this file that is named cupy.py and lies in the folder where it is started.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


class FullError(RuntimeError):
    """As the runtime's and the driver's; CuPy adds the number."""

    status = 2


def _full(*_: Any, **__: Any) -> Any:
    raise FullError("cudaErrorMemoryAllocation: out of memory")


def __getattr__(name: str) -> Any:
    """Whatever makes an array."""
    if name.startswith("_"):
        raise AttributeError(name)
    return _full


ndarray = type("ndarray", (), {})
cuda = SimpleNamespace(
    Device=lambda *_: SimpleNamespace(id=0, pci_bus_id="", attributes={"MultiProcessorCount": 3}),
    MemoryHook=object,
    memory=SimpleNamespace(OutOfMemoryError=type("OutOfMemoryError", (MemoryError,), {})),
    driver=SimpleNamespace(CUDADriverError=type("CUDADriverError", (RuntimeError,), {})),
    runtime=SimpleNamespace(
        CUDARuntimeError=FullError,
        getDeviceCount=lambda: 1,
        getDevice=lambda: 0,
        getDeviceProperties=lambda number: {},
        memGetInfo=_full,
        setDevice=_full,
    ),
    get_current_stream=_full,
    Stream=_full,
)
