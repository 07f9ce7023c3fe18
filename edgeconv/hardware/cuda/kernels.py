"""CUDA sources: which file, which macros, which entry point.

Kernels live in `.cu` files beside the Python that prepares them, are specialised by macros alone (`-DSTRIDE=2`), and
are compiled by NVRTC through CuPy when a plan is prepared. What they share stands in `.cuh` files of the same folder,
which are put in the place of their `#include "name.cuh"` before compiling: so CuPy's cache, which looks at the source
alone, notices when a header changes. What plans may ask for, a machine without a GPU can compile, to look for spills
(scripts/compile_kernels.py).
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2]
"""The package: sources are named by their path in it."""

COMPILE_OPTIONS = ("-std=c++17", "--restrict")
"""Given to NVRTC for every kernel. CuPy adds `-ftz=true` by itself; nothing here asks for fast math."""

_INCLUDE = re.compile(r'^#include "(\w+\.cuh)"$', re.MULTILINE)


@dataclass(frozen=True, order=True)
class KernelVariant:
    """A kernel to compile: `source` is its file, as `methods/cuda/sliding.cu`, `defines` its macros."""

    source: str
    entry: str
    defines: tuple[tuple[str, str | int], ...] = ()

    @property
    def text(self) -> str:
        """The CUDA C++ source, headers included."""
        return _with_headers(self.source)

    @property
    def options(self) -> tuple[str, ...]:
        """Compiler options, macros included."""
        return (*COMPILE_OPTIONS, *(f"-D{name}={value}" for name, value in self.defines))


@cache
def _with_headers(name: str) -> str:
    """The text of a source, the headers beside it put in where they are included (each once, so no guards)."""
    path = FOLDER / name
    beside = path.parent.relative_to(FOLDER).as_posix() if path.is_relative_to(FOLDER) else path.parent.as_posix()
    return _INCLUDE.sub(lambda found: _with_headers(f"{beside}/{found[1]}"), path.read_text(encoding="utf-8"))


_compiling = threading.Lock()
"""Threads that want one kernel at the same time compile it once."""


def load(variant: KernelVariant) -> Any:
    """The compiled kernel as a `cupy.RawKernel`; compiled once per process; CuPy stores it on disk."""
    with _compiling:
        return _load(variant)


@cache
def _load(variant: KernelVariant) -> Any:
    import cupy

    module = cupy.RawModule(code=variant.text, options=variant.options, backend="nvrtc")
    return module.get_function(variant.entry)


def loaded_kernels() -> int:
    """How many kernels this process has compiled or taken from CuPy's store."""
    return _load.cache_info().currsize


def resident_blocks(kernel: Any, threads: int) -> int:
    """Blocks of that number of threads that run at once on the current GPU, without dynamic shared memory.

    A thread that never called the CUDA runtime has no context, which the driver's own functions need.
    """
    import cupy

    cupy.cuda.runtime.setDevice(cupy.cuda.runtime.getDevice())
    per_multiprocessor = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(kernel.kernel.ptr, threads, 0)
    return int(per_multiprocessor * cupy.cuda.Device().attributes["MultiProcessorCount"])
