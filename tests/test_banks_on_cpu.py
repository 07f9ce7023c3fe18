"""Grey pictures, filter banks and float64 by every CUDA kernel's own source, on the CPU under sanitizers."""

from __future__ import annotations

from pathlib import Path

import pytest
from bank_problems import BANKS, DOUBLES, EVERY, GREY, BankCase
from kernel_work import CUDNN, IM2COL, IMPLICIT, LARGE_SLIDING, SLIDING, TEXTBOOK, Work, run_on_cpu, sanitizer_library
from selection import few_then_slow

from edgeconv.methods.options import Options

pytestmark = pytest.mark.skipif(
    sanitizer_library() is None, reason="needs g++ with AddressSanitizer on Linux (apt install g++)"
)

IN_FLOAT64 = (SLIDING, LARGE_SLIDING, TEXTBOOK, IM2COL)
WAYS = {
    "sliding": (SLIDING, Options(), EVERY),
    "large sliding": (LARGE_SLIDING, Options(), (*GREY, *BANKS)),
    "textbook": (TEXTBOOK, Options(), EVERY),
    "im2col": (IM2COL, Options(), EVERY),
    "im2col, cublas": (IM2COL, Options(gemm="cublas"), EVERY),
    "implicit": (IMPLICIT, Options(), (*GREY, *BANKS)),
    "implicit, tf32": (IMPLICIT, Options(math="tf32"), tuple(case for case in BANKS if case.dtype != "uint16")),
    "cudnn": (CUDNN, Options(), (*GREY, *BANKS)),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_every_case(libraries: Path, way: str) -> None:
    maker, options, cases = WAYS[way]
    ended = run_on_cpu([Work(maker, case, options) for case in cases], libraries)
    assert ended.code == 0, ended.text


@pytest.mark.parametrize("case", few_then_slow([BANKS[7], GREY[0], DOUBLES[0], BANKS[12]], 2), ids=str)
def test_large_sliding(libraries: Path, case: BankCase) -> None:
    """Also with rows that start anywhere, and as on a GPU with bulk copies."""
    works = [Work(LARGE_SLIDING, case, offset_samples=offset) for offset in (0, 1)]
    for bulk in (False, True):
        ended = run_on_cpu(works, libraries, bulk=bulk)
        assert ended.code == 0, ended.text
