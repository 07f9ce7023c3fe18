"""What a device must do for a session: hold arrays, move them, time a run, and be measured itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from numpy.typing import NDArray

from edgeconv.cost import Roof
from edgeconv.methods.base import DeviceName


class Device(ABC):
    """One processor. Arrays are NumPy's on the CPU and CuPy's on a card."""

    name: DeviceName
    moves_data: bool
    """False where host arrays are the device's own and nothing crosses a bus."""
    l2_state: str
    """The state of the last-level cache in which `time_once` runs: `cold` or `warm`."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Model, memory, driver and clocks, ready for JSON; keys carry their units."""

    @abstractmethod
    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """An array on the device, its content undefined."""

    @abstractmethod
    def host_empty(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """A host array that the device reads and writes fastest (page-locked for a card)."""

    @abstractmethod
    def copy_in(self, host: NDArray[Any], array: Any) -> None:
        """Host to device; returns when `host` may be changed again."""

    @abstractmethod
    def copy_out(self, array: Any, host: NDArray[Any]) -> None:
        """Device to host; returns when `host` is complete."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait for everything that was put on the device."""

    @abstractmethod
    def time_once(self, call: Callable[[], None]) -> float:
        """Seconds that the device works on what `call` puts on it, in the cache state `l2_state`."""

    @abstractmethod
    def roof(self) -> Roof:
        """Measure copy bandwidth and FMA rate now; takes well under half a second."""

    @abstractmethod
    def peak_bytes(self) -> int | None:
        """Most memory held at once so far: of the process on the CPU, of the pool on a card."""

    @abstractmethod
    def guard(self, needed_bytes: int) -> AbstractContextManager[None]:
        """Turn the device's own errors inside the block into edgeconv's, naming `needed_bytes` where memory ran out."""
