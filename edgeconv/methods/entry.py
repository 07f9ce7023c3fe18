"""A line of the registry of methods, whether it is built in or another package offers it by an entry point.

    [project.entry-points."edgeconv.methods"]       # in the pyproject.toml of the other package
    "cpu.rows" = "edgeconv_rows:Rows"               # device and name of the method; where its class is

A line names a class without importing it, so that a list of methods costs neither NumPy, CuPy nor a compiler. Reading
what all packages offer takes tens of milliseconds, so it is done once, and only when a list of all methods or a name
that is not built in asks for it. What goes wrong inside a method of another package propagates as it is, with a note
that names the package.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from edgeconv.core.choices import DEVICES, DeviceName
from edgeconv.errors import one_line_with_class
from edgeconv.methods.options import special_options

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from edgeconv.methods.base import Method

GROUP = "edgeconv.methods"
NAME = re.compile(r"[a-z][a-z0-9_-]*")
"""A method's name is a word on command lines and in lists, where colons, commas and equals signs mean something."""
RESERVED = ("auto", "all", "none")


@dataclass(frozen=True)
class MethodEntry:
    """One line of the registry: where the class lives, and what a list may say without importing it."""

    name: str
    device: DeviceName
    location: str
    """module:class."""
    summary: str
    package: str = ""
    """Name and version of the package that offers it; empty for a method of edgeconv itself."""

    @property
    def special_options(self) -> tuple[str, ...]:
        """The options that it takes beside those that every method takes: see options.py."""
        return tuple(entry.name for entry in special_options() if entry.concerns(self.name, self.device))

    def load(self) -> Method:
        """The method itself; one instance per process. Raises whatever importing and making its class raises."""
        return _load(self)

    def unavailable_reason(self) -> str | None:
        """Why this machine cannot run the method, or None; a class of another package that fails is a reason."""
        try:
            return self.load().unavailable_reason()
        except Exception as error:  # whatever the modules of another package raise while they are loaded
            if not self.package:
                raise
            return f"package {self.package} cannot be loaded ({one_line_with_class(error)})"

    @contextmanager
    def named(self) -> Iterator[None]:
        """Add a note with the package to an exception that a method of another package lets out of the block."""
        try:
            yield
        except Exception as error:
            if self.package:  # Python 3.10 has no add_note, which does the same
                notes = [*getattr(error, "__notes__", ()), f"in method '{self.name}' of package {self.package}"]
                error.__notes__ = list(dict.fromkeys(notes))
            raise


@cache
def _load(entry: MethodEntry) -> Method:
    module, _, attributes = entry.location.partition(":")
    found: Any = import_module(module)
    for attribute in attributes.split("."):
        found = getattr(found, attribute)
    method: Method = found()
    return method


class Plugins(NamedTuple):
    """What other packages offer, and what is wrong with what they offer."""

    entries: tuple[MethodEntry, ...]
    faults: tuple[tuple[str, str], ...]
    """Each method that is left out: its name, and a sentence that names its package."""


@cache
def plugins(built_in: frozenset[str]) -> Plugins:
    """The methods of other packages; those of a name that is taken are left out, with a fault each."""
    from importlib.metadata import entry_points  # takes longer to import than the rest of the registry

    try:
        points = sorted(entry_points(group=GROUP), key=lambda point: (point.name, _metadata(point, "Name")))
    except Exception as error:  # the metadata of any package may be damaged
        return Plugins((), (("", f"methods of other packages cannot be listed ({one_line_with_class(error)})"),))
    entries: dict[tuple[str, str], MethodEntry] = {}
    faults: list[tuple[str, str]] = []
    for point in points:
        package = f"{_metadata(point, 'Name') or point.value} {_metadata(point, 'Version')}".rstrip()
        place, _, name = point.name.partition(".")
        device = next((known for known in DEVICES if known == place), None)
        known = entries.get((place, name))
        if device is None or not NAME.fullmatch(name) or name in RESERVED:
            fault = (
                f"package {package} offers a method as '{point.name}', which is not a device ({', '.join(DEVICES)}), "
                "a dot and a name of small letters, digits, - and _"
            )
        elif name in built_in:
            fault = f"package {package} offers a method '{name}', which is the name of one of edgeconv's own"
        elif not re.fullmatch(r"[\w.]+:[\w.]+", point.value):
            fault = f"package {package} offers method '{name}' as '{point.value}', which is not module:class"
        elif known is not None:
            both = f"{known.package} and {package}"
            fault = f"method '{name}' on {device} is offered by two packages, {both}: uninstall one"
        else:
            entries[device, name] = MethodEntry(name, device, point.value, _metadata(point, "Summary"), package)
            continue
        faults.append((name, fault))
    faulty = {name for name, _ in faults}
    return Plugins(tuple(entry for entry in entries.values() if entry.name not in faulty), tuple(faults))


def _metadata(point: EntryPoint, key: str) -> str:
    """A field of the package's metadata in one line; empty where it has none, or none that can be read."""
    try:
        found: Any = point.dist.metadata if point.dist is not None else {}
        return " ".join(found[key].split()) if key in found else ""
    except Exception:  # damaged metadata is no reason to do without the method
        return ""
