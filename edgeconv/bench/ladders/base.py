"""What `bench gemm` and `bench conv` share: steps that are timed by turns once they are right, and a record of them.

The L2 is emptied before each sample, and turns go round all steps of a case, so that a machine that changes changes all
of them alike. `edgeconv report --schema ladder` is made of the classes of both records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.watch import Watch, Watched
from edgeconv.core.cost import Roof
from edgeconv.core.records import Amount, Meta, Part, Positive, finite
from edgeconv.core.timing import Budget, Sampler, interleave
from edgeconv.hardware.versions import installed_versions
from edgeconv.run.report import DeviceFacts, RecordHead, SeriesPart, describe_series, header
from edgeconv.runtime.devices.base import Device

Blocks = Literal["usual", "all"]
"""Of each step, its usual thread blocks, or every shape that it may be compiled for."""


class StepRow(Part):
    """A step with one shape of thread blocks; one that is wrong gets no time."""

    step: str
    idea: str
    block: Annotated[
        str | None, Meta(description="threads of a block, or what one makes; null where it is not ours to choose")
    ]
    right: Annotated[bool, Meta(description="whether the result is the oracle's")]
    relative_error: Annotated[Amount | None, Meta(description="null where it is infinite")]
    l2_state: Literal["cold"]
    timing: SeriesPart | None
    allowed_error: Amount
    size: Annotated[Positive, Meta(description="the side")]
    gflops: Amount | None
    machine: Watched

    @property
    def median_seconds(self) -> float | None:
        """None without a time."""
        return None if self.timing is None else self.timing.median_seconds


class LadderHead(RecordHead):
    """What the record of a ladder says before its rows."""

    machine: DeviceFacts
    versions: dict[str, str]
    roof: Roof


class Judged(NamedTuple):
    """Whether a result is right, its error and the most that is allowed, both relative."""

    right: bool
    error: float
    allowed: float


@dataclass(frozen=True)
class Contender:
    """A step with one shape of thread blocks, ready for one case; `flops` are None of a copy, which is not judged."""

    step: str
    idea: str
    block: str | None
    flops: int | None
    run: Callable[[], None]


@dataclass(frozen=True)
class LadderCase:
    """All contenders at one size. A run fills `out` on the device; `judge` is given what is there, on the host."""

    size: int
    contenders: list[Contender]
    out: Any
    judge: Callable[[NDArray[Any]], Judged]


def climb(
    make_case: Callable[[int, Any, Blocks, Device], LadderCase],
    compare: Callable[[list[StepRow], Any, Roof], list[Any]],
    make_record: Callable[..., Any],
    sizes: Sequence[int],
    others: Sequence[Any],
    blocks: Blocks,
    budget: Budget,
    device: Device,
    watch: Watch,
    progress: Callable[[int, str], None] = lambda done, note: None,
) -> Any:
    """The record of a ladder at each size and each of `others` (strides or types), which `compare` adds to rows."""
    roof = device.roof()
    rows: list[Any] = []
    for index, (other, size) in enumerate((other, size) for other in others for size in sizes):
        progress(index, f"{size}, {other}")
        rows += compare(time_case(make_case(size, other, blocks, device), budget, device, watch), other, roof)
    machine = DeviceFacts(**device.describe())
    return make_record(**header(), machine=machine, versions=installed_versions(), roof=roof, rows=rows)


def time_case(case: LadderCase, budget: Budget, device: Device, watch: Watch) -> list[StepRow]:
    """One row per contender: all are judged first, by what they make of a poisoned output, then timed by turns."""
    watch.begin()
    judged = []
    for contender in case.contenders:
        case.out[...] = np.nan
        contender.run()
        host = np.empty(case.out.shape, case.out.dtype)
        device.copy_out(case.out, host)
        judged.append(Judged(True, 0.0, 0.0) if contender.flops is None else case.judge(host))
    samplers = [Sampler(partial(device.time_once, contender.run, "cold"), budget) for contender in case.contenders]
    interleave([(sampler, watch.look) for sampler, found in zip(samplers, judged, strict=True) if found.right])
    seen, rows = watch.report(), []
    for contender, found, sampler in zip(case.contenders, judged, samplers, strict=True):
        timing = describe_series(sampler.series) if found.right else None
        rows.append(
            StepRow(
                step=contender.step,
                idea=contender.idea,
                block=contender.block,
                right=found.right,
                relative_error=finite(found.error),
                l2_state="cold",
                timing=timing,
                allowed_error=found.allowed,
                size=case.size,
                gflops=contender.flops / timing.median_seconds / 1e9 if contender.flops and timing else None,
                machine=seen,
            )
        )
    return rows


def ratio(over: float | None, under: float | None) -> float | None:
    """None where one of both is not known."""
    return None if over is None or under is None else over / under


def usual_median(rows: Sequence[StepRow], step: str | None) -> float | None:
    """Seconds of a step with its usual blocks, which are its first row; None where it has no time."""
    return next((row.median_seconds for row in rows if row.step == step), None)
