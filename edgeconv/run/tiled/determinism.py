"""Which methods may work by tiles: those whose result for a pixel does not depend on where in an array it lies.

Sums of whole numbers that float32 holds exactly are the same in any order, so every method may do those. Others must
add a pixel's terms in one fixed order wherever it lies, or a seam would show in the last bit. Three do not: OpenCV
takes vector code along a row and scalar code at its end; cuDNN chooses its algorithm by the shape; CUDA's sliding adds
float16 pictures on tensor cores, in an order that depends on the column, and small pictures otherwise.
"""

from __future__ import annotations

import numpy as np

from edgeconv.core.option import AUTO
from edgeconv.core.problem import INPUT_DTYPES, Problem
from edgeconv.errors import UsageError
from edgeconv.methods.base import DeviceName
from edgeconv.runtime.auto import Choice

ORDER_DEPENDS_ON_PLACE: tuple[tuple[DeviceName, str, tuple[str, ...]], ...] = (
    ("cpu", "opencv", INPUT_DTYPES),
    ("cuda", "cudnn", INPUT_DTYPES),
    ("cuda", "sliding", ("float16",)),
)
"""Device, method and the types of picture for which it does."""

ABLE: dict[DeviceName, str] = {"cpu": "sliding", "cuda": "implicit"}
"""What takes their place: a method of the device whose order never depends on the place."""

FLOAT32_WHOLE = 2**24
"""Up to here float32 holds every whole number."""


def is_exact(problem: Problem) -> bool:
    """Whether every sum is a whole number that float32 holds, and so the same in any order.

    The root of a magnitude is none; but rounded to 8 bits it is the same however it was computed, as the root of a
    whole number n is no nearer to k + ½ than 1 / (8k + 4).
    """
    weights = problem.weights
    if problem.combine == "magnitude" and problem.output_dtype != np.uint8:
        return False
    if problem.dtype.kind != "u" or not (weights == np.rint(weights)).all():
        return False
    largest = np.abs(weights.astype(np.float64)).sum(axis=(2, 3, 4)).max() * np.iinfo(problem.dtype).max
    return bool(largest < FLOAT32_WHOLE)


def shows_seams(choice: Choice, problem: Problem) -> bool:
    """Whether tiles by this method might differ from the whole picture."""
    place = next(
        (dtypes for device, name, dtypes in ORDER_DEPENDS_ON_PLACE if (device, name) == (choice.device, choice.method)),
        (),
    )
    return problem.dtype.name in place and not is_exact(problem)


def settle(choice: Choice, asked_for: str, problem: Problem) -> Choice:
    """`choice`, or for `auto` the method that may work by tiles. Raises UsageError for one asked for by name."""
    if not shows_seams(choice, problem):
        return choice
    able = ABLE[choice.device]
    if asked_for == AUTO:
        return Choice(able, choice.device, f"{choice.method} would round by place, so that seams of tiles would show")
    raise UsageError(
        f"Method '{choice.method}' rounds these sums by where a pixel lies in its array, so tiles would differ from "
        f"the whole picture in the last bit: use --method {able}, or leave the tile options out."
    )
