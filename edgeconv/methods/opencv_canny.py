"""`cv2.Canny` as a method: the whole chain in OpenCV's own code, by its own threads; 8-bit pictures only.

With `--threads` the process's OpenCV is held to that many for each run, as the library has no other way to ask.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import cv2
import numpy as np

from edgeconv.core.canny import ABOVE_EVERY_MAGNITUDE, CannySettings
from edgeconv.core.chains import ChainProblem
from edgeconv.core.exactness import WHOLE
from edgeconv.methods.base import Plan, check_workspace
from edgeconv.methods.cpu.arrays import check_arrays
from edgeconv.methods.options import Options

WORKSPACE_BYTES_PER_PIXEL = 6
"""What OpenCV holds for every pixel: two derivatives in int16, the map and the list of edge pixels."""


def chain_reason(problem: ChainProblem) -> str | None:
    """Why OpenCV has no function for a chain; None where it has."""
    if problem.chain.canny_settings() is None:
        return "OpenCV has no function for these stages"
    if problem.dtype != np.uint8:
        return f"cv2.Canny takes 8-bit pictures, and this one is {problem.dtype.name}"
    return None


class OpenCVCannyPlan(Plan):
    """One call, or two with smoothing."""

    def __init__(self, problem: ChainProblem, options: Options) -> None:
        settings = problem.chain.canny_settings()
        assert settings is not None  # as `reason` asks
        self._settings: CannySettings = settings
        self._threads = options.threads
        channels = problem.in_channels if settings.blur else 0
        workspace = problem.height * problem.width * (WORKSPACE_BYTES_PER_PIXEL + channels)
        check_workspace("opencv", workspace, options)
        choice = {"function": "cv2.Canny", "threads": self._threads or cv2.getNumThreads()}
        super().__init__(problem, workspace_bytes=workspace, arithmetic=WHOLE, choice=choice)

    def run(self, image: Any, out: Any) -> None:
        check_arrays(image, out, self.problem)
        settings = self._settings
        picture = image if image.shape[2] > 1 else image[:, :, 0]
        with LIMIT.held(self._threads):
            if settings.blur:
                picture = cv2.GaussianBlur(picture, (settings.blur, settings.blur), 0)
            edges = out.reshape(out.shape[:2])
            low, high = (min(value, ABOVE_EVERY_MAGNITUDE) for value in (settings.low, settings.high))  # it takes ints
            found = cv2.Canny(picture, low, high, edges, apertureSize=3, L2gradient=settings.l2)
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
