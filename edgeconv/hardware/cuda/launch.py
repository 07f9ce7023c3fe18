"""A kernel launch whose arguments are packed once, so that a call costs little more than the driver's time.

CuPy's call packs every argument again, some microseconds in Python: more than a 512×512 picture takes on the
GPU. Here the argument block is laid out when the plan is made, and a call writes two addresses into it.
"""

from __future__ import annotations

import ctypes
from typing import Any

import cupy
import numpy as np

INVALID_CONTEXT = 201
"""CUDA_ERROR_INVALID_CONTEXT of the driver."""


class PackedLaunch:
    """A kernel `(image, out, *arguments)` with its grid, ready to run on any two arrays.

    `arguments` are NumPy scalars or arrays that the kernel takes by value (an array is a struct's bytes).
    A kernel for batches gets `pictures` lines of blocks, one for each. The launch goes to CuPy's current stream, and
    may be captured in a graph. Not for two threads at once.
    """

    launches = 1
    """Kernel launches in one run."""

    def __init__(self, kernel: Any, blocks: int, threads: tuple[int, int], *arguments: Any, pictures: int = 1) -> None:
        self._kernel = kernel
        self._device = cupy.cuda.runtime.getDevice()
        self._function = int(kernel.kernel.ptr)
        self._shape = (blocks, pictures, 1, *threads, 1)
        self._image, self._out = ctypes.c_uint64(), ctypes.c_uint64()
        self._by_value = [np.ascontiguousarray(argument) for argument in arguments]
        addresses = [ctypes.addressof(self._image), ctypes.addressof(self._out)]
        addresses += [argument.ctypes.data for argument in self._by_value]
        self._addresses = (ctypes.c_void_p * len(addresses))(*addresses)
        self._block = ctypes.addressof(self._addresses)

    def __call__(self, image: Any, out: Any) -> None:
        """Put one launch in the current stream; `image` and `out` are CuPy arrays."""
        self.at(image.data.ptr, out.data.ptr)

    def at(self, image_address: int, out_address: int, stream: int | None = None) -> None:
        """The same for a caller that has the arrays' addresses, on the stream of that address if it has one."""
        self._image.value = image_address
        self._out.value = out_address
        if stream is None:
            stream = cupy.cuda.get_current_stream().ptr
        try:
            cupy.cuda.driver.launchKernel(self._function, *self._shape, 0, stream, self._block, 0)
        except cupy.cuda.driver.CUDADriverError as error:
            if error.status != INVALID_CONTEXT:
                raise
            # A thread that never called the CUDA runtime has no context; asking for the device gives it one.
            cupy.cuda.runtime.setDevice(self._device)
            cupy.cuda.driver.launchKernel(self._function, *self._shape, 0, stream, self._block, 0)


MOST_LINES = 65_535
"""The longest y axis of a grid: CUDA C++ Programming Guide, compute capabilities."""


class BatchLaunch:
    """A kernel that filters a batch of pictures that lie one behind another, each in its line of the grid's y axis."""

    def __init__(
        self, kernel: Any, blocks: int, threads: tuple[int, int], *arguments: Any, pictures: int, steps: tuple[int, int]
    ) -> None:
        """`steps` are the bytes from one picture to the next, in the batch and in its output."""
        self._launches = []
        for first in range(0, pictures, MOST_LINES):
            count = min(MOST_LINES, pictures - first)
            launch = PackedLaunch(kernel, blocks, threads, *arguments, pictures=count)
            self._launches.append((launch, first * steps[0], first * steps[1]))

    @property
    def launches(self) -> int:
        """Kernel launches in one run: one, but for more pictures than a grid has lines."""
        return len(self._launches)

    def at(self, image_address: int, out_address: int, stream: int | None = None) -> None:
        """Put the launches in a stream."""
        for launch, image_offset, out_offset in self._launches:
            launch.at(image_address + image_offset, out_address + out_offset, stream)
