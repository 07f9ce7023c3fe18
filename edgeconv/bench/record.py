"""The record of a bench run: its classes, and what its figures mean.

Field names carry their units; None means not measured or not known here. `edgeconv report --schema bench` is made of
these classes. Exports and the tables in docs read only this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from edgeconv.api.figures import BoundBy, Check, DeviceFacts, Dtype
from edgeconv.bench.grid import Case, CaseGrid, TimingRules
from edgeconv.bench.watch import Watched
from edgeconv.core.choices import DEVICES, Channels, DeviceName
from edgeconv.core.cost import Counts
from edgeconv.core.records import Amount, Meta, Natural, Part, Positive, RecordHead, field, keyed_by
from edgeconv.core.timing import Series
from edgeconv.hardware.device import L2_STATES, L2State, Roof
from edgeconv.methods.options import Options

KIND: Literal["bench"] = "bench"

FORMULAS: dict[str, str] = {
    "gflops": "nominal FLOPs / median seconds / 1e9; nominal = 2 · 3 · 3 · Cin · Cout · Hout · Wout a direction",
    "useful_gflops": "useful FLOPs / median seconds / 1e9; useful = nominal without zero weights and shared work",
    "gigabytes_per_second": "fewest bytes / median seconds / 1e9; fewest = picture read once + output written once",
    "moved_gigabytes_per_second": "bytes that the method itself moves by design / median seconds / 1e9",
    "floor_share": "median seconds of the floor: a copy of the fewest bytes (same run, size, L2) / median seconds",
    "large_copy_share": "fewest bytes / bandwidth of a large copy measured in this run / median seconds",
    "roofline_share": "max(copy seconds as in floor_share, useful FLOPs / measured FMA rate) / median seconds",
}

Kind = Literal["method", "peer", "copy"]
Status = Literal["measured", "wrong", "disqualified", "refused", "failed"]
"""Not the oracle's output, a fault that the referee found, edgeconv's own reason, or an error of a library."""


class Metrics(Part):
    """What a time means; None for what was not measured.

    The copy is measured in the same run, by turns with the candidates, moves just the fewest bytes of this case, and
    finds the cache in the same state. Above stride 3 it reads the lines of memory that hold a pixel under some window
    (`fetched_bytes`), as memory gives no less.
    """

    gflops: Amount
    useful_gflops: Amount
    gigabytes_per_second: Amount
    moved_gigabytes_per_second: Amount | None
    floor_share: Amount | None
    large_copy_share: Amount | None
    roofline_share: Amount | None
    bound_by: BoundBy | None


class CasePart(Part):
    """A case, and the problem that it makes."""

    size: Positive
    stride: Positive
    dtype: Dtype
    filter: str
    channels: Channels
    height: Positive
    width: Positive
    output_height: Natural
    output_width: Natural
    padding: Natural
    border: str
    output_mode: str

    @property
    def named(self) -> Case:
        """The case by name alone."""
        return Case(self.size, self.stride, self.dtype, self.filter, self.channels)


class LeftOut(Part):
    """What was not measured, and why."""

    kind: Literal["device", "peer"]
    name: str
    device: DeviceName
    reason: str


@dataclass(frozen=True)
class Train:
    """What one call costs when many are put on a GPU back to back."""

    enqueue_seconds: float
    """Of the host's time, to put it in the queue."""
    stream_seconds: float
    """Until the next one can follow, host and GPU together."""


class BenchRow(Part, kw_only=True):
    """A candidate at a case. One whose result was not right has no times, nor what a run says of itself."""

    case: CasePart = field(name="work")
    kind: Kind
    candidate: str = field(name="entrant")
    device: DeviceName
    options: Options
    status: Status
    reason: str | None = None
    differs: str | None = None
    check: Check | None = None
    workspace_bytes: Natural | None = None
    moved_bytes: Natural | None = None
    launches: Natural | None = None
    choice: dict[str, Any] = field(default_factory=dict)
    counts: Counts
    set_up_seconds: Amount | None = None
    cold_seconds: Amount | None = None
    lead_l2_state: L2State | None = None
    timings: Annotated[dict[L2State, Series], keyed_by(L2_STATES)] = field(default_factory=dict)
    metrics: Annotated[
        dict[L2State, Metrics],
        keyed_by(L2_STATES),
        Meta(description="what a median means; each figure by its formula in `formulas`"),
    ] = field(name="accounts", default_factory=dict)
    launch: Train | None = None
    launch_bound: bool | None = None
    machine: Watched
    fault: Annotated[str | None, Meta(description="what the referee found, where it did: see docs/bench.md")] = None

    def __post_init__(self) -> None:
        """Only what was right has times, and each state of the L2 that has a time has its metrics."""
        if bool(self.timings) != (self.status == "measured"):
            raise ValueError(f"status '{self.status}' with {len(self.timings)} timings")
        if self.timings.keys() != self.metrics.keys() or self.lead_l2_state not in {None, *self.timings}:
            raise ValueError("timings and accounts are of other states of the L2")

    @property
    def lead_series(self) -> Series | None:
        """The timing that the row leads with, None where it was not timed."""
        return None if self.lead_l2_state is None else self.timings[self.lead_l2_state]

    @property
    def lead_metrics(self) -> Metrics | None:
        """The metrics that belong to `lead_series`."""
        return None if self.lead_l2_state is None else self.metrics[self.lead_l2_state]

    @property
    def title(self) -> str:
        """The row in a few words."""
        return f"{self.candidate} on {self.device} · {self.case.named}"


class BenchRecord(RecordHead):
    """A grid of cases measured on one machine."""

    kind: Literal["bench"]
    command: list[str]
    complete: bool
    wall_seconds: Amount
    grid: CaseGrid
    rules: TimingRules
    machine: Annotated[dict[DeviceName, DeviceFacts], keyed_by(DEVICES)]
    versions: dict[str, str]
    roofs: Annotated[dict[DeviceName, Roof], keyed_by(DEVICES)]
    formulas: dict[str, str]
    warnings: list[str]
    left_out: list[LeftOut]
    rows: list[BenchRow]
    seed: Annotated[Natural, Meta(description="of the pictures that were timed, drawn at the start")]


def metrics_of(
    counts: Counts, seconds: float, copy_seconds: float | None, roof: Roof, moved_bytes: int | None
) -> Metrics:
    """The metrics of a run that took `seconds`."""
    floor_seconds = None
    if copy_seconds is not None:
        floor_seconds = max(copy_seconds, counts.useful_flops / roof.fma_flops_per_second)
    return Metrics(
        gflops=counts.nominal_flops / seconds / 1e9,
        useful_gflops=counts.useful_flops / seconds / 1e9,
        gigabytes_per_second=counts.fewest_bytes / seconds / 1e9,
        moved_gigabytes_per_second=None if moved_bytes is None else moved_bytes / seconds / 1e9,
        floor_share=None if copy_seconds is None else copy_seconds / seconds,
        large_copy_share=counts.fewest_bytes / roof.copy_bytes_per_second / seconds,
        roofline_share=None if floor_seconds is None else floor_seconds / seconds,
        bound_by=None if floor_seconds is None else "memory" if floor_seconds == copy_seconds else "arithmetic",
    )
