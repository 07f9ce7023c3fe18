"""OpenCV as one would write it: whole pictures, its own threads, buffers reused between runs.

    uint8, channels apart, one kernel, abs     filter2D to 16 bits, convertScaleAbs
    uint8, channels apart, Sobel magnitude     two Sobels to float32, magnitude, convertScaleAbs
    everything else                            a filter2D to float32 for every pair of channels that meet

Source: OpenCV's tutorials on filter2D, Laplacian and Sobel. Its borders include all of edgeconv's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.peers.base import HALO, PlanePeer
from edgeconv.core.choices import Border
from edgeconv.core.filters import SOBEL_X
from edgeconv.core.problem import Problem
from edgeconv.errors import UnavailableError
from edgeconv.methods.opencv import BORDER_CODES

INT16 = np.iinfo(np.int16)
GRADIENT_BORDERS: tuple[Border, ...] = ("reflect101", "replicate")
"""Those of cv2.spatialGradient."""


class Filter2D(PlanePeer):
    """cv2.filter2D."""

    distributions = ("opencv-python-headless", "opencv-python")
    module = "cv2"

    def correlate(self, plane: Any, kernel: NDArray[np.float32], border: Border) -> Any:
        return cv2.filter2D(plane, cv2.CV_32F, kernel, borderType=BORDER_CODES[border])

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        kernels = _shared_kernels(problem)
        if kernels is None or problem.dtype != np.uint8 or problem.output_mode != "abs" or problem.padding != HALO:
            return super().prepare(problem, image_host)
        if problem.combine == "magnitude" and np.array_equal(kernels, [SOBEL_X, SOBEL_X.T]):
            return _two_sobels(problem, image_host)
        whole = bool((kernels == np.rint(kernels)).all()) and 255 * np.abs(kernels[0]).sum() <= INT16.max
        if problem.combine == "single" and whole:
            return _sixteen_bits(problem, image_host, kernels[0])
        return super().prepare(problem, image_host)


class SpatialGradient(Filter2D):
    """Both derivatives of a plane at once, in 16 bits."""

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        kernels = _shared_kernels(problem)
        sobel = kernels is not None and np.array_equal(kernels, [SOBEL_X, SOBEL_X.T])
        if not sobel or problem.dtype != np.uint8 or problem.output_mode != "abs" or problem.padding != HALO:
            raise UnavailableError("it has the magnitude of Sobel on 8 bits, channel by channel")
        border = problem.border if problem.border in GRADIENT_BORDERS else GRADIENT_BORDERS[0]
        ready = _gradients(replace(problem, border=border), image_host)
        ready.differs = None if border == problem.border else f"its border is {border}, not {problem.border}"
        return ready


def _gradients(problem: Problem, image: NDArray[Any]) -> Ready:
    shape = image.shape[:2]
    along_x, along_y = np.empty(shape, np.int16), np.empty(shape, np.int16)
    wide = [np.empty(shape, np.float32) for _ in range(3)]
    planes = [np.empty(shape, np.uint8) for _ in range(image.shape[2])]
    out = np.empty(image.shape, np.uint8)
    target = _without_last_axis_of_one(out)

    def run() -> None:
        apart = [np.ascontiguousarray(image[:, :, 0])] if len(planes) == 1 else cv2.split(image)
        for plane, result in zip(apart, planes, strict=True):
            cv2.spatialGradient(plane, along_x, along_y, borderType=BORDER_CODES[problem.border])
            np.copyto(wide[0], along_x)
            np.copyto(wide[1], along_y)
            cv2.magnitude(wide[0], wide[1], magnitude=wide[2])
            cv2.convertScaleAbs(wide[2], dst=result)
        if len(planes) == 1:
            np.copyto(target, planes[0])
        else:
            cv2.merge(planes, dst=target)

    return _strided(run, out, problem, problem.stride)


def _shared_kernels(problem: Problem) -> NDArray[np.float32] | None:
    """(directions, 3, 3) where channels stand apart and share their kernels, else None."""
    separate = problem.groups == problem.in_channels == problem.output_channels
    if not separate or not (problem.weights == problem.weights[:, :1]).all():
        return None
    shared: NDArray[np.float32] = problem.weights[:, 0, 0]
    return shared


def _sixteen_bits(problem: Problem, image: NDArray[Any], kernel: NDArray[np.float32]) -> Ready:
    border, stride = BORDER_CODES[problem.border], problem.stride
    wide = np.empty(image.shape, np.int16)
    out = np.empty(image.shape, np.uint8)

    source, between, target = (_without_last_axis_of_one(array) for array in (image, wide, out))

    def run() -> None:
        cv2.filter2D(source, cv2.CV_16S, kernel, dst=between, borderType=border)
        cv2.convertScaleAbs(between, dst=target)

    return _strided(run, out, problem, stride)


def _two_sobels(problem: Problem, image: NDArray[Any]) -> Ready:
    border, stride = BORDER_CODES[problem.border], problem.stride
    source = _without_last_axis_of_one(image)
    along_x, along_y, length = (np.empty(source.shape, np.float32) for _ in range(3))
    out = np.empty(image.shape, np.uint8)
    target = _without_last_axis_of_one(out)

    def run() -> None:
        cv2.Sobel(source, cv2.CV_32F, 1, 0, dst=along_x, borderType=border)
        cv2.Sobel(source, cv2.CV_32F, 0, 1, dst=along_y, borderType=border)
        cv2.magnitude(along_x, along_y, magnitude=length)
        cv2.convertScaleAbs(length, dst=target)

    return _strided(run, out, problem, stride)


def _without_last_axis_of_one(array: NDArray[Any]) -> NDArray[Any]:
    """The same samples as OpenCV takes a grey picture: it would not write in place otherwise."""
    return array[:, :, 0] if array.shape[2] == 1 else array


def _strided(run: Any, out: NDArray[Any], problem: Problem, stride: int) -> Ready:
    """`run` fills `out` for every pixel; at strides the samples wanted are then copied out, as part of the work."""
    if stride == 1:
        return Ready(run, lambda: out, problem)
    picked = np.empty(problem.output_shape, np.uint8)

    def run_and_pick() -> None:
        run()
        np.copyto(picked, out[::stride, ::stride])

    return Ready(run_and_pick, lambda: picked, problem)
