"""Copies of memory by the engine's own threads, in generated code: what a convolution's bytes cost at least here.

Beside a convolution that starts its threads within microseconds, a copy by threads that Python wakes is no floor.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np
from llvmlite import ir

from edgeconv.hardware.cpu import jit
from edgeconv.hardware.cpu.caches import CACHE_LINE_BYTES
from edgeconv.hardware.cpu.crew import CrewJob
from edgeconv.hardware.cpu.emit import I64, POINTER, Emitter
from edgeconv.hardware.threads import usable_threads

Stores = Literal["cached", "streaming"]
STORES: tuple[Stores, ...] = ("cached", "streaming")
UNIT_BYTES = 64 * 1024
"""What a thread copies at a time: some microseconds' worth."""
LINES_AT_ONCE = 4


class MemoryCopy:
    """A source and a target of the same length; `run` copies one to the other, by all usable threads."""

    def __init__(self, size_bytes: int, stores: Stores) -> None:
        step = CACHE_LINE_BYTES * LINES_AT_ONCE
        units = max(1, -(-size_bytes // UNIT_BYTES))
        self.size_bytes = -(-size_bytes // step) * step
        self.source, self.target = (jit.aligned_zeros(self.size_bytes) for _ in range(2))
        self.source[:] = 1
        self.target[:] = 0  # pages of both are there now
        addresses = (self.source.ctypes.data, self.target.ctypes.data, self.size_bytes)
        self._arguments = np.array(addresses, np.int64)
        threads = min(units, usable_threads())
        self._job = CrewJob(_code(), stores, self._arguments.ctypes.data, units, asked=None, most_threads=threads)

    def run(self) -> None:
        """Copy the source to the target."""
        self._job.run()


def write() -> str:
    """LLVM IR of one function for each kind of stores, over (source, target, bytes)."""
    module = ir.Module(name="copying")
    for stores in STORES:
        e = Emitter(module, stores, [POINTER, I64, I64, I64])
        arguments, _, first, stop = e.function.args
        source, target, size_bytes = (e.block.load(e.address_of_int64(arguments, place), typ=I64) for place in range(3))
        source, target = (e.block.inttoptr(address, POINTER) for address in (source, target))
        with e.count(first, stop) as unit:
            start = e.block.mul(unit, e.int64(UNIT_BYTES))
            end = e.minimum(e.block.add(start, e.int64(UNIT_BYTES)), size_bytes)
            with e.count(start, end, CACHE_LINE_BYTES * LINES_AT_ONCE) as at:
                for line in range(LINES_AT_ONCE):
                    place = e.block.add(at, e.int64(line * CACHE_LINE_BYTES))
                    value = e.load(e.address(source, "u8", place), "u8", CACHE_LINE_BYTES)
                    aligned = CACHE_LINE_BYTES if stores == "streaming" else None
                    e.store(value, e.address(target, "u8", place), "u8", aligned)
        e.block.fence("seq_cst")  # stores past the caches are seen by others only after a fence
        e.block.ret_void()
    return str(module)


@cache
def _code() -> jit.Compiled:
    return jit.compile_module(write(), jit.processor())
