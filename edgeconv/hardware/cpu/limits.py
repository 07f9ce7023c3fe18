"""What this processor can do at most, in generated code: bytes read and written, and multiply-adds.

A copy reads half and writes half. At strides 2 and 3 four or nine bytes are read for one that is written, and reading
is cheaper, so a copy of as many bytes takes longer than a convolution has to. Each unit of a move copies as much as it
has to write and then only reads on (or, for banks, whose outputs are larger than the picture, only writes on). The
engine's own threads do it: beside a convolution that starts them within microseconds, a copy by threads that Python
wakes would start too late to be a floor.

Multiply-adds take registers alone, no memory. `llvm.fmuladd` is one instruction where the processor has it, and else a
product and a sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Literal

import numpy as np
from llvmlite import ir

from edgeconv.core.cost import FLOPS_PER_MULTIPLY_ADD
from edgeconv.hardware.cpu import jit
from edgeconv.hardware.cpu.caches import CACHE_LINE_BYTES
from edgeconv.hardware.cpu.crew import CrewJob
from edgeconv.hardware.cpu.emit import I64, POINTER, SCALAR_BYTES, Emitter, splat
from edgeconv.hardware.pool import run_pieces
from edgeconv.hardware.threads import usable_threads

Stores = Literal["cached", "streaming"]
STORES: tuple[Stores, ...] = ("cached", "streaming")
STEP_BYTES = 4 * CACHE_LINE_BYTES
"""Read or written at once."""
UNIT_BYTES, COPY_UNIT_BYTES = (16 * 1024, 128 * 1024), 64 * 1024
"""Of the longer side, that a thread does at a time: shapes that are tried, and that of a copy."""
SINKS = 64
"""Places for what was read, so that reading cannot be left out; a unit of work has one, and shares it with few."""

CHAINS = 12
"""Accumulators, each of which waits only for itself: two units with a latency of four or five cycles need eight to ten
of them, and twelve with their two operands fit into sixteen registers."""
ROUNDS = 150_000
PIECES_PER_THREAD = 8
"""A few milliseconds' worth in all, so that starting the threads does not count, in pieces, so that one that is kept
waiting holds up a piece only."""
MULTIPLY_ADDS = "multiply_adds"
FLOAT_BYTES = SCALAR_BYTES["f32"]


class MemoryMove:
    """A source that is read and a target that is written, of different lengths; `run` does both once."""

    def __init__(self, read_bytes: int, written_bytes: int, stores: Stores, threads: int, unit_bytes: int) -> None:
        longest = max(read_bytes, written_bytes, 1)
        units = -(-longest // unit_bytes)
        read_unit, written_unit = (_steps(-(-size // units)) for size in (read_bytes, written_bytes))
        self.source = jit.aligned_zeros(units * read_unit or STEP_BYTES)
        self.target = jit.aligned_zeros(units * written_unit or STEP_BYTES)
        self.sinks = jit.aligned_zeros(SINKS * STEP_BYTES)
        self.source[:] = 1
        self.target[:] = 0  # pages of both are there now
        addresses = (array.ctypes.data for array in (self.source, self.target, self.sinks))
        self._arguments = np.array((*addresses, read_unit, written_unit), np.int64)
        most = min(units, threads)
        self._job = CrewJob(_move_code(), stores, self._arguments.ctypes.data, units, asked=None, most_threads=most)

    def run(self) -> None:
        """Read all of the source and write all of the target."""
        self._job.run()


def moves(read_bytes: int, written_bytes: int) -> Iterator[MemoryMove]:
    """The shapes in which it is tried, each with arrays of its own, which are made when it is its turn."""
    threads = dict.fromkeys((1, usable_threads()))
    for stores, count, unit_bytes in product(STORES, threads, UNIT_BYTES):
        yield MemoryMove(read_bytes, written_bytes, stores, count, unit_bytes)


def copies(size_bytes: int) -> Iterator[MemoryMove]:
    """The same for as many bytes written as read."""
    for stores in STORES:
        yield MemoryMove(size_bytes, size_bytes, stores, usable_threads(), COPY_UNIT_BYTES)


def write_moves() -> str:
    """LLVM IR of one function for each kind of stores, over (source, target, sinks, bytes of a unit of both)."""
    module = ir.Module(name="moving")
    for stores in STORES:
        e = Emitter(module, stores, [POINTER, I64, I64, I64])
        arguments, _, first, stop = e.function.args
        source, target, sinks, reads, writes = (
            e.block.load(e.address_of_int64(arguments, place), typ=I64) for place in range(5)
        )
        source, target, sinks = (e.block.inttoptr(address, POINTER) for address in (source, target, sinks))
        aligned = CACHE_LINE_BYTES if stores == "streaming" else None
        both = e.minimum(reads, writes)
        lines = range(0, STEP_BYTES, CACHE_LINE_BYTES)
        ones = splat("u8", CACHE_LINE_BYTES, 1)
        with e.count(first, stop) as unit:
            read_from, write_to = e.block.mul(unit, reads), e.block.mul(unit, writes)
            with e.count(e.int64(0), both, STEP_BYTES) as at:
                for line in lines:
                    place = e.block.add(at, e.int64(line))
                    value = e.load(e.address(source, "u8", e.block.add(read_from, place)), "u8", CACHE_LINE_BYTES)
                    e.store(value, e.address(target, "u8", e.block.add(write_to, place)), "u8", aligned)
            seen = [e.variable(ones) for _ in lines]
            with e.count(both, reads, STEP_BYTES) as at:
                for line, variable in zip(lines, seen, strict=True):
                    place = e.block.add(read_from, e.block.add(at, e.int64(line)))
                    value = e.load(e.address(source, "u8", place), "u8", CACHE_LINE_BYTES)
                    e.block.store(e.block.or_(e.block.load(variable, typ=value.type), value), variable)
            sink = e.block.mul(e.block.and_(unit, e.int64(SINKS - 1)), e.int64(STEP_BYTES))
            for line, variable in zip(lines, seen, strict=True):
                place = e.address(sinks, "u8", e.block.add(sink, e.int64(line)))
                e.store(e.block.load(variable, typ=ones.type), place, "u8")
            with e.count(both, writes, STEP_BYTES) as at:
                for line in lines:
                    place = e.block.add(write_to, e.block.add(at, e.int64(line)))
                    e.store(ones, e.address(target, "u8", place), "u8", aligned)
        e.block.fence("seq_cst")  # stores past the caches are seen by others only after a fence
        e.block.ret_void()
    return str(module)


def _steps(size_bytes: int) -> int:
    return -(-size_bytes // STEP_BYTES) * STEP_BYTES


@cache
def _move_code() -> jit.Compiled:
    return jit.compile_module(write_moves(), jit.processor())


def flops_of_multiply_adds(threads: int) -> int:
    """FLOPs of one call of `run_multiply_adds`."""
    return threads * PIECES_PER_THREAD * ROUNDS * CHAINS * _lanes() * FLOPS_PER_MULTIPLY_ADD


def run_multiply_adds(threads: int) -> None:
    """`PIECES_PER_THREAD` times `ROUNDS` rounds of multiply-adds for each of `threads` threads."""
    multiply_adds = _multiply_add_code().function(MULTIPLY_ADDS, 2)
    block = np.zeros((threads, _lanes()), np.float32)  # one row per thread, for results that must not be optimised away
    address = block.ctypes.data
    run_pieces(lambda piece, worker: multiply_adds(address, worker), PIECES_PER_THREAD * threads, threads)


def write_multiply_adds(lanes: int) -> str:
    """The LLVM IR: `acc ← acc · ½ + 1`, which stays near 2, and at the end the sum goes to the worker's row."""
    vector = f"<{lanes} x float>"
    half, one = _splat(0.5, lanes), _splat(1.0, lanes)
    chains = range(CHAINS)
    starts = [_splat(2.0 + chain, lanes) for chain in chains]  # chains that begin alike would be made one
    phis = [f"  %a{i} = phi {vector} [ {starts[i]}, %entry ], [ %n{i}, %loop ]" for i in chains]
    steps = [
        f"  %n{i} = call {vector} @llvm.fmuladd.v{lanes}f32({vector} %a{i}, {vector} {half}, {vector} {one})"
        for i in chains
    ]
    sums = [f"  %s{i} = fadd {vector} {'%n0' if i == 1 else f'%s{i - 1}'}, %n{i}" for i in range(1, CHAINS)]
    return "\n".join(
        (
            f"declare {vector} @llvm.fmuladd.v{lanes}f32({vector}, {vector}, {vector})",
            f"define void @{MULTIPLY_ADDS}(i8* %rows, i64 %worker) {{",
            "entry:",
            f"  %start = bitcast i8* %rows to {vector}*",
            f"  %row = getelementptr {vector}, {vector}* %start, i64 %worker",
            "  br label %loop",
            "loop:",
            "  %round = phi i64 [ 0, %entry ], [ %next, %loop ]",
            *phis,
            *steps,
            "  %next = add i64 %round, 1",
            f"  %more = icmp ult i64 %next, {ROUNDS}",
            "  br i1 %more, label %loop, label %done",
            "done:",
            *sums,
            f"  store {vector} %s{CHAINS - 1}, {vector}* %row, align {FLOAT_BYTES}",
            "  ret void",
            "}",
        )
    )


def _splat(value: float, lanes: int) -> str:
    return f"<{', '.join([f'float {value:e}'] * lanes)}>"


def _lanes() -> int:
    return jit.processor().vector_bytes // FLOAT_BYTES


@cache
def _multiply_add_code() -> jit.Compiled:
    return jit.compile_module(write_multiply_adds(_lanes()), jit.processor())
