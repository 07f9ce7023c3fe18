"""How every case of a bench is measured."""

from __future__ import annotations

from dataclasses import dataclass

from edgeconv.core.timing import Budget
from edgeconv.runtime.devices.base import L2_STATES, L2State

DEFAULT_BUDGET = Budget(min_samples=7, max_samples=100, time_limit_seconds=0.12, turns=4)


@dataclass(frozen=True)
class TimingRules:
    """How every case is measured."""

    budget: Budget = DEFAULT_BUDGET
    l2_states: tuple[L2State, ...] = L2_STATES
    padding: str = "same"
    border: str = "zero"
    output_mode: str | None = None
    check: str = "sample"
    """`sample`: about `check_samples` output samples in whole rows, the first and last among them; `full`: all."""
    check_samples: int = 300_000
    around: bool = True
    """Also time what surrounds the convolution: both ways over the bus, decoding and encoding."""
