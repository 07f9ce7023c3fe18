"""The interface of a device: allocate arrays, copy them, time a run, and measure the device itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.choices import DeviceName

L2State = Literal["cold", "warm"]
L2_STATES: tuple[L2State, ...] = get_args(L2State)


@dataclass(frozen=True)
class Roof:
    """The measured limits of this machine; `how` states the method of measurement.

    A bench has those of large copies, and measures a copy of each case beside it; a run those of a copy of its own
    bytes.
    """

    copy_bytes_per_second: float
    fma_flops_per_second: float
    how: str
    cache_bytes: int | None = None
    """Of older records: what fitted the last cache was given no limit."""


class Device(ABC):
    """One processor. Arrays are NumPy's on the CPU and CuPy's on a GPU."""

    name: DeviceName
    moves_data: bool
    """False where the device works on host arrays and nothing crosses a bus."""
    array_module: Any
    """NumPy, or CuPy: what the device's arrays are made with."""
    line_bytes: int
    """What memory gives at least: a cache line, on a GPU a sector of 32 bytes."""
    l2_state: L2State
    """The state of the last-level cache that a report leads with."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Model, memory, driver and clocks, ready for JSON; keys carry their units."""

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """An array on the device, its content undefined."""
        return self.array_module.empty(shape, dtype)

    def host_empty(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """A host array that the device reads and writes fastest (page-locked for a GPU)."""
        return np.empty(shape, dtype)

    def copy_in(self, host: NDArray[Any], array: Any) -> None:
        """Host to device; returns when `host` may be changed again."""
        np.copyto(array, host)

    def copy_out(self, array: Any, host: NDArray[Any]) -> None:
        """Device to host; returns when `host` is complete."""
        np.copyto(host, array)

    def synchronize(self) -> None:  # noqa: B027 - nothing is ever pending on a processor
        """Wait for everything that was put on the device."""

    @abstractmethod
    def time_once(
        self,
        call: Callable[[], None],
        l2_state: L2State | None = None,
        enqueue_seconds: float = 0.0,
        renew: Callable[[], None] | None = None,
    ) -> float:
        """Seconds that the device works on what `call` puts on it.

        `l2_state` None is the device's default; `cold` empties the last-level cache first, `warm` may make untimed
        calls. `enqueue_seconds` is how long the host needs to put one call in the queue, where that is known, so
        that a GPU can be kept busy for as long. `renew` changes what the timed call reads or writes: it comes after
        an untimed one, before the caches are emptied.
        """

    @abstractmethod
    def floor(self, read_bytes: int, written_bytes: int) -> Callable[[], None]:
        """A call that reads and writes so much on the device and nothing else, in the fastest of several shapes."""

    @abstractmethod
    def fma_rate(self) -> tuple[float, str]:
        """Measure multiply-adds of float32 in registers now: FLOPs a second, and how; takes some milliseconds."""

    @abstractmethod
    def roof(self) -> Roof:
        """Measure the bandwidth of large copies and the FMA rate now; takes well under half a second."""

    @abstractmethod
    def peak_bytes(self) -> int | None:
        """Most memory held at once so far: of the process on the CPU, of the pool on a GPU."""

    def own_stream(self, threads: int | None = None) -> AbstractContextManager[Any]:
        """A context in which this thread does not wait for others (on a GPU, with its own CUDA stream).

        `threads` bounds the helpers of this thread's transfers where others are busy beside it.
        """
        return nullcontext()

    @abstractmethod
    def free_bytes(self) -> int | None:
        """Memory that is free now; None where the system does not tell."""

    def memory_taken_by(self, run: Callable[[], Any]) -> int:
        """Bytes that a run takes from a GPU beside what its pool holds; 0, without a run, on the CPU."""
        return 0

    @abstractmethod
    def failure(self, error: Exception, needed_bytes: int) -> Exception:
        """What to raise for an error of the device's library, or where memory ran out; other errors as they are."""

    @contextmanager
    def guard(self, needed_bytes: int) -> Iterator[None]:
        """Turn errors inside the block into what `failure` says."""
        try:
            yield
        except (MemoryError, RuntimeError) as error:
            raise self.failure(error, needed_bytes) from error.__cause__
