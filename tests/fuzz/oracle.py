"""What a right output is, computed without a line of the package: for every sample the least and greatest right value.

    whole-number pictures, whole weights     exact int64 sums; magnitudes by integer square roots; one right value
    everything else                          sums in float64 (longdouble to judge float64 by), and a forward error bound
                                             of the method's arithmetic, for each sample, output channel and direction

    float32 sums of n terms      |error| ≤ n·2⁻²⁴·1.01·Σ|w||x| + n·2⁻¹⁴⁹
    storing                      both ends are stored by the output's own rule, which is monotone: rounding to nearest,
                                 ties to even, then clipping, or the cast to float32 or float16
    NaN and infinity             reach the outputs in whose window they lie under a nonzero weight, and no other;
                                 under a zero weight anything goes
    free                         samples of which nothing is promised: partial sums past the arithmetic's range

Filters, luma shares and border rules are typed in anew here. The only import is NumPy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

REAL = np.longdouble
"""80-bit floats on x86, 64 bits of mantissa: for methods that sum in float64 themselves. Sums in float64, which take a
tenth of the time, are more than good enough to judge float32 by: their own error is added to the bound."""
SUM_ERROR_FLOAT64 = 28 * 2.0**-53


def _kernels(*texts: str) -> np.ndarray:
    return np.array([[[float(cell) for cell in row.split()] for row in text.split("/")] for text in texts])


SINGLE = {
    "laplacian4": "0 1 0 / 1 -4 1 / 0 1 0",
    "laplacian8": "1 1 1 / 1 -8 1 / 1 1 1",
    "sobel-x": "-1 0 1 / -2 0 2 / -1 0 1",
    "sobel-y": "-1 -2 -1 / 0 0 0 / 1 2 1",
    "scharr-x": "-3 0 3 / -10 0 10 / -3 0 3",
    "scharr-y": "-3 -10 -3 / 0 0 0 / 3 10 3",
    "prewitt-x": "-1 0 1 / -1 0 1 / -1 0 1",
    "prewitt-y": "-1 -1 -1 / 0 0 0 / 1 1 1",
    "sharpen": "0 -1 0 / -1 5 -1 / 0 -1 0",
    "emboss": "-2 -1 0 / -1 1 1 / 0 1 2",
    "identity": "0 0 0 / 0 1 0 / 0 0 0",
}
MAGNITUDE = {name: (SINGLE[f"{name}-x"], SINGLE[f"{name}-y"]) for name in ("sobel", "scharr", "prewitt")}
COMPASS = {
    "kirsch": (
        "5 5 5 / -3 0 -3 / -3 -3 -3",
        "-3 5 5 / -3 0 5 / -3 -3 -3",
        "-3 -3 5 / -3 0 5 / -3 -3 5",
        "-3 -3 -3 / -3 0 5 / -3 5 5",
        "-3 -3 -3 / -3 0 -3 / 5 5 5",
        "-3 -3 -3 / 5 0 -3 / 5 5 -3",
        "5 -3 -3 / 5 0 -3 / 5 -3 -3",
        "5 5 -3 / 5 0 -3 / -3 -3 -3",
    ),
    "robinson": (
        "1 2 1 / 0 0 0 / -1 -2 -1",
        "0 1 2 / -1 0 1 / -2 -1 0",
        "-1 0 1 / -2 0 2 / -1 0 1",
        "-2 -1 0 / -1 0 1 / 0 1 2",
        "-1 -2 -1 / 0 0 0 / 1 2 1",
        "0 -1 -2 / 1 0 -1 / 2 1 0",
        "1 0 -1 / 2 0 -2 / 1 0 -1",
        "2 1 0 / 1 0 -1 / 0 -1 -2",
    ),
}
NAMED = (*SINGLE, *MAGNITUDE, *COMPASS)

LUMA = {"bt601": (0.299, 0.587, 0.114), "bt709": (0.2126, 0.7152, 0.0722)}


@dataclass(frozen=True)
class Arithmetic:
    """How a method computes, as far as its errors go."""

    unit: float = 2.0**-24
    """Relative error of one rounding."""
    least: float = 2.0**-149
    """Absolute error of one rounding among denormals."""
    largest: float = float(np.finfo(np.float32).max)
    """Partial sums beyond it promise nothing."""
    operand: float = 0.0
    """Relative error of picture samples and weights before they are multiplied."""
    operand_least: float = 0.0
    """The same, absolute."""
    weight_share: float = 0.0
    """What a weight may lose, as a share of the largest of its output channel and direction."""
    extra_roundings: int = 1
    """Beside one a term."""
    whole_is_exact: bool = True
    """Whole-number pictures with whole weights give the exact result."""
    stores_half: bool = False
    """Responses pass through float16."""
    most_off: float = 2.0**-6
    """Of an integer output of fractional weights, before it is rounded: more than that is computed in float64."""
    multiplies_zeros: bool = False
    """A vendor's dense product: channels that do not meet are multiplied by zeros, which a NaN survives."""


FLOAT32 = Arithmetic()
FLOAT64 = Arithmetic(unit=2.0**-53, least=2.0**-1074, largest=float(np.finfo(np.float64).max))
VENDOR_FLOAT32 = replace(FLOAT32, whole_is_exact=False, most_off=math.inf, multiplies_zeros=True)
TWOFOLD_HALF = replace(FLOAT32, unit=2.0**-23, weight_share=2.0**-21, extra_roundings=9)
"""float16 pictures on tensor cores: weights as two halves, products exact, sums that may cut instead of round."""
WHOLE_HALVES = replace(FLOAT32, weight_share=2.0**-22)
"""8-bit pictures on tensor cores: weights brought to whole numbers of 22 bits, sums exact."""
VENDOR_TF32 = replace(VENDOR_FLOAT32, unit=2.0**-23, operand=2.0**-10, operand_least=2.0**-126, extra_roundings=9)
VENDOR_HALF = replace(VENDOR_TF32, operand=2.0**-11, operand_least=2.0**-25, stores_half=True, largest=65504.0)

EXACT_LARGEST = 2**53
"""Whole sums are promised to be exact as far as float64 or a 64-bit integer holds every partial one."""


@dataclass(frozen=True)
class Asked:
    """One convolution in plain words. `kernels` is (directions, 3, 3), or (1, out, in, 3, 3)."""

    kernels: np.ndarray
    combine: str = "single"
    channels: str = "mix"
    luma: str = "bt601"
    stride: int = 1
    padding: int = 1
    border: str = "zero"
    mode: str | None = None

    def mode_for(self, dtype: np.dtype) -> str:
        return self.mode or ("abs" if dtype.kind == "u" else "raw")

    def output_dtype(self, dtype: np.dtype) -> np.dtype:
        if dtype.kind == "u" and self.mode_for(dtype) == "raw":
            return np.dtype(np.float32)
        return np.dtype(dtype.name)

    def output_shape(self, height: int, width: int) -> tuple[int, int, int]:
        rows, columns = ((side + 2 * self.padding - 3) // self.stride + 1 for side in (height, width))
        return rows, columns, 1 if self.channels == "luma" else 3

    def dense(self) -> tuple[np.ndarray, np.ndarray]:
        """float32 weights as (directions, out, row, column, in), and (out, in): which channels an output belongs to."""
        kernels, everywhere = self.kernels, np.ones((3, 3), bool)
        if kernels.ndim == 5:
            return kernels.transpose(0, 1, 3, 4, 2).astype(np.float32), everywhere
        if self.channels == "mix":
            full = np.broadcast_to(kernels[:, None, :, :, None], (len(kernels), 3, 3, 3, 3))
            return full.astype(np.float32), everywhere
        if self.channels == "each":
            full = kernels[:, None, :, :, None] * np.eye(3)[None, :, None, None, :]
            return full.astype(np.float32), np.eye(3, dtype=bool)
        full = kernels[:, None, :, :, None] * np.array(LUMA[self.luma])
        return full.astype(np.float32), everywhere[:1]


def named(name: str) -> tuple[np.ndarray, str]:
    """The kernels of a filter of the table, and how its directions are joined."""
    if name in SINGLE:
        return _kernels(SINGLE[name]), "single"
    if name in MAGNITUDE:
        return _kernels(*MAGNITUDE[name]), "magnitude"
    return _kernels(*COMPASS[name]), "maximum"


@dataclass(frozen=True)
class Expected:
    """For every output sample the least and greatest right value, and where other rules hold."""

    low: np.ndarray
    high: np.ndarray
    not_finite: np.ndarray
    """True where the output must be NaN or infinite."""
    free: np.ndarray
    """True where anything goes."""
    exact: bool

    def wrong(self, got: np.ndarray) -> np.ndarray:
        """Which samples of `got` are wrong."""
        with np.errstate(invalid="ignore"):
            inside = (got >= self.low) & (got <= self.high)  # False for NaN
        right = np.where(self.not_finite, ~np.isfinite(got), inside)
        return ~(right | self.free)

    def describe_first(self, got: np.ndarray, wrong: np.ndarray) -> str:
        """The first wrong sample with its value and the right ones."""
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        if self.not_finite[place]:
            right = "NaN or infinity, which its window holds"
        elif self.low[place] == self.high[place]:
            right = f"{self.low[place]:.9g}"
        else:
            right = f"{self.low[place]:.9g} to {self.high[place]:.9g}"
        return f"{int(wrong.sum())} wrong of {wrong.size}, first at {place}: {got[place]:.9g}, right is {right}"


def expect(image: np.ndarray, asked: Asked, arithmetic: Arithmetic = FLOAT32) -> Expected:
    """The right outputs for a picture (HWC)."""
    dtype, mode = image.dtype, asked.mode_for(image.dtype)
    if mode == "normalize":
        return _normalized(expect(image, replace(asked, mode="raw"), arithmetic), image, asked)
    shape = asked.output_shape(*image.shape[:2])
    weights, meets = asked.dense()
    directions, outputs = weights.shape[:2]
    matrix = weights.reshape(directions * outputs, 27).T
    window = _windows(image, asked, shape)

    samples = (len(window), directions, outputs)
    if dtype.kind == "u" and _is_whole(matrix, dtype) and arithmetic.whole_is_exact:
        sums = (window.astype(np.int64) @ matrix.astype(np.int64)).reshape(samples)
        low, high = _joined_exactly(sums, asked, mode)
        nothing = np.zeros(low.shape, bool)
        found = Expected(low, high, nothing, nothing, exact=asked.combine != "magnitude" or mode != "raw")
    else:
        found = _bounded(window, matrix, meets, samples, asked, arithmetic)
    low, high = found.low, found.high
    if mode == "abs":
        crosses = (low < 0) & (high > 0)
        low, high = np.minimum(abs(low), abs(high)), np.maximum(abs(low), abs(high))
        low = np.where(crosses, 0, low)
    stored = asked.output_dtype(dtype)
    parts = (_stored(low, stored), _stored(high, stored), found.not_finite, found.free)
    return Expected(*(part.reshape(shape) for part in parts), exact=found.exact)


def _positions(size: int, padding: int, border: str) -> np.ndarray:
    """Where each position of a padded side lies; `size` itself stands for a zero."""
    places = []
    for position in (*range(-padding, 0), *range(size, size + padding)):
        if border == "zero":
            place = size
        elif border == "replicate":
            place = min(max(position, 0), size - 1)
        elif border == "reflect":  # … 1 0 | 0 1 2 | 2 1 …
            place = position
            while not 0 <= place < size:
                place = -1 - place if place < 0 else 2 * size - 1 - place
        else:  # reflect101: … 2 1 | 0 1 2 | 1 0 …
            place = position if size > 1 else 0
            while not 0 <= place < size:
                place = -place if place < 0 else 2 * (size - 1) - place
        places.append(place)
    return np.array([*places[:padding], *range(size), *places[padding:]], np.intp)


def _windows(image: np.ndarray, asked: Asked, shape: tuple[int, int, int]) -> np.ndarray:
    """The samples under each output: (outputs, 27) in the order row, column, channel."""
    height, width = image.shape[:2]
    canvas = np.zeros((height + 1, width + 1, 3), image.dtype.newbyteorder("="))
    canvas[:height, :width] = image
    corners = [np.arange(count)[:, None] * asked.stride + np.arange(3) for count in shape[:2]]
    rows = _positions(height, asked.padding, asked.border)[corners[0]]
    columns = _positions(width, asked.padding, asked.border)[corners[1]]
    return canvas[rows[:, None, :, None], columns[None, :, None, :]].reshape(shape[0] * shape[1], 27)


def _is_whole(matrix: np.ndarray, dtype: np.dtype) -> bool:
    if not (matrix == np.rint(matrix)).all():
        return False
    return float(abs(matrix.astype(np.float64)).sum(axis=0).max()) * float(np.iinfo(dtype).max) <= EXACT_LARGEST


def _joined_exactly(sums: np.ndarray, asked: Asked, mode: str) -> tuple[np.ndarray, np.ndarray]:
    if asked.combine == "single":
        return sums[:, 0], sums[:, 0]
    if asked.combine == "maximum":
        return sums.max(axis=1), sums.max(axis=1)
    if mode == "raw":  # a root is no whole number: two float32 steps
        root = np.sqrt(np.square(sums.astype(REAL)).sum(axis=1))
        return root * (1 - REAL(2.0**-22)), root * (1 + REAL(2.0**-22))
    # What is beyond 2^20 is clipped in any case; below, squares add up within 2^41.
    square = np.square(np.clip(sums, -(2**20), 2**20)).sum(axis=1)
    root = np.sqrt(square.astype(np.float64)).astype(np.int64)
    root -= root * root > square
    root += (root + 1) * (root + 1) <= square
    nearest = root + (square > root * root + root)  # (root + 1/2)² is no whole number: there are no ties
    return nearest, nearest


def _bounded(
    window: np.ndarray,
    matrix: np.ndarray,
    meets: np.ndarray,
    samples: tuple[int, int, int],
    asked: Asked,
    how: Arithmetic,
) -> Expected:
    """Responses with their error bounds, joined."""
    holes = ~np.isfinite(window) if window.dtype.kind == "f" else None
    if holes is not None and not holes.any():
        holes = None
    coarse = how.unit >= FLOAT32.unit
    real = np.float64 if coarse else REAL
    pixels = window.astype(real) if holes is None else np.where(holes, 0, window).astype(real)
    weights = matrix.astype(real)
    values = pixels @ weights
    terms = abs(pixels).astype(np.float64) @ abs(weights).astype(np.float64)
    roundings = np.count_nonzero(matrix, axis=0) + how.extra_roundings
    share = roundings * how.unit * 1.01 + 2.02 * how.operand + SUM_ERROR_FLOAT64 * coarse
    error = terms * share + roundings * how.least
    if how.weight_share:
        sizes = abs(pixels) @ np.broadcast_to(meets.T[None, :, None], (9, 3, samples[1], samples[2])).reshape(27, -1)
        error = error + sizes * (abs(weights).max(axis=0) * how.weight_share)
    if how.operand_least:
        error = error + how.operand_least * (abs(pixels).sum(axis=1, keepdims=True) + abs(weights).sum(axis=0))
    if how.stores_half:
        error = error + abs(values) * 2.0**-11 + 2.0**-25
    is_integer = asked.output_dtype(window.dtype).kind == "u"
    most_off = how.most_off if is_integer else math.inf
    error = np.minimum(error, most_off)
    values, error = values.reshape(samples), error.reshape(samples)
    free = (terms * 1.01 >= how.largest).reshape(samples).any(axis=1)
    # Where channels are filtered alike they may be summed first, before a small weight makes them smaller.
    free = free | (3 * abs(pixels).max(axis=1, keepdims=True) >= how.largest)

    if asked.combine == "magnitude":
        root = np.sqrt(np.square(values).sum(axis=1))
        off = np.sqrt(np.square(error).sum(axis=1)) + 4 * how.unit * root + 4 * how.least
        off = np.minimum(off, most_off)
        low, high = np.maximum(root - off, 0), root + off
    elif asked.combine == "maximum":
        low, high = (values - error).max(axis=1), (values + error).max(axis=1)
    else:
        low, high = (values - error)[:, 0], (values + error)[:, 0]

    not_finite = np.zeros(low.shape, bool)
    if holes is not None:
        under = (holes.astype(np.int32) @ (matrix != 0).astype(np.int32)).reshape(samples)
        not_finite = (under > 0).any(axis=1)
        reached = np.ones_like(meets) if how.multiplies_zeros else meets
        own = np.broadcast_to(reached.T[None], (9, 3, samples[2])).reshape(27, -1).astype(np.int32)
        free = (free | (holes.astype(np.int32) @ own > 0)) & ~not_finite
    return Expected(low, high, not_finite, free, exact=False)


def _stored(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    with np.errstate(over="ignore"):
        if dtype.kind == "u":
            return np.clip(np.rint(values), 0, np.iinfo(dtype).max).astype(dtype)
        # NumPy casts longdouble to float16 through float32, which would round twice.
        return values.astype(np.float64 if dtype.itemsize == 2 else values.dtype).astype(dtype)


def _normalized(raw: Expected, image: np.ndarray, asked: Asked) -> Expected:
    """Stretched from the least to the greatest raw value over the type's range, with what errors become by it.

    Where the values hardly differ more than rounding does, the rule may call the picture flat or not: free.
    """
    dtype = np.dtype(image.dtype.name)
    full = float(np.iinfo(dtype).max) if dtype.kind == "u" else 1.0
    low, high = raw.low.astype(REAL), raw.high.astype(REAL)
    nothing, zeros = np.zeros(low.shape, bool), np.zeros(low.shape, dtype)
    anything = Expected(zeros, zeros, nothing, ~nothing, exact=False)
    if raw.exact and low.min() == high.max():
        return Expected(zeros, zeros, nothing, nothing, exact=True)
    if not (np.isfinite(low).all() and np.isfinite(high).all() and not raw.free.any() and not raw.not_finite.any()):
        return anything
    weights = abs(asked.dense()[0].astype(np.float64)).sum(axis=(2, 3, 4)).max()
    least, greatest = low.min(), high.max()
    brightest = float(np.nan_to_num(abs(image.astype(np.float64)), nan=0.0, posinf=0.0).max())
    flat = 1e-6 * max(abs(least), abs(greatest)) + 2.0**-19 * weights * brightest
    error = (high - low).max() + max(abs(least), abs(greatest)) * 2.0**-23
    if greatest - least <= 8 * max(flat, error):
        return anything
    middle, scale = (low + high) / 2, full / (greatest - least)
    off = 4 * error * scale
    stretched = (middle - least) * scale
    return Expected(
        _stored(np.clip(stretched - off, 0, full), dtype),
        _stored(np.clip(stretched + off, 0, full), dtype),
        nothing,
        nothing,
        exact=False,
    )
