"""The LLVM IR that writes bytes as their Huffman codes (io/huffman.py calls it)."""

from __future__ import annotations

from llvmlite import ir

from edgeconv.hardware.cpu.emit import I32, I64, Emitter, Value

NAME = "pack"
AT_ONCE = 4
"""Codes of at most 14 bits, beside at most 7 bits that wait, fit into 64."""
LENGTH_SHIFT, CODE_MASK = 16, 0xFFFF
END = 256
"""The symbol behind those of all bytes."""
STORED_BITS, STORED, STORED_BYTES = 3, 0xFFFF0000, 4
"""Of a stored block that is empty: it begins with three bits, and its length and that inverted start on a byte."""


def write_pack(subject: str) -> str:
    """`pack(source, count, band, gap, table, head, head_bits, target, ends)`, all int64.

    Each band of `band` bytes of the `count` from `source` on becomes a block of deflate, behind `gap` bytes that are
    left as they are: the `head_bits` of `head`, codes, the code of the end, and a stored block that is empty, so that
    the next one starts on a byte. `table` has an int32 for each byte, and one for the end: the code, its first bit
    lowest, and from bit 16 on its length. `ends` gets where each block ends in `target`. 8 bytes more are touched.
    """
    e = Emitter(ir.Module(name=subject), NAME, [I64] * 9)
    source_at, count, band, gap, table_at, head_at, head_bits, target_at, ends_at = (
        Value(e, given) for given in e.function.args
    )
    source, table = e.array(source_at, "uint8"), e.array(table_at, "int32")
    head, target, ends = e.array(head_at, "uint8"), e.array(target_at, "uint8"), e.array(ends_at, "int64")
    waiting, bits, written, number = (e.variable(0) for _ in range(4))

    def put(entries: list[Value], more_bits: int = 0) -> None:
        pairs = [(entry & CODE_MASK, entry >> LENGTH_SHIFT) for entry in entries]
        while len(pairs) > 1:  # by twos, so that only one sum waits for the last bits
            halves = zip(pairs[::2], pairs[1::2], strict=True)
            pairs = [(one | (other << length), length + more) for (one, length), (other, more) in halves]
        ((code, length),) = pairs
        word, used = waiting.value | (code << bits.value), bits.value + length + more_bits
        target.at(written.value).store(word)
        written.value += used >> 3
        waiting.value, bits.value = word >> (used & 56), used & 7

    def entry(symbol: Value | int) -> Value:
        return table[symbol].unsigned("int64")

    with e.count(0, count, band) as start:
        stop = (start + band).min(count)
        written.value += gap
        whole = head_bits >> 3
        with e.count(0, whole) as at:
            target[written.value + at] = head[at]
        written.value += whole
        waiting.value, bits.value = head[whole].unsigned("int64"), head_bits & 7
        by_fours = stop - ((stop - start) & (AT_ONCE - 1))
        with e.count(start, by_fours, AT_ONCE) as at:
            put([entry(source[at + place].unsigned("int64")) for place in range(AT_ONCE)])
        with e.count(by_fours, stop) as at:
            put([entry(source[at].unsigned("int64"))])
        put([entry(END)], STORED_BITS)
        written.value += (bits.value + 7) >> 3
        target.at(written.value).of("int32")[0] = Value(e, I32(STORED))
        written.value += STORED_BYTES
        ends[number.value] = written.value
        number.value += 1
    e.block.ret_void()
    return str(e.module)
