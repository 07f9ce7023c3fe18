"""What a user asks for, before there is a picture: the same options on the command line and in Python."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, Literal

import numpy as np

from edgeconv.core.chains import Chain, ChainProblem, chain_output_dtype, chain_problem, make_chain
from edgeconv.core.choices import (
    BORDERS,
    CHAINS,
    DEFAULT_BORDER,
    DEFAULT_CHANNELS,
    DEFAULT_FILTER,
    OUTPUT_MODES,
    Border,
    Channels,
    Luma,
    OutputMode,
)
from edgeconv.core.filters import (
    GREY_CHANNELS,
    RGB_CHANNELS,
    Filter,
    custom_filter,
    filter_bank,
    named_filter,
    weight_set,
)
from edgeconv.core.geometry import parse_padding
from edgeconv.core.option import refuse_choice
from edgeconv.core.output import (
    NO_RANGE,
    finite_range,
    full_range,
    least_sample,
    mask,
    range_to_stretch,
    stretch,
    threshold_text,
)
from edgeconv.core.problem import Problem, StoredMode, make_problem, weights_type
from edgeconv.errors import UsageError

LastPasses = Literal["normalize", "threshold", "normalize and threshold"]
"""What comes after the method."""

LEAST_RANGE_ON_GPU = 2.0**-90
"""CuPy's own kernels flush denormal numbers to zero, which affects pictures stretched from a range below this one; such
a small range is stretched on the host."""


@dataclass(frozen=True, eq=False)
class Request:
    """Filter and rules. `output_mode` None means `abs` for whole-number pictures and `raw` for floats."""

    filter: Filter | Chain = field(default_factory=lambda: named_filter(DEFAULT_FILTER))
    channels: Channels = DEFAULT_CHANNELS
    luma: Luma = "bt601"
    stride: int = 1
    padding: int = 1
    border: Border = DEFAULT_BORDER
    output_mode: OutputMode | None = None
    threshold: float | None = None
    """Makes a mask of the finished output (output.py); None for the output itself."""

    def mode_for(self, dtype: Any) -> OutputMode:
        """The output mode that a picture of `dtype` gets."""
        if self.output_mode is not None:
            return self.output_mode
        if self.chain is not None and self.chain.gives == "angles":
            return "raw"
        return "abs" if np.dtype(dtype).kind == "u" else "raw"

    def output_dtype(self, dtype: Any) -> np.dtype[Any]:
        """The type of the finished output of a picture of `dtype`."""
        kind = np.dtype(dtype)
        if isinstance(self.filter, Chain):
            return chain_output_dtype(self.filter, kind, self.mode_for(kind))
        return np.dtype(np.float32) if kind.kind == "u" and self.mode_for(kind) == "raw" else kind

    def output_shape(self, given: tuple[int, ...], computed: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the finished output of an array, or of a file's picture: the one rule for all of them.

        `given` is the shape of the array; `computed` is what a method gives for one picture of it, always height ×
        width × channels (`PictureProblem.output_shape`). A bank has an axis for its outputs, even for one filter.

            given                          one channel          several, or a bank
            (H, W) or (H, W, 3)            (H', W')             (H', W', channels)
            (H, W, 1)                      (H', W', 1)          (H', W', channels)
            (N, H, W, 3)                   (N, H', W')          (N, H', W', channels)
            (N, H, W, 1)                   (N, H', W', 1)       (N, H', W', channels)
        """
        has_axis_of_one = len(given) > 2 and given[-1] == GREY_CHANNELS
        keeps_axis = self.filter.is_bank or computed[-1] > 1 or has_axis_of_one
        return (*given[:-3], *(computed if keeps_axis else computed[:-1]))

    @property
    def chain(self) -> Chain | None:
        """The chain of stages, where the filter is one."""
        return self.filter if isinstance(self.filter, Chain) else None

    @property
    def single_filter(self) -> Filter:
        """The filter; raises UsageError where it is a chain."""
        if isinstance(self.filter, Chain):
            raise UsageError(
                f"'{self.filter.name}' is a chain of stages, and only single filters can be used here: use 'edgeconv "
                "run', 'batch' or 'compare', or edgeconv.canny in Python."
            )
        return self.filter

    @property
    def needs_picture(self) -> bool:
        """Whether something of the request depends on a picture: see `settled`."""
        return self.chain is not None and self.chain.rule is not None

    def settled(self, picture: Any, xp: Any = np) -> Request:
        """The request with what depends on a picture (HWC): the thresholds of a chain that finds them by a rule."""
        chain = self.chain
        return self if chain is None or chain.rule is None else replace(self, filter=chain.settled(picture, xp))

    def picture_problem(self, shape: tuple[int, ...], dtype: Any) -> Problem | ChainProblem:
        """What a method computes for pictures of a shape and type; `normalize` is raw values, and `finish` after it.

        Raises UsageError, also for a threshold that means nothing for this type.
        """
        mode = self.mode_for(dtype)
        stored: StoredMode = "raw" if mode == "normalize" else mode
        problem: Problem | ChainProblem
        if isinstance(self.filter, Chain):
            problem = chain_problem(shape, dtype, self.filter, stored)
        else:
            channels = shape[-1] if len(shape) == 3 else RGB_CHANNELS
            weights = weight_set(self.filter, self.channels, self.luma, channels)
            rules: dict[str, Any] = {"padding": self.padding, "border": self.border, "output_mode": stored}
            problem = make_problem(shape, dtype, weights, stride=self.stride, **rules)
        if self.threshold is not None:
            least_sample(self.threshold, self.output_dtype(problem.dtype))
        return problem

    def problem(self, shape: tuple[int, ...], dtype: Any) -> Problem:
        """The problem of a filter; raises UsageError for a chain too."""
        problem = replace(self, filter=self.single_filter).picture_problem(shape, dtype)
        assert isinstance(problem, Problem)
        return problem

    @property
    def unfinished(self) -> Request:
        """The request for what a method itself gives: raw values in the place of `normalize`, and no mask."""
        mode = "raw" if self.output_mode == "normalize" else self.output_mode
        return replace(self, output_mode=mode, threshold=None)

    def last_passes(self, dtype: Any) -> LastPasses | None:
        """What comes after the method for a picture of `dtype`: `finish`, `mask`, both, or nothing."""
        masks = self.threshold is not None
        if self.mode_for(dtype) == "normalize":
            return "normalize and threshold" if masks else "normalize"
        return "threshold" if masks else None

    def finish(self, out: Any, dtype: Any, xp: Any = np, image: Any = None) -> Any:
        """Apply the second pass of `normalize`; every other mode is already complete. `mask` comes after it.

        The possible rounding error depends on the largest value of `image`. Without it, whole numbers are assumed to
        reach the limit of their type, and floats to be zero.
        """
        kind = np.dtype(dtype)
        if self.mode_for(kind) != "normalize":
            return out
        values = finite_range(out, xp)
        if xp is not np and not values[1] - values[0] >= LEAST_RANGE_ON_GPU:
            host = self.finish(xp.asnumpy(out), dtype, np, None if image is None else xp.asnumpy(image))
            return xp.asarray(host)
        in_channels = RGB_CHANNELS if image is None else image.shape[-1]
        weights = weight_set(self.single_filter, self.channels, self.luma, in_channels).weights.astype(
            weights_type(kind)
        )
        of_type = (0.0, full_range(kind)) if kind.kind == "u" else NO_RANGE
        pixels = of_type if image is None else finite_range(image, xp)
        return stretch(out, *range_to_stretch(values, pixels, weights), kind, xp)

    def mask(self, out: Any, xp: Any = np) -> Any:
        """The finished output as a mask by the threshold, as a new array; the output itself where there is none."""
        return out if self.threshold is None else mask(out, self.threshold, xp)


def make_request(
    filter: Any = DEFAULT_FILTER,
    *,
    channels: str | None = None,
    luma: str = "bt601",
    stride: int = 1,
    padding: int | str = "same",
    border: str = DEFAULT_BORDER,
    output_mode: str | None = None,
    threshold: float | None = None,
) -> Request:
    """Check every option and build the request.

    `filter` is a name of the table, a `Filter`, a list of both (a bank), or nested numbers: 3×3, or K×C×3×3 as (filter,
    input channel, row, column). `channels` None is `usual_channels`. Raises UsageError naming the invalid value and the
    valid ones.
    """
    chosen: Filter | Chain
    if isinstance(filter, str):
        chosen = make_chain(filter) if filter in CHAINS else named_filter(filter)
    elif isinstance(filter, list | tuple) and filter and all(isinstance(each, str | Filter) for each in filter):
        chosen = filter_bank(filter)
    else:
        chosen = filter if isinstance(filter, Filter | Chain) else custom_filter(filter)
    if border not in BORDERS:
        raise refuse_choice("Border", border, BORDERS)
    if output_mode is not None and output_mode not in OUTPUT_MODES:
        raise UsageError(f"Output mode '{output_mode}' is not one of {', '.join(OUTPUT_MODES)}.")
    if isinstance(stride, bool) or not isinstance(stride, int | np.integer) or stride < 1:
        raise UsageError(f"Stride {stride} is not a whole number from 1.")
    is_number = isinstance(threshold, Real) and not isinstance(threshold, bool)
    if threshold is not None and not (is_number and 0 < threshold <= sys.float_info.max):
        raise UsageError(f"Threshold {threshold} is not a number above 0.")
    request = Request(
        filter=chosen,
        channels=usual_channels(chosen) if channels is None else channels,  # type: ignore[arg-type]  # by weight_set
        luma=luma,  # type: ignore[arg-type]
        stride=int(stride),
        padding=parse_padding(padding),
        border=border,
        output_mode=output_mode,
        threshold=None if threshold is None else float(threshold),
    )
    if isinstance(chosen, Chain):
        _refuse_rules(chosen, request)
    else:
        weight_set(chosen, request.channels, request.luma)
    return request


def usual_channels(chosen: Filter | Chain) -> Channels:
    """What `channels` is unless it is said."""
    return "mix" if isinstance(chosen, Chain) or chosen.is_full_set else DEFAULT_CHANNELS


def _refuse_rules(chain: Chain, request: Request) -> None:
    """Raise UsageError for a rule that does not apply to a chain, whose stages have borders of their own."""
    plain = Request(channels=usual_channels(chain))
    for name in ("channels", "luma", "stride", "padding", "border"):
        value = getattr(request, name)
        if value != getattr(plain, name):
            why = " (of RGB the channel of the largest gradient counts)" if name in ("channels", "luma") else ""
            raise UsageError(
                f"--{name} {value} does not apply to '{chain.name}', a chain of stages{why}: leave it out."
            )
    if request.output_mode == "normalize":
        raise UsageError(f"--output-mode normalize does not apply to '{chain.name}': use abs, clip or raw.")
    if not chain.has_magnitude:
        for option, given in (("--output-mode", request.output_mode), ("--threshold", request.threshold)):
            text = threshold_text(given) if isinstance(given, float) else given
            if given is not None and (option == "--output-mode" or chain.gives != "picture"):
                hint = option == "--threshold" and chain.has_hysteresis
                other = " (--thresholds are those of its hysteresis)" if hint else ""
                raise UsageError(f"{option} {text} does not apply to '{chain.name}'{other}: leave it out.")
