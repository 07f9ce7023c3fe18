"""Every CUDA kernel, from its own source, on the CPU under AddressSanitizer and UBSan, against the oracle.

host_cuda/ says how. The plans are the real ones, so their grids, bands, tables and argument blocks are tested too.
What it cannot show: races inside a warp's lockstep, and speed; compute-sanitizer on a GPU does the first.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import kernel_table
import pytest
from cpu_problems import RANDOM, RANDOM_WHOLE, Case
from kernel_work import (
    CUDNN,
    IM2COL,
    IMPLICIT,
    LARGE_SLIDING,
    SLIDING,
    TEXTBOOK,
    Fault,
    Work,
    all_right,
    assert_detected,
    sanitizer_library,
)
from problems import AWKWARD_SHAPES
from selection import few_then_slow

from edgeconv.methods.options import Options

pytestmark = pytest.mark.skipif(
    sanitizer_library() is None, reason="needs g++ with AddressSanitizer on Linux (apt install g++)"
)

SHAPES = (*AWKWARD_SHAPES, (5, 300), (90, 48))
"""Beside the awkward ones: several tiles across, and rows that start on 16 bytes."""


def works(maker: str, rules: Case, options: Options) -> list[Work]:
    """The rules with every shape that has an output, and with arrays that start anywhere."""
    shapes = [shape for shape in SHAPES if min(shape) + 2 * rules.padding >= 3]
    aligned = [Work(maker, replace(rules, shape=shape), options) for shape in shapes]
    return [*aligned, *(Work(maker, replace(rules, shape=(13, 48)), options, offset) for offset in (1, 3))]


WHOLE = Case("laplacian8", "mix", "uint8", "abs", border="reflect101")
FRACTIONS = Case(RANDOM, "mix", "float32", "raw")
QUADS = Case(RANDOM, "mix", "uint16", "raw", border="reflect", in_channels=1)
KERNELS = (
    *((maker, WHOLE, Options()) for maker in (SLIDING, LARGE_SLIDING, TEXTBOOK, IM2COL, IMPLICIT)),
    *((maker, FRACTIONS, Options()) for maker in (LARGE_SLIDING, IM2COL, IMPLICIT)),
    (LARGE_SLIDING, QUADS, Options()),
    (LARGE_SLIDING, Case("sobel", "luma", "uint16", "clip", border="reflect"), Options()),
    (LARGE_SLIDING, Case("laplacian8/0.25", "luma", "uint8", "clip"), Options()),
    (SLIDING, Case("sobel", "each", "uint8", "abs", border="reflect101"), Options()),
    (SLIDING, Case("kirsch", "each", "float32", "raw", border="replicate"), Options()),
    (IM2COL, WHOLE, Options(gemm="cublas")),
    (CUDNN, WHOLE, Options(workspace_limit_bytes=100_000)),
)
"""A bordered picture of whole numbers shows most faults; numbers with fractions are multiplied by other code here; of
16 bits of one channel a lane of strips reads and writes four words at once; luma blends channels, in float64 and in
float32; `each` are flat rows. NumPy stands in for libraries, with a workspace for several bands.
"""


@pytest.mark.parametrize("number", range(len(KERNELS)), ids=lambda number: " ".join(map(str, KERNELS[number][:2])))
def test_kernels(libraries: Path, number: int) -> None:
    all_right(works(*KERNELS[number]), libraries)


def test_a_batch(libraries: Path) -> None:
    rules = Case("sobel", "each", "float64", "abs", border="reflect")
    all_right([Work(SLIDING, rules, pictures=3)], libraries)


BANKS = (
    Case(RANDOM, "mix", "float32", "raw", border="reflect101", filters=16),
    Case(RANDOM, "mix", "float32", "raw", 2, filters=17, in_channels=1),
    Case(RANDOM_WHOLE, "each", "uint8", "abs", 2, filters=12),
)
"""The first two by the lanes of a warp."""


@pytest.mark.parametrize("case", few_then_slow(BANKS, 2), ids=str)
def test_large_sliding_of_banks(libraries: Path, case: Case) -> None:
    """Also with rows that start anywhere."""
    all_right([Work(LARGE_SLIDING, case, offset_samples=offset) for offset in (0, 1)], libraries)


NOTHING, WRONG = "(void)0", r"wrong: \d+ wrong samples"
FLOATS = Case(RANDOM, "mix", "float32", "raw", shape=(37, 131))
FAULTS = (
    Fault(
        "a thread past the end is not sent home",
        Work(SLIDING, Case(RANDOM, "mix", "float32", "raw", stride=7, shape=(37, 131))),
        "methods/cuda/sliding_direct.cu",
        r"if \(x >= size\.out_width .*return;",
        "",
        r"AddressSanitizer: use-after-poison[\s\S]*WRITE of size 4[\s\S]*sliding_direct\.cu:\d+",
    ),
    Fault(
        "a border is read where the picture has none",
        Work(IMPLICIT, FLOATS),
        "methods/cuda/picture.cuh",
        r"if \(border == Border::zero\) return OUTSIDE;",
        "if (border == Border::zero) return position;",
        r"AddressSanitizer: use-after-poison[\s\S]*READ of size 4[\s\S]*implicit\.cu:\d+",
    ),
    Fault(
        "a warp's barrier is missing", Work(IM2COL, FLOATS), "methods/cuda/gemm.cuh", r"__syncwarp\(\)", NOTHING, WRONG
    ),
    Fault(
        "nobody waits for copies",
        Work(LARGE_SLIDING, FLOATS),
        "methods/cuda/sliding.cu",
        r"wait_for_copies_but<STEPS_AHEAD>\(\)",
        NOTHING,
        WRONG,
    ),
    Fault(
        "one thread does not come to the barrier",
        Work(IMPLICIT, FLOATS),
        "methods/cuda/implicit.cu",
        r"__syncthreads\(\)",
        "if (threadIdx.x) __syncthreads()",
        "threads wait at a barrier that others never reach",
    ),
    Fault(
        "a read of 16 bytes starts on 4",
        Work(IMPLICIT, FLOATS),
        "methods/cuda/implicit.cu",
        r"lane \* ADVANCE, samples",
        "lane * ADVANCE + 1, samples",
        r"implicit\.cu:\d+:\d+: runtime error: .*misaligned address",
    ),
)
"""One for each thing that can be noticed."""


@pytest.mark.parametrize("fault", few_then_slow(FAULTS), ids=lambda fault: f"{fault.source}: {fault.what}")
def test_a_fault_is_detected(tmp_path: Path, libraries: Path, fault: Fault) -> None:
    assert_detected(tmp_path / "sources", libraries, fault)


PARTS = 12
"""That take some ten seconds each."""


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_code_path(libraries: Path, part: int) -> None:
    """Any two values of macros, strides, paddings and alignments among them, that meet in a kernel."""
    all_right(kernel_table.works()[part::PARTS], libraries)
