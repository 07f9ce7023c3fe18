"""What the CUDA methods share on the host: a problem as macros and as kernel arguments.

Macros carry what changes the code (types, filter shape, rules); sizes and weights are passed by value, so that
pictures of any size share a compiled kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.exactness import needs_exact_root, sums_for
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem
from edgeconv.hardware.cuda.kernels import KernelVariant
from edgeconv.methods.base import AddressPlan

if TYPE_CHECKING:
    from edgeconv.hardware.cuda.launch import BatchLaunch, PackedLaunch

Defines = tuple[tuple[str, str | int], ...]
Pitches = tuple[int, int]
"""Samples from one pixel to the next, of the picture and of the output."""

WARP = 32
MOST_WEIGHT_BYTES = 4000
"""Arguments of a kernel are at most 4,096 bytes on every GPU: CUDA C++ Programming Guide, kernel parameters."""
STAGING_THREADS = 256
"""Of a block of epilogue.cu."""
MOST_RESPONSES = 24
"""Responses of a pixel that a GEMM of the project holds in registers: compass filters on three channels."""


class CudaPlan(AddressPlan):
    """A plan that computes from addresses of the GPU's memory."""

    def run(self, image: Any, out: Any) -> None:
        """See Plan.run. The first arrays that do not start on 16 bytes may cost another compile."""
        self.run_at(image.data.ptr, out.data.ptr)


def problem_defines(problem: Problem, *kinds: np.dtype[Any], pitches: Pitches | None = None) -> Defines:
    """The macros of responses.cuh for a problem; `kinds` are types that a kernel uses beside input and output.

    `pitches` are those of the whole where the problem is a part of one (`BankPart`).
    """
    names = {problem.dtype.name, problem.output_dtype.name, *(kind.name for kind in kinds)}
    in_pitch, out_pitch = pitches or pitches_of(problem)
    return (
        ("INPUT", problem.dtype.name),
        ("OUTPUT", problem.output_dtype.name),
        ("IN_PITCH", in_pitch),
        ("OUT_PITCH", out_pitch),
        *((("USES_FLOAT16", 1),) if "float16" in names else ()),
        *((("USES_FLOAT64", 1),) if problem.dtype == np.float64 else ()),
        *rule_defines(problem),
    )


def staging_variant(problem: Problem, staged: np.dtype[Any], entry: str, planes: bool = False) -> KernelVariant:
    """A kernel of epilogue.cu: what stands before (`stage`) or after (`epilogue`) a library that takes `staged`."""
    defines = (*problem_defines(problem, staged), ("THREADS", STAGING_THREADS), ("STAGED", staged.name))
    return KernelVariant("methods/cuda/epilogue.cu", entry, (*defines, *((("PLANES", 1),) if planes else ())))


def pitches_of(problem: Problem) -> Pitches:
    """Its channels, in and out."""
    return problem.in_channels, problem.output_channels


def rule_defines(problem: Problem) -> Defines:
    """The macros of picture.cuh's rules and of sums.cuh."""
    return (
        ("BORDER", problem.border),
        ("COMBINE", problem.combine),
        ("STORE", problem.output_mode),
        ("DIRECTIONS", problem.directions),
        ("OUT_CHANNELS", problem.output_channels),
        ("IN_CHANNELS", problem.in_channels),
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


@dataclass(frozen=True)
class BankPart:
    """Some outputs of a filter bank that one launch computes: a problem of their own, and where its samples lie."""

    problem: Problem
    pitches: Pitches
    image_offset_bytes: int = 0
    """Of the first sample that it reads of a pixel."""
    out_offset_bytes: int = 0
    """Of the first sample that it writes of a pixel."""


def outputs_within(problem: Problem, most_responses: int | None = None) -> int:
    """Outputs whose weights fit a kernel's arguments and whose responses do not exceed a limit."""
    by_arguments = MOST_WEIGHT_BYTES // problem.weights[:, 0].nbytes
    by_registers = by_arguments if most_responses is None else most_responses // problem.directions
    return max(1, min(by_arguments, by_registers))


def parts_of(problem: Problem, most_outputs: int) -> tuple[BankPart, ...]:
    """The launches for a problem where one computes a limited number of outputs; itself where one is enough.

    Channels that are filtered separately share a launch where each has one filter, as an RGB picture has under `each`.
    """
    pitches, outputs = pitches_of(problem), problem.output_channels
    if outputs <= most_outputs and (problem.groups == 1 or outputs == problem.in_channels):
        return (BankPart(problem, pitches),)
    filters = outputs // problem.groups
    channels = problem.in_channels // problem.groups
    parts = []
    for group in range(problem.groups):
        for first in range(0, filters, most_outputs):
            start = group * filters + first
            weights = problem.weights[:, start : start + min(most_outputs, filters - first)]
            part = replace(problem, in_channels=channels, groups=1, weights=np.ascontiguousarray(weights))
            image_offset = group * channels * problem.dtype.itemsize
            parts.append(BankPart(part, pitches, image_offset, start * problem.output_dtype.itemsize))
    return tuple(parts)


def depth_of(problem: Problem) -> int:
    """Samples under a filter, the depth of the GEMM: 27 for three channels, 9 for one."""
    return KERNEL_SIZE * KERNEL_SIZE * problem.in_channels


def response_count(problem: Problem) -> int:
    """Rows of the weight matrix: directions × output channels."""
    return problem.directions * problem.output_channels


def batch_defines(batch: bool) -> tuple[tuple[str, int], ...]:
    """The macro of kernels that take a batch."""
    return (("BATCH", 1),) if batch else ()


def launch_of(
    problem: Problem, pictures: int, kernel: Any, blocks: int, threads: tuple[int, int], *arguments: Any
) -> PackedLaunch | BatchLaunch:
    """The launch for one picture of the problem, or for several that lie one behind another."""
    from edgeconv.hardware.cuda.launch import BatchLaunch, PackedLaunch

    if pictures == 1:
        return PackedLaunch(kernel, blocks, threads, *arguments)
    steps = (problem.input_bytes, problem.output_bytes)
    return BatchLaunch(kernel, blocks, threads, *arguments, pictures=pictures, steps=steps)


def round_up(value: int, multiple: int) -> int:
    """The least multiple that is not below `value`."""
    return -(-value // multiple) * multiple
