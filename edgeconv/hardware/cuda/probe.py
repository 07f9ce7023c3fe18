"""Can this machine run CUDA through CuPy? Asked before any method imports CuPy in earnest."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec


@cache
def cuda_unavailable_reason() -> str | None:
    """Why no CUDA method can run here, as a sentence without a full stop, or None where one can."""
    if find_spec("cupy") is None:
        return "CuPy is not installed (pip install 'edgeconv[cuda13]', or 'edgeconv[cuda12]' for older drivers)"
    try:
        import cupy
    except (ImportError, OSError) as error:
        return f"CuPy cannot be imported ({' '.join(str(error).split())})"
    runtime = cupy.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        if "InsufficientDriver" in str(error):
            return "no CUDA driver found, or one that is older than CuPy needs"
        return f"no NVIDIA GPU found ({error})"
    return None if count else "no NVIDIA GPU found"
