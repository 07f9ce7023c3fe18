"""What the CUDA methods share on the host: a problem as macros and as kernel arguments.

Macros carry what changes the code (types, filter shape, rules); sizes and weights are passed by value, so that
pictures of any size share a compiled kernel.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.exactness import needs_exact_root, sums_for
from edgeconv.core.filters import WeightSet, named_filter, weight_set
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem, make_problem
from edgeconv.hardware.cuda.kernels import KernelVariant
from edgeconv.methods.base import refuse
from edgeconv.methods.options import Options

Defines = tuple[tuple[str, str | int], ...]

WARP = 32
DEPTH = 27
"""Samples under a 3×3 filter on three channels: the depth of the GEMM."""
TENSOR_CORE_CAPABILITY = 80
"""Compute capability × 10 from which the instructions of `--math tf32` and `half` exist."""


def problem_defines(problem: Problem, *kinds: np.dtype[Any]) -> Defines:
    """The macros of responses.cuh for a problem; `kinds` are types that a kernel uses beside input and output."""
    names = {problem.dtype.name, problem.output_dtype.name, *(kind.name for kind in kinds)}
    return (
        ("INPUT", problem.dtype.name),
        ("OUTPUT", problem.output_dtype.name),
        *((("USES_FLOAT16", 1),) if "float16" in names else ()),
        *rule_defines(problem),
    )


def rule_defines(problem: Problem) -> Defines:
    """The macros of picture.cuh's rules and of sums.cuh."""
    return (
        ("BORDER", problem.border),
        ("COMBINE", problem.combine),
        ("STORE", problem.output_mode),
        ("DIRECTIONS", problem.directions),
        ("OUT_CHANNELS", problem.output_channels),
        ("IN_GROUP", int(problem.weights.shape[2])),
        *((("WIDE_SUMS", 1),) if sums_for(problem) == "float64" else ()),
        *((("EXACT_ROOT", 1),) if needs_exact_root(problem) else ()),
    )


def picture_geometry(problem: Problem, *more: int) -> NDArray[np.int32]:
    """`struct Geometry` of picture.cuh: height, width, out_height, out_width, padding; then what a kernel adds."""
    sizes = (problem.height, problem.width, problem.output_height, problem.output_width, problem.padding)
    return np.array((*sizes, *more), np.int32)


def strided_geometry(problem: Problem) -> NDArray[np.int32]:
    """`struct StridedGeometry` of responses.cuh: the same, and the stride.

    A stride beyond the padded picture gives one output pixel whatever it is; it is cut to the picture's length,
    so that no kernel multiplies past 32 bits.
    """
    longest = max(problem.height, problem.width) + 2 * problem.padding
    return picture_geometry(problem, min(problem.stride, longest))


def blocks_over(problem: Problem, across: int, down: int) -> int:
    """Blocks of a flat grid that covers the output with tiles of `across` × `down` pixels."""
    return -(-problem.output_width // across) * -(-problem.output_height // down)


def response_count(problem: Problem) -> int:
    """Rows of the weight matrix: directions × output channels."""
    return problem.directions * problem.output_channels


def refuse_reduced_16bit(name: str, problem: Problem, options: Options) -> None:
    """TF32 and half keep 11 bits of a sample, and half ends at 65,504: not enough for 16-bit pictures."""
    if options.math != "fma" and problem.dtype == np.uint16:
        reason = f"--math {options.math} keeps 11 bits of a sample, and this picture has 16"
        raise refuse(name, reason, "Use --math fma.")


def round_up(value: int, multiple: int) -> int:
    """The least multiple that is not below `value`."""
    return -(-value // multiple) * multiple


WIDE_SCALE = 1000.0
"""What a named filter is multiplied by so that float32 does not hold the sums of a 16-bit picture."""


def sample_problem(filter_name: str, channels: Any, dtype: str, scale: float = 1.0, **rules: Any) -> Problem:
    """A small problem of some kind; only its kind matters."""
    named = named_filter(filter_name)
    weights: WeightSet = weight_set(replace(named, kernels=named.kernels * np.float32(scale)), channels)
    side = 4 * KERNEL_SIZE
    return make_problem((side, side, 3), dtype, weights, **rules)


def sample_problems() -> tuple[Problem, ...]:
    """Problems that between them ask for every macro: what `variants()` of these methods compile without a GPU."""
    problem = sample_problem
    return (
        problem("laplacian8", "mix", "float32"),
        problem("laplacian8", "mix", "float32", stride=2, border="replicate", output_mode="abs"),
        problem("laplacian8", "mix", "float32", stride=3),
        problem("laplacian8", "each", "uint8", output_mode="abs"),
        problem("laplacian8", "mix", "uint8", border="reflect", output_mode="clip"),
        problem("sobel", "mix", "uint8", output_mode="abs"),
        problem("sobel", "luma", "uint16", border="reflect101", stride=2, output_mode="abs"),
        problem("sobel", "each", "float16", output_mode="abs"),
        problem("kirsch", "mix", "uint8", border="reflect101", output_mode="abs"),
        problem("kirsch", "each", "uint16", stride=3, output_mode="clip"),
        problem("kirsch", "luma", "float32", stride=2),
        problem("laplacian8", "mix", "float16", border="replicate"),
        problem("sobel", "mix", "uint8", stride=4),
        problem("sobel", "each", "uint16", output_mode="abs"),
        problem("laplacian8", "mix", "uint16", WIDE_SCALE, output_mode="clip"),
        problem("sobel", "mix", "uint16", WIDE_SCALE, stride=2, output_mode="abs"),
        problem("kirsch", "each", "uint16", WIDE_SCALE, stride=3),
    )


def unique(variants: list[KernelVariant]) -> tuple[KernelVariant, ...]:
    """Each variant once, in order."""
    return tuple(dict.fromkeys(variants))
