"""LLVM itself, by llvmlite: from IR to an object of machine code, for this processor's vectors or for others.

llvmlite is the compiler that Numba stands on, without Numba. It loads in 50 ms and compiles a kernel in tens, so a
process that finds its code in the cache imports nothing of this (jit.py).
"""

from __future__ import annotations

import os
from functools import cache, partial
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from edgeconv.hardware.cpu.processor import MOST_EFFORT, Processor


def _keep_llvm_whole_in_forks() -> None:
    """Fork only while no thread is inside LLVM: a child would wait for ever for the lock that such a thread holds.

    llvmlite does not do it itself, and keeps its lock private; a version with another one leaves forks as they were.
    """
    lock: Any = getattr(getattr(llvm.ffi, "lib", None), "_lock", None)
    if hasattr(lock, "__enter__"):
        let_go = partial(lock.__exit__, None, None, None)
        os.register_at_fork(before=lock.__enter__, after_in_parent=let_go, after_in_child=let_go)


_keep_llvm_whole_in_forks()


def host() -> Processor:
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


def machine_code(ir_text: str, target: Processor, effort: int = MOST_EFFORT) -> bytes:
    """Optimise and assemble a module: an object of the target's system."""
    machine = _target_machine(target, effort)
    data: bytes = machine.emit_object(_optimized(ir_text, target, machine))
    return data


def linked(data: bytes) -> Any:
    """An object as functions of this process, for systems that mapped.py does not know."""
    _start_llvm()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine(host()))
    engine.add_object_file(llvm.ObjectFileRef.from_data(data))
    engine.finalize_object()
    return engine


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
