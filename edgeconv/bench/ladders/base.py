"""What `bench gemm` and `bench conv` share: steps that are timed by turns once they are right, and a record of them.

A ladder is a table of steps, each with one idea more than the step before. gemm.py and conv.py say how a step is made
ready for a case, how its result is judged, and what a row is compared with; `LadderTable` does the rest. The L2 is
emptied before each sample, and turns go round all steps of a case, so that a machine that changes changes all of them
alike. `edgeconv report --schema ladder` is made of the classes of both records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeconv.api.figures import DeviceFacts
from edgeconv.bench.turns import Sampler
from edgeconv.bench.watch import Watch, Watched
from edgeconv.core.records import Amount, Meta, Part, Positive, RecordHead, fields_of, finite, header
from edgeconv.core.timing import Budget, Series
from edgeconv.hardware.cuda.kernels import KernelVariant
from edgeconv.hardware.device import Device, Roof
from edgeconv.hardware.versions import installed_versions

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
    timing: Series | None
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


@dataclass(frozen=True)
class Step:
    """A rung: its name, its entry point in the ladder's source, if it is there, and its idea in a clause."""

    name: str
    kernel: str
    idea: str
    blocks: Mapping[Any, tuple[Any, ...]] = field(default_factory=dict)
    """Thread blocks by stride or type, the usual one first; none where they are not ours to choose."""
    computes: bool = True
    """Not where it is there to be compared with alone: such a step has no FLOPs and is not judged."""

    def blocks_for(self, other: Any) -> tuple[Any, ...]:
        """Thread blocks at a stride or of a type; `None` alone where there is no choice."""
        return self.blocks.get(other) or (None,)


class LadderCase(NamedTuple):
    """One size of a ladder: what a run of a step fills on the device, and what is made of it."""

    out: Any
    flops: int
    judge: Callable[[NDArray[Any]], tuple[bool, float, float]]
    """Whether a result is right, its error and the most that is allowed, both relative."""
    prepare: Callable[[Any, Any], Callable[[], None]]
    """Make a step with one of its thread blocks ready to run."""


@dataclass(frozen=True)
class LadderTable:
    """The table of steps, and what only this ladder knows; `other` is a stride or a type."""

    steps: Sequence[Step]
    variant: Callable[[Any, Any, Any, bool], KernelVariant]
    """The kernel of a step, `other` and a block; last, whether sizes are multiples of what it takes at once."""
    make_case: Callable[[int, Any, Device], LadderCase]
    """Of a size and `other`."""
    beside: Callable[[StepRow, list[StepRow], Any, Roof], dict[str, Any]]
    """What `make_row` takes more than a step's row: how it stands beside other rows of its case."""
    make_row: Callable[..., StepRow]
    make_record: Callable[..., LadderHead]

    def variants(self) -> tuple[KernelVariant, ...]:
        """Every kernel of the ladder's source."""
        own = [(step, *entry) for step in self.steps if step.kernel for entry in step.blocks.items()]
        shapes = [(step, other, block) for step, other, blocks in own for block in blocks]
        return tuple(dict.fromkeys(self.variant(*shape, whole) for shape in shapes for whole in (False, True)))

    def measure(
        self,
        sizes: Sequence[int],
        others: Sequence[Any],
        blocks: Blocks,
        budget: Budget,
        device: Device,
        watch: Watch,
        progress: Callable[[int, int, str], None] = lambda done, total, note: None,
    ) -> Any:
        """The record: a row per step, thread block, size, and each of `others`."""
        roof, rows, cases = device.roof(), [], list(product(others, sizes))
        for done, (other, size) in enumerate(cases):
            progress(done, len(cases), f"{size}, {other}")
            timed = self._time(size, other, blocks, budget, device, watch)
            rows += [self.make_row(**fields_of(row), **self.beside(row, timed, other, roof)) for row in timed]
        machine = DeviceFacts(**device.describe())
        return self.make_record(**header(), machine=machine, versions=installed_versions(), roof=roof, rows=rows)

    def _time(
        self, size: int, other: Any, blocks: Blocks, budget: Budget, device: Device, watch: Watch
    ) -> list[StepRow]:
        """All are judged first, by what they make of a poisoned output; those that are right are timed by turns."""
        case, rungs, rows = self.make_case(size, other, device), [], []
        watch.begin()
        for step in self.steps:
            for block in step.blocks_for(other)[: None if blocks == "all" else 1]:
                run = case.prepare(step, block)
                case.out[...] = np.nan
                run()
                host = np.empty(case.out.shape, case.out.dtype)
                device.copy_out(case.out, host)
                judged = case.judge(host) if step.computes else (True, 0.0, 0.0)
                rungs.append((step, block, judged, Sampler(partial(device.time_once, run, "cold"), budget)))
        right_ones = [sampler for _, _, (right, _, _), sampler in rungs if right]
        while pending := [sampler for sampler in right_ones if sampler.stopped_because is None]:
            for sampler in pending:
                watch.look()
                sampler.take_turn()
        seen = watch.report()
        for step, block, (right, error, allowed), sampler in rungs:
            timing = sampler.series if right else None
            row = StepRow(
                step=step.name,
                idea=step.idea,
                block=None if block is None else str(block),
                right=right,
                relative_error=finite(error),
                l2_state="cold",
                timing=timing,
                allowed_error=allowed,
                size=size,
                gflops=case.flops / timing.median_seconds / 1e9 if step.computes and timing else None,
                machine=seen,
            )
            rows.append(row)
        return rows


def times_as_fast(row: StepRow, rows: Sequence[StepRow], step: str | None) -> float | None:
    """The time of another step with its usual blocks, which are its first row, over that of `row`; None without one."""
    other = next((each.median_seconds for each in rows if each.step == step), None)
    return other / row.median_seconds if other and row.median_seconds else None
