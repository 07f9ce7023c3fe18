"""What the kernels of floor.cu read, and what they have to write."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FLOOR_SIZES = ((1, 1), (900, 100), (1000, 1000), (300, 700))
"""Words of 16 bytes to read and to write."""


def source_words(count: int) -> NDArray[np.uint32]:
    """Random words, none of them all ones."""
    return np.random.default_rng(1).integers(0, 2**31, (count, 4), np.uint32)


def expected(entry: str, words: NDArray[np.uint32], writes: int) -> NDArray[np.uint32]:
    """The target of a kernel."""
    target = np.zeros((writes, 4), np.uint32)
    for first in range(0, len(words), writes):
        part = words[first : first + writes]
        target[: len(part)] |= part
        if entry == "one_word_each":
            break
    return target
