"""OpenCV, the CPU's vendor library: `cv2.filter2D` a band of rows at a time, so that bands stay in cache.

    uint8 a channel, whole weights   filter2D to int16 (exact), then convertScaleAbs
    kernels equal for all inputs     cv2.transform sums the input channels, then one filter2D for each different output
    luma                             the same with a sum of shares of the channels
    everything else                  filter2D for every pair of channels that meet, summed

Sums are float32, or float64 where the picture is float64 or float32 does not hold them (exactness.py). A grey picture
has one channel; outputs of a bank are planes that are merged at the end, equal ones computed once.

A band takes its halo rows along and drops the two outer rows of what filter2D gives back, so OpenCV's
border rule is used for the columns alone, and only where the padding is 1. OpenCV has no stride: everything is
computed and every s-th sample is picked. Imports OpenCV and NumPy and nothing else: the fastest start of all.

Canny is `cv2.Canny`: the whole chain in OpenCV's own code, by its own threads; 8-bit pictures only. With `--threads`
the process's OpenCV is held to that many for each run, as the library has no other way to ask.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeconv.core import exactness, progress
from edgeconv.core.chains import ChainProblem
from edgeconv.core.choices import Border
from edgeconv.core.filters import Weights
from edgeconv.core.geometry import KERNEL_SIZE, OUTSIDE, border_indices
from edgeconv.core.lowering import one_channel
from edgeconv.core.output import store
from edgeconv.core.problem import PictureProblem, Problem
from edgeconv.hardware.pool import run_pieces, threads_for
from edgeconv.methods.base import Method, Plan, check_workspace
from edgeconv.methods.cpu.arrays import check_arrays
from edgeconv.methods.options import Options

BORDER_CODES: dict[Border, int] = {
    "zero": cv2.BORDER_CONSTANT,
    "replicate": cv2.BORDER_REPLICATE,
    "reflect": cv2.BORDER_REFLECT,
    "reflect101": cv2.BORDER_REFLECT_101,
}

HALO = KERNEL_SIZE // 2
CLAMP = 256
"""Past the range of uint8, and exact in int16 and float32."""
MOST_MERGED = 4
"""Channels that OpenCV merges faster than NumPy puts them side by side; it knows at most 128."""
BAND_BYTES = 512 * 2**10
"""Source bytes of a band: measured, docs/cpu-engine.md; larger ones gain little and cost memory."""
CANNY_BYTES_PER_PIXEL = 6
"""What OpenCV holds for every pixel: two derivatives in int16, the map and the list of edge pixels."""


class OpenCVPlan(Plan):
    """Bands, and the chain of OpenCV calls that suits the weights."""

    problem: Problem

    def __init__(self, problem: Problem, options: Options) -> None:
        super().__init__(problem)
        self._rows = border_indices(problem.height, problem.padding, problem.border)
        self._columns = border_indices(problem.width, problem.padding, problem.border)
        padded_width = problem.width + 2 * problem.padding
        row_bytes = padded_width * problem.in_channels * problem.dtype.itemsize
        wide = exactness.sums_for(problem) == "float64"
        self._float = np.dtype(np.float64 if wide else np.float32)
        self._depth = cv2.CV_64F if wide else cv2.CV_32F
        self._int16_kernel = _kernel_exact_in_int16(problem)
        self._own_kernel = _kernel_of_every_channel(problem)
        weights = problem.dense_weights()
        one = one_channel(problem, weights.astype(self._float, copy=False)) if problem.groups == 1 else None
        self._channel_sum: tuple[float, ...] = () if one is None else one.shares or (1.0,) * problem.in_channels
        """What of each input channel is summed before the filter; empty where channels are filtered apart."""
        self._kernels = weights if one is None else one.kernels
        self._first_alike = _first_alike(self._kernels)
        self._band_rows = max(1, min(problem.output_height, BAND_BYTES // (row_bytes * problem.stride)))
        self._bands = -(-problem.output_height // self._band_rows)
        self._threads = threads_for(options.threads, problem.input_bytes + problem.output_bytes, self._bands)
        self._fit_workspace(padded_width * self._temporary_bytes_per_pixel(), options)
        self.arithmetic = exactness.own_arithmetic(problem) if self._int16_kernel is None else exactness.WHOLE
        self.choice = {
            "band_rows": self._band_rows,
            "threads": self._threads,
            "arithmetic": self._float.name if self._int16_kernel is None else "int16",
            "collapsed": bool(self._channel_sum),
            "different_outputs": len(set(self._first_alike)),
        }

    def _temporary_bytes_per_pixel(self) -> int:
        """Of a band: channel sum or planes, a response, the joined value; of a bank its outputs, apart and merged."""
        problem = self.problem
        has_wide_root = problem.combine == "magnitude" and problem.output_dtype != np.uint8
        sample_bytes = 8 if has_wide_root else self._float.itemsize
        most = max(problem.in_channels, problem.output_channels)
        return 3 * most * sample_bytes

    def _fit_workspace(self, temporary_row: int, options: Options) -> None:
        """Lower bands and, where a row each is still too much, threads until the temporaries keep to the limit."""
        problem, limit = self.problem, options.workspace_limit_bytes

        def band_bytes(band_rows: int) -> int:
            return ((band_rows - 1) * problem.stride + KERNEL_SIZE) * temporary_row

        check_workspace("opencv", band_bytes(1), options, or_else="")
        self._threads = max(1, min(self._threads, limit // band_bytes(1)))
        most_rows = 1 + (limit // self._threads // temporary_row - KERNEL_SIZE) // problem.stride
        self._band_rows = max(1, min(self._band_rows, most_rows))
        self._bands = -(-problem.output_height // self._band_rows)
        self.workspace_bytes = band_bytes(self._band_rows) * self._threads

    def run(self, image: Any, out: Any) -> None:
        check_arrays(image, out, self.problem)

        def one_band(band: int, worker: int) -> None:
            if worker == 0 and band:  # on the caller's thread, which may get no band: others can be faster
                progress.report()
            start = band * self._band_rows
            self._filter_rows(image, out, start, min(start + self._band_rows, self.problem.output_height))

        progress.report()
        run_pieces(one_band, self._bands, self._threads)

    def _filter_rows(self, image: NDArray[Any], out: NDArray[Any], start: int, stop: int) -> None:
        problem, stride = self.problem, self.problem.stride
        source = self._source(image, start * stride, (stop - 1) * stride + KERNEL_SIZE)
        if self._int16_kernel is not None:
            values = self._filter(source, self._int16_kernel, cv2.CV_16S)
        else:
            values = self._float_values(source)
        first_column = 0 if problem.padding == HALO else HALO
        last_column = first_column + (problem.output_width - 1) * stride + 1
        picked = values[HALO : values.shape[0] - HALO : stride, first_column:last_column:stride]
        _store_band(picked, out[start:stop], problem)

    def _source(self, image: NDArray[Any], first: int, last: int) -> NDArray[Any]:
        """Padded rows `first` to `last`; columns are padded here unless filter2D's border rule does it."""
        rows = self._rows[first:last]
        if rows[0] != OUTSIDE and rows[-1] - rows[0] == last - first - 1 and (rows[1:] > rows[:-1]).all():
            band = image[rows[0] : rows[-1] + 1]
        else:
            band = image[rows]
            band[rows == OUTSIDE] = 0
        if self.problem.padding > HALO:
            band = band[:, self._columns]
            band[:, self._columns == OUTSIDE] = 0
        return band.astype(np.float32) if band.dtype == np.float16 else band

    def _float_values(self, source: NDArray[Any]) -> NDArray[np.floating[Any]]:
        """Joined responses (rows, columns, out), float32 or float64."""
        if self._own_kernel is not None:
            return _hwc(self._join([self._filter(source, kernel, self._depth) for kernel in self._own_kernel]))
        if self._channel_sum:
            shares = np.array([self._channel_sum], self._float)
            planes = [_hwc(cv2.transform(source.astype(self._float, copy=False), shares))]
        else:
            planes = [_hwc(plane) for plane in cv2.split(source)]
        values: dict[int, NDArray[np.floating[Any]]] = {}
        for output in dict.fromkeys(self._first_alike):
            values[output] = self._join([self._response(planes, kernels) for kernels in self._kernels[:, output]])
        merged = [values[output] for output in self._first_alike]
        return _hwc(cv2.merge(merged)) if len(merged) <= MOST_MERGED else np.concatenate(merged, axis=-1)

    def _join(self, responses: list[NDArray[np.floating[Any]]]) -> NDArray[np.floating[Any]]:
        """One value of the responses of all directions (rows, columns, channels)."""
        problem = self.problem
        if problem.combine == "magnitude":
            first, second = responses
            if problem.dtype == np.float64:  # whose squares may overflow or vanish in float64
                length: NDArray[np.float64] = np.hypot(first, second)
                return length
            # Squares of float32 may overflow or vanish, and do not tell 16-bit halves apart; 8 bits they do.
            root = self._float if problem.output_dtype == np.uint8 else np.float64
            return _hwc(cv2.magnitude(first.astype(root, copy=False), second.astype(root, copy=False)))
        joined = responses[0]
        for response in responses[1:]:  # NumPy's maximum keeps a NaN, which OpenCV's drops
            joined = np.maximum(joined, response) if problem.dtype.kind == "f" else _hwc(cv2.max(joined, response))
        return joined

    def _response(self, planes: list[NDArray[Any]], kernels: Weights) -> NDArray[np.floating[Any]]:
        """One direction of one output (rows, columns, 1); `kernels` is (planes, 3, 3)."""
        total = np.zeros((*planes[0].shape[:2], 1), self._float)
        for plane, kernel in zip(planes, kernels, strict=True):
            if kernel.any():
                with np.errstate(invalid="ignore", over="ignore"):  # an infinity less another is NaN
                    total += self._filter(plane, kernel, self._depth)
        return total

    def _filter(self, source: NDArray[Any], kernel: Weights, depth: int) -> NDArray[Any]:
        return _hwc(cv2.filter2D(source, depth, kernel, borderType=BORDER_CODES[self.problem.border]))


def _hwc(array: Any) -> NDArray[Any]:
    """OpenCV drops a last axis of 1; give it back."""
    hwc: NDArray[Any] = array if array.ndim == 3 else array[:, :, np.newaxis]
    return hwc


def _store_band(values: NDArray[Any], out: NDArray[Any], problem: Problem) -> None:
    """Store int16 or float values as the output mode says; OpenCV's saturating casts where they apply."""
    if problem.output_dtype != np.uint8:
        out[...] = store(values, problem.output_mode, problem.output_dtype)
        return
    if problem.output_mode == "clip" or values.dtype.kind == "f":  # a float of 2³¹ or more would become 0
        values = np.clip(values, 0 if problem.output_mode == "clip" else -CLAMP, CLAMP, out=values)
    if values.dtype == np.float64:  # which goes through float32 below
        np.rint(values, out=values)
    # |v|, rounded to nearest with ties to even and saturated: the project's rule (output.py). `dst` is written
    # in place where OpenCV finds it of the right layout; a last axis of 1 makes it a new array.
    stored = cv2.convertScaleAbs(values, dst=out if problem.output_channels > 1 else None)
    if stored is not out:
        out[...] = _hwc(stored)


def _kernel_of_every_channel(problem: Problem) -> Weights | None:
    """(directions, 3, 3) where every channel is filtered by itself with the same kernels, once; else None."""
    separate = problem.groups == problem.in_channels == problem.output_channels
    kernels = problem.weights[:, :1, :1]
    return kernels[:, 0, 0] if separate and (problem.weights == kernels).all() else None


def _kernel_exact_in_int16(problem: Problem) -> Weights | None:
    """The one whole-number kernel of uint8 channels by themselves, where all its sums stay within int16."""
    kernels = _kernel_of_every_channel(problem)
    if problem.dtype != np.uint8 or problem.combine != "single" or kernels is None:
        return None
    kernel = kernels[0]
    whole = bool((kernel == np.rint(kernel)).all())
    fits = float(np.abs(kernel).sum()) * np.iinfo(np.uint8).max <= np.iinfo(np.int16).max
    return kernel if whole and fits else None


def _first_alike(kernels: Weights) -> list[int]:
    """For every output (second axis) the first one that has the same kernels."""
    first: dict[bytes, int] = {}
    return [first.setdefault(kernels[:, output].tobytes(), output) for output in range(kernels.shape[1])]


# --- Canny ------------------------------------------------------------------------------------------------------------


class OpenCVCannyPlan(Plan):
    """One call, or two with smoothing."""

    def __init__(self, problem: ChainProblem, options: Options) -> None:
        self._threads = options.threads
        channels = problem.in_channels if problem.chain.blur else 0
        workspace = problem.height * problem.width * (CANNY_BYTES_PER_PIXEL + channels)
        check_workspace("opencv", workspace, options)
        choice = {"function": "cv2.Canny", "threads": self._threads or cv2.getNumThreads()}
        super().__init__(problem, workspace_bytes=workspace, arithmetic=exactness.WHOLE, choice=choice)

    def run(self, image: Any, out: Any) -> None:
        check_arrays(image, out, self.problem)
        chain, (low, high) = self.problem.chain, self.problem.chain.thresholds
        picture = image if image.shape[2] > 1 else image[:, :, 0]
        with LIMIT.held(self._threads):
            if chain.blur:
                picture = cv2.GaussianBlur(picture, (chain.blur, chain.blur), 0)
            edges = out.reshape(out.shape[:2])
            found = cv2.Canny(picture, low, high, edges, apertureSize=3, L2gradient=chain.l2)
        if found is not edges and not np.shares_memory(found, edges):
            edges[...] = found


class ThreadLimit:
    """Holds OpenCV, one pool for the whole process, to a number of threads while anybody asks for it.

    Runs of several threads may overlap: the last that ends gives back what there was before the first.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._before = 0

    @contextmanager
    def held(self, asked: int | None) -> Iterator[None]:
        """Hold it to `asked` threads inside the block; nothing where that is None."""
        if asked is None:
            yield
            return
        with self._lock:
            if not self._holders:
                self._before = cv2.getNumThreads()
            self._holders += 1
            cv2.setNumThreads(asked)
        try:
            yield
        finally:
            with self._lock:
                self._holders -= 1
                if not self._holders:
                    cv2.setNumThreads(self._before)


LIMIT = ThreadLimit()


class OpenCV(Method):
    """Always available: OpenCV is a base dependency."""

    def reason(self, problem: PictureProblem, options: Options) -> str | None:
        """See Method.reason."""
        if not isinstance(problem, ChainProblem):
            return None
        if not problem.chain.is_canny:
            return "OpenCV has no function for these stages"
        is_bytes = problem.dtype == np.uint8
        return None if is_bytes else f"cv2.Canny takes 8-bit pictures, and this one is {problem.dtype.name}"

    def prepare(self, problem: Problem | ChainProblem, options: Options, pictures: int = 1) -> Plan:
        if isinstance(problem, ChainProblem):
            return OpenCVCannyPlan(problem, options)
        return OpenCVPlan(problem, options)
