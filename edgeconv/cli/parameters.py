"""From groups of options to the parameters of a command: what a command's function names, Typer gets spelled out.

    def run(picture: Annotated[str, Positional("PNG, JPEG, …")], filtering: Filtering, sampling: Sampling) -> None:

has the options of both groups on its command line, and gets the groups filled in.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from functools import update_wrapper
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from edgeconv.core.option import Given, Only, Option, Positional, options_of

COMMAND_LINE = "COMMANDLINE"
"""How Typer calls the source of a value that a person gave."""


@dataclass(frozen=True)
class OptionGroup:
    """A parameter of a command's function that stands for several options."""

    name: str
    type: type
    options: tuple[Option, ...]


def spread(function: Callable[..., None]) -> Callable[..., None]:
    """The function with every group of options spread into its options, as Typer reads a command."""
    hints = get_type_hints(function, include_extras=True)
    parameters = inspect.signature(function).parameters
    arguments = {name: _argument(parameters[name], hints[name]) for name in parameters if _argument_of(hints[name])}
    groups = tuple(_group(name, hint) for name, hint in hints.items() if is_dataclass(_bare(hint)))
    asking = [name for name, hint in hints.items() if hint is Given]

    def call(context: typer.Context, **values: Any) -> None:
        filled = {group.name: _fill(group, values) for group in groups}
        for name in asking:
            filled[name] = Given(entry for entry in context.params if is_given(context, entry))
        function(**{name: values[name] for name in arguments}, **filled)

    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    spelled = [context, *arguments.values(), *(_parameter(entry) for group in groups for entry in group.options)]
    update_wrapper(call, function)
    del call.__wrapped__  # type: ignore[attr-defined]  # or its signature would be taken
    call.__signature__ = inspect.Signature(spelled)  # type: ignore[attr-defined]
    call.__annotations__ = {entry.name: entry.annotation for entry in spelled}
    return call


def is_given(context: typer.Context, name: str) -> bool:
    """Whether a parameter stands on the command line, and is not left at its default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == COMMAND_LINE


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _argument_of(hint: Any) -> Positional | None:
    extras = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((extra for extra in extras if isinstance(extra, Positional)), None)


def _argument(parameter: inspect.Parameter, hint: Any) -> inspect.Parameter:
    declared = _argument_of(hint)
    assert declared is not None  # the caller has asked
    kind: Any = _bare(hint)
    annotation: Any = Annotated[kind, typer.Argument(help=declared.help, metavar=declared.metavar)]
    return inspect.Parameter(
        parameter.name, inspect.Parameter.KEYWORD_ONLY, default=parameter.default, annotation=annotation
    )


def _group(name: str, hint: Any) -> OptionGroup:
    kind = _bare(hint)
    only = next((extra.names for extra in get_args(hint)[1:] if isinstance(extra, Only)), None)
    taken = tuple(entry for entry in options_of(kind) if only is None or entry.name in only)
    assert only is None or len(taken) == len(only), f"{kind.__name__} has not all of {only}"
    return OptionGroup(name, kind, taken)


def _parameter(entry: Option) -> inspect.Parameter:
    kind: Any = entry.type | None if entry.may_be_none else entry.type
    flags = [f"{entry.flag}/--no-{entry.flag.removeprefix('--')}"] if entry.default is True else entry.flags
    offers = bool(entry.choices) or entry.declared.suggest is not None
    completion: Any = entry.suggestions if offers else None
    annotation: Any = Annotated[kind, typer.Option(*flags, help=entry.help, autocompletion=completion)]
    return inspect.Parameter(entry.name, inspect.Parameter.KEYWORD_ONLY, default=entry.default, annotation=annotation)


def _fill(group: OptionGroup, values: Mapping[str, Any]) -> Any:
    for entry in group.options:
        entry.check(values[entry.name])
    return group.type(**{entry.name: values[entry.name] for entry in group.options})
