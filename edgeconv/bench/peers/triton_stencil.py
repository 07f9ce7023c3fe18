"""The kernel of `triton`, apart because Triton reads it as source when this file is imported."""

# Triton reads parameters by their names alone.
# ruff: noqa: ANN001, ANN201, ANN202
# mypy: disable-error-code="no-untyped-def, untyped-decorator, import-not-found, import-untyped"

import triton
import triton.language as tl
from triton.language.extra import libdevice

TILES = [(64, 1, 2), (128, 1, 4), (256, 1, 4), (512, 1, 4), (64, 4, 4), (128, 2, 4), (128, 4, 8), (32, 8, 4)]
"""(pixels across, rows, warps) that are tried."""


@triton.jit
def _response(
    source,
    weights,
    top,
    left,
    height,
    width,
    direction: tl.constexpr,
    output: tl.constexpr,
    IN: tl.constexpr,
    OUT: tl.constexpr,
    APART: tl.constexpr,
    DOWN: tl.constexpr,
    ACROSS: tl.constexpr,
):
    total = tl.zeros((DOWN, ACROSS), tl.float32)
    first: tl.constexpr = output if APART else 0
    last: tl.constexpr = output + 1 if APART else IN
    for dy in tl.static_range(3):
        for dx in tl.static_range(3):
            y, x = top + dy, left + dx
            inside = ((y >= 0) & (y < height))[:, None] & ((x >= 0) & (x < width))[None, :]
            for c in tl.static_range(first, last):
                samples = tl.load(source + (y[:, None] * width + x[None, :]) * IN + c, inside, 0).to(tl.float32)
                total += tl.load(weights + ((direction * OUT + output) * IN + c) * 9 + dy * 3 + dx) * samples
    return total


@triton.jit
def _stored(value, other, MAGNITUDE: tl.constexpr, ABSOLUTE: tl.constexpr, MOST: tl.constexpr):
    if MAGNITUDE:
        value = tl.sqrt_rn(value * value + other * other)
    if ABSOLUTE:
        value = tl.abs(value)
    if MOST > 0:
        value = libdevice.rint(tl.minimum(tl.maximum(value, 0.0), MOST))
    return value


@triton.autotune(
    [triton.Config({"ACROSS": a, "DOWN": d}, num_warps=w) for a, d, w in TILES], ["height", "width", "STRIDE"]
)
@triton.jit
def stencil(
    source,
    weights,
    target,
    height,
    width,
    out_height,
    out_width,
    IN: tl.constexpr,
    OUT: tl.constexpr,
    APART: tl.constexpr,
    MAGNITUDE: tl.constexpr,
    STRIDE: tl.constexpr,
    PADDING: tl.constexpr,
    ABSOLUTE: tl.constexpr,
    MOST: tl.constexpr,
    DOWN: tl.constexpr,
    ACROSS: tl.constexpr,
):
    """`target` (out_height, out_width, OUT) from `source` (height, width, IN), weights (directions, OUT, IN, 3, 3)."""
    rows = tl.program_id(1) * DOWN + tl.arange(0, DOWN)
    columns = tl.program_id(0) * ACROSS + tl.arange(0, ACROSS)
    top, left = rows * STRIDE - PADDING, columns * STRIDE - PADDING
    wanted = (rows < out_height)[:, None] & (columns < out_width)[None, :]
    places = target + (rows[:, None] * out_width + columns[None, :]) * OUT
    v0 = _response(source, weights, top, left, height, width, 0, 0, IN, OUT, APART, DOWN, ACROSS)
    o0 = v0
    if MAGNITUDE:
        o0 = _response(source, weights, top, left, height, width, 1, 0, IN, OUT, APART, DOWN, ACROSS)
    if OUT == 3:
        v1 = _response(source, weights, top, left, height, width, 0, 1, IN, OUT, APART, DOWN, ACROSS)
        v2 = _response(source, weights, top, left, height, width, 0, 2, IN, OUT, APART, DOWN, ACROSS)
        o1, o2 = v1, v2
        if MAGNITUDE:
            o1 = _response(source, weights, top, left, height, width, 1, 1, IN, OUT, APART, DOWN, ACROSS)
            o2 = _response(source, weights, top, left, height, width, 1, 2, IN, OUT, APART, DOWN, ACROSS)
        tl.store(places + 1, _stored(v1, o1, MAGNITUDE, ABSOLUTE, MOST), wanted)
        tl.store(places + 2, _stored(v2, o2, MAGNITUDE, ABSOLUTE, MOST), wanted)
    tl.store(places, _stored(v0, o0, MAGNITUDE, ABSOLUTE, MOST), wanted)
