"""Can this machine run CUDA through CuPy, and what did CUDA mean? CuPy is imported only to ask for a GPU."""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.util import find_spec

from edgeconv.core.optional import install
from edgeconv.errors import EdgeconvError, MemoryLimitError, UnavailableError, one_line

INSTALL_CUPY = f"{install('cuda13')}; cuda12 for older drivers"
"""What `edgeconv doctor` advises where there is no CuPy. Reasons do not repeat it: they stand in every report."""
DRIVER_FILES = ("/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-ctrl-gpu", "/dev/nvgpu")
"""What the driver shows on Linux: of a computer, under Windows, and of the Jetson boards."""


@cache
def cuda_unavailable_reason() -> str | None:
    """Why no CUDA method can run here, as a sentence without a full stop, or None where one can."""
    if find_spec("cupy") is None:
        return "CuPy is not installed"
    try:
        import cupy
    except (ImportError, OSError) as error:
        return f"CuPy cannot be imported ({one_line(error)})"
    runtime = cupy.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        if "InsufficientDriver" in str(error):
            return "no CUDA driver found, or one that is older than CuPy needs"
        return f"no NVIDIA GPU found ({error})"
    return None if count else "no NVIDIA GPU found"


def cuda_missing_reason() -> str | None:
    """The same as far as it can be told without importing CuPy, which takes time: None where CUDA may work."""
    if "cupy" in sys.modules:
        return cuda_unavailable_reason()
    if find_spec("cupy") is None:
        return "CuPy is not installed"
    if sys.platform == "linux" and not any(map(os.path.exists, DRIVER_FILES)):
        return "no NVIDIA GPU found"
    return None


def cuda_remedy() -> str | None:
    """What to install where CUDA needs no more than that; None where nothing, or something else, is missing."""
    return INSTALL_CUPY if find_spec("cupy") is None else None


OUT_OF_MEMORY = 2
"""cudaErrorMemoryAllocation of the runtime, and CUDA_ERROR_OUT_OF_MEMORY of the driver."""


def cuda_failure(error: BaseException) -> EdgeconvError | None:
    """What an error of the CUDA runtime or driver tells the user; None for any other error.

    A GPU whose memory others have taken fails at the first call of all: it has no room for CUDA's own context.
    """
    if (cupy := sys.modules.get("cupy")) is None:
        return None
    if not isinstance(error, (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError)):
        return None
    if error.status == OUT_OF_MEMORY:
        return MemoryLimitError(
            f"The memory of the GPU is full ({one_line(error)}): end other programs that use it, which nvidia-smi "
            "lists, or use --device cpu."
        )
    return UnavailableError(f"The CUDA device failed: {one_line(error)}. Try --device cpu.")
