"""The LLVM IR that writes bytes as their Huffman codes (io/huffman.py calls it)."""

from __future__ import annotations

from llvmlite import ir

from edgeconv.hardware.cpu.emit import I64, Emitter, Value

NAME = "pack"
AT_ONCE = 4
"""Codes of at most 14 bits, beside at most 7 bits that wait, fit into 64."""
LENGTH_SHIFT, CODE_MASK = 16, 0xFFFF


def write_pack(subject: str) -> str:
    """`pack(source, count, table, target, state)`, all int64.

    `table` has an int32 for each byte: its code, the first bit lowest, and from bit 16 on the code's length. `state`
    is three int64: bits that wait, how many (at most 7), and the bytes written to `target`. Up to 8 more are touched.
    """
    e = Emitter(ir.Module(name=subject), NAME, [I64] * 5)
    source_at, count, table_at, target_at, state_at = (Value(e, given) for given in e.function.args)
    source, table = e.array(source_at, "uint8"), e.array(table_at, "int32")
    target, state = e.array(target_at, "uint8"), e.array(state_at, "int64")
    waiting, bits, written = (e.variable(state[place]) for place in range(3))

    def put(at: Value, codes: int) -> None:
        entries = [table[source[at + place].unsigned("int64")].unsigned("int64") for place in range(codes)]
        pairs = [(entry & CODE_MASK, entry >> LENGTH_SHIFT) for entry in entries]
        while len(pairs) > 1:  # by twos, so that only one sum waits for the last bits
            halves = zip(pairs[::2], pairs[1::2], strict=True)
            pairs = [(one | (other << length), length + more) for (one, length), (other, more) in halves]
        ((code, length),) = pairs
        word, used = waiting.value | (code << bits.value), bits.value + length
        target.at(written.value).store(word)
        written.value += used >> 3
        waiting.value, bits.value = word >> (used & 56), used & 7

    whole = count & -AT_ONCE
    with e.count(0, whole, AT_ONCE) as at:
        put(at, AT_ONCE)
    with e.count(whole, count) as at:
        put(at, 1)
    for place, variable in enumerate((waiting, bits, written)):
        state[place] = variable.value
    e.block.ret_void()
    return str(e.module)
