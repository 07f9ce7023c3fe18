"""How device and method are settled, and a clause that says why: rules, and no model of this machine.

auto      `sliding`, where the pixels are: an array of a GPU on that GPU, everything else on the CPU, and on the GPU
          with --device cuda. A chain that it does not compute goes to the first method that does.
a name    that method or a refusal with the reason, on the GPU where it has one and one is present; --device decides
          otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgeconv.core.chains import ChainProblem
from edgeconv.core.choices import DEVICES, DeviceName
from edgeconv.core.option import AUTO
from edgeconv.errors import UnavailableError, UsageError
from edgeconv.hardware.cuda.probe import cuda_missing_reason, cuda_unavailable_reason
from edgeconv.methods import check_name, entries_of, find, refuse, require
from edgeconv.methods.options import Options

if TYPE_CHECKING:
    from edgeconv.core.problem import Problem

AUTO_METHODS = ("sliding", "opencv", "reference")
"""What `auto` tries, in this order; all but the first are for chains that the first does not compute."""


@dataclass(frozen=True)
class Choice:
    """A method on a device, why, and the name that was asked for."""

    method: str
    device: DeviceName
    why: str
    asked_for: str = AUTO


def choose(method: str, device: str, problem: Problem | ChainProblem | None = None) -> Choice:
    """Settle a method and a device, each a name or `auto`, for `problem` where it is known already.

    Raises UsageError for unknown names, UnavailableError where what was asked cannot run.
    """
    if device not in (AUTO, *DEVICES):
        raise UsageError(f"Device '{device}' is not one of {', '.join((AUTO, *DEVICES))}.")
    if method == AUTO:
        return _auto("cuda" if device == "cuda" else "cpu", device, problem)
    check_name(method)
    homes = [entry.device for entry in entries_of(method)]
    if device != AUTO:
        chosen = find(method, next(name for name in DEVICES if name == device)).device
        why = "asked for by name"
    elif homes == ["cpu"] or ("cpu" in homes and cuda_unavailable_reason() is not None):
        on_cpu = "it is a CPU method" if homes == ["cpu"] else f"on the CPU, as {cuda_unavailable_reason()}"
        chosen, why = "cpu", f"asked for by name; {on_cpu}"
    else:
        chosen, why = "cuda", "asked for by name; an NVIDIA GPU is present"
    ready = require(method, chosen)
    if problem is not None:
        with find(method, chosen).named():
            refuse(method, problem, ready.reason(problem, Options()))
    return Choice(method, chosen, why, method)


def _auto(place: DeviceName, asked: str, problem: Problem | ChainProblem | None) -> Choice:
    """The first method of the table that runs there and computes the problem."""
    reason = cuda_unavailable_reason() if place == "cuda" else None
    if reason is not None:
        raise UnavailableError(
            f"--device cuda cannot be used here: {reason}. Use --device cpu, or see 'edgeconv doctor'."
        )
    what = "this chain" if isinstance(problem, ChainProblem) else "such pictures"
    why = "where the pixels are" if asked == AUTO else f"{place} asked for"
    if asked == AUTO and cuda_missing_reason() is None:
        why += "; --device cuda takes the GPU"
    for name in AUTO_METHODS:
        if not any(entry.device == place for entry in entries_of(name)):
            continue
        entry = find(name, place)
        if entry.unavailable_reason() is not None:
            continue
        if problem is None or entry.load().reason(problem, Options()) is None:
            first = name == AUTO_METHODS[0]
            return Choice(name, place, why if first else f"{why}; {AUTO_METHODS[0]} does not compute {what}")
    raise UnavailableError(f"No method on {place} computes {what} here. Use --device cpu, or see 'edgeconv doctor'.")
