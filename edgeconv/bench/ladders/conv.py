"""`edgeconv bench conv`: the ladder of convolutions, each step checked first, timed by turns beside a plain copy.

Noise of size × size, random weights, float32, 3→3 channels, a zero border of one pixel.

    gflops            nominal FLOPs / median seconds / 1e9
    share_of_floor    median seconds of a copy of the fewest bytes, in the same run / median seconds
    gain              median seconds of the step before, with its usual blocks / median seconds

A step whose output is not the float64 oracle's gets no time. The L2 is emptied before each sample. With `all` blocks
every thread-block shape of a step is a row, the usual one first.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Annotated, Any, Literal

from numpy.typing import NDArray

from edgeconv.bench.ladders.base import (
    Blocks,
    Contender,
    Judged,
    LadderCase,
    LadderHead,
    StepRow,
    climb,
    ratio,
    usual_median,
)
from edgeconv.bench.ladders.conv_kernels import STEPS, prepare
from edgeconv.bench.synthetic import bench_filter
from edgeconv.core.cost import Roof, count
from edgeconv.core.noise import noise_pixels
from edgeconv.core.records import Amount, Meta, fields_of
from edgeconv.core.request import make_request
from edgeconv.runtime.check import SAMPLED_CHECK, check
from edgeconv.runtime.devices.base import Device

KIND: Literal["bench conv"] = "bench conv"
COPY = "copy"
DTYPE = "float32"


class ConvRow(StepRow):
    """A step at a size and stride."""

    stride: Annotated[int, Meta(ge=1, le=3)]
    share_of_floor: Annotated[
        Amount | None, Meta(description="time of a copy of the fewest bytes in the same run / median")
    ]
    gain: Annotated[
        Amount | None, Meta(description="median of the step before, usual blocks / median; null for the first step")
    ]


class ConvRecord(LadderHead):
    """What `edgeconv bench conv` measured."""

    kind: Literal["bench conv"]
    rows: list[ConvRow]


def make_case(size: int, stride: int, blocks: Blocks, device: Device) -> LadderCase:
    """Noise and random weights; the copy, then every step of the ladder."""
    pixels = noise_pixels(size, size, DTYPE)
    problem = make_request(bench_filter("random", "mix"), stride=stride).problem(pixels.shape, DTYPE)
    image = device.empty(problem.input_shape, DTYPE)
    device.copy_in(pixels, image)
    out = device.empty(problem.output_shape, problem.output_dtype)
    counts = count(problem)
    copy = device.copier(counts.fewest_bytes)
    found = [Contender(COPY, "a plain copy of the fewest bytes: the floor", None, None, copy)]
    for step in STEPS:
        shapes = step.blocks_for(stride) or (None,)
        for block in shapes if blocks == "all" else shapes[:1]:
            run = partial(prepare(step, problem, block).run, image, out)
            found.append(
                Contender(step.name, step.idea, None if block is None else str(block), counts.nominal_flops, run)
            )

    def judge(output: NDArray[Any]) -> Judged:
        against = check(pixels, output, problem, max_samples=SAMPLED_CHECK)
        return Judged(against.passed, against.relative_error, against.tolerance)

    return LadderCase(size, found, out, judge)


def compare(rows: list[StepRow], stride: int, roof: Roof) -> list[ConvRow]:
    """Rows of one case, each step beside the copy and the step before."""
    floor = usual_median(rows, COPY)
    before = {step.name: earlier.name for earlier, step in pairwise(STEPS)}
    return [
        ConvRow(
            **fields_of(row),
            stride=stride,
            share_of_floor=ratio(floor, row.median_seconds),
            gain=ratio(usual_median(rows, before.get(row.step)), row.median_seconds),
        )
        for row in rows
    ]


measure = partial(climb, make_case, compare, partial(ConvRecord, kind=KIND))
"""`measure(sizes, strides, blocks, budget, device, watch, progress)`: a row per step, block shape, size and stride."""
