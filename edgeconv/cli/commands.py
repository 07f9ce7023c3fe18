"""The table of commands; only the one that is asked for is imported."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

COMMANDS: dict[str, str] = {
    "run": "edgeconv.cli.run:run",
    "batch": "edgeconv.cli.batch:batch",
    "verify": "edgeconv.cli.verify:verify",
    "compare": "edgeconv.cli.diff:compare",
    "view": "edgeconv.view.command:view",
    "diff": "edgeconv.cli.diff:diff",
    "bench": "edgeconv.cli.bench:grid",
    "bench ab": "edgeconv.cli.bench:ab",
    "bench gemm": "edgeconv.cli.bench:gemm",
    "bench conv": "edgeconv.cli.bench:conv",
    "report": "edgeconv.cli.report:report",
    "resize": "edgeconv.cli.resize:resize",
    "filters": "edgeconv.cli.filters:filters",
    "doctor": "edgeconv.cli.doctor:doctor",
}
"""The function of each command: its parameters are groups of options, and it returns the exit code, or None for 0."""


def function_of(name: str) -> Callable[..., Any]:
    """The function of a command, whose docstring is its help."""
    module, _, function = COMMANDS[name].partition(":")
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found
