"""The kernels of `triton`, apart because Triton reads them as source when this file is imported.

`flat_rows`   a program takes a piece of a row of samples and DOWN rows; it reads a row once, and the sums of the two
              outputs that are begun stay in registers
`tiles`       a program takes DOWN × ACROSS pixels; a sample serves all outputs

Both are tuned by Triton, once for each shape and work; types of arrays are part of its key anyway.
"""

# Triton reads parameters by their names alone.
# ruff: noqa: ANN001, ANN201, ANN202
# mypy: disable-error-code="no-untyped-def, untyped-decorator, import-not-found, import-untyped"

import triton
import triton.language as tl
from triton.language.extra import libdevice

PIECES = [(a, r, w) for a, w in ((128, 2), (256, 4), (512, 4), (1024, 4)) for r in (1, 2, 4, 8, 16)]
"""(samples across, rows, warps) that are tried."""
TILES = [(64, 1, 2), (128, 1, 4), (256, 1, 4), (512, 1, 4), (64, 4, 4), (128, 2, 4), (128, 4, 8), (32, 8, 4)]
"""(pixels across, rows, warps) that are tried."""


@triton.jit
def _store(place, wanted, value, other, MAGNITUDE: tl.constexpr, ABSOLUTE: tl.constexpr, MOST: tl.constexpr):
    if MAGNITUDE:
        value = tl.sqrt_rn(value * value + other * other)
    if ABSOLUTE:
        value = tl.abs(value)
    if MOST > 0:
        value = libdevice.rint(tl.minimum(tl.maximum(value, 0.0), MOST))
    tl.store(place, value.to(place.dtype.element_ty), wanted)


@triton.jit
def _of_row(weights, row: tl.constexpr, left, middle, right):
    """What a row of three samples adds by a row of weights."""
    first, second, third = tl.load(weights + row * 3), tl.load(weights + row * 3 + 1), tl.load(weights + row * 3 + 2)
    return first * left + second * middle + third * right


@triton.autotune(
    [triton.Config({"ACROSS": a, "DOWN": d}, num_warps=w) for a, d, w in PIECES],
    ["length", "height", "STEP", "MAGNITUDE", "ABSOLUTE", "MOST"],
)
@triton.jit
def flat_rows(
    source,
    weights,
    target,
    length,
    height,
    STEP: tl.constexpr,
    MAGNITUDE: tl.constexpr,
    ABSOLUTE: tl.constexpr,
    MOST: tl.constexpr,
    ACROSS: tl.constexpr,
    DOWN: tl.constexpr,
):
    """`target` from `source`, both (height, length), taps STEP samples apart, weights (directions, 3, 3); padding 1."""
    x = tl.program_id(0) * ACROSS + tl.arange(0, ACROSS)
    top = tl.program_id(1) * DOWN
    begun, next_begun = tl.zeros((ACROSS,), tl.float32), tl.zeros((ACROSS,), tl.float32)
    other_begun, other_next = tl.zeros((ACROSS,), tl.float32), tl.zeros((ACROSS,), tl.float32)
    for step in tl.static_range(DOWN + 2):
        y = top + step - 1
        inside = (y >= 0) & (y < height)
        row = source + y * length + x
        left = tl.load(row - STEP, inside & (x >= STEP) & (x < length + STEP), 0).to(tl.float32)
        middle = tl.load(row, inside & (x < length), 0).to(tl.float32)
        right = tl.load(row + STEP, inside & (x + STEP < length), 0).to(tl.float32)
        done = begun + _of_row(weights, 2, left, middle, right)
        begun = next_begun + _of_row(weights, 1, left, middle, right)
        next_begun = _of_row(weights, 0, left, middle, right)
        other = done
        if MAGNITUDE:
            other = other_begun + _of_row(weights + 9, 2, left, middle, right)
            other_begun = other_next + _of_row(weights + 9, 1, left, middle, right)
            other_next = _of_row(weights + 9, 0, left, middle, right)
        if step >= 2:
            wanted = (y - 1 < height) & (x < length)
            _store(target + (y - 1) * length + x, wanted, done, other, MAGNITUDE, ABSOLUTE, MOST)


@triton.autotune(
    [triton.Config({"ACROSS": a, "DOWN": d}, num_warps=w) for a, d, w in TILES],
    ["height", "width", "IN", "OUT", "KEPT", "PLANES", "MAGNITUDE", "STRIDE", "MOST"],
)
@triton.jit
def tiles(
    source,
    mixing,
    weights,
    target,
    height,
    width,
    out_height,
    out_width,
    IN: tl.constexpr,
    OUT: tl.constexpr,
    KEPT: tl.constexpr,
    PLANES: tl.constexpr,
    MIXED: tl.constexpr,
    MAGNITUDE: tl.constexpr,
    STRIDE: tl.constexpr,
    ABSOLUTE: tl.constexpr,
    MOST: tl.constexpr,
    DOWN: tl.constexpr,
    ACROSS: tl.constexpr,
):
    """`target` (out_height, out_width, OUT) from `source` (height, width, IN).

    A plane is MIXED channels times `mixing` (PLANES, MIXED); KEPT of the outputs, 1 or 3, are different, by weights
    (directions, KEPT, PLANES, 3, 3); padding 1.
    """
    rows = (tl.program_id(1) * DOWN + tl.arange(0, DOWN))[:, None]
    columns = (tl.program_id(0) * ACROSS + tl.arange(0, ACROSS))[None, :]
    v0 = tl.zeros((DOWN, ACROSS), tl.float32)
    v1, v2, o0, o1, o2 = v0, v0, v0, v0, v0
    for dy in tl.static_range(3):
        for dx in tl.static_range(3):
            y, x = rows * STRIDE + dy - 1, columns * STRIDE + dx - 1
            inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
            place = source + (y * width + x) * IN
            for plane in tl.static_range(PLANES):
                if PLANES == 1:
                    sample = tl.load(place, inside, 0).to(tl.float32) * tl.load(mixing)
                    for c in tl.static_range(1, MIXED):
                        sample += tl.load(place + c, inside, 0).to(tl.float32) * tl.load(mixing + c)
                else:
                    sample = tl.load(place + plane, inside, 0).to(tl.float32)
                tap = weights + plane * 9 + dy * 3 + dx
                v0 += tl.load(tap) * sample
                if MAGNITUDE:
                    o0 += tl.load(tap + KEPT * PLANES * 9) * sample
                if KEPT == 3:
                    v1 += tl.load(tap + PLANES * 9) * sample
                    v2 += tl.load(tap + 2 * PLANES * 9) * sample
                    if MAGNITUDE:
                        o1 += tl.load(tap + 4 * PLANES * 9) * sample
                        o2 += tl.load(tap + 5 * PLANES * 9) * sample
    wanted = (rows < out_height) & (columns < out_width)
    places = target + (rows * out_width + columns) * OUT
    _store(places, wanted, v0, o0, MAGNITUDE, ABSOLUTE, MOST)
    if KEPT == 3:
        _store(places + 1, wanted, v1, o1, MAGNITUDE, ABSOLUTE, MOST)
        _store(places + 2, wanted, v2, o2, MAGNITUDE, ABSOLUTE, MOST)
    else:
        for copy in tl.static_range(1, OUT):
            _store(places + copy, wanted, v0, o0, MAGNITUDE, ABSOLUTE, MOST)
