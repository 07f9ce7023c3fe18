"""Every convolution method that runs on this machine, on one picture, against the reference method.

What counts as agreeing is the rule of verify.py, unless the user says otherwise: floats within its limit for the
largest |value|; whole numbers within one level, because a value that lies on a rounding tie may fall to either side.
Beside that, whole rows of each output are checked against the float64 oracle itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv import report, verify
from edgeconv.choose import runnable
from edgeconv.diff import job
from edgeconv.diff.inputs import ArrayInput
from edgeconv.errors import EXIT_DIFFERENT, UnavailableError, UsageError
from edgeconv.image import DEFAULT_MAX_PIXELS, read_image
from edgeconv.job import SAMPLED_CHECK
from edgeconv.methods import METHODS, able, find, known
from edgeconv.methods.base import DeviceName, Options
from edgeconv.output import error_limit, finite_range
from edgeconv.problem import Problem
from edgeconv.request import Request
from edgeconv.session import Session

REFERENCE: tuple[str, DeviceName] = ("reference", "cpu")
ROUNDING_TIE = 1
"""Levels by which whole numbers may differ on a tie."""


@dataclass(frozen=True)
class Ran:
    """One method's output and its check against the oracle."""

    method: str
    device: DeviceName
    output: NDArray[Any]
    check: verify.Check

    @property
    def label(self) -> str:
        """What pages and sheets call it."""
        return f"{self.method} on {self.device.upper()}"


def run(
    source: str,
    request: Request,
    options: Options,
    wanted: job.Wanted,
    *,
    crop: int | None = None,
    by_rule: bool = True,
    max_pixels: int = DEFAULT_MAX_PIXELS,
) -> job.Done:
    """Filter `source` with every method that works here and compare the outputs with the reference's.

    `crop` takes the middle square of that side first. `by_rule` puts the rule above in the place of the allowance's
    `atol`. Raises EdgeconvError; then nothing is written.
    """
    picture = read_image(source, max_pixels=max_pixels)
    pixels = picture.pixels if crop is None else middle_square(picture.pixels, crop)
    problem = request.problem(pixels.shape, pixels.dtype)
    refuse_what_none_knows(options)
    reference, *others = run_all(pixels, problem, request, options)
    if not others:
        raise UsageError("No method but the reference runs here: see edgeconv doctor.")
    if by_rule:
        atol = agreement(pixels, reference.output, problem, options)
        wanted = replace(wanted, allowance=replace(wanted.allowance, atol=atol))
    left_out = [f"{name} on {device.upper()} did not run: {reason}" for name, device, reason in not_runnable()]
    inputs = [ArrayInput(ran.label, ran.output, (f"float64 oracle: {_check_text(ran.check)}",)) for ran in others]
    done = job.run(
        ArrayInput(reference.label, reference.output),
        inputs,
        wanted,
        title=f"{source}, {request.filter.name}, stride {request.stride}: every method against the reference",
        remarks=[*picture.notes, *left_out],
        protect=(source,),
    )
    record = done.record | {
        "kind": "compare",
        "input": {"file": source, "format": picture.format, "notes": list(picture.notes)}
        | report.describe_pixels(pixels),
        "problem": report.describe_problem(request, problem),
        "versions": report.installed_versions(),
        "methods": [
            {"name": ran.method, "device": ran.device, "check": report.describe_check(ran.check)}
            for ran in (reference, *others)
        ],
        "left_out": left_out,
    }
    right = all(ran.check.passed for ran in (reference, *others))
    return replace(done, record=record, exit_code=done.exit_code if right else EXIT_DIFFERENT)


def run_all(pixels: NDArray[Any], problem: Problem, request: Request, options: Options) -> Iterator[Ran]:
    """The reference's output, then that of every other method that runs here, in the table's order.

    Each is told as much of `options` as it knows.
    """
    for name, device in sorted(runnable(), key=lambda entry: entry != REFERENCE):
        own = known(find(name, device), options)
        raw = Session(problem, name, device, own).convolve(pixels)
        tolerance = verify.tolerance_for(problem, own.math)
        checked = verify.check(pixels, raw, problem, tolerance, SAMPLED_CHECK)
        yield Ran(name, device, request.finish(raw, pixels.dtype, image=pixels), checked)


def refuse_what_none_knows(options: Options) -> None:
    """Raise UnavailableError for an option that no method that runs here knows."""
    here = [find(name, device) for name, device in runnable()]
    for option, words in options.asked().items():
        if not any(option in entry.knows for entry in here):
            raise UnavailableError(
                f"No method that runs here knows {words}: leave it out, or go where {able(option)} runs."
            )


def not_runnable() -> Iterator[tuple[str, DeviceName, str]]:
    """(method, device, reason) of the rest of the table."""
    for entry in METHODS:
        reason = entry.load().unavailable_reason()
        if reason is not None:
            yield entry.name, entry.device, reason


def agreement(pixels: NDArray[Any], reference: NDArray[Any], problem: Problem, options: Options) -> float:
    """The |difference| that two right outputs may have, by what of picture and output is finite."""
    if reference.dtype.kind == "u":
        return ROUNDING_TIE
    tolerance = verify.tolerance_for(problem, options.math)
    return error_limit(problem.weights, finite_range(pixels), finite_range(reference), tolerance)


def middle_square(pixels: NDArray[Any], side: int) -> NDArray[Any]:
    """The square of `side` pixels in the middle, HWC. Raises UsageError where the picture is smaller."""
    height, width = pixels.shape[:2]
    if not 1 <= side <= min(height, width):
        raise UsageError(f"--crop {side} does not fit into {width}×{height} pixels: use 1 to {min(height, width)}.")
    top, left = (height - side) // 2, (width - side) // 2
    return np.ascontiguousarray(pixels[top : top + side, left : left + side])


def _check_text(check: verify.Check) -> str:
    word = "right" if check.passed else "WRONG"
    return f"{word}, relative error {check.relative_error:.2g}, {check.checked_share:.0%} of the output checked"
