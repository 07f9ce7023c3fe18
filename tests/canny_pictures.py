"""Pictures and edge maps that are hard for Canny: ties between neighbours, long weak edges, spirals."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeconv.core.canny import STRONG, WEAK

KINDS = ("noise", "few levels", "smooth", "black and white")


def picture_of(kind: str, shape: tuple[int, ...], seed: int, dtype: Any = np.uint8) -> NDArray[Any]:
    """A random picture of a kind: noise has short edges, few levels many ties, smooth pictures long edges."""
    rng = np.random.default_rng(seed)
    most = np.iinfo(dtype).max
    picture = rng.integers(0, most + 1, shape).astype(dtype)
    if kind == "few levels":
        return (picture // (most // 4 + 1) * (most // 3)).astype(dtype)
    if kind == "smooth":
        return cv2.GaussianBlur(picture, (5, 5), 0).reshape(shape)
    if kind == "black and white":
        return (picture // (most // 2 + 1) * most).astype(dtype)
    return picture


def spiral(side: int) -> NDArray[np.uint8]:
    """A map (side, side) with one weak line from the outer corner, which is strong, to the middle, two pixels apart."""
    edges = np.zeros((side, side), np.uint8)
    y = x = 0
    turn, steps = [(0, 1), (1, 0), (0, -1), (-1, 0)], [side - 1, side - 1, side - 1]
    length = side - 1
    while length > 2:
        length -= 2
        steps += [length, length]
    edges[0, 0] = WEAK
    for number, count in enumerate(steps):
        dy, dx = turn[number % 4]
        for _ in range(count):
            y, x = y + dy, x + dx
            edges[y, x] = WEAK
    edges[0, 0] = STRONG
    return edges
