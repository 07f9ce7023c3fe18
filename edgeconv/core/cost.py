"""Operations and bytes of a problem. Pure arithmetic.

    nominal FLOPs   2 · 3 · 3 · Cin · Cout · Hout · Wout per direction: the lab reports' count, the headline.
                    Cin is 1 where channels are filtered separately or the picture is grey, 3 otherwise.
    useful FLOPs    what is left without zero weights, with equal input kernels summed first and equal
                    output channels computed once. Combining directions (root, maximum) is not counted.
    fewest bytes    the picture read once (what a window covers of it) and the output written once, as stored

A method that needs fewer operations still divides the same nominal count by its time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.chains import ChainProblem, stage_of
from edgeconv.core.filters import Weights
from edgeconv.core.geometry import KERNEL_SIZE, touched_places
from edgeconv.core.problem import Problem
from edgeconv.core.records import Amount, Natural, Part

FLOPS_PER_MULTIPLY_ADD = 2


class Counts(Part):
    """FLOPs and bytes of a problem."""

    nominal_flops: Natural
    useful_flops: Natural
    fewest_bytes: Natural
    intensity_flops_per_byte: Amount
    """Nominal FLOPs per byte: left of the roofline's ridge for every 3×3 filter on three channels."""


def count(problem: Problem | ChainProblem, stored: np.dtype[Any] | None = None) -> Counts:
    """The work of a problem; `stored` is the type of the output where a second pass gives another than the method."""
    if isinstance(problem, ChainProblem):
        return _count_chain(problem)
    out_samples = problem.output_bytes // problem.output_dtype.itemsize
    pixels = problem.output_height * problem.output_width
    in_group = problem.weights.shape[2]
    multiply_adds = KERNEL_SIZE * KERNEL_SIZE * in_group * problem.output_channels * problem.directions
    nominal = FLOPS_PER_MULTIPLY_ADD * multiply_adds * pixels
    useful = useful_flops_per_pixel(problem.weights, problem.groups) * pixels
    fewest = touched_bytes(problem) + out_samples * (stored or problem.output_dtype).itemsize
    return Counts(nominal, useful, fewest, nominal / fewest)


def _count_chain(problem: ChainProblem) -> Counts:
    """The multiply-adds of a chain's smoothing and derivatives; neither thinning nor hysteresis is counted.

    Nominal are all places of a window, in every channel and direction; useful those whose weight is not zero. A
    smoothing of 5×5 has 25 places. Bytes are those of the picture and of the output, once each.
    """
    nominal = useful = 0
    multiplying = (stage for stage in map(stage_of, problem.chain.stages) if stage.weights)
    for stage in multiplying:
        directions = 2 if stage.gives == "gradient" else 1
        size = len(stage.weights)
        nominal += directions * size * size
        useful += directions * (size * (size - 1) if directions == 2 else size * size)
    samples = problem.height * problem.width * problem.in_channels
    nominal, useful = (FLOPS_PER_MULTIPLY_ADD * count * samples for count in (nominal, useful))
    fewest = problem.input_bytes + problem.output_bytes
    return Counts(nominal, useful, fewest, nominal / fewest)


def touched_bytes(problem: Problem) -> int:
    """Bytes of the pixels that some window covers: a stride above 3 skips rows and columns."""
    rows, columns = touched(problem)
    return rows.size * columns.size * problem.in_channels * problem.dtype.itemsize


def fetched_bytes(problem: Problem | ChainProblem, line_bytes: int) -> int:
    """Bytes of the memory lines that hold a pixel under some window: the fewest, wherever in a line the picture starts.

    Above a stride of 3 these are more than `touched_bytes`: memory gives whole lines, and what lies between two windows
    of a row comes with them unless it fills lines of its own.
    """
    if isinstance(problem, ChainProblem):
        return problem.input_bytes
    rows, columns = touched(problem)
    if problem.stride <= KERNEL_SIZE or not rows.size or not columns.size:
        return touched_bytes(problem)
    sample_bytes, pixel_bytes = problem.dtype.itemsize, problem.in_channels * problem.dtype.itemsize
    ends = np.concatenate([columns * pixel_bytes, (columns + 1) * pixel_bytes - 1])  # the bytes at a pixel's ends
    phases, starts = range(0, line_bytes, sample_bytes), rows * problem.width * pixel_bytes
    lines_of_row = np.array([np.unique((ends + phase) // line_bytes).size for phase in phases])

    def lines(phase: int) -> int:
        begin = starts + phase
        shared = (begin[1:] + ends.min()) // line_bytes == (begin[:-1] + ends.max()) // line_bytes
        return int(lines_of_row[begin % line_bytes // sample_bytes].sum() - shared.sum())

    return min(map(lines, phases)) * line_bytes


def touched(problem: Problem) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns under some window."""
    rows, columns = (
        touched_places(size, problem.stride, problem.padding, problem.border)
        for size in (problem.height, problem.width)
    )
    return rows, columns


def useful_flops_per_pixel(weights: Weights, groups: int) -> int:
    """Additions and multiplications per output pixel without zero weights and with equal terms computed once."""
    flops = 0
    summed: set[tuple[object, ...]] = set()
    for direction in weights:
        done: set[object] = set()
        for out_channel, kernels in enumerate(direction):
            group = out_channel * groups // len(direction)
            if (group, kernels.tobytes()) in done:
                continue
            done.add((group, kernels.tobytes()))
            sharing: dict[bytes, list[int]] = {}
            for in_channel, kernel in enumerate(kernels):
                if kernel.any():
                    sharing.setdefault(kernel.tobytes(), []).append(in_channel)
            taps = 0
            for raw, members in sharing.items():
                taps += int(np.count_nonzero(np.frombuffer(raw, weights.dtype)))
                place = (group, *members)
                if place not in summed:
                    summed.add(place)
                    flops += len(members) - 1
            flops += FLOPS_PER_MULTIPLY_ADD * taps
    return flops
