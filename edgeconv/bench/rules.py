"""How every case of a bench is measured, and these rules from the options."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from edgeconv.core.timing import Budget
from edgeconv.errors import UsageError
from edgeconv.hardware.device import L2_STATES, L2State
from edgeconv.options import Filtering, Timing

DEFAULT_BUDGET = Budget(min_samples=7, max_samples=100, time_limit_seconds=0.12, turns=4)
SAMPLED = 300_000


@dataclass(frozen=True)
class TimingRules:
    """How every case is measured."""

    budget: Budget = DEFAULT_BUDGET
    l2_states: tuple[L2State, ...] = L2_STATES
    padding: str = "same"
    border: str = "zero"
    output_mode: str | None = None
    check_samples: int | None = SAMPLED
    """The check takes whole rows of about this number of samples, the first and last row among them; None: all."""


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
        check_samples=SAMPLED if timing.check == "sample" else None,
    )


def parse_share(name: str, text: str) -> float:
    """`2%` or `0.02`; raises UsageError naming the option."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(%?)", text.strip())
    if found is None:
        raise UsageError(f"{name} '{text}' is not like 2% or 0.02.")
    return float(found[1]) / (100 if found[2] else 1)
