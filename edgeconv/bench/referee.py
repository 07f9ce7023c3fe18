"""The referee: nothing gets a time for work that it did not do.

    timed     on pictures that are drawn at run time, at the check's addresses and at others: before each sample a patch
              gets new noise, and its output a value that no run gives; after the sample the output there must be right
    after     one more run, checked as the first was, on rows that are drawn then; every sample must have been written,
              the picture be what it was, and no memory taken from a GPU
    floor     a time clearly below that of only reading and writing the bytes is impossible

A method writes to arrays of the bench, so it is watched in all of this. A peer holds its arrays itself: it is set up a
second time with a drawn picture, and what was timed is checked at the end. What pictures hold is known apart from the
arrays that candidates see.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.api import check as verify
from edgeconv.bench.candidates import Bench, Ready, make_room
from edgeconv.bench.record import Kind
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.noise import noise_of
from edgeconv.core.problem import Problem
from edgeconv.core.text import counted, seconds_text
from edgeconv.core.timing import Budget, Series, percentile

PATCH_ROWS, PATCH_COLUMNS = 4, 16
"""Of the output: some dozens of samples, which the oracle computes in a fraction of a millisecond."""
MEMORY_SHARE = 4
"""A second pair of arrays is made where free memory has room for this multiple of them."""
POISON, OTHER = 0xA5, 0x5A
"""For whole-number outputs; what is a result by chance is not one under both. Floats get NaN."""
TRANSFORM_TOLERANCE = 2.0**-10
"""Of the largest value of a patch: where samples are transformed in tiles, errors come from beyond the patch."""
CLEARLY = 1.25
EVIDENCE = Budget(min_samples=9, max_samples=100, time_limit_seconds=0.2, turns=4)
"""For each further series before a time counts as impossible."""
EVERYWHERE = (slice(None), slice(None))

FAULTS: dict[str, str] = {
    "unwritten samples": "it left samples of the output as they were",
    "changed its input": "the picture is another after its runs",
    "wrong when timed": "its output is right for the picture of the check and wrong for one that was drawn at run time",
    "impossible time": "its time is clearly below that of only reading and writing the bytes",
    "allocates while timed": "its runs take memory from the GPU or give it back",
}
"""What a candidate can be disqualified for, in a sentence."""


class FaultError(Exception):
    """A fault that was found in a candidate, and what was seen."""

    def __init__(self, fault: str, seen: str = "") -> None:
        super().__init__(f"{fault}: {FAULTS[fault]}{f' ({seen})' if seen else ''}")
        self.fault = fault


@dataclass(frozen=True)
class Patch:
    """A rectangle of the output whose windows lie inside the picture, or all of a picture that is too small for one."""

    problem: Problem
    """What is computed there, without the rest of the picture."""
    out: tuple[slice, slice]
    image: tuple[slice, slice]


@dataclass(frozen=True)
class Slot:
    """A picture and an output on the device, and what the picture holds (on the host, where no candidate sees it)."""

    image: Any
    out: Any
    truth: NDArray[Any]


@dataclass(frozen=True)
class Pictures:
    """The pictures that are timed at one case, which all candidates share."""

    bench: Bench
    rng: np.random.Generator
    drawn: NDArray[Any]
    """As it was drawn, which is what peers hold; what a slot holds changes with each sample."""
    slots: tuple[Slot, ...]
    """The first at the addresses of the check's picture; where memory is short there is no other."""

    def show(self, number: int, picture: NDArray[Any] | None = None) -> Slot:
        """Let candidates see a slot with its own picture, or with another, and with an output that holds no result."""
        slot = self.use(number)
        self.bench.device.copy_in(slot.truth if picture is None else picture, slot.image)
        poison(slot.out)
        return slot

    def show_all(self) -> None:
        """Before what is timed: every slot holds its own picture, whatever was done to it."""
        for number in range(len(self.slots)):
            self.show(number)

    def use(self, number: int) -> Slot:
        """Let candidates see a slot, the numbers going round, with what it holds."""
        slot = self.slots[number % len(self.slots)]
        self.bench.image, self.bench.out = slot.image, slot.out
        return slot


def draw(bench: Bench, rng: np.random.Generator) -> Pictures:
    """Noise like that of the check, and not the same."""
    image, device, problem = bench.image_host, bench.device, bench.problem
    drawn = noise_of(rng, image.shape, image.dtype)
    slots = [Slot(bench.image, bench.out, drawn.copy())]
    free_bytes = device.free_bytes()
    if free_bytes is None or free_bytes > MEMORY_SHARE * (problem.input_bytes + problem.output_bytes):
        slots.append(Slot(*make_room(device, problem), drawn.copy()))
    return Pictures(bench, rng, drawn, tuple(slots))


def draw_patch(problem: Problem, rng: np.random.Generator) -> Patch:
    """A patch anywhere; all of the output where no window lies inside the picture."""
    spans = []
    for size, most in ((problem.height, PATCH_ROWS), (problem.width, PATCH_COLUMNS)):
        first = -(-problem.padding // problem.stride)
        last = (size + problem.padding - KERNEL_SIZE) // problem.stride
        if last < first:
            return Patch(problem, EVERYWHERE, EVERYWHERE)
        length = min(most, last - first + 1)
        start = int(rng.integers(first, last - length + 2))
        begin = start * problem.stride - problem.padding
        stop = begin + (length - 1) * problem.stride + KERNEL_SIZE
        spans.append((slice(start, start + length), slice(begin, stop)))
    (rows, image_rows), (columns, image_columns) = spans
    height, width = image_rows.stop - image_rows.start, image_columns.stop - image_columns.start
    alone = replace(problem, height=height, width=width, padding=0)
    return Patch(alone, (rows, columns), (image_rows, image_columns))


def poison(out: Any, value: int = POISON) -> None:
    """Fill an output, or a part of one, with what is not a result."""
    out[...] = value if out.dtype.kind == "u" else float("nan")


def is_poison(out: Any, value: int = POISON) -> Any:
    """Which samples of an output hold it."""
    return out == value if out.dtype.kind == "u" else out != out


def plant(pictures: Pictures, slot: Slot, whole: bool) -> tuple[Patch, Callable[[], None]]:
    """A patch with new noise, and the call that puts it into the picture and fills the output there, or all of it.

    What is to be moved to the device is there before the call, which only puts two small writes in its queue.
    """
    patch = draw_patch(pictures.bench.problem, pictures.rng)
    there = slot.truth[patch.image]
    there[...] = noise_of(pictures.rng, there.shape, there.dtype)
    new = pictures.bench.device.array_module.array(there)

    def renew() -> None:
        poison(slot.out if whole else slot.out[patch.out])
        slot.image[patch.image] = new

    return patch, renew


def expect_computed(ready: Ready, pictures: Pictures, slot: Slot, patch: Patch) -> None:
    """After a timed sample: what was planted was computed, and the picture is as it was; raises FaultError."""
    bench, truth, arithmetic = pictures.bench, slot.truth[patch.image], ready.arithmetic
    tolerance = TRANSFORM_TOLERANCE if arithmetic is not None and arithmetic.transforms else 0.0
    got = bench.to_host(bench.out[patch.out])
    if not verify.check(truth, got, patch.problem, arithmetic, None, tolerance).passed:
        raise FaultError("wrong when timed", f"in a timed sample, from row {patch.out[0].start or 0}")
    part = draw_patch(bench.problem, pictures.rng).image
    expect_same_input(bench, slot.image[part], slot.truth[part])


def expect_same_input(bench: Bench, image: Any, truth: NDArray[Any]) -> None:
    """A picture, or a part of one, is what candidates were shown, byte by byte; raises FaultError."""
    seen, shown = (np.ascontiguousarray(array).view(np.uint8) for array in (bench.to_host(image), truth))
    if not np.array_equal(seen, shown):
        raise FaultError("changed its input")


def expect_right_again(ready: Ready, pictures: Pictures, kind: Kind, limit: int | None) -> None:
    """After the last sample: a method runs once more, of a peer it is the last output; raises FaultError.

    About `limit` samples are checked, in rows that are drawn now; all where it is None.
    """
    bench, problem = pictures.bench, ready.problem
    slot = pictures.show(len(pictures.slots) - 1)
    if kind == "method":
        taken_bytes = bench.device.memory_taken_by(lambda: bench.once(ready))
        if taken_bytes:
            raise FaultError("allocates while timed", counted(taken_bytes, "byte"))
        bench.once(ready)
        _expect_all_written(ready, bench)
        expect_same_input(bench, slot.image, slot.truth)
    truth = slot.truth if kind == "method" else pictures.drawn
    rows = _drawn_rows(problem, pictures.rng, limit)
    found = verify.check(truth, ready.result(), problem, ready.arithmetic, None, ready.tolerance, rows)
    if not found.passed:
        raise FaultError("wrong when timed", what_is_wrong(found))


def what_is_wrong(found: verify.Check) -> str:
    """How much of an output, and where."""
    return f"{counted(found.unexplained_samples, 'wrong sample')}, worst at {found.worst}"


def has_floor(problem: Problem) -> bool:
    """Whether every row of the picture is needed: above stride 1, rows under zero weights alone need not be read."""
    return problem.stride == 1 or bool(problem.weights.any(axis=(0, 1, 2, 4)).all())


def expect_possible(series: Series, floor: Series) -> None:
    """Raises FaultError where even the fast samples (p10) of the floor, in the same turns, take `CLEARLY` as long."""
    if series.median_seconds * CLEARLY < percentile(sorted(floor.samples_seconds), 0.1):
        taken, least = (seconds_text(each.median_seconds) for each in (series, floor))
        raise FaultError("impossible time", f"{taken}, and reading and writing the bytes alone takes {least}")


def _expect_all_written(ready: Ready, bench: Bench) -> None:
    """Every sample that holds the poison after a run holds another poison after another, or was written."""
    left = is_poison(bench.out)
    if bool(left.any()):
        poison(bench.out, OTHER)
        bench.once(ready)
        unwritten = int((left & is_poison(bench.out, OTHER)).sum())
        if unwritten:
            raise FaultError("unwritten samples", f"{unwritten:,} of {left.size:,}")


def _drawn_rows(problem: Problem, rng: np.random.Generator, limit: int | None) -> list[tuple[int, int]] | None:
    """The first row, the last and as many of the others as the check has, drawn now; None for all."""
    row_samples, height = problem.output_width * problem.output_channels, problem.output_height
    if limit is None or height * row_samples <= limit:
        return None
    inner = rng.permutation(np.arange(1, height - 1))[: max(1, limit // row_samples - 2)]
    return [(row, row + 1) for row in sorted({0, height - 1, *inner.tolist()})]
