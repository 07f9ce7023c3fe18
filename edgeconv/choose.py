"""What `auto` means: which device and which method, and a sentence that says why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from edgeconv.errors import UsageError
from edgeconv.methods import METHODS, find, method_names, require
from edgeconv.methods.base import DEVICES, DeviceName
from edgeconv.methods.cuda.probe import cuda_unavailable_reason

AUTO = "auto"

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


def choose(method: str, device: str, purpose: Purpose) -> Choice:
    """Settle `auto`; raises UsageError for unknown names, UnavailableError where what was asked cannot run."""
    if device not in (AUTO, *DEVICES):
        raise UsageError(f"Device '{device}' is not one of {', '.join((AUTO, *DEVICES))}.")
    if method != AUTO and method not in method_names():
        raise UsageError(f"Method '{method}' is not known: use {AUTO} or one of {', '.join(method_names())}.")
    if method == AUTO:
        return _choose_method(device, purpose)
    homes = [name for name in DEVICES if method in method_names(name)]
    if device != AUTO:
        chosen = find(method, next(name for name in DEVICES if name == device)).device
        why = "asked for by name"
    elif homes == ["cpu"] or ("cpu" in homes and cuda_unavailable_reason() is not None):
        chosen, why = "cpu", "asked for by name; " + _why_cpu(homes)
    else:
        chosen, why = "cuda", "asked for by name; an NVIDIA GPU is there"
    require(method, chosen)
    return Choice(method, chosen, why)


def _choose_method(device: str, purpose: Purpose) -> Choice:
    reason = cuda_unavailable_reason() if device != "cpu" else None
    if device == "cuda" or (device == AUTO and reason is None):
        require(FASTEST_CUDA, "cuda")
        return Choice(FASTEST_CUDA, "cuda", "the fastest CUDA method: one pass over the picture")
    machine = "CPU asked for" if device == "cpu" else f"CPU, as {reason}"
    if purpose == "one picture":
        return Choice(
            QUICKEST_TO_START_CPU, "cpu", f"{machine}; for one picture it starts soonest (no compiler to load)"
        )
    return Choice(FASTEST_CPU, "cpu", f"{machine}; the fastest CPU method once its compiler is loaded")


def _why_cpu(homes: list[DeviceName]) -> str:
    return "it is a CPU method" if homes == ["cpu"] else f"on the CPU, as {cuda_unavailable_reason()}"


def runnable() -> list[tuple[str, DeviceName]]:
    """Every (method, device) of the table that this machine can run."""
    return [(entry.name, entry.device) for entry in METHODS if entry.load().unavailable_reason() is None]
