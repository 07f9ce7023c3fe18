"""A check of this machine: methods, what `auto` chooses, devices, libraries and known conflicts, as lines of text."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from edgeconv import __version__
from edgeconv.api.auto import choose
from edgeconv.core.option import AUTO
from edgeconv.core.optional import import_problem, install
from edgeconv.core.text import bytes_text, visible
from edgeconv.hardware import cache
from edgeconv.hardware.cuda.probe import cuda_remedy, cuda_unavailable_reason
from edgeconv.hardware.devices import get_device
from edgeconv.hardware.versions import installed_versions
from edgeconv.methods import all_methods, method_faults

MODULES = {"opencv-python-headless": "cv2"}
"""The module name of a library, where it differs from the name of its package."""

REMEDIES = {"pyvips": f"{install('vips')}, which brings libvips"}
"""What to do about a library that is installed and cannot be loaded; others are reinstalled."""

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
    no_gpu = cuda_unavailable_reason()
    for entry in all_methods():
        reason = entry.unavailable_reason()
        state = "works" if reason is None else "needs a GPU" if reason == no_gpu else f"no: {reason}"
        origin = f" (package {entry.package})" if entry.package and reason is None else ""
        lines.append(f"  {entry.device:<5} {entry.name:<10} {state}{origin}")
    lines += [f"  left out: {fault}" for fault in method_faults()]
    choice = choose(AUTO, AUTO)
    lines += [f"  {AUTO} takes {choice.method} on {choice.device} ({choice.why})", "", "devices"]
    lines += _facts(get_device("cpu").describe())
    remedy = cuda_remedy()
    if no_gpu is None:
        lines += _facts(get_device("cuda").describe())
    else:
        lines.append(f"  no GPU: {no_gpu}{f': {remedy}' if remedy else ''}")
    entries, size_bytes = cache.held()
    place = cache.folder()
    kept = "nothing is kept" if place is None else f"{place}: {entries} entries, {bytes_text(size_bytes)}"
    lines += [f"  machine code of earlier runs: {kept} ({cache.VARIABLE} names another folder, or 'off')"]
    lines += ["", "libraries"]
    lines += [f"  {name} {found}{_trouble(name)}" for name, found in installed_versions().items()]
    lines += [
        f"  conflict: {' and '.join(names)}: {advice}" for names, advice in CONFLICTS if all(map(_installed, names))
    ]
    return "\n".join(map(visible, lines))


def _facts(facts: dict[str, object]) -> list[str]:
    name = facts.get("name")
    sizes = {
        key.removesuffix("_bytes"): bytes_text(value) if key.endswith("_bytes") and isinstance(value, int) else value
        for key, value in facts.items()
        if key != "name" and value is not None
    }
    return [f"  {name}: " + ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in sizes.items())]


def _trouble(distribution: str) -> str:
    """Why a library that is installed cannot be used, and what to do; nothing where it can, or is asked elsewhere."""
    module = MODULES.get(distribution, distribution)
    if find_spec(module) is None:  # Python itself, and what CUDA's probe and methods answer for
        return ""
    problem = import_problem(module)
    remedy = REMEDIES.get(distribution, f"pip install --force-reinstall {distribution}")
    return "" if problem is None else f"  no: {problem}: {remedy}"


def _installed(distribution: str) -> bool:
    try:
        version(distribution)
    except PackageNotFoundError:
        return False
    return True
