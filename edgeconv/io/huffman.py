"""Deflate by Huffman codes alone, without repetitions: for edges of photographs, in a third of the time and no larger.

    Code      of all bytes, from how often each was seen in a sample
    packed    bytes as blocks that end on a byte, so that others can be put between and behind them

In filtered rows of a photograph or its edges hardly anything repeats, so what looks for repetitions finds little, and
most of the saving is that frequent bytes get short codes. `Code.share` says what that comes to.
Source: RFC 1951, sections 3.2.2 and 3.2.7.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from edgeconv.hardware.cpu.jit import NativeFunction

WRITER = "edgeconv.hardware.cpu.huffman_code:write_pack"
LONGEST = 14
"""Bits of a code: four of them, and those that wait, are a word of the packing code."""
BYTES = 256
"""Symbols: each byte, and behind them the end of the block."""
DISTANCES = (1, 1)
"""Bits of two distance codes that are never used: some decoders want a complete set."""
LENGTH_CODE_BITS = 4
"""The lengths of codes are sent as numbers of four bits, which a code of 16 equally long codes gives."""
HEAD = np.array([int(bit) for bit in "0 01 00000 10000 1111" + 3 * " 000" + 16 * " 001" if bit != " "], np.uint8)
"""Bits of a block that is not the last one: that it brings codes, for 257 symbols and two distances, and the lengths of
the codes for lengths: of three that mean runs none, of the others four bits. Each number has its lowest bit first."""
MOST_AT_ENDS = 16
"""Bytes that a block has behind its codes, and the packing code touches."""
LAST = b"\x03\0"
"""A block without bytes, the last of its stream."""


class Code:
    """Codes for all bytes, of at most `LONGEST` bits."""

    def __init__(self, counts: NDArray[Any]) -> None:
        """`counts` of each byte in a sample; those that were not seen get long codes."""
        lengths = _lengths(np.append(counts + 1, 1))
        codes = _codes(lengths)
        self.table = (codes | lengths << 16).astype(np.int32)
        self.share = float(counts @ lengths[:BYTES]) / (8 * max(1, counts.sum()))
        """Of the sample's bytes, that its codes take."""
        sent = np.append(lengths, DISTANCES)[:, np.newaxis] >> np.arange(LENGTH_CODE_BITS)[::-1] & 1
        self.head_bits = HEAD.size + sent.size
        self.head = np.packbits(np.append(HEAD, sent).astype(np.uint8), bitorder="little")
        """What a block has before its first byte."""


def packed(data: NDArray[np.uint8], band_bytes: int, gap_bytes: int, code: Code) -> tuple[NDArray[np.uint8], list[int]]:
    """A block for each `band_bytes` of `data` (C-contiguous), each behind a gap, and where they end; if `can_pack`.

    There is a byte at least. As many as a gap has follow the last block.
    """
    bands = -(-data.size // band_bytes)
    spare = gap_bytes + code.head.size + MOST_AT_ENDS
    target = np.empty(data.size * LONGEST // 8 + bands * spare + gap_bytes, np.uint8)
    ends = np.empty(bands, np.int64)
    pack = _pack()
    assert pack is not None
    source, table, head, to, ended = (each.ctypes.data for each in (data, code.table, code.head, target, ends))
    pack(source, data.size, band_bytes, gap_bytes, table, head, code.head_bits, to, ended)
    return target[: ends[-1] + gap_bytes], ends.tolist()


def can_pack() -> bool:
    """Whether this system allows the machine code that `packed` needs."""
    return _pack() is not None


@cache
def _pack() -> NativeFunction | None:
    from edgeconv.hardware.cpu import jit

    try:
        return jit.compiled(WRITER, "huffman", jit.processor()).function("pack", 9)
    except (OSError, ImportError):
        return None


def _lengths(counts: NDArray[Any]) -> NDArray[np.int64]:
    """Bits of each symbol's code. Rare symbols count as more and more frequent until no code is too long."""
    least = int(counts.sum()) >> LONGEST
    while True:
        counts = np.maximum(counts, least)
        order = np.argsort(counts, kind="stable")
        lengths = np.empty(counts.size, np.int64)
        lengths[order] = _depths(counts[order].tolist())
        if lengths.max() <= LONGEST:
            return lengths
        least = 2 * least + 1


def _depths(leaves: list[int]) -> list[int]:
    """Depths of leaves of rising weight in the tree whose two lightest nodes are joined again and again.

    Joined nodes come in rising weight too, so the lightest is the first of one row or of the other.
    """
    joined: list[int] = []
    parents = [0] * (2 * len(leaves) - 1)
    leaf, inner, nodes = 0, 0, len(leaves)
    for parent in range(nodes, 2 * nodes - 1):
        weight = 0
        for _ in range(2):
            if inner == len(joined) or (leaf < nodes and leaves[leaf] <= joined[inner]):
                weight += leaves[leaf]
                parents[leaf] = parent
                leaf += 1
            else:
                weight += joined[inner]
                parents[nodes + inner] = parent
                inner += 1
        joined.append(weight)
    depths = [0] * len(parents)
    for node in range(len(parents) - 2, -1, -1):
        depths[node] = depths[parents[node]] + 1
    return depths[:nodes]


def _codes(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The codes in the order that deflate lays down, the first bit lowest."""
    order = np.argsort(lengths, kind="stable")
    steps = 1 << (LONGEST - lengths[order])
    forwards, codes = np.empty_like(lengths), np.zeros_like(lengths)
    forwards[order] = np.cumsum(steps) - steps  # in `LONGEST` bits, the first one highest
    for bit in range(LONGEST):
        codes |= (forwards >> (LONGEST - 1 - bit) & 1) << bit
    return codes
