"""What this processor can do at most: bytes read and written, and multiply-adds, in generated code (limits_code.py).

A copy reads half and writes half. At strides 2 and 3 four or nine bytes are read for one that is written, and reading
is cheaper, so a copy of as many bytes takes longer than a convolution has to. Each unit of a move copies as much as it
has to write and then only reads on (or, for banks, whose outputs are larger than the picture, only writes on). The
engine's own threads do it: beside a convolution that starts them within microseconds, a copy by threads that Python
wakes would start too late to be a floor.

Multiply-adds take registers alone, no memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.cost import FLOPS_PER_MULTIPLY_ADD
from edgeconv.hardware.cpu import jit
from edgeconv.hardware.cpu.caches import CACHE_LINE_BYTES
from edgeconv.hardware.cpu.crew import NativeWork
from edgeconv.hardware.cpu.processor import SCALAR_BYTES

CODE = "edgeconv.hardware.cpu.limits_code"
Stores = Literal["cached", "streaming"]
Memory = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
"""Source, target, and places for what was read, so that reading cannot be left out."""
STORES: tuple[Stores, ...] = ("cached", "streaming")
STEP_BYTES = 4 * CACHE_LINE_BYTES
"""Read or written at once."""
UNIT_BYTES = (16 * 1024, 128 * 1024)
"""Of the longer side, that a thread does at a time: shapes that are tried."""
SINKS = 64
"""Places for what was read; a unit of work has one, and shares it with few."""

CHAINS = 12
"""Accumulators, each of which waits only for itself: two units with a latency of four or five cycles need eight to ten
of them, and twelve with their two operands fit into sixteen registers."""
ROUNDS = 150_000
PIECES_PER_THREAD = 8
"""A few milliseconds' worth in all, so that starting the threads does not count, in pieces, so that one that is kept
waiting holds up a piece only."""
FLOAT_BYTES = SCALAR_BYTES["float32"]


class Move(IntEnum):
    """Places of the arguments of a move."""

    SOURCE_ADDRESS = 0
    TARGET_ADDRESS = 1
    UNITS = 2
    SINKS_ADDRESS = 3
    READ_BYTES = 4
    """Of a unit."""
    WRITTEN_BYTES = 5


class Chains(IntEnum):
    """Places of the arguments of the multiply-adds."""

    UNITS = 0
    SUMS_ADDRESS = 1


class MemoryMove:
    """Reads a source and writes a target, of different lengths, `sides`; `run` does both once."""

    def __init__(self, memory: Memory, sides: tuple[int, int], stores: Stores, threads: int, unit_bytes: int) -> None:
        units, read_unit, written_unit = _units(sides, unit_bytes)
        self.source, self.target, self.sinks = memory
        arguments = {
            Move.SOURCE_ADDRESS: self.source,
            Move.TARGET_ADDRESS: self.target,
            Move.UNITS: units,
            Move.SINKS_ADDRESS: self.sinks,
            Move.READ_BYTES: read_unit,
            Move.WRITTEN_BYTES: written_unit,
        }
        most = min(units, threads)
        code = jit.compiled(f"{CODE}:write_moves", stores, jit.processor())
        self._work = NativeWork(code, arguments, units, asked=None, max_threads=most)

    def run(self) -> None:
        """Read all of the source and write all of the target."""
        self._work.run()


def moves(read_bytes: int, written_bytes: int, threads: Iterable[int]) -> Iterator[MemoryMove]:
    """The shapes in which it is tried, all on the same arrays."""
    sides = read_bytes, written_bytes
    shapes = [_units(sides, unit_bytes) for unit_bytes in UNIT_BYTES]
    source = jit.aligned_zeros(max(units * read for units, read, _ in shapes) or STEP_BYTES)
    target = jit.aligned_zeros(max(units * written for units, _, written in shapes) or STEP_BYTES)
    source[:] = 1
    target[:] = 0  # pages of both are there now
    memory = source, target, jit.aligned_zeros(SINKS * STEP_BYTES)
    for stores, count, unit_bytes in product(STORES, threads, UNIT_BYTES):
        yield MemoryMove(memory, sides, stores, count, unit_bytes)


def _units(sides: tuple[int, int], unit_bytes: int) -> tuple[int, int, int]:
    """Units of a move, and the bytes that each reads and writes."""
    units = -(-max(*sides, 1) // unit_bytes)
    read_unit, written_unit = (_steps(-(-size // units)) for size in sides)
    return units, read_unit, written_unit


def _steps(size_bytes: int) -> int:
    return -(-size_bytes // STEP_BYTES) * STEP_BYTES


def multiply_adds(threads: int) -> tuple[NativeWork, int]:
    """`PIECES_PER_THREAD` times `ROUNDS` rounds of multiply-adds for each of `threads` threads, and their FLOPs."""
    target = jit.processor()
    lanes, units = target.vector_bytes // FLOAT_BYTES, threads * PIECES_PER_THREAD
    # One row per thread, for results that must not be optimised away.
    arguments = {Chains.UNITS: units, Chains.SUMS_ADDRESS: np.zeros((threads, lanes), np.float32)}
    code = jit.compiled(f"{CODE}:write_multiply_adds", lanes, target)
    work = NativeWork(code, arguments, units, asked=threads, max_threads=threads)
    return work, units * ROUNDS * CHAINS * lanes * FLOPS_PER_MULTIPLY_ADD
