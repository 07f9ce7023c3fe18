"""What `bench gemm` and `bench conv` share: steps that are timed by turns once they are right, and a record of them.

A ladder is a table of steps, each with one idea more than the step before. gemm.py and conv.py say how a step is made
ready for a case and how its result is judged; `LadderTable` does the rest. The L2 is emptied before each sample, and
turns go round all steps of a case, so that a machine that changes changes all of them alike.

    gflops   nominal FLOPs / median seconds / 1e9
    share    median seconds of the ladder's limit, a plain copy or cuBLAS, in the same run / median seconds
    gain     median seconds of the step before, with its usual blocks / median seconds

With `all` blocks every thread-block shape of a step is a row, the usual one first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise, product
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeconv.api.figures import DeviceFacts, Dtype
from edgeconv.bench.watch import Watch, Watched
from edgeconv.core.records import Amount, Meta, Part, Positive, RecordHead, finite, header
from edgeconv.core.timing import Budget, Sampler, Series
from edgeconv.hardware.cuda.kernels import KernelVariant
from edgeconv.hardware.device import Device, Roof
from edgeconv.hardware.versions import installed_versions

Kind = Literal["bench conv", "bench gemm"]
Blocks = Literal["usual", "all"]
"""Of each step, its usual thread blocks, or every shape that it may be compiled for."""


class LadderRow(Part):
    """A step with one shape of thread blocks; one that is wrong gets no time."""

    step: str
    block: Annotated[
        str | None, Meta(description="threads of a block, or what one makes; null where it is not ours to choose")
    ]
    size: Annotated[Positive, Meta(description="the side")]
    dtype: Dtype
    stride: Annotated[Positive | None, Meta(description="null of a matrix product")]
    right: Annotated[bool, Meta(description="whether the result is the oracle's")]
    relative_error: Annotated[Amount | None, Meta(description="null where it is infinite")]
    allowed_error: Amount
    timing: Annotated[Series | None, Meta(description="with a cold L2")]
    gflops: Amount | None
    share: Annotated[Amount | None, Meta(description="time of a copy of the fewest bytes, or of cuBLAS / median")]
    gain: Annotated[Amount | None, Meta(description="median of the step before, usual blocks / median")]
    machine: Watched

    @property
    def median_seconds(self) -> float | None:
        """None without a time."""
        return None if self.timing is None else self.timing.median_seconds

    @property
    def case(self) -> str:
        """What is measured beside the size, in a word or two."""
        return self.dtype if self.stride is None else f"stride {self.stride}"


class LadderRecord(RecordHead):
    """What `edgeconv bench conv` or `edgeconv bench gemm` measured."""

    kind: Kind
    machine: DeviceFacts
    versions: dict[str, str]
    roof: Roof
    rows: list[LadderRow]


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

    dtype: Dtype
    stride: int | None
    out: Any
    flops: int
    judge: Callable[[NDArray[Any]], tuple[bool, float, float]]
    """Whether a result is right, its error and the most that is allowed, both relative."""
    prepare: Callable[[Any, Any], Callable[[], None]]
    """Make a step with one of its thread blocks ready to run."""


@dataclass(frozen=True)
class LadderTable:
    """The table of steps, and what only this ladder knows; `other` is a stride or a type."""

    kind: Kind
    steps: Sequence[Step]
    limit: str
    """The step that all are set beside."""
    variant: Callable[[Any, Any, Any, bool], KernelVariant]
    """The kernel of a step, `other` and a block; last, whether sizes are multiples of what it takes at once."""
    make_case: Callable[[int, Any, Device], LadderCase]
    """Of a size and `other`."""

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
        progress: Callable[[int, int, str], None] = lambda done, total, note: None,
    ) -> LadderRecord:
        """The record: a row per step, thread block, size, and each of `others`."""
        roof, rows, cases = device.roof(), list[LadderRow](), list(product(others, sizes))
        for done, (other, size) in enumerate(cases):
            progress(done, len(cases), f"{size}, {other}")
            rows += self._time(size, other, blocks, budget, device)
        facts, versions = DeviceFacts(**device.describe()), installed_versions()
        return LadderRecord(**header(), kind=self.kind, machine=facts, versions=versions, roof=roof, rows=rows)

    def _time(self, size: int, other: Any, blocks: Blocks, budget: Budget, device: Device) -> list[LadderRow]:
        """All are judged first, by what they make of a poisoned output; those that are right are timed by turns."""
        case, rungs, watch = self.make_case(size, other, device), [], Watch(device.name)
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
        timings = [sampler.series if right else None for _, _, (right, _, _), sampler in rungs]
        usual: dict[str, Series | None] = {}  # by its usual block, which is the first of a step
        for (step, *_), timing in zip(rungs, timings, strict=True):
            usual.setdefault(step.name, timing)
        before = {later.name: usual[step.name] for step, later in pairwise(self.steps) if step.computes}
        return [
            LadderRow(
                step=step.name,
                block=None if block is None else str(block),
                size=size,
                dtype=case.dtype,
                stride=case.stride,
                right=right,
                relative_error=finite(error),
                allowed_error=allowed,
                timing=timing,
                gflops=case.flops / timing.median_seconds / 1e9 if step.computes and timing else None,
                share=_times_as_long(usual[self.limit], timing),
                gain=_times_as_long(before.get(step.name), timing),
                machine=seen,
            )
            for (step, block, (right, error, allowed), _), timing in zip(rungs, timings, strict=True)
        ]


def _times_as_long(other: Series | None, own: Series | None) -> float | None:
    """What another takes over what this takes; None where either has no time."""
    return other.median_seconds / own.median_seconds if other and own else None
