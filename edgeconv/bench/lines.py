"""The fewest memory lines of a case: what the floor reads, as memory gives whole lines."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.cost import touched, touched_bytes
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem


def fetched_bytes(problem: Problem, line_bytes: int) -> int:
    """Bytes of the memory lines that hold a pixel under some window: the fewest, wherever in a line the picture starts.

    Above a stride of 3 these are more than `touched_bytes`: memory gives whole lines, and what lies between two windows
    of a row comes with them unless it fills lines of its own.
    """
    if problem.stride <= KERNEL_SIZE:
        return touched_bytes(problem)
    rows, columns = touched(problem)
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
