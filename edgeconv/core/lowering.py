"""What is left to compute of a problem, read off its weights exactly: the lowering from which code is written.

    planes    which sums of input channels the taps read: where an output's kernels are equal for all of them, their sum
              is one plane and 27 taps become 9; where they are one kernel times shares, as in luma, a weighted sum is
    results   the different outputs, each a ring or taps for every direction; outputs of equal weights share one
    flat      one kernel for every channel by itself. On the CPU, at stride 1: a row of HWC samples is one long row, in
              which the horizontal neighbour is as many samples away as there are channels, and nothing is taken apart
    bank      eight or more different outputs of a group of channels: weights come from a table
    sums      whole weights on integer pictures are summed in int16 or int32 where every sum fits (exact, in any order);
              all else, and banks, in float32, or in float64 where float32 does not hold the sums (exactness.py)

Nothing here depends on the size of a picture, so pictures of all sizes share code. Which cheaper ways to the same
responses are taken is said in forms.py: whole-number results are the same to the bit, others within the bound of the
plain sum.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple, cast

import numpy as np

from edgeconv.core.exactness import ARITHMETIC_OF_SUMS, WHOLE, Arithmetic, is_whole, needs_exact_root, sums_for
from edgeconv.core.filters import COMPASS_RING, Combine, Weights
from edgeconv.core.forms import FormName, Ring, fewer_directions, one_channel, roundings_allowed
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem, StoredMode

SampleType = Literal["uint8", "uint16", "float16", "float32", "float64"]
SumType = Literal["int16", "int32", "float32", "float64"]

BANK_OUTPUTS = 8
"""Different outputs of a group from which they lie in registers side by side: measured, docs/cpu-engine.md."""
MAX_INTERLEAVED = 32
"""Most outputs that are put side by side by code of their own: it grows with them."""

ROOT_OPERATIONS, EXACT_ROOT_OPERATIONS = 9, 20
"""A root of two responses, as multiply-adds: 4.5 cycles of a register where two of those are begun in each
(docs/cpu-engine.md); with the correction that makes a 16-bit sample exact."""


class Tap(NamedTuple):
    """A sample under the filter: plane, kernel row, kernel column."""

    plane: int
    u: int
    v: int


Response = tuple[tuple[Tap, float], ...]
"""One direction of one result: its taps and their weights, zero weights left out."""
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
    forms: tuple[FormName, ...]
    """The lines of the table in forms.py that are taken."""
    kernels: Weights = field(compare=False, repr=False)
    """Of a bank, in the type of the sums: (directions, out, planes of a group, 3, 3)."""
    roundings_left: int | None = field(compare=False, repr=False)
    """Of a term, after its channels are joined, by the bound of the plain sum; None where sums are exact integers."""

    @property
    def arithmetic(self) -> Arithmetic:
        """What sums lose."""
        return WHOLE if self.sums == "int16" or self.sums == "int32" else ARITHMETIC_OF_SUMS[self.sums]

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
        taps = sum(len(response) for result in self.responses for response in result)
        return taps + sum(ring.operations for ring in self.rings)

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
    if not is_whole(problem):
        weights = weights.astype(sums_for(problem), copy=False)
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
    wide = sums_for(problem) == "float64" or (bank is not None and needs_exact_root(problem))
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
    taken: dict[FormName, bool] = {
        "channel sum": one is not None and one.is_plain_sum,
        "weighted channel": one is not None and not one.is_plain_sum,
        "equal outputs": bank is None and len(set(result_of_output)) < len(result_of_output),
        "opposite directions": by_size,
        "ring of three": any(not ring.of_differences for ring in rings),
        "ring of differences": any(ring.of_differences for ring in rings),
    }
    return Lowering(
        channels=channels,
        source=cast(SampleType, problem.dtype.name),
        stored=cast(SampleType, problem.output_dtype.name),
        sums=sums,
        planes=planes,
        shares=() if one is None or one.is_plain_sum else one.shares,
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
        roundings_left=left,
    )


def operation_bytes_per_pixel(problem: Problem, *, recomputes: bool = False) -> int:
    """What no form saves of an output pixel: operations, each times the bytes of the type that it is done in.

    Divided by the bytes of a register it is a number of instructions. Additions, multiply-adds and maxima count as one;
    rounding, storing and fetching are left out. `recomputes` as for `lower`.
    """
    lowering = lower(problem, recomputes=recomputes, banks=False)
    outputs = lowering.channels if lowering.flat else 1
    of_maxima = lowering.combine == "maximum"
    operations = lowering.multiply_adds + (problem.in_channels - (not lowering.shares)) * lowering.collapsed
    if of_maxima:
        operations += outputs * sum(len(result) * (1 + lowering.by_size) - 1 for result in lowering.responses)
    float_bytes = 8 if problem.dtype == np.float64 else 4
    root = 0
    if lowering.combine == "magnitude":
        each = EXACT_ROOT_OPERATIONS if needs_exact_root(problem) else ROOT_OPERATIONS
        root = outputs * len(lowering.results) * each
    return operations * (2 if lowering.sums == "int16" else float_bytes) + root * float_bytes


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
