"""From LLVM IR to a function of this process, for this processor's vectors.

llvmlite is the compiler that Numba stands on, without Numba: it loads in 40 ms instead of 250, and a kernel
compiles in tens of milliseconds, so no kernel cache has to be kept, shipped or invalidated.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numpy as np
from numpy.typing import NDArray

from edgeconv.hardware.cpu.caches import CACHE_LINE_BYTES

NativeFunction = Callable[..., None]
"""Addresses and numbers, of 64 bits each. Called without the interpreter lock."""

MOST_EFFORT = 3


def _keep_llvm_whole_in_forks() -> None:
    """Fork only while no thread is inside LLVM: a child would wait for ever for the lock that such a thread holds.

    llvmlite does not do it itself, and keeps its lock private; a version with another one leaves forks as they were.
    """
    lock: Any = getattr(getattr(llvm.ffi, "lib", None), "_lock", None)
    if hasattr(lock, "__enter__"):
        let_go = partial(lock.__exit__, None, None, None)
        os.register_at_fork(before=lock.__enter__, after_in_parent=let_go, after_in_child=let_go)


_keep_llvm_whole_in_forks()


@dataclass(frozen=True)
class Processor:
    """What code is made for."""

    triple: str
    """LLVM's name of architecture and system."""
    name: str
    features: str
    """LLVM's list of what it can beyond its name, `+this,-that`."""
    vector_bytes: int
    """Length of the registers that arithmetic is written for."""
    has_half: bool
    """Converts float16 by itself."""


@cache
def processor() -> Processor:
    """This machine's processor, as LLVM sees it."""
    _start_llvm()
    features = llvm.get_host_cpu_features()
    if features.get("avx512bw") and features.get("avx512vl"):
        vector_bytes = 64
    elif features.get("avx2"):
        vector_bytes = 32
    else:
        vector_bytes = 16
    triple = llvm.get_process_triple()
    is_arm64 = triple.startswith(("aarch64", "arm64"))
    return Processor(
        triple,
        llvm.get_host_cpu_name(),
        features.flatten(),
        vector_bytes,
        has_half=bool(features.get("f16c")) or is_arm64,
    )


def versions() -> dict[str, str]:
    """llvmlite's version and that of the LLVM inside it."""
    return {"llvmlite": llvmlite.__version__, "llvm": ".".join(str(part) for part in llvm.llvm_version_info)}


@dataclass(frozen=True)
class Compiled:
    """Functions of one module; their machine code lives as long as this."""

    engine: Any

    def address(self, name: str) -> int:
        """Where a function of the module begins."""
        found: int = self.engine.get_function_address(name)
        return found

    def function(self, name: str, arguments: int) -> NativeFunction:
        """A function of the module, to be called with that number of addresses and numbers."""
        return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * arguments)(self.address(name))


def compile_module(ir_text: str, target: Processor, effort: int = MOST_EFFORT) -> Compiled:
    """Optimise and assemble a module; with less `effort` (LLVM's -O0 to -O3) sooner, and the code may be slower."""
    machine = _target_machine(target, effort)
    engine = llvm.create_mcjit_compiler(_optimized(ir_text, target, machine), machine)
    engine.finalize_object()
    return Compiled(engine)


@cache
def compiled(write: Callable[[Any], str], subject: Any, target: Processor) -> Compiled:
    """The compiled module that `write` gives for a subject; compiled once per process for each."""
    return compile_module(write(subject), target)


def aligned_zeros(size_bytes: int) -> NDArray[np.uint8]:
    """Zeroed bytes that start on a cache line, for code to work in."""
    whole = np.zeros(size_bytes + CACHE_LINE_BYTES, np.uint8)
    start = -whole.ctypes.data % CACHE_LINE_BYTES
    return whole[start : start + size_bytes]


def assembly(ir_text: str, target: Processor) -> str:
    """The machine code of a module as text, to be read; `target` need not be this machine."""
    machine = _target_machine(target)
    text: str = machine.emit_assembly(_optimized(ir_text, target, machine))
    return text


@cache
def _start_llvm() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def _target_machine(target: Processor, effort: int = MOST_EFFORT) -> Any:
    _start_llvm()
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.name, features=target.features, opt=effort, codemodel="jitdefault", jit=True
    )


def _optimized(ir_text: str, target: Processor, machine: Any) -> Any:
    """Parse, check and tidy up.

    Vectors, unrolling and prefetches already stand in the IR as they are wanted, so a handful of passes gives
    the same speed as LLVM's usual pipeline in half of the time.
    """
    module = llvm.parse_assembly(ir_text)
    module.triple = target.triple
    module.verify()
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_new_gvn_pass()
    passes.add_loop_simplify_pass()
    passes.add_dead_code_elimination_pass()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options())
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)
    return module
