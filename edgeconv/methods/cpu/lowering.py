"""What has to be computed, read off the weights exactly: the lowering from which machine code is written.

    planes    which sums of input channels the taps read. Where an output's kernels are equal for all its input
              channels, their sum is one plane (`collapsed`) and 27 taps become 9; where they are one kernel times
              shares, as in luma, it is a weighted sum. A grey picture has one.
    results   the different outputs. Output channels with equal weights share one.
    forms     which of the cheaper ways to the same responses the weights allow (core/forms.py, its table).
    flat      one kernel for every channel by itself: a row of HWC samples is then one long row in which the
              horizontal neighbour is 3 samples away (1 in a grey picture), and nothing has to be taken apart.
    bank      eight or more different outputs of a group of channels: a register then holds outputs of one pixel in
              place of pixels of one output, weights come from a table, and code is that of every such bank.
    types     whole-number weights on integer pictures are summed in int16 or int32 where every sum fits (exact,
              in any order); all else, and banks, in float32, or in float64 where the picture is float64 or float32
              does not hold the sums (exactness.py).

Nothing here depends on the size of the picture, so pictures of all sizes share code. Whole-number results are the same
to the bit whatever form is taken; others are within the bound of the plain sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edgeconv.core import exactness, forms
from edgeconv.core.filters import COMPASS_RING, Combine, Weights
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem, StoredMode
from edgeconv.hardware.cpu.emit import Scalar

_SCALAR_OF_DTYPE: dict[str, Scalar] = {
    "uint8": "u8",
    "uint16": "u16",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
}

BANK_OUTPUTS = 8
"""Different outputs of a group from which they lie in registers side by side: measured, docs/cpu-engine.md."""
MOST_INTERLEAVED = 32
"""Most outputs that are put side by side by code of their own: it grows with them."""


@dataclass(frozen=True, order=True)
class Tap:
    """A staged sample under the filter: plane, kernel row, kernel column."""

    plane: int
    u: int
    v: int


Response = tuple[tuple[Tap, float], ...]
"""One direction of one result: its taps and their weights, zero weights left out."""


@dataclass(frozen=True, order=True)
class SignedTap:
    """A tap that is added to the first of its group, or subtracted from it."""

    tap: Tap
    sign: int


TapGroup = tuple[Tap, tuple[SignedTap, ...]]
"""A tap, and those that are added to it before its sum is multiplied (`equal taps`)."""


@dataclass(frozen=True)
class BankStructure:
    """What the code of a bank depends on; the weights are data (banks.py)."""

    outputs: int
    """Of each group."""
    groups: int
    directions: int


@dataclass(frozen=True)
class Lowering:
    """Everything that the machine code of a problem depends on; equal ones share code."""

    channels: int
    """Of the picture."""
    source: Scalar
    staged: Scalar
    """Type of the samples in the scratch rows that the taps read."""
    sum: Scalar
    """Type in which products are summed: i16, i32, f32 or f64."""
    stored: Scalar
    planes: tuple[tuple[int, ...], ...]
    """Input channels that are summed into each plane."""
    shares: tuple[float, ...]
    """Of each channel in the one plane (`weighted channel`); empty where sums have no weights."""
    flat: bool
    results: tuple[tuple[Response, ...], ...]
    """Result, direction, taps; empty for a bank and for rings."""
    rings: tuple[forms.Ring, ...]
    """Of each result in place of its directions (`ring of three`, `ring of differences`), or none."""
    groups: tuple[TapGroup, ...]
    """Taps that are added first; the responses then have the first of each."""
    by_size: bool
    """Whether a direction stands for its opposite too, so that the largest |response| is wanted."""
    result_of_output: tuple[int, ...]
    bank: BankStructure | None
    combine: Combine
    output_mode: StoredMode
    stride: int
    streaming: bool
    """Store past the caches and ask for loads early: for pictures too large to be found there again."""

    direct: bool = False
    """Taps read the picture itself, and only its borders are staged: flat rows, long enough, of the staged type."""

    @property
    def phases(self) -> int:
        """Horizontal residues modulo the stride that a 3×3 filter reads; each is a separate scratch row."""
        return min(self.stride, KERNEL_SIZE)

    @property
    def collapsed(self) -> bool:
        """True where input channels are summed before they are filtered."""
        return any(len(channels) > 1 for channels in self.planes)

    @property
    def forms(self) -> tuple[forms.FormName, ...]:
        """The lines of the table in core/forms.py that this follows."""
        taken: dict[forms.FormName, bool] = {
            "channel sum": self.collapsed and not self.shares,
            "weighted channel": bool(self.shares),
            "equal outputs": self.different_outputs < len(self.result_of_output),
            "opposite directions": self.by_size,
            "ring of three": any(not ring.of_differences for ring in self.rings),
            "ring of differences": any(ring.of_differences for ring in self.rings),
            "equal taps": bool(self.groups),
        }
        return tuple(name for name, is_taken in taken.items() if is_taken)

    @property
    def never_negative(self) -> bool:
        """Whether no joined value is below zero, so that modes need not look at its sign."""
        above = all(ring.near * KERNEL_SIZE + ring.far * len(COMPASS_RING) >= 0 for ring in self.rings)
        return (
            self.combine == "magnitude" or self.by_size or (bool(self.rings) and above and self.sum in ("i16", "i32"))
        )

    @property
    def taps_per_response(self) -> int:
        """Of a bank, whose zero weights are multiplied like all others."""
        groups = 1 if self.bank is None else self.bank.groups
        return len(self.planes) // groups * KERNEL_SIZE * KERNEL_SIZE

    @property
    def different_outputs(self) -> int:
        """Outputs that are computed."""
        if self.bank is not None:
            return self.bank.outputs * self.bank.groups
        return len(self.rings or self.results)

    @property
    def operations_of_a_position(self) -> int:
        """Multiply-adds, and what the forms add up before, of all results and directions."""
        taps = sum(len(response) for result in self.results for response in result)
        added = sum(len(others) for _, others in self.groups)
        return taps + added + sum(ring.operations for ring in self.rings)

    @property
    def multiply_adds(self) -> int:
        """Per pixel, that are really computed; the additions and maxima of a form count as well."""
        if self.bank is not None:
            return self.different_outputs * self.bank.directions * self.taps_per_response
        return self.operations_of_a_position * (self.channels if self.flat else 1)

    @property
    def stored_channels(self) -> int:
        """Channels of the output picture."""
        if self.bank is not None:
            return self.different_outputs
        return self.channels if self.flat else len(self.result_of_output)


def make_lowering(problem: Problem, *, share: bool = True, streaming: bool = False) -> Lowering:
    """Read the structure of `problem`; with `share` off, equal filters are computed as often as they stand there."""
    weights, channels = problem.dense_weights(), problem.in_channels
    separate = problem.groups == problem.output_channels == channels
    flat = share and separate and problem.stride == 1 and _one_kernel(problem)
    mixed = share and not flat and problem.groups == 1 and channels > 1
    collapse = mixed and forms.has_equal_channels(weights)
    weighted = None if collapse or not mixed else forms.weighted_channel_of(problem)

    planes: tuple[tuple[int, ...], ...]
    if flat:
        planes, kernels = ((0,),), weights[:, :1, :1]
    elif collapse:
        planes, kernels = (tuple(range(channels)),), weights[:, :, :1]
    elif weighted is not None:
        planes, kernels = (tuple(range(channels)),), weighted.kernels
    else:
        planes, kernels = tuple((channel,) for channel in range(channels)), weights

    bank = _bank_structure(problem, kernels, share)
    different: list[Weights] = []
    result_of_output: list[int] = []
    for output in range(kernels.shape[1] if bank is None else 0):
        same = [number for number, other in enumerate(different) if (other == kernels[:, output]).all()]
        if not share or not same:
            different.append(kernels[:, output])
        result_of_output.append(same[0] if share and same else len(different) - 1)

    total = _sum_type(problem, kernels, len(planes[0])) if bank is None else _float_sum_type(problem)
    left = forms.Directions(tuple(different), (), by_size=False)
    if share and bank is None:
        spent = 0 if weighted is None else weighted.roundings
        left = forms.fewer_directions(
            different,
            problem.combine,
            whole_samples=problem.dtype.kind == "u" and total != "f64",
            roundings_left=int(forms.roundings_allowed(weights).min()) - spent if total == "f32" else None,
        )
    results = [tuple(_response(direction) for direction in result) for result in left.kernels]
    groups: tuple[TapGroup, ...] = ()
    if share and bank is None and problem.dtype.kind == "u" and total != "f64":
        groups, results = _grouped(results, len(planes))

    source = _SCALAR_OF_DTYPE[problem.dtype.name]
    return Lowering(
        channels=channels,
        source=source,
        staged=total if total == "f32" or len(planes[0]) > 1 or bank is not None else source,
        sum=total,
        stored=_SCALAR_OF_DTYPE[problem.output_dtype.name],
        planes=planes,
        shares=() if weighted is None else weighted.shares,
        flat=flat,
        results=tuple(results),
        rings=left.rings,
        groups=groups,
        by_size=left.by_size,
        result_of_output=tuple(result_of_output),
        bank=bank,
        combine=problem.combine,
        output_mode=problem.output_mode,
        stride=problem.stride,
        streaming=streaming,
    )


def _grouped(
    results: list[tuple[Response, ...]], planes: int
) -> tuple[tuple[TapGroup, ...], list[tuple[Response, ...]]]:
    """Taps that are worth adding first, and the responses with one of each group left."""
    sides = range(KERNEL_SIZE)
    taps = [Tap(plane, u, v) for plane in range(planes) for u in sides for v in sides]
    weights = [dict(response) for result in results for response in result]
    columns = [tuple(of_response.get(tap, 0.0) for of_response in weights) for tap in taps]
    groups: list[TapGroup] = []
    gone: set[Tap] = set()
    for (first, _), *others in forms.equal_taps(columns):
        members = tuple(SignedTap(taps[number], sign) for number, sign in others)
        groups.append((taps[first], members))
        gone |= {member.tap for member in members}
    left = [
        tuple(tuple((tap, weight) for tap, weight in response if tap not in gone) for response in result)
        for result in results
    ]
    return tuple(groups), left


def _bank_structure(problem: Problem, kernels: Weights, share: bool) -> BankStructure | None:
    """`kernels` is (directions, out, planes, 3, 3)."""
    of_a_group = problem.output_channels // problem.groups
    if of_a_group < BANK_OUTPUTS:
        return None
    if share and problem.output_channels <= MOST_INTERLEAVED:
        different = {kernels[:, output].tobytes() for output in range(kernels.shape[1])}
        if len(different) < BANK_OUTPUTS:
            return None
    return BankStructure(of_a_group, problem.groups, problem.directions)


def _float_sum_type(problem: Problem) -> Scalar:
    wide = exactness.sums_for(problem) == "float64" or exactness.needs_exact_root(problem)
    return "f64" if wide else "f32"


def _one_kernel(problem: Problem) -> bool:
    return bool((problem.weights == problem.weights[:, :1, :1]).all())


def _response(kernels: Weights) -> Response:
    """`kernels` is (planes, 3, 3); a tap stands for every weight that is not zero."""
    return tuple((Tap(*(int(i) for i in place)), float(kernels[tuple(place)])) for place in np.argwhere(kernels != 0))


def _sum_type(problem: Problem, kernels: Weights, channels_per_plane: int) -> Scalar:
    """The narrowest type that holds every final sum exactly; sums wrap on the way, which does no harm."""
    if not exactness.is_whole(problem):
        return "f64" if exactness.sums_for(problem) == "float64" else "f32"
    white = int(np.iinfo(problem.dtype).max) * channels_per_plane
    exact = kernels.astype(np.float64)
    largest = np.maximum(exact, 0).sum(axis=(2, 3, 4)).max() * white
    least = np.minimum(exact, 0).sum(axis=(2, 3, 4)).min() * white
    for name, dtype in (("i16", np.int16), ("i32", np.int32)):
        limits = np.iinfo(dtype)
        if limits.min < least and largest <= limits.max and white <= limits.max:
            return "i16" if name == "i16" else "i32"
    return "f64"


ARITHMETIC_OF_SUM: dict[Scalar, exactness.Arithmetic] = {
    "i16": exactness.WHOLE,
    "i32": exactness.WHOLE,
    "f32": exactness.FLOAT32,
    "f64": exactness.FLOAT64,
}
