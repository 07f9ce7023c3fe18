"""The registry of methods. A new method costs one file and one line here; CLI, tests, bench and docs iterate it.

Modules are named, not imported: looking at the table costs nothing, and neither NumPy, CuPy nor the CPU engine's
compiler is loaded before a method that needs it is asked. Methods of other packages stand behind those of the table
(entry.py), and are looked up when a list of all, or a name that the table does not have, is asked for.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from edgeconv.core.choices import DeviceName
from edgeconv.core.option import AUTO, did_you_mean, listed
from edgeconv.errors import UnavailableError, UsageError
from edgeconv.methods.entry import MethodEntry, plugins
from edgeconv.methods.options import Options, special_options

if TYPE_CHECKING:
    from edgeconv.core.chains import ChainProblem
    from edgeconv.core.problem import Problem
    from edgeconv.methods.base import Method, Plan


METHODS: tuple[MethodEntry, ...] = (
    MethodEntry(
        "reference",
        "cpu",
        "edgeconv.methods.reference:Reference",
        "NumPy in float64, obvious and slow: the oracle",
    ),
    MethodEntry(
        "opencv", "cpu", "edgeconv.methods.opencv:OpenCV", "cv2.filter2D and cv2.transform, the CPU's vendor library"
    ),
    MethodEntry("sliding", "cpu", "edgeconv.methods.cpu.sliding:CpuSliding", "one pass over HWC, nothing materialised"),
    MethodEntry("im2col", "cpu", "edgeconv.methods.cpu.sliding:CpuIm2col", "columns in memory in bands, then GEMM"),
    MethodEntry(
        "sliding", "cuda", "edgeconv.methods.cuda.sliding:CudaSliding", "one pass over HWC, nothing materialised"
    ),
    MethodEntry(
        "textbook",
        "cuda",
        "edgeconv.methods.cuda.textbook:Textbook",
        "one thread per output value, nothing reused",
    ),
    MethodEntry("im2col", "cuda", "edgeconv.methods.cuda.im2col:CudaIm2col", "columns in memory in bands, then GEMM"),
    MethodEntry(
        "implicit",
        "cuda",
        "edgeconv.methods.cuda.implicit:Implicit",
        "im2col inside the GEMM, nothing in memory",
    ),
    MethodEntry(
        "cudnn",
        "cuda",
        "edgeconv.methods.cuda.cudnn:CuDNN",
        "cuDNN NHWC, or planes in groups, chosen by GetConvolutionForwardAlgorithm_v7",
    ),
)


BUILT_IN = frozenset(entry.name for entry in METHODS)
"""Names that no other package can take, on either device: so a built-in method is found without asking for others."""


def all_methods() -> tuple[MethodEntry, ...]:
    """The table, and behind it the methods of other packages, which are looked up once."""
    return (*METHODS, *plugins(BUILT_IN).entries)


def entries_of(name: str) -> tuple[MethodEntry, ...]:
    """The entries of a name on every device; empty where nobody has it."""
    return tuple(entry for entry in (METHODS if name in BUILT_IN else all_methods()) if entry.name == name)


def method_faults() -> tuple[str, ...]:
    """A sentence for each method of another package that is left out."""
    return tuple(fault for _, fault in plugins(BUILT_IN).faults)


def method_names(device: DeviceName | None = None, entries: tuple[MethodEntry, ...] | None = None) -> tuple[str, ...]:
    """Names in the order of `entries` (None: all methods), each once, of one device or of both."""
    found = all_methods() if entries is None else entries
    return tuple(dict.fromkeys(entry.name for entry in found if device in (None, entry.device)))


@cache
def find(name: str, device: DeviceName) -> MethodEntry:
    """The entry of `name` on `device`; raises UsageError where there is none."""
    check_name(name)
    found = entries_of(name)
    for entry in found:
        if entry.device == device:
            return entry
    home = ", ".join(entry.device for entry in found)
    raise UsageError(f"Method '{name}' does not exist for device '{device}': use --device {home}.")


def check_name(name: str, otherwise: str = AUTO) -> None:
    """Raise UsageError for a name that no device has; `otherwise` is what may stand in its place."""
    if isinstance(name, str) and entries_of(name):
        return
    for faulty, fault in plugins(BUILT_IN).faults:
        if faulty == name:
            raise UsageError(f"Method '{name}' cannot be used: {fault}.")
    known = f"use {otherwise} or one of {', '.join(method_names())}."
    raise UsageError(f"Method '{name}' is not known: {known}{did_you_mean(str(name), method_names())}")


def require(name: str, device: DeviceName, options: Options | None = None) -> Method:
    """The method `name` on `device`, which runs here; raises UnavailableError with the reason and the way out.

    Options that do not concern the method are refused, never ignored.
    """
    entry = find(name, device)
    reason = entry.unavailable_reason()
    if reason is not None:
        others = [other.name for other in METHODS if other.device == "cpu" and other.name != name]
        way_out = f"Use --method {' or '.join(others[-2:])} on --device cpu, or --method auto; see 'edgeconv doctor'."
        raise UnavailableError(f"Method '{name}' cannot run here: {reason}. {way_out}")
    refuse_inapplicable((entry,), options or Options())
    return entry.load()


def prepare(
    name: str, device: DeviceName, problem: Problem | ChainProblem, options: Options, pictures: int = 1
) -> Plan:
    """A plan of the method `name` on `device`: see `Method.prepare`.

    Raises UnavailableError where it cannot run here or does not do this problem, MemoryLimitError, and whatever a
    method of another package raises, with a note that names the package.
    """
    from edgeconv.methods.base import Plan

    method = require(name, device, options)
    with find(name, device).named():
        refuse(name, problem, method.reason(problem, options))
        plan = method.prepare(problem, options, pictures)
        if not isinstance(plan, Plan):
            raise TypeError(f"prepare() gave {type(plan).__name__}, not a Plan")
    return plan


def refuse(name: str, problem: Problem | ChainProblem, reason: str | None) -> None:
    """Raise UnavailableError for a method asked for by name that cannot compute a problem, where there is a reason."""
    if reason is not None:
        chain = getattr(problem, "chain", None)
        what = "this" if chain is None else f"the chain '{chain.name}'"
        raise UnavailableError(f"Method '{name}' cannot compute {what}: {reason}. Use --method auto.")


def refuse_inapplicable(entries: tuple[MethodEntry, ...], options: Options) -> None:
    """Raise UnavailableError for an option that is given and concerns none of `entries`, the methods that are asked."""
    for option, written in options.asked().items():
        if any(option in entry.special_options for entry in entries):
            continue
        takers = (f"{entry.name} (on {entry.device})" for entry in METHODS if option in entry.special_options)
        what = (
            f"method '{entries[0].name}' on {entries[0].device}" if len(entries) == 1 else "any method that runs here"
        )
        raise UnavailableError(f"{written} does not apply to {what}: it is for {listed(tuple(takers))}.")


def applicable(entry: MethodEntry, options: Options) -> Options:
    """`options` as far as they concern `entry`: for several methods at once, which need not take the same."""
    others = (option for option in special_options() if option.name not in entry.special_options)
    return replace(options, **{option.name: option.default for option in others})
