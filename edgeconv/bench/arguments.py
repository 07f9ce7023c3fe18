"""The options of `edgeconv bench` made into a grid and rules, each checked before anything is measured."""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from pathlib import Path

from edgeconv.bench.grid import CaseGrid, Draw, changed, named_grid, read_grid
from edgeconv.bench.rules import DEFAULT_BUDGET, TimingRules
from edgeconv.errors import UsageError
from edgeconv.options import Filtering, GridAxes, Timing
from edgeconv.runtime.devices.base import L2_STATES


def chosen_grid(axes: GridAxes) -> CaseGrid:
    """A named grid or a TOML file, with the axes that are given (not None) in place of its own."""
    grid = read_grid(Path(axes.grid)) if axes.grid.endswith(".toml") else named_grid(axes.grid)
    given = asdict(axes)
    del given["grid"]
    draw = {name: given.pop(name) for name in ("seed", "cases")}
    return redrawn(changed(grid, given), **draw)


def redrawn(grid: CaseGrid, seed: int | None, cases: int | None) -> CaseGrid:
    """A drawn grid with another seed and number of cases; raises UsageError for a grid that is not drawn."""
    if seed is None and cases is None:
        return grid
    if grid.draw is None:
        raise UsageError(f"--seed and --cases do not apply to grid '{grid.name}', which lists its cases.")
    draw = Draw(grid.draw.seed if seed is None else seed, grid.draw.cases if cases is None else cases)
    if draw.seed < 0 or draw.cases < 1:
        raise UsageError("--seed must be a whole number from 0, and --cases one from 1.")
    return replace(grid, draw=draw)


def parse_share(name: str, text: str) -> float:
    """`2%` or `0.02`; raises UsageError naming the option."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(%?)", text.strip())
    if found is None:
        raise UsageError(f"{name} '{text}' is not like 2% or 0.02.")
    return float(found[1]) / (100 if found[2] else 1)


def parse_rules(timing: Timing, filtering: Filtering) -> TimingRules:
    """Rules from the options; of `filtering` the padding, the border and the output mode hold for every case."""
    if timing.samples < 1 or not timing.time_limit > 0:
        raise UsageError("--samples must be a whole number from 1, and --time-limit above 0.")
    filtering.request()
    return TimingRules(
        budget=replace(
            DEFAULT_BUDGET,
            min_samples=min(timing.samples, DEFAULT_BUDGET.min_samples),
            max_samples=timing.samples,
            time_limit_seconds=timing.time_limit,
            noise_target=parse_share("--noise", timing.noise),
        ),
        l2_states=tuple(state for state in L2_STATES if timing.l2 in ("both", state)),
        padding=filtering.padding,
        border=filtering.border,
        output_mode=filtering.output_mode,
        check=timing.check,
        around=timing.around,
    )
