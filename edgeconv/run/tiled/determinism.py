"""Which methods may filter by tiles: those whose result for a pixel does not depend on its position in the array.

Sums of whole numbers that float32 represents exactly are the same in any order, so every method may compute those.
Otherwise a pixel's terms must be added in one fixed order at every position, or tile boundaries would differ in the
last bit. Three methods do not: OpenCV uses vector code along a row and scalar code at its end; cuDNN chooses its
algorithm by the shape; CUDA's sliding adds float16 pictures on tensor cores, in an order that depends on the column,
and small pictures in another way.
"""

from __future__ import annotations

import numpy as np

from edgeconv.api.auto import Choice
from edgeconv.core.choices import DeviceName
from edgeconv.core.option import AUTO
from edgeconv.core.problem import INPUT_DTYPES, Problem
from edgeconv.errors import UsageError

ORDER_DEPENDS_ON_POSITION: tuple[tuple[DeviceName, str, tuple[str, ...]], ...] = (
    ("cpu", "opencv", INPUT_DTYPES),
    ("cuda", "cudnn", INPUT_DTYPES),
    ("cuda", "sliding", ("float16",)),
)
"""Device, method and the sample types for which the order of its sums depends on the position."""

REPLACEMENTS: dict[DeviceName, str] = {"cpu": "sliding", "cuda": "implicit"}
"""Used instead: a method of the device whose order never depends on the position."""

FLOAT32_WHOLE = 2**24
"""Up to here float32 represents every whole number."""


def is_exact(problem: Problem) -> bool:
    """Whether every sum is a whole number that float32 represents, and therefore the same in any order.

    The square root of a magnitude is not a whole number; but rounded to 8 bits it is the same in any order, as the root
    of a whole number n is no nearer to k + ½ than 1 / (8k + 4).
    """
    weights = problem.weights
    if problem.combine == "magnitude" and problem.output_dtype != np.uint8:
        return False
    if problem.dtype.kind != "u" or not (weights == np.rint(weights)).all():
        return False
    largest = np.abs(weights.astype(np.float64)).sum(axis=(2, 3, 4)).max() * np.iinfo(problem.dtype).max
    return bool(largest < FLOAT32_WHOLE)


def depends_on_tiling(choice: Choice, problem: Problem) -> bool:
    """Whether tiles by this method might differ from the whole picture."""
    dependent = next(
        (
            dtypes
            for device, name, dtypes in ORDER_DEPENDS_ON_POSITION
            if (device, name) == (choice.device, choice.method)
        ),
        (),
    )
    return problem.dtype.name in dependent and not is_exact(problem)


def settle(choice: Choice, asked_for: str, problem: Problem) -> Choice:
    """`choice`, or for `auto` a method that may filter by tiles. Raises UsageError for one asked for by name."""
    if not depends_on_tiling(choice, problem):
        return choice
    other = REPLACEMENTS[choice.device]
    if asked_for == AUTO:
        why = f"the rounding of {choice.method} depends on a pixel's position, so tiles would differ in the last bit"
        return Choice(other, choice.device, why)
    raise UsageError(
        f"With method '{choice.method}' the rounding of these sums depends on a pixel's position in the array, so "
        f"tiles would differ from the whole picture in the last bit: use --method {other}, or leave out the tile "
        "options."
    )
