"""The weights of a problem as the kernels of CUDA `sliding` take them: by value, as the struct `Weights` of each.

fma     the weights themselves: (directions, out, in group, 3, 3) float32; fma64: float64
dp4a    signed bytes, four to a 32-bit word, in each position within a word that a window can start at
mma     the right-hand matrices of the tensor cores, word by word as the lanes of a warp hold them, and a scale
planes, planes64    shares of the channels, and one filter or the two weights of its form
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.filters import RGB_CHANNELS
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem
from edgeconv.methods.cuda.kernel_args import WARP
from edgeconv.methods.cuda.sliding_choice import MOST_KERNELS, StripArithmetic, Strips, weight_step, weights_in_halves
from edgeconv.methods.cuda.sliding_tiles import LINE_BYTES

MMA_GROUP_PIXELS, MMA_DEPTH, MMA_COLUMNS = 4, 16, 8
"""Shape of the matrices in sliding_mma.cuh."""
BYTE_EXPONENT = 24
"""A byte, read as a half, is its value divided by two to this power."""


def halo_bytes(problem: Problem, aligned: bool) -> int:
    """The macro HALO_BYTES: bytes of the padding left of a row, modulo a cache line.

    0 where rows do not all start on 16 bytes, as each has a lead of its own then (sliding_rows.cuh).
    """
    return problem.padding * problem.in_channels * problem.dtype.itemsize % LINE_BYTES if aligned else 0


def packed_weights(strips: Strips, aligned: bool) -> NDArray[Any]:
    """The weights for the arithmetic that the strips use, of pictures whose rows start on 16 bytes or not."""
    return _PACKERS[strips.sums](strips, aligned)


def dp4a_weights(strips: Strips, aligned: bool) -> NDArray[np.int32]:
    """The struct `Weights` of sliding_sums.cuh under WHOLE_WEIGHTS: signed bytes, four to a word."""
    weights = strips.problem.weights.astype(np.int8)
    directions, out_channels, in_group = weights.shape[:3]
    if in_group == 1:
        packed = np.zeros((directions, out_channels, KERNEL_SIZE, 2, 4), np.int8)
        for shift in range(2):
            packed[..., shift, shift : shift + KERNEL_SIZE] = weights[:, :, 0]
    else:
        taps = KERNEL_SIZE * in_group
        rows = weights.transpose(0, 1, 3, 4, 2).reshape(directions, out_channels, KERNEL_SIZE, taps)
        packed = np.zeros((directions, 4, out_channels, KERNEL_SIZE, 12), np.int8)
        for phase in range(4):
            packed[:, phase, ..., phase : phase + taps] = rows
    return packed.reshape(-1).view(np.int32)


def mma_weights(strips: Strips, aligned: bool) -> NDArray[np.int32]:
    """The struct `Weights` of sliding_mma.cuh: every matrix B (16 samples × 8 columns) as the lanes hold it."""
    problem, whole = strips.problem, strips.whole_bytes
    parts = problem.dense_weights()[np.newaxis].astype(np.int8) if whole else weights_in_halves(problem)
    directions, sample_bytes = problem.directions, problem.dtype.itemsize
    pixel_bytes = RGB_CHANNELS * sample_bytes
    products = 3 if directions == 2 else 2
    samples = MMA_GROUP_PIXELS * RGB_CHANNELS // products
    lead = -halo_bytes(problem, aligned) % LINE_BYTES
    matrices = np.zeros((KERNEL_SIZE, products, len(parts), MMA_DEPTH, MMA_COLUMNS), parts.dtype)
    for product in range(products):
        first_pixel = product * samples // RGB_CHANNELS
        phase = (lead + first_pixel * pixel_bytes) % 4 // sample_bytes
        for column in range(samples * directions):
            pixel, channel = divmod(product * samples + column // directions, RGB_CHANNELS)
            start = phase + (pixel - first_pixel) * RGB_CHANNELS
            taps = parts[:, column % directions, channel].transpose(2, 0, 3, 1).reshape(KERNEL_SIZE, len(parts), -1)
            matrices[:, product, :, start : start + taps.shape[-1], column] = taps
    lane = np.arange(WARP)
    per_word = 4 // parts.itemsize
    words = MMA_DEPTH // per_word // 4
    word = np.arange(words)[:, None, None]
    if sample_bytes == parts.itemsize:
        depth = (word * 4 + lane[:, None] % 4) * per_word + np.arange(per_word)
    else:  # a lane's halves are the four bytes of one word
        depth = lane[:, None] % 4 * 4 + word * per_word + np.arange(per_word)
    held = np.ascontiguousarray(matrices[..., depth, lane[:, None] // 4]).reshape(-1).view(np.int32)
    scale = np.ldexp(weight_step(problem), BYTE_EXPONENT)
    limit = min(np.iinfo(np.uint8).max / scale, float(np.finfo(np.float32).max))
    return np.concatenate([held, np.array([scale, limit], np.float32).view(np.int32)])


def plane_weights(strips: Strips, aligned: bool) -> NDArray[np.uint32]:
    """The struct `Weights` of sliding_forms.cuh, as 32-bit words."""
    form = strips.form
    assert form is not None
    real = form.kernels.dtype
    shares = (*form.shares, 0.0, 0.0, 0.0)[:RGB_CHANNELS]
    pair = np.array((form.near, form.far), real)
    kernels = np.zeros((MOST_KERNELS, KERNEL_SIZE, KERNEL_SIZE), real)
    kernels[: len(form.kernels)] = form.kernels
    scaled = np.ldexp(np.array(shares, real), form.share_exponent)
    floats = np.concatenate([scaled, pair]).view(np.uint32)
    return np.concatenate([floats, kernels.reshape(-1).view(np.uint32)])


_PACKERS: dict[StripArithmetic, Callable[[Strips, bool], NDArray[Any]]] = {
    "fma": lambda strips, aligned: strips.problem.weights,
    "fma64": lambda strips, aligned: strips.problem.weights.astype(np.float64),
    "dp4a": dp4a_weights,
    "mma": mma_weights,
    "planes": plane_weights,
    "planes64": plane_weights,
}
