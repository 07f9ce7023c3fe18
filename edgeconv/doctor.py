"""A check-up of this machine: methods, what `auto` takes, devices, libraries and known conflicts, as lines of text."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import get_args

import numpy as np

from edgeconv import __version__, tuned
from edgeconv.choose import AUTO, Purpose, choose
from edgeconv.devices import get_device
from edgeconv.escapes import visible
from edgeconv.filters import RGB_CHANNELS
from edgeconv.methods import METHODS
from edgeconv.methods.cuda.probe import cuda_unavailable_reason
from edgeconv.report import installed_versions
from edgeconv.request import make_request

SIDES = (256, 1024, 4096)
"""Of the pictures for which a profile is asked."""

CONFLICTS = (
    (
        ("opencv-python", "opencv-python-headless"),
        "both install the folder cv2 and break each other: pip uninstall both, then pip install opencv-python-headless",
    ),
    (
        ("cupy-cuda12x", "cupy-cuda13x"),
        "only one CuPy may be installed: pip uninstall the one that your driver does not match",
    ),
)


def text() -> str:
    """The whole check-up."""
    lines = [f"edgeconv {__version__}", "", "methods"]
    for entry in METHODS:
        reason = entry.load().unavailable_reason()
        state = "works" if reason is None else f"no: {reason}"
        lines.append(f"  {entry.device:<5} {entry.name:<10} {state}")
    lines += ["", f"{AUTO} (stride 1, 8 bits)", *_auto(), "", "devices"]
    lines += _facts(get_device("cpu").describe())
    if cuda_unavailable_reason() is None:
        lines += _facts(get_device("cuda").describe())
    lines += ["", "libraries"]
    lines += [f"  {name} {found}" for name, found in installed_versions().items()]
    lines += [
        f"  conflict: {' and '.join(names)}: {advice}" for names, advice in CONFLICTS if all(map(_installed, names))
    ]
    return "\n".join(map(visible, lines))


def _auto() -> list[str]:
    """The profile of `edgeconv tune`, whether it holds, and what `auto` takes: by it for some sizes, else by rule."""
    profile, note = tuned.read_profile(tuned.machine_facts(get_device("cpu").describe()))
    state = "holds for this machine" if profile else note or "is not there yet: run 'edgeconv tune'"
    sides = SIDES if profile else (None,)
    return [f"  profile {tuned.profile_path()}: {state}", *(_taken(p, s) for p in get_args(Purpose) for s in sides)]


def _taken(purpose: Purpose, side: int | None) -> str:
    """What `auto` takes for pictures of `side` by `side` pixels, or for any."""
    problem = None if side is None else make_request().problem((side, side, RGB_CHANNELS), np.uint8)
    choice = choose(AUTO, AUTO, purpose, problem)
    sized = "" if side is None else f" of {side}×{side}"
    return f"  {AUTO} for {purpose}{sized}: {choice.method} on {choice.device} ({choice.why})"


def _facts(facts: dict[str, object]) -> list[str]:
    name = facts.get("name")
    rest = ", ".join(f"{key} {value}" for key, value in facts.items() if key != "name" and value is not None)
    return [f"  {name}: {rest}"]


def _installed(distribution: str) -> bool:
    try:
        version(distribution)
    except PackageNotFoundError:
        return False
    return True
