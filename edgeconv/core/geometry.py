"""Geometry of a 3×3 filter: output size, padding, borders and bands. Integers only, no pixels.

    out = floor((in + 2·padding − 3) / stride) + 1

`same` is a padding of 1, so out = ceil(in / stride) for every stride; `valid` is a padding of 0.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.choices import NAMED_PADDINGS, Border
from edgeconv.core.text import counted
from edgeconv.errors import UsageError

KERNEL_SIZE = 3

MAX_PADDING = 4096

OUTSIDE = -1
"""The source index that `border_indices` gives for a pixel that the `zero` border supplies."""


def parse_padding(padding: int | str) -> int:
    """`same`, `valid` or a whole number, as pixels on every side."""
    if isinstance(padding, str):
        text = padding.strip().lower()
        if text in NAMED_PADDINGS:
            return NAMED_PADDINGS[text]
        if not text.isdecimal():
            raise UsageError(f"Padding '{padding}' is not 'same', 'valid' or a whole number from 0.")
        padding = int(text)
    if isinstance(padding, bool) or not isinstance(padding, int | np.integer):
        raise UsageError(f"Padding {padding!r} is not 'same', 'valid' or a whole number from 0.")
    if not 0 <= padding <= MAX_PADDING:
        raise UsageError(f"Padding {padding} is outside 0 to {MAX_PADDING}.")
    return int(padding)


def output_size(size: int, stride: int, padding: int) -> int:
    """Output length along one axis; raises UsageError where the padded axis is shorter than the filter."""
    if isinstance(stride, bool) or stride < 1:
        raise UsageError(f"Stride {stride} is not a whole number from 1.")
    padded = size + 2 * padding
    if padded < KERNEL_SIZE:
        raise UsageError(
            f"A side of {counted(size, 'pixel')} with padding {padding} is shorter than the 3×3 filter: "
            "use --padding same."
        )
    return (padded - KERNEL_SIZE) // stride + 1


def border_indices(size: int, padding: int, border: Border) -> NDArray[np.intp]:
    """Source index of each of the `size + 2·padding` positions along one padded axis.

    `OUTSIDE` marks a zero. For a side of 4 and a padding of 2, the two positions before 0 1 2 3 are
    replicate 0 0, reflect 1 0 (edge pixel repeated), reflect101 2 1 (edge pixel not repeated).
    Reflections repeat as often as a wide padding needs; reflect101 of a single pixel is that pixel.
    """
    position = np.arange(-padding, size + padding, dtype=np.intp)
    if border == "zero":
        return np.where((position < 0) | (position >= size), OUTSIDE, position)
    if border == "replicate":
        return np.clip(position, 0, size - 1)
    if border == "reflect":
        folded = np.mod(position, 2 * size)
        return np.where(folded < size, folded, 2 * size - 1 - folded)
    if size == 1:
        return np.zeros_like(position)
    period = 2 * (size - 1)
    folded = np.mod(position, period)
    return np.where(folded < size, folded, period - folded)


def touched_places(size: int, stride: int, padding: int, border: Border) -> NDArray[np.intp]:
    """Which of the `size` pixels along one axis lie under some window, ascending.

    Up to a stride of 3 those are all, or all but what the last window leaves.
    """
    first = np.arange(output_size(size, stride, padding), dtype=np.intp) * stride
    under = border_indices(size, padding, border)[first[:, np.newaxis] + np.arange(KERNEL_SIZE)]
    return np.flatnonzero(np.bincount(under[under != OUTSIDE], minlength=size))


def bands(rows: int, rows_per_band: int) -> Iterator[tuple[int, int]]:
    """Cut `rows` into (start, stop) pieces of `rows_per_band`; the last may be shorter."""
    for start in range(0, rows, rows_per_band):
        yield start, min(start + rows_per_band, rows)
