"""Deflate by Huffman codes alone, without repetitions: for edges of photographs, in a third of the time and no larger.

    Code        of all bytes, from how often each was seen in a sample
    deflated    bytes as one block; ends on a byte, so that blocks can be put together

In filtered rows of a photograph or its edges hardly anything repeats, so what looks for repetitions finds little, and
most of the saving is that frequent bytes get short codes. `Code.share` says what that comes to.
Source: RFC 1951, sections 3.2.2 and 3.2.7.
"""

from __future__ import annotations

from functools import cache
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from edgeconv.hardware.cpu.jit import NativeFunction

WRITER = "edgeconv.hardware.cpu.huffman_code:write_pack"
LONGEST = 14
"""Bits of a code: four of them, and those that wait, are a word of the packing code."""
BYTES, END = 256, 256
"""Symbols: each byte, and behind them the end of the block."""
DISTANCES = (1, 1)
"""Bits of two distance codes that are never used: some decoders want a complete set."""
LENGTH_CODES, LENGTH_CODE_BITS, RUN_CODES = 16, 4, 3
"""The lengths of codes are sent as numbers of four bits, which a code of 16 equally long codes gives."""
EMPTY_STORED = b"\0\0\xff\xff"


class Code:
    """Codes for all bytes, of at most `LONGEST` bits."""

    def __init__(self, counts: NDArray[Any]) -> None:
        """`counts` of each byte in a sample; those that were not seen get long codes."""
        lengths = _lengths(np.append(counts + 1, 1))
        codes = _codes(lengths)
        self.table = (np.array(codes) | np.array(lengths) << 16).astype(np.int32)[:BYTES]
        self.end = codes[END], lengths[END]
        self.share = float(counts @ lengths[:BYTES]) / (8 * max(1, counts.sum()))
        """Of the sample's bytes, that its codes take."""
        bits = [(0, 1), (2, 2), (0, 5), (len(DISTANCES) - 1, 5), (LENGTH_CODES - 1, 4)]
        bits += [(0, 3)] * RUN_CODES + [(LENGTH_CODE_BITS, 3)] * LENGTH_CODES
        bits += [(_reversed(length, LENGTH_CODE_BITS), LENGTH_CODE_BITS) for length in (*lengths, *DISTANCES)]
        self.head, self.head_bits = 0, 0
        for value, length in bits:
            self.head |= value << self.head_bits
            self.head_bits += length


def deflated(data: NDArray[np.uint8], code: Code, is_last: bool) -> bytes:
    """A block of deflate with `data` (C-contiguous), the last of its stream or not, where `can_pack`."""
    target = np.empty(data.size * LONGEST // 8 + code.head_bits // 8 + 16, np.uint8)
    whole, rest = divmod(code.head_bits, 8)
    head = (code.head | is_last).to_bytes(whole + 1, "little")
    target[:whole] = np.frombuffer(head, np.uint8, whole)
    state = np.array([head[whole], rest, whole], np.int64)
    addresses = (array.ctypes.data for array in (code.table, target, state))
    pack = _pack()
    assert pack is not None
    pack(data.ctypes.data, data.size, *addresses)
    waiting, bits, written = map(int, state)
    end, length = code.end
    bits += length + (0 if is_last else 3)  # of a stored block that is empty
    tail = (waiting | end << int(state[1])).to_bytes(-(-bits // 8), "little")
    return target[:written].tobytes() + tail + (b"" if is_last else EMPTY_STORED)


def can_pack() -> bool:
    """Whether this system allows the machine code that `deflated` needs."""
    return _pack() is not None


@cache
def _pack() -> NativeFunction | None:
    from edgeconv.hardware.cpu import jit

    try:
        return jit.compiled(WRITER, "huffman", jit.processor()).function("pack", 5)
    except (OSError, ImportError):
        return None


def _lengths(counts: NDArray[Any]) -> list[int]:
    """Bits of each symbol's code. Rare symbols count as more and more frequent until no code is too long."""
    for doublings in count(1):
        nodes: list[tuple[int, int, tuple[int, ...]]]
        nodes = [(int(number), symbol, (symbol,)) for symbol, number in enumerate(counts)]
        lengths = [0] * len(nodes)
        heapify(nodes)
        while len(nodes) > 1:
            (one, _, left), (other, number, right) = heappop(nodes), heappop(nodes)
            for symbol in left + right:
                lengths[symbol] += 1
            heappush(nodes, (one + other, number, left + right))
        if max(lengths) <= LONGEST:
            return lengths
        counts = np.maximum(counts, 2**doublings)
    raise AssertionError  # of counts that are all alike no code is too long


def _codes(lengths: list[int]) -> list[int]:
    """The codes in the order that deflate lays down, the first bit lowest."""
    codes, code, last = [0] * len(lengths), 0, 0
    for length, symbol in sorted((length, symbol) for symbol, length in enumerate(lengths)):
        code <<= length - last
        codes[symbol], code, last = _reversed(code, length), code + 1, length
    return codes


def _reversed(code: int, bits: int) -> int:
    return int(f"{code:0{bits}b}"[::-1], 2)
