"""The LLVM IR of limits.py, apart from it: a process that finds its machine code imports no compiler.

`llvm.fmuladd` is one instruction where the processor has it, and else a product and a sum.
"""

from __future__ import annotations

from functools import reduce
from operator import add

from llvmlite import ir

from edgeconv.hardware.cpu.caches import CACHE_LINE_BYTES
from edgeconv.hardware.cpu.emit import Unit
from edgeconv.hardware.cpu.limits import CHAINS, ROUNDS, SINKS, STEP_BYTES, Chains, Move, Stores


def write_moves(stores: Stores) -> str:
    """LLVM IR of a move with one kind of stores."""
    e = Unit(ir.Module(name="moving"))
    source, target, sinks = (e.at(name) for name in (Move.SOURCE_ADDRESS, Move.TARGET_ADDRESS, Move.SINKS_ADDRESS))
    reads, writes = e[Move.READ_BYTES], e[Move.WRITTEN_BYTES]
    aligned = CACHE_LINE_BYTES if stores == "streaming" else None
    both = reads.min(writes)
    lines = range(0, STEP_BYTES, CACHE_LINE_BYTES)
    ones = e.splat("uint8", CACHE_LINE_BYTES, 1)
    first, stop = e.more
    with e.count(first, stop) as unit:
        read_from, write_to = source.at(unit * reads), target.at(unit * writes)
        with e.count(0, both, STEP_BYTES) as at:
            for line in lines:
                write_to.at(at + line).store(read_from.at(at + line).load(CACHE_LINE_BYTES), aligned)
        seen = [e.variable(ones) for _ in lines]
        with e.count(both, reads, STEP_BYTES) as at:
            for line, variable in zip(lines, seen, strict=True):
                variable.value |= read_from.at(at + line).load(CACHE_LINE_BYTES)
        sink = sinks.at((unit & (SINKS - 1)) * STEP_BYTES)
        for line, variable in zip(lines, seen, strict=True):
            sink.at(line).store(variable.value)
        with e.count(both, writes, STEP_BYTES) as at:
            for line in lines:
                write_to.at(at + line).store(ones, aligned)
    e.block.fence("seq_cst")  # stores past the caches are seen by others only after a fence
    return e.text_with_alone(Move.UNITS)


def write_multiply_adds(lanes: int) -> str:
    """The LLVM IR: `acc ← acc · ½ + 1`, which stays near 2, and at the end the sum goes to the worker's row."""
    e = Unit(ir.Module(name="multiply-adds"))
    with e.count(*e.more):
        # Chains that begin alike would be made one.
        chains = [e.variable(e.splat("float32", lanes, 2.0 + chain)) for chain in range(CHAINS)]
        with e.count(0, e.int64(ROUNDS)):
            for chain in chains:
                value = chain.value
                chain.value = value.times(0.5, value.like(1.0))
        total = reduce(add, [chain.value for chain in chains])
        e.at(Chains.SUMS_ADDRESS, "float32").at(e.worker * lanes).store(total)
    return e.text_with_alone(Chains.UNITS)
