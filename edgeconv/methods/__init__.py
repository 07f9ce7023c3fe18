"""The registry of methods. A new method costs one file and one line here; CLI, tests, bench and docs iterate it.

Modules are named, not imported: looking at the table costs nothing, and neither NumPy, CuPy nor the CPU engine's
compiler is loaded before a method that needs it is asked. Methods of other packages stand behind those of the table
(outside.py), and are looked up when a list of all, or a name that the table does not have, is asked for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from edgeconv.core.choices import DeviceName
from edgeconv.core.option import AUTO, did_you_mean, listed
from edgeconv.errors import UnavailableError, UsageError
from edgeconv.methods.entry import MethodEntry
from edgeconv.methods.options import Options, special_options
from edgeconv.methods.outside import outside_methods

if TYPE_CHECKING:
    from edgeconv.methods.base import Method


METHODS: tuple[MethodEntry, ...] = (
    MethodEntry(
        "reference",
        "cpu",
        "edgeconv.methods.reference:Reference",
        "NumPy in float64, obvious and slow: the oracle",
        to_compare=True,
    ),
    MethodEntry(
        "opencv", "cpu", "edgeconv.methods.opencv:OpenCV", "cv2.filter2D and cv2.transform, the CPU's vendor library"
    ),
    MethodEntry("sliding", "cpu", "edgeconv.methods.cpu.sliding:CpuSliding", "one pass over HWC, nothing materialised"),
    MethodEntry("im2col", "cpu", "edgeconv.methods.cpu.im2col:CpuIm2col", "columns in memory in bands, then GEMM"),
    MethodEntry(
        "sliding", "cuda", "edgeconv.methods.cuda.sliding:CudaSliding", "one pass over HWC, nothing materialised"
    ),
    MethodEntry(
        "textbook",
        "cuda",
        "edgeconv.methods.cuda.textbook:Textbook",
        "one thread per output value, nothing reused",
        to_compare=True,
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
        "cuDNN NHWC, chosen by GetConvolutionForwardAlgorithm_v7",
    ),
)


BUILT_IN = frozenset(entry.name for entry in METHODS)
"""Names that no other package can take, on either device: so a built-in method is found without asking for others."""


def all_methods() -> tuple[MethodEntry, ...]:
    """The table, and behind it the methods of other packages, which are looked up once."""
    return (*METHODS, *outside_methods(BUILT_IN).entries)


def entries_of(name: str) -> tuple[MethodEntry, ...]:
    """The entries of a name on every device; empty where nobody has it."""
    return tuple(entry for entry in (METHODS if name in BUILT_IN else all_methods()) if entry.name == name)


def method_faults() -> tuple[str, ...]:
    """A sentence for each method of another package that is left out."""
    return outside_methods(BUILT_IN).faults


def built_in_names(device: DeviceName | None = None) -> tuple[str, ...]:
    """Names in the table's order, each once, of one device or of all."""
    return _names(METHODS, device)


def method_names(device: DeviceName | None = None) -> tuple[str, ...]:
    """The same, with the methods of other packages."""
    return _names(all_methods(), device)


def _names(entries: tuple[MethodEntry, ...], device: DeviceName | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(entry.name for entry in entries if device in (None, entry.device)))


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
    fault = outside_methods(BUILT_IN).faulty_names.get(str(name))
    if fault is not None:
        raise UsageError(f"Method '{name}' cannot be used: {fault}.")
    known = f"use {otherwise} or one of {', '.join(method_names())}."
    raise UsageError(f"Method '{name}' is not known: {known}{did_you_mean(str(name), method_names())}")


def require(name: str, device: DeviceName, options: Options | None = None) -> Method:
    """The method `name` on `device`, ready to prepare; raises UnavailableError with the reason and the way out.

    Options that do not concern the method are refused, never ignored.
    """
    from edgeconv.methods.base import refuse

    entry = find(name, device)
    method = entry.load()
    reason = method.unavailable_reason()
    if reason is not None:
        others = [other.name for other in METHODS if other.device == "cpu" and other.name != name]
        way_out = f"Use --method {' or '.join(others[-2:])} on --device cpu, or --method auto; see 'edgeconv doctor'."
        raise refuse(name, reason, way_out)
    refuse_inapplicable(entry, options or Options())
    return method


def refuse_inapplicable(entry: MethodEntry, options: Options) -> None:
    """Raise UnavailableError for an option that is given and does not concern the method."""
    for option, written in options.asked().items():
        if option not in entry.special_options:
            raise UnavailableError(
                f"{written} does not apply to method '{entry.name}' on {entry.device}: "
                f"use --method {takers(option)}, or leave {written.split()[0]} out."
            )


def refuse_inapplicable_to_all(entries: tuple[MethodEntry, ...], options: Options) -> None:
    """Raise UnavailableError for an option that is given and concerns none of several methods."""
    for option, written in options.asked().items():
        if not any(option in entry.special_options for entry in entries):
            raise UnavailableError(
                f"{written} does not apply to any method that runs here: leave it out, or use a machine that has "
                f"{takers(option)}."
            )


def takers(option: str) -> str:
    """The methods that an option concerns, for a person."""
    return listed(tuple(f"{entry.name} (on {entry.device})" for entry in METHODS if option in entry.special_options))


def applicable(entry: MethodEntry, options: Options) -> Options:
    """`options` as far as they concern `entry`: for several methods at once, which need not take the same."""
    others = (option for option in special_options() if option.name not in entry.special_options)
    return replace(options, **{option.name: option.default for option in others})
