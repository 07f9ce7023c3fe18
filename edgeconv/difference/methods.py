"""Every convolution method that runs on this machine, on one picture, against the reference method.

The default tolerance follows from core/exactness.py. Two outputs whose values are off by at most b₁ and b₂ differ by

    0                   where both are exact: outputs must be equal
    b₁ + b₂             floats, each bound with what storing the value adds
    ⌊b₁ + b₂⌋ + 1       integers, in levels: values that lie so near to each other may be rounded apart

with b₁ of the reference and b₂ the largest of the other methods. In addition, whole rows of each output are checked
against the float64 oracle, each sample by its own bound; what is right is then timed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgeconv.api import check as verify
from edgeconv.api import figures
from edgeconv.api.auto import Choice
from edgeconv.api.figures import ProblemPart
from edgeconv.api.figures_text import NOTHING_TO_CHECK
from edgeconv.api.measure import time_kernel
from edgeconv.api.prepared import PreparedFilter
from edgeconv.core import exactness
from edgeconv.core.chains import ChainProblem
from edgeconv.core.choices import DeviceName
from edgeconv.core.option import listed
from edgeconv.core.output import finite_range, full_range, magnitude
from edgeconv.core.problem import Problem
from edgeconv.core.records import Meta, Part, fields_of
from edgeconv.core.request import Request
from edgeconv.core.text import counted, seconds_text
from edgeconv.core.timing import Budget, Series
from edgeconv.difference import results
from edgeconv.difference.compare import Compared, DiffRecord
from edgeconv.difference.inputs import ArrayInput
from edgeconv.errors import EXIT_DIFFERENT, EdgeconvError, UnavailableError, UsageError, one_line_with_class
from edgeconv.hardware.versions import installed_versions
from edgeconv.io.encoding import pictures_of
from edgeconv.io.reading import read_image
from edgeconv.methods import all_methods, applicable, refuse_inapplicable
from edgeconv.methods.entry import MethodEntry
from edgeconv.methods.options import Options
from edgeconv.run import report
from edgeconv.run.report import InputPart

REFERENCE: tuple[str, DeviceName] = ("reference", "cpu")


class CheckedMethod(Part):
    """A method that ran, its check against the oracle, and its time, device array to device array."""

    name: str
    device: DeviceName
    check: verify.Check
    kernel: Annotated[Series | None, Meta(description="null where the check failed: what is wrong gets no time")]


class CompareRecord(Compared):
    """What `edgeconv compare` found."""

    kind: Literal["compare"]
    input: InputPart
    problem: ProblemPart
    versions: dict[str, str]
    methods: list[CheckedMethod]
    left_out: list[str]


@dataclass(frozen=True)
class MethodRun:
    """A method that ran, and its output."""

    checked: CheckedMethod
    output: NDArray[Any]
    bound: float
    """The largest error of a value of `output`, of floats once it is stored, of integers before it is rounded."""

    @property
    def label(self) -> str:
        """Its name on pages."""
        return f"{self.checked.name} on {self.checked.device.upper()}"


def run(
    source: str, request: Request, options: Options, wanted: results.Wanted, by_rule: bool = True
) -> results.DiffOutcome:
    """Filter `source` with every method that works here and compare the outputs with the reference's.

    `by_rule` puts the rule above in the place of the allowance's `atol`. Raises EdgeconvError; then nothing is written.
    """
    picture = read_image(source, wanted.rules)
    pixels = picture.pixels
    request = request.settled(pixels)
    problem = request.picture_problem(pixels.shape, pixels.dtype)
    described_input, problem_record = report.describe_pixels(pixels), figures.describe_problem(request, problem)
    refuse_inapplicable(tuple(entry for entry in all_methods() if entry.unavailable_reason() is None), options)
    ran, left_out = run_all(pixels, problem, request, options)
    reference, *others = ran
    if not others:
        raise UsageError(f"No method but the reference runs this here: {'; '.join(left_out)}.")
    if by_rule:
        wanted = replace(wanted, allowance=replace(wanted.allowance, atol=agreement(ran)))
    labels = request.filter.labels
    inputs = [
        ArrayInput(
            one.label,
            np.concatenate(pictures_of(one.output, len(labels))) if labels else one.output,
            () if one is reference else (f"float64 oracle: {_check_text(one)}",),
        )
        for one in ran
    ]
    order = [f"from top to bottom: {', '.join(labels)}"] if labels else []
    done = results.run(
        inputs[0],
        inputs[1:],
        wanted,
        title=f"{source}, {request.filter.name}, stride {request.stride}: every method against the reference",
        remarks=[*picture.notes, *order, *map(_time_text, ran), *left_out],
        protect=(source,),
        can_ignore=False,
    )
    assert isinstance(done.record, DiffRecord)  # as results.run gives
    record = CompareRecord(
        **fields_of(done.record) | {"kind": "compare"},
        input=InputPart(file=source, format=picture.format, notes=list(picture.notes), **described_input),
        problem=problem_record,
        versions=installed_versions(),
        methods=[one.checked for one in ran],
        left_out=left_out,
    )
    right = all(one.checked.check.passed for one in ran)
    return replace(done, record=record, exit_code=done.exit_code if right else EXIT_DIFFERENT)


def run_all(
    pixels: NDArray[Any], problem: Problem | ChainProblem, request: Request, options: Options
) -> tuple[list[MethodRun], list[str]]:
    """Every method that runs here, the reference first, with those of `options` that apply to it.

    And a line for each reason why others did not, with their names: one cannot run here, does not do this problem, or
    is of another package and fails.
    """
    ran: list[MethodRun] = []
    left_out: dict[tuple[str, DeviceName], list[str]] = {}
    for entry in sorted(all_methods(), key=lambda entry: (entry.name, entry.device) != REFERENCE):
        reason = entry.unavailable_reason()
        try:
            if reason is None:
                ran.append(_run_one(entry, pixels, problem, request, options))
        except Exception as error:  # a method of another package may raise anything
            if not entry.package and not isinstance(error, UnavailableError):
                raise
            reason = str(error).rstrip(".") if isinstance(error, EdgeconvError) else one_line_with_class(error)
        if reason is not None:
            left_out.setdefault((reason, entry.device), []).append(entry.name)
    return ran, [
        f"{listed(tuple(names), 'and')} on {device.upper()} did not run: {reason}"
        for (reason, device), names in left_out.items()
    ]


def _run_one(
    entry: MethodEntry, pixels: NDArray[Any], problem: Problem | ChainProblem, request: Request, options: Options
) -> MethodRun:
    choice = Choice(entry.name, entry.device, "compared")
    plan = PreparedFilter(request.unfinished, problem, choice, applicable(entry, options))
    raw = plan.run(pixels)
    check = verify.check(pixels, raw, problem, plan.method_plan.arithmetic, verify.SAMPLED_CHECK)
    kernel = time_kernel(plan, pixels, Budget())[0] if check.passed else None
    finished = request.finish(raw, pixels.dtype, image=pixels)
    bound = largest_error(raw, finished, check, problem)
    return MethodRun(CheckedMethod(entry.name, entry.device, check, kernel), finished, bound)


def largest_error(
    raw: NDArray[Any], finished: NDArray[Any], check: verify.Check, problem: Problem | ChainProblem
) -> float:
    """The largest error of a value that this arithmetic may make in this picture, in units of the output.

    That of storing it is in it where the output is of floats.
    """
    if isinstance(problem, ChainProblem):
        return 0.0
    bound = max(map(verify.size_of, check.bound_by_channel))
    if raw.dtype.kind == "f":
        largest = magnitude(finite_range(raw))
        bound = float(exactness.stored_bound(np.array(largest), np.array(bound), raw.dtype))
        if check.exact and problem.combine != "magnitude":
            bound = 0.0  # the one rounding of an exact value is the same everywhere
    if finished is raw or not bound:
        return bound
    low, high = finite_range(raw)  # normalize stretches the errors with the values, those of its ends among them
    return 2 * bound * full_range(finished.dtype) / (high - low) if high > low else full_range(finished.dtype)


def agreement(ran: Sequence[MethodRun]) -> float:
    """The |difference| that a right output may have from the first of `ran`, which is right as well: see above."""
    reference, *others = ran
    both = reference.bound + max(one.bound for one in others)
    return float(math.floor(both) + 1) if both and reference.output.dtype.kind == "u" else both


def _check_text(ran: MethodRun) -> str:
    """What of an output was checked, by its own bounds, and whether it is right."""
    check = ran.checked.check
    if not check.checked_samples:
        return NOTHING_TO_CHECK
    error = verify.size_of(check.relative_error)
    found = f"largest relative error {error:.2g} in {check.checked_samples:,} of {ran.output.size:,} samples"
    if not check.passed:
        return f"WRONG, {check.unexplained_samples:,} beyond their error bounds, {found}"
    return f"right, {found}, each within its own bound"


def _time_text(ran: MethodRun) -> str:
    found = ran.checked.kernel
    if found is None:
        return f"{ran.label}: no time, as its output is wrong"
    return f"{ran.label}: {seconds_text(found.median_seconds)}, median of {counted(found.n, 'run')}"
