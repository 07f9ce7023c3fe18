"""Instructions of x86 that no general operation of LLVM leads to. Every x86-64 processor has them for its registers.

squares_of_pairs    16-bit numbers multiplied and added in pairs, without being made longer before
join_halves         32-bit numbers cut to 16 bits, with saturation
inverse_root        about 1/sqrt of float32, from a table in the processor

Registers of 32 and 64 bytes are two and four parts of 16. The first two instructions stay within parts: what one takes
apart the other puts together, so that nothing crosses from part to part.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from edgeconv.hardware.cpu.emit import Emitter, Value, pieces, shuffle, vector_type
from edgeconv.hardware.cpu.processor import SCALAR_BYTES, Scalar

PAIR_PRODUCTS = {16: "llvm.x86.sse2.pmadd.wd", 32: "llvm.x86.avx2.pmadd.wd", 64: "llvm.x86.avx512.pmaddw.d.512"}
SHORTENED = {16: "llvm.x86.sse2.packssdw.128", 32: "llvm.x86.avx2.packssdw", 64: "llvm.x86.avx512.packssdw.512"}
INVERSE_ROOT = {16: "llvm.x86.sse.rsqrt.ps", 32: "llvm.x86.avx.rsqrt.ps.256", 64: "llvm.x86.avx512.rsqrt14.ps.512"}
"""LLVM's names, by the bytes of a register."""

PART = 16 // SCALAR_BYTES["int16"]
"""16-bit numbers in a part of a register."""


def squares_of_pairs(e: Emitter, first: Value, second: Value, register_bytes: int) -> list[Value]:
    """first² + second² of 16-bit numbers as int32, in two vectors: of the first half of every part, of the second."""
    squares = []
    for half in (0, PART // 2):
        places = [part + half + number for part in range(0, first.lanes, PART) for number in range(PART // 2)]
        pairs = shuffle([first, second], [(which, place) for place in places for which in (0, 1)])
        squares.append(_on_registers(e, PAIR_PRODUCTS, ("int16", "int32"), [pairs, pairs], register_bytes))
    return squares


def join_halves(e: Emitter, halves: list[Value], register_bytes: int) -> Value:
    """The two vectors of `squares_of_pairs`, or what became of them, as 16-bit numbers in their order again."""
    return _on_registers(e, SHORTENED, ("int32", "int16"), halves, register_bytes)


def inverse_root(e: Emitter, value: Value, register_bytes: int) -> Value:
    """About 1/sqrt(value) of float32 above zero."""
    more: list[Any] = []
    if register_bytes == max(INVERSE_ROOT):  # what lanes that are left out would hold, and that none is
        lanes = register_bytes // SCALAR_BYTES["float32"]
        more = [e.splat("float32", lanes, 0.0).ir, ir.Constant(ir.IntType(lanes), -1)]
    return _on_registers(e, INVERSE_ROOT, ("float32", "float32"), [value], register_bytes, more)


def _on_registers(
    e: Emitter,
    names: dict[int, str],
    types: tuple[Scalar, Scalar],
    operands: list[Value],
    register_bytes: int,
    more: list[Any] | None = None,
) -> Value:
    """An instruction from registers of one type to a register of another; longer vectors are cut, and joined again."""
    given, kind = (vector_type(scalar, register_bytes // SCALAR_BYTES[scalar]) for scalar in types)
    cut = zip(*(operand.slices(given.count) for operand in operands), strict=True)
    results = [
        e.call(names[register_bytes], kind, *(value.ir for value in registers), *(more or [])) for registers in cut
    ]
    (joined,) = pieces(results, kind.count * len(results))
    return joined
