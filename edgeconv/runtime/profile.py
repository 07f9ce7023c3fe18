"""What `edgeconv tune` measured on this machine, read back for `--method auto`: which method, and how long it takes.

The profile is one JSON file in the user's cache folder (or the file that EDGECONV_PROFILE names); whether it can be
saved there is tested before anything is measured. It is valid for the machine and the edgeconv version that it was
measured with; otherwise it is ignored, with the reason. Reading it needs neither NumPy nor a device.

    seconds     host array in, host array out, interpolated between measured sizes on log axes; in proportion to the
                pixels above the largest, as the smallest below it
    one picture adds what a fresh process needs to start with the method
"""

from __future__ import annotations

import json
import math
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from edgeconv import __version__
from edgeconv.core.choices import DeviceName
from edgeconv.core.problem import Problem
from edgeconv.core.records import as_type
from edgeconv.errors import EdgeconvError, ImageWriteError
from edgeconv.io.files import is_device, make_folder, read_own_json, write_bytes_atomically

PLACE_VARIABLE = "EDGECONV_PROFILE"
SCHEMA_VERSION = 1
RETUNE = "run 'edgeconv tune' again"
MACHINE_FACTS = ("name", "usable_threads")
"""What must be unchanged for a profile to be valid."""


@dataclass(frozen=True)
class Point:
    """One measured size."""

    pixels: int
    seconds: float
    workspace_bytes: int


@dataclass(frozen=True)
class Curve:
    """A method on a device for one stride and type, at two or more sizes, ascending."""

    method: str
    device: DeviceName
    stride: int
    dtype: str
    start_seconds: float
    points: tuple[Point, ...]

    def seconds(self, pixels: int) -> float:
        """The time for a picture of `pixels`."""
        first, last = self.points[0], self.points[-1]
        if pixels <= first.pixels:
            return first.seconds
        if pixels >= last.pixels:
            return last.seconds * pixels / last.pixels
        for below, above in zip(self.points, self.points[1:], strict=False):
            if pixels <= above.pixels:
                share = math.log(pixels / below.pixels) / math.log(above.pixels / below.pixels)
                return float(below.seconds * (above.seconds / below.seconds) ** share)
        return last.seconds

    def workspace_bytes(self, pixels: int) -> int:
        """Memory besides picture and output, proportional to the pixels, from the worst of the points."""
        return math.ceil(max(point.workspace_bytes / point.pixels for point in self.points) * pixels)


@dataclass(frozen=True)
class Profile:
    """All curves of one machine."""

    machine: dict[str, Any]
    curves: tuple[Curve, ...]

    def to_json(self) -> bytes:
        """As it is stored."""
        record = {"schema_version": SCHEMA_VERSION, "edgeconv_version": __version__, **asdict(self)}
        return (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode()

    def candidates(self, problem: Problem) -> list[Curve]:
        """The curves that stand for `problem`: its stride or the nearest, and a type of its kind."""
        dtypes = {problem.dtype.name, "uint8" if problem.dtype.kind == "u" else "float32"}
        exact = [curve for curve in self.curves if curve.dtype == problem.dtype.name]
        alike = exact or [curve for curve in self.curves if curve.dtype in dtypes]
        if not alike:
            return []
        nearest = min({curve.stride for curve in alike}, key=lambda stride: abs(stride - problem.stride))
        return [curve for curve in alike if curve.stride == nearest]


def machine_facts(cpu: dict[str, Any]) -> dict[str, Any]:
    """From the description of the CPU device."""
    return {name: cpu[name] for name in MACHINE_FACTS}


def profile_path() -> Path:
    """Where the profile is stored."""
    named = os.environ.get(PLACE_VARIABLE)
    if named:
        return Path(named)
    below = "edgeconv/profile.json"
    if sys.platform == "win32":
        folder = os.environ.get("LOCALAPPDATA")
        return Path(folder or os.path.expanduser("~/AppData/Local")) / below
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / below


def place_to_save() -> Path:
    """`profile_path`, after creating and removing a file there as a test.

    Raises ImageWriteError, which says where the profile would go and how to choose another place.
    """
    path = profile_path()
    try:
        if path.is_dir():
            raise ImageWriteError(f"{path}: is a folder: name a file in it.")
        if is_device(path):
            raise ImageWriteError(f"{path}: is a device or a pipe, which cannot be read back: name a file.")
        if str(path).startswith("~"):  # the home folder is unknown, as in some containers
            raise ImageWriteError("this user has no home folder.")
        make_folder(path.parent)
        trial = path.with_name(f".{path.name}.{os.getpid()}.trial")
        write_bytes_atomically(trial, b"{}\n")
        trial.unlink()
    except (EdgeconvError, OSError, ValueError) as error:
        raise _cannot_save(path, error) from None
    return path


def save(profile: Profile, path: Path) -> None:
    """Put a profile in its place. Raises ImageWriteError as `place_to_save` does."""
    try:
        make_folder(path.parent)
        write_bytes_atomically(path, profile.to_json())
    except EdgeconvError as error:
        raise _cannot_save(path, error) from None


def _cannot_save(path: Path, error: Exception) -> ImageWriteError:
    reason = str(error).removeprefix(f"{path}: ").rstrip(".")
    return ImageWriteError(
        f"The profile cannot be written to '{path}' ({reason}): set {PLACE_VARIABLE} to a file that can be written."
    )


def read_profile(machine: dict[str, Any]) -> tuple[Profile | None, str]:
    """The profile and nothing to say; or None, and why one that is there is passed over (empty where there is none).

    `machine` must equal what the profile holds of the same names.
    """
    path = profile_path()
    try:
        record = read_own_json(path)
    except FileNotFoundError:
        return None, ""
    except (OSError, ValueError):
        return None, f"the profile {path} cannot be read: {RETUNE}"
    try:
        if (record["schema_version"], record["edgeconv_version"]) != (SCHEMA_VERSION, __version__):
            return None, f"the profile is of another edgeconv: {RETUNE}"
        if any(record["machine"].get(name) != value for name, value in machine.items()):
            return None, f"the profile is of another machine: {RETUNE}"
        curves = as_type(record["curves"], tuple[Curve, ...])
        if not all(_is_possible(curve) for curve in curves):
            raise ValueError
    except (KeyError, TypeError, ValueError, AttributeError):
        return None, f"the profile {path} is not complete: {RETUNE}"
    return Profile(record["machine"], curves), ""


def _is_possible(curve: Curve) -> bool:
    """Whether a curve can be interpolated: sizes and times above 0, in the order of the sizes."""
    sizes = [point.pixels for point in curve.points]
    positive = all(point.pixels > 0 and point.seconds > 0 for point in curve.points)
    return bool(sizes) and positive and sizes == sorted(set(sizes))
