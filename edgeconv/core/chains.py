"""Chains of stages as data: what a filter of several steps is, and the oracle of every one of them.

    gaussian, gaussian5       picture → picture      binomial smoothing, 3×3 or 5×5
    sobel, scharr, prewitt    picture → gradient     derivatives along x and y; of RGB the channel of the largest one
    direction                 gradient → angles      of the gradient, in degrees
    thin                      gradient → ridges      pixels that are no smaller than both neighbours across the edge
    hysteresis                ridges → edges         above the lower threshold and connected to one above the upper

A chain is any of them in an order in which each takes what the one before it gives; `canny` is sobel, thin, hysteresis,
with a smoothing before them where one is asked for. What a method computes depends on the last stage (which axes it has
for a user, `Request.output_shape` says):

    picture     (H, W, C), the picture's own type
    gradient    (H, W, 1): its magnitude, stored as the output mode says (output.py)
    ridges      (H, W, 1): the magnitude on ridges, 0 elsewhere, stored in the same way
    angles      (H, W, 1), float32: degrees above −180 up to 180; 0 where it brightens to the right and where there is
                no gradient, 90 where it brightens downwards
    edges       (H, W, 1), uint8: 255 on edges and 0 elsewhere

Stages compute in whole numbers, exactly (core/canny.py); the border is reflect101 for smoothing and replicate for
gradients, and outside the picture no magnitude is larger than 0. Pictures are uint8 or uint16.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from edgeconv.core import canny
from edgeconv.core.canny import ABOVE_EVERY_MAGNITUDE, CANNY_DTYPES
from edgeconv.core.choices import CHAINS, Border, Gradient, ThresholdRule
from edgeconv.core.option import did_you_mean, listed
from edgeconv.core.output import store, threshold_text
from edgeconv.core.problem import PictureProblem, StoredMode, check_shape
from edgeconv.errors import UsageError

CHAIN_BORDER: Border = "replicate"
"""What lies around the picture for the gradients of a chain; smoothing reflects (reflect101)."""

Form = Literal["picture", "gradient", "angles", "ridges", "edges"]
"""What a stage takes or gives."""
FORM_TEXTS: dict[Form, str] = {
    "picture": "a picture",
    "gradient": "a gradient",
    "angles": "a direction",
    "ridges": "a thinned gradient",
    "edges": "a map of edges",
}

GRADIENTS: tuple[Gradient, ...] = get_args(Gradient)
THRESHOLD_RULES: tuple[ThresholdRule, ...] = get_args(ThresholdRule)
DEFAULT_RULE: ThresholdRule = "median"
"""Of the thresholds where none are given."""


@dataclass(frozen=True)
class Stage:
    """One line of the table."""

    name: str
    takes: Form
    gives: Form
    weights: tuple[int, ...]
    """Of a smoothing along one direction; of a gradient those across its derivative; none of the other stages."""
    summary: str


STAGES: tuple[Stage, ...] = (
    Stage("gaussian", "picture", "picture", canny.BINOMIALS[3], "binomial smoothing 3×3, rounded half up"),
    Stage("gaussian5", "picture", "picture", canny.BINOMIALS[5], "binomial smoothing 5×5, rounded half up"),
    Stage("sobel", "picture", "gradient", (1, 2, 1), "derivatives along x and y, smoothed 1 2 1"),
    Stage("scharr", "picture", "gradient", (3, 10, 3), "derivatives along x and y, smoothed 3 10 3"),
    Stage("prewitt", "picture", "gradient", (1, 1, 1), "derivatives along x and y, smoothed 1 1 1"),
    Stage("direction", "gradient", "angles", (), "of the gradient, in degrees: 0 brighter to the right, 90 downwards"),
    Stage("thin", "gradient", "ridges", (), "only pixels no smaller than both neighbours across the edge"),
    Stage("hysteresis", "ridges", "edges", (), "above the lower threshold, connected to one above the upper"),
)

SMOOTHINGS = {3: "gaussian", 5: "gaussian5"}
"""The stage of each size of `blur`."""


def stage_of(name: str) -> Stage:
    """Look a stage up by name; raises UsageError naming those there are."""
    for stage in STAGES:
        if stage.name == name:
            return stage
    known = tuple(stage.name for stage in STAGES)
    raise UsageError(f"Stage '{name}' of a chain is not known: use {listed(known)}.{did_you_mean(name, known)}")


@dataclass(frozen=True)
class Chain:
    """Stages and their settings. Build it with `make_chain`, which checks them."""

    name: str
    stages: tuple[str, ...]
    gradient: Gradient = "l1"
    """Magnitudes: |gx| + |gy|, or sqrt(gx² + gy²)."""
    low: float | None = None
    """The thresholds of hysteresis, in units of the gradient; None before `settled` finds them by `rule`."""
    high: float | None = None
    rule: ThresholdRule | None = None
    """How thresholds are found in a picture; None where they are given."""

    labels: ClassVar[tuple[str, ...]] = ()
    """A chain gives one picture, never several as a bank does; likewise the next three."""
    filters: ClassVar[int] = 1
    is_bank: ClassVar[bool] = False
    file: ClassVar[Path | None] = None

    @property
    def gives(self) -> Form:
        """What its last stage gives."""
        return stage_of(self.stages[-1]).gives

    @property
    def has_hysteresis(self) -> bool:
        """Whether one pixel may depend on any other, so that no part of a picture can be computed alone."""
        return self.gives == "edges"

    @property
    def has_gradient(self) -> bool:
        """Whether magnitudes are part of it."""
        return self.gives != "picture"

    @property
    def has_magnitude(self) -> bool:
        """Whether its output is a magnitude, which the output mode stores and of which a threshold makes a mask."""
        return self.gives in ("gradient", "ridges")

    @property
    def reach(self) -> int:
        """How many rows beyond a block its output depends on, without hysteresis: a window's, stage by stage."""
        return sum(len(stage.weights) // 2 or (stage.name == "thin") for stage in map(stage_of, self.stages))

    @property
    def rules_word(self) -> str:
        """Its settings in the name of an output, where they are not the default: `_blur3_l2_50-150`."""
        sizes = SMOOTHINGS if self.name in CHAINS else {}  # other chains have their stages in their names
        blur = "".join(f"_blur{size}" for size, stage in sizes.items() if stage in self.stages)
        measure = "_l2" if self.gradient == "l2" else ""
        if self.rule is not None or self.low is None or self.high is None:
            return f"{blur}{measure}{'' if self.rule in (None, DEFAULT_RULE) else f'_{self.rule}'}"
        return f"{blur}{measure}_{self.low:g}-{self.high:g}"

    @property
    def text(self) -> str:
        """Stages and settings for a person: `sobel, thin, hysteresis; l1, thresholds 50 and 150`."""
        measure = f"; {self.gradient}" if self.has_gradient else ""
        if self.low is None or self.high is None:
            return f"{', '.join(self.stages)}{measure}"
        rule = "" if self.rule is None else f" by {self.rule}"
        limits = f"{threshold_text(self.low)} and {threshold_text(self.high)}"
        return f"{', '.join(self.stages)}{measure}, thresholds {limits}{rule}"

    @property
    def l2(self) -> bool:
        """Whether magnitudes are sqrt(gx² + gy²) rather than |gx| + |gy|."""
        return self.gradient == "l2"

    @property
    def blur(self) -> int:
        """Size of the smoothing that it begins with; 0 is none."""
        return next((size for size, name in SMOOTHINGS.items() if name == self.stages[0]), 0)

    @property
    def is_canny(self) -> bool:
        """Whether it computes what `cv2.Canny` does, after a smoothing or not."""
        return self.stages[1 if self.blur else 0 :] == CHAINS["canny"]

    @property
    def thresholds(self) -> tuple[float, float]:
        """Lower and upper threshold, which are known; so large at most that their squares are numbers."""
        assert self.low is not None  # as chain_problem asks
        assert self.high is not None
        return min(self.low, ABOVE_EVERY_MAGNITUDE), min(self.high, ABOVE_EVERY_MAGNITUDE)

    @property
    def limits(self) -> tuple[int, int]:
        """Whole numbers that the magnitude of an edge pixel and of a strong one is above; squared for `l2`.

        They may be larger than any magnitude; squared ones of 16 bits do not fit 32 bits.
        """
        low, high = self.thresholds
        return (math.floor(low * low), math.floor(high * high)) if self.l2 else (math.floor(low), math.floor(high))

    def settled(self, picture: Any, xp: Any = np) -> Chain:
        """The chain with thresholds for a picture, an array of NumPy or CuPy as `xp` says, where a rule finds them."""
        if self.rule is None:
            return self
        low, high = automatic_thresholds(self.rule, picture, xp)
        return replace(self, low=low, high=high)


def make_chain(
    stages: str | Iterable[str],
    *,
    low: float | None = None,
    high: float | None = None,
    rule: ThresholdRule | None = None,
    gradient: Gradient | None = None,
    blur: int = 0,
) -> Chain:
    """A chain from the name of one, or from its stages (`gaussian,sobel,thin`, or their list), checked.

    `low` and `high` are the thresholds of hysteresis, or `rule` finds them: `median` where neither is given. `gradient`
    is `l1` (default) or `l2`, and `blur` 3 or 5 smooths first. Raises UsageError for stages that do not fit together,
    and for settings that none of them takes.
    """
    text = stages if isinstance(stages, str) else ",".join(map(str, stages))
    names = CHAINS.get(text.strip()) or tuple(name.strip() for name in text.split(","))
    name = text.strip() if text.strip() in CHAINS else "-".join(names)
    if isinstance(blur, bool) or blur not in canny.BLURS:
        raise UsageError(f"--blur {blur!r} is not one of {', '.join(map(str, canny.BLURS))}.")
    if blur:
        if names[0] in SMOOTHINGS.values():
            raise UsageError(f"--blur does not go with a chain that begins with {names[0]}: use one of the two.")
        names = (SMOOTHINGS[blur], *names)
    have: Form = "picture"
    for stage in map(stage_of, names):
        if stage.takes != have:
            takes = f"{stage.name} takes {FORM_TEXTS[stage.takes]}"
            raise UsageError(f"Chain '{text}' has {stage.name} where there is {FORM_TEXTS[have]}: {takes}.")
        have = stage.gives
    if gradient is not None and gradient not in GRADIENTS:
        raise UsageError(f"--gradient '{gradient}' is not one of {', '.join(GRADIENTS)}.")
    found = Chain(name, names, gradient or "l1")
    if gradient is not None and not found.has_gradient:
        raise UsageError(f"--gradient does not apply to '{name}', which has no gradient: leave it out.")
    if not found.has_hysteresis:
        if rule is not None or low is not None or high is not None:
            raise UsageError(f"Thresholds do not apply to '{name}', which has no hysteresis: leave them out.")
        return found
    if rule is not None and rule not in THRESHOLD_RULES:
        raise UsageError(f"Thresholds '{rule}' are not {listed(THRESHOLD_RULES)}, or two numbers.")
    if (low is None) != (high is None):
        raise UsageError(f"'{name}' needs both thresholds, lower and upper, or neither.")
    if low is None or high is None:
        return replace(found, rule=rule or DEFAULT_RULE)
    if rule is not None:
        raise UsageError(f"Use either thresholds as numbers or the rule '{rule}', not both.")
    for which, value in (("lower", low), ("upper", high)):
        if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= value <= sys.float_info.max:
            raise UsageError(f"The {which} threshold of canny is {value!r}: give a finite number from 0.")
    return replace(found, low=float(min(low, high)), high=float(max(low, high)))


def parse_thresholds(text: str | None) -> dict[str, Any]:
    """`50,150`, `median` or `otsu` as arguments of `make_chain`; nothing where nothing was written."""
    if text is None:
        return {}
    if text in THRESHOLD_RULES:
        return {"rule": text}
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        rules = listed(THRESHOLD_RULES)
        raise UsageError(f"--thresholds '{text}' is not LOW,HIGH (such as 50,150), {rules}.") from None
    return {"low": low, "high": high}


# --- thresholds that suit a picture -----------------------------------------------------------------------------

STRIP_SAMPLES = 2**18
"""Samples whose levels are counted at once: 2 MB in 64 bits."""

MEDIAN_SHARE = 0.33
"""How far the thresholds of the median rule lie below and above it."""


def automatic_thresholds(rule: ThresholdRule, picture: Any, xp: Any = np) -> tuple[float, float]:
    """Lower and upper threshold by the levels of a picture, all its channels together, before any smoothing.

    median    67 % and 133 % of the median level, whole numbers (rounded down), the upper one at most white
    otsu      the level that best divides dark from bright (Otsu 1979) is the upper threshold, half of it the lower

    Both are customary for 8-bit pictures and magnitudes |gx| + |gy|; they are levels, taken as magnitudes.
    """
    levels = _histogram(picture, xp)
    if rule == "median":
        below = np.cumsum(levels)
        middle = (below[-1] - 1) // 2, below[-1] // 2
        median = float(np.searchsorted(below, middle, side="right").mean())
        low, high = (1 - MEDIAN_SHARE) * median, (1 + MEDIAN_SHARE) * median
        return float(math.floor(low)), float(min(math.floor(high), levels.size - 1))
    divides = float(_otsu(levels))
    return divides / 2, divides


def _histogram(picture: Any, xp: Any) -> NDArray[np.int64]:
    """How many samples there are of each level."""
    if picture.dtype.name not in CANNY_DTYPES:
        raise UsageError(f"Thresholds by rule need pictures of {listed(CANNY_DTYPES)}, not {picture.dtype.name}.")
    bins = np.iinfo(picture.dtype).max + 1
    samples = xp.ascontiguousarray(picture).reshape(-1)
    if xp is not np:
        return np.asarray(xp.asnumpy(xp.bincount(samples, minlength=bins)), np.int64)
    levels = np.zeros(bins, np.int64)
    paired = samples.size // 2 * 2 if picture.dtype.itemsize == 1 else 0
    for pairs in _strips(samples[:paired].view(np.uint16)):  # two levels at once: half the additions
        both = np.bincount(pairs, minlength=bins * bins).reshape(bins, bins)
        levels += both.sum(axis=0) + both.sum(axis=1)
    for rest in _strips(samples[paired:]):
        levels += np.bincount(rest, minlength=bins)
    return levels


def _strips(samples: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Parts of samples whose copies in 64 bits, which NumPy counts by, stay in the cache."""
    return (samples[start : start + STRIP_SAMPLES] for start in range(0, samples.size, STRIP_SAMPLES))


def _otsu(levels: NDArray[np.int64]) -> int:
    """The first level t for which the variance between samples up to t and above it is largest."""
    count = np.cumsum(levels).astype(np.float64)
    total = np.cumsum(levels * np.arange(levels.size)).astype(np.float64)
    both = count * (count[-1] - count)
    with np.errstate(invalid="ignore", divide="ignore"):
        between = np.where(both > 0, (total[-1] * count - total * count[-1]) ** 2 / both, 0.0)
    return int(between.argmax())


# --- a chain for a picture of one shape --------------------------------------------------------------------------


@dataclass(frozen=True)
class ChainProblem(PictureProblem):
    """A chain for pictures of one shape and type, its thresholds known; made by `chain_problem`."""

    chain: Chain
    output_mode: StoredMode

    @property
    def output_shape(self) -> tuple[int, int, int]:
        """The picture's own while it is one, then of one channel."""
        return (self.height, self.width, self.in_channels if self.chain.gives == "picture" else 1)

    @property
    def output_dtype(self) -> np.dtype[Any]:
        """uint8 of edges, else the picture's own; float32 of `raw`."""
        return chain_output_dtype(self.chain, self.dtype, self.output_mode)


def chain_output_dtype(chain: Chain, dtype: np.dtype[Any], mode: str) -> np.dtype[Any]:
    """The type of what a chain gives for pictures of a type."""
    if chain.has_hysteresis:
        return np.dtype(np.uint8)
    wide = chain.gives == "angles" or (mode == "raw" and chain.has_magnitude)
    return np.dtype(np.float32) if wide else np.dtype(dtype)


def chain_problem(shape: tuple[int, ...], dtype: Any, chain: Chain, output_mode: StoredMode) -> ChainProblem:
    """State the problem for a picture of `shape` (HWC, one or three channels) and `dtype`. Raises UsageError."""
    kind = np.dtype(dtype).newbyteorder("=")
    if kind.name not in CANNY_DTYPES:
        raise UsageError(f"'{chain.name}' needs pictures of {listed(CANNY_DTYPES)}, not {kind.name}.")
    check_shape(shape)
    if chain.has_hysteresis and (chain.low is None or chain.high is None):
        raise UsageError(
            f"Thresholds by the rule '{chain.rule}' depend on the picture, and a plan is made without one: "
            "give both as numbers."
        )
    return ChainProblem(int(shape[0]), int(shape[1]), int(shape[2]), kind, chain, output_mode)


# --- the oracle ---------------------------------------------------------------------------------------------------


def compute(picture: NDArray[Any], problem: ChainProblem) -> NDArray[Any]:
    """The output of a chain (problem.output_shape and type) for a picture (HWC), stage by stage in whole numbers."""
    chain, l2 = problem.chain, problem.chain.l2
    smoothed = _smoothed(picture, chain)
    if not chain.has_gradient:
        return smoothed.reshape(problem.output_shape)
    if chain.has_hysteresis:
        return canny.hysteresis(edge_map(picture, problem)).reshape(problem.output_shape)
    gx, gy = _gradient(smoothed, chain)
    if chain.gives == "angles":
        return np.degrees(np.arctan2(gy, gx)).astype(np.float32).reshape(problem.output_shape)
    sizes = canny.magnitude(gx, gy, l2)
    if chain.gives == "ridges":
        sizes[canny.thin(gx, gy, l2, limits=(0, 0)) == canny.NO_EDGE] = 0
    values = np.sqrt(sizes.astype(np.float64)) if l2 else sizes.astype(np.float64)
    stored: NDArray[Any] = store(values, problem.output_mode, problem.output_dtype)
    return stored.reshape(problem.output_shape)


def compute_rows(picture: NDArray[Any], problem: ChainProblem, start: int, stop: int) -> NDArray[Any]:
    """Rows `start` to `stop` (exclusive) of `compute`, from the rows around them; for a chain without hysteresis."""
    first, last = max(0, start - problem.chain.reach), min(problem.height, stop + problem.chain.reach)
    part = replace(problem, height=last - first)
    return compute(picture[first:last], part)[start - first : stop - first]


def edge_map(picture: NDArray[Any], problem: ChainProblem) -> NDArray[np.uint8]:
    """What hysteresis begins with (H, W): 0 no edge, 1 weak, 2 strong; every pixel depends on those around it alone."""
    chain = problem.chain
    return canny.thin(*_gradient(_smoothed(picture, chain), chain), chain.l2, chain.limits)


def _smoothed(picture: NDArray[Any], chain: Chain) -> NDArray[Any]:
    """The picture (H, W, 1 or 3), without an axis of 1, after the stages that give a picture again."""
    smoothed = picture[:, :, 0] if picture.shape[2] == 1 else picture
    for stage in map(stage_of, chain.stages):
        if stage.gives == "picture":
            smoothed = canny.smooth(smoothed, len(stage.weights))
    return smoothed


def _gradient(smoothed: NDArray[Any], chain: Chain) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The two derivatives by the one stage that gives them."""
    (stage,) = (stage for stage in map(stage_of, chain.stages) if stage.gives == "gradient")
    return canny.gradient(smoothed, chain.l2, stage.weights)
