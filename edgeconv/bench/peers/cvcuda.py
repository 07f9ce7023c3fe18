"""CV-CUDA's filters on a picture that lies on the GPU in HWC: channels apart with one kernel, stride 1.

    laplacian4       cvcuda.laplacian, aperture 1
    other kernels    cvcuda.conv2d (it correlates), over a batch of one picture

Both store what they computed in the picture's own type, clipped to its range: there is no |value| among its operators,
so where `abs` is asked for it does `clip` (whole numbers) or `raw` (floats), and says so.

Source: the reference of cvcuda.conv2d and cvcuda.laplacian, CV-CUDA 0.19.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.peers.base import HALO, Peer
from edgeconv.core.choices import Border
from edgeconv.core.filters import named_filter
from edgeconv.core.output import TOLERANCE_FLOAT32
from edgeconv.core.problem import Problem, StoredMode
from edgeconv.errors import UnavailableError

BORDERS: dict[Border, str] = {
    "zero": "CONSTANT",
    "replicate": "REPLICATE",
    "reflect": "REFLECT",
    "reflect101": "REFLECT101",
}
FORMATS = {"uint8": "RGB8", "float32": "RGBf32"}
LAPLACIAN_APERTURE = 1
ANCHOR_AT_CENTRE = -1


class CVCUDA(Peer):
    """conv2d, or laplacian where the kernel is its own."""

    distributions = ("cvcuda-cu13", "cvcuda-cu12")
    module = "cvcuda"

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        kernels = problem.weights[0, :, 0]
        alone = problem.combine == "single" and problem.groups > 1 and bool((kernels == kernels[0]).all())
        if not alone or problem.stride != 1 or problem.padding != HALO or problem.dtype.name not in FORMATS:
            types = " or ".join(FORMATS)
            raise UnavailableError(f"it does channels apart with one kernel, stride 1, padding {HALO}, {types}")
        cvcuda, cupy = import_module("cvcuda"), import_module("cupy")
        mode: StoredMode = "clip" if problem.dtype.kind == "u" else "raw"
        done = replace(problem, output_mode=mode)
        image, out = cupy.asarray(image_host), cupy.empty(done.output_shape, done.output_dtype)
        border = getattr(cvcuda.Border, BORDERS[problem.border])
        stream = cvcuda.as_stream(cupy.cuda.get_current_stream())
        if (kernels[0] == named_filter("laplacian4").kernels[0]).all():
            source, target = (cvcuda.as_tensor(array, "HWC") for array in (image, out))

            def run() -> None:
                cvcuda.laplacian_into(target, source, LAPLACIAN_APERTURE, 1.0, border, stream=stream)

        else:
            kind = getattr(cvcuda.Format, FORMATS[problem.dtype.name])
            sources, targets = (cvcuda.as_images([array], kind) for array in (image, out))
            kernel = cvcuda.as_images([cupy.asarray(kernels[0])[..., np.newaxis]], cvcuda.Format.F32)
            anchor = cvcuda.as_tensor(cupy.full((1, 2), ANCHOR_AT_CENTRE, np.int32), "NC")

            def run() -> None:
                cvcuda.conv2d_into(targets, sources, kernel, anchor, border, stream=stream)

        return Ready(
            run=run,
            result=lambda: np.asarray(out.get()),
            problem=done,
            tolerance=TOLERANCE_FLOAT32,
            differs=None if mode == problem.output_mode else f"its output is {mode}, not {problem.output_mode}",
        )
