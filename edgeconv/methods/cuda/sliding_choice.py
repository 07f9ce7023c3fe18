"""Which kernel of CUDA `sliding` takes a problem, and how strips sum it: decided once for a plan (`choose_strips`).

    fma       float32 multiply-adds: everything that float32 holds
    fma64     the same in float64: float64 pictures, and sums that float32 does not hold (exactness.py)
    dp4a      exact integers, four products an instruction: 8-bit pictures with whole weights from -127 to 127
    mma       the tensor cores: the same pictures where dp4a alone would be slower than memory (exact 32-bit sums);
              8-bit pictures with other weights, each a whole number as two halves (exact sums of each), and float16
              pictures, each weight as two halves (float32 sums)
    planes    one filter for every plane by a form of core/lowering.py, float32: the largest of eight directions,
              magnitudes of 16 bits, and channels that are added before they are filtered
    planes64  the same in float64, of float64 pictures, and of whole numbers where channels are blended

A plane is what a lane holds one sample of: a channel, the sum of a pixel's channels, or their luma. Float pictures take
forms too: where a form's sums overflow, or an infinity less itself is not a number, the output is not finite and is
computed again by the plain sum (mend.cuh). sliding_forms.cuh computes what is decided here.

The maximum of eight directions that are not one filter for every plane, or of whole numbers whose sums float32 does not
hold, is not for strips: the direct kernel computes it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.exactness import (
    HALVES_STEP,
    MOST_LEVELS_OFF,
    TWOFOLD_HALF,
    WHOLE,
    WHOLE_HALVES,
    Arithmetic,
    bound,
    is_whole,
    own_arithmetic,
    sums_for,
)
from edgeconv.core.filters import RGB_CHANNELS, Weights
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.lowering import Ring, gradient, lower
from edgeconv.core.problem import Problem

FormMacro = Literal["taps", "gradient", "ring_of_three", "ring_of_differences"]
"""The values of the macro FORM."""
StripArithmetic = Literal["fma", "fma64", "dp4a", "mma", "planes", "planes64"]

INT8_LARGEST = 127
SHORT_LARGEST = 20_000
"""Two squares of no more, added to the bits of 2^23, are the bits of a finite float (sliding.cu, length_byte)."""

WEIGHT_BITS, LOW_HALF = 22, 2048
"""Weights with fractions, of 8-bit pictures, become whole numbers of 22 bits: LOW_HALF times a half, plus another."""

LARGEST_STRIP_STRIDE = 6
"""Beyond it the gaps between windows, which strips read too, cost more than they save: one thread per output pixel."""

MOST_STRIP_OUTPUTS = 8
"""Outputs whose sums of all rows under way a thread can hold; a bank of more, and some of as many, are for
sliding_bank.cu."""

LEAST_WEIGHT = 2.0**-30
"""Of forms with shares: see `_keeps_scale`."""
SHARE_EXPONENTS = {"float32": 126, "float64": 1022}
"""What shares are scaled by, by the type of sums, as sliding_forms.cuh takes the bits of a whole number for a float."""
MOST_KERNELS = 8
"""Of a filter without a ring: compass directions."""

DIRECT_PIXELS, DIRECT_FLOAT_PIXELS = 2**16, 2**18
"""Up to this number of output pixels one thread per pixel was faster (256², 512²); the second for float32 and float64
at stride 2."""
DIRECT_BANK = {1: 2**21, 3: 2**23}
"""By the channels that an output sums: a limit of output pixels times the square of their outputs, of all channels
together. Up to it one thread per pixel computes the outputs in turn, in several launches where they are many. Fitted to
float32 banks of 3 to 256 filters at strides 1 to 3."""


@dataclass(frozen=True, eq=False)
class PlaneForm:
    """One filter for every plane, and by which form it is computed."""

    form: FormMacro
    shares: tuple[float, ...]
    """Of each channel in the one plane; all 1 for their plain sum. Empty: the channels are the planes."""
    kernels: Weights
    """(directions, 3, 3) of taps; else empty."""
    near: float
    """Of a ring as in core.lowering.Ring; of a gradient the weight beside the middle one."""
    far: float
    """Of a ring as in core.lowering.Ring; of a gradient the middle weight."""
    names: tuple[str, ...]
    """The lines of the table in core/lowering.py that are taken."""
    by_size: bool
    """Of the largest of several responses: whether their sizes are meant, each of which stands for two."""
    arithmetic: Arithmetic
    """Of its sums."""
    share_exponent: int = 0
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


@dataclass(frozen=True, eq=False)
class Strips:
    """How strips sum a problem."""

    problem: Problem
    sums: StripArithmetic
    form: PlaneForm | None
    """The form that is taken; None where other arithmetic is as fast or faster."""
    whole_bytes: bool
    """Whether an 8-bit picture and its weights allow exact integer sums."""

    @property
    def is_reordered(self) -> bool:
        """Whether it adds in another order than the plain sum: inexact sums differ from it by roundings."""
        return self.sums in ("mma", "planes", "planes64")

    @property
    def is_wide(self) -> bool:
        """Whether it sums in float64."""
        return self.sums in ("fma64", "planes64")

    @property
    def mends(self) -> bool:
        """Whether outputs that are not finite are computed again, by the plain sum (mend.cuh)."""
        return self.is_reordered and self.problem.dtype.kind == "f"

    @property
    def arithmetic(self) -> Arithmetic:
        """What errors follow from."""
        if self.sums == "mma" and not self.whole_bytes:
            return TWOFOLD_HALF if self.problem.dtype == np.float16 else WHOLE_HALVES
        if self.sums in ("dp4a", "mma"):
            return WHOLE
        return own_arithmetic(self.problem) if self.form is None else self.form.arithmetic

    @property
    def macros(self) -> tuple[tuple[str, str | int], ...]:
        """What sliding.cu is compiled with for it."""
        whole = self.whole_bytes and self.sums in ("dp4a", "mma")
        set_ones = {
            "USES_MMA": self.sums == "mma",
            "WHOLE_WEIGHTS": whole,
            "SHORT_SUMS": whole and self.sums == "mma" and has_short_sums(self.problem),
            "MENDS": self.mends,
        }
        flags = tuple((name, 1) for name, is_set in set_ones.items() if is_set)
        return flags if self.form is None else (*flags, *self.form.macros)


def choose_strips(problem: Problem) -> Strips | None:
    """How sliding.cu sums a problem; None where another kernel computes it.

    It takes windows that are not far apart, two directions or a ring, and few outputs.
    """
    outputs = problem.output_channels
    many = problem.dtype == problem.output_dtype == np.float32  # two pixels of such a bank are whole words
    in_one_pass = problem.groups == 1 or outputs == problem.in_channels
    few = outputs <= (MOST_STRIP_OUTPUTS if many else RGB_CHANNELS) and not (many and _suits_bank(problem))
    if not in_one_pass or not few or problem.stride > LARGEST_STRIP_STRIDE:
        return None
    whole_bytes = _has_int8_weights(problem)
    form = _form_for(problem, whole_bytes)
    if form is None and problem.combine == "maximum":
        return None
    return Strips(problem, _sums(problem, form, whole_bytes), form, whole_bytes)


def _has_int8_weights(problem: Problem) -> bool:
    """Whether an 8-bit picture has whole weights that signed bytes hold."""
    weights = problem.weights
    whole = np.array_equal(weights, np.rint(weights)) and float(np.abs(weights).max()) <= INT8_LARGEST
    return problem.dtype == np.uint8 and whole


def has_short_sums(problem: Problem) -> bool:
    """Whether an 8-bit picture's two responses are both at most SHORT_LARGEST in size."""
    taps = problem.weights.reshape(problem.directions, problem.output_channels, -1)
    largest = max(float(np.where(taps * sign > 0, taps * sign, 0).sum(axis=-1).max()) for sign in (1, -1))
    limit = np.iinfo(np.uint8).max * largest
    return problem.dtype == np.uint8 and problem.directions == 2 and limit <= SHORT_LARGEST


def halves(weights: NDArray[np.float32]) -> NDArray[np.float16]:
    """Each weight as the sum of two halves, high and low part: (2, ...)."""
    with np.errstate(over="ignore"):
        high = weights.astype(np.float16)
        low = (weights - high.astype(np.float32)).astype(np.float16)
    return np.stack([high, low])


def weight_step(problem: Problem) -> float:
    """What whole numbers of `WEIGHT_BITS` that stand for weights are multiples of: a power of two."""
    exponent = int(np.frexp(float(np.abs(problem.weights).max()))[1])
    return float(np.ldexp(1.0, exponent - WEIGHT_BITS))


def weights_in_halves(problem: Problem) -> NDArray[np.float16]:
    """What the tensor cores multiply by for each weight: (2, *problem.dense_weights().shape).

    float16 pictures: halves whose sum is the weight. 8-bit pictures: a whole number of steps, divided by `LOW_HALF`.
    """
    dense = problem.dense_weights()
    if problem.dtype == np.float16:
        return halves(dense)
    steps = np.rint(dense.astype(np.float64) / weight_step(problem))
    high = np.rint(steps / LOW_HALF)
    return np.stack([high, steps - high * LOW_HALF]).astype(np.float16)


def _keeps_weights(problem: Problem) -> bool:
    """Whether two halves for each weight keep what float32 sums would show, so that the tensor cores may take them."""
    if problem.dtype == np.uint8:  # magnitudes of such weights are faster without
        is_single = problem.groups == problem.directions == 1
        return is_single and float(bound(problem, WHOLE_HALVES).max()) <= MOST_LEVELS_OFF
    if problem.dtype != np.float16:
        return False
    high, low = halves(problem.weights).astype(np.float64)
    largest = np.abs(problem.weights).max(axis=(2, 3, 4), keepdims=True)  # of each direction and output by itself
    with np.errstate(invalid="ignore"):
        return bool(np.all(np.abs(high + low - problem.weights) <= largest * HALVES_STEP))


def _sums(problem: Problem, form: PlaneForm | None, whole_bytes: bool) -> StripArithmetic:
    """The arithmetic of strips, with the form that they take."""
    if form is not None:
        return "planes64" if form.kernels.dtype == np.float64 else "planes"
    if sums_for(problem) == "float64":
        return "fma64"
    if whole_bytes:  # dp4a alone is as fast as memory for one 3×3 kernel per channel
        return "mma" if _fits_fragments(problem) and (problem.groups == 1 or problem.directions > 1) else "dp4a"
    return "mma" if _fits_fragments(problem) and _keeps_weights(problem) else "fma"


def _fits_fragments(problem: Problem) -> bool:
    """Whether the tensor cores' matrices have the places of its samples."""
    of_three = problem.stride == 1 and problem.output_channels == problem.in_channels == RGB_CHANNELS
    return of_three and problem.dtype.itemsize == problem.output_dtype.itemsize


def _saves_of_floats(problem: Problem) -> bool:
    """Whether a form may save time of a float picture without a maximum: what memory bounds, or tensor cores do, has no
    time to save.
    """
    few_products = problem.combine == "single" or problem.weights.shape[2] == 1
    return not (few_products or (_fits_fragments(problem) and _keeps_weights(problem)))


def _sums_as_wide_as_samples(problem: Problem) -> bool:
    """Whether sums have the samples' width: not those of whole numbers that need float64."""
    return problem.dtype == np.float64 or sums_for(problem) == "float32"


def _form_for(problem: Problem, whole_bytes: bool) -> PlaneForm | None:
    """The form that strips take; None where other arithmetic is as fast or faster."""
    if not _sums_as_wide_as_samples(problem):  # what saves most is taken: one sum of channels for nine
        blended = plane_form(problem) if problem.combine != "maximum" else None
        return blended if blended is not None and blended.has_shares else None
    if problem.combine == "single" and (problem.groups > 1 or (whole_bytes and problem.stride == 1)):
        return None
    if problem.combine == "magnitude" and whole_bytes and problem.weights.shape[2] == 1:
        return None
    if problem.dtype.kind == "f" and problem.combine != "maximum" and not _saves_of_floats(problem):
        return None
    return plane_form(problem)


def plane_form(problem: Problem) -> PlaneForm | None:
    """The problem as one filter for every plane, where it is that and a form is taken; else None."""
    left, floats = lower(problem, recomputes=True, banks=False), problem.dtype.kind == "f"
    if len(left.results) > 1 or not (left.flat or left.collapsed) or problem.output_channels > RGB_CHANNELS:
        return None
    if left.shares and not _keeps_scale(problem.weights):
        return None
    shares = left.shares or ((1.0,) * problem.in_channels if left.collapsed else ())
    names = left.forms
    form: FormMacro = "taps"
    real = np.dtype(np.float64) if left.sums == "float64" else problem.weights.dtype
    kernels, near, far = np.empty((0, KERNEL_SIZE, KERNEL_SIZE), real), 0.0, 0.0
    (result,) = left.results
    if isinstance(result, Ring):
        form = "ring_of_differences" if result.of_differences else "ring_of_three"
        near, far = result.near, result.far
    else:
        taps = left.kernels_of(result)[:, 0].astype(real)
        pair = gradient(taps, left.roundings_left, inexact_samples=floats or bool(left.shares))
        if pair is not None and problem.combine != "maximum":
            form, (near, far), names = "gradient", pair, (*names, "gradient")
            if left.shares and not floats:
                shares, (near, far) = _shares_of_unit(problem.weights, shares, near, far)
        elif 1 < len(taps) <= MOST_KERNELS if problem.combine == "maximum" else left.collapsed:
            kernels = taps
        else:
            return None
    arithmetic = own_arithmetic(problem) if is_whole(problem) else left.arithmetic
    found = PlaneForm(form, shares, kernels, near, far, names, left.by_size, arithmetic)
    return _of_floats(found) if floats else replace(found, share_exponent=SHARE_EXPONENTS[real.name])


def _of_floats(form: PlaneForm) -> PlaneForm:
    """The filter with shares that make its weights less than 1 in size.

    The kernel then makes no larger what denormal numbers lose in the sum of the channels. Shares may overflow for that.
    """
    if not form.has_shares:
        return form
    largest = max(abs(form.near), abs(form.far), float(np.abs(form.kernels).max(initial=0)))
    exponent = max(0, int(np.frexp(largest)[1]))
    near, far = (float(np.ldexp(weight, -exponent)) for weight in (form.near, form.far))
    kernels = np.ldexp(form.kernels, -exponent)
    return replace(form, near=near, far=far, kernels=kernels, share_exponent=exponent)


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


def _suits_bank(problem: Problem) -> bool:
    """Whether a bank that a thread could hold is faster by the lanes of a warp: measured on one NVIDIA H200."""
    is_full = problem.output_channels == MOST_STRIP_OUTPUTS and problem.groups == problem.directions == 1
    return is_full and problem.stride == (1 if problem.in_channels == 1 else 2)


def overlaps(problem: Problem) -> bool:
    """Whether windows of one or two directions share samples, or touch."""
    near = problem.stride <= KERNEL_SIZE
    return near and problem.combine != "maximum" and _sums_as_wide_as_samples(problem)


def is_small(problem: Problem, strips: Strips | None) -> bool:
    """Whether one thread per pixel is faster than `strips`, or the bank's kernel, and stores the same bytes.

    It does where sums are exact, and in multiply-adds, as both add in the same order.
    """
    if strips is not None and strips.is_reordered and not is_whole(problem):
        return False
    is_wide = problem.dtype in (np.float32, np.float64) and problem.stride == 2
    limit = DIRECT_FLOAT_PIXELS if is_wide else DIRECT_PIXELS
    if problem.output_channels > RGB_CHANNELS or problem.output_channels > problem.in_channels:
        limit = min(limit, DIRECT_BANK[problem.weights.shape[2]] // problem.output_channels**2)
    return problem.output_height * problem.output_width <= limit
