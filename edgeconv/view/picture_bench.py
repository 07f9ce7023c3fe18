"""“Bench this”: GFLOPS over size for the open picture, measured by the code of `edgeconv bench`.

A grid of one part: sizes by doublings up to the picture's own, its type, its filter and rules, every method that runs
here (or the one device that was asked for). `series` makes lines for a plot of the record.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from edgeconv.bench.grid import ALL, CaseGrid, GridPart
from edgeconv.bench.record import BenchRecord
from edgeconv.bench.rules import TimingRules
from edgeconv.bench.runner import BenchRun, run
from edgeconv.core.option import AUTO
from edgeconv.core.timing import Budget
from edgeconv.errors import EdgeconvError, UsageError
from edgeconv.io.image import Picture
from edgeconv.io.read_limits import ReadRules
from edgeconv.methods.base import DEVICES
from edgeconv.view.latest_request import Token
from edgeconv.view.parameters import Parameters, kernel_cells, kernel_text

LEAST_SIDE = 64
MOST_SIDE = 4096
"""Larger ones take minutes on a small machine and change no curve."""
BUDGET = Budget(min_samples=5, max_samples=40, time_limit_seconds=0.06, turns=4)


class BenchStoppedError(EdgeconvError):
    """The user wants no more of it."""


@dataclass(frozen=True)
class SpeedCurve:
    """One method on one device: `points` are (longest side, nominal GFLOPS), by size."""

    label: str
    points: tuple[tuple[int, float], ...]


def sizes_for(longest_side: int) -> tuple[int, ...]:
    """Doublings from 64, and the picture's own size last (or 4096 where it is larger)."""
    last = min(longest_side, MOST_SIDE)
    sizes = []
    side = LEAST_SIDE
    while side < last:
        sizes.append(side)
        side *= 2
    return (*sizes, last)


def plan(path: str, picture: Picture, parameters: Parameters) -> BenchRun:
    """The bench run for a picture and parameters; a grey one is measured as RGB.

    Raises UsageError for a full 3×3×3×3 set and for a chain, which no grid names.
    """
    if parameters.kernel_file is not None and parameters.chosen_filter().is_full_set:
        raise UsageError("A 3×3×3×3 kernel has no name in a grid: bench a named filter or a 3×3 kernel.")
    if parameters.has_chain:
        raise UsageError(f"'{parameters.filter_label}' is a chain of stages, and a bench measures single filters.")
    named = parameters.filter
    if parameters.kernel is not None or parameters.kernel_file is not None:
        named = kernel_text(kernel_cells(parameters.chosen_filter()))
    devices = DEVICES if parameters.device == AUTO else (parameters.device,)
    part = GridPart(
        sizes=sizes_for(max(picture.pixels.shape[:2])),
        strides=(parameters.stride,),
        dtypes=(picture.pixels.dtype.name,),
        filters=(named,),
        channels=(parameters.channels,),
        methods=(ALL,),
        devices=devices,
    )
    rules = TimingRules(
        budget=BUDGET,
        l2_states=("warm",),
        padding=parameters.padding,
        border=parameters.border,
        output_mode=parameters.output_mode,
        around=False,
    )
    grid = CaseGrid("view", f"GFLOPS over size, {parameters.summary()}", (part,))
    as_rgb = ReadRules(rgb=True)  # the cases of a grid have three channels
    return BenchRun(grid, rules, parameters.options(), pictures=(path,), read_rules=as_rgb)


def measure(todo: BenchRun, token: Token, progress: Callable[[float, str], None]) -> BenchRecord:
    """Run it; `progress` hears the share that is done and what is at hand. Raises BenchStoppedError when cancelled."""

    def on_progress(done: int, total: int, note: str) -> None:
        if token.cancelled:
            raise BenchStoppedError("The bench was stopped.")
        progress(done / total if total else 0.0, note)

    return run(todo, on_progress)


def series(record: BenchRecord) -> list[SpeedCurve]:
    """A line each method and device, in the record's order; rows without a time have no point."""
    points: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for row in record.rows:
        metrics = row.lead_metrics
        if row.kind == "method" and row.status == "measured" and metrics is not None:
            points.setdefault((row.candidate, row.device), []).append((row.case.size, metrics.gflops))
    return [SpeedCurve(f"{name} on {device.upper()}", tuple(sorted(found))) for (name, device), found in points.items()]
