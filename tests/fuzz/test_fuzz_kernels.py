"""Fuzz cases of the CUDA kernels, from their own source on the CPU under sanitizers: no GPU is needed.

Chosen, not drawn, because each kernel that is compiled costs most of a second: at the ends of the number range, where
kinds of arithmetic part. What it cannot show: denormals, which g++ keeps whatever CUDA's compiler is told.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import FuzzCase, draw, draw_kernel
from kernel_work import all_right, sanitizer_library
from selection import few_then_slow
from subject import CHECKED_EVERY

pytestmark = pytest.mark.skipif(
    sanitizer_library() is None, reason="needs g++ with AddressSanitizer on Linux (apt install g++)"
)

PATTERN = draw("cuda", 0, 2)
RUNS_TWICE = 1

METHODS = ("strips", "sliding", "textbook", "im2col", "implicit", "cudnn")


def case_of(number: int, method: str, dtype: str, kernel: str, samples: str, **rules: Any) -> FuzzCase:
    """A plan of `method`; `kernel` is a filter's name or a kind of weights."""
    is_kind = kernel in ("whole 127", "whole 2000", "whole 1e5", "small channel", "fractions", "tiny")
    rng = np.random.default_rng((number, 17))
    weights = draw_kernel(rng, kernel, full=rules.get("channels", "mix") == "mix") if is_kind else kernel
    usual = {
        "channels": "mix",
        "stride": 1,
        "padding": 1,
        "border": "zero",
        "mode": "raw",
        "options": {},
        "shape": (11, 37),
        "offsets": (number % 5, number % 3),
        "sample_seed": (number,),
    }
    return replace(
        PATTERN,
        index=8 * number + RUNS_TWICE,
        method=method,
        dtype=dtype,
        filter=weights,
        kernel_kind=kernel if is_kind else "named",
        samples=samples,
        door="plan",
        layout="contiguous",
        on_device=False,
        **{**usual, **rules},
    )


def pictures(method: str, dtype: str, kernel: str, samples: tuple[str, ...], **rules: Any) -> list[FuzzCase]:
    """The same kernel over several pictures."""
    shapes = ((11, 37), (4, 5), (9, 140))
    return [
        case_of(number, method, dtype, kernel, kind, **{"shape": shape, **rules})
        for number, (kind, shape) in enumerate((kind, shape) for kind in samples for shape in shapes)
    ]


def run(libraries: Path, *works: list[FuzzCase]) -> None:
    """Run the cases of all methods in one process."""
    all_right([case for cases in works for case in cases], libraries)


HOLES = ("holes", "many holes")
EVERYWHERE = (
    # partial sums pass 2^24, from which float32 counts in twos
    ("uint16", ("whole 2000",), ("noise", "bright"), {}),
    ("uint8", ("whole 1e5",), ("noise", "bright"), {"stride": 2}),
    ("float32", ("prewitt",), ("huge", "tiny", "unit", *HOLES), {"channels": "each"}),
    ("float16", ("laplacian4", "robinson"), HOLES, {}),
    ("float16", ("small channel",), ("unit", "positive"), {}),
)


@pytest.mark.parametrize("work", few_then_slow(EVERYWHERE), ids=str)
def test_each_method_at_the_ends_of_the_range(libraries: Path, work: tuple[str, tuple[str, ...], Any, Any]) -> None:
    dtype, kernels, samples, rules = work
    run(libraries, *(pictures(name, dtype, kernel, samples, **rules) for name in METHODS for kernel in kernels))


@pytest.mark.parametrize("name", few_then_slow(METHODS))
def test_roots_of_whole_sums_on_16_bits(libraries: Path, name: str) -> None:
    run(libraries, pictures(name, "uint16", "sobel", ("noise",), mode="abs", channels="each"))


FORMS_OF_FLOATS = (
    ("float16", "kirsch", {"channels": "each"}),
    ("float32", "robinson", {"stride": 2, "border": "reflect"}),
    ("float32", "kirsch", {"channels": "luma", "border": "replicate"}),
    ("float16", "robinson", {"channels": "luma", "stride": 3, "padding": 2}),
    ("float32", "kirsch", {"channels": "each", "mode": "abs", "stride": 5}),
    ("float16", "robinson", {"padding": 0}),
    ("float32", "scharr", {}),
    ("float64", "prewitt", {"channels": "each"}),
    ("float32", "sobel", {"channels": "luma", "stride": 2, "border": "reflect101"}),
)


@pytest.mark.parametrize("work", few_then_slow(FORMS_OF_FLOATS), ids=str)
def test_forms_of_floats(libraries: Path, work: tuple[str, str, dict[str, Any]]) -> None:
    """Whatever a form makes of infinities, of sums that overflow and of tiny samples."""
    dtype, kernel, rules = work
    samples = ("unit", "huge", "tiny", "denormals", "any bits", *HOLES)
    run(libraries, pictures("strips", dtype, kernel, samples, **rules))


def test_the_own_check_allows_what_the_plan_states(libraries: Path) -> None:
    """Small weights beside large ones, as two halves, lose more than float32 sums would; the plan says so."""
    weights = np.array(
        [
            [-0.8788612, -0.00332459, -0.87404203],
            [0.00205245, -0.37796244, 0.5550643],
            [-0.66530275, 0.07390045, -0.9924209],
        ],
        np.float32,
    )
    drawn = case_of(0, "strips", "float16", "fractions", "any bits", channels="each", border="reflect", shape=(21, 45))
    case = replace(drawn, index=0, filter=weights, offsets=(0, 0), sample_seed=(0, 1, 2501, 33, 1))
    assert case.index % CHECKED_EVERY == 0
    run(libraries, [case])
