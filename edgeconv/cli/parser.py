"""From options as rows to what Typer parses, and from what it parsed to the groups that a command's function takes.

    def run(picture: Annotated[str, Positional("PNG, JPEG, …")], filtering: Filtering, sampling: Sampling) -> int:

has the options of both groups on its command line, and gets the groups filled in. Typer reads a command's signature, so
that is what the builder makes: one parameter for each option.
"""

from __future__ import annotations

import inspect
from dataclasses import is_dataclass
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from edgeconv.cli.commands import COMMANDS, function_of
from edgeconv.cli.needless import refuse_needless
from edgeconv.core.option import Given, Only, Option, Positional, did_you_mean, options_of
from edgeconv.errors import UsageError

SETTINGS: Any = {
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 120},
}


class Commands(TyperGroup):
    """The commands of the table, each loaded when it is asked for; two words may name one (`bench ab`)."""

    def list_commands(self, ctx: Any) -> list[str]:
        """See click.Group.list_commands."""
        return [name for name in COMMANDS if " " not in name]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """See click.Group.resolve_command."""
        name = " ".join(args[:2]) if " ".join(args[:2]) in COMMANDS else args[0]
        return name, self.get_command(ctx, name), args[len(name.split()) :]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """See click.Group.get_command."""
        if cmd_name not in COMMANDS:
            hint = did_you_mean(cmd_name, COMMANDS)
            raise UsageError(f"Command '{cmd_name}' is not known.{hint} See 'edgeconv --help'.")
        return load(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """See click.Group.format_commands: without the options of every command, which take time to spell out."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, (function_of(name).__doc__ or "").partition("\n")[0]) for name in COMMANDS])


class Refusing(TyperCommand):
    """A command that refuses options without effect before it does anything."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """See click.Command.format_options: under the heading of each group."""
        lines: dict[str, list[Any]] = {}
        for each in self.get_params(ctx):
            heading = "Arguments" if each.param_type_name == "argument" else getattr(each, "rich_help_panel", None)
            lines.setdefault(heading or "Other", []).append(each.get_help_record(ctx))
        for heading, records in lines.items():
            with formatter.section(heading):
                formatter.write_dl([record for record in records if record is not None])

    def invoke(self, ctx: Any) -> Any:
        """See click.Command.invoke."""
        flags = {each.name or "": max(each.opts, key=len) for each in self.params}
        refuse_needless(self.name or "", ctx.params, _given(ctx), flags)
        return super().invoke(ctx)


@cache
def load(name: str) -> Any:
    """A command of the table, as Typer parses it."""
    function = function_of(name)
    hints = get_type_hints(function, include_extras=True)
    groups = {entry: taken_options(hint) for entry, hint in hints.items() if is_dataclass(_bare(hint))}
    rows = [_option(option, _heading(hints[entry])) for entry, options in groups.items() for option in options]
    arguments = [
        _parameter(each.name, _bare(hints[each.name]), each.default, _argument(hints[each.name]))
        for each in inspect.signature(function).parameters.values()
        if each.name not in groups and hints[each.name] is not Given
    ]

    def call(context: typer.Context, **values: Any) -> Any:
        filled: dict[str, Any] = {each.name: values[each.name] for each in arguments}
        for entry, options in groups.items():
            for option in options:
                option.check(values[option.name])
            filled[entry] = _bare(hints[entry])(**{option.name: values[option.name] for option in options})
        filled |= {entry: Given(_given(context)) for entry, hint in hints.items() if hint is Given}
        return function(**filled)

    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    spelled = [context, *arguments, *rows]
    call.__signature__ = inspect.Signature(spelled)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in spelled}
    app = typer.Typer(add_completion=False, **SETTINGS)
    app.command(name, cls=Refusing, help=inspect.getdoc(function))(call)
    return typer.main.get_command(app)


def taken_options(hint: Any) -> tuple[Option, ...]:
    """The options of a group: all, or those that `Only` names."""
    options = options_of(_bare(hint))
    only = next((extra for extra in get_args(hint)[1:] if isinstance(extra, Only)), None)
    assert only is None or {each.name for each in options} >= set(only), f"{hint} has not all of {only}"
    return tuple(each for each in options if only is None or each.name in only)


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _given(context: typer.Context) -> set[str]:
    """The parameters that stand on the command line, and are not left at their defaults."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}


def _argument(hint: Any) -> Any:
    (declared,) = (extra for extra in get_args(hint) if isinstance(extra, Positional))
    return typer.Argument(help=declared.help)


def _heading(group: Any) -> str:
    """The first line of a group's docstring."""
    return str(_bare(group).__doc__).partition("\n")[0].rstrip(".")


def _option(row: Option, heading: str) -> inspect.Parameter:
    flags = [f"{row.flag}/--no-{row.flag.removeprefix('--')}"] if row.default is True else row.flags
    offers = row.suggestions if row.choices or row.suggest is not None else None
    declared = typer.Option(*flags, help=row.help, autocompletion=offers, rich_help_panel=heading)
    return _parameter(row.name, row.type | None if row.may_be_none else row.type, row.default, declared)


def _parameter(name: str, kind: Any, default: Any, declared: Any) -> inspect.Parameter:
    annotation: Any = Annotated[kind, declared]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def explained(error: Any, arguments: list[str]) -> str:
    """The message for an error of the parser, with what was probably meant; `arguments` are the command line's."""
    message, hint = str(error.format_message()).rstrip(), ""
    if hasattr(error, "possibilities"):
        near = did_you_mean(error.option_name, error.possibilities or ())
        if not did_you_mean(error.option_name.strip("-"), [each.strip("-") for each in error.possibilities or ()]):
            near = ""  # only the hyphens are alike
        message = f"No such option: {error.option_name}.{near}"
    if hasattr(error, "option_name"):
        files = [each for each in arguments if each[0] == "-" and each[:2] != "--" and "." in each]
        hint = f" For a file of that name, put -- before it: -- {files[0]}." if files else ""
    context = getattr(error, "ctx", None)
    command = "edgeconv" if context is None else context.command_path
    return f"{message}{'' if message.endswith(('?', '!', '.')) else '.'}{hint} See '{command} --help'."
