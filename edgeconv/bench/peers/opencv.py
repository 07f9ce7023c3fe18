"""OpenCV as its users call it: its own threads, `dst=` everywhere; every s-th sample is picked, as it has no stride.

    channels apart   one filter2D over the HWC picture, to 16 bits where whole sums fit, else to float32; a Sobel by
                     the separable cv2.Sobel; convertScaleAbs for |value| of 8 bits
    one sum of all   cv2.add of the planes, or cv2.transform of floats; then one plane, and cv2.merge
    luma             cvtColor, which rounds the grey of 8 bits: said in `differs`
    all pairs        split, filter2D and add into buffers, merge

Source: OpenCV's tutorials on filter2D, on Sobel derivatives and on colour conversions.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.peers.base import Peer, Work, require_same_size, work_of
from edgeconv.core.filters import LUMA_WEIGHTS, SOBEL_X
from edgeconv.core.output import TOLERANCE_FLOAT32
from edgeconv.core.problem import Problem
from edgeconv.errors import UnavailableError
from edgeconv.methods.opencv import BORDER_CODES

DEPTHS = {"uint8": cv2.CV_8U, "uint16": cv2.CV_16U, "int16": cv2.CV_16S, "float32": cv2.CV_32F}
GREY_ERROR = 0.53
"""Levels by which cvtColor's grey of 8 bits is off at most: half of one, and its shares have 15 bits."""


class OpenCVCalls(Peer):
    """cv2."""

    distributions = ("opencv-python-headless", "opencv-python")
    module = "cv2"

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        require_same_size(problem)
        if problem.dtype.name not in DEPTHS:
            raise UnavailableError(f"it filters {', '.join(DEPTHS)}")
        work = work_of(problem)
        sums = np.dtype(np.int16 if work.sums == np.int16 and problem.combine == "single" else np.float32)
        depth, border = DEPTHS[sums.name], BORDER_CODES[problem.border]
        is_sobel = work.is_plain and np.array_equal(work.kernels, [SOBEL_X, SOBEL_X.T])
        image, plane_shape = _plane(image_host), image_host.shape[:2]
        response_shape = image.shape if work.apart else plane_shape
        responses = [np.empty(response_shape, sums) for _ in range(problem.directions)]
        part, joined = np.empty(response_shape, sums), np.empty(response_shape, sums)
        out = np.empty(problem.output_shape, problem.output_dtype)
        stored = [np.empty(out.shape[:2], out.dtype) for _ in range(work.weights.shape[1])]
        sources = _Sources(image, work, sums)

        def filter_into(source: Any, kernel: Any, direction: int, target: Any) -> None:
            if is_sobel:
                cv2.Sobel(source, depth, 1 - direction, direction, dst=target, borderType=border)
            else:
                cv2.filter2D(source, depth, kernel, dst=target, borderType=border)

        def value(planes: list[Any], k: int) -> Any:
            for direction, response in enumerate(responses):
                kernels = work.weights[direction, k]
                met = [index for index, kernel in enumerate(kernels) if kernel.any()] or [0]
                for index in met:
                    filter_into(planes[index], kernels[index], direction, part if index != met[0] else response)
                    if index != met[0]:
                        cv2.add(response, part, dst=response)
            if problem.combine == "magnitude":
                return cv2.magnitude(responses[0], responses[1], magnitude=joined)
            for response in responses[1:]:
                cv2.max(responses[0], response, dst=responses[0])
            return responses[0]

        def run() -> None:
            if work.apart:
                _store(value([image], 0), _plane(out), problem)
                return
            planes = sources.planes()
            for k, target in enumerate(stored):
                _store(value(planes, k), target, problem)
            cv2.merge(stored * (problem.output_channels // len(stored)), dst=_plane(out))

        if not sources.rounds:
            return Ready(run, lambda: out, problem, tolerance=TOLERANCE_FLOAT32)
        off = GREY_ERROR * float(np.linalg.norm(np.abs(work.kernels).sum(axis=(1, 2))))
        exact = image_host.astype(np.float32) @ work.mixing[0]
        largest = float(np.abs(value([exact], 0)).max())
        differs = f"it rounds the grey: up to {np.ceil(off):g} levels"
        return Ready(run, lambda: out, problem, tolerance=off / max(largest, off), differs=differs)


class _Sources:
    """The planes that are filtered, made in buffers that are reused."""

    def __init__(self, image: NDArray[Any], work: Work, sums: np.dtype[Any]) -> None:
        self._image, self._work, self._depth = image, work, DEPTHS[sums.name]
        self._apart = [np.empty(image.shape[:2], image.dtype) for _ in range(image.shape[2] if image.ndim > 2 else 1)]
        self._sum, self._wide = np.empty(image.shape[:2], sums), np.empty(image.shape, np.float32)
        is_luma = np.array_equal(work.mixing, np.array([LUMA_WEIGHTS["bt601"]], np.float32))
        self._is_grey = is_luma and image.dtype in (np.uint8, np.float32)
        self.rounds = self._is_grey and image.dtype == np.uint8

    def planes(self) -> list[Any]:
        """As `work.mixing` says."""
        image, mixing = self._image, self._work.mixing
        if image.ndim == 2:
            return [image]
        if self._is_grey:
            return [cv2.cvtColor(image, cv2.COLOR_RGB2GRAY, dst=self._apart[0])]
        if len(mixing) == 1 and (image.dtype == np.float32 or (mixing != 1).any()):
            np.copyto(self._wide, image)
            return [cv2.transform(self._wide, mixing, dst=self._sum)]
        cv2.split(image, self._apart)
        if len(mixing) > 1:
            return self._apart
        cv2.add(self._apart[0], self._apart[1], dst=self._sum, dtype=self._depth)
        return [cv2.add(self._sum, self._apart[2], dst=self._sum, dtype=self._depth)]


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
