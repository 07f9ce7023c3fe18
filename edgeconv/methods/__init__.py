"""The table of methods. A new method costs one file and one line here; CLI, tests, bench and docs iterate it.

Modules are named, not imported: looking at the table costs nothing, and neither CuPy nor the CPU engine's
compiler is loaded before a method that needs it is asked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module

from edgeconv.errors import UsageError
from edgeconv.methods.base import DEVICES, SPECIAL_OPTIONS, DeviceName, Method, Options, SpecialOption, refuse


@dataclass(frozen=True)
class MethodEntry:
    """One line of the table: where the class lives, and what a list may say without importing it."""

    name: str
    device: DeviceName
    location: str
    summary: str
    knows: tuple[SpecialOption, ...] = ()
    """The options that concern it, of those that do not concern every method."""
    to_compare: bool = False
    """Whether it is there only to compare others with, so that `auto` never takes it."""
    float32_sums: bool = False
    """Whether its library sums in float32 whatever the problem needs: then `auto` passes it over (exactness.py)."""

    def load(self) -> Method:
        """The method itself; one instance a process."""
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
        ("block",),
        to_compare=True,
    ),
    MethodEntry(
        "im2col", "cuda", "edgeconv.methods.cuda.im2col:Im2col", "columns in memory in bands, then GEMM", ("gemm",)
    ),
    MethodEntry(
        "implicit",
        "cuda",
        "edgeconv.methods.cuda.implicit:Implicit",
        "im2col inside the GEMM, nothing in memory",
        ("math",),
    ),
    MethodEntry(
        "cudnn",
        "cuda",
        "edgeconv.methods.cuda.cudnn:CuDNN",
        "cuDNN NHWC, chosen by GetConvolutionForwardAlgorithm_v7",
        ("math", "cudnn_find"),
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
    if name not in method_names():
        raise UsageError(f"Method '{name}' is not known: use auto or one of {', '.join(method_names())}.")
    for entry in METHODS:
        if (entry.name, entry.device) == (name, device):
            return entry
    home = ", ".join(other for other in DEVICES if name in method_names(other))
    raise UsageError(f"Method '{name}' does not exist for device '{device}': use --device {home}.")


def require(name: str, device: DeviceName, options: Options | None = None) -> Method:
    """The method `name` on `device`, ready to prepare; raises UnavailableError with the reason and the way out.

    Options that do not concern the method are refused, never ignored.
    """
    entry = find(name, device)
    method = entry.load()
    reason = method.unavailable_reason()
    if reason is not None:
        others = [other.name for other in METHODS if other.device == "cpu" and other.name != name]
        raise refuse(name, reason, f"Use --device cpu with --method {' or '.join(others[-2:])}, or --method auto.")
    refuse_unknown(entry, options or Options())
    return method


def refuse_unknown(entry: MethodEntry, options: Options) -> None:
    """Raise UnavailableError for an option that is asked for and does not concern the method."""
    for option, words in options.asked().items():
        if option not in entry.knows:
            way_out = f"Use --method {able(option)}, or leave {words.split()[0]} out."
            raise refuse(entry.name, f"it knows no {words}", way_out)


def able(option: SpecialOption) -> str:
    """The methods that know an option, for a person."""
    return " or ".join(f"{entry.name} (on {entry.device})" for entry in METHODS if option in entry.knows)


def known(entry: MethodEntry, options: Options) -> Options:
    """`options` as far as `entry` knows them: for several methods at once, which need not know the same."""
    return replace(options, **{name: getattr(Options, name) for name in SPECIAL_OPTIONS if name not in entry.knows})
