"""One convolution, stated completely and without pixels: what every method is asked to compute.

    response[d, y, x, o] = Σ over i, u, v of  weights[d, o, i, u, v] · in[y·s + u − p, x·s + v − p, i]
    value[y, x, o]       = response[0]   |   sqrt(response[0]² + response[1]²)   |   max over d of response
    out[y, x, o]         = value stored as `output_mode` says

s is the stride, p the padding, and i runs over the in / groups channels of o's group.
Pictures are HWC and C-contiguous, of three channels (RGB) or one (grey).

The glossary of the project: each word has one meaning in code, messages and documents.

    what is computed
    picture      height × width × 3 samples, RGB, HWC, or height × width × 1, grey. A pixel is one place in it, a sample
                 one number, a channel one colour of all pixels.
    kernel       3×3 numbers. Of CUDA code it means a function that runs on a GPU.
    filter       one or several kernels and the rule that joins their responses (filters.py), by name or a user's own.
    bank         up to 256 filters of one rule that are computed together.
    chain        several stages one after another in the place of a filter (chains.py): smoothing, gradient, thinning,
                 hysteresis; `canny` is one by name.
    weights      the numbers of a filter laid out for channels: (direction, out, in, 3, 3) (`WeightSet`).
    direction    one of a filter's kernels: 1, 2 for a gradient magnitude, 8 for a compass filter.
    response     the sum that one direction gives for one output sample, before directions are joined.
    window       the 3×3 samples under a kernel; by tiles, the part of the picture that a tile needs.
    output       the samples that a method stores; `edges` only in names of files and examples.

    from the wish to the result, in this order
    request      what a user asks for before there is a picture: filter, channels, stride, padding, border, output mode.
    problem      a request for one shape and sample type: everything a method must know, and no pixels.
    method       one way to compute a problem on one device, a line of the table in edgeconv/methods.
    plan         a problem made ready by a method: compiled, allocated; it only runs, and runs many times.
    job          one picture file to filter and where it goes (run); a task is a picture of a batch, before it is read.

    how it is computed
    device       `cpu` or `cuda`; GPU is the word for people. The host is the CPU and memory that drive a GPU.
    oracle       the float64 method `reference`, against which every output is checked.
    columns      the matrix of windows that im2col multiplies by the weights; a band is as many rows of it as fit.
    tile, strip  a rectangle of the output that is computed at once; a strip is one that a thread block walks down.
    lane, thread a lane is one of the 32 threads of a warp, or one element of a vector register; a thread is one of a
                 block, or one of the operating system.
    workspace    memory that a plan holds beside input and output.

    what is measured
    case         one problem and its pixels, by name, as a benchmark measures it; a grid is a list of cases.
    candidate    what is measured at a case: a method with its options, a peer (another library) or a plain copy.
    timed sample one timed run; a series is all of one candidate at one case.
    roof         what the machine was measured to do at most: copy bandwidth and multiply-adds. The floor is the time
                 below which no method can come, by the roof.
    report       what `edgeconv run` writes beside a picture; a record is what bench, ladders and diff write as JSON.
    ledger       the lines, one a picture, that a batch keeps in its output folder.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from edgeconv.core.choices import Border
from edgeconv.core.filters import CHANNEL_COUNTS, Combine, Weights, WeightSet
from edgeconv.core.geometry import output_size
from edgeconv.errors import UsageError

StoredMode = Literal["abs", "clip", "raw"]
"""How a method itself stores a value: see `Problem.output_dtype`."""

INPUT_DTYPES = ("uint8", "uint16", "float16", "float32", "float64")


@dataclass(frozen=True, eq=False)
class PictureProblem(ABC):
    """What every problem states, whether it is a convolution (`Problem`) or a chain of stages (chains.py)."""

    height: int
    """Rows of the picture."""
    width: int
    """Pixels in a row."""
    in_channels: int
    """3, or 1 of a grey picture."""
    dtype: np.dtype[Any]
    """Of the picture."""

    @property
    @abstractmethod
    def output_shape(self) -> tuple[int, int, int]:
        """HWC, as methods compute it, one channel too; which axes users get: `Request.output_shape`."""

    @property
    @abstractmethod
    def output_dtype(self) -> np.dtype[Any]:
        """Of the output as a method gives it."""

    @property
    def input_shape(self) -> tuple[int, int, int]:
        """HWC."""
        return (self.height, self.width, self.in_channels)

    @property
    def output_height(self) -> int:
        """Rows of the output."""
        return self.output_shape[0]

    @property
    def output_width(self) -> int:
        """Pixels in an output row."""
        return self.output_shape[1]

    @property
    def output_channels(self) -> int:
        """3 of one filter on RGB, 1 for luma and for grey; of a bank as many as it has filters, or three times that."""
        return self.output_shape[2]

    @property
    def input_bytes(self) -> int:
        """Bytes of the picture as stored."""
        return math.prod(self.input_shape) * self.dtype.itemsize

    @property
    def output_bytes(self) -> int:
        """Bytes of the output as stored."""
        return math.prod(self.output_shape) * self.output_dtype.itemsize


@dataclass(frozen=True, eq=False)
class Problem(PictureProblem):
    """Shapes, types, weights and rules of one convolution; build it with `make_problem`."""

    weights: Weights
    """float32; float64 for a float64 picture."""
    groups: int
    combine: Combine
    stride: int
    padding: int
    border: Border
    output_mode: StoredMode

    @cached_property
    def output_shape(self) -> tuple[int, int, int]:
        rows, columns = (output_size(side, self.stride, self.padding) for side in (self.height, self.width))
        return (rows, columns, self.weights.shape[1])

    @property
    def directions(self) -> int:
        """Responses per sample before they are combined: 1, 2 for a magnitude, 8 for a compass filter."""
        return int(self.weights.shape[0])

    @property
    def output_dtype(self) -> np.dtype[Any]:
        """The input's own type; `raw` of an integer picture is float32."""
        if self.output_mode == "raw" and self.dtype.kind == "u":
            return np.dtype(np.float32)
        return self.dtype

    def dense_weights(self) -> Weights:
        """The weights as one group: (directions, out, in, 3, 3), zero between channels of different groups."""
        if self.groups == 1:
            return self.weights
        directions, out_channels, in_group, rows, columns = self.weights.shape
        dense = np.zeros((directions, out_channels, self.in_channels, rows, columns), self.weights.dtype)
        out_group = out_channels // self.groups
        for out_channel in range(out_channels):
            first = out_channel // out_group * in_group
            dense[:, out_channel, first : first + in_group] = self.weights[:, out_channel]
        return dense


def weights_type(dtype: Any) -> np.dtype[Any]:
    """The type of the weights for pictures of a type: float64 for float64, else float32."""
    return np.dtype(np.float64 if np.dtype(dtype) == np.float64 else np.float32)


def check_shape(shape: tuple[int, ...]) -> None:
    """Raise UsageError for what is not the shape of a picture, HWC of one or three channels."""
    if len(shape) != 3 or shape[2] not in CHANNEL_COUNTS or min(shape) < 1:
        raise UsageError(
            f"A picture must be height × width × 3 (RGB, HWC) or height × width × 1 (grey), "
            f"not {'×'.join(map(str, shape)) or 'a number'}."
        )


def make_problem(
    shape: tuple[int, ...],
    dtype: Any,
    weights: WeightSet,
    *,
    stride: int = 1,
    padding: int = 1,
    border: Border = "zero",
    output_mode: StoredMode = "raw",
) -> Problem:
    """State the problem for a picture of `shape` (HWC, one or three channels) and `dtype`.

    Raises UsageError for a shape, type, stride, padding or output mode that has no meaning.
    """
    kind = np.dtype(dtype)
    if kind.name not in INPUT_DTYPES:
        raise UsageError(
            f"Pictures of type {kind.name} are not supported: convert to one of {', '.join(INPUT_DTYPES)}."
        )
    check_shape(shape)
    if shape[2] != weights.groups * weights.weights.shape[2]:
        raise UsageError(f"The weights are for {weights.groups * weights.weights.shape[2]} channels, not {shape[2]}.")
    if output_mode == "clip" and kind.kind == "f":
        raise UsageError("Output mode 'clip' needs an integer picture: a float picture has no range to clip to.")
    output_size(min(shape[:2]), stride, padding)  # raises where the filter does not fit
    beyond = max(shape[:2]) + 2 * padding  # a stride as long as the picture leaves one output; a longer one, the same
    problem = Problem(
        height=int(shape[0]),
        width=int(shape[1]),
        in_channels=int(shape[2]),
        dtype=kind.newbyteorder("="),
        weights=np.array(weights.weights, dtype=weights_type(kind), order="C"),
        groups=weights.groups,
        combine=weights.combine,
        stride=min(stride, beyond),
        padding=padding,
        border=border,
        output_mode=output_mode,
    )
    problem.weights.setflags(write=False)
    return problem
