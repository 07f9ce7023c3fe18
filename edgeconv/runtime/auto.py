"""How `auto` chooses device and method, and a sentence that says why.

What is expected to end first is taken: by the profile where `edgeconv tune` has measured this machine, otherwise by the
constants of forecast.py. Both count what surrounds the work (the start of a method, the bus), for the job at hand. The
sentence names the prediction and the runner-up. An inexact method is never taken where an exact one runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgeconv.core.chains import ChainProblem
from edgeconv.core.choices import DeviceName
from edgeconv.core.exactness import sums_for
from edgeconv.core.option import AUTO
from edgeconv.core.units import seconds_text
from edgeconv.errors import UnavailableError, UsageError
from edgeconv.hardware.cuda.probe import cuda_missing_reason, cuda_unavailable_reason
from edgeconv.hardware.threads import resolve_threads
from edgeconv.methods import all_methods, check_name, entries_of, find, require
from edgeconv.methods.base import DEVICES, refuse_chain
from edgeconv.runtime.forecast import Forecast, Purpose, break_even, forecasts

if TYPE_CHECKING:
    from edgeconv.core.problem import Problem

FASTEST_CUDA = "sliding"
FASTEST_CPU = "sliding"
QUICKEST_TO_START_CPU = "opencv"
"""What is taken where the problem is not known yet."""

MOST_PICTURES = 1_000_000
"""Of a batch that would pay for the GPU: beyond it the sentence does not name their number."""


@dataclass(frozen=True)
class Choice:
    """A method on a device, and why."""

    method: str
    device: DeviceName
    why: str


def choose(
    method: str,
    device: str,
    purpose: Purpose,
    problem: Problem | ChainProblem | None = None,
    pictures: int | None = None,
    threads: int | None = None,
) -> Choice:
    """Settle `auto`, for `problem` where it is known already.

    `pictures` are those of a batch or of one call, where known; `threads` those that a method is asked to use, None for
    all. Raises UsageError for unknown names, UnavailableError where what was asked cannot run.
    """
    if device not in (AUTO, *DEVICES):
        raise UsageError(f"Device '{device}' is not one of {', '.join((AUTO, *DEVICES))}.")
    if method == AUTO:
        if isinstance(problem, ChainProblem):
            return _choose_for_chain(device, purpose, problem)
        if problem is None or (device == "cuda" and cuda_unavailable_reason() is not None):
            return _choose_by_rule(device, purpose)
        found, note = _choose_by_profile(device, purpose, problem, pictures)
        if device == "cuda":
            return found or _choose_by_rule(device, purpose, note)
        return found or _choose_by_constants(device, purpose, problem, pictures, resolve_threads(threads), note)
    check_name(method)
    homes = [entry.device for entry in entries_of(method)]
    if device != AUTO:
        chosen = find(method, next(name for name in DEVICES if name == device)).device
        why = "asked for by name"
    elif homes == ["cpu"] or ("cpu" in homes and cuda_unavailable_reason() is not None):
        chosen, why = "cpu", "asked for by name; " + _why_cpu(homes)
    else:
        chosen, why = "cuda", "asked for by name; an NVIDIA GPU is present"
    ready = require(method, chosen)
    reason = ready.chain_reason(problem) if isinstance(problem, ChainProblem) else None
    if isinstance(problem, ChainProblem) and reason is not None:
        raise refuse_chain(method, reason, problem)
    return Choice(method, chosen, why)


CHAIN_METHODS: dict[Purpose, tuple[tuple[str, DeviceName], ...]] = {
    "one picture": (("opencv", "cpu"), ("sliding", "cpu"), ("reference", "cpu"), ("sliding", "cuda")),
    "many pictures": (("sliding", "cpu"), ("opencv", "cpu"), ("reference", "cpu"), ("sliding", "cuda")),
    "calls": (("sliding", "cpu"), ("opencv", "cpu"), ("reference", "cpu"), ("sliding", "cuda")),
}
"""What `auto` tries for a chain of stages, in this order: forecasts and profiles know single filters only."""

WHY_CHAIN: dict[Purpose, str] = {
    "one picture": "for one picture it starts soonest of those that compute this chain",
    "many pictures": "the fastest of those that compute this chain",
    "calls": "the fastest where the array lies of those that compute this chain",
}


def _choose_for_chain(device: str, purpose: Purpose, problem: ChainProblem) -> Choice:
    """The first method of the list that runs here and computes the chain."""
    for name, place in CHAIN_METHODS[purpose]:
        if device not in (AUTO, place) or (place == "cuda" and cuda_missing_reason() is not None):
            continue
        ready = find(name, place).load()
        if ready.unavailable_reason() is None and ready.chain_reason(problem) is None:
            return Choice(name, place, WHY_CHAIN[purpose])
    reason = cuda_unavailable_reason() or f"no method there computes the chain '{problem.chain.name}'"
    raise UnavailableError(f"--device {device} cannot be used here: {reason}. Use --device cpu.")


def _choose_by_profile(
    device: str, purpose: Purpose, problem: Problem, pictures: int | None
) -> tuple[Choice | None, str]:
    """The fastest method according to the profile, or None and a remark on the profile."""
    from edgeconv.runtime import profile as profiles

    if not os.path.exists(profiles.profile_path()):  # False, and no error, where the folder cannot be read
        return None, ""
    from edgeconv.runtime.devices import get_device

    profile, note = profiles.read_profile(profiles.machine_facts(get_device("cpu").describe()))
    if profile is None:
        return None, f"; {note}" if note else ""
    pixels = problem.height * problem.width
    several = pictures if purpose == "many pictures" else 1
    counts_start = several is not None and purpose != "calls"
    workspaces = {}
    expected = []
    for curve in profile.candidates(problem):
        if not any(entry.device == curve.device for entry in entries_of(curve.method)):
            continue  # of a package that is gone
        workspaces[curve.method, curve.device] = curve.workspace_bytes(pixels)
        start = curve.start_seconds if counts_start else 0.0
        expected.append(Forecast(curve.method, curve.device, curve.seconds(pixels), start, pictures=several or 1))
    ranked, passed_over = _able(expected, device, problem, workspaces)
    if not ranked:
        return None, f"; the profile has nothing that can run here: {profiles.RETUNE}"
    best = ranked[0]
    included = f", its start of {seconds_text(best.start_seconds)} included" if counts_start else ""
    why = f"the least time by this machine's profile: {seconds_text(best.seconds)}{included}"
    return Choice(best.method, best.device, why + _next(ranked) + passed_over), ""


def _choose_by_constants(
    device: str, purpose: Purpose, problem: Problem, pictures: int | None, threads: int, note: str
) -> Choice:
    """The method that ends first by the constants of forecast.py."""
    missing = cuda_missing_reason()
    expected = [one for one in forecasts(problem, purpose, pictures, threads) if one.device == "cpu" or missing is None]
    ranked, passed_over = _able(expected, device, problem, {})
    if not ranked:  # memory: the method that needs least says how much is missing
        return _choose_by_rule("cpu", purpose, passed_over + note)
    best = ranked[0]
    place = "CPU asked for; " if device == "cpu" else f"CPU, as {missing}; " if missing is not None else ""
    why = f"{place}predicted {seconds_text(best.seconds)}{_next(ranked)}{_what_would_change(ranked, purpose)}"
    return Choice(best.method, best.device, why + passed_over + note)


def _able(
    expected: Iterable[Forecast], device: str, problem: Problem, workspaces: dict[tuple[str, DeviceName], int]
) -> tuple[list[Forecast], str]:
    """Those that can run here and are exact where they can be, the fastest first; and why faster ones are left out.

    Only the first is tried: to ask a method loads its libraries, which a single picture should not pay for others.
    """
    from edgeconv.runtime.devices import get_device

    able: list[Forecast] = []
    passed_over = ""
    for one in sorted(expected, key=lambda each: each.seconds):
        if device not in (AUTO, one.device):
            continue
        if able:
            able.append(one)
            continue
        entry = find(one.method, one.device)
        if entry.load().unavailable_reason() is not None:
            continue
        if entry.float32_sums and sums_for(problem) == "float64":
            passed_over += f"; {one.method} on {one.device} sums in float32, which is not exact for these weights"
            continue
        needed = problem.input_bytes + problem.output_bytes + workspaces.get((one.method, one.device), 0)
        free = get_device(one.device).free_bytes()
        if free is not None and needed > free:
            passed_over += f"; {one.method} on {one.device} needs {needed:,} bytes of {free:,} free"
            continue
        able.append(one)
    return able, passed_over


def _next(ranked: list[Forecast]) -> str:
    """The runner-up, and what it loses its time with where that is not the work itself."""
    if len(ranked) < 2:
        return ""
    best, second = ranked[:2]
    because = ""
    if second.start_seconds - best.start_seconds > abs(second.work_seconds - best.work_seconds) * second.pictures:
        because = f", because its start takes {seconds_text(second.start_seconds)}"
    elif second.device == "cuda" and second.bus_seconds > second.work_seconds / 2:
        because = ", because the picture crosses the bus twice"
    return f"; next: {second.method} on {second.device}, {seconds_text(second.seconds)}{because}"


def _what_would_change(ranked: list[Forecast], purpose: Purpose) -> str:
    """Where a GPU may be there and is not taken: when it would be."""
    cuda = next((one for one in ranked if one.device == "cuda"), None)
    best = ranked[0]
    if cuda is None or best.device == "cuda":
        return ""
    if purpose == "calls":
        return f"; on cuda {seconds_text(cuda.seconds)}, with two ways over the bus; an array of the GPU stays there"
    if purpose == "one picture":
        return f"; the start of CUDA takes {seconds_text(cuda.start_seconds)}: --device cuda takes it"
    pictures = break_even(best, cuda)
    if pictures is None or pictures > MOST_PICTURES:
        return "; on cuda every picture would cost more than here: --device cuda takes it"
    return f"; cuda would pay from about {max(2, round(pictures)):,} such pictures: --device cuda takes it"


def _choose_by_rule(device: str, purpose: Purpose, note: str = "") -> Choice:
    """What holds on most machines: for what is asked for on a GPU, and where the problem is not known."""
    reason = cuda_unavailable_reason() if device != "cpu" else None
    if device == "cuda" and reason is not None:
        raise UnavailableError(
            f"--device cuda cannot be used here: {reason}. Use --device cpu, or see 'edgeconv doctor'."
        )
    if device == "cuda" or (device == AUTO and reason is None):
        require(FASTEST_CUDA, "cuda")
        return Choice(FASTEST_CUDA, "cuda", f"the fastest CUDA method: one pass over the picture{note}")
    machine = "CPU asked for" if device == "cpu" else f"CPU, as {reason}"
    if purpose == "one picture":
        return Choice(
            QUICKEST_TO_START_CPU, "cpu", f"{machine}; for one picture it starts soonest (no compiler to load){note}"
        )
    return Choice(FASTEST_CPU, "cpu", f"{machine}; the fastest CPU method once its compiler is loaded{note}")


def _why_cpu(homes: list[DeviceName]) -> str:
    return "it is a CPU method" if homes == ["cpu"] else f"on the CPU, as {cuda_unavailable_reason()}"


def runnable() -> list[tuple[str, DeviceName]]:
    """Every (method, device) of the registry that this machine can run."""
    return [(entry.name, entry.device) for entry in all_methods() if entry.load().unavailable_reason() is None]
