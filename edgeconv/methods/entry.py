"""One line of the registry of methods, whether it is built in or comes from another package.

A line names a class without importing it, so that a list of methods costs neither NumPy, CuPy nor a compiler.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from edgeconv.core.choices import DeviceName
from edgeconv.methods.options import special_options

if TYPE_CHECKING:
    from edgeconv.methods.base import Method


@dataclass(frozen=True)
class MethodEntry:
    """One line of the registry: where the class lives, and what a list may say without importing it."""

    name: str
    device: DeviceName
    location: str
    summary: str
    to_compare: bool = False
    """Whether it is there only to compare others with, so that `auto` never takes it."""
    package: str = ""
    """Name and version of the package that offers it; empty for a method of edgeconv itself."""

    @property
    def special_options(self) -> tuple[str, ...]:
        """The options that it takes beside those that every method takes: see options.py."""
        return tuple(entry.name for entry in special_options() if entry.concerns(self.name, self.device))

    def load(self) -> Method:
        """The method itself; one instance per process. A method of another package never raises here."""
        return _load(self)


@cache
def _load(entry: MethodEntry) -> Method:
    if entry.package:
        from edgeconv.methods.guarded import GuardedMethod

        return GuardedMethod(entry.name, entry.package, entry.location)
    module, _, name = entry.location.partition(":")
    method: Method = getattr(import_module(module), name)()
    return method
