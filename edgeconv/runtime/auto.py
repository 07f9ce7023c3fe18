"""How `auto` chooses device and method, and a sentence that says why.

Where `edgeconv tune` has measured this machine, by its profile for the given size, stride and type, among the methods
that fit in memory; otherwise by rules that hold on most machines.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from edgeconv.core.choices import DeviceName
from edgeconv.core.exactness import sums_for
from edgeconv.core.option import AUTO
from edgeconv.errors import UnavailableError, UsageError
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason
from edgeconv.methods import all_methods, check_name, entries_of, find, require
from edgeconv.methods.base import DEVICES

if TYPE_CHECKING:
    from edgeconv.core.problem import Problem

Purpose = Literal["one picture", "many pictures"]

FASTEST_CUDA = "sliding"
FASTEST_CPU = "sliding"
QUICKEST_TO_START_CPU = "opencv"


@dataclass(frozen=True)
class Choice:
    """A method on a device, and why."""

    method: str
    device: DeviceName
    why: str


def choose(method: str, device: str, purpose: Purpose, problem: Problem | None = None) -> Choice:
    """Settle `auto`, for `problem` where it is known already.

    Raises UsageError for unknown names, UnavailableError where what was asked cannot run.
    """
    if device not in (AUTO, *DEVICES):
        raise UsageError(f"Device '{device}' is not one of {', '.join((AUTO, *DEVICES))}.")
    if method == AUTO:
        measured, note = (None, "") if problem is None else _choose_by_profile(device, purpose, problem)
        return measured or _choose_method(device, purpose, note)
    check_name(method)
    homes = [entry.device for entry in entries_of(method)]
    if device != AUTO:
        chosen = find(method, next(name for name in DEVICES if name == device)).device
        why = "asked for by name"
    elif homes == ["cpu"] or ("cpu" in homes and cuda_unavailable_reason() is not None):
        chosen, why = "cpu", "asked for by name; " + _why_cpu(homes)
    else:
        chosen, why = "cuda", "asked for by name; an NVIDIA GPU is present"
    require(method, chosen)
    return Choice(method, chosen, why)


def _choose_by_profile(device: str, purpose: Purpose, problem: Problem) -> tuple[Choice | None, str]:
    """The fastest method according to the profile, or None and a remark on the profile."""
    from edgeconv.runtime import profile as profiles

    if not os.path.exists(profiles.profile_path()):  # False, and no error, where the folder cannot be read
        return None, ""
    from edgeconv.core.units import seconds_text
    from edgeconv.runtime.devices import get_device

    profile, note = profiles.read_profile(profiles.machine_facts(get_device("cpu").describe()))
    if profile is None:
        return None, f"; {note}" if note else ""
    pixels = problem.height * problem.width

    def seconds(curve: profiles.Curve) -> float:
        return curve.seconds(pixels) + (curve.start_seconds if purpose == "one picture" else 0.0)

    passed_over = ""
    for curve in sorted(profile.candidates(problem), key=seconds):
        if device not in (AUTO, curve.device):
            continue
        entry = find(curve.method, curve.device)
        if entry.load().unavailable_reason() is not None:
            continue
        if entry.float32_sums and sums_for(problem) == "float64":
            passed_over += f"; {curve.method} on {curve.device} sums in float32, which is not exact for these weights"
            continue
        needed = problem.input_bytes + problem.output_bytes + curve.workspace_bytes(pixels)
        free = get_device(curve.device).free_bytes()
        if free is not None and needed > free:
            passed_over += f"; {curve.method} on {curve.device} needs {needed:,} bytes of {free:,} free"
            continue
        start = f", its start of {seconds_text(curve.start_seconds)} included" if purpose == "one picture" else ""
        why = f"the least time by this machine's profile: {seconds_text(seconds(curve))}{start}{passed_over}"
        return Choice(curve.method, curve.device, why), ""
    return None, "; the profile has nothing that can run here"


def _choose_method(device: str, purpose: Purpose, note: str) -> Choice:
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
