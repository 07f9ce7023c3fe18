"""Which forms of core/forms.py the strips of CUDA `sliding` take: problems that are one filter for every plane.

    planes    a float32 lane holds one sample of a plane: a channel, the sum of a pixel's channels, or their luma;
              of a float64 picture a float64 lane

Float pictures take them too: where a form's sums overflow, or an infinity less itself is no number, the output is not
finite and is computed again by the plain sum (mend.cuh). sliding_forms.cuh computes what is decided here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgeconv.core import forms
from edgeconv.core.filters import RGB_CHANNELS, Weights
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.lowering import lower
from edgeconv.core.problem import Problem

FormMacro = Literal["taps", "gradient", "ring_of_three", "ring_of_differences"]
"""The values of the macro FORM."""

LEAST_WEIGHT = 2.0**-30
SHARE_EXPONENT = 126
"""What shares are scaled by, as sliding_forms.cuh takes the bits of a whole number for a float."""
MOST_KERNELS = 8
"""Of a filter without a ring: compass directions."""


@dataclass(frozen=True, eq=False)
class PlaneFilter:
    """One filter for every plane, and how it is computed."""

    form: FormMacro
    shares: tuple[float, ...]
    """Of each channel in the one plane; all 1 for their plain sum. Empty: the channels are the planes."""
    kernels: Weights
    """(directions, 3, 3) of taps; else empty."""
    near: float
    """Of a ring as in forms.Ring; of a gradient the weight beside the middle one."""
    far: float
    """Of a ring as in forms.Ring; of a gradient the middle weight."""
    names: tuple[forms.FormName, ...]
    """The lines of the table in core/forms.py that are taken."""
    by_size: bool = False
    """Of the largest of several responses: whether their sizes are meant, each of which stands for two."""
    share_exponent: int = SHARE_EXPONENT
    """What shares are scaled by, as powers of two."""

    @property
    def has_shares(self) -> bool:
        """Whether the plane is a weighted sum of the channels, and not a plain one."""
        return bool(set(self.shares) - {1.0})

    @property
    def macros(self) -> tuple[tuple[str, str | int], ...]:
        """What sliding.cu is compiled with."""
        of_sum = 0 if not self.shares else 2 if self.has_shares else 1
        one_beside = self.form == "gradient" and self.near == 1
        return (
            ("FORM", self.form),
            *((("CHANNEL_SUM", of_sum),) if of_sum else ()),
            *((("ONE_BESIDE", 1),) if one_beside else ()),
            *((("BY_SIZE", 1),) if self.by_size else ()),
        )


def plane_filter(problem: Problem) -> PlaneFilter | None:
    """The problem as one filter for every plane, where it is that and a form is taken; else None."""
    left, floats = lower(problem, recomputes=True, banks=False), problem.dtype.kind == "f"
    if len(left.results) > 1 or not (left.flat or left.collapsed) or problem.output_channels > RGB_CHANNELS:
        return None
    if left.shares and not _keeps_scale(problem.weights):
        return None
    names = tuple(name for name in left.forms if name != "equal taps")
    shares = left.shares or ((1.0,) * problem.in_channels if left.collapsed else ())
    empty = np.empty((0, KERNEL_SIZE, KERNEL_SIZE), problem.weights.dtype)
    (result,) = left.results
    if isinstance(result, forms.Ring):
        form: FormMacro = "ring_of_differences" if result.of_differences else "ring_of_three"
        found = PlaneFilter(form, shares, empty, result.near, result.far, names)
        return _of_floats(found) if floats else found
    kernels = left.kernels_of(result)[:, 0].astype(problem.weights.dtype)
    taps = PlaneFilter("taps", shares, kernels, 0.0, 0.0, names, left.by_size)
    if problem.combine == "maximum":
        if not 1 < len(kernels) <= MOST_KERNELS:
            return None
        return _of_floats(taps) if floats else taps
    gradient = forms.gradient(kernels, left.roundings_left, inexact_samples=floats or bool(left.shares))
    if gradient is not None:
        if left.shares and not floats:
            shares, gradient = _shares_of_unit(problem.weights, shares, *gradient)
        taps = PlaneFilter("gradient", shares, empty, *gradient, (*names, "gradient"))
    elif not left.collapsed:
        return None
    return _of_floats(taps) if floats else taps


def _of_floats(filter_: PlaneFilter) -> PlaneFilter:
    """The filter with shares that make its weights less than 1 in size.

    The kernel then makes no larger what denormal numbers lose in the sum of the channels. Shares may overflow for that.
    """
    if not filter_.has_shares:
        return filter_
    largest = max(abs(filter_.near), abs(filter_.far), float(np.abs(filter_.kernels).max(initial=0)))
    exponent = max(0, int(np.frexp(largest)[1]))
    near, far = (float(np.ldexp(weight, -exponent)) for weight in (filter_.near, filter_.far))
    kernels = np.ldexp(filter_.kernels, -exponent)
    return replace(filter_, near=near, far=far, kernels=kernels, share_exponent=exponent)


def _keeps_scale(weights: Weights) -> bool:
    """Whether values times VALUE_SCALE of sliding_forms.cuh, and their squares, neither overflow nor vanish."""
    sizes = np.abs(weights[weights != 0])
    return bool(sizes.min() >= LEAST_WEIGHT and sizes.max() <= 1 / LEAST_WEIGHT)


def _shares_of_unit(
    weights: Weights, shares: tuple[float, ...], beside: float, middle: float
) -> tuple[tuple[float, ...], tuple[float, float]]:
    """Shares that make the weight beside the middle one 1, where they give all weights exactly; else as they are."""
    corners = weights[0, 0, :, 0, 2].astype(np.float64)
    ratio = float(np.float32(middle / beside))
    across = np.outer((1, ratio, 1), (-1, 0, 1))
    exact = np.stack([across, across.T])[:, np.newaxis, np.newaxis] * corners[:, np.newaxis, np.newaxis]
    if (exact == weights).all() and np.abs(corners).max() <= 1:
        return tuple(map(float, corners)), (1.0, ratio)
    return shares, (beside, middle)


def form_weights(filter_: PlaneFilter) -> NDArray[Any]:
    """The struct `Weights` of sliding_forms.cuh, as 32-bit words."""
    real = filter_.kernels.dtype
    shares = (*filter_.shares, 0.0, 0.0, 0.0)[:RGB_CHANNELS]
    pair = np.array((filter_.near, filter_.far), real)
    kernels = np.zeros((MOST_KERNELS, KERNEL_SIZE, KERNEL_SIZE), real)
    kernels[: len(filter_.kernels)] = filter_.kernels
    scaled = np.ldexp(np.array(shares, real), filter_.share_exponent)
    floats = np.concatenate([scaled, pair]).view(np.uint32)
    return np.concatenate([floats, kernels.reshape(-1).view(np.uint32)])
