"""Libraries that need not be there: one guarded import, one reason.

A package that is installed may still fail to start: pyvips without libvips, a wheel that lacks a system library.
`find_spec` only tells whether its files are there, so the package is imported, just before it is used anyway.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from edgeconv.errors import one_line


def install(extra: str) -> str:
    """How to add an extra to a checkout, as a clause: no package index has edgeconv."""
    return f"in edgeconv's folder python3 scripts/bootstrap.py run --extras {extra}, or pip install '.[{extra}]'"


def import_problem(module: str) -> str | None:
    """Why `module` cannot be imported, as a phrase without a full stop, or None where it is imported now."""
    package = module.partition(".")[0]
    if find_spec(package) is None:
        return f"{package} is not installed"
    try:
        import_module(module)
    except Exception as error:  # ImportError, OSError of a library behind it, or whatever its start-up raises
        return f"{package} is installed but cannot be imported ({one_line(error)})"
    return None
