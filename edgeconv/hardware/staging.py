"""Ordinary host memory across the bus at nearly the speed of page-locked memory.

The driver copies ordinary (pageable) memory through a small buffer with one thread, at 4 to 18 GB/s. Here
several threads do the same: each copies its piece into its page-locked slots and puts the transfer on the
stream, so that host copies, page faults and the bus overlap. Page-locked memory stays bounded and is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from edgeconv.hardware.pool import run_pieces
from edgeconv.hardware.threads import usable_threads

PIECE_BYTES = 2 * 2**20
"""About 40 µs on a Gen5 ×16 bus: longer than a thread needs to put the transfer in the queue."""
SLOTS_PER_THREAD = 2
MOST_THREADS = 8
DIRECT_BYTES = PIECE_BYTES
"""Below this one driver copy is over before the threads have woken."""

PAGE_LOCKED = 1
"""cudaMemoryTypeHost, of `cudaPointerGetAttributes`."""


def is_page_locked(host: NDArray[Any]) -> bool:
    """Whether the driver can move this array without a copy in between."""
    return bool(cupy.cuda.runtime.pointerGetAttributes(host.ctypes.data).type == PAGE_LOCKED)


class _Slot:
    """A page-locked piece and the event after which it may be used again."""

    def __init__(self) -> None:
        self.memory = cupy.cuda.alloc_pinned_memory(PIECE_BYTES)
        self.bytes = np.frombuffer(self.memory, np.uint8, PIECE_BYTES)
        self.free = cupy.cuda.Event(disable_timing=True)


class Staging:
    """Slots for the threads of one transfer at a time; not for two threads at once."""

    def __init__(self, threads: int | None = None) -> None:
        self._threads = min(MOST_THREADS, threads or usable_threads())
        self._slots = [[_Slot() for _ in range(SLOTS_PER_THREAD)] for _ in range(self._threads)]

    def to_device(self, host: NDArray[Any], array: Any) -> None:
        """Put the copy of `host` on the current stream; on return `host` may be changed."""
        source = host.reshape(-1).view(np.uint8)

        def move(slot: _Slot, start: int, stop: int, stream: Any) -> None:
            slot.free.synchronize()
            slot.bytes[: stop - start] = source[start:stop]
            to_device = cupy.cuda.runtime.memcpyHostToDevice
            cupy.cuda.runtime.memcpyAsync(array.data.ptr + start, slot.memory.ptr, stop - start, to_device, stream.ptr)
            slot.free.record(stream)

        self._move_pieces(source.nbytes, move)

    def to_host(self, array: Any, host: NDArray[Any]) -> None:
        """Copy `array` to `host` behind what is on the current stream; complete on return."""
        target = host.reshape(-1).view(np.uint8)

        def move(slot: _Slot, start: int, stop: int, stream: Any) -> None:
            slot.free.synchronize()
            to_host = cupy.cuda.runtime.memcpyDeviceToHost
            cupy.cuda.runtime.memcpyAsync(slot.memory.ptr, array.data.ptr + start, stop - start, to_host, stream.ptr)
            slot.free.record(stream)
            slot.free.synchronize()
            target[start:stop] = slot.bytes[: stop - start]

        self._move_pieces(target.nbytes, move)

    def _move_pieces(self, size_bytes: int, move: Callable[[_Slot, int, int, Any], None]) -> None:
        """Call `move(slot, start, stop, stream)` for every piece, by all threads."""
        stream, device = cupy.cuda.get_current_stream(), cupy.cuda.Device()

        def piece(number: int, worker: int) -> None:
            device.use()
            slots = self._slots[worker]
            slots.append(slots.pop(0))  # in turn, so that one is filled while the other is on the bus
            start = number * PIECE_BYTES
            move(slots[-1], start, min(start + PIECE_BYTES, size_bytes), stream)

        run_pieces(piece, -(-size_bytes // PIECE_BYTES), self._threads)
