"""Image libraries as their users call them. None has a stride: every s-th sample is picked, in the time.

    opencv-filter2d   its own threads, `dst=` everywhere
        channels apart   one filter2D over the HWC picture, to 16 bits where integer sums fit, else to float32; a Sobel
                         by the separable cv2.Sobel; convertScaleAbs for |value| of 8 bits
        one sum of all   cv2.add of the planes, or cv2.transform of floats; then one plane, and cv2.merge
        luma             cvtColor, which rounds the grey of 8 bits: said in `differs`
        all pairs        split, filter2D and add into buffers, merge
    scipy          ndimage.correlate of the whole picture with K[:, :, None] where channels stay apart, else planes
    cupy-ndimage   the same on a GPU
    skimage        filters by name, plane by plane: their weights are scaled (Sobel by 1/4, a magnitude by 1/√2), so
                   results are scaled back
    cucim          the same on a GPU
    kornia-rs      imgproc.sobel of float32
    pyvips         a pipeline from memory to memory; libvips repeats the edge pixel, and its cache is switched off

Source: OpenCV's tutorials on filter2D, on Sobel derivatives and on colour conversions; the references of
scipy.ndimage.correlate and skimage.filters.edges, which CuPy and cuCIM follow; libvips' chapter on convolution;
help(kornia_rs.imgproc.sobel) of 0.2.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Bench, Ready
from edgeconv.bench.peers.base import DTYPES, Library, Work, changed, kept, kernels_apart, work_of
from edgeconv.core.filters import LUMA_WEIGHTS, SOBEL_X, Weights, named_filter
from edgeconv.core.output import TOLERANCE_FLOAT32, store
from edgeconv.core.problem import Problem
from edgeconv.errors import UnavailableError
from edgeconv.methods.opencv import BORDER_CODES

NDIMAGE_MODES = {"zero": "constant", "replicate": "nearest", "reflect": "reflect", "reflect101": "mirror"}
DEPTHS = {"uint8": cv2.CV_8U, "uint16": cv2.CV_16U, "int16": cv2.CV_16S, "float32": cv2.CV_32F}
GREY_ERROR = 0.53
"""Levels by which cvtColor's grey of 8 bits is off at most: half of one, and its shares have 15 bits."""
MAGNITUDES = ("sobel", "scharr", "prewitt")
LAPLACIAN = "laplacian4"
VIPS_FORMATS = {"uint8": "uchar", "uint16": "ushort", "float32": "float"}


def correlate(arrays: str, module: str, problem: Problem, bench: Bench) -> Ready:
    """ndimage.correlate of SciPy, by one thread, or of CuPy."""
    xp, correlate = import_module(arrays), import_module(module).correlate
    work, mode, image = work_of(problem), NDIMAGE_MODES[problem.border], xp.asarray(bench.image_host)
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


def named_filters(arrays: str, module: str, problem: Problem, bench: Bench) -> Ready:
    """skimage.filters, or cucim.skimage.filters."""
    kernels, known = kernels_apart(problem), (*MAGNITUDES, LAPLACIAN)
    name = next((each for each in known if np.array_equal(kernels, named_filter(each).kernels)), None)
    if name is None:
        raise UnavailableError(f"it has {', '.join(known)} by name")
    filters, xp = import_module(module), import_module(arrays)
    # Its laplace knows one border alone. Kernels are normalised by their smoothing part, a magnitude by √2.
    done, differs = changed(problem, border=problem.border if name in MAGNITUDES else "reflect")
    mode, image = NDIMAGE_MODES[done.border], xp.asarray(bench.image_host)
    scale = np.float32(np.sqrt(2) * np.abs(kernels[0]).sum() / 2)

    def plane(channel: int) -> Any:
        source = image[..., channel].astype(xp.float32)
        return -filters.laplace(source) if name == LAPLACIAN else getattr(filters, name)(source, mode=mode) * scale

    def compute() -> Any:
        planes = [plane(channel)[:: done.stride, :: done.stride] for channel in range(image.shape[-1])]
        return store(xp.stack(planes, axis=-1), done.output_mode, done.output_dtype, xp)

    return Ready(*kept(compute), done, tolerance=TOLERANCE_FLOAT32, differs=differs)


def kornia(problem: Problem, bench: Bench) -> Ready:
    """kornia_rs.imgproc."""
    if not np.array_equal(kernels_apart(problem), [SOBEL_X, SOBEL_X.T]):
        raise UnavailableError("it has the magnitude of Sobel")
    done, differs = changed(problem, border="zero")
    sobel, image = import_module("kornia_rs").imgproc.sobel, bench.image_host
    return Ready(*kept(lambda: sobel(image, 3)), done, tolerance=TOLERANCE_FLOAT32, differs=differs)


def opencv(problem: Problem, bench: Bench) -> Ready:
    """cv2."""
    work, image = work_of(problem), _plane(bench.image_host)
    sums = np.dtype(np.int16 if work.sums == np.int16 and problem.combine == "single" else np.float32)
    depth, border = DEPTHS[sums.name], BORDER_CODES[problem.border]
    is_sobel = work.weights.shape[1:3] == (1, 1) and np.array_equal(work.kernels, [SOBEL_X, SOBEL_X.T])
    shape = image.shape if work.apart else image.shape[:2]
    part, joined, *responses = (np.empty(shape, sums) for _ in range(2 + problem.directions))
    out = np.empty(problem.output_shape, problem.output_dtype)
    stored = [_plane(out) if work.apart else np.empty(out.shape[:2], out.dtype) for _ in work.weights[0]]
    planes = _planes(image, work, sums)

    def filter_into(target: Any, source: Any, kernel: Any, direction: int) -> None:
        if is_sobel:
            cv2.Sobel(source, depth, 1 - direction, direction, dst=target, borderType=border)
        else:
            cv2.filter2D(source, depth, kernel, dst=target, borderType=border)

    def value(sources: Any, k: int) -> Any:
        for direction, response in enumerate(responses):
            kernels = work.weights[direction, k]
            first, *others = (index for index, kernel in enumerate(kernels) if kernel.any())
            filter_into(response, sources[first], kernels[first], direction)
            for index in others:
                filter_into(part, sources[index], kernels[index], direction)
                cv2.add(response, part, dst=response)
        return responses[0] if len(responses) == 1 else cv2.magnitude(responses[0], responses[1], joined)

    def run() -> None:
        sources = planes()
        for k, target in enumerate(stored):
            _store(value(sources, k), target, problem)
        if not work.apart:
            cv2.merge(stored * (problem.output_channels // len(stored)), dst=_plane(out))

    if not (_is_grey(work, image) and problem.dtype == np.uint8):
        return Ready(run, lambda: out, problem, tolerance=TOLERANCE_FLOAT32)
    off = GREY_ERROR * float(np.linalg.norm(np.abs(work.kernels).sum(axis=(1, 2))))
    exact = bench.image_host.astype(np.float32) @ np.array(work.mixing[0], np.float32)
    largest = float(np.abs(value([exact], 0)).max())
    differs = f"it rounds the grey: up to {np.ceil(off):g} levels"
    return Ready(run, lambda: out, problem, tolerance=off / max(largest, off), differs=differs)


def _is_grey(work: Work, image: NDArray[Any]) -> bool:
    """Whether the plane that is filtered is what cvtColor gives."""
    return work.mixing == (LUMA_WEIGHTS["bt601"],) and image.dtype != np.uint16


def _planes(image: NDArray[Any], work: Work, sums: np.dtype[Any]) -> Callable[[], Any]:
    """What makes the planes that are filtered, as `work.mixing` says, in buffers that are reused."""
    if work.apart or image.ndim == 2:
        return lambda: [image]
    apart = [np.empty(image.shape[:2], image.dtype) for _ in range(image.shape[2])]
    if _is_grey(work, image):
        return lambda: [cv2.cvtColor(image, cv2.COLOR_RGB2GRAY, dst=apart[0])]
    if len(work.mixing) > 1:
        return lambda: cv2.split(image, apart)
    total, mixing = np.empty(image.shape[:2], sums), np.array(work.mixing, np.float32)
    wide = image if image.dtype == np.float32 else np.empty(image.shape, np.float32)

    def transformed() -> list[Any]:
        if wide is not image:
            np.copyto(wide, image)
        return [cv2.transform(wide, mixing, dst=total)]

    def added() -> list[Any]:
        cv2.split(image, apart)
        cv2.add(apart[0], apart[1], dst=total, dtype=DEPTHS[sums.name])
        return [cv2.add(total, apart[2], dst=total, dtype=DEPTHS[sums.name])]

    return transformed if wide is image or (mixing != 1).any() else added


def _store(values: NDArray[Any], target: NDArray[Any], problem: Problem) -> None:
    """Pick every s-th value and store it as a sample."""
    if problem.stride > 1:
        values = np.ascontiguousarray(values[:: problem.stride, :: problem.stride])
    is_absolute = problem.output_mode == "abs"
    if target.dtype == np.float32:
        (np.abs if is_absolute else np.positive)(values, out=target)
    elif is_absolute and target.dtype == np.uint8:
        cv2.convertScaleAbs(values, dst=target)
    else:
        absolute = np.abs(values, out=values) if is_absolute else values
        cv2.add(absolute, 0, dst=target, dtype=DEPTHS[target.dtype.name])  # it rounds and clips


def _plane(array: NDArray[Any]) -> NDArray[Any]:
    """The same samples as OpenCV takes a grey picture: it would not write in place otherwise."""
    return array[:, :, 0] if array.shape[2] == 1 else array


def vips(problem: Problem, bench: Bench) -> Ready:
    """conv with float precision."""
    pyvips = import_module("pyvips")
    pyvips.cache_set_max(0)
    done, differs = changed(problem, border="replicate")
    (height, width, channels), pixels = problem.input_shape, bench.image_host.data
    form = VIPS_FORMATS[problem.dtype.name]
    source = pyvips.Image.new_from_memory(pixels, width, height, channels, form)

    def filter_by(kernel: Weights) -> Callable[[Any], list[Any]]:
        matrix = pyvips.Image.new_from_array(kernel.tolist())
        return lambda plane: [plane.conv(matrix, precision="float")]

    work, stride = work_of(problem), problem.stride
    values = work.values(filter_by, lambda one, other: (one * one + other * other) ** 0.5)

    def compute() -> Any:
        image = source.cast("float")
        found = values(work.planes(image, image.extract_band, lambda shares: image.recomb([list(shares)])))
        found *= 1 if work.apart else problem.output_channels // len(found)
        value = found[0].bandjoin(found[1:]) if len(found) > 1 else found[0]
        if stride > 1:
            value = value.embed(0, 0, done.output_width * stride, done.output_height * stride)
            value = value.subsample(stride, stride)
        value = value.abs() if problem.output_mode == "abs" else value
        value = value.rint() if problem.output_dtype.kind == "u" else value
        return value.cast(VIPS_FORMATS[problem.output_dtype.name]).write_to_memory()

    run, result = kept(compute, lambda made: np.frombuffer(made, done.output_dtype).reshape(done.output_shape))
    return Ready(run, result, done, tolerance=TOLERANCE_FLOAT32, differs=differs)


def _of_arrays(make: Callable[..., Ready], arrays: str, module: str, *distributions: str, **more: Any) -> Library:
    """A library that has the same functions for NumPy's arrays and, under another name, for CuPy's."""
    return Library(partial(make, arrays, module), module, distributions, **more)


SCIPY = _of_arrays(correlate, "numpy", "scipy.ndimage", "scipy")
CUPY_TYPES = ("float16", *DTYPES)
CUPY = _of_arrays(correlate, "cupy", "cupyx.scipy.ndimage", "cupy-cuda13x", "cupy-cuda12x", dtypes=CUPY_TYPES)
SKIMAGE = _of_arrays(named_filters, "numpy", "skimage.filters", "scikit-image")
CUCIM = _of_arrays(named_filters, "cupy", "cucim.skimage.filters", "cucim-cu13", "cucim-cu12")
KORNIA = Library(kornia, "kornia_rs", ("kornia-rs",), dtypes=("float32",), has_stride=False)
OPENCV = Library(opencv, "cv2", ("opencv-python-headless", "opencv-python"))
VIPS = Library(vips, "pyvips", ("pyvips[binary]", "pyvips"))  # the extra brings libvips
