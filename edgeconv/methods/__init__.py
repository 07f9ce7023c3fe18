"""The table of methods. A new method costs one file and one line here; CLI, tests, bench and docs iterate it.

Modules are named, not imported: looking at the table costs nothing, and neither NumPy, CuPy nor the CPU engine's
compiler is loaded before a method that needs it is asked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from edgeconv.core.choices import DEVICES, DeviceName
from edgeconv.core.option import AUTO, did_you_mean, listed
from edgeconv.errors import UnavailableError, UsageError
from edgeconv.methods.options import Options, special_options

if TYPE_CHECKING:
    from edgeconv.methods.base import Method


@dataclass(frozen=True)
class MethodEntry:
    """One line of the table: where the class lives, and what a list may say without importing it."""

    name: str
    device: DeviceName
    location: str
    summary: str
    to_compare: bool = False
    """Whether it is there only to compare others with, so that `auto` never takes it."""
    float32_sums: bool = False
    """Whether its library sums in float32 whatever the problem needs: then `auto` passes it over (exactness.py)."""

    @property
    def special_options(self) -> tuple[str, ...]:
        """The options that it takes beside those that every method takes: see options.py."""
        return tuple(entry.name for entry in special_options() if entry.concerns(self.name, self.device))

    def load(self) -> Method:
        """The method itself; one instance per process."""
        return _load(self)


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
    MethodEntry("sliding", "cpu", "edgeconv.methods.cpu.sliding:Sliding", "one pass over HWC, nothing materialised"),
    MethodEntry("im2col", "cpu", "edgeconv.methods.cpu.im2col:Im2col", "columns in memory in bands, then GEMM"),
    MethodEntry("sliding", "cuda", "edgeconv.methods.cuda.sliding:Sliding", "one pass over HWC, nothing materialised"),
    MethodEntry(
        "textbook",
        "cuda",
        "edgeconv.methods.cuda.textbook:Textbook",
        "one thread per output value, nothing reused",
        to_compare=True,
    ),
    MethodEntry("im2col", "cuda", "edgeconv.methods.cuda.im2col:Im2col", "columns in memory in bands, then GEMM"),
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
        float32_sums=True,
    ),
)


@cache
def _load(entry: MethodEntry) -> Method:
    module, _, name = entry.location.partition(":")
    method: Method = getattr(import_module(module), name)()
    return method


def method_names(device: DeviceName | None = None) -> tuple[str, ...]:
    """Names in the table's order, each once, of one device or of all."""
    return tuple(dict.fromkeys(entry.name for entry in METHODS if device in (None, entry.device)))


def find(name: str, device: DeviceName) -> MethodEntry:
    """The entry of `name` on `device`; raises UsageError where the table has none."""
    check_name(name)
    for entry in METHODS:
        if (entry.name, entry.device) == (name, device):
            return entry
    home = ", ".join(other for other in DEVICES if name in method_names(other))
    raise UsageError(f"Method '{name}' does not exist for device '{device}': use --device {home}.")


def check_name(name: str, otherwise: str = AUTO) -> None:
    """Raise UsageError for a name that no device has; `otherwise` is what may stand in its place."""
    if name not in method_names():
        known = f"use {otherwise} or one of {', '.join(method_names())}."
        raise UsageError(f"Method '{name}' is not known: {known}{did_you_mean(name, method_names())}")


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
