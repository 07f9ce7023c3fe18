"""The little that the plans use of CuPy, on host memory: they prepare and run here as they do on a GPU.

Arrays lie between guard zones that AddressSanitizer watches, start on 256 bytes as on a GPU, and are never freed.
`load` stands in for kernels.load: it compiles the kernel's file with g++ and host_cuda.h, once for each set of
macros; what it makes is kept under a hash of all that it depends on, for later runs too. A launch then runs the kernel
on its real grid with the argument block that launch.py packed.
Works only where libasan was loaded before Python (see run_on_cpu.py).
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from fake_libraries import CUBLAS, install_cudnn

HERE = Path(__file__).resolve().parent
GUARD_BYTES = 1 << 16
ALIGNMENT = 256

MULTIPROCESSORS = 3
BLOCKS_PER_MULTIPROCESSOR = 2
L2_BYTES = 1 << 18
COMPUTE_CAPABILITY = "80"
"""A very small GPU, so that a small picture still makes blocks that go round more than once."""

COMPILER = ("g++", "-std=c++17", "-O0", "-g", "-fPIC", "-fno-strict-aliasing", "-fno-omit-frame-pointer")
SANITIZERS = ("-fsanitize=address,undefined", "-fsanitize-sections=shared_memory", "-fno-sanitize-recover=all")
WARNINGS = ("-Wno-unknown-pragmas",)
LINKER = ("-fuse-ld=gold",) if shutil.which("ld.gold") else ()
"""The usual linker takes a sixth of the time that a small kernel takes to compile."""
RUNTIME = ("block", "warp_mma")
"""The .cpp files that every kernel is linked with."""


class Array(np.ndarray):
    """A NumPy array with CuPy's way of telling its address."""

    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=self.ctypes.data)

    def get(self) -> np.ndarray:
        return np.array(self)


_never_freed: list[np.ndarray] = []


def guarded(count: int, offset: int = 0) -> np.ndarray:
    """`count` bytes of rubbish, `offset` bytes past an aligned address, with guard zones on both sides."""
    whole = np.full(count + offset + 2 * GUARD_BYTES + ALIGNMENT, 0xFF, np.uint8)
    _never_freed.append(whole)
    start = -whole.ctypes.data % ALIGNMENT + GUARD_BYTES + offset
    address = whole.ctypes.data + start  # NumPy tells another one of a part without any bytes
    poison = ctypes.CDLL(None).__asan_poison_memory_region
    poison(ctypes.c_void_p(address - GUARD_BYTES), ctypes.c_size_t(GUARD_BYTES))
    poison(ctypes.c_void_p(address + count), ctypes.c_size_t(GUARD_BYTES))
    return whole[start : start + count]


def empty(shape: tuple[int, ...], dtype: Any, offset_samples: int = 0) -> Array:
    """An uninitialised array, `offset_samples` samples past an aligned address."""
    kind = np.dtype(dtype)
    count = int(np.prod(shape)) * kind.itemsize
    return guarded(count, offset_samples * kind.itemsize).view(kind).reshape(shape).view(Array)


def asarray(values: Any, offset_samples: int = 0) -> Array:
    """A copy of a host array."""
    source = np.asarray(values)
    copy = empty(source.shape, source.dtype, offset_samples)
    copy[...] = source
    return copy


def full(count: int, value: int, dtype: Any) -> Array:
    """cupy.full."""
    array = empty((count,), dtype)
    array.fill(value)
    return array


class Kernel:
    """A kernel compiled for the CPU."""

    def __init__(self, library: Path) -> None:
        self._launch = ctypes.CDLL(str(library)).launch
        self.kernel = SimpleNamespace(ptr=len(_kernels))
        _kernels.append(self)

    def launch(self, grid: tuple[int, ...], block: tuple[int, ...], arguments: int, descending: bool) -> None:
        triple = ctypes.c_uint * 3
        self._launch(triple(*grid), triple(*block), ctypes.c_void_p(arguments), int(descending))


_kernels: list[Kernel] = []


def _compile(arguments: tuple[str, ...], to: Path, what: str, program: str = "") -> None:
    """Run g++; what it makes appears at `to` complete, since another process may look for it."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    made = to.with_name(f"{to.name}.{os.getpid()}")
    command = (*COMPILER, *SANITIZERS, *WARNINGS, *arguments, "-o", str(made))
    done = subprocess.run(command, input=program, text=True, capture_output=True, check=False, env=environment)
    if done.returncode:
        raise SystemExit(f"{what} does not compile for the CPU: {done.stderr}")
    made.replace(to)


def _texts(source: Path, found: dict[Path, str]) -> list[str]:
    """The text of a source and of all that it includes."""
    if source not in found and source.is_file():
        found[source] = source.read_text(encoding="utf-8")
        for name in re.findall(r'#include "([^"]+)"', found[source]):
            _texts(source.parent / name, found)
    return list(found.values())


@cache
def _compiler() -> str:
    """Which compiler it is, with all that every kernel is compiled with."""
    version = subprocess.run((COMPILER[0], "--version"), capture_output=True, text=True, check=True).stdout
    own = [path.read_text(encoding="utf-8") for path in sorted(HERE.iterdir()) if path.suffix in (".h", ".cpp")]
    return repr((version, COMPILER, SANITIZERS, WARNINGS, LINKER, own))


def _kept(name: str, *depends: Any) -> Path:
    """Where what depends on the compiler and on `depends` is kept; found there, it has been used now."""
    key = hashlib.sha256(repr((_compiler(), depends)).encode()).hexdigest()[:16]
    path = Path(os.environ["HOST_CUDA_LIBRARIES"]) / name.replace("KEY", key)
    if path.exists():
        path.touch()
    return path


@cache
def _precompiled_header() -> Path:
    """A folder with host_cuda.h as the compiler takes it in at once: it is a third of the time of a small kernel."""
    header = _kept("header-KEY/host_cuda.h.gch")
    if not header.exists():
        header.parent.mkdir(exist_ok=True)
        _compile((f"-I{HERE}", "-x", "c++-header", str(HERE / "host_cuda.h")), header, "host_cuda.h")
    return header.parent


@cache
def _runtime() -> tuple[str, ...]:
    """The object files of RUNTIME."""
    found = [_kept(f"{name}-KEY.o") for name in RUNTIME]
    for name, compiled in zip(RUNTIME, found, strict=True):
        if not compiled.exists():
            # Without line numbers: the sanitizers' reader finds those of a kernel's inline functions in one unit only.
            _compile(("-c", "-g0", f"-I{HERE}", str(HERE / f"{name}.cpp")), compiled, name)
    return tuple(map(str, found))


@cache
def load(variant: Any) -> Kernel:
    """kernels.load for the CPU: `variant` compiled by g++ from the file itself."""
    sources = Path(os.environ["HOST_CUDA_SOURCES"])
    macros = tuple(f"-D{name}={value}" for name, value in variant.defines)
    program = f'#include "host_cuda.h"\n#include "{variant.source}"\nHOST_CUDA_LAUNCH({variant.entry})\n'
    library = _kept(f"{variant.entry}-KEY.so", program, macros, _texts(sources / variant.source, {}))
    if not library.exists():
        source = (*macros, f"-I{_precompiled_header()}", f"-I{HERE}", f"-I{sources}", "-x", "c++", "-")
        _compile(("-shared", *LINKER, *source, "-x", "none", *_runtime()), library, variant.source, program)
    return Kernel(library)


def _launch_kernel(
    function: int,
    gx: int,
    gy: int,
    gz: int,
    bx: int,
    by: int,
    bz: int,
    shared: int,
    stream: int,
    block: int,
    extra: int,
) -> None:
    """cuLaunchKernel as CuPy's driver module has it."""
    if shared or extra:
        raise NotImplementedError("dynamic shared memory and packed argument buffers are not imitated")
    _kernels[function].launch((gx, gy, gz), (bx, by, bz), block, cupy.descending)


class _Device:
    id = 0
    attributes = {"MultiProcessorCount": MULTIPROCESSORS, "L2CacheSize": L2_BYTES}  # noqa: RUF012
    compute_capability = COMPUTE_CAPABILITY


cupy: Any = ModuleType("cupy")
"""The module that `import cupy` finds."""
cupy.descending = False
cupy.ndarray = Array
cupy.empty = empty
cupy.empty_like = lambda array: empty(array.shape, array.dtype)
cupy.asarray = asarray
cupy.full = full
cupy.cuda = ModuleType("cupy.cuda")
cupy.cuda.Device = _Device
cupy.cuda.alloc = lambda count: SimpleNamespace(ptr=guarded(count).ctypes.data, size=count)
cupy.cuda.get_current_stream = lambda: SimpleNamespace(ptr=0)
cupy.cuda.cublas = CUBLAS
cupy.cuda.device = SimpleNamespace(get_cublas_handle=lambda: 1)
cupy.cuda.runtime = SimpleNamespace(getDevice=lambda: 0, setDevice=lambda number: None)
cupy.cuda.driver = SimpleNamespace(
    launchKernel=_launch_kernel,
    CUDADriverError=type("CUDADriverError", (RuntimeError,), {}),
    occupancyMaxActiveBlocksPerMultiprocessor=lambda function, threads, shared: BLOCKS_PER_MULTIPROCESSOR,
)


def install() -> None:
    """Make `import cupy` and `kernels.load` those of this file; before any CUDA method is imported."""
    sys.modules.update({"cupy": cupy, "cupy.cuda": cupy.cuda})
    from edgeconv.hardware.cuda import kernels

    kernels.load = load  # type: ignore[assignment]
    install_cudnn()
