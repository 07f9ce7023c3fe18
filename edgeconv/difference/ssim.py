"""SSIM by scikit-image's structural_similarity (extra `diff`), only on request.

Windows of 7×7 pixels, mean over pixels and channels; 1 is the same. It complements the exact figures and never
replaces them: 10,000 pixels off by up to 3 levels leave an SSIM of 0.999995. It does not affect the verdict.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.optional import import_problem, install
from edgeconv.errors import UnavailableError, UsageError

WINDOW = 7
"""scikit-image's default side, in pixels."""


def mean_ssim(reference: NDArray[Any], other: NDArray[Any], peak: float) -> float:
    """Mean structural similarity of two pictures, HWC; `peak` is the range of the samples.

    Raises UnavailableError without scikit-image, UsageError for pictures smaller than the window or not finite.
    """
    problem = import_problem("skimage.metrics")
    if problem is not None:
        raise UnavailableError(f"--ssim needs the package scikit-image ({problem}): {install('diff')}.")
    from skimage.metrics import structural_similarity

    if min(reference.shape[:2]) < WINDOW:
        raise UsageError(f"--ssim needs at least {WINDOW}×{WINDOW} pixels: leave it out for smaller ones.")
    for pixels in (reference, other):
        if pixels.dtype.kind == "f" and not np.isfinite(pixels).all():
            raise UsageError("--ssim needs finite samples, and a picture holds NaN or infinity: leave it out.")
    return float(structural_similarity(reference, other, win_size=WINDOW, channel_axis=2, data_range=peak or 1.0))
