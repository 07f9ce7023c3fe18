"""A picture filtered once, timed and compared with the oracle: what the figures of a report are made of.

The order keeps them honest: set up, one cold run, whose result is the one that counts, and only then the samples and
the check, so that none of them warms up what is called cold.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.api import check as verify
from edgeconv.api import figures
from edgeconv.api.auto import Choice
from edgeconv.api.check import Check
from edgeconv.api.figures import RunFigures
from edgeconv.api.prepared import PreparedFilter, plain
from edgeconv.core import cost
from edgeconv.core.chains import ChainProblem
from edgeconv.core.choices import CHECKS
from edgeconv.core.noise import noise_pixels
from edgeconv.core.problem import Problem
from edgeconv.core.request import Request
from edgeconv.core.timing import Budget, Series, Stopwatch, collect
from edgeconv.errors import UsageError
from edgeconv.hardware.device import Roof
from edgeconv.hardware.versions import installed_versions
from edgeconv.methods import find
from edgeconv.methods.options import Options

TURNS = 3
"""Of the filter and of the copy of its bytes."""
FEW = Budget(max_samples=10)
"""For a part of a run."""
SPARE = 2
"""How many times the memory that the copy needs must be free."""


@dataclass(frozen=True, eq=False)
class Filtered:
    """A picture that was filtered once, as a whole, and the plan that did it, which may be measured."""

    request: Request
    plan: PreparedFilter
    """Without the threshold."""
    watch: Stopwatch
    pixels: NDArray[Any]
    """Of the picture, HWC."""
    raw: NDArray[Any]
    """What the method gave, HWC."""
    finished: NDArray[Any]
    """The output: `raw` after the second pass of `normalize`, or a mask of it by a threshold."""


def prepare_filter(
    shape: tuple[int, ...], dtype: Any, request: Request, choice: Choice, options: Options
) -> PreparedFilter:
    """A plan of `request` without its threshold, and all that a run from host to host needs."""
    unmasked = replace(request, threshold=None)
    plan = PreparedFilter(unmasked, unmasked.picture_problem(shape, dtype), choice, options)
    if plan.processor.moves_data:
        plan.allocate_arrays()
    return plan


def filter_picture(pixels: NDArray[Any], request: Request, plan: PreparedFilter, watch: Stopwatch) -> Filtered:
    """Run a plan of `prepare_filter` once; phases are added to `watch`."""
    finished = plan.run(pixels, watch=watch)
    raw = finished if plan.second_pass is None else plan.raw()
    filtered = Filtered(plan.request, plan, watch, pixels, raw, finished)
    return filtered if request.threshold is None else masked(filtered, request, watch)


def masked(filtered: Filtered, request: Request, watch: Stopwatch) -> Filtered:
    """An output without a threshold as the mask of `request`, made on the host; its phase is added to `watch`."""
    with watch.phase("threshold"):
        finished = request.mask(filtered.finished)
    return replace(filtered, request=request, finished=finished, watch=watch)


def time_kernel(
    plan: PreparedFilter, image_hwc: NDArray[Any], budget: Budget, *beside: Callable[[], None]
) -> list[Series]:
    """Sample a plan with its second pass, device arrays in, device arrays out, and other calls by turns with it."""
    device, image = plan.processor, plain(image_hwc)
    with plan.guard():
        if device.moves_data:
            device.copy_in(image, plan.image)
            image = plan.image

        def once() -> None:
            plan.method_plan.run(image, plan.out)
            plan.finish(plan.out, image)

        return collect([partial(device.time_once, call) for call in (once, *beside)], budget)


def time_end_to_end(plan: PreparedFilter, image_hwc: NDArray[Any], budget: Budget) -> Series:
    """Sample host array in, host array out, by page-locked host arrays and a bus."""
    device = plan.processor
    with plan.guard():
        staged_image = device.host_empty(plan.problem.input_shape, plan.problem.dtype)
        staged_out = device.host_empty(plan.problem.output_shape, plan.output_dtype)
        np.copyto(staged_image, image_hwc)

        def once() -> float:
            started = time.perf_counter()
            device.copy_in(staged_image, plan.image)
            plan.method_plan.run(plan.image, plan.out)
            device.copy_out(plan.finish(plan.out, plan.image), staged_out)
            return time.perf_counter() - started

        return collect([once], budget)[0]


def time_parts(plan: PreparedFilter) -> dict[str, float]:
    """Medians of what a run of the method consists of, on the plan's own arrays; nothing where it has no parts."""
    timed = plan.method_plan.parts(plan.image, plan.out) if plan.processor.moves_data else {}
    with plan.guard():
        series = collect([partial(plan.processor.time_once, part) for part in timed.values()], FEW)
    return {name: each.median_seconds for name, each in zip(timed, series, strict=True)}


def copy_of(plan: PreparedFilter, free_bytes: int | None) -> Callable[[], None] | None:
    """A call that reads what a picture of the plan has, writes as much as its output has, and does nothing else.

    It is the limit of the plan's speed. None where it would take much of the memory that is free.
    """
    problem, device = plan.problem, plan.processor
    read_bytes = cost.fetched_bytes(problem, device.line_bytes)
    if free_bytes is not None and free_bytes < SPARE * (read_bytes + problem.output_bytes):
        return None
    with plan.guard():
        return device.floor(read_bytes, problem.output_bytes)


def time_copy(plan: PreparedFilter, copy: Callable[[], None]) -> Series:
    """A copy by itself, with what the run before left in the caches."""
    with plan.guard():
        return collect([partial(plan.processor.time_once, copy, "warm")], Budget())[0]


def roof_of(plan: PreparedFilter, kernel: Series, copy: Series, when: str = "by turns with the filter") -> Roof:
    """The limits of a plan whose copy was timed too, `when` in words.

    A kernel whose samples lie among those of the copy is as fast as the copy: one above the other is noise then.
    """
    seconds, ends, others = copy.median_seconds, kernel.spread_seconds, copy.spread_seconds
    if ends is not None and others is not None and ends[1] >= others[0]:
        seconds = min(seconds, kernel.median_seconds)
    moved = cost.count(plan.problem, plan.output_dtype).fewest_bytes
    with plan.guard():
        rate, how = plan.processor.fma_rate()
    return Roof(moved / seconds, rate, f"a copy of the picture's own bytes, {when}; {how}")


def measure(filtered: Filtered, budget: Budget, check: str) -> RunFigures:
    """Sample the plan beside a copy (not at all for a budget of no samples), and compare with the oracle."""
    plan, pixels, peak_bytes = filtered.plan, filtered.pixels, filtered.plan.processor.peak_bytes()
    kernel = end_to_end = roof = checked = None
    parts: dict[str, float] = {}
    if budget.max_samples > 0:
        copy = copy_of(plan, plan.processor.free_bytes())
        beside = [] if copy is None else [copy]
        shared = replace(budget, time_limit_seconds=budget.time_limit_seconds / (1 + len(beside)), turns=TURNS)
        kernel, *copies = time_kernel(plan, pixels, shared, *beside)
        end_to_end = time_end_to_end(plan, pixels, budget) if plan.processor.moves_data else kernel
        parts = time_parts(plan)
        plan.release_arrays()
        roof = roof_of(plan, kernel, copies[0]) if copies else None
    if check != "none":
        limit = verify.SAMPLED_CHECK if check == "sample" else None
        checked = verify.check(pixels, filtered.raw, plan.problem, plan.method_plan.arithmetic, limit)
    phases = filtered.watch.phases_seconds
    return describe(
        filtered.request,
        plan,
        phases,
        cold_seconds=phases["convolve"],
        kernel=kernel,
        end_to_end=end_to_end,
        roof=roof,
        check=checked,
        peak_bytes=peak_bytes,
        parts=parts,
    )


def measure_plan(
    plan: PreparedFilter, pixels: NDArray[Any] | None, samples: int, time_limit_seconds: float, check: str
) -> RunFigures:
    """See `ConvolutionPlan.measure`."""
    if plan.pictures > 1:
        raise UsageError("A batch is not measured: measure a plan for one of its pictures, (height, width, channels).")
    if check not in CHECKS:
        raise UsageError(f"The check '{check}' is not one of {', '.join(CHECKS)}.")
    if samples < 0 or not time_limit_seconds > 0:
        raise UsageError("Samples must be a whole number from 0, and the time limit above 0.")
    if pixels is None:
        pixels = noise_pixels(*plan.problem.input_shape[:2], plan.problem.dtype, plan.problem.in_channels)
    watch = Stopwatch()
    with watch.phase("set_up"):
        own = prepare_filter(pixels.shape, pixels.dtype, plan.request, plan.choice, plan.options)
    filtered = filter_picture(pixels, plan.request, own, watch)
    return measure(filtered, Budget(max_samples=samples, time_limit_seconds=time_limit_seconds), check)


def describe(
    request: Request,
    plan: PreparedFilter,
    phases: dict[str, float],
    *,
    cold_seconds: float,
    kernel: Series | None,
    end_to_end: Series | None,
    roof: Roof | None,
    check: Check | None,
    peak_bytes: int | None,
    parts: dict[str, float] | None = None,
    whole: Problem | ChainProblem | None = None,
    whole_run_seconds: float | None = None,
) -> RunFigures:
    """The part of the report that holds with or without files: problem, method, device, times, speed and check.

    Times and check are None where they were not asked for. `whole` is the problem of a picture that was filtered by
    tiles, whose phases overlap in `whole_run_seconds`, and the plan is that of one tile.
    """
    device, prepared, problem = plan.processor, plan.method_plan, whole or plan.problem
    stored = request.output_dtype(problem.dtype)
    speed = throughput = None
    if kernel is not None and end_to_end is not None:
        seconds = kernel.median_seconds, end_to_end.median_seconds
        counts = cost.count(plan.problem, stored)
        if isinstance(plan.problem, ChainProblem):
            throughput = figures.throughput(plan.problem, counts, *seconds, roof)
        elif whole is None or request.mode_for(problem.dtype) != "normalize":  # no tile's time covers a second pass
            speed = figures.speed(counts, *seconds, roof)
    return RunFigures(
        problem=figures.describe_problem(request, problem),
        method=figures.MethodPart(
            name=plan.choice.method,
            asked_for=plan.choice.asked_for,
            why=plan.choice.why,
            options=plan.options,
            workspace_bytes=prepared.workspace_bytes,
            moved_bytes=prepared.moved_bytes,
            launches=prepared.launches,
            choice=prepared.choice,
            package=find(plan.choice.method, plan.choice.device).package,
        ),
        device=figures.RunDevice(**device.describe(), kind=plan.choice.device),
        versions=installed_versions(),
        phases_seconds={name: phases[name] for name in figures.PHASES if name in phases},
        whole_run_seconds=sum(phases.values()) if whole_run_seconds is None else whole_run_seconds,
        timing=figures.TimingPart(
            kernel_clock="CUDA events" if device.moves_data and whole is None else "host",
            leaves_out=request.last_passes(problem.dtype),
            l2_state=device.l2_state if whole is None else "warm",
            cold_seconds=cold_seconds,
            kernel=kernel,
            end_to_end=end_to_end if device.moves_data else None,
            parts_seconds=parts or {},
        ),
        counts=cost.count(problem, stored),
        speed=speed,
        peak_bytes=peak_bytes,
        check=check,
        throughput=throughput,
    )
