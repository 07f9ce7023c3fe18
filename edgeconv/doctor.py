"""A check-up of this machine: methods, devices, libraries and known conflicts, as lines of text."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import get_args

from edgeconv import __version__
from edgeconv.choose import AUTO, Purpose, choose
from edgeconv.devices import get_device
from edgeconv.methods import METHODS
from edgeconv.methods.cuda.probe import cuda_unavailable_reason
from edgeconv.report import installed_versions

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
    for purpose in get_args(Purpose):
        choice = choose(AUTO, AUTO, purpose)
        lines.append(f"  {AUTO} for {purpose}: {choice.method} on {choice.device} ({choice.why})")
    lines += ["", "devices"]
    lines += _facts(get_device("cpu").describe())
    if cuda_unavailable_reason() is None:
        lines += _facts(get_device("cuda").describe())
    lines += ["", "libraries"]
    lines += [f"  {name} {found}" for name, found in installed_versions().items()]
    lines += [
        f"  conflict: {' and '.join(names)}: {advice}" for names, advice in CONFLICTS if all(map(_installed, names))
    ]
    return "\n".join(lines)


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
