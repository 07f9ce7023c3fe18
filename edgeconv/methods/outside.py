"""Methods of other packages: the entry points of the group `edgeconv.methods`, listed without importing what they name.

    [project.entry-points."edgeconv.methods"]       # in the pyproject.toml of the other package
    "cpu.rows" = "edgeconv_rows:Rows"               # device and name of the method; where its class is

Reading what all packages offer takes tens of milliseconds, so it is done once, and only when a list of all methods or
a name that is not built in asks for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from edgeconv.core.choices import DEVICES
from edgeconv.methods.entry import MethodEntry

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "edgeconv.methods"
NAME = re.compile(r"[a-z][a-z0-9_-]*")
"""A method's name is a word on command lines and in lists, where colons, commas and equals signs mean something."""
RESERVED = ("auto", "all", "none")


@dataclass(frozen=True)
class Outside:
    """What other packages offer, and what is wrong with what they offer."""

    entries: tuple[MethodEntry, ...] = ()
    faults: tuple[str, ...] = ()
    """A sentence for each method that is left out, naming its package."""
    faulty_names: dict[str, str] = field(default_factory=dict)
    """The same by the name that a person may ask for."""


@cache
def outside_methods(built_in: frozenset[str]) -> Outside:
    """The methods of other packages; those of a name that is taken are left out, with a fault each."""
    from importlib.metadata import entry_points  # takes longer to import than the rest of the registry

    try:
        points = sorted(entry_points(group=GROUP), key=lambda point: (point.name, _package(point)))
    except Exception as error:  # the metadata of any package may be damaged
        return Outside(faults=(f"methods of other packages cannot be listed ({type(error).__name__}: {error})",))
    entries: dict[tuple[str, str], MethodEntry] = {}
    faults: list[str] = []
    faulty_names: dict[str, str] = {}
    for point in points:
        package = _package(point)
        device, _, name = point.name.partition(".")
        known_device = next((known for known in DEVICES if known == device), None)
        fault = None
        if known_device is None or not NAME.fullmatch(name) or name in RESERVED:
            fault = (
                f"package {package} offers a method as '{point.name}', which is not a device ({', '.join(DEVICES)}), "
                "a dot and a name of small letters, digits, - and _"
            )
        elif name in built_in:
            fault = f"package {package} offers a method '{name}', which is the name of one of edgeconv's own"
        elif not re.fullmatch(r"[\w.]+:[\w.]+", point.value):
            fault = f"package {package} offers method '{name}' as '{point.value}', which is not module:class"
        elif (device, name) in entries:
            other = entries[device, name].package
            fault = f"method '{name}' on {device} is offered by two packages, {other} and {package}: uninstall one"
        if fault is not None:
            faults.append(fault)
            if name not in built_in:
                faulty_names[name] = fault
            continue
        assert known_device is not None  # a fault otherwise
        entries[device, name] = MethodEntry(
            name, known_device, point.value, _metadata(point, "Summary"), to_compare=True, package=package
        )
    sound = tuple(entry for entry in entries.values() if entry.name not in faulty_names)
    return Outside(sound, tuple(faults), faulty_names)


def _package(point: EntryPoint) -> str:
    """Name and version, as far as its metadata says."""
    return f"{_metadata(point, 'Name') or point.value} {_metadata(point, 'Version')}".rstrip()


def _metadata(point: EntryPoint, key: str) -> str:
    """A field of the package's metadata in one line; empty where it has none, or none that can be read."""
    if point.dist is None:
        return ""
    try:
        found = point.dist.metadata
        return " ".join(found[key].split()) if key in found else ""
    except Exception:  # damaged metadata is no reason to do without the method
        return ""
