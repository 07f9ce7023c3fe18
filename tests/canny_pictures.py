"""Pictures that are hard for Canny (ties between neighbours, long weak edges, spirals), and cases of its kernels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeconv.core.canny import gradient, hysteresis, smooth, thin
from edgeconv.core.chains import Chain, chain_problem, make_chain
from edgeconv.methods.cuda.canny import THIN_PIXELS, CannyPlan
from edgeconv.methods.options import Options

KINDS = ("noise", "few levels", "smooth", "black and white")
PATHS = ("spiral", "comb")
"""A spiral is one edge through all tiles, of which only the middle is strong; a comb is many short pieces that only
their far ends join."""


def path_of(kind: str, height: int, width: int) -> NDArray[np.uint8]:
    """Where a spiral or a comb of one pixel's width runs, four pixels apart."""
    drawn = np.zeros((height, width), np.uint8)
    if kind == "comb":
        drawn[:, ::4] = 1
        for column in range(0, width - 4, 4):
            drawn[(0 if column % 8 else height - 1), column : column + 5] = 1
        return drawn
    top, left, bottom, right = 0, 0, height - 1, width - 1
    while top <= bottom and left <= right:
        drawn[top, left : right + 1] = 1
        drawn[top : bottom + 1, right] = 1
        drawn[bottom, left : right + 1] = 1
        drawn[min(top + 4, bottom) : bottom + 1, left] = 1
        drawn[min(top + 4, bottom), left : min(left + 5, right + 1)] = 1
        top, left, bottom, right = top + 4, left + 4, bottom - 4, right - 4
    return drawn


def picture_of(kind: str, shape: tuple[int, ...], seed: int, dtype: Any = np.uint8) -> NDArray[Any]:
    """A picture of a kind: noise has short edges, few levels many ties, smooth pictures long edges; or a path."""
    rng = np.random.default_rng(seed)
    most = int(np.iinfo(dtype).max)
    if kind in PATHS:
        drawn = path_of(kind, *shape[:2]).astype(np.int64) * (most // 4)
        drawn[shape[0] // 2 - 1 : shape[0] // 2 + 2, shape[1] // 2 - 3 : shape[1] // 2 + 4] *= 3
        return np.broadcast_to(drawn.reshape(*drawn.shape, *([1] * (len(shape) - 2))), shape).astype(dtype)
    picture = rng.integers(0, most + 1, shape).astype(dtype)
    if kind == "few levels":
        return (picture // (most // 4 + 1) * (most // 3)).astype(dtype)
    if kind == "smooth":
        return cv2.GaussianBlur(picture, (5, 5), 0).reshape(shape)
    if kind == "black and white":
        return (picture // (most // 2 + 1) * most).astype(dtype)
    return picture


@dataclass(frozen=True)
class CannyCase:
    """Pictures of one kind with settings, and where they lie."""

    kind: str
    shape: tuple[int, ...]
    """Of one picture."""
    chain: Chain
    dtype: str = "uint8"
    pictures: int = 1
    seed: int = 0
    offset_samples: int = 0
    """Where the arrays start past an aligned address."""

    def batch(self) -> NDArray[Any]:
        """The pictures (pictures, height, width, channels)."""
        drawn = [picture_of(self.kind, self.shape, self.seed + i, np.dtype(self.dtype)) for i in range(self.pictures)]
        return np.stack(drawn).reshape(self.pictures, *self.shape[:2], -1)

    def plan(self) -> CannyPlan:
        """CUDA's plan for its pictures."""
        return cuda_plan(self.shape, self.dtype, self.chain, self.pictures)

    def check(self, found: NDArray[Any], what: str) -> None:
        """Raises AssertionError with the first pixel that is not the oracle's."""
        expected = np.stack([_expected(self, i)[what] for i in range(self.pictures)])
        if (wrong := np.argwhere(found.reshape(expected.shape) != expected)).size:
            place = tuple(map(int, wrong[0]))
            raise AssertionError(
                f"{what}: {len(wrong)} wrong pixels, the first (picture, row, column) {place}: "
                f"{found.reshape(expected.shape)[place]}, not {expected[place]}"
            )


def canny_chain(low: float, high: float, l2: bool = False, blur: int = 0) -> Chain:
    """Canny with settings."""
    return make_chain("canny", low=low, high=high, gradient="l2" if l2 else "l1", blur=blur)


def cuda_plan(shape: tuple[int, ...], dtype: Any, chain: Chain, pictures: int = 1) -> CannyPlan:
    """CUDA's plan for pictures of (height, width[, channels])."""
    problem = chain_problem((*shape, 1)[:3], np.dtype(dtype), chain, "abs")
    return CannyPlan(problem, Options(), pictures)


def edge_map(plan: CannyPlan) -> NDArray[np.uint8]:
    """After the first launch what `core.canny.thin` gives, 0, 1 weak or 2 strong: (pictures, height, width)."""
    height, width, _ = plan.problem.input_shape
    units = np.asarray(plan._map).astype(np.uint32)
    pixel = np.arange(THIN_PIXELS)
    two_bits = units[..., np.newaxis] >> (pixel // 2 * 2 + pixel % 2 * 8) & 3
    levels = ((two_bits & 1) + (two_bits >> 1)).astype(np.uint8).reshape(plan.pictures, height, -1)
    if not plan._late:
        return np.ascontiguousarray(levels[:, :, :width])
    before = width - width % THIN_PIXELS
    return np.concatenate((levels[:, :, :before], levels[:, :, before + plan._late : before + THIN_PIXELS]), axis=2)


def oracle(picture: NDArray[Any], chain: Chain) -> NDArray[np.uint8]:
    """Edges (H, W) of a picture (H, W), (H, W, 1) or (H, W, 3)."""
    plain = picture[:, :, 0] if picture.shape[2:] == (1,) else picture
    return hysteresis(thin(*gradient(smooth(plain, chain.blur), chain.l2), chain.l2, chain.limits))


@cache
def _expected(case: CannyCase, picture: int) -> dict[str, NDArray[np.uint8]]:
    image = picture_of(case.kind, case.shape, case.seed + picture, np.dtype(case.dtype))
    chain = case.chain
    levels = thin(*gradient(smooth(image, chain.blur), chain.l2), chain.l2, chain.limits)
    return {"edge map": levels, "edges": hysteresis(levels)}


def random_cases(count: int, seed: int = 0, most: int = 90) -> list[CannyCase]:
    """Cases drawn at random from all kinds, types, channels, sizes up to `most`, settings and places."""
    rng = np.random.default_rng(seed)

    def pick(*choices: Any) -> Any:
        return choices[int(rng.integers(len(choices)))]

    cases = []
    for i in range(count):
        dtype = pick("uint8", "uint8", "uint8", "uint16")
        top = 2100 if dtype == "uint8" else 2100 * 257
        low, high = sorted(rng.uniform(0, top, 2) * pick(0.05, 0.2, 1.0))
        shape = (int(rng.integers(1, most)), int(rng.integers(1, most)))
        cases.append(
            CannyCase(
                pick(*KINDS, *PATHS),
                (*shape, 3) if pick(False, True) else shape,
                canny_chain(
                    *pick((low, high), (high, low), (int(low), int(high))), pick(False, True), pick(0, 0, 3, 5)
                ),
                dtype,
                pick(1, 1, 1, 3),
                i,
                pick(0, 0, 1, 3),
            )
        )
    return cases
