"""Machine code that LLVM emitted, laid into memory without LLVM: an object of ELF for x86-64, on Linux.

The sections that are allocated lie side by side in one mapping. Their relocations are addresses of these sections and
of functions of libc. Then the mapping may be executed, and no longer be written.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
import sys
from typing import Any

ALLOCATED, UNWIND, PROGRAM_BITS, SYMBOLS, RELOCATIONS = 0x2, 0x70000001, 1, 2, 4
ABSOLUTE_64, RELATIVE_32, CALL_32 = 1, 2, 4
SYMBOL_BYTES = RELOCATION_BYTES = 24


def can_map() -> bool:
    """Whether this system and processor are those of such objects."""
    return sys.platform == "linux" and platform.machine() == "x86_64"


class MappedObject:
    """The functions of one object; their code lives as long as this. Raises OSError where code may not be made."""

    def __init__(self, data: bytes) -> None:
        (table,) = struct.unpack_from("<Q", data, 0x28)
        size, number = struct.unpack_from("<HH", data, 0x3A)
        # Name, type, flags, address, offset, size, link, info, alignment, size of an entry.
        sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * size) for i in range(number)]
        places, end = {}, 0
        for i, section in enumerate(sections):
            if section[2] & ALLOCATED and section[1] != UNWIND:
                alignment = max(1, section[8])
                places[i] = -(-end // alignment) * alignment
                end = places[i] + section[5]
        self._memory = mmap.mmap(-1, max(end, 1), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        for i, at in places.items():
            if sections[i][1] == PROGRAM_BITS:
                self._memory[at : at + sections[i][5]] = data[sections[i][4] :][: sections[i][5]]
        self._functions: dict[str, int] = {}
        libc = ctypes.CDLL(None, use_errno=True)
        symbols = self._symbols(data, sections, places, libc)
        for section in sections:
            if section[1] == RELOCATIONS and section[7] in places:
                self._relocate(data, section, places[section[7]], symbols)
        if libc.mprotect(*map(ctypes.c_size_t, (self._base, len(self._memory))), mmap.PROT_READ | mmap.PROT_EXEC):
            raise OSError(ctypes.get_errno(), "memory may not become executable")

    def get_function_address(self, name: str) -> int:
        """Where a function begins."""
        return self._functions[name]

    def _symbols(self, data: bytes, sections: list[Any], places: dict[int, int], libc: ctypes.CDLL) -> list[int]:
        """The address of each symbol: of the object, or of libc."""
        table = next(section for section in sections if section[1] == SYMBOLS)
        names, found = sections[table[6]][4], []
        for entry in range(table[4], table[4] + table[5], SYMBOL_BYTES):
            name, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", data, entry)
            word = data[names + name : data.index(b"\0", names + name)].decode()
            address = 0
            if section in places:
                address = self._functions[word] = self._base + places[section] + value
            elif section == 0 and word:
                address = ctypes.cast(getattr(libc, word), ctypes.c_void_p).value or 0
            found.append(address)
        return found

    def _relocate(self, data: bytes, section: Any, place: int, symbols: list[int]) -> None:
        for entry in range(section[4], section[4] + section[5], RELOCATION_BYTES):
            offset, info, addend = struct.unpack_from("<QQq", data, entry)
            at, target, kind = place + offset, symbols[info >> 32] + addend, info & 0xFFFFFFFF
            if kind == ABSOLUTE_64:
                struct.pack_into("<Q", self._memory, at, target)
            elif kind in (RELATIVE_32, CALL_32):
                struct.pack_into("<i", self._memory, at, target - self._base - at)
            else:
                raise OSError(f"a relocation of kind {kind}")
