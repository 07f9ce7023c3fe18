"""What a peer is, and what several share: the least work that a problem holds, as an expert reads it off the weights.

Outside of deep learning no library takes weights from every channel to every channel. Its user sees whether channels
stay apart under one kernel, whether one sum of them is filtered, or whether all pairs of channels must be (`Work`).
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.core.choices import Border, DeviceName
from edgeconv.core.exactness import is_whole, largest_sums
from edgeconv.core.filters import LUMA_WEIGHTS, Weights
from edgeconv.core.optional import import_problem
from edgeconv.core.problem import Problem
from edgeconv.errors import UnavailableError
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason

HALO = 1
"""The padding of a filter that gives back a picture of the same size: the only one that image libraries know."""
TOLERANCE = 1e-5
"""Relative: float32 sums in another order, or by Winograd's transform, which a library may choose."""
NEAR = 2e-6
"""How near weights that were rounded to float32 are to what they were."""


class Library(ABC):
    """One library on one device, imported when it is first asked for."""

    distributions: tuple[str, ...]
    """Names on PyPI, any of which provides it; the first is the one to install."""
    module: str
    """The module to import."""
    needs: tuple[str, ...] = ()
    """Other modules without which it does not run here."""
    requirement: str = ""
    """What pip installs it by, where the first distribution alone does not run."""
    environment: ClassVar[Mapping[str, str]] = {}
    """Settings that it reads when it is imported; those of the user stay."""

    def __init__(self, device: DeviceName) -> None:
        self.device = device

    def unavailable_reason(self) -> str | None:
        """Why it cannot run here, as a sentence without a full stop, or None."""
        if self.device == "cuda" and (reason := cuda_unavailable_reason()) is not None:
            return reason
        for name, value in self.environment.items():
            os.environ.setdefault(name, value)
        for module in (*self.needs, self.module):
            if (problem := import_problem(module)) is not None:
                own = self.requirement or self.distributions[0]
                return f"{problem} (pip install '{own if module == self.module else module}')"
        return None

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


def on_host(array: Any) -> NDArray[Any]:
    """An array of NumPy, CuPy or PyTorch as NumPy's."""
    host: NDArray[Any] = array.get() if hasattr(array, "get") else array.cpu() if hasattr(array, "cpu") else array
    return np.asarray(host)


def kept(
    compute: Callable[[], Any], to_host: Callable[[Any], NDArray[Any]] = on_host
) -> tuple[Callable[[], None], Callable[[], NDArray[Any]]]:
    """For a library that gives back a new array: a run that keeps it, and its result on the host."""
    held: list[Any] = [None]

    def run() -> None:
        held[0] = compute()

    return run, lambda: to_host(held[0])


@dataclass(frozen=True, eq=False)
class Work:
    """The least that must be computed for a problem: planes are made of channels, and each is filtered.

    channels apart, one kernel for all    rows of width · channels samples, taps `step` = channels apart
    kernels that are shares of one        one plane, the sum of the channels by their shares; all outputs alike
    everything else                       a plane for each channel
    """

    apart: bool
    mixing: NDArray[np.float32]
    """(planes, channels) of what a plane is made; of channels apart (1, 1), as each sample is taken as it is."""
    weights: Weights
    """(directions, different outputs, planes, 3, 3)."""
    sums: np.dtype[Any]
    """int16 or int32 where every sum is a whole number that fits; else float32."""

    @property
    def kernels(self) -> Weights:
        """(directions, 3, 3) of the only plane and output."""
        return np.ascontiguousarray(self.weights[:, 0, 0])

    @property
    def is_plain(self) -> bool:
        """Whether there is one kernel for each direction."""
        return self.weights.shape[1:3] == (1, 1)


def work_of(problem: Problem) -> Work:
    """See `Work`."""
    weights, channels = problem.weights, problem.in_channels
    sums: np.dtype[Any] = np.dtype(np.float32)
    if is_whole(problem):
        most = largest_sums(problem).max()
        fitting = [kind for kind in ("int16", "int32") if most <= np.iinfo(kind).max]
        sums = np.dtype(fitting[0]) if fitting else sums
    alike = bool((weights == weights[:, :1]).all())
    if alike and problem.groups == channels == problem.output_channels:
        return Work(True, np.ones((1, 1), np.float32), weights[:, :1], sums)
    if alike and problem.groups == 1 and channels > 1:
        for shares in ((1.0,) * channels, *LUMA_WEIGHTS.values()):
            mixing = np.array([shares], np.float32)
            kernels = weights[:, :1].sum(axis=2, keepdims=True) / mixing.sum()
            whole = np.rint(kernels)
            kernels = np.where(np.isclose(kernels, whole, NEAR, NEAR), whole, kernels).astype(weights.dtype)
            if np.allclose(kernels * mixing[0, :, None, None], weights[:, :1], rtol=NEAR, atol=0):
                return Work(False, mixing, kernels, sums)
    return Work(False, np.eye(channels, dtype=np.float32), problem.dense_weights(), sums)


def grouped(problem: Problem) -> tuple[Weights, tuple[int, int, int]]:
    """All directions as one grouped convolution, as neural networks have it: (groups · directions · a, in, 3, 3).

    Beside it (groups, directions, a), the channels of its result taken apart; a is the outputs of a group.
    """
    directions, outputs, *kernel = problem.weights.shape
    split = problem.groups, directions, outputs // problem.groups
    apart = problem.weights.reshape(directions, problem.groups, split[2], *kernel)
    return np.ascontiguousarray(apart.swapaxes(0, 1)).reshape(-1, *kernel), split


def changed(problem: Problem, **what: Any) -> tuple[Problem, str | None]:
    """What a peer computes in place of `problem`, and the words for the border or output that differ."""
    done = replace(problem, **what)
    pairs = (("border", done.border, problem.border), ("output", done.output_mode, problem.output_mode))
    return done, ", ".join(f"its {what} is {own}, not {asked}" for what, own, asked in pairs if own != asked) or None


def require_same_size(problem: Problem) -> None:
    """Raise UnavailableError for another padding than `HALO`."""
    if problem.padding != HALO:
        raise UnavailableError(f"it gives back planes of the same size, which is padding {HALO}")


def require_zero_border(problem: Problem) -> None:
    """Raise UnavailableError for another border than zero."""
    if problem.border != "zero":
        raise UnavailableError("it is written for a zero border")


NDIMAGE_MODES: dict[Border, str] = {
    "zero": "constant",
    "replicate": "nearest",
    "reflect": "reflect",
    "reflect101": "mirror",
}
"""Borders in the words of SciPy, CuPy and scikit-image."""
