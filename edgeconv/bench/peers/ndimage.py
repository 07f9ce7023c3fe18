"""ndimage.correlate of SciPy, and of CuPy on a GPU, a plane at a time. Both have all of edgeconv's borders.

Source: the reference of scipy.ndimage.correlate; cupyx.scipy.ndimage.correlate follows it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.peers.base import PlanePeer
from edgeconv.core.choices import Border
from edgeconv.core.problem import Problem

MODES: dict[Border, str] = {"zero": "constant", "replicate": "nearest", "reflect": "reflect", "reflect101": "mirror"}


class SciPy(PlanePeer):
    """scipy.ndimage, one thread."""

    distributions = ("scipy",)
    module = "scipy"

    def correlate(self, plane: Any, kernel: NDArray[np.float32], border: Border) -> Any:
        ndimage = import_module("scipy.ndimage")
        return ndimage.correlate(plane, kernel, mode=MODES[border])


class CuPy(PlanePeer):
    """cupyx.scipy.ndimage."""

    distributions = ("cupy-cuda13x", "cupy-cuda12x")
    module = "cupy"

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        self.xp = import_module("cupy")
        self._kernels: dict[bytes, Any] = {}
        return super().prepare(problem, image_host)

    def correlate(self, plane: Any, kernel: NDArray[np.float32], border: Border) -> Any:
        ndimage = import_module("cupyx.scipy.ndimage")
        return ndimage.correlate(plane, self._on_gpu(kernel), mode=MODES[border])

    def _on_gpu(self, kernel: NDArray[np.float32]) -> Any:
        """The kernel, uploaded once."""
        key = kernel.tobytes()
        if key not in self._kernels:
            self._kernels[key] = self.xp.asarray(kernel)
        return self._kernels[key]

    def to_host(self, out: Any) -> NDArray[Any]:
        host: NDArray[Any] = out.get()
        return host
