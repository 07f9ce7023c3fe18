"""The arrays that people hold: NumPy, CuPy, PyTorch, JAX, and what shows itself by DLPack or a CUDA array interface.

A plan asks four things of a library of arrays: where the samples of an array lie (its address, when it is exactly what
the plan was made for), the same memory as a NumPy or CuPy array, a new array like another one, and the stream that the
caller works on. Nothing is copied here that need not be, and no library is imported that the caller has not imported.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.problem import INPUT_DTYPES
from edgeconv.errors import UnavailableError, UsageError
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason
from edgeconv.hardware.pages import LEAST_BYTES, large_empty
from edgeconv.methods.cpu.arrays import address_of

Shape = tuple[int, ...]

ALIGNED_BYTES = 64
"""New host arrays start on a cache line: JAX takes them without a copy, and stores past the cache need it."""

DLPACK_CPU, DLPACK_CUDA, DLPACK_CUDA_HOST = 1, 2, 3
"""Device types of DLPack (dlpack.h, DLDeviceType)."""


class ArrayLibrary(ABC):
    """What a plan must know of the arrays of one library. `gpu` is the number of a GPU, None for the host."""

    @abstractmethod
    def gpu_of(self, array: Any) -> int | None:
        """The GPU that holds the array; None where it lies in host memory."""

    def sample_type(self, array: Any) -> np.dtype[Any]:
        """NumPy's name for the type of its samples."""
        kind: np.dtype[Any] = self.native(array).dtype
        return kind

    @abstractmethod
    def native(self, array: Any) -> Any:
        """The same memory as a NumPy array, or as a CuPy array where it is on a GPU."""

    def address(self, array: Any, shape: Shape, dtype: np.dtype[Any], gpu: int | None) -> int | None:
        """Where the samples lie, if the array is exactly this one, C-contiguous and aligned; None where it is not."""
        return None

    def wrap(self, native: Any, like: Any) -> Any:
        """What `new` gave as an array of this library; the memory is shared where the library can."""
        return native

    def new(self, shape: Shape, dtype: np.dtype[Any], like: Any) -> tuple[Any, int]:
        """A new array beside `like` and its address: of this library, or a native one that `wrap` takes."""
        home = _LIBRARIES[np.ndarray] if self.gpu_of(like) is None else CupyArrays()
        return home.new(shape, dtype, like)

    def stream(self, gpu: int) -> int | None:
        """The CUDA stream that this thread works on in this library; None where that is CuPy's."""
        return None


class NumpyArrays(ArrayLibrary):
    """NumPy, its subclasses too: `np.memmap` and most others are plain memory, and masked arrays are refused."""

    def gpu_of(self, array: Any) -> int | None:
        return None

    def native(self, array: Any) -> Any:
        if isinstance(array, np.ma.MaskedArray):
            raise UsageError("A masked array's mask has no meaning here: pass image.filled(value), or image.data.")
        return array

    def address(self, array: Any, shape: Shape, dtype: np.dtype[Any], gpu: int | None) -> int | None:
        if type(array) is not np.ndarray:
            array = self.native(array)
        if gpu is not None or array.shape != shape or array.dtype != dtype:
            return None
        flags = array.flags
        return address_of(array) if flags.c_contiguous and flags.aligned else None

    def new(self, shape: Shape, dtype: np.dtype[Any], like: Any) -> tuple[Any, int]:
        result = aligned_empty(shape, dtype)
        return result, address_of(result)


class CupyArrays(ArrayLibrary):
    """CuPy."""

    def __init__(self) -> None:
        self._cupy = sys.modules["cupy"]

    def gpu_of(self, array: Any) -> int | None:
        return int(array.data.device_id)

    def native(self, array: Any) -> Any:
        return array

    def address(self, array: Any, shape: Shape, dtype: np.dtype[Any], gpu: int | None) -> int | None:
        if array.shape == shape and array.dtype == dtype and array._c_contiguous:
            memory = array.data
            if memory.device_id == gpu:
                place: int = memory.ptr
                return place if place % dtype.itemsize == 0 else None
        return None

    def new(self, shape: Shape, dtype: np.dtype[Any], like: Any) -> tuple[Any, int]:
        result = self._cupy.empty(shape, dtype)
        return result, result.data.ptr


class TorchArrays(ArrayLibrary):
    """PyTorch, on the CPU and on CUDA."""

    def __init__(self) -> None:
        torch = sys.modules["torch"]
        self._torch: Any = torch
        self._raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None) or (
            lambda gpu: torch.cuda.current_stream(gpu).cuda_stream
        )
        """The first is what compiled PyTorch code calls, and takes a tenth of the second's three microseconds."""
        self._kinds = {np.dtype(name): getattr(torch, name) for name in INPUT_DTYPES if hasattr(torch, name)}

    def gpu_of(self, array: Any) -> int | None:
        if array.device.type not in ("cpu", "cuda"):
            raise UsageError(f"A tensor on '{array.device}' cannot be read here: pass image.cpu().")
        return int(array.device.index) if array.is_cuda else None

    def sample_type(self, array: Any) -> np.dtype[Any]:
        for kind, name in self._kinds.items():
            if name is array.dtype:
                return kind
        known = ", ".join(kind.name for kind in self._kinds)
        raise UsageError(f"Tensors of type {array.dtype} are not supported: convert to one of {known}.")

    def native(self, array: Any) -> Any:
        if array.requires_grad:
            raise UsageError("No gradient flows through a filter of edgeconv: pass image.detach().")
        if not array.is_cuda:
            return array.numpy()
        return cupy_or_refuse().asarray(array)

    def address(self, array: Any, shape: Shape, dtype: np.dtype[Any], gpu: int | None) -> int | None:
        same = array.shape == shape and array.dtype is self._kinds.get(dtype) and array.is_contiguous()
        if not same or array.requires_grad or array.get_device() != (-1 if gpu is None else gpu):
            return None
        place: int = array.data_ptr()
        return place if place % dtype.itemsize == 0 else None

    def new(self, shape: Shape, dtype: np.dtype[Any], like: Any) -> tuple[Any, int]:
        result = self._torch.empty(shape, dtype=self._kinds[dtype], device=like.device)
        return result, result.data_ptr()

    def stream(self, gpu: int) -> int | None:
        return int(self._raw_stream(gpu))


class DlpackArrays(ArrayLibrary):
    """Any other library with DLPack; results come back through its array namespace where it has one."""

    def gpu_of(self, array: Any) -> int | None:
        kind, number = map(int, array.__dlpack_device__())
        if kind in (DLPACK_CPU, DLPACK_CUDA_HOST):
            return None
        if kind == DLPACK_CUDA:
            return number
        name = type(array).__name__
        raise UsageError(f"A {name} on a device of another kind than CPU and CUDA cannot be read here.")

    def native(self, array: Any) -> Any:
        return np.from_dlpack(array) if self.gpu_of(array) is None else cupy_or_refuse().from_dlpack(array)

    def wrap(self, native: Any, like: Any) -> Any:
        if hasattr(like, "__array_namespace__"):
            return like.__array_namespace__().from_dlpack(native)
        return native


class JaxArrays(DlpackArrays):
    """JAX, on the CPU and on CUDA. Its arrays cannot be written to, so there is no `out=`."""

    def gpu_of(self, array: Any) -> int | None:
        try:
            devices = len(array.devices())
        except (AttributeError, TypeError):  # traced: it lies nowhere yet, and newer JAX says so by a TypeError
            devices = 0
        if devices != 1:
            raise UsageError("A JAX array that is traced, or lies on several devices, cannot be read here.")
        return super().gpu_of(array)

    def native(self, array: Any) -> Any:
        """See ArrayLibrary.native; waits until the array has been computed."""
        return np.asarray(array) if self.gpu_of(array) is None else super().native(array.block_until_ready())

    def wrap(self, native: Any, like: Any) -> Any:
        return sys.modules["jax"].dlpack.from_dlpack(native)


class NumbaArrays(ArrayLibrary):
    """Numba's device arrays, and others that only have `__cuda_array_interface__`; those come back as CuPy's."""

    def gpu_of(self, array: Any) -> int | None:
        from edgeconv.hardware.cuda.device import device_of

        return device_of(array)

    def native(self, array: Any) -> Any:
        return cupy_or_refuse().asarray(array)

    def wrap(self, native: Any, like: Any) -> Any:
        numba = sys.modules.get("numba")
        if numba is not None and type(like).__module__.startswith(("numba.", "numba_cuda.")):
            return numba.cuda.as_cuda_array(native)
        return native


_LIBRARIES: dict[type, ArrayLibrary] = {np.ndarray: NumpyArrays()}
"""The library of each type of array that has been seen; a lookup in it is all that a later call pays."""


def library_of(array: Any) -> ArrayLibrary:
    """The library that an array is of. Raises UsageError for what is not an array."""
    kind = type(array)
    found = _LIBRARIES.get(kind)
    if found is None:
        found = _LIBRARIES[kind] = _find_library(array)
    return found


def _find_library(array: Any) -> ArrayLibrary:
    if isinstance(array, np.ndarray):
        return _LIBRARIES[np.ndarray]
    for module, name, library in (("cupy", "ndarray", CupyArrays), ("torch", "Tensor", TorchArrays)):
        loaded = sys.modules.get(module)  # who has such an array has imported its library
        if loaded is not None and isinstance(array, getattr(loaded, name, ())):
            return library()
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(array, jax.Array):
        return JaxArrays()
    if hasattr(array, "__cuda_array_interface__"):
        return NumbaArrays()
    if hasattr(array, "__dlpack__") and hasattr(array, "__dlpack_device__"):
        return DlpackArrays()
    raise UsageError(
        f"A picture must be an array of NumPy, CuPy, PyTorch or JAX, or one with DLPack, not {type(array).__name__}."
    )


def aligned_empty(shape: Shape, dtype: np.dtype[Any]) -> NDArray[Any]:
    """A new NumPy array that starts on a cache line; a large one on large pages."""
    size = math.prod(shape) * dtype.itemsize
    if size >= LEAST_BYTES:
        return large_empty(size).view(dtype).reshape(shape)
    whole = np.empty(size + ALIGNED_BYTES, np.uint8)
    start = -whole.ctypes.data % ALIGNED_BYTES
    return whole[start : start + size].view(dtype).reshape(shape)


def cupy_or_refuse() -> Any:
    """CuPy; raises UnavailableError where it cannot be used."""
    reason = cuda_unavailable_reason()
    if reason is not None:
        raise UnavailableError(f"An array on a GPU needs CuPy: {reason}.")
    import cupy

    return cupy


def on_gpu(number: int | None) -> AbstractContextManager[None]:
    """Work on one GPU inside the block, and on the one before after it; nothing changes for None, the host."""
    if number is None:
        return nullcontext()
    cupy_or_refuse()
    from edgeconv.hardware.cuda.device import on_device

    return on_device(number)


@contextmanager
def stream_as_given(library: ArrayLibrary, gpu: int | None) -> Iterator[None]:
    """Make the caller's stream CuPy's current one inside the block, where another library has one of its own."""
    number = None if gpu is None else library.stream(gpu)
    if number is None:
        yield
        return
    import cupy

    with cupy.cuda.ExternalStream(number, gpu):
        yield
