"""What Typer's parser refuses, in one line: what is wrong, what was probably meant, and where to read on."""

from __future__ import annotations

from typing import Any

from edgeconv.core.option import did_you_mean


def explained(error: Any, arguments: list[str]) -> str:
    """The message for an error of the parser; `arguments` are the command line's."""
    message = _unknown_option(error) or str(error.format_message()).rstrip()
    hint = _name_with_a_hyphen(error, arguments)
    ends = message.endswith(("?", "!", "."))
    context = getattr(error, "ctx", None)
    command = "edgeconv" if context is None else context.command_path
    return f"{message}{'' if ends else '.'}{hint} See '{command} --help'."


def _unknown_option(error: Any) -> str:
    """One option that was probably meant, in the words of every other mistake; the parser lists several."""
    named, near = getattr(error, "option_name", None), getattr(error, "possibilities", None)
    if named is None or near is None:
        return ""
    return f"No such option: {named}.{did_you_mean(str(named), near)}"


def _name_with_a_hyphen(error: Any, arguments: list[str]) -> str:
    """`run -x.png`: a file that looks like an option."""
    if not hasattr(error, "option_name"):
        return ""
    named = next(
        (each for each in arguments if each.startswith("-") and not each.startswith("--") and "." in each), None
    )
    return "" if named is None else f" For a file of that name, put -- before it: -- {named}."
