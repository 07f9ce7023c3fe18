"""What a peer is, and what several share: the least work that a problem holds, as an expert reads it off the weights.

Outside of deep learning no library takes weights from every channel to every channel. Its user sees whether channels
stay apart under one kernel, whether one sum of them is filtered, or whether all pairs of channels must be (`Work`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Bench, BenchCandidate, Ready
from edgeconv.core.choices import BORDERS, Border, DeviceName
from edgeconv.core.exactness import is_whole, largest_sums
from edgeconv.core.filters import LUMA_WEIGHTS, Combine, Weights
from edgeconv.core.optional import import_problem
from edgeconv.core.problem import Problem
from edgeconv.errors import UnavailableError
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason

HALO = 1
"""The padding of a filter that gives back a picture of the same size: the only one that image libraries know."""
DTYPES = ("uint8", "uint16", "float32")
TOLERANCE = 1e-5
"""Relative: float32 sums in another order, or by Winograd's transform, which a library may choose."""
NEAR = 2e-6
"""How near weights that were rounded to float32 are to what they were."""


@dataclass(frozen=True)
class Library:
    """How a library does a problem, and which it takes: others are refused with the reason."""

    set_up: Callable[[Problem, Bench], Ready]
    """With the picture in place, for a problem that it takes; UnavailableError for what it cannot do."""
    module: str
    """The module to import."""
    distributions: tuple[str, ...]
    """Names on PyPI, any of which provides it; the first is the one to install."""
    needs: tuple[str, ...] = ()
    """Other modules without which it does not run here, beside CuPy on a GPU."""
    dtypes: tuple[str, ...] = DTYPES
    borders: tuple[Border, ...] = BORDERS
    combines: tuple[Combine, ...] = ("single", "magnitude")
    has_stride: bool = True
    has_groups: bool = True
    missing: Callable[[DeviceName], str | None] = lambda device: None
    """What it lacks on a device although it can be imported, as a sentence without a full stop."""

    def refuse(self, problem: Problem) -> None:
        """Raise UnavailableError for a problem that it does not take."""
        limits: tuple[tuple[str, Any, tuple[Any, ...]], ...] = (
            ("type", problem.dtype.name, self.dtypes),
            ("border", problem.border, self.borders),
            ("padding", problem.padding, (HALO,)),
            ("stride", problem.stride, (problem.stride if self.has_stride else 1,)),
            ("groups of channels", problem.groups, (problem.groups if self.has_groups else 1,)),
            ("rule for directions", problem.combine, self.combines),
        )
        for what, asked, taken in limits:
            if asked not in taken:
                raise UnavailableError(f"it is measured with {what} {' or '.join(map(str, taken))}, not {asked}")


@dataclass(eq=False)
class Peer(BenchCandidate):
    """A line of the table: a library on a device, whose module is imported when it is first asked for."""

    name: str
    device: DeviceName
    location: str
    """The module here and its `Library`."""
    summary: str
    written: bool = False
    """Whether a person writes the arithmetic in a language for kernels; else a library has it."""

    def __post_init__(self) -> None:
        self.kind, self.label = "peer", self.name

    @cached_property
    def library(self) -> Library:
        """What is called."""
        module, _, name = self.location.partition(":")
        found: Library = getattr(import_module(f"edgeconv.bench.peers.{module}"), name)
        return found

    def unavailable_reason(self) -> str | None:
        """Why it cannot run here, as a sentence without a full stop, or None."""
        if self.device == "cuda" and (reason := cuda_unavailable_reason()) is not None:
            return reason
        library = self.library
        for module in (*library.needs, library.module):
            if (problem := import_problem(module)) is not None:
                return f"{problem} (pip install '{library.distributions[0] if module == library.module else module}')"
        return library.missing(self.device)

    @property
    def version(self) -> str:
        """Of the installed distribution."""
        for name in self.library.distributions:
            with suppress(PackageNotFoundError):
                return version(name)
        return "unknown"

    def prepare(self, bench: Bench) -> Ready:
        self.library.refuse(bench.problem)
        return self.library.set_up(bench.problem, bench)


def on_host(array: Any) -> NDArray[Any]:
    """An array of NumPy, CuPy or PyTorch as NumPy's."""
    return np.asarray(array.get() if hasattr(array, "get") else array.cpu() if hasattr(array, "cpu") else array)


def kept(
    compute: Callable[[], Any], to_host: Callable[[Any], NDArray[Any]] = on_host
) -> tuple[Callable[[], None], Callable[[], NDArray[Any]]]:
    """For a library that gives back a new array: a run that keeps its result, and what gives that on the host."""
    held: list[Any] = [None]

    def run() -> None:
        held[0] = compute()

    return run, lambda: to_host(held[0])


FilterBy = Callable[[Weights], Callable[[Any], list[Any]]]
"""How a library is prepared for a kernel (3, 3) that is not 0: a function from a plane to terms that are added."""


@dataclass(frozen=True, eq=False)
class Work:
    """The least that must be computed for a problem: planes are made of channels, and each is filtered.

    channels apart, one kernel for all    the picture is the only plane, taps `channels` samples apart
    kernels that are shares of one        one plane, the sum of the channels by their shares; all outputs alike
    everything else                       a plane for each channel
    """

    apart: bool
    mixing: tuple[tuple[float, ...], ...]
    """For each plane the shares of the channels; of channels apart a single 1, as each sample is taken as it is."""
    weights: Weights
    """(directions, different outputs, planes, 3, 3)."""
    sums: np.dtype[Any]
    """int16 or int32 where every sum is a whole number that fits; else float32."""

    @property
    def kernels(self) -> Weights:
        """(directions, 3, 3) of the first plane and output."""
        return np.ascontiguousarray(self.weights[:, 0, 0])

    def planes(
        self, picture: Any, channel: Callable[[int], Any], mixed: Callable[[tuple[float, ...]], Any]
    ) -> list[Any]:
        """What is filtered: the picture, the one sum of its channels that `mixed` gives, or each `channel`."""
        if self.apart:
            return [picture]
        return [mixed(self.mixing[0])] if len(self.mixing) == 1 else [channel(c) for c in range(len(self.mixing))]

    def values(self, filter_by: FilterBy, magnitude: Callable[[Any, Any], Any]) -> Callable[[list[Any]], list[Any]]:
        """A function from planes to a value for each different output, the sum of all terms or the joined two sums."""
        outputs = [
            [[(plane, filter_by(k)) for plane, k in enumerate(kernels) if k.any()] for kernels in directions]
            for directions in self.weights.swapaxes(0, 1)
        ]

        def values_of(planes: list[Any]) -> list[Any]:
            found = []
            for directions in outputs:
                responses = [reduce(add, [t for p, terms in parts for t in terms(planes[p])]) for parts in directions]
                found.append(responses[0] if len(responses) == 1 else magnitude(*responses))
            return found

        return values_of


def work_of(problem: Problem) -> Work:
    """See `Work`; raises UnavailableError where an output has no weights."""
    weights, channels = problem.weights, problem.in_channels
    if not weights.any(axis=(2, 3, 4)).all():
        raise UnavailableError("an output has no weights")
    sums: np.dtype[Any] = np.dtype(np.float32)
    if is_whole(problem):
        most = largest_sums(problem).max()
        fitting = [kind for kind in ("int16", "int32") if most <= np.iinfo(kind).max]
        sums = np.dtype(fitting[0]) if fitting else sums
    alike = bool((weights == weights[:, :1]).all())
    if alike and problem.groups == channels == problem.output_channels:
        return Work(True, ((1.0,),), weights[:, :1], sums)
    if alike and problem.groups == 1 and channels > 1:
        for shares in ((1.0,) * channels, *LUMA_WEIGHTS.values()):
            mixing = np.array(shares, np.float32)
            kernels = weights[:, :1].sum(axis=2, keepdims=True) / mixing.sum()
            whole = np.rint(kernels)
            kernels = np.where(np.isclose(kernels, whole, NEAR, NEAR), whole, kernels).astype(weights.dtype)
            if np.allclose(kernels * mixing[:, None, None], weights[:, :1], rtol=NEAR, atol=0):
                return Work(False, (shares,), kernels, sums)
    return Work(False, tuple(map(tuple, np.eye(channels).tolist())), problem.dense_weights(), sums)


def kernels_apart(problem: Problem) -> Weights:
    """The kernels (directions, 3, 3) of channels that stand apart; else raises UnavailableError."""
    work = work_of(problem)
    if not work.apart:
        raise UnavailableError("it filters each channel by itself, all by one kernel")
    return work.kernels


def shifted_sums(problem: Problem, work: Work, magnitude: Callable[[Any, Any], Any]) -> Callable[[Any], list[Any]]:
    """`Work.values` of a padded picture (HWC) for a compiler of array expressions, weights as constants.

    plane[dy :: stride, dx :: stride] · weight, summed over the taps of a kernel that are not 0
    """
    rows, columns = (
        [slice(first, first + (extent - 1) * problem.stride + 1, problem.stride) for first in range(3)]
        for extent in (problem.output_height, problem.output_width)
    )

    def filter_by(kernel: Weights) -> Callable[[Any], list[Any]]:
        taps = [(rows[dy], columns[dx], float(kernel[dy, dx])) for dy, dx in np.argwhere(kernel).tolist()]
        return lambda plane: [plane[row, column] * weight for row, column, weight in taps]

    values = work.values(filter_by, magnitude)

    def values_of(padded: Any) -> list[Any]:
        def mixed(shares: tuple[float, ...]) -> Any:
            return reduce(add, [padded[:, :, c] * share for c, share in enumerate(shares)])

        return values(work.planes(padded, lambda c: padded[:, :, c], mixed))

    return values_of


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
