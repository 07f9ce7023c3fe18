"""The loop that measures a processor's multiply-adds: it does them, all of them, and nothing else."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import numpy as np
import pytest
from test_cpu_engine import OTHER_PROCESSORS

from edgeconv.hardware.cpu import jit, peak


def test_every_chain_ends_at_its_limit() -> None:
    """a ← a/2 + 1 goes to 2 from anywhere, and the sum of all chains is stored in the worker's row."""
    lanes = jit.processor().vector_bytes // 4
    code = jit.compile_module(peak.write(lanes), jit.processor())
    rows = np.zeros((3, lanes), np.float32)
    code.function(peak.ENTRY_POINT, 2)(rows.ctypes.data, 1)
    assert rows.tolist() == [[0.0] * lanes, [2.0 * peak.CHAINS] * lanes, [0.0] * lanes]


@pytest.mark.parametrize("target", OTHER_PROCESSORS, ids=lambda target: f"{target.triple}-{target.name}")
def test_the_loop_holds_one_multiply_add_a_chain_and_touches_no_memory(target) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    code = jit.assembly(peak.write(target.vector_bytes // 4), target)
    loop = re.search(r"^\.?L?BB0_1:.*?^\s+(?:jb|jne|b\.\w+)\s", code, re.DOTALL | re.MULTILINE)
    assert loop is not None, code
    fused = len(re.findall(r"^\s+(?:vfmadd\w+|fmla|fmadd)", loop[0], re.MULTILINE))
    apart = len(re.findall(r"^\s+v?addps", loop[0], re.MULTILINE))
    assert (fused, apart) == ((0, peak.CHAINS) if target.name == "x86-64-v2" else (peak.CHAINS, 0))
    assert not re.findall(r"\(%r\w+\)|\[sp", loop[0])


def test_the_flops_are_those_of_the_loop() -> None:
    lanes = jit.processor().vector_bytes // 4
    assert peak.flops_of_a_run(3) == 3 * peak.PIECES_PER_THREAD * peak.ROUNDS * peak.CHAINS * lanes * 2
