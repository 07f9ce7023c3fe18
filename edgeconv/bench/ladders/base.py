"""What `bench gemm` and `bench conv` share: steps that are timed by turns once they are right, and a record of them.

The L2 is emptied before each sample, and turns go round all steps of a case, so that a machine that changes changes all
of them alike. `edgeconv report --schema ladder` is made of the classes of both records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from edgeconv.bench.measure import DIGITS
from edgeconv.bench.watch import Watch, Watched
from edgeconv.core.cost import Roof
from edgeconv.core.records import Amount, Meta, Part, Positive, finite
from edgeconv.core.timing import Budget, Sampler, Series, interleave
from edgeconv.hardware.versions import installed_versions
from edgeconv.run.report import DeviceFacts, RecordHead, SeriesPart, describe_series, header
from edgeconv.runtime.devices.base import Device

L2_STATE: Literal["cold"] = "cold"

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


@dataclass(frozen=True)
class Contender:
    """A step with one shape of thread blocks, ready for one case."""

    step: str
    idea: str
    block: str | None
    run: Callable[[], None]


def time_by_turns(
    entered: Sequence[Contender], right: Sequence[bool], budget: Budget, device: Device, watch: Watch
) -> list[Series | None]:
    """A series of each contender that is right, None for the others."""
    samplers = [
        Sampler(_timed(contender, device), budget) if is_right else None
        for contender, is_right in zip(entered, right, strict=True)
    ]
    turns = [(sampler, watch.look) for sampler in samplers if sampler is not None]
    interleave(turns)
    return [None if sampler is None else sampler.series for sampler in samplers]


class LadderHead(RecordHead):
    """What the record of a ladder says before its rows."""

    machine: DeviceFacts
    versions: dict[str, str]
    roof: Roof


def describe_step(contender: Contender, series: Series | None, error: float) -> dict[str, Any]:
    """What the rows of both records begin with."""
    return {
        "step": contender.step,
        "idea": contender.idea,
        "block": contender.block,
        "right": series is not None,
        "relative_error": finite(error),
        "l2_state": L2_STATE,
        "timing": None if series is None else describe_series(series),
    }


def described(device: Device, roof: Roof) -> dict[str, Any]:
    """What both records begin with: when and where they were measured."""
    machine = DeviceFacts(**device.describe())
    return {**header(), "machine": machine, "versions": installed_versions(), "roof": roof}


def _timed(contender: Contender, device: Device) -> Callable[[], float]:
    return lambda: round(device.time_once(contender.run, L2_STATE), DIGITS)
