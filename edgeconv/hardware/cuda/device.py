"""An NVIDIA GPU as a device, through CuPy: page-locked staging, event timing with a cold L2, measured roof."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from statistics import median
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from edgeconv.errors import MemoryLimitError, one_line
from edgeconv.hardware.clocks import read_gpu
from edgeconv.hardware.cuda import limits
from edgeconv.hardware.cuda.kernels import KernelVariant, load
from edgeconv.hardware.cuda.probe import cuda_failure
from edgeconv.hardware.device import Device, L2State, Roof
from edgeconv.hardware.staging import DIRECT_BYTES, Staging, is_page_locked

COPY_BYTES = 256 * 2**20
FLUSH_BYTES_AT_LEAST = 256 * 2**20
ROOF_REPEATS = 7
RENEW_SECONDS = 2e-4
"""More than Python needs to put the few small writes of a renewal in the queue."""


class CudaDevice(Device):
    """CuPy's current device."""

    name = "cuda"
    moves_data = True
    array_module = cupy
    line_bytes = limits.SECTOR_BYTES
    l2_state: L2State = "cold"

    def __init__(self) -> None:
        self._flushes: dict[int, _Flush] = {}
        self._peak_bytes = 0
        self._thread = threading.local()

    def describe(self) -> dict[str, Any]:
        runtime = cupy.cuda.runtime
        properties = runtime.getDeviceProperties(cupy.cuda.Device().id)
        free_bytes, total_bytes = runtime.memGetInfo()
        reading = read_gpu(cupy.cuda.Device().pci_bus_id)
        return {
            "name": properties["name"].decode(),
            "compute_capability": f"{properties['major']}.{properties['minor']}",
            "multiprocessors": properties["multiProcessorCount"],
            "l2_bytes": properties["l2CacheSize"],
            "memory_bytes": total_bytes,
            "free_memory_bytes": free_bytes,
            "driver_cuda_version": runtime.driverGetVersion(),
            "runtime_cuda_version": runtime.runtimeGetVersion(),
            **({} if reading is None else asdict(reading)),
        }

    def host_empty(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        kind = np.dtype(dtype)
        samples = int(np.prod(shape, dtype=np.int64))
        memory = cupy.cuda.alloc_pinned_memory(max(1, samples * kind.itemsize))
        return np.frombuffer(memory, kind, samples).reshape(shape)

    def copy_in(self, host: NDArray[Any], array: Any) -> None:
        if self._is_direct(host):
            array.set(host)
        else:
            self._staging().to_device(host, array)
        self.synchronize()

    def copy_out(self, array: Any, host: NDArray[Any]) -> None:
        if self._is_direct(host):
            array.get(out=host)
        else:
            self._staging().to_host(array, host)
        self.synchronize()

    def synchronize(self) -> None:
        cupy.cuda.get_current_stream().synchronize()
        self._peak_bytes = max(self._peak_bytes, cupy.get_default_memory_pool().total_bytes())

    def _is_direct(self, host: NDArray[Any]) -> bool:
        """Whether one call of the driver does it best: a thread that has no helpers would only do the same in Python,
        and take the interpreter lock from the others for every piece.
        """
        alone = getattr(self._thread, "transfer_threads", None) == 1
        return alone or host.nbytes <= DIRECT_BYTES or is_page_locked(host)

    def _staging(self) -> Staging:
        """This thread's page-locked slots on the current GPU: the events in them are of one GPU."""
        staging: Staging = self._kept("staging", lambda: Staging(getattr(self._thread, "transfer_threads", None)))
        return staging

    def _kept(self, name: str, make: Callable[[], Any]) -> Any:
        """What this thread made for the current GPU; made where there is none yet."""
        kept: dict[Any, Any] = self._thread.__dict__
        place = name, cupy.cuda.runtime.getDevice()
        if place not in kept:
            kept[place] = make()
        return kept[place]

    def time_once(
        self,
        call: Callable[[], None],
        l2_state: L2State | None = None,
        enqueue_seconds: float = 0.0,
        renew: Callable[[], None] | None = None,
    ) -> float:
        """See Device.time_once.

        A large buffer is overwritten first. That empties the L2 of what the run will read, and keeps the
        GPU busy for longer than Python needs to put both events and the launch in the queue, so that a
        short kernel is not timed together with the wait for its launch. A call that takes longer to put in
        the queue has the buffer overwritten as often as that needs. For a warm L2 the call itself goes before.
        """
        warm = (l2_state or self.l2_state) == "warm"
        if renew is not None and not warm:
            renew()
        self._flush(enqueue_seconds * (2 if warm else 1) + (RENEW_SECONDS if warm and renew is not None else 0.0))
        if warm:
            call()
            if renew is not None:
                renew()
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        call()
        stop.record()
        stop.synchronize()
        return float(cupy.cuda.get_elapsed_time(start, stop)) / 1e3

    def floor(self, read_bytes: int, written_bytes: int) -> Callable[[], None]:
        """See Device.floor: two kernels, one in several grids; the driver's copy where as much is read as written."""
        reads, writes = limits.words(read_bytes), limits.words(written_bytes)
        source = cupy.zeros(reads * limits.WORD_BYTES, cupy.uint8)
        target = cupy.empty(writes * limits.WORD_BYTES, cupy.uint8)
        arguments = (source, target, np.int64(reads), np.int64(writes))

        def launch(variant: KernelVariant, blocks: int) -> Callable[[], None]:
            kernel = load(variant)
            return lambda: kernel((blocks,), (limits.THREADS,), arguments)

        multiprocessors = cupy.cuda.Device().attributes["MultiProcessorCount"]
        shapes = [launch(*shape) for shape in limits.grids(reads, writes, multiprocessors)]
        if read_bytes == written_bytes:
            shapes.append(lambda: target.data.copy_from_device_async(source.data, read_bytes, _stream()))
        return min(shapes, key=self._median)

    def roof(self) -> Roof:
        """See Device.roof: a device-to-device copy, and chains of multiply-adds in registers."""
        fma_rate, fma_how = self.fma_rate()
        how = f"device copy of {COPY_BYTES >> 20} MiB; {fma_how}"
        rates = Roof(2 * COPY_BYTES / self._copy_seconds(), fma_rate, how)
        cupy.get_default_memory_pool().free_all_blocks()
        return rates

    def _copy_seconds(self) -> float:
        source = cupy.ones(COPY_BYTES, cupy.uint8)
        target = cupy.empty_like(source)
        return self._median(lambda: target.data.copy_from_device_async(source.data, COPY_BYTES, _stream()))

    def fma_rate(self) -> tuple[float, str]:
        """See Device.fma_rate: by chains that depend on themselves alone."""
        blocks = limits.FMA_BLOCKS_PER_MULTIPROCESSOR * cupy.cuda.Device().attributes["MultiProcessorCount"]
        result = cupy.empty(blocks * limits.THREADS, cupy.float32)
        kernel = load(limits.FMA_KERNEL)
        arguments = (result, np.float32(0.999), np.float32(0.001))
        seconds = self._median(lambda: kernel((blocks,), (limits.THREADS,), arguments))
        rate = 2 * limits.FMA_CHAINS * limits.FMA_STEPS * blocks * limits.THREADS / seconds
        return float(rate), f"{limits.FMA_CHAINS} chains of float32 multiply-adds per thread"

    def peak_bytes(self) -> int | None:
        """See Device.peak_bytes: the most that CuPy's pool has held."""
        return max(self._peak_bytes, int(cupy.get_default_memory_pool().total_bytes()))

    def own_stream(self, threads: int | None = None) -> AbstractContextManager[Any]:
        """See Device.own_stream; `threads` counts from this thread's first large transfer on."""
        self._thread.transfer_threads = threads
        stream: AbstractContextManager[Any] = self._kept("stream", lambda: cupy.cuda.Stream(non_blocking=True))
        return stream

    def free_bytes(self) -> int | None:
        """See Device.free_bytes: on the GPU, and in CuPy's pool."""
        return int(cupy.cuda.runtime.memGetInfo()[0]) + int(cupy.get_default_memory_pool().free_bytes())

    @contextmanager
    def guard(self, needed_bytes: int) -> Iterator[None]:
        with super().guard(needed_bytes):
            make_current(cupy.cuda.runtime.getDevice())
            yield

    def memory_taken_by(self, run: Callable[[], Any]) -> int:
        with _Allocations() as taken:
            run()
        return int(taken.taken_bytes)

    def failure(self, error: Exception, needed_bytes: int) -> Exception:
        """See Device.failure; CuPy's pool and PyTorch's both call such an error OutOfMemoryError."""
        if not isinstance(error, MemoryError) and type(error).__name__ != "OutOfMemoryError":
            return cuda_failure(error) or error
        cupy.get_default_memory_pool().free_all_blocks()
        return MemoryLimitError(
            f"Out of GPU memory: about {needed_bytes:,} bytes are needed ({one_line(error)}). "
            "Lower --workspace-limit, use --method sliding, or --device cpu."
        )

    def _flush(self, enqueue_seconds: float = 0.0) -> None:
        """Overwrite more than the L2 holds, again and again for `enqueue_seconds` at least."""
        gpu = cupy.cuda.runtime.getDevice()
        if gpu not in self._flushes:
            self._flushes[gpu] = _Flush()
        self._flushes[gpu].run(enqueue_seconds)

    def _median(self, call: Callable[[], Any]) -> float:
        self.time_once(call)
        return median(self.time_once(call) for _ in range(ROOF_REPEATS))


class _Flush:
    """A buffer on the current GPU that is larger than its L2, and the time that overwriting it takes."""

    def __init__(self) -> None:
        l2_bytes = cupy.cuda.Device().attributes["L2CacheSize"]
        self._buffer = cupy.empty(max(FLUSH_BYTES_AT_LEAST, 4 * l2_bytes), cupy.uint8)
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        self._overwrite()
        start.record()
        self._overwrite()
        stop.record()
        stop.synchronize()
        self._seconds = float(cupy.cuda.get_elapsed_time(start, stop)) / 1e3

    def run(self, enqueue_seconds: float) -> None:
        for _ in range(1 + math.ceil(enqueue_seconds / self._seconds)):
            self._overwrite()

    def _overwrite(self) -> None:
        self._buffer.data.memset_async(0, self._buffer.nbytes, _stream())


class _Allocations(cupy.cuda.MemoryHook):  # type: ignore[misc]
    """Counts what this thread's pool takes from the GPU inside the block."""

    name = "edgeconv allocations"

    def __init__(self) -> None:
        self.taken_bytes = 0

    def alloc_preprocess(self, *, mem_size: int, **_: Any) -> None:
        """Called by CuPy where its pool has nothing that fits."""
        self.taken_bytes += mem_size


def make_current(device_id: int) -> None:
    """Make a GPU current for this thread.

    A thread that never called the CUDA runtime has no context until then, and CuPy's `Device` sets none where its
    number is already right: a launch would fail with CUDA_ERROR_INVALID_CONTEXT.
    """
    cupy.cuda.runtime.setDevice(device_id)


@contextmanager
def on_device(device_id: int) -> Iterator[None]:
    """Work on one GPU inside the block, and on the one before after it."""
    before = cupy.cuda.runtime.getDevice()
    make_current(device_id)
    try:
        yield
    finally:
        if before != device_id:
            make_current(before)


def device_of(array: Any) -> int:
    """The GPU that holds an array of CuPy, or of another library that shows its address."""
    if isinstance(array, cupy.ndarray):
        return int(array.device.id)
    address = int(array.__cuda_array_interface__["data"][0])
    if not address:  # no samples, no place
        return int(cupy.cuda.runtime.getDevice())
    return int(cupy.cuda.runtime.pointerGetAttributes(address).device)


def _stream() -> Any:
    return cupy.cuda.get_current_stream()
