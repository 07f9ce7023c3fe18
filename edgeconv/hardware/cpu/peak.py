"""How many multiply-adds this processor does per second: registers alone, no memory, in generated code.

Each of `CHAINS` accumulators waits only for itself: two units with a latency of four or five cycles need eight to ten
of them, and twelve with their two operands fit into sixteen registers. `llvm.fmuladd` is one instruction where the
processor has it, and else a product and a sum.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from edgeconv.core.cost import FLOPS_PER_MULTIPLY_ADD
from edgeconv.hardware.cpu import jit
from edgeconv.hardware.cpu.scalars import SCALAR_BYTES
from edgeconv.hardware.pool import run_pieces

CHAINS = 12
ROUNDS = 150_000
PIECES_PER_THREAD = 8
"""A few milliseconds' worth in all, so that starting the threads does not count, in pieces, so that one that is kept
waiting holds up a piece only."""
ENTRY_POINT = "multiply_adds"
FLOAT_BYTES = SCALAR_BYTES["f32"]


def flops_of_a_run(threads: int) -> int:
    """FLOPs of one call of `run`."""
    return threads * PIECES_PER_THREAD * ROUNDS * CHAINS * _lanes() * FLOPS_PER_MULTIPLY_ADD


def run(threads: int) -> None:
    """`PIECES_PER_THREAD` times `ROUNDS` rounds of multiply-adds for each of `threads` threads."""
    multiply_adds = _code().function(ENTRY_POINT, 2)
    block = np.zeros((threads, _lanes()), np.float32)  # one row per thread, for results that must not be optimised away
    address = block.ctypes.data
    run_pieces(lambda piece, worker: multiply_adds(address, worker), PIECES_PER_THREAD * threads, threads)


def write(lanes: int) -> str:
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
            f"define void @{ENTRY_POINT}(i8* %rows, i64 %worker) {{",
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
def _code() -> jit.Compiled:
    return jit.compile_module(write(_lanes()), jit.processor())
