"""What has to be computed, read off the weights exactly: the lowering from which machine code is written.

    planes    which sums of input channels the taps read. Where an output's kernels are equal for all its input
              channels, their sum is one plane (`collapsed`) and 27 taps become 9.
    results   the different outputs. Output channels with equal weights share one.
    flat      one kernel for every channel by itself: a row of HWC samples is then one long row in which the
              horizontal neighbour is 3 samples away, and nothing has to be taken apart.
    types     whole-number weights on integer pictures are summed in int16 or int32 where every sum fits (exact,
              in any order); all else in float32, or in float64 where float32 does not hold the sums (exactness.py).

Nothing here depends on the size of the picture, so pictures of all sizes share code. Equality is bit for bit:
a filter is never approximated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeconv.core import exactness
from edgeconv.core.filters import RGB_CHANNELS, Combine
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem, StoredMode
from edgeconv.hardware.cpu.scalars import Scalar

_SCALAR_OF_DTYPE: dict[str, Scalar] = {"uint8": "u8", "uint16": "u16", "float16": "f16", "float32": "f32"}

ALL_CHANNELS = tuple(range(RGB_CHANNELS))


@dataclass(frozen=True, order=True)
class Tap:
    """A staged sample under the filter: plane, kernel row, kernel column."""

    plane: int
    u: int
    v: int


Response = tuple[tuple[Tap, float], ...]
"""One direction of one result: its taps and their weights, zero weights left out."""


@dataclass(frozen=True)
class Lowering:
    """Everything that the machine code of a problem depends on; equal recipes share code."""

    source: Scalar
    staged: Scalar
    """Type of the samples in the scratch rows that the taps read."""
    sum: Scalar
    """Type in which products are summed: i16, i32, f32 or f64."""
    stored: Scalar
    planes: tuple[tuple[int, ...], ...]
    """Input channels that are summed into each plane."""
    flat: bool
    results: tuple[tuple[Response, ...], ...]
    """Result, direction, taps."""
    result_of_output: tuple[int, ...]
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
    def multiply_adds(self) -> int:
        """Taps per pixel that are really computed, all results and directions."""
        per_pixel = sum(len(response) for result in self.results for response in result)
        return per_pixel * RGB_CHANNELS if self.flat else per_pixel

    @property
    def stored_channels(self) -> int:
        """Channels of the output picture."""
        return RGB_CHANNELS if self.flat else len(self.result_of_output)


def make_lowering(problem: Problem, *, share: bool = True, streaming: bool = False) -> Lowering:
    """Read the structure of `problem`; with `share` off, equal filters are computed as often as they stand there."""
    weights = problem.dense_weights()
    flat = share and problem.groups == RGB_CHANNELS and problem.stride == 1 and _one_kernel(problem)
    collapse = share and not flat and problem.groups == 1 and bool((weights == weights[:, :, :1]).all())

    planes: tuple[tuple[int, ...], ...]
    if flat:
        planes, kernels = (ALL_CHANNELS[:1],), weights[:, :1, :1]
    elif collapse:
        planes, kernels = (ALL_CHANNELS,), weights[:, :, :1]
    else:
        planes, kernels = tuple((channel,) for channel in ALL_CHANNELS), weights

    results: list[tuple[Response, ...]] = []
    result_of_output: list[int] = []
    for output in range(kernels.shape[1]):
        result = tuple(_response(direction) for direction in kernels[:, output])
        if not share or result not in results:
            results.append(result)
        result_of_output.append(results.index(result) if share else output)

    source = _SCALAR_OF_DTYPE[problem.dtype.name]
    total = _sum_type(problem, kernels, len(planes[0]))
    return Lowering(
        source=source,
        staged=total if total == "f32" or collapse else source,
        sum=total,
        stored=_SCALAR_OF_DTYPE[problem.output_dtype.name],
        planes=planes,
        flat=flat,
        results=tuple(results),
        result_of_output=tuple(result_of_output),
        combine=problem.combine,
        output_mode=problem.output_mode,
        stride=problem.stride,
        streaming=streaming,
    )


def _one_kernel(problem: Problem) -> bool:
    return bool((problem.weights == problem.weights[:, :1, :1]).all())


def _response(kernels: NDArray[np.float32]) -> Response:
    """`kernels` is (planes, 3, 3); a tap stands for every weight that is not zero."""
    return tuple((Tap(*(int(i) for i in place)), float(kernels[tuple(place)])) for place in np.argwhere(kernels != 0))


def _sum_type(problem: Problem, kernels: NDArray[np.float32], channels_per_plane: int) -> Scalar:
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
