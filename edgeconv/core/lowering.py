"""What is left to compute of a problem, read off its weights exactly: the lowering from which code is written.

    planes    which sums of input channels the taps read: where an output's kernels are equal for all of them, their sum
              is one plane and 27 taps become 9; where they are one kernel times shares, as in luma, a weighted sum is
    results   the different outputs, each a ring or taps for every direction; outputs of equal weights share one
    flat      one kernel for every channel by itself. On the CPU, at stride 1: a row of HWC samples is one long row, in
              which the horizontal neighbour is as many samples away as there are channels, and nothing is taken apart
    bank      eight or more different outputs of a group of channels: weights come from a table
    sums      whole weights on integer pictures are summed in int16 or int32 where every sum fits (exact, in any order);
              all else, and banks, in float32, or in float64 where float32 does not hold the sums (exactness.py)

Nothing here depends on the size of a picture, so pictures of all sizes share code.

A form is a way to the same responses by fewer operations. It is taken where its condition holds for the numbers, never
by the name of a filter. What it changes is nothing at all, or rounding within the bound of the plain sum: a sum of n
products is allowed n + 1 roundings of every term, and a form with no more of them needs no bound of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.exactness import (
    FLOAT32,
    FLOAT32_UNIT,
    FLOAT64,
    FLOAT64_UNIT,
    MOST_LEVELS_OFF,
    WHOLE,
    Arithmetic,
    bound,
    is_whole,
    needs_exact_root,
    own_arithmetic,
)
from edgeconv.core.filters import COMPASS_RING, Combine, Weights
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem, StoredMode

SampleType = Literal["uint8", "uint16", "float16", "float32", "float64"]
SumType = Literal["int16", "int32", "float32", "float64"]

NO_MORE_ROUNDINGS = "within the bound of the plain sum: no term is rounded more often"


@dataclass(frozen=True)
class Form:
    """A line of the table, in words."""

    name: str
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
        "in the centre; the picture is of whole numbers (an infinity less itself is not a number), or, on a GPU, of "
        "floats: outputs that are not finite are computed again by the plain sum",
    ),
    Form(
        "ring of differences",
        "a · max |eᵢ + eᵢ₊₁| of four, with eᵢ = dᵢ + dᵢ₊₁ and dᵢ the difference of two opposite samples of the ring",
        "the largest of the eight directions that have a, 2a, a, 0, −a, −2a, −a, 0 on the ring, on a GPU: there "
        "outputs of floats that are not finite are computed again by the plain sum",
    ),
    Form(
        "equal taps",
        "samples whose weights are equal up to their sign are added first, and multiplied once",
        "on the CPU: the same samples in all responses, with the same signs; the picture is of whole numbers",
    ),
    Form(
        "gradient",
        "differences of two samples along each axis first, each of which serves several outputs; then a · (first + "
        "last) + b · middle of three of them across it",
        "on a GPU: two directions, (a, b, a) down times (−1, 0, 1) across, and its transpose; outputs of floats that "
        "are not finite are computed again by the plain sum",
    ),
)

BANK_OUTPUTS = 8
"""Different outputs of a group from which they lie in registers side by side: measured, docs/cpu-engine.md."""
MAX_INTERLEAVED = 32
"""Most outputs that are put side by side by code of their own: it grows with them."""

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


class Tap(NamedTuple):
    """A sample under the filter: plane, kernel row, kernel column."""

    plane: int
    u: int
    v: int


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


Response = tuple[tuple[Tap, float], ...]
"""One direction of one result: its taps and their weights, zero weights left out."""
Term = tuple[tuple[float, ...], list[tuple[Tap, int]]]
"""A weight in each of some responses, which may be 0, and its taps with their signs: several by `equal taps`."""
Result = Ring | tuple[Response, ...]
"""A different output: a ring, or its directions."""


class BankStructure(NamedTuple):
    """What the code of a bank depends on; its weights are data (`Lowering.kernels`)."""

    outputs: int
    """Of each group."""
    groups: int
    directions: int


@dataclass(frozen=True)
class Lowering:
    """All that the code of a problem depends on; equal ones share code."""

    channels: int
    """Of the picture."""
    source: SampleType
    stored: SampleType
    sums: SumType
    """Type in which products are summed."""
    planes: tuple[tuple[int, ...], ...]
    """Input channels that are summed into each plane."""
    shares: tuple[float, ...]
    """Of each channel in the one plane (`weighted channel`); empty where sums have no weights."""
    flat: bool
    results: tuple[Result, ...]
    """All rings or none; empty for a bank."""
    by_size: bool
    """Whether a direction stands for its opposite too, so that the largest |response| is wanted."""
    result_of_output: tuple[int, ...]
    bank: BankStructure | None
    combine: Combine
    output_mode: StoredMode
    stride: int
    forms: tuple[str, ...]
    """Names of `FORMS` that are taken."""
    kernels: Weights = field(compare=False, repr=False)
    """Of a bank, in the type of the sums: (directions, out, planes of a group, 3, 3)."""
    arithmetic: Arithmetic = field(compare=False, repr=False)
    """What sums lose."""
    roundings_left: int | None = field(compare=False, repr=False)
    """Of a term, after its channels are joined, by the bound of the plain sum; None where sums are exact integers."""

    @property
    def collapsed(self) -> bool:
        """Whether input channels are summed before they are filtered."""
        return len(self.planes[0]) > 1

    @cached_property
    def staged(self) -> SampleType | SumType:
        """Type of the samples that the taps read: of the picture, where nothing is gained by another."""
        converts = self.sums == "float32" or self.collapsed or self.bank is not None
        return self.sums if converts else self.source

    @property
    def rings(self) -> list[Ring]:
        """The results that are rings: all or none."""
        return [result for result in self.results if isinstance(result, Ring)]

    @property
    def responses(self) -> list[tuple[Response, ...]]:
        """The results that are taps: all or none."""
        return [result for result in self.results if not isinstance(result, Ring)]

    def kernels_of(self, responses: tuple[Response, ...]) -> Weights:
        """A result of taps as kernels (directions, planes, 3, 3)."""
        kernels = np.zeros((len(responses), len(self.planes), KERNEL_SIZE, KERNEL_SIZE))
        for kernel, response in zip(kernels, responses, strict=True):
            for tap, weight in response:
                kernel[tap] = weight
        return kernels

    @property
    def never_negative(self) -> bool:
        """Whether no joined value is below zero, so that modes need not look at its sign."""
        rings = self.rings
        above = all(ring.near * KERNEL_SIZE + ring.far * len(COMPASS_RING) >= 0 for ring in rings)
        return self.combine == "magnitude" or self.by_size or (bool(rings) and above and self.arithmetic is WHOLE)

    @property
    def taps_per_response(self) -> int:
        """Of a bank, whose zero weights are multiplied like all others."""
        groups = 1 if self.bank is None else self.bank.groups
        return len(self.planes) // groups * KERNEL_SIZE**2

    @property
    def different_outputs(self) -> int:
        """Outputs that are computed."""
        return len(self.results) if self.bank is None else self.bank.outputs * self.bank.groups

    @property
    def stored_channels(self) -> int:
        """Channels of the output picture."""
        if self.bank is not None:
            return self.different_outputs
        return self.channels if self.flat else len(self.result_of_output)

    @property
    def operations_of_a_position(self) -> int:
        """Multiply-adds, and what the forms add up before, of all results and directions."""
        terms = terms_of(self.responses, len(self.planes), together="equal taps" in self.forms)
        sums = sum(len(taps) - 1 + sum(map(bool, weights)) for weights, taps in terms)
        return sums + sum(ring.operations for ring in self.rings)

    @property
    def multiply_adds(self) -> int:
        """Per pixel, that are really computed; the additions and maxima of a form count as well."""
        if self.bank is not None:
            return self.different_outputs * self.bank.directions * self.taps_per_response
        return self.operations_of_a_position * (self.channels if self.flat else 1)


def lower(problem: Problem, *, share: bool = True, recomputes: bool = False, banks: bool = True) -> Lowering:
    """Read the structure of `problem`.

    With `share` off, equal filters are computed as often as they stand there, and no form is taken. `recomputes`: the
    method computes outputs that are not finite again by the plain sum, and so takes the forms of floats too; it takes
    one kernel for every channel by itself at each stride. With `banks` off, many outputs are results like few.
    """
    weights, channels = problem.dense_weights(), problem.in_channels
    is_separate = problem.groups == problem.output_channels == channels
    of_one_kernel = is_separate and bool((problem.weights == problem.weights[:, :1, :1]).all())
    flat = share and of_one_kernel and (problem.stride == 1 or recomputes)
    if flat:
        weights = weights[:, :1, :1]
    arithmetic = own_arithmetic(problem)
    if share and arithmetic is FLOAT64 and problem.output_dtype.kind == "u":
        arithmetic = _blended_first(problem, weights) or arithmetic
    if not is_whole(problem) and arithmetic is FLOAT64:
        weights = weights.astype(np.float64)
    one = one_channel(problem, weights, recomputes=recomputes) if share else None
    kernels = weights if one is None else one.kernels
    planes = tuple((channel,) for channel in range(kernels.shape[2])) if one is None else (tuple(range(channels)),)
    left = None
    if not is_whole(problem):
        left = int(roundings_allowed(weights).min()) - (0 if one is None else one.roundings)
    result_of_output = _alike(kernels) if share else tuple(range(kernels.shape[1]))
    different = [kernels[:, result_of_output.index(result)] for result in range(max(result_of_output) + 1)]

    bank = _bank_structure(problem, len(different), share) if banks else None
    of_bank = kernels if problem.groups == 1 else problem.weights
    wide = arithmetic is FLOAT64 or (bank is not None and needs_exact_root(problem))
    sums: SumType = "float64" if wide else "float32"
    if bank is None and is_whole(problem):
        sums = _exact_sums(problem, kernels, len(planes[0]))
    rings: list[Ring] = []
    by_size = False
    if share and bank is None:
        rings, different, by_size = fewer_directions(
            different,
            problem.combine,
            whole_samples=problem.dtype.kind == "u",
            roundings_left=left,
            recomputes=recomputes,
        )
    responses = [tuple(_response(direction) for direction in result) for result in different] if bank is None else []
    adds_first = share and not recomputes and problem.dtype.kind == "u"
    taken = {
        "channel sum": one is not None and not one.shares,
        "weighted channel": one is not None and bool(one.shares),
        "equal outputs": bank is None and len(set(result_of_output)) < len(result_of_output),
        "opposite directions": by_size,
        "ring of three": any(not ring.of_differences for ring in rings),
        "ring of differences": any(ring.of_differences for ring in rings),
        "equal taps": adds_first and any(len(taps) > 1 for _, taps in terms_of(responses, len(planes), together=True)),
    }
    return Lowering(
        channels=channels,
        source=cast(SampleType, problem.dtype.name),
        stored=cast(SampleType, problem.output_dtype.name),
        sums=sums,
        planes=planes,
        shares=() if one is None else one.shares,
        flat=flat,
        results=(*rings, *responses),
        by_size=by_size,
        result_of_output=result_of_output if bank is None else (),
        bank=bank,
        combine=problem.combine,
        output_mode=problem.output_mode,
        stride=problem.stride,
        forms=tuple(name for name, is_taken in taken.items() if is_taken),
        kernels=of_bank[:, :, : kernels.shape[2]].astype(sums) if bank is not None else np.empty(0),
        arithmetic=WHOLE if sums.startswith("int") else FLOAT64 if wide else arithmetic,
        roundings_left=left,
    )


def _alike(kernels: Weights) -> tuple[int, ...]:
    """For each output the number of its kernels among the different ones; `kernels` is (directions, out, ...)."""
    different: dict[bytes, int] = {}
    each = ((kernels[:, output] + 0.0).tobytes() for output in range(kernels.shape[1]))
    return tuple(different.setdefault(one, len(different)) for one in each)


def every_tap(planes: int) -> list[Tap]:
    """All taps of all planes, plane by plane and row by row."""
    sides = range(KERNEL_SIZE)
    return [Tap(plane, u, v) for plane in range(planes) for u in sides for v in sides]


def _response(kernels: Weights) -> Response:
    """`kernels` is (planes, 3, 3); a tap stands for every weight that is not zero."""
    places = (Tap(*map(int, place)) for place in np.argwhere(kernels != 0))
    return tuple((tap, float(kernels[tap])) for tap in places)


def terms_of(results: Sequence[tuple[Response, ...]], planes: int, *, together: bool) -> list[Term]:
    """What results add up in all their directions; `together` where `equal taps` may be taken."""
    responses = [dict(response) for result in results for response in result]
    found: list[Term] = []
    for tap in every_tap(planes):
        weights = tuple(response.get(tap, 0.0) for response in responses)
        saves = together and sum(map(abs, weights)) != 1  # a single weight of 1 or −1 multiplies nothing
        signs = {weights: 1, tuple(-weight for weight in weights): -1} if saves else {}
        alike = next((term for term in found if term[0] in signs), None)
        if alike is not None:
            alike[1].append((tap, signs[alike[0]]))
        elif any(weights):
            found.append((weights, [(tap, 1)]))
    return found


def _bank_structure(problem: Problem, different: int, share: bool) -> BankStructure | None:
    of_a_group = problem.output_channels // problem.groups
    few = share and problem.output_channels <= MAX_INTERLEAVED and different < BANK_OUTPUTS
    return None if of_a_group < BANK_OUTPUTS or few else BankStructure(of_a_group, problem.groups, problem.directions)


def _exact_sums(problem: Problem, kernels: Weights, channels_per_plane: int) -> SumType:
    """The narrowest type that holds every final sum exactly; sums wrap on the way, which does no harm."""
    white = int(np.iinfo(problem.dtype).max) * channels_per_plane
    exact = kernels.astype(np.float64)
    largest = np.maximum(exact, 0).sum(axis=(2, 3, 4)).max() * white
    least = np.minimum(exact, 0).sum(axis=(2, 3, 4)).min() * white
    types: tuple[SumType, ...] = ("int16", "int32")
    for name in types:
        limits = np.iinfo(name)
        if limits.min < least and largest <= limits.max and white <= limits.max:
            return name
    return "float64"


# --- the conditions of the forms --------------------------------------------------------------------------------------


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
    """1 for the channel of the largest weights, whose kernels are taken as they are; empty for a plain sum."""
    kernels: Weights
    """(directions, out, 1, 3, 3)."""
    roundings: int
    """Of a term, before the kernel: of its share and of the sum of the channels."""


def one_channel(problem: Problem, weights: Weights, *, recomputes: bool = False) -> OneChannel | None:
    """`channel sum` or `weighted channel` of weights (directions, out, in, 3, 3); `recomputes` as for `lower`."""
    channels, whole_samples = weights.shape[2], problem.dtype.kind == "u"
    if problem.groups > 1 and channels > 1:
        return None
    if channels > 1 and (weights == weights[:, :, :1]).all():  # the condition of `channel sum`
        return OneChannel((), weights[:, :, :1], 0 if whole_samples else channels - 1)
    if is_whole(problem):
        return None
    # A method that recomputes scales shares, so that tiny samples lose no more than by the plain sum.
    return weighted_channel(weights, whole_samples or recomputes)


def _blended_first(problem: Problem, weights: Weights) -> Arithmetic | None:
    """float32 for integer outputs of a `weighted channel`, where that rounds so seldom that the bound of them holds."""
    one = None if is_whole(problem) or problem.combine == "maximum" else weighted_channel(weights, whole_samples=True)
    found = replace(FLOAT32, roundings=KERNEL_SIZE**2 + (0 if one is None else one.roundings))
    return None if one is None or float(bound(problem, found).max()) > MOST_LEVELS_OFF else found


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


def _on_the_ring(kernels: Weights) -> tuple[int, set[tuple[float, ...]]]:
    """The one plane of eight different directions without a weight in the centre, and their weights on the ring.

    Anything else has no weights. `kernels` is (directions, planes, 3, 3).
    """
    planes = np.flatnonzero(kernels.any(axis=(0, 2, 3)))
    if len(planes) != 1 or len(kernels) != len(COMPASS_RING) or kernels[:, :, 1, 1].any():
        return 0, set()
    plane = int(planes[0])
    return plane, {tuple(float(kernel[place]) for place in COMPASS_RING) for kernel in kernels[:, plane]}


def _every_turn(ring: tuple[float, ...]) -> set[tuple[float, ...]]:
    return {ring[-turn:] + ring[:-turn] for turn in range(len(ring))}


def ring_of_three(kernels: Weights, roundings_left: int | None = None) -> Ring | None:
    """Condition of `ring of three` for one output; `kernels` is (directions, planes, 3, 3).

    `roundings_left` are those that the bound allows each term; None where sums are exact integers.
    """
    plane, rings = _on_the_ring(kernels)
    least, largest = min(map(min, rings), default=0.0), max(map(max, rings), default=0.0)
    if least == largest or rings != _every_turn(
        (largest,) * KERNEL_SIZE + (least,) * (len(COMPASS_RING) - KERNEL_SIZE)
    ):
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
    plane, rings = _on_the_ring(kernels)
    weight = max(map(max, rings), default=0.0) / 2
    is_one = weight and rings == _every_turn(tuple(weight * step for step in RING_STEPS))
    return Ring(plane, weight, 0.0, of_differences=True) if is_one else None


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
    if combine != "maximum":
        return [], list(kernels), False
    rings: list[Ring | None] = [None]
    if recomputes and (roundings_left is None or roundings_left >= DIFFERENCES_ROUNDINGS):
        rings = [ring_of_differences(each) for each in kernels]
    if None in rings and (whole_samples or recomputes):
        rings = [ring_of_three(each, roundings_left) for each in kernels]
    found = [ring for ring in rings if ring is not None]
    if len(found) == len(kernels):
        return found, [], False
    halves = [opposite_directions(each) for each in kernels]
    left = [each[list(half)] for each, half in zip(kernels, halves, strict=True) if half is not None]
    return ([], left, True) if len(left) == len(kernels) else ([], list(kernels), False)
