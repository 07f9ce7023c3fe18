"""The CPU as a device: NumPy arrays, no transfers, a monotonic clock."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from time import perf_counter  # held: what a method of another package may do to the module `time` changes nothing here
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.timing import percentile
from edgeconv.errors import MemoryLimitError
from edgeconv.hardware.cpu.caches import CACHE_LINE_BYTES, last_level_cache_bytes
from edgeconv.hardware.device import Device, L2State, Roof
from edgeconv.hardware.pool import run_pieces
from edgeconv.hardware.system_files import read_system_file, system_field
from edgeconv.hardware.threads import usable_threads

COPY_BYTES = 64 * 2**20
"""Twice the last-level cache of most desktop processors, and still allocated in milliseconds."""
ROOF_REPEATS = 4
ROOF_SECONDS = 0.02
ONE_THREAD_BYTES = 2 * 2**20
"""No more than this may be copied faster by one thread than by all."""
SETTLE_SECONDS = 1e-3
"""After small runs for so long, sleeping threads of the CPU engine and of other libraries are awake."""
FLUSH_BYTES_AT_LEAST = 64 * 2**20


class CpuDevice(Device):
    """The processor that Python runs on."""

    name = "cpu"
    moves_data = False
    array_module = np
    line_bytes = CACHE_LINE_BYTES
    l2_state: L2State = "warm"

    def __init__(self) -> None:
        self._flush_parts: NDArray[Any] | None = None

    def describe(self) -> dict[str, Any]:
        model = system_field("/proc/cpuinfo", "model name") or system_field("/proc/cpuinfo", "Model")
        governor = read_system_file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
        return {
            "name": model or platform.processor() or platform.machine(),
            "machine": platform.machine(),
            "usable_threads": usable_threads(),
            "governor": None if governor is None else governor.strip(),
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        }

    def time_once(
        self,
        call: Callable[[], None],
        l2_state: L2State | None = None,
        enqueue_seconds: float = 0.0,
        renew: Callable[[], None] | None = None,
    ) -> float:
        """See Device.time_once: `warm` is what the run before left, `cold` what a far larger write left.

        Where something is renewed, checks of milliseconds went before it: then untimed runs come first for `warm`, for
        `SETTLE_SECONDS`, so that caches and threads are as they are between runs that follow one another.
        """
        cold = (l2_state or self.l2_state) == "cold"
        if renew is not None:
            if not cold:
                end = perf_counter() + SETTLE_SECONDS
                call()
                while perf_counter() < end:
                    call()
            renew()
        if cold:
            self._flush()
        perf_counter()  # brings it back into the caches, so that the next reading takes no time of its own
        started = perf_counter()
        call()
        return perf_counter() - started

    def floor(self, read_bytes: int, written_bytes: int) -> Callable[[], None]:
        """See Device.floor: one thread, or all usable ones, past the caches or not."""
        from edgeconv.hardware.cpu.limits import moves

        small = max(read_bytes, written_bytes) <= ONE_THREAD_BYTES
        each = moves(read_bytes, written_bytes, dict.fromkeys((1, usable_threads()) if small else (usable_threads(),)))
        shapes: Iterable[Callable[[], None]] = (move.run for move in each)
        if read_bytes == written_bytes:
            shapes = chain([_plain_copy(read_bytes)], shapes)
        # Its times are medians too: a core that others take counts.
        return min(shapes, key=lambda run: percentile(sorted(_seconds_of_some(run)), 0.5))

    def roof(self) -> Roof:
        """See Device.roof: large copies, and float32 multiply-adds in registers, by every usable thread."""
        from edgeconv.hardware.cpu.limits import moves

        threads = usable_threads()
        fma_rate, fma_how = self.fma_rate()
        copies = [_plain_copy(COPY_BYTES), *(move.run for move in moves(COPY_BYTES, COPY_BYTES, [threads]))]
        copy_seconds = min(min(_seconds_of_some(copy)) for copy in copies)
        how = f"copy of {COPY_BYTES >> 20} MiB by {threads} threads; {fma_how}"
        return Roof(2 * COPY_BYTES / copy_seconds, fma_rate, how)

    def fma_rate(self) -> tuple[float, str]:
        """See Device.fma_rate: by every usable thread."""
        from edgeconv.hardware.cpu.limits import multiply_adds

        threads = usable_threads()
        work, flops = multiply_adds(threads)
        return flops / min(_seconds_of_some(work.run)), f"float32 multiply-adds in registers by {threads} threads"

    def peak_bytes(self) -> int | None:
        """See Device.peak_bytes: the resident set's high-water mark; None on Linux without /proc."""
        if sys.platform == "linux":  # where getrusage has the mark of the process that started this one
            return _kibibytes("/proc/self/status", "VmHWM")
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

    def free_bytes(self) -> int | None:
        """See Device.free_bytes: what Linux can give without swapping."""
        return _kibibytes("/proc/meminfo", "MemAvailable")

    def failure(self, error: Exception, needed_bytes: int) -> Exception:
        if not isinstance(error, MemoryError):
            return error
        return MemoryLimitError(
            f"Out of memory: about {needed_bytes:,} bytes are needed. Use a smaller picture, or --method sliding."
        )

    def _flush(self) -> None:
        """Every thread writes its part of a buffer that is twice the last-level cache, or more."""
        if self._flush_parts is None:
            flush_bytes = max(FLUSH_BYTES_AT_LEAST, 2 * (last_level_cache_bytes() or 0))
            self._flush_parts = np.ones((usable_threads(), flush_bytes // usable_threads()), np.uint8)
        parts = self._flush_parts
        run_pieces(lambda part, worker: parts[part].fill(0), len(parts), len(parts))


def _kibibytes(path: str, name: str) -> int | None:
    """A size that the system writes as `name:  1234 kB`, in bytes."""
    found = system_field(path, name)
    return None if found is None else int(found.split()[0]) * 1024


def _seconds_of_some(call: Callable[[], Any]) -> list[float]:
    """Of a few runs after one that is not counted; of fewer where they take long."""
    call()
    times: list[float] = []
    while len(times) < ROOF_REPEATS and sum(times) < ROOF_SECONDS:
        started = perf_counter()
        call()
        times.append(perf_counter() - started)
    return times


def _plain_copy(size_bytes: int) -> Callable[[], None]:
    source = np.ones(size_bytes, np.uint8)
    return partial(np.copyto, np.zeros_like(source), source)
