"""The table of commands, and how one is loaded: only the command that is asked for is imported."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from edgeconv.cli.needless_options import RefusingCommand
from edgeconv.cli.parameters import spread
from edgeconv.core.option import did_you_mean
from edgeconv.errors import UsageError

COMMANDS: dict[str, str] = {
    "run": "edgeconv.cli.run:run",
    "batch": "edgeconv.cli.batch:batch",
    "verify": "edgeconv.cli.verify:verify",
    "compare": "edgeconv.cli.diff:compare",
    "view": "edgeconv.view.command:view",
    "diff": "edgeconv.cli.diff:diff",
    "bench": "edgeconv.cli.bench:COMMANDS",
    "report": "edgeconv.cli.report:report",
    "resize": "edgeconv.cli.resize:resize",
    "filters": "edgeconv.cli.filters:filters",
    "doctor": "edgeconv.cli.doctor:doctor",
}
"""A function, or a table of functions by the name that follows the command; the first of those needs none."""

SETTINGS: Any = {
    "add_completion": False,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 120},
}


class FirstUnlessNamed(TyperGroup):
    """`edgeconv bench --grid lab` is `edgeconv bench grid --grid lab`: what is no command is a picture."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """See click.Group.parse_args; a shell that completes the word behind `bench` is offered the commands too."""
        if ctx.resilient_parsing and not args:
            pass
        elif not args or args[0] not in self.commands:
            args = [next(iter(self.commands)), *args]
        rest: list[str] = super().parse_args(ctx, args)
        return rest

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """See click.Command.shell_complete."""
        if not incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        first = next(iter(self.commands.values()))
        return first.shell_complete(first.make_context(first.name, [], parent=ctx, resilient_parsing=True), incomplete)


class LazyCommands(TyperGroup):
    """The commands of the table, each loaded when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """See click.Group.list_commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """See click.Group.get_command."""
        if cmd_name not in COMMANDS:
            hint = did_you_mean(cmd_name, COMMANDS)
            raise UsageError(f"Command '{cmd_name}' is not known.{hint} See 'edgeconv --help'.")
        return load(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """See click.Group.format_commands: without the options of every command, which take time to spell out."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, _summary(name)) for name in COMMANDS])


@cache
def load(name: str) -> Any:
    """A command of the table, as the parser takes it."""
    found = _named(name)
    return _several(name, found) if isinstance(found, dict) else _one(name, found)


def _named(name: str) -> Any:
    """The function or the table of functions that a line of the table names."""
    module, _, attribute = COMMANDS[name].partition(":")
    return getattr(import_module(module), attribute)


def _summary(name: str) -> str:
    """The first line of what a command says of itself."""
    found = _named(name)
    function = next(iter(found.values())) if isinstance(found, dict) else found
    return (function.__doc__ or "").partition("\n")[0]


def _one(name: str, function: Callable[..., None]) -> Any:
    app = typer.Typer(**SETTINGS)
    app.command(name, cls=RefusingCommand)(spread(function))
    return typer.main.get_command(app)


def _several(name: str, functions: dict[str, Callable[..., None]]) -> Any:
    first = next(iter(functions))
    app = typer.Typer(name=name, cls=FirstUnlessNamed, help=functions[first].__doc__, **SETTINGS)
    for word, function in functions.items():
        app.command(word, cls=RefusingCommand, hidden=word == first)(spread(function))
    return typer.main.get_command(app)
