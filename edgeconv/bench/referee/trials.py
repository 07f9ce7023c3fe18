"""The trials of a method, and what is looked at while and after it is timed.

    before    the check of the check's picture (measure.py)
    trial 1   the same addresses, the mixed picture          an output that was filled with what is no result, read at
    trial 2   other addresses, the drawn picture             once, in many patches; every sample must have been written
    timed     before each sample a patch changes; after it, its output must be that of the new pixels
    after     one more run, of all of the output again, rows drawn at run time (all with `--check full`); the picture
              must be what it was

Where a trial fails, a few more runs tell why, so that the fault has its own name: later reading, other addresses, the
check's picture again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.referee.faults import Fault, FaultError
from edgeconv.bench.referee.pictures import Patch, Slot, TimedPictures, draw_patch
from edgeconv.core.exactness import FLOAT16_TINY, FLOAT16_UNIT, Arithmetic
from edgeconv.core.problem import Problem
from edgeconv.runtime import check as verify

PATCHES = 16
"""Read in each trial."""
LATE_SECONDS = 0.3
"""How long an output that is not right may take to become so; after that it was never to be."""
LOOK_SECONDS = 0.01
SOME_UNWRITTEN = 0.02
"""Share of a whole-number output that holds the poison by more than chance (1 of 256)."""
FEW_WRONG = 0.01
"""Share of wrong samples that no arithmetic explains: those of a narrower one are everywhere."""
SMALLEST_DRAWN_ROWS = 3
TRANSFORM_TOLERANCE = 2.0**-10
"""Of the largest value of a patch: where samples are transformed in tiles, errors come from beyond the patch."""

ROUNDED_TO_HALF = Arithmetic(
    "half precision", FLOAT16_UNIT, 11, operand_bits=11, operand_tiny=FLOAT16_TINY, response_unit=FLOAT16_UNIT
)
"""Operands, sums and responses in float16: what a method computes in that hopes nobody looks closely."""


class Trials:
    """Of all methods at one case, on its timed pictures."""

    def __init__(self, pictures: TimedPictures, check_samples: int | None) -> None:
        self.pictures, self.check_samples = pictures, check_samples
        self._planted: tuple[Slot, Patch, NDArray[Any]] | None = None

    def before(self, ready: Ready, run: Callable[[], None]) -> None:
        """Trials 1 and 2; raises FaultError. `run` runs the candidate once and waits for it."""
        for number in range(len(self.pictures.slots)):
            slot = self._run_on(number, run)
            patches = [draw_patch(ready.problem, self.pictures.rng) for _ in range(PATCHES)]
            early = [self.pictures.read(_output(ready, slot), patch.out) for patch in patches]
            wrong = [
                patch
                for patch, got in zip(patches, early, strict=True)
                if not self._is_right(ready, patch, slot.truth[patch.image], got)
            ]
            if wrong:
                raise FaultError(self._diagnose(ready, run, number, slot, patches))
            self._expect_all_written(ready, number, slot, run)
            self._expect_same_input(slot)
        taken_bytes = self.pictures.bench.device.memory_taken_by(run)
        if taken_bytes:
            raise FaultError("allocates while timed", f"{taken_bytes:,} bytes")

    def renew(self, slot_number: int, whole: bool) -> Callable[[], None]:
        """Before a timed sample: what changes a patch, and the whole output if asked, when it is called."""
        slot = self.pictures.use(slot_number)
        patch, before, renew = self.pictures.plant(slot)
        self._planted = slot, patch, before

        def renew_all() -> None:
            if whole:
                self.pictures.poison(slot.out)
            renew()

        return renew_all

    def sample(self, ready: Ready) -> None:
        """After a timed sample: what was changed must have been computed; raises FaultError."""
        if self._planted is None:
            return
        slot, patch, before = self._planted
        got = self.pictures.read(_output(ready, slot), patch.out)
        crop = slot.truth[patch.image]
        if self._is_right(ready, patch, crop, got):
            part = draw_patch(ready.problem, self.pictures.rng).image
            if not _same(self.pictures.read(slot.image, part), slot.truth[part]):
                self.pictures.show_all()
                raise FaultError("changed its input")
            return
        if self._is_right_later(ready, slot, [patch]):
            raise FaultError("unfinished", "in a timed sample")
        left = bool(self.pictures.is_poison(got).all())
        if left or self._is_right(ready, patch, before, got):
            raise FaultError("stale output", "in a timed sample")
        raise FaultError("wrong when timed", f"in a timed sample, from row {patch.out[0].start or 0}")

    def after(self, ready: Ready, run: Callable[[], None]) -> None:
        """Once more on the slot at hand, all written again; raises FaultError."""
        slot = self.pictures.show(0)
        self.pictures.poison(slot.out)
        run()
        problem = ready.problem
        found = verify.check(
            slot.truth, ready.result(), problem, ready.arithmetic, None, ready.tolerance, self._drawn_rows(problem)
        )
        if not found.passed:
            raise FaultError("wrong when timed", f"{found.unexplained_samples:,} wrong samples, worst at {found.worst}")
        self._expect_same_input(slot)

    def again(self, ready: Ready) -> None:
        """The check of a peer, which was timed with the drawn picture; raises FaultError."""
        problem, truth = ready.problem, self.pictures.drawn
        found = verify.check(
            truth, ready.result(), problem, ready.arithmetic, None, ready.tolerance, self._drawn_rows(problem)
        )
        if not found.passed:
            raise FaultError("wrong when timed", f"{found.unexplained_samples:,} wrong samples, worst at {found.worst}")

    def why_wrong(self, ready: Ready, got: NDArray[Any], wrong_share: float) -> Fault | None:
        """Why so much of the output of the check's picture was wrong, where that has a name."""
        bench = self.pictures.bench
        if wrong_share > FEW_WRONG:
            problem, limit = ready.problem, self.check_samples
            if verify.check(bench.image_host, got, problem, ROUNDED_TO_HALF, limit).passed:
                return "reduced arithmetic"
        slot = Slot(bench.image, bench.out, bench.image_host)
        patches = [draw_patch(ready.problem, self.pictures.rng) for _ in range(PATCHES)]
        was_right = all(self._is_right(ready, patch, slot.truth[patch.image], got[patch.out]) for patch in patches)
        return "unfinished" if not was_right and self._is_right_later(ready, slot, patches) else None

    def _run_on(self, number: int, run: Callable[[], None]) -> Slot:
        slot = self.pictures.show(number)
        self.pictures.poison(slot.out, number)
        run()
        return slot

    def _expect_same_input(self, slot: Slot) -> None:
        """All of the picture is what candidates were shown; raises FaultError."""
        if not _same(self.pictures.read(slot.image, (slice(None), slice(None))), slot.truth):
            raise FaultError("changed its input")

    def _drawn_rows(self, problem: Problem) -> list[tuple[int, int]] | None:
        """The first row, the last and as many of the others as the check has, drawn now; None for all."""
        row_samples = problem.output_width * problem.output_channels
        height, limit = problem.output_height, self.check_samples
        if limit is None or height * row_samples <= limit:
            return None
        wanted = min(height, max(SMALLEST_DRAWN_ROWS, limit // row_samples))
        inner = self.pictures.rng.choice(np.arange(1, height - 1), wanted - 2, replace=False)
        return [(int(row), int(row) + 1) for row in sorted([0, height - 1, *inner])]

    def _is_right(self, ready: Ready, patch: Patch, crop: NDArray[Any], got: NDArray[Any]) -> bool:
        arithmetic = ready.arithmetic
        transforms = arithmetic is not None and arithmetic.transforms
        tolerance = max(ready.tolerance, TRANSFORM_TOLERANCE) if transforms else ready.tolerance
        return verify.check(crop, got, patch.problem, arithmetic, None, tolerance).passed

    def _are_right(self, ready: Ready, slot: Slot, patches: list[Patch], truth: NDArray[Any]) -> list[bool]:
        return [
            self._is_right(ready, patch, truth[patch.image], self.pictures.read(_output(ready, slot), patch.out))
            for patch in patches
        ]

    def _is_right_later(self, ready: Ready, slot: Slot, patches: list[Patch]) -> bool:
        for _ in range(round(LATE_SECONDS / LOOK_SECONDS)):
            time.sleep(LOOK_SECONDS)
            self.pictures.bench.device.synchronize()
            if all(self._are_right(ready, slot, patches, slot.truth)):
                return True
        return False

    def _expect_all_written(self, ready: Ready, number: int, slot: Slot, run: Callable[[], None]) -> None:
        """Every sample that holds the poison after a run holds another poison after another, or was written."""
        left = self.pictures.is_poison(_output(ready, slot), number)
        if not bool(left.any()):
            return
        other = number + 1
        slot.out[left] = self.pictures.poison_value(other)
        run()
        unwritten = int((left & self.pictures.is_poison(_output(ready, slot), other)).sum())
        if unwritten:
            raise FaultError("unwritten samples", f"{unwritten:,} of {left.size:,}")

    def _diagnose(self, ready: Ready, run: Callable[[], None], number: int, slot: Slot, patches: list[Patch]) -> Fault:
        """Why a trial failed, by a few more runs."""
        if self._is_right_later(ready, slot, patches):
            return "unfinished"
        left = float(self.pictures.is_poison(_output(ready, slot), number).mean())
        by_chance = SOME_UNWRITTEN if ready.problem.output_dtype.kind == "u" else 0
        if by_chance < left < 1:
            return "unwritten samples"
        checked = self.pictures.bench.image_host
        is_earlier = left == 1 or all(self._are_right(ready, slot, patches, checked))

        def passes(number: int, truth: NDArray[Any]) -> bool:
            slot = self.pictures.use(number)
            self.pictures.bench.device.copy_in(truth, slot.image)
            self.pictures.poison(slot.out)
            run()
            return all(self._are_right(ready, slot, patches, truth))

        if number == 0 and len(self.pictures.slots) > 1:
            fresh = self.pictures.draw()  # of which no earlier picture has a part, so that no earlier output is right
            if passes(1, fresh):
                return "recognises pictures" if passes(0, fresh) else "recognises addresses"
        knows_the_check = passes(0, checked)
        return "only the check's picture" if knows_the_check and (left == 1 or not is_earlier) else "stale output"


def _same(seen: NDArray[Any], truth: NDArray[Any]) -> bool:
    """Byte by byte, so that a NaN is the same as itself."""
    ours, theirs = (np.ascontiguousarray(array).view(np.uint8) for array in (seen, truth))
    return np.array_equal(ours, theirs)


def _output(ready: Ready, slot: Slot) -> Any:
    """Where the last run put its output: into the slot's, but for a call that allocates."""
    return slot.out if ready.output is None else ready.output()
