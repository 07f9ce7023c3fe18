"""OpenCV as its users call it: its own threads, `dst=` everywhere; every s-th sample is picked, as it has no stride.

    channels apart   one filter2D over the HWC picture, to 16 bits where whole sums fit, else to float32; a Sobel by
                     the separable cv2.Sobel; convertScaleAbs for |value| of 8 bits
    one sum of all   cv2.add of the planes, or cv2.transform of floats; then one plane, and cv2.merge
    luma             cvtColor, which rounds the grey of 8 bits: said in `differs`
    all pairs        split, filter2D and add into buffers, merge

Source: OpenCV's tutorials on filter2D, on Sobel derivatives and on colour conversions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.peers.base import Peer, Work, work_of
from edgeconv.core.filters import LUMA_WEIGHTS, SOBEL_X
from edgeconv.core.output import TOLERANCE_FLOAT32
from edgeconv.core.problem import Problem
from edgeconv.methods.opencv import BORDER_CODES

DEPTHS = {"uint8": cv2.CV_8U, "uint16": cv2.CV_16U, "int16": cv2.CV_16S, "float32": cv2.CV_32F}
GREY_ERROR = 0.53
"""Levels by which cvtColor's grey of 8 bits is off at most: half of one, and its shares have 15 bits."""


class OpenCVCalls(Peer):
    """cv2."""

    distributions, module = ("opencv-python-headless", "opencv-python"), "cv2"

    def set_up(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        work, image = work_of(problem), _plane(image_host)
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
        exact = image_host.astype(np.float32) @ np.array(work.mixing[0], np.float32)
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
