"""Forms: ways to the same responses by fewer operations, read off the weights. One table, for methods of both devices.

A form is taken where its condition holds, never by the name of a filter. What it changes is nothing at all, or rounding
within the bound of the plain sum (exactness.py): a sum of n products is allowed n + 1 roundings of every term, and a
form with no more of them needs no bound of its own. The functions below check each condition on the numbers; a plan
lists the forms that it took as `forms` of its choice, and `ConvolutionPlan.explain` shows their lines of the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.exactness import FLOAT32_UNIT, FLOAT64_UNIT, is_whole, sums_for
from edgeconv.core.filters import COMPASS_RING, Combine, Weights
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem

FormName = Literal[
    "channel sum",
    "weighted channel",
    "equal outputs",
    "opposite directions",
    "ring of three",
    "ring of differences",
    "gradient",
]


NO_MORE_ROUNDINGS = "within the bound of the plain sum: no term is rounded more often"


@dataclass(frozen=True)
class Form:
    """A line of the table, in words."""

    name: FormName
    computes: str
    condition: str
    error: str = f"none in integers; else {NO_MORE_ROUNDINGS}"


FORMS: tuple[Form, ...] = (
    Form(
        "channel sum",
        "the input channels are added, then filtered once",
        "every output's kernels are equal for all input channels, bit for bit",
    ),
    Form(
        "weighted channel",
        "one weighted sum of the input channels, then filtered once",
        "every output's kernels are one kernel times a share of each channel, no two shares alike and the same for all "
        "outputs and directions, up to roundings that the bound leaves room for; sums are not exact integers",
        NO_MORE_ROUNDINGS,
    ),
    Form(
        "equal outputs",
        "outputs of equal weights are computed once",
        "their kernels are equal in all directions, bit for bit",
        "none",
    ),
    Form(
        "opposite directions",
        "half of the directions; |response| stands for both of a pair",
        "the largest of several directions, each of which has another with all signs turned",
        "none",
    ),
    Form(
        "ring of three",
        "(a − b) · max(sum of three neighbours on the ring) + b · (sum of the ring)",
        "the largest of eight directions that have a on three neighbours of the ring, b < a on the other five, and 0 "
        "in the centre; the picture is of whole numbers (an infinity less itself is no number), or, on a GPU, of "
        "floats: outputs that are not finite are computed again by the plain sum",
    ),
    Form(
        "ring of differences",
        "a · max |eᵢ + eᵢ₊₁| of four, with eᵢ = dᵢ + dᵢ₊₁ and dᵢ the difference of two opposite samples of the ring",
        "the largest of the eight directions that have a, 2a, a, 0, −a, −2a, −a, 0 on the ring, on a GPU: there "
        "outputs of floats that are not finite are computed again by the plain sum",
    ),
    Form(
        "gradient",
        "differences of two samples along each axis first, each of which serves several outputs; then a · (first + "
        "last) + b · middle of three of them across it",
        "two directions: (a, b, a) down times (−1, 0, 1) across, and its transpose; the picture is of whole numbers, "
        "or, on a GPU, of floats: outputs that are not finite are computed again by the plain sum",
    ),
)

RING_OPERATIONS = 20
"""Of `ring of three`: four sums of two neighbours, for each of them the larger of its two neighbours and their sum,
three maxima, three sums of the ring, a product, a multiply-add."""
DIFFERENCES_OPERATIONS = 19
"""Of `ring of differences`: four differences, eight sums, four sizes, three maxima; and a product where a is not 1."""
RING_STEPS = (1, 2, 1, 0, -1, -2, -1, 0)
"""Robinson's north, clockwise from the top left, in units of a."""
RING_ROUNDINGS_NEAR, RING_ROUNDINGS_FAR, RING_ROUNDINGS_LAST = 3, 4, 1
"""Of a sum of three and its product; of a sum of the ring in pairs, and its product; of the sum that joins them."""
DIFFERENCES_ROUNDINGS = 4
"""Of a term of `ring of differences`: of three sums, and of the product."""

GRADIENT_ROUNDINGS = 3
"""Of a term, after its difference: of a sum of two, of its product, of the sum that joins them."""

MAX_ROUNDINGS_OF_A_SHARE = 8
"""By how much weights that were each rounded once or twice may differ from shares of one kernel."""


def roundings_allowed(weights: Weights) -> NDArray[np.intp]:
    """How often each term may be rounded by the bound of the plain sum (exactness.response_bound): (directions, out).

    `weights` is (directions, out, in, 3, 3).
    """
    allowed: NDArray[np.intp] = np.count_nonzero(weights, axis=(2, 3, 4)) + 1
    return allowed


@dataclass(frozen=True, eq=False)
class OneChannel:
    """One kernel for each direction and output, and what each input channel has of it."""

    shares: tuple[float, ...]
    """1 for the channel of the largest weights, whose kernels are taken as they are; all 1 for a plain sum."""
    kernels: Weights
    """(directions, out, 1, 3, 3)."""
    roundings: int
    """Of a term, before the kernel: of its share and of the sum of the channels."""

    @property
    def is_plain_sum(self) -> bool:
        """`channel sum`; else `weighted channel`."""
        return set(self.shares) == {1.0}


def one_channel(problem: Problem, weights: Weights, *, recomputes: bool = False) -> OneChannel | None:
    """`channel sum` or `weighted channel` of a problem with these weights: (directions, out, in, 3, 3).

    `recomputes` as for `fewer_directions`; such a method scales shares so that tiny samples lose no more than by the
    plain sum.
    """
    channels, whole_samples = weights.shape[2], problem.dtype.kind == "u"
    if problem.groups > 1 and channels > 1:
        return None
    if channels > 1 and (weights == weights[:, :, :1]).all():  # the condition of `channel sum`
        return OneChannel((1.0,) * channels, weights[:, :, :1], 0 if whole_samples else channels - 1)
    if is_whole(problem):
        return None
    return weighted_channel(weights.astype(sums_for(problem), copy=False), whole_samples or recomputes)


def weighted_channel(weights: Weights, whole_samples: bool) -> OneChannel | None:
    """Condition of `weighted channel`: the shares, or None; `weights` is (directions, out, in, 3, 3)."""
    channels = weights.shape[2]
    if channels == 1 or not weights.any():
        return None
    exact = weights.astype(np.float64)
    largest = int(np.abs(exact).sum(axis=(0, 1, 3, 4)).argmax())
    place = np.unravel_index(np.abs(exact[:, :, largest]).argmax(), exact[:, :, largest].shape)
    at_place = exact[place[0], place[1], :, place[2], place[3]]
    shares = (at_place / at_place[largest]).astype(weights.dtype)
    unit = FLOAT64_UNIT if weights.dtype == np.float64 else FLOAT32_UNIT
    between = np.diff(np.sort(shares.astype(np.float64)))
    if not shares.all() or (between <= MAX_ROUNDINGS_OF_A_SHARE * unit * np.abs(shares).max()).any():
        return None
    kernels = exact[:, :, largest : largest + 1]
    lost = np.abs(kernels * shares.astype(np.float64)[:, np.newaxis, np.newaxis] - exact)
    if ((kernels == 0) != (exact == 0)).any():
        return None
    represented = float((lost / np.where(exact == 0, 1.0, np.abs(exact))).max()) / unit
    if represented > MAX_ROUNDINGS_OF_A_SHARE:
        return None
    of_sum = int(np.ceil(represented)) + channels + (weights.dtype == np.float64)  # whose product is rounded here
    taps = np.count_nonzero(kernels, axis=(2, 3, 4))
    # Tiny samples lose an absolute part at each rounding of their sum, which the kernel may then make larger.
    tiny = 0.0 if whole_samples else (channels * np.abs(kernels).sum(axis=(2, 3, 4)) + taps) / 2
    if (np.maximum(of_sum + taps, tiny) > roundings_allowed(weights))[taps > 0].any():
        return None
    return OneChannel(tuple(map(float, shares)), kernels.astype(weights.dtype), of_sum)


def opposite_directions(weights: Weights) -> tuple[int, ...] | None:
    """Condition of `opposite directions`: those to compute, one of each pair, or None.

    `weights` is (directions, ...).
    """
    left = list(range(len(weights)))
    found = []
    while left:
        first = left.pop(0)
        other = next((number for number in left if (weights[number] == -weights[first]).all()), None)
        if other is None:
            return None
        left.remove(other)
        found.append(first)
    return tuple(found)


@dataclass(frozen=True, order=True)
class Ring:
    """`ring of three` of one output: a value is `near` · max(sum of three) + `far` · (sum of the ring).

    Or `ring of differences`: `near` · (the largest of them).
    """

    plane: int
    near: float
    """a − b; of differences a."""
    far: float
    """b; of differences 0."""
    of_differences: bool = False

    @property
    def operations(self) -> int:
        """Of a value."""
        return DIFFERENCES_OPERATIONS + (self.near != 1) if self.of_differences else RING_OPERATIONS


def ring_of_three(kernels: Weights, roundings_left: int | None = None) -> Ring | None:
    """Condition of `ring of three` for one output; `kernels` is (directions, planes, 3, 3).

    `roundings_left` are those that the bound allows each term; None where sums are exact integers.
    """
    planes = np.flatnonzero(kernels.any(axis=(0, 2, 3)))
    places = len(COMPASS_RING)
    if len(planes) != 1 or len(kernels) != places or kernels[:, :, 1, 1].any():
        return None
    plane = int(planes[0])
    rings = np.array([[kernel[place] for place in COMPASS_RING] for kernel in kernels[:, plane]], np.float64)
    least, largest = float(rings.min()), float(rings.max())
    three = {tuple((start + step) % places for step in range(KERNEL_SIZE)) for start in range(places)}
    found = {tuple(np.flatnonzero(ring == largest)) for ring in rings}
    if {frozenset(each) for each in three} != {frozenset(map(int, each)) for each in found}:
        return None
    if not ((rings == largest) | (rings == least)).all():
        return None
    near = float(kernels.dtype.type(largest - least))
    is_rounded = Fraction(near) != Fraction(largest) - Fraction(least)
    if roundings_left is None:
        return None if is_rounded else Ring(plane, near, least)
    of_near = (RING_ROUNDINGS_NEAR + is_rounded) * near + RING_ROUNDINGS_FAR * abs(least)
    of_near += RING_ROUNDINGS_LAST * abs(largest)
    of_far = RING_ROUNDINGS_FAR + RING_ROUNDINGS_LAST
    if of_near > roundings_left * abs(largest) or (least and of_far > roundings_left):
        return None
    return Ring(plane, near, least)


def ring_of_differences(kernels: Weights) -> Ring | None:
    """Condition of `ring of differences` for one output; `kernels` is (directions, planes, 3, 3)."""
    planes = np.flatnonzero(kernels.any(axis=(0, 2, 3)))
    if len(planes) != 1 or kernels[:, :, 1, 1].any():
        return None
    plane = int(planes[0])
    rings = {tuple(float(kernel[place]) for place in COMPASS_RING) for kernel in kernels[:, plane]}
    weight = max(map(max, rings)) / 2
    first = tuple(weight * step for step in RING_STEPS)
    turned = {first[-turn:] + first[:-turn] for turn in range(len(first))}
    return Ring(plane, weight, 0.0, of_differences=True) if rings == turned and len(kernels) == len(turned) else None


def gradient(
    kernels: Weights, roundings_left: int | None, *, inexact_samples: bool = False
) -> tuple[float, float] | None:
    """Condition of `gradient` for one output: a and b, or None; `kernels` is (directions, 3, 3).

    `roundings_left` are those that the bound allows each term; None where sums are exact integers. Differences of whole
    samples are exact; of floats, and of sums with shares, they are not.
    """
    beside, middle = float(kernels[0, 0, 2]), float(kernels[0, 1, 2])
    across = np.outer((beside, middle, beside), (-1, 0, 1))
    if len(kernels) != 2 or not (beside and middle) or (kernels != np.stack([across, across.T])).any():
        return None
    roundings = GRADIENT_ROUNDINGS + inexact_samples
    return (beside, middle) if roundings_left is None or roundings <= roundings_left else None


def fewer_directions(
    kernels: Sequence[Weights],
    combine: Combine,
    *,
    whole_samples: bool,
    roundings_left: int | None,
    recomputes: bool = False,
) -> tuple[list[Ring], list[Weights], bool]:
    """`ring of three` or `opposite directions` where their conditions hold for all outputs, else all directions.

    `kernels` are those of each output: (directions, planes, 3, 3). Gives a ring for each, or kernels of the directions
    to compute; and whether such a direction stands for its opposite too, so that the largest |response| is wanted.

    `roundings_left` are those that the bound allows each term; None where sums are exact integers. `recomputes`: the
    method has rings of floats and of differences, and computes again by the plain sum what is not finite.
    """
    if combine == "maximum":
        few = recomputes and (roundings_left is None or roundings_left >= DIFFERENCES_ROUNDINGS)
        differences = [ring_of_differences(each) for each in kernels] if few else [None]
        rings = [ring_of_three(each, roundings_left) for each in kernels] if whole_samples or recomputes else [None]
        found = [ring for ring in (rings if None in differences else differences) if ring is not None]
        if len(found) == len(kernels):
            return found, [], False
        halves = [opposite_directions(each) for each in kernels]
        left = [each[list(half)] for each, half in zip(kernels, halves, strict=True) if half is not None]
        if len(left) == len(kernels):
            return [], left, True
    return [], list(kernels), False
