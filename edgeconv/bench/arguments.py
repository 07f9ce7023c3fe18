"""The words of `edgeconv bench` made into a grid and rules, each checked before anything is measured."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from edgeconv.bench.grid import CaseGrid, changed, named_grid, read_grid
from edgeconv.bench.rules import DEFAULT_BUDGET, TimingRules
from edgeconv.core.request import make_request
from edgeconv.errors import UsageError
from edgeconv.runtime.devices.base import L2_STATES

CHECKS = ("sample", "full")


def chosen_grid(name: str, axes: Mapping[str, str | None]) -> CaseGrid:
    """A named grid or a TOML file, with the axes that are given (not None) in place of its own."""
    grid = read_grid(Path(name)) if name.endswith(".toml") else named_grid(name)
    return changed(grid, axes)


def parse_share(name: str, text: str) -> float:
    """`2%` or `0.02`; raises UsageError naming the option."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(%?)", text.strip())
    if found is None:
        raise UsageError(f"{name} '{text}' is not like 2% or 0.02.")
    return float(found[1]) / (100 if found[2] else 1)


def parse_rules(
    l2: str,
    noise: str,
    time_limit_seconds: float,
    samples: int,
    check: str,
    around: bool,
    padding: str,
    border: str,
    output_mode: str | None,
) -> TimingRules:
    """Rules from their words."""
    if l2 not in ("both", *L2_STATES):
        raise UsageError(f"--l2 '{l2}' is not one of both, {', '.join(L2_STATES)}.")
    if check not in CHECKS:
        raise UsageError(f"--check '{check}' is not one of {', '.join(CHECKS)}.")
    if samples < 1 or not time_limit_seconds > 0:
        raise UsageError("--samples must be a whole number from 1, and --time-limit above 0.")
    make_request(padding=padding, border=border, output_mode=output_mode)
    return TimingRules(
        budget=replace(
            DEFAULT_BUDGET,
            min_samples=min(samples, DEFAULT_BUDGET.min_samples),
            max_samples=samples,
            time_limit_seconds=time_limit_seconds,
            noise_target=parse_share("--noise", noise),
        ),
        l2_states=tuple(state for state in L2_STATES if l2 in ("both", state)),
        padding=padding,
        border=border,
        output_mode=output_mode,
        check=check,
        around=around,
    )
