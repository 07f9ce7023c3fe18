"""What `bench gemm` and `bench conv` share: steps that are timed by turns once they are right, and a record of them.

The L2 is emptied before each sample, and turns go round all steps of a work, so that a machine that changes changes all
of them alike. `ladder.schema.json` (JSON Schema 2020-12) fixes the shape of both records.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any, Literal

from edgeconv.bench.measure import DIGITS
from edgeconv.bench.watch import Watch
from edgeconv.core.cost import Roof
from edgeconv.core.records import plain
from edgeconv.core.timing import Budget, Sampler, Series, interleave
from edgeconv.hardware.versions import installed_versions
from edgeconv.run.report import describe_series, header
from edgeconv.runtime.devices.base import Device, L2State

L2_STATE: L2State = "cold"

Blocks = Literal["usual", "all"]
"""Of each step, its usual thread blocks, or every shape that it may be compiled for."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Contender:
    """A step with one shape of thread blocks, ready for one work."""

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


def describe_step(contender: Contender, series: Series | None, error: float | None) -> Row:
    """What the rows of both records begin with."""
    return {
        "step": contender.step,
        "idea": contender.idea,
        "block": contender.block,
        "right": series is not None,
        "relative_error": error,
        "l2_state": L2_STATE,
        "timing": None if series is None else plain(describe_series(series)),
    }


def record_of(kind: str, device: Device, roof: Roof, rows: Sequence[Row]) -> dict[str, Any]:
    """The record: where it was measured, and its rows."""
    return {
        **header(),
        "kind": kind,
        "machine": device.describe(),
        "versions": installed_versions(),
        "roof": asdict(roof),
        "rows": list(rows),
    }


def schema() -> dict[str, Any]:
    """The JSON Schema of both records."""
    loaded: dict[str, Any] = json.loads(
        files("edgeconv.bench.ladders").joinpath("ladder.schema.json").read_text("utf-8")
    )
    return loaded


def _timed(contender: Contender, device: Device) -> Callable[[], float]:
    return lambda: round(device.time_once(contender.run, L2_STATE), DIGITS)
