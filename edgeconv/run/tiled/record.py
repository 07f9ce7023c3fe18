"""A report by tiles: that of `run` with a part `tiles`.

`speed` is that of a tile of the full size, the median of all but the first: its FLOPs and bytes over its time.
`counts` are of the whole picture; `tiles.whole_run_gflops` divides them by its wall time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from edgeconv.api import figures
from edgeconv.api.auto import Choice
from edgeconv.api.figures import Check, Phase, TimingPart
from edgeconv.api.workspaces import PreparedFilter
from edgeconv.core import cost
from edgeconv.core.chains import ChainProblem
from edgeconv.core.problem import Problem
from edgeconv.core.records import header
from edgeconv.core.timing import StopReason, series_of
from edgeconv.hardware.device import Roof
from edgeconv.hardware.versions import installed_versions
from edgeconv.run import report
from edgeconv.run.job import Job
from edgeconv.run.report import InputPart, OutputPart, RunReport, TilesPart
from edgeconv.run.tiled.grid import TileGrid
from edgeconv.run.tiled.memory import TilePlan
from edgeconv.run.tiled.pipeline import Clock
from edgeconv.run.tiled.sinks.base import OutputShape
from edgeconv.run.tiled.sources.base import ChunkLayout
from edgeconv.run.tiled.verify_output import OutputComparison

EVERY_TILE: StopReason = "every tile of the full size was taken"


@dataclass(frozen=True)
class TiledProblem:
    """What is computed and by what, as the input's header settles it."""

    layout: ChunkLayout
    problem: Problem | ChainProblem
    choice: Choice
    finished_dtype: np.dtype[Any]
    normalizes: bool


@dataclass(frozen=True)
class TiledCut:
    """How the output is cut into tiles."""

    plan: TilePlan
    grid: TileGrid
    shape: OutputShape
    passes: int
    limit_bytes: int | None


@dataclass(frozen=True)
class TiledChecks:
    """What was measured and compared after the last tile."""

    plan: PreparedFilter
    """Of a tile of the full size."""
    check: Check | None
    comparison: OutputComparison | None
    peak_bytes: int | None
    """Of the whole process, the measurement of the roof left out."""
    roof: Roof | None
    output_identity: dict[str, Any]
    input_identity: dict[str, Any]


@dataclass(frozen=True)
class TiledTimes:
    """Seconds of the run that no tile's clock counts."""

    start_seconds: float | None
    set_up_seconds: float
    whole_seconds: float


@dataclass(frozen=True)
class TiledRecord:
    """Everything that a finished run knows."""

    job: Job
    settled: TiledProblem
    cut: TiledCut
    checks: TiledChecks
    clock: Clock
    times: TiledTimes
    chunks: int
    chunks_decoded: int
    output: str

    def to_report(self) -> RunReport:
        """The report of a run, with the part of the tiles."""
        device, plan = self.checks.plan.processor, self.checks.plan.method_plan
        of_tile = self.checks.plan.problem
        taken = (samples[of_tile.input_shape] for samples in (self.clock.kernel_samples, self.clock.end_to_end_samples))
        # Of the tiles of the full size, the first left out where there are others.
        kernel, end_to_end = (series_of(samples[1:] or samples, EVERY_TILE) for samples in taken)
        speed, throughput = figures.rates(of_tile, cost.count_any(of_tile), kernel, end_to_end, self.checks.roof)
        return RunReport(
            **header(),
            kind=report.KIND,
            input=self._input(),
            output=OutputPart(file=self.output, **self.checks.output_identity, **_size(self.cut.shape), sha256=None),
            problem=figures.describe_problem(self.job.request, self.settled.problem),
            method=figures.describe_method(self.settled.choice, self.job.method, self.job.options, plan),
            device=figures.RunDevice(**device.describe(), kind=self.settled.choice.device),
            versions=installed_versions(),
            phases_seconds=self._phases(),
            whole_run_seconds=self.times.whole_seconds,
            timing=TimingPart(
                kernel_clock="host",
                leaves_out=figures.left_out(self.job.request, self.settled.layout.dtype),
                l2_state="warm",
                cold_seconds=next(iter(self.clock.kernel_samples.values()))[0],
                kernel=kernel,
                end_to_end=end_to_end if device.moves_data else None,
            ),
            counts=cost.count_any(self.settled.problem),
            speed=None if self.settled.normalizes else speed,  # no tile's time covers the second pass
            peak_bytes=device.peak_bytes(),
            check=self.checks.check,
            tiles=self._tiles(),
            throughput=throughput,
        )

    def _input(self) -> InputPart:
        layout = self.settled.layout
        shape = OutputShape(layout.height, layout.width, self.settled.problem.input_shape[2], layout.dtype)
        described: dict[str, Any] = {"format": layout.format, "notes": list(layout.notes), **_size(shape)}
        return InputPart(file=self.job.source, **described, sha256=None, **self.checks.input_identity)

    def _phases(self) -> dict[Phase, float]:
        found = {
            **({} if self.times.start_seconds is None else {"start": self.times.start_seconds}),
            "decode": self.clock.decode_seconds,
            "encode": self.clock.encode_seconds,
            **self.clock.filtering.phases_seconds,
        }
        found["set_up"] = found.get("set_up", 0.0) + self.times.set_up_seconds
        return {name: found[name] for name in figures.PHASES if name in found}

    def _tiles(self) -> TilesPart:
        rows, columns = self.cut.plan.tile
        return TilesPart(
            rows=min(rows, self.cut.shape.height),
            columns=min(columns, self.cut.shape.width),
            count=len(self.cut.grid),
            piece=self.cut.plan.piece,
            passes=self.cut.passes,
            chunks=self.chunks,
            chunks_decoded=self.chunks_decoded,
            waited_for_decode_seconds=self.clock.waited_for_decode_seconds,
            waited_for_encode_seconds=self.clock.waited_for_encode_seconds,
            limit_bytes=self.cut.limit_bytes,
            planned_bytes=self.cut.plan.planned_bytes,
            peak_bytes=self.checks.peak_bytes,
            whole_run_gflops=self._whole_run_gflops(),
            proof=None if self.checks.comparison is None else report.describe_proof(self.checks.comparison),
        )

    def _whole_run_gflops(self) -> float | None:
        problem = self.settled.problem
        if isinstance(problem, ChainProblem):
            return None
        return cost.count(problem).nominal_flops / self.times.whole_seconds / 1e9


def _size(shape: OutputShape) -> dict[str, Any]:
    return {
        "height": shape.height,
        "width": shape.width,
        "channels": shape.channels,
        "dtype": shape.dtype.name,
    }
