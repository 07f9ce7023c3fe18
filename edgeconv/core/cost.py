"""Operations and bytes of a problem, and how close a time comes to the limit of the machine. Pure arithmetic.

    nominal FLOPs   2 · 3 · 3 · Cin · Cout · Hout · Wout per direction: the lab reports' count, the headline.
                    Cin is 1 where channels are filtered separately or the picture is grey, 3 otherwise.
    useful FLOPs    what is left without zero weights, with equal input kernels summed first and equal
                    output channels computed once. Combining directions (root, maximum) is not counted.
    fewest bytes    the picture read once (what a window covers of it) and the output written once, as stored
    floor           the longer of fewest bytes / copy bandwidth and useful FLOPs / FMA rate

A method that needs fewer operations still divides the same nominal count by its time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.chains import ChainProblem
from edgeconv.core.filters import Weights
from edgeconv.core.geometry import KERNEL_SIZE, touched_places
from edgeconv.core.problem import Problem

FLOPS_PER_MULTIPLY_ADD = 2


@dataclass(frozen=True)
class Counts:
    """Work of one problem."""

    nominal_flops: int
    useful_flops: int
    fewest_bytes: int

    @property
    def intensity_flops_per_byte(self) -> float:
        """Nominal FLOPs per byte: left of the roofline's ridge for every 3×3 filter on three channels."""
        return self.nominal_flops / self.fewest_bytes


@dataclass(frozen=True)
class Roof:
    """The measured limits of this machine; `how` states the method of measurement.

    `cache_bytes` is the size of the last cache, in which repeated runs find their data where picture and output fit:
    the copy of large arrays is no limit for them. None where it is not known, and where runs begin with it emptied.
    """

    copy_bytes_per_second: float
    fma_flops_per_second: float
    how: str
    cache_bytes: int | None = None

    def copy_seconds(self, moved_bytes: int) -> float | None:
        """The least time to move so many bytes; None where the measured copy is no limit for them."""
        in_cache = self.cache_bytes is not None and moved_bytes <= self.cache_bytes
        return None if in_cache else moved_bytes / self.copy_bytes_per_second


def share_of_limit(share: float | None) -> float | None:
    """The share of a limit that a run reached; None above 1, where it was no limit of this run."""
    return None if share is None or share > 1 else share


@dataclass(frozen=True)
class Speed:
    """Rates of a measured time, and shares of the roof where it is a limit."""

    kernel_gflops: float
    useful_gflops: float
    gigabytes_per_second: float
    memory_floor_share: float | None
    roofline_share: float | None
    bound_by: str | None


def count(problem: Problem, stored: np.dtype[Any] | None = None) -> Counts:
    """The work of `problem`; `stored` is the type of the output where a second pass gives another than the method."""
    out_samples = problem.output_bytes // problem.output_dtype.itemsize
    pixels = problem.output_height * problem.output_width
    in_group = problem.weights.shape[2]
    multiply_adds = KERNEL_SIZE * KERNEL_SIZE * in_group * problem.output_channels * problem.directions
    return Counts(
        nominal_flops=FLOPS_PER_MULTIPLY_ADD * multiply_adds * pixels,
        useful_flops=useful_flops_per_pixel(problem.weights, problem.groups) * pixels,
        fewest_bytes=touched_bytes(problem) + out_samples * (stored or problem.output_dtype).itemsize,
    )


def count_chain(problem: ChainProblem) -> Counts:
    """The multiply-adds of a chain's smoothing and derivatives; neither thinning nor hysteresis is counted.

    Nominal are all places of a window, in every channel and direction; useful those whose weight is not zero. A
    smoothing of 5×5 has 25 places. Bytes are those of the picture and of the output, once each.
    """
    nominal = useful = 0
    for stage in problem.chain.smoothings_and_gradients:
        directions = 2 if stage.gives == "gradient" else 1
        size = len(stage.weights)
        nominal += directions * size * size
        useful += directions * (size * (size - 1) if directions == 2 else size * size)
    samples = problem.height * problem.width * problem.in_channels
    return Counts(
        nominal_flops=FLOPS_PER_MULTIPLY_ADD * nominal * samples,
        useful_flops=FLOPS_PER_MULTIPLY_ADD * useful * samples,
        fewest_bytes=problem.input_bytes + problem.output_bytes,
    )


def count_any(problem: Problem | ChainProblem) -> Counts:
    """`count` of a convolution, `count_chain` of a chain."""
    return count_chain(problem) if isinstance(problem, ChainProblem) else count(problem)


@dataclass(frozen=True)
class Throughput:
    """What a time means for a chain, whose comparisons are no multiply-adds: a rate of pixels and of bytes."""

    pixels_per_second: float
    gigabytes_per_second: float
    memory_floor_share: float | None


def throughput(problem: ChainProblem, counts: Counts, seconds: float, roof: Roof | None) -> Throughput:
    """Rates of one run that took `seconds`, and its share of the time of a copy of the fewest bytes."""
    floor = None if roof is None else roof.copy_seconds(counts.fewest_bytes)
    return Throughput(
        pixels_per_second=problem.height * problem.width / seconds,
        gigabytes_per_second=counts.fewest_bytes / seconds / 1e9,
        memory_floor_share=None if floor is None else share_of_limit(floor / seconds),
    )


def touched_bytes(problem: Problem) -> int:
    """Bytes of the pixels that some window covers: a stride above 3 skips rows and columns."""
    rows, columns = _touched_places(problem)
    return rows.size * columns.size * problem.in_channels * problem.dtype.itemsize


def _touched_places(problem: Problem) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns under some window."""
    rows, columns = (
        touched_places(size, problem.stride, problem.padding, problem.border)
        for size in (problem.height, problem.width)
    )
    return rows, columns


def fetched_bytes(problem: Problem, line_bytes: int) -> int:
    """Bytes of the memory lines that hold a pixel under some window: the fewest, wherever in a line the picture starts.

    Above a stride of 3 these are more than `touched_bytes`: memory gives whole lines, and what lies between two windows
    of a row comes with them unless it fills lines of its own.
    """
    if problem.stride <= KERNEL_SIZE:
        return touched_bytes(problem)
    rows, columns = _touched_places(problem)
    if not rows.size or not columns.size:
        return 0
    pixel_bytes = problem.in_channels * problem.dtype.itemsize
    places, starts = columns * pixel_bytes, rows * (problem.width * pixel_bytes)
    phases = range(0, line_bytes, problem.dtype.itemsize)
    of_phase = {phase: _lines_of_row(places + phase, pixel_bytes, line_bytes) for phase in phases}
    least = None
    for shift in phases:
        lines = sum(
            int(count_of_rows) * of_phase[int(phase)]
            for phase, count_of_rows in zip(*np.unique((starts + shift) % line_bytes, return_counts=True), strict=True)
        )
        begins = (starts + shift + places[0]) // line_bytes
        ends = (starts + shift + places[-1] + pixel_bytes - 1) // line_bytes
        lines -= int((begins[1:] == ends[:-1]).sum())  # a line that two rows share
        least = lines if least is None else min(least, lines)
    assert least is not None
    return least * line_bytes


def _lines_of_row(places: NDArray[np.intp], pixel_bytes: int, line_bytes: int) -> int:
    """Lines that hold one of a row's pixels, which start at these bytes."""
    first, last = places // line_bytes, (places + pixel_bytes - 1) // line_bytes
    new = np.maximum(first[1:], last[:-1] + 1)  # a pixel may start in the line in which the one before ends
    return int(last[0] - first[0] + 1 + (last[1:] - new + 1).sum())


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


def speed(counts: Counts, seconds: float, roof: Roof | None) -> Speed:
    """GFLOPS, GB/s and shares of the floor for one run that took `seconds`."""
    memory_share = roofline_share = None
    bound_by = None
    memory_floor = None if roof is None else roof.copy_seconds(counts.fewest_bytes)
    if roof is not None and memory_floor is not None:
        arithmetic_floor = counts.useful_flops / roof.fma_flops_per_second
        memory_share = share_of_limit(memory_floor / seconds)
        roofline_share = share_of_limit(max(memory_floor, arithmetic_floor) / seconds)
        bound_by = "memory" if memory_floor >= arithmetic_floor else "arithmetic"
    return Speed(
        kernel_gflops=counts.nominal_flops / seconds / 1e9,
        useful_gflops=counts.useful_flops / seconds / 1e9,
        gigabytes_per_second=counts.fewest_bytes / seconds / 1e9,
        memory_floor_share=memory_share,
        roofline_share=roofline_share,
        bound_by=bound_by,
    )
