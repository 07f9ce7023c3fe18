"""The named edge filters of scikit-image, and of cuCIM on a GPU, a plane at a time.

Only what they offer by name: sobel, scharr and prewitt magnitudes and the four-neighbour Laplacian, channels apart.
Their weights are scaled (Sobel by 1/4, the magnitude by 1/√2), so results are scaled back, as part of the work.

Source: skimage/filters/edges.py; cucim.skimage.filters follows it.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.peers.base import HALO, Peer
from edgeconv.bench.peers.ndimage import MODES
from edgeconv.core.choices import Border
from edgeconv.core.filters import named_filter
from edgeconv.core.output import TOLERANCE_FLOAT32, store
from edgeconv.core.problem import Problem
from edgeconv.errors import UnavailableError

MAGNITUDES = ("sobel", "scharr", "prewitt")
LAPLACIAN = "laplacian4"
LAPLACIAN_BORDER: Border = "reflect"
"""What its laplace has and cannot be told to change."""


class ScikitImage(Peer):
    """skimage.filters."""

    distributions: tuple[str, ...] = ("scikit-image",)
    module = "skimage"
    arrays = "numpy"

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        name = _name_of(problem)
        if name is None or problem.padding != HALO:
            raise UnavailableError(
                f"it offers {', '.join((*MAGNITUDES, LAPLACIAN))} by name, channels apart, padding {HALO}"
            )
        filters, xp = import_module(f"{self.module}.filters"), import_module(self.arrays)
        done = replace(problem, border=LAPLACIAN_BORDER) if name == LAPLACIAN else problem
        mode, image = MODES[problem.border], xp.asarray(image_host)
        # Its kernels are normalised by their smoothing part, and a magnitude of two by √2.
        scale = np.sqrt(2) * np.abs(problem.weights[0, 0, 0]).sum() / 2 if name in MAGNITUDES else 1.0

        def plane(channel: int) -> Any:
            source = image[..., channel].astype(xp.float32)
            if name == LAPLACIAN:
                return -filters.laplace(source)
            return getattr(filters, name)(source, mode=mode) * xp.float32(scale)

        held: list[Any] = [None]

        def run() -> None:
            step = slice(None, None, done.stride)
            planes = [plane(channel)[step, step] for channel in range(image.shape[-1])]
            held[0] = store(xp.stack(planes, axis=-1), done.output_mode, done.output_dtype, xp)

        return Ready(
            run=run,
            result=lambda: self.to_host(held[0]),
            problem=done,
            tolerance=TOLERANCE_FLOAT32,
            differs=None if done is problem or problem.border == LAPLACIAN_BORDER else "its border is reflect",
        )

    def to_host(self, out: Any) -> NDArray[Any]:
        """The output as a NumPy array."""
        host: NDArray[Any] = out
        return host


class CuCIM(ScikitImage):
    """cucim.skimage.filters."""

    distributions = ("cucim-cu13", "cucim-cu12")
    module = "cucim.skimage"
    arrays = "cupy"

    def to_host(self, out: Any) -> NDArray[Any]:
        host: NDArray[Any] = out.get()
        return host


def _name_of(problem: Problem) -> str | None:
    """The filter of the table that the problem's weights are, where scikit-image has it."""
    if problem.groups == 1:
        return None
    for name in (*MAGNITUDES, LAPLACIAN):
        kernels = named_filter(name).kernels[:, np.newaxis, np.newaxis]
        if problem.weights.shape[0] == len(kernels) and (problem.weights == kernels).all():
            return name
    return None
