"""Functions of generated code in this process, for this processor's vectors.

    written     LLVM IR, by a function `write` of some module, for a subject that decides all of it
    compiled    by LLVM (compiler.py), once: the object goes into the user's cache (hardware/cache.py)
    mapped      into memory (mapped.py), by LLVM where that cannot be

A process that finds its object in the cache imports neither llvmlite nor what writes IR. An entry is found by all that
decides it: the subject, the processor with each of its features, the sources that write IR, and the LLVM library.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import json
import os
import struct
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.hardware import cache as user_cache
from edgeconv.hardware.cpu.caches import CACHE_LINE_BYTES
from edgeconv.hardware.cpu.mapped import MappedObject, can_map
from edgeconv.hardware.cpu.processor import MOST_EFFORT, Processor, processor_facts

NativeFunction = Callable[..., None]
"""Addresses and numbers, of 64 bits each. Called without the interpreter lock."""

WRITERS = ("core", "hardware/cpu", "methods/cpu")
"""Folders of the package whose sources decide what is written."""


@cache
def _host() -> tuple[Processor, dict[str, str]]:
    """This machine's processor, and the versions of llvmlite and LLVM."""
    facts, origin = processor_facts(), _origin()
    key = f"processor\n{facts}\n{origin}"
    known = user_cache.read(key) if facts and origin else None
    if known is None:
        from edgeconv.hardware.cpu import compiler

        known = json.dumps((asdict(compiler.host()), compiler.versions())).encode()
        if facts and origin:
            user_cache.write(key, known)
    processor, versions = json.loads(known)
    return Processor(**processor), versions


def processor() -> Processor:
    """This machine's processor, as LLVM sees it."""
    return _host()[0]


def versions() -> dict[str, str]:
    """llvmlite's version and that of the LLVM inside it."""
    return _host()[1]


@dataclass(frozen=True)
class Compiled:
    """Functions of one module; their machine code lives as long as this or one of the functions."""

    engine: Any

    def address(self, name: str) -> int:
        """Where a function of the module begins."""
        found: int = self.engine.get_function_address(name)
        return found

    def function(self, name: str, arguments: int) -> NativeFunction:
        """A function of the module, to be called with that number of addresses and numbers."""
        made: Any = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * arguments)(self.address(name))
        made.code = self.engine
        found: NativeFunction = made
        return found


def compile_module(ir_text: str, target: Processor, effort: int = MOST_EFFORT) -> Compiled:
    """Optimise and assemble a module; with less `effort` (LLVM's -O0 to -O3) sooner, and the code may be slower."""
    from edgeconv.hardware.cpu import compiler

    return _loaded(compiler.machine_code(ir_text, target, effort))


@cache
def compiled(writer: str, subject: Any, target: Processor, effort: int = MOST_EFFORT) -> Compiled:
    """What `module:function` writes for a subject, compiled once for each; equal subjects have equal texts (`repr`)."""
    origin = _origin()
    key = f"code\n{writer}\n{subject!r}\n{target!r}\n{effort}\n{origin}"
    data = user_cache.read(key) if origin else None
    if data is None:
        from edgeconv.hardware.cpu import compiler

        module, _, name = writer.partition(":")
        data = compiler.machine_code(getattr(importlib.import_module(module), name)(subject), target, effort)
        if origin:
            user_cache.write(key, data)
    return _loaded(data)


def _loaded(data: bytes) -> Compiled:
    if can_map():
        try:
            return Compiled(MappedObject(data))
        except (OSError, AttributeError, struct.error):  # no memory for code; a call that leads elsewhere, or too far
            pass
    from edgeconv.hardware.cpu import compiler

    return Compiled(compiler.linked(data))


def aligned_zeros(size_bytes: int) -> NDArray[np.uint8]:
    """Zeroed bytes that start on a cache line, for code to work in."""
    whole = np.zeros(size_bytes + CACHE_LINE_BYTES, np.uint8)
    start = -whole.ctypes.data % CACHE_LINE_BYTES
    return whole[start : start + size_bytes]


# --- what decides an entry ------------------------------------------------------------------------------------------


@cache
def _origin() -> str:
    """A digest of the sources that write IR, and of LLVM's library; empty where one of them cannot be read."""
    digest, package = blake2b(digest_size=20), Path(__file__).parents[2]
    try:
        for folder in WRITERS:
            for name in sorted(os.listdir(package / folder)):
                if name.endswith(".py"):
                    digest.update(f"{folder}/{name}\n".encode() + (package / folder / name).read_bytes())
        digest.update(_library())
    except OSError:
        return ""
    return digest.hexdigest()


def _library() -> bytes:
    """What LLVM's library is: its place, size and time of change; versions may stay the same where it does not."""
    found = importlib.util.find_spec("llvmlite")
    folder = Path(str(found and found.origin)).with_name("binding")
    facts = [(entry.path, entry.stat().st_size, entry.stat().st_mtime_ns) for entry in os.scandir(folder)]
    return repr(sorted(facts)).encode()
