"""Problems that the tests of every method share: awkward on purpose, random but repeatable."""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from edgeconv.api import check as verify
from edgeconv.core.filters import WeightSet
from edgeconv.core.problem import Problem
from edgeconv.io.encoding import write_image
from edgeconv.methods.base import Plan

AWKWARD_SHAPES = ((1, 1), (1, 7), (7, 1), (2, 2), (3, 3), (5, 4), (13, 17), (31, 33), (64, 64), (37, 131))
"""(height, width): single pixels, single rows and columns, primes, one off a power of two."""


def random_image(height: int, width: int, dtype: Any, seed: int = 0, channels: int = 3) -> np.ndarray:
    """HWC, over the whole range of the type (floats: -1 to 1)."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind.kind == "u":
        return rng.integers(0, np.iinfo(kind).max, (height, width, channels), dtype=kind, endpoint=True)
    return rng.uniform(-1, 1, (height, width, channels)).astype(kind)


def save_image(pixels: np.ndarray, path: Path | str) -> None:
    """A picture's file, in the place of one that is there."""
    write_image(pixels, path, overwrite=True)


def images_of(problem: Problem, pictures: int) -> np.ndarray:
    """A batch of random pictures, all different."""
    return np.stack([image_of(problem, seed) for seed in range(pictures)])


def image_of(problem: Problem, seed: int = 0) -> np.ndarray:
    """A random picture of a problem's shape: of one channel where it has one."""
    return random_image(problem.height, problem.width, problem.dtype, seed, problem.in_channels)


def random_weights(channels: str = "mix", seed: int = 1) -> WeightSet:
    """Weights with no structure that a method could lean on."""
    rng = np.random.default_rng(seed)
    shape = {"mix": (1, 3, 3, 3, 3), "each": (1, 3, 1, 3, 3), "luma": (1, 1, 3, 3, 3)}[channels]
    weights = rng.uniform(-1, 1, shape).astype(np.float32)
    return WeightSet(weights, groups=3 if channels == "each" else 1)


def random_bank(
    filters: int, in_channels: int = 3, groups: int = 1, directions: int = 1, *, whole: bool = False, seed: int = 1
) -> WeightSet:
    """So many filters with no structure for every group of channels; whole numbers from -8 to 8 if asked."""
    rng = np.random.default_rng(seed)
    weights = rng.uniform(-1, 1, (directions, groups * filters, in_channels // groups, 3, 3))
    combine = {1: "single", 2: "magnitude"}.get(directions, "maximum")
    return WeightSet(np.rint(8 * weights) if whole else weights, groups, combine)


@dataclass(frozen=True)
class Ran:
    """An output and its comparison with the oracle."""

    out: np.ndarray
    check: verify.Check


GUARD_SAMPLES = 64
"""Samples before and after an output that must come back as they were."""


def _run_guarded(xp: Any, plan: Plan, image: np.ndarray, problem: Problem, offset_samples: int) -> Any:
    """The output of a plan in arrays `offset_samples` into memory of `xp`, where poison lies in and around both."""

    def at_offset(shape: tuple[int, ...], dtype: np.dtype) -> tuple[Any, Any]:
        first = GUARD_SAMPLES + offset_samples
        poison = 0xA5 if dtype.kind == "u" else np.nan
        memory = xp.full(first + int(np.prod(shape)) + GUARD_SAMPLES, poison, dtype)
        return memory, memory[first : memory.size - GUARD_SAMPLES].reshape(shape)

    _, source = at_offset(image.shape, image.dtype)
    source[...] = xp.asarray(image)
    memory, out = at_offset(problem.output_shape, problem.output_dtype)
    before = memory.copy()
    plan.run(source, out)
    result = out.copy()
    out[...] = before[GUARD_SAMPLES + offset_samples : memory.size - GUARD_SAMPLES].reshape(out.shape)
    assert memory.tobytes() == before.tobytes(), "the plan wrote outside its output"
    return result


def run_on_host(plan: Plan, image: np.ndarray, problem: Problem, offset_samples: int = 0) -> Ran:
    """Run a CPU plan in guarded memory and compare every sample with the oracle, by the plan's own bound."""
    out = _run_guarded(np, plan, image, problem, offset_samples)
    return Ran(out, _checked(image, out, problem, plan))


def run_on_gpu(plan: Plan, image: np.ndarray, problem: Problem, offset_samples: int = 0) -> Ran:
    """The same of a CUDA plan."""
    import cupy

    out = _run_guarded(cupy, plan, image, problem, offset_samples).get()
    return Ran(out, verify.check(image, out, problem, plan.arithmetic))


_CHECKS: dict[bytes, verify.Check] = {}
"""What the oracle has said, by a digest of all that it was asked: it takes longer than most plans, and plans that are
cut up in other ways, or are another method's, give the very same bytes again and again."""


def _checked(image: np.ndarray, out: np.ndarray, problem: Problem, plan: Plan) -> verify.Check:
    asked = hashlib.blake2b(pickle.dumps((problem, plan.arithmetic, out.dtype)))
    asked.update(np.ascontiguousarray(image))
    asked.update(np.ascontiguousarray(out))
    found = _CHECKS.get(asked.digest())
    if found is None:
        found = _CHECKS[asked.digest()] = verify.check(image, out, problem, plan.arithmetic)
    return found


def assert_right(ran: Ran) -> None:
    """Fail with the worst sample and both of its values."""
    assert ran.check.passed, f"{ran.check.unexplained_samples} wrong samples, worst {ran.check.worst}"
