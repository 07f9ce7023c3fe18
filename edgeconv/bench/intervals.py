"""How sure is a ratio of two times? A bootstrap over the samples, pure NumPy, the same numbers each time.

    ratio      median(new) / median(base)
    interval   the middle `CONFIDENCE` of the ratios of `RESAMPLES` pairs of resamples (with replacement, each as long
               as its series), percentile method; of fewer than `MIN_SAMPLES` (core/timing.py) nothing is known
    lead       who is how much faster is said only of enough samples and an interval of at most `WIDEST` (`doubt`)

The samples of one run share its luck (clocks, where pages lie, what else ran), which no resampling can show: an
interval is too narrow by what changes from run to run. `bench ab` runs pairs of processes for that (ab.py).

Sources: Efron and Tibshirani, An Introduction to the Bootstrap, chapter 13; Student, The probable error of a mean,
Biometrika 1908.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgeconv.core.text import counted, digits_text
from edgeconv.core.timing import MIN_SAMPLES

SEED = 20_261_121
RESAMPLES = 2000
CONFIDENCE = 0.99
WIDEST = 0.10
"""An interval that is wider than this share of its ratio gives no verdict."""
# fmt: off
STUDENT_T = (
    63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169,
    3.106, 3.055, 3.012, 2.977, 2.947, 2.921, 2.898, 2.878, 2.861, 2.845,
    2.831, 2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756, 2.750,
)
# fmt: on
"""Half the width of a 99 % interval in standard errors, from 1 degree of freedom on; the last stands for more."""


@dataclass(frozen=True)
class Ratio:
    """new / base, and where it lies with `CONFIDENCE`; (0, inf) where there are too few samples to say."""

    ratio: float
    low: float
    high: float
    samples: int
    """Of the shorter series."""

    def __str__(self) -> str:
        return f"{digits_text(self.ratio, 4)} {'(few samples)' if self.high == np.inf else self.interval}"

    @property
    def interval(self) -> str:
        """`[15.92, 16.08]`."""
        return f"[{digits_text(self.low, 4)}, {digits_text(self.high, 4)}]"

    @property
    def doubt(self) -> str:
        """Why this gives no verdict on who is how much faster; empty where it is one."""
        if self.samples < MIN_SAMPLES:
            return counted(self.samples, "sample")
        return f"interval {self.interval}" if self.high - self.low > WIDEST * self.ratio else ""


def ratio_interval(base: Sequence[float], new: Sequence[float]) -> Ratio:
    """The ratio of the medians of two series of times, with its interval."""
    ratio, samples = float(np.median(new) / np.median(base)), min(len(base), len(new))
    if samples < MIN_SAMPLES:
        return Ratio(ratio, 0.0, float("inf"), samples)
    rng = np.random.default_rng(SEED)
    medians = []
    for series in (new, base):
        picks = rng.integers(0, len(series), (RESAMPLES, len(series)))
        medians.append(np.median(np.asarray(series)[picks], axis=1))
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(medians[0] / medians[1], (tail, 1 - tail))
    return Ratio(ratio, float(low), float(high), samples)


def mean_of_cases(ratios: Sequence[float]) -> Ratio:
    """The geometric mean of some ratios out of many, and where that of all may lie, by Student's t."""
    logs = np.log(ratios)
    freedom = len(logs) - 1
    width = float("inf")
    if freedom:
        t = STUDENT_T[min(freedom, len(STUDENT_T)) - 1]
        width = float(np.exp(t * np.std(logs, ddof=1) / np.sqrt(len(logs))))
    mean = float(np.exp(logs.mean()))
    return Ratio(mean, mean / width, mean * width, len(logs))
