"""Perceptual figures from third-party libraries (extra `diff`), only on request.

    SSIM    scikit-image's structural_similarity: windows of 7×7 pixels, mean over pixels and channels; 1 is the same
    FLIP    NVIDIA's flip-evaluator, LDR: mean error at 67 pixels per degree; 0 is the same

They complement the exact figures and never replace them: 10,000 pixels off by up to 3 levels leave an SSIM of 0.999995.
Neither affects the verdict.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.optional import import_problem, install
from edgeconv.errors import UnavailableError, UsageError

SSIM_WINDOW = 7
"""scikit-image's default side, in pixels."""

FLIP_WHEELS = "Python 3.11 to 3.13 on x86-64 and on macOS"
"""What flip-evaluator 1.6 to 1.7 has wheels for."""


def ssim(reference: NDArray[Any], other: NDArray[Any], peak: float) -> float:
    """Mean structural similarity of two pictures, HWC; `peak` is the range of the samples.

    Raises UnavailableError without scikit-image, UsageError for pictures smaller than the window or not finite.
    """
    _require("--ssim", "skimage.metrics", "scikit-image")
    from skimage.metrics import structural_similarity

    if min(reference.shape[:2]) < SSIM_WINDOW:
        raise UsageError(f"--ssim needs at least {SSIM_WINDOW}×{SSIM_WINDOW} pixels: leave it out for smaller ones.")
    _require_finite("--ssim", reference, other)
    return float(structural_similarity(reference, other, win_size=SSIM_WINDOW, channel_axis=2, data_range=peak or 1.0))


def flip(reference: NDArray[Any], other: NDArray[Any], peak: float) -> float:
    """Mean FLIP error of two pictures, HWC; whole numbers are divided by `peak`, floats must lie within 0 to 1.

    Raises UnavailableError without flip-evaluator, UsageError for floats outside 0 to 1.
    """
    _require("--flip", "flip_evaluator", "flip-evaluator")
    import flip_evaluator

    _require_finite("--flip", reference, other)
    scaled = []
    for pixels in (reference, other):
        unit = pixels.astype(np.float32) / np.float32(peak if pixels.dtype.kind == "u" else 1)
        if unit.min() < 0 or unit.max() > 1:
            raise UsageError("--flip needs floats from 0 to 1: leave it out, or scale the pictures first.")
        scaled.append(np.repeat(unit, 3, axis=2) if unit.shape[2] == 1 else unit)
    _, mean, _ = flip_evaluator.evaluate(*scaled, "LDR", applyMagma=False)
    return float(mean)


PERCEPTUAL: dict[str, Callable[[NDArray[Any], NDArray[Any], float], float]] = {"ssim": ssim, "flip": flip}
"""By the name of the option that asks for it."""


def _require(option: str, module: str, package: str) -> None:
    problem = import_problem(module)
    if problem is None:
        return
    if package == "flip-evaluator" and not flip_has_wheel():
        place = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
        raise UnavailableError(
            f"{option} needs the package {package}, which has no wheel for {place} (only for {FLIP_WHEELS}): leave "
            f"{option} out, or build the package with a C++ compiler (pip install {package})."
        )
    raise UnavailableError(f"{option} needs the package {package} ({problem}): {install('diff')}.")


def flip_has_wheel() -> bool:
    """Whether this is a machine that the extra `diff` installs flip-evaluator on: its marker in pyproject.toml."""
    known = platform.machine() in ("x86_64", "AMD64") or sys.platform == "darwin"
    return known and sys.version_info < (3, 14)


def _require_finite(option: str, *pictures: NDArray[Any]) -> None:
    for pixels in pictures:
        if pixels.dtype.kind == "f" and not np.isfinite(pixels).all():
            raise UsageError(f"{option} needs finite samples, and a picture holds NaN or infinity: leave it out.")
