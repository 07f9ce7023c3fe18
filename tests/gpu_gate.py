"""Hold a stream of a GPU until the host lets it go: what is queued behind the gate has certainly not run before."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

SOURCE = """
extern "C" __global__ void wait_until_open(volatile unsigned* words, long long most_cycles) {
    const long long start = clock64();
    while (words[0] == 0)
        if (clock64() - start > most_cycles) {
            words[1] = 1;
            return;
        }
}
"""
MAPPED = 2
"""cudaHostAllocMapped."""
MOST_CYCLES = 100_000_000_000
"""About a minute: a gate that nobody opens lets go by itself, and the test fails."""


class Gate:
    """One thread on the GPU that looks at a word of page-locked host memory, which the GPU reads where it lies.

    Whatever a closed gate waits beside must allocate nothing: the driver may wait for all streams then. So a test first
    does everything once with the gate open.
    """

    def __init__(self) -> None:
        import cupy

        mapped = cupy.cuda.PinnedMemory(8, MAPPED)
        self._memory = cupy.cuda.PinnedMemoryPointer(mapped, 0)
        self._words = np.frombuffer(self._memory, np.uint32, 2)
        self._words[:] = 1, 0
        self._kernel = cupy.RawKernel(SOURCE, "wait_until_open")
        self._launch()
        cupy.cuda.Device().synchronize()

    def _launch(self) -> None:
        self._kernel((1,), (1,), (np.uint64(self._memory.ptr), np.int64(MOST_CYCLES)))

    def close(self) -> None:
        """Nothing that the current stream of CuPy is given from now on runs before `open`."""
        self._words[0] = 0
        self._launch()

    def open(self) -> None:
        """Let it go."""
        assert not self._words[1], "nobody opened the gate: something waited for the stream behind it"
        self._words[0] = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self._words[0] = 1
