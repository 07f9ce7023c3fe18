"""How sure is a ratio of two times? A bootstrap over the samples, pure NumPy, the same numbers each time.

    ratio      statistic(new) / statistic(base)
    interval   the middle `CONFIDENCE` of the ratios of `RESAMPLES` pairs of resamples (with replacement, each as long
               as its series), percentile method

The samples of one run share its luck (clocks, where pages lie, what else ran), which no resampling can show: an
interval is too narrow by what changes from run to run. So a verdict also asks for a margin (see compare.py).

Source: Efron and Tibshirani, An Introduction to the Bootstrap, chapter 13.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SEED = 20_261_121
RESAMPLES = 2000
CONFIDENCE = 0.99
LEAST_SAMPLES = 5
"""Fewer say nothing about a spread."""

STATISTICS: dict[str, float] = {"median": 0.5, "p10": 0.1, "p90": 0.9}
"""Name and share of the samples that lie below."""


@dataclass(frozen=True)
class Ratio:
    """new / base of a statistic, and where it lies with `CONFIDENCE`; (0, inf) where there are too few samples."""

    ratio: float
    low: float
    high: float

    def __str__(self) -> str:
        if self.high == float("inf"):
            return f"{self.ratio:.3f} (few samples)"
        return f"{self.ratio:.3f} [{self.low:.3f}, {self.high:.3f}]"


def ratio_interval(base: Sequence[float], new: Sequence[float], statistic: str = "median") -> Ratio:
    """The ratio of a statistic of two series of times, with its interval."""
    share = STATISTICS[statistic]
    ratio = float(np.quantile(new, share) / np.quantile(base, share))
    if min(len(base), len(new)) < LEAST_SAMPLES:
        return Ratio(ratio, 0.0, float("inf"))
    rng = np.random.default_rng(SEED)
    ratios = _resampled(new, share, rng) / _resampled(base, share, rng)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(ratios, (tail, 1 - tail))
    return Ratio(ratio, float(low), float(high))


def _resampled(samples: Sequence[float], share: float, rng: np.random.Generator) -> np.ndarray:
    values = np.asarray(samples, np.float64)
    picks = rng.integers(0, len(values), (RESAMPLES, len(values)))
    return np.asarray(np.quantile(values[picks], share, axis=1))
