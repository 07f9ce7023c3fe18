"""What a peer is, and what several of them share: turning a 3×3 problem into calls that filter one plane.

Image libraries filter one channel with one kernel and know no stride, so `PlanePeer` does what a user of theirs
would write: a filtered plane for every pair of channels that meet, sums, a root or a maximum, every s-th sample.
Where all nine kernels of a mix are equal the channels are summed first, as an experienced user does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.core.choices import BORDERS, Border, DeviceName
from edgeconv.core.optional import import_problem
from edgeconv.core.output import TOLERANCE_FLOAT32, store
from edgeconv.core.problem import Problem
from edgeconv.errors import UnavailableError
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason

HALO = 1
"""The padding of a filter that gives back a plane of the same size: the only one that image libraries know."""


class Library(ABC):
    """One library on one device, imported when it is first asked for."""

    distributions: tuple[str, ...]
    """Names on PyPI, any of which provides it; the first is the one to install."""
    module: str
    """The module to import."""
    requirement: str = ""
    """What pip installs it by, where the first distribution alone does not run."""

    def __init__(self, device: DeviceName) -> None:
        self.device = device

    def unavailable_reason(self) -> str | None:
        """Why it cannot run here, as a sentence without a full stop, or None."""
        if self.device == "cuda" and (reason := cuda_unavailable_reason()) is not None:
            return reason
        problem = import_problem(self.module)
        return None if problem is None else f"{problem} (pip install '{self.requirement or self.distributions[0]}')"

    def version(self) -> str:
        """Of the installed distribution."""
        for name in self.distributions:
            try:
                return version(name)
            except PackageNotFoundError:
                continue
        return "unknown"


class Peer(Library):
    """One that computes a problem's convolution."""

    has_double = False
    """Whether it computes float64 pictures in float64; else they are not measured."""

    @abstractmethod
    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        """Set up with the picture in place; raises UnavailableError for a case that it cannot do."""


class PlanePeer(Peer):
    """A library that filters a plane; a subclass says how (`correlate`), and which borders it has."""

    borders: tuple[Border, ...] = BORDERS
    """Those that it has; the first takes the place of one that it has not."""
    tolerance = TOLERANCE_FLOAT32
    xp: Any = np
    """The array module of its planes."""

    @abstractmethod
    def correlate(self, plane: Any, kernel: NDArray[np.float32], border: Border) -> Any:
        """The float32 response of a float32 plane, of the same size."""

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        if problem.padding != HALO:
            raise UnavailableError(f"it gives back planes of the same size, which is padding {HALO}")
        border = problem.border if problem.border in self.borders else self.borders[0]
        done = replace(problem, border=border)
        xp = self.xp
        image = xp.asarray(image_host)
        held: list[Any] = [None]

        def run() -> None:
            held[0] = self._filter(image, done)

        return Ready(
            run=run,
            result=lambda: self.to_host(held[0]),
            problem=done,
            tolerance=self.tolerance,
            differs=None if border == problem.border else f"its border is {border}, not {problem.border}",
        )

    def to_host(self, out: Any) -> NDArray[Any]:
        """The output as a NumPy array."""
        host: NDArray[Any] = out
        return host

    def _filter(self, image: Any, problem: Problem) -> Any:
        xp, step = self.xp, slice(None, None, problem.stride)
        responses = [
            [response[step, step] for response in self._responses(image, kernels, problem)]
            for kernels in problem.dense_weights()
        ]
        joined = []
        for channel in zip(*responses, strict=True):
            if problem.combine == "magnitude":
                joined.append(xp.sqrt(channel[0] * channel[0] + channel[1] * channel[1]))
            elif problem.combine == "maximum":
                joined.append(xp.stack(channel).max(axis=0))
            else:
                joined.append(channel[0])
        return store(xp.stack(joined, axis=-1), problem.output_mode, problem.output_dtype, xp)

    def _responses(self, image: Any, kernels: NDArray[np.float32], problem: Problem) -> list[Any]:
        """One direction: float32 planes, one an output channel."""
        xp, border = self.xp, problem.border
        if problem.groups == 1 and (kernels == kernels[0, 0]).all():
            total = image.sum(axis=-1, dtype=xp.float32)
            return [self.correlate(total, kernels[0, 0], border)] * problem.output_channels
        planes = [xp.ascontiguousarray(image[..., channel], dtype=xp.float32) for channel in range(image.shape[-1])]
        responses = []
        for of_output in kernels:
            parts = [
                self.correlate(plane, kernel, border)
                for plane, kernel in zip(planes, of_output, strict=True)
                if kernel.any()
            ]
            total = parts[0] if parts else xp.zeros(planes[0].shape, xp.float32)
            for part in parts[1:]:
                total = total + part
            responses.append(total)
        return responses
