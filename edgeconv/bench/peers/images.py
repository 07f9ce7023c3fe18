"""Image libraries as their users call them. None has a stride: every s-th sample is picked, in the time.

    scipy          ndimage.correlate of the whole picture with K[:, :, None] where channels stay apart, else planes
    cupy-ndimage   the same on a GPU
    pyvips         a pipeline from memory to memory; libvips repeats the edge pixel, and its cache is switched off
    skimage        filters by name, plane by plane: their weights are scaled (Sobel by 1/4, a magnitude by 1/√2), so
                   results are scaled back
    cucim          the same on a GPU
    kornia-rs      imgproc.sobel of float32

Source: the references of scipy.ndimage.correlate and skimage.filters.edges, which CuPy and cuCIM follow; libvips'
chapter on convolution; help(kornia_rs.imgproc.sobel) of 0.2.
"""

from __future__ import annotations

from functools import reduce
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.peers.base import NDIMAGE_MODES, Peer, changed, kept, require_same_size, work_of
from edgeconv.core.filters import SOBEL_X, named_filter
from edgeconv.core.output import TOLERANCE_FLOAT32, store
from edgeconv.core.problem import Problem
from edgeconv.errors import UnavailableError

VIPS_FORMATS = {"uint8": "uchar", "uint16": "ushort", "float32": "float"}
MAGNITUDES = ("sobel", "scharr", "prewitt")
LAPLACIAN = "laplacian4"


class SciPy(Peer):
    """ndimage.correlate, one thread."""

    distributions: tuple[str, ...] = ("scipy",)
    module = "scipy.ndimage"
    arrays = "numpy"

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        require_same_size(problem)
        xp, correlate = import_module(self.arrays), import_module(self.module).correlate
        work, mode = work_of(problem), NDIMAGE_MODES[problem.border]
        step = slice(None, None, problem.stride)
        image = xp.asarray(image_host)
        weights, mixing = xp.asarray(work.weights[..., np.newaxis]), xp.asarray(work.mixing)
        meets = np.asarray(work.weights.any(axis=(3, 4)))

        def response(planes: list[Any], direction: int, k: int) -> Any:
            met = np.flatnonzero(meets[direction, k]).tolist() or [0]
            kernels = weights[direction, k]
            parts = [correlate(planes[plane], kernels[plane], output=np.float32, mode=mode) for plane in met]
            return reduce(xp.add, parts)[step, step]

        def compute() -> Any:
            if work.apart:
                planes = [image]
            elif len(mixing) == 1:
                planes = [(image @ mixing[0])[..., None]]
            else:
                planes = [xp.ascontiguousarray(image[..., channel, None]) for channel in range(image.shape[2])]
            values = []
            for k in range(work.weights.shape[1]):
                responses = [response(planes, direction, k) for direction in range(problem.directions)]
                if problem.combine == "magnitude":
                    values.append(xp.sqrt(responses[0] * responses[0] + responses[1] * responses[1]))
                else:
                    values.append(reduce(xp.maximum, responses))
            whole = values[0] if len(values) == 1 else xp.concatenate(values, axis=-1)
            alike = xp.ascontiguousarray(xp.broadcast_to(whole, problem.output_shape))
            return store(alike, problem.output_mode, problem.output_dtype, xp)

        return Ready(*kept(compute), problem, tolerance=TOLERANCE_FLOAT32)


class CuPy(SciPy):
    """cupyx.scipy.ndimage."""

    distributions = ("cupy-cuda13x", "cupy-cuda12x")
    module = "cupyx.scipy.ndimage"
    arrays = "cupy"


class ScikitImage(Peer):
    """skimage.filters."""

    distributions: tuple[str, ...] = ("scikit-image",)
    module = "skimage.filters"
    arrays = "numpy"

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        require_same_size(problem)
        work = work_of(problem)
        known = (*MAGNITUDES, LAPLACIAN)
        name = next((each for each in known if np.array_equal(work.kernels, named_filter(each).kernels)), None)
        if name is None or not work.apart:
            raise UnavailableError(f"it has {', '.join(known)} by name, channels apart")
        filters, xp = import_module(self.module), import_module(self.arrays)
        # Its laplace knows one border alone. Kernels are normalised by their smoothing part, a magnitude by √2.
        border = problem.border if name in MAGNITUDES else "reflect"
        done, differs = changed(problem, border=border)
        mode, image = NDIMAGE_MODES[border], xp.asarray(image_host)
        scale = np.float32(np.sqrt(2) * np.abs(work.kernels[0]).sum() / 2)
        step = slice(None, None, problem.stride)

        def plane(channel: int) -> Any:
            source = image[..., channel].astype(xp.float32)
            return -filters.laplace(source) if name == LAPLACIAN else getattr(filters, name)(source, mode=mode) * scale

        def compute() -> Any:
            planes = [plane(channel)[step, step] for channel in range(image.shape[-1])]
            return store(xp.stack(planes, axis=-1), done.output_mode, done.output_dtype, xp)

        return Ready(*kept(compute), done, tolerance=TOLERANCE_FLOAT32, differs=differs)


class CuCIM(ScikitImage):
    """cucim.skimage.filters."""

    distributions = ("cucim-cu13", "cucim-cu12")
    module = "cucim.skimage.filters"
    arrays = "cupy"


class KorniaRs(Peer):
    """kornia_rs.imgproc."""

    distributions = ("kornia-rs",)
    module = "kornia_rs"

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        require_same_size(problem)
        work = work_of(problem)
        is_sobel = work.apart and np.array_equal(work.kernels, [SOBEL_X, SOBEL_X.T])
        if not is_sobel or problem.dtype != np.float32 or problem.stride > 1:
            raise UnavailableError("it has the magnitude of Sobel of float32, channels apart, stride 1")
        done, differs = changed(problem, border="zero")
        sobel = import_module(self.module).imgproc.sobel
        return Ready(*kept(lambda: sobel(image_host, 3)), done, tolerance=TOLERANCE_FLOAT32, differs=differs)


class Vips(Peer):
    """conv with float precision."""

    distributions = ("pyvips",)
    module = "pyvips"
    requirement = "pyvips[binary]"  # the extra brings libvips

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        require_same_size(problem)
        if problem.dtype.name not in VIPS_FORMATS:
            raise UnavailableError(f"it knows the types {', '.join(VIPS_FORMATS)}")
        pyvips = import_module("pyvips")
        pyvips.cache_set_max(0)
        done, differs = changed(problem, border="replicate")
        height, width, channels = image_host.shape
        source = pyvips.Image.new_from_memory(
            image_host.data, width, height, channels, VIPS_FORMATS[problem.dtype.name]
        )
        work = work_of(problem)

        def conv(plane: Any, kernel: NDArray[Any]) -> Any:
            return plane.conv(pyvips.Image.new_from_array(kernel.tolist()), precision="float")

        def pipeline() -> Any:
            image = source.cast("float")
            if work.apart:
                planes = [image]
            elif len(work.mixing) == 1:
                planes = [image.recomb(work.mixing.tolist())]
            else:
                planes = [image.extract_band(band) for band in range(channels)]
            values = []
            for k in range(work.weights.shape[1]):
                responses = []
                for kernels in work.weights[:, k]:
                    pairs = zip(planes, kernels, strict=True)
                    parts = [conv(plane, kernel) for plane, kernel in pairs if kernel.any()]
                    responses.append(reduce(lambda one, other: one + other, parts))
                if problem.combine == "magnitude":
                    values.append((responses[0] * responses[0] + responses[1] * responses[1]) ** 0.5)
                else:
                    values.append(reduce(lambda one, other: (one > other).ifthenelse(one, other), responses))
            if not work.apart:
                values *= problem.output_channels // len(values)
            value = values[0].bandjoin(values[1:]) if len(values) > 1 else values[0]
            if problem.stride > 1:
                across, down = problem.output_width * problem.stride, problem.output_height * problem.stride
                value = value.embed(0, 0, across, down).subsample(problem.stride, problem.stride)
            value = value.abs() if problem.output_mode == "abs" else value
            value = value.rint() if problem.output_dtype.kind == "u" else value
            return value.cast(VIPS_FORMATS[problem.output_dtype.name])

        def to_host(pixels: Any) -> NDArray[Any]:
            return np.frombuffer(pixels, done.output_dtype).reshape(done.output_shape)

        run, result = kept(lambda: pipeline().write_to_memory(), to_host)
        return Ready(run, result, done, tolerance=TOLERANCE_FLOAT32, differs=differs)
