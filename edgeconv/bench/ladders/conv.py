"""`edgeconv bench conv`: the ladder of convolutions, each step checked first, timed by turns beside a plain copy.

Noise of size × size, random weights, float32, 3→3 channels, a zero border of one pixel.

    gflops            nominal FLOPs / median seconds / 1e9
    share_of_floor    median seconds of a copy of the fewest bytes, in the same run / median seconds
    gain              median seconds of the step before, with its usual blocks / median seconds

A step whose output is not the float64 oracle's gets no time. The L2 is emptied before each sample. With `all` blocks
every thread-block shape of a step is a row, the usual one first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.ladders.base import Blocks, Contender, LadderHead, StepRow, describe_step, described, time_by_turns
from edgeconv.bench.ladders.conv_kernels import STEPS
from edgeconv.bench.ladders.conv_kernels import prepare as prepare_step
from edgeconv.bench.synthetic import bench_filter
from edgeconv.bench.watch import Watch
from edgeconv.core.cost import Counts, count
from edgeconv.core.noise import noise_pixels
from edgeconv.core.problem import Problem
from edgeconv.core.records import Amount, Meta
from edgeconv.core.request import make_request
from edgeconv.core.timing import Budget
from edgeconv.runtime import check as verify
from edgeconv.runtime.devices.base import Device

KIND: Literal["bench conv"] = "bench conv"
COPY = "copy"
DTYPE = "float32"
CHECKED_SAMPLES = 300_000


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


@dataclass(frozen=True)
class LadderCase:
    """A problem with its picture, on the host and on the device, and room for the output."""

    problem: Problem
    image_host: NDArray[Any]
    image: Any
    out: Any

    @property
    def counts(self) -> Counts:
        """FLOPs and bytes."""
        return count(self.problem)


def make_case(size: int, stride: int, device: Device) -> LadderCase:
    """Noise and random weights."""
    pixels = noise_pixels(size, size, DTYPE)
    problem = make_request(bench_filter("random", "mix"), stride=stride).problem(pixels.shape, DTYPE)
    image = device.empty(problem.input_shape, DTYPE)
    device.copy_in(pixels, image)
    return LadderCase(problem, pixels, image, device.empty(problem.output_shape, problem.output_dtype))


def contenders(case: LadderCase, blocks: Blocks, device: Device) -> list[Contender]:
    """The copy, then every step of the ladder."""
    copy = device.copier(case.counts.fewest_bytes)
    found = [Contender(COPY, "a plain copy of the fewest bytes: the floor", None, copy)]
    for step in STEPS:
        shapes = step.blocks_for(case.problem.stride) or (None,)
        for block in shapes if blocks == "all" else shapes[:1]:
            plan = prepare_step(step.name, case.problem, block)
            run = _run(plan.run, case)
            found.append(Contender(step.name, step.idea, None if block is None else str(block), run))
    return found


def measure(
    sizes: Sequence[int],
    strides: Sequence[int],
    blocks: Blocks,
    budget: Budget,
    device: Device,
    watch: Watch,
    progress: Callable[[int, str], None] = lambda done, note: None,
) -> ConvRecord:
    """The record: one row per step, block shape, size and stride."""
    roof = device.roof()
    rows: list[ConvRow] = []
    pairs = [(size, stride) for stride in strides for size in sizes]
    for index, (size, stride) in enumerate(pairs):
        progress(index, f"{size} stride {stride}")
        case = make_case(size, stride, device)
        watch.begin()
        rows += time_case(contenders(case, blocks, device), case, budget, device, watch)
    return ConvRecord(**described(device, roof), kind=KIND, rows=rows)


def time_case(
    entered: Sequence[Contender], case: LadderCase, budget: Budget, device: Device, watch: Watch
) -> list[ConvRow]:
    """Check all, time those that are right by turns, and set each against the copy and the step before."""
    checks = [None if contender.step == COPY else _check(contender, case, device) for contender in entered]
    series = time_by_turns(entered, [check is None or check.passed for check in checks], budget, device, watch)
    seen = watch.report()
    medians = [None if found is None else found.statistics.median_seconds for found in series]
    usual: dict[str, float | None] = {}
    for contender, seconds in zip(entered, medians, strict=True):
        usual.setdefault(contender.step, seconds)
    floor = usual.get(COPY)
    before = dict(zip([step.name for step in STEPS[1:]], [usual.get(step.name) for step in STEPS], strict=False))
    rows = []
    for contender, check, found, seconds in zip(entered, checks, series, medians, strict=True):
        error = 0.0 if check is None else check.relative_error
        earlier = before.get(contender.step)
        rows.append(
            ConvRow(
                **describe_step(contender, found, error),
                allowed_error=max((check.tolerance for check in checks if check is not None), default=0.0),
                size=case.problem.height,
                stride=case.problem.stride,
                gflops=None if seconds is None or check is None else case.counts.nominal_flops / seconds / 1e9,
                share_of_floor=None if seconds is None or floor is None else floor / seconds,
                gain=None if seconds is None or earlier is None else earlier / seconds,
                machine=seen,
            )
        )
    return rows


def _run(run: Callable[[Any, Any], None], case: LadderCase) -> Callable[[], None]:
    return lambda: run(case.image, case.out)


def _check(contender: Contender, case: LadderCase, device: Device) -> verify.Check:
    """What a run into a poisoned output gives, against the oracle."""
    case.out[...] = np.nan
    contender.run()
    host = np.empty(case.problem.output_shape, case.problem.output_dtype)
    device.copy_out(case.out, host)
    return verify.check(case.image_host, host, case.problem, max_samples=CHECKED_SAMPLES)
