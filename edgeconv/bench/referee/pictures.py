"""The pictures that are timed. No candidate has seen them before, and each timed sample has some pixels of its own.

    check      the same in every run, so that records can be compared: only for the check before
    mixed      its first quarter is that of the check's picture, the rest is drawn at run time
    drawn      drawn at run time, all of it

The mixed one lies at the addresses of the check's picture, the drawn one at others; where memory is short there is only
the latter, at the addresses of the check's. Before each timed sample the input of a patch of the output gets new
noise and the patch itself is filled with a value that is no result, so that a run that is skipped shows. What the
pictures hold is known apart from the arrays that candidates see.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Bench
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.noise import noise_of
from edgeconv.core.problem import Problem

PATCH_ROWS, PATCH_COLUMNS = 4, 16
"""Of the output: some dozens of samples, which the oracle computes in a fraction of a millisecond."""
SHARE_OF_CHECK = 4
"""The part of the mixed picture, from the top, that the check's picture has too: one in so many rows."""
MEMORY_SHARE = 4
"""A second pair of arrays is made where free memory has room for so many."""
POISONS = (0xA5, 0x5A, 0x3C)
"""For whole-number outputs; one that is a result by chance is not one under all three. Floats get NaN."""


@dataclass(frozen=True)
class Patch:
    """A rectangle of the output whose windows lie inside the picture, or all of a picture that is too small for one."""

    problem: Problem
    """What is computed there, without the rest of the picture."""
    out: tuple[slice, slice]
    image: tuple[slice, slice]


def draw_patch(problem: Problem, rng: np.random.Generator) -> Patch:
    """A patch anywhere; all of the output where no window lies inside the picture."""
    spans = []
    for size, most in ((problem.height, PATCH_ROWS), (problem.width, PATCH_COLUMNS)):
        first = -(-problem.padding // problem.stride)
        last = (size + problem.padding - KERNEL_SIZE) // problem.stride
        if last < first:
            everything = (slice(None), slice(None))
            return Patch(problem, everything, everything)
        length = min(most, last - first + 1)
        start = int(rng.integers(first, last - length + 2))
        begin = start * problem.stride - problem.padding
        stop = begin + (length - 1) * problem.stride + KERNEL_SIZE
        spans.append((slice(start, start + length), slice(begin, stop)))
    (rows, image_rows), (columns, image_columns) = spans
    alone = replace(
        problem,
        height=image_rows.stop - image_rows.start,
        width=image_columns.stop - image_columns.start,
        padding=0,
    )
    return Patch(alone, (rows, columns), (image_rows, image_columns))


@dataclass
class Slot:
    """A picture and an output on the device, and what the picture holds (on the host, where no candidate sees it)."""

    image: Any
    out: Any
    truth: NDArray[Any]


class TimedPictures:
    """The slots of one case, all of which candidates share."""

    def __init__(self, bench: Bench, rng: np.random.Generator, is_noise: bool) -> None:
        self.bench, self.rng, self.is_noise = bench, rng, is_noise
        device, problem = bench.device, bench.problem
        self.drawn = self.draw()
        """As it was drawn, which is what peers hold; what a slot holds changes with each sample."""
        slot_bytes = problem.input_bytes + problem.output_bytes
        free_bytes = device.free_bytes()
        self.slots = [Slot(bench.image, bench.out, self.drawn.copy())]
        if free_bytes is None or free_bytes > MEMORY_SHARE * slot_bytes:
            shared_rows = problem.height // SHARE_OF_CHECK
            self.slots[0].truth = np.concatenate((bench.image_host[:shared_rows], self.drawn[shared_rows:]))
            image = device.empty(problem.input_shape, problem.dtype)
            self.slots.append(Slot(image, device.empty(problem.output_shape, problem.output_dtype), self.drawn.copy()))

    def draw(self) -> NDArray[Any]:
        """A picture of this case that nobody has seen."""
        return _other_pixels(self.bench.image_host, self.rng, self.is_noise)

    def show_check(self) -> None:
        """Let the candidates see the check's picture, at the addresses of the first slot."""
        self.use(0)
        self.bench.device.copy_in(self.bench.image_host, self.bench.image)

    def show(self, number: int) -> Slot:
        """Let them see the picture of a slot, whatever they did to it."""
        slot = self.use(number)
        self.bench.device.copy_in(slot.truth, slot.image)
        return slot

    def show_all(self) -> None:
        """Before what is timed: every slot holds its own picture."""
        for number in range(len(self.slots)):
            self.show(number)

    def use(self, number: int) -> Slot:
        """Let them see a slot, the numbers going round, with what it holds."""
        slot = self.slots[number % len(self.slots)]
        self.bench.image, self.bench.out = slot.image, slot.out
        return slot

    def poison(self, out: Any, number: int = 0) -> None:
        """Fill an output, or a part of one, with what is no result."""
        out[...] = self.poison_value(number)

    def poison_value(self, number: int = 0) -> float | int:
        """What an output is filled with."""
        return POISONS[number % len(POISONS)] if self.bench.problem.output_dtype.kind == "u" else float("nan")

    def is_poison(self, out: Any, number: int = 0) -> Any:
        """Which samples of an output hold it."""
        return out == self.poison_value(number) if self.bench.problem.output_dtype.kind == "u" else out != out

    def read(self, array: Any, part: tuple[slice, slice]) -> NDArray[Any]:
        """A part of an array on the device as it is now, as a host array of its own."""
        found = array[part].copy()
        if not self.bench.device.moves_data:
            host: NDArray[Any] = found
            return host
        host = np.empty(found.shape, found.dtype)
        self.bench.device.copy_out(found, host)
        return host

    def plant(self, slot: Slot) -> tuple[Patch, NDArray[Any], Callable[[], None]]:
        """A patch, its input as it was, and a call that gives the input new noise and poisons the output there.

        What is to be moved to the device is there before the call, which only puts two small writes in its queue.
        """
        patch = draw_patch(self.bench.problem, self.rng)
        before = slot.truth[patch.image].copy()
        noise = noise_of(self.rng, before.shape, before.dtype)
        slot.truth[patch.image] = noise
        array_module = self.bench.device.array_module
        new = array_module.asarray(noise)

        def renew() -> None:
            slot.image[patch.image] = new
            self.poison(slot.out[patch.out])

        return patch, before, renew


def _other_pixels(image: NDArray[Any], rng: np.random.Generator, is_noise: bool) -> NDArray[Any]:
    """Noise for noise, and for a picture itself with its rows and columns turned by some: alike, and not the same."""
    if is_noise:
        return noise_of(rng, image.shape, image.dtype)
    shifts = tuple(int(rng.integers(1, size)) if size > 1 else 0 for size in image.shape[:2])
    return np.roll(image, shifts, (0, 1))
