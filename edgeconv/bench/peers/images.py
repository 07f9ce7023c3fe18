"""Image libraries as their users call them. None has a stride: every s-th sample is picked, in the time.

    scipy          ndimage.correlate of the whole picture with K[:, :, None] where channels stay apart, else planes
    cupy-ndimage   the same on a GPU
    skimage        filters by name, plane by plane: their weights are scaled (Sobel by 1/4, a magnitude by 1/√2), so
                   results are scaled back
    cucim          the same on a GPU
    kornia-rs      imgproc.sobel of float32

Source: the references of scipy.ndimage.correlate and skimage.filters.edges, which CuPy and cuCIM follow;
help(kornia_rs.imgproc.sobel) of 0.2.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.peers.base import Peer, changed, kept, kernels_apart, work_of
from edgeconv.core.filters import SOBEL_X, Weights, named_filter
from edgeconv.core.output import TOLERANCE_FLOAT32, store
from edgeconv.core.problem import Problem
from edgeconv.errors import UnavailableError

NDIMAGE_MODES = {"zero": "constant", "replicate": "nearest", "reflect": "reflect", "reflect101": "mirror"}
MAGNITUDES = ("sobel", "scharr", "prewitt")
LAPLACIAN = "laplacian4"


class SciPy(Peer):
    """ndimage.correlate, one thread."""

    distributions: tuple[str, ...] = ("scipy",)
    module, arrays = "scipy.ndimage", "numpy"

    def set_up(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        xp, correlate = import_module(self.arrays), import_module(self.module).correlate
        work, mode, image = work_of(problem), NDIMAGE_MODES[problem.border], xp.asarray(image_host)
        shares, stride = xp.asarray(work.mixing[0], np.float32), problem.stride

        def filter_by(kernel: Weights) -> Callable[[Any], list[Any]]:
            weights = xp.asarray(kernel[..., np.newaxis])
            return lambda plane: [correlate(plane, weights, output=np.float32, mode=mode)[::stride, ::stride]]

        def channel(index: int) -> Any:
            return xp.ascontiguousarray(image[..., index, None])

        values = work.values(filter_by, lambda one, other: xp.sqrt(one * one + other * other))

        def compute() -> Any:
            found = values(work.planes(image, channel, lambda _: (image @ shares)[..., None]))
            whole = found[0] if len(found) == 1 else xp.concatenate(found, axis=-1)
            alike = xp.ascontiguousarray(xp.broadcast_to(whole, problem.output_shape))
            return store(alike, problem.output_mode, problem.output_dtype, xp)

        return Ready(*kept(compute), problem, tolerance=TOLERANCE_FLOAT32)


class CuPy(SciPy):
    """cupyx.scipy.ndimage."""

    distributions, module, arrays = ("cupy-cuda13x", "cupy-cuda12x"), "cupyx.scipy.ndimage", "cupy"
    dtypes = ("float16", *SciPy.dtypes)


class ScikitImage(Peer):
    """skimage.filters."""

    distributions: tuple[str, ...] = ("scikit-image",)
    module, arrays = "skimage.filters", "numpy"

    def set_up(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        kernels, known = kernels_apart(problem), (*MAGNITUDES, LAPLACIAN)
        name = next((each for each in known if np.array_equal(kernels, named_filter(each).kernels)), None)
        if name is None:
            raise UnavailableError(f"it has {', '.join(known)} by name")
        filters, xp = import_module(self.module), import_module(self.arrays)
        # Its laplace knows one border alone. Kernels are normalised by their smoothing part, a magnitude by √2.
        done, differs = changed(problem, border=problem.border if name in MAGNITUDES else "reflect")
        mode, image = NDIMAGE_MODES[done.border], xp.asarray(image_host)
        scale = np.float32(np.sqrt(2) * np.abs(kernels[0]).sum() / 2)

        def plane(channel: int) -> Any:
            source = image[..., channel].astype(xp.float32)
            return -filters.laplace(source) if name == LAPLACIAN else getattr(filters, name)(source, mode=mode) * scale

        def compute() -> Any:
            planes = [plane(channel)[:: done.stride, :: done.stride] for channel in range(image.shape[-1])]
            return store(xp.stack(planes, axis=-1), done.output_mode, done.output_dtype, xp)

        return Ready(*kept(compute), done, tolerance=TOLERANCE_FLOAT32, differs=differs)


class CuCIM(ScikitImage):
    """cucim.skimage.filters."""

    distributions, module, arrays = ("cucim-cu13", "cucim-cu12"), "cucim.skimage.filters", "cupy"


class KorniaRs(Peer):
    """kornia_rs.imgproc."""

    distributions, module = ("kornia-rs",), "kornia_rs"
    dtypes, has_stride = ("float32",), False

    def set_up(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        if not np.array_equal(kernels_apart(problem), [SOBEL_X, SOBEL_X.T]):
            raise UnavailableError("it has the magnitude of Sobel")
        done, differs = changed(problem, border="zero")
        sobel = import_module(self.module).imgproc.sobel
        return Ready(*kept(lambda: sobel(image_host, 3)), done, tolerance=TOLERANCE_FLOAT32, differs=differs)
