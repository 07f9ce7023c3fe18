"""A picture filtered once, timed and compared with the oracle: what the figures of a report are made of.

The order keeps them honest: set up, one cold run, whose result is the one that counts, and only then the samples, the
roof and the check, so that none of them warms up what is called cold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from edgeconv.api import check as verify
from edgeconv.api import figures
from edgeconv.api.auto import Choice
from edgeconv.api.check import check_output
from edgeconv.api.session import Session
from edgeconv.core import cost
from edgeconv.core.chains import ChainProblem
from edgeconv.core.problem import Problem
from edgeconv.core.request import Request
from edgeconv.core.timing import Budget, Series, Stopwatch
from edgeconv.hardware.device import Roof
from edgeconv.hardware.versions import installed_versions
from edgeconv.io.image import Picture
from edgeconv.methods.options import Options

Roofs = dict[str, Roof]
"""Measured limits by device: they cost as much as a small picture, so that one command measures them once."""


@dataclass(frozen=True, eq=False)
class Filtered:
    """A picture that was filtered once, and the session that did it, which may be measured."""

    picture: Picture
    request: Request
    problem: Problem | ChainProblem
    choice: Choice
    options: Options
    session: Session
    raw: NDArray[Any]
    """What the method gave, HWC."""
    finished: NDArray[Any]
    """The output: `raw` after the second pass of `normalize`, or a mask of it by a threshold."""
    cold_seconds: float
    watch: Stopwatch
    kernel: Series | None = None
    """This and the next three are what `measure` found, None where it was not asked for."""
    end_to_end: Series | None = None
    roof: Roof | None = None
    check: verify.Check | None = None


def filter_picture(
    picture: Picture,
    request: Request,
    problem: Problem | ChainProblem,
    choice: Choice,
    options: Options,
    watch: Stopwatch,
) -> Filtered:
    """Set a session up and run it once; phases are added to `watch`."""
    with watch.phase("set_up"):
        second_pass = request.second_pass(picture.pixels.dtype)
        session = Session(problem, choice.method, choice.device, options, second_pass)
        session.take_arrays()
    finished = session.convolve(picture.pixels, watch)
    cold_seconds = watch.phases_seconds["convolve"]
    raw = finished if second_pass is None else session.raw()
    unmasked = replace(request, threshold=None)
    filtered = Filtered(picture, unmasked, problem, choice, options, session, raw, finished, cold_seconds, watch)
    return filtered if request.threshold is None else masked(filtered, request, watch)


def masked(filtered: Filtered, request: Request, watch: Stopwatch) -> Filtered:
    """An output without a threshold as the mask of `request`, made on the host; its phase is added to `watch`."""
    with watch.phase("threshold"):
        finished = request.mask(filtered.finished)
    return replace(filtered, request=request, finished=finished, watch=watch)


def measure(filtered: Filtered, budget: Budget, check: str, roofs: Roofs | None = None) -> Filtered:
    """Sample the session (not at all for a budget of no samples), measure the roof, and compare with the oracle.

    A roof that is in `roofs` is not measured again; one that is measured is added.
    """
    session, pixels = filtered.session, filtered.picture.pixels
    kernel = end_to_end = roof = checked = None
    if budget.max_samples > 0:
        kernel = session.time_kernel(pixels, budget)
        end_to_end = session.time_end_to_end(pixels, budget) if session.device.moves_data else kernel
        session.release_arrays()
        roof = None if roofs is None else roofs.get(filtered.choice.device)
        if roof is None:
            roof = session.measure_roof()
        if roofs is not None:
            roofs[filtered.choice.device] = roof
    if check != "none":
        limit = verify.SAMPLED_CHECK if check == "sample" else None
        checked = check_output(pixels, filtered.raw, filtered.problem, session.plan.arithmetic, limit)
    return replace(filtered, kernel=kernel, end_to_end=end_to_end, roof=roof, check=checked)


def describe(filtered: Filtered, asked_for: str, peak_bytes: int | None) -> figures.RunFigures:
    """The part of the report that holds with or without files: problem, method, device, times, speed and check."""
    session, phases = filtered.session, filtered.watch.phases_seconds
    kernel, end_to_end, problem = filtered.kernel, filtered.end_to_end, filtered.problem
    counts = cost.count_any(problem, stored=filtered.finished.dtype)
    speed = throughput = None
    if kernel is not None and end_to_end is not None:
        speed, throughput = figures.rates(problem, counts, kernel, end_to_end, filtered.roof)
    return figures.RunFigures(
        problem=figures.describe_problem(filtered.request, problem),
        method=figures.describe_method(filtered.choice, asked_for, filtered.options, session.plan),
        device=figures.RunDevice(**session.device.describe(), kind=filtered.choice.device),
        versions=installed_versions(),
        phases_seconds={name: phases[name] for name in figures.PHASES if name in phases},
        whole_run_seconds=sum(phases.values()),
        timing=figures.TimingPart(
            kernel_clock="CUDA events" if session.device.moves_data else "host",
            leaves_out=figures.left_out(filtered.request, problem.dtype),
            l2_state=session.device.l2_state,
            cold_seconds=filtered.cold_seconds,
            kernel=None if kernel is None else figures.describe_series(kernel),
            end_to_end=None
            if end_to_end is None or not session.device.moves_data
            else figures.describe_series(end_to_end),
        ),
        counts=counts,
        speed=speed,
        peak_bytes=peak_bytes,
        check=filtered.check,
        throughput=throughput,
    )
